"""Which layouts would help, traced without a GPU; and why one configuration is faster than another."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
