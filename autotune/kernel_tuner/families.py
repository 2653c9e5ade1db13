"""T1 files as families."""

from pathlib import Path

from autotune.declaration import Family
from autotune.kernel_tuner.t1 import kernel_of

SUFFIXES = (".json",)


def read_family(path: Path) -> Family:
    """Declare the kernel of a T1 file as a folder of the user's cache. Raises FamilyError."""
    return kernel_of(path).family
