"""A sweep: compile, place, verify, measure, record; failed trials, dead processes; finalists and their proof."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
