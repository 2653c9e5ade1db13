"""One call shared by several devices, in one process or in the ranks of an MPI program."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
