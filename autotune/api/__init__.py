"""What a program tunes with: ``autotune.sweep`` and the ``SweepResult`` that it gives."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
