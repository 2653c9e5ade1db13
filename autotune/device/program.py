"""A family's kernels that are not tuned, for work on the device before a tuned kernel runs: memory by the byte and
single launches, without policies and declared data."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.compile import Batch, Cache, Geometry, VariantSource, compile_one
from autotune.declaration import source_files
from autotune.device.backend import Backend, Closing, LaunchError, Placed
from autotune.files import include_dir
from autotune.layout import Bytes, Stored, handle

_UNIT = 16  # bytes: what memory comes in


class Room(Closing):
    """Memory on a device. ``address`` is where it begins, ``nbytes`` how much there is; ``content`` may be shorter."""

    def __init__(self, backend: Backend, nbytes: int, content: Bytes | None = None) -> None:
        if content is not None and len(content) > nbytes:
            raise ValueError(
                f"a room of {nbytes} bytes for content of {len(content)}: give it as many or more"
            )
        units = -(-nbytes // _UNIT)
        # Without extents, whose 32 bits would end at 64 GiB: no kernel sees it as an array.
        stored = Stored(content, units * _UNIT, _UNIT, "global", (), (), 0)
        self._backend = backend
        try:
            self._placed: Placed = backend.place(stored)
        except LaunchError as problem:
            raise MemoryError(f"{backend.device.name}: {problem}") from None
        self.address, self.nbytes = handle(self._placed.argument), nbytes

    def fill(self, byte: int) -> None:
        """Set every byte; asynchronous, as a launch is."""
        self._backend.fill(self._placed, byte)

    def fetch(self, dtype: Any, count: int) -> NDArray[Any]:
        """Return the first ``count`` elements after all earlier launches. Raises LaunchError if one failed."""
        return self._backend.download(self._placed, count * np.dtype(dtype).itemsize).view(dtype)

    def close(self) -> None:
        """Free it after pending work on it has ended. Safe to call twice."""
        self._placed.free()


class DeviceProgram:
    """``kernels`` of ``source``, templates over a struct that has ``constants``, of which ``block_size`` is the threads
    of every block. Compiled when it is made, by the device's own compiler, and kept in ``cache``. Raises CompilerError,
    LaunchError, and FamilyError for a source that cannot be read."""

    def __init__(
        self, backend: Backend, cache: Cache, source: Path, kernels: Sequence[str], constants: Mapping[str, int]
    ) -> None:  # fmt: skip
        self._backend = backend
        self.constants = constants
        members = "".join(
            f" static constexpr unsigned {name} = {value};" for name, value in constants.items()
        )
        struct = f"struct Program {{{members} }};\n"
        files = source_files.hash_files(source_files.follow_includes((source,), source.parent, include_dir()))
        key = hashlib.sha256("\n".join((source_files.combine(files), struct, *kernels)).encode()).hexdigest()
        variant = VariantSource(key, "Program", struct, tuple(kernels))
        batch = Batch(source, (include_dir(),), (variant,))
        failed = f"{source.name} does not compile: "
        self._module = backend.load(compile_one(batch, backend.toolchain(), cache, failed))

    def room(self, nbytes: int, content: NDArray[Any] | None = None) -> Room:
        """Allocate memory on the device, in bytes, with ``content`` at its beginning if that is given. Raises
        MemoryError if there is not enough, ValueError if the content is larger."""
        return Room(self._backend, nbytes, None if content is None else content.reshape(-1).view(np.uint8))

    def launch(self, kernel: str, threads: int, *arguments: Room | int | bytes | None) -> None:
        """As many blocks as ``threads`` need, with the address of each Room (None: no address), each whole number as 32
        bits without sign, and bytes as they are; asynchronous on a cuda device. Raises LaunchError."""
        block = self.constants["block_size"]
        geometry = Geometry((-(-threads // block), 1, 1), (block, 1, 1))
        self._backend.launch(self._module, kernel, geometry, [_parameter(value) for value in arguments])

    def synchronize(self) -> None:
        """Wait until all launches have run. Raises LaunchError if one failed."""
        self._backend.synchronize()


def _parameter(value: Room | int | bytes | None) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, int):
        return value.to_bytes(4, "little")
    return (value.address if value else 0).to_bytes(8, "little")
