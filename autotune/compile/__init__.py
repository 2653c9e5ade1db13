"""From a configuration to a binary with its static profile: variants, batches, cache, occupancy."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
