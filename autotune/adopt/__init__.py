"""``autotune adopt``: a family folder from a kernel's text, and the proof that both do the same."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
