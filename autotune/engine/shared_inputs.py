"""A family, its inputs and its results as other processes of this machine have them: mapped, and not copied."""

import math
import mmap
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from autotune.declaration import Family, Inputs, load_family
from autotune.errors import FamilyError, StoreError, explained
from autotune.layout import Data
from autotune.processes import own_folder


@dataclass(frozen=True, kw_only=True)
class SharedInputs:
    """A family is not sent but loaded from its folder, and arrays are not sent but mapped from files: ``family`` is
    that folder, ``arrays`` one with an ``input-NAME.npy`` for each array. ``space_digest`` says which declaration the
    sender read, ``host_digest`` which Python."""

    family: Path
    space_digest: str
    host_digest: str
    arrays: Path
    sizes: Mapping[str, int]
    options: Mapping[str, str | int]
    scalars: Mapping[str, float]

    @classmethod
    def make(cls, family: Family, inputs: Inputs, arrays: Path, **more: Any) -> Self:
        """Of ``inputs`` whose arrays were written to ``arrays`` (see ``share_arrays``)."""
        return cls(
            family=family.folder, space_digest=family.space_digest, host_digest=family.host_digest, arrays=arrays,
            sizes=dict(inputs.sizes), options=dict(inputs.options), scalars=dict(inputs.scalars), **more,
        )  # fmt: skip

    def load(self, during: str) -> tuple[Family, Inputs]:
        """In the other process. Raises FamilyError where the family was edited ``during`` what goes on."""
        family = load_family(self.family, check=False)
        edited = ""
        if family.space_digest != self.space_digest:
            edited = f"{self.family}/family.yaml"
        elif family.host_digest != self.host_digest:
            edited = f"the Python of {self.family}, or what it imports,"
        if edited:
            raise FamilyError(
                f"{edited} was edited during {during}, run the same command again for the new text"
            )
        arrays = read_arrays(self.arrays, "input", family.inputs)
        return family.apply_types(self.options), Inputs(
            arrays=arrays, sizes=self.sizes, options=self.options, scalars=self.scalars
        )


NO_ROOM = "; name a folder with room in TMPDIR"


def write_arrays(folder: Path, prefix: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """``PREFIX-NAME.npy`` for each array: the files that a Setting's ``arrays`` names. Raises OSError."""
    for name, array in arrays.items():
        np.save(folder / f"{prefix}-{name}.npy", array, allow_pickle=False)


@contextmanager
def share_arrays(arrays: Mapping[str, NDArray[Any]]) -> Iterator[Path]:
    """A folder with the input arrays for as long as the block lasts. Raises StoreError when there is no room for it."""
    with own_folder() as name:
        told = f"cannot write the inputs to {name}, where measuring processes read them:"
        with explained(StoreError, told, NO_ROOM):
            write_arrays(Path(name), "input", arrays)
        yield Path(name)


def has_arrays(folder: Path, prefix: str, declared: Iterable[Data]) -> bool:
    """Whether ``write_arrays`` wrote all of them."""
    return all((folder / f"{prefix}-{data.name}.npy").is_file() for data in declared)


def read_arrays(folder: Path, prefix: str, declared: Iterable[Data]) -> dict[str, NDArray[Any]]:
    """What ``write_arrays`` wrote: read-only, the pages shared by every process that maps them."""
    arrays: dict[str, NDArray[Any]] = {}
    for data in declared:
        path = folder / f"{prefix}-{data.name}.npy"
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except ValueError:  # an empty array cannot be mapped
            array = np.load(path, allow_pickle=False)
        arrays[data.name] = array.view(np.ndarray)
    return arrays


@dataclass(frozen=True)
class SharedArray:
    """An array in an anonymous file of one process, by a path under which others map it too.

    Such a file has no name that could be left behind, is not bound to the size of /dev/shm, and a device can pin its
    pages. Those that nothing writes to cost nothing.
    """

    path: Path
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def map_memory(self) -> NDArray[Any]:
        """From a page's begin; it stays mapped as long as it, or a view of it, is there. Raises StoreError."""
        with (
            explained(StoreError, f"no memory for {self.nbytes} bytes of results:"),
            self.path.open("r+b") as file,
        ):
            memory = mmap.mmap(file.fileno(), max(self.nbytes, 1))
        return np.frombuffer(memory, self.dtype, math.prod(self.shape)).reshape(self.shape)


@contextmanager
def share_array(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Iterator[SharedArray]:
    """Allocate memory that every process may map while the block runs. Raises StoreError if there is none."""
    file = os.memfd_create("autotune-results")
    array = SharedArray(Path(f"/proc/{os.getpid()}/fd/{file}"), shape, dtype)
    try:
        with explained(StoreError, f"no memory for {array.nbytes} bytes of results:"):
            os.ftruncate(file, max(array.nbytes, 1))
        yield array
    finally:
        os.close(file)
