"""The commands: their options, what they print, and ``lint`` and ``new`` for families."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
