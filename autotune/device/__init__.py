"""Memory, launches and events on one device, and layouts applied there: cuda and cpu behind one protocol."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
