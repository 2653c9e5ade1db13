"""Configurations ranked by the accesses of memory that the cpu device traces, without a GPU."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
