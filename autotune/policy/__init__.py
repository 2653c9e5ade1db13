"""Winners kept in policy files, rejected, and chosen for an input."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
