"""Which configuration next: samplers, and the search that gives each configuration once and within limits."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
