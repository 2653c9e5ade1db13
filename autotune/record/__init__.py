"""Trials, studies, their identity, what they say (the decision), and ways to keep and exchange them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
