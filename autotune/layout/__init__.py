"""How arrays are stored: memories, axes, records, packing, order, groups, views, windows of one array."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
