"""For those who write families: ``new`` makes a folder that works at once, ``lint`` checks one without a GPU."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
