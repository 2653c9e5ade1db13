"""What a family and a workload say: data, kernels, policies, the space they span, expressions; the YAML itself."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
