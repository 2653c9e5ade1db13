"""What a cuda device holds for a caller: placed data, loaded modules; and the bytes of a launch's parameters."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from autotune.backends import LaunchError
from autotune.layout import Stored

__all__ = ["CudaModule", "CudaPlaced", "packed"]


class _Owner(Protocol):
    """The backend that placed the data."""

    driver_error: type[Exception]

    def current(self) -> AbstractContextManager[None]: ...


@dataclass
class CudaPlaced:
    """Data on the GPU. ``address`` is 0 for constant memory."""

    stored: Stored
    argument: bytes
    address: int
    _backend: _Owner
    _owned: list[Any]

    def free(self) -> None:
        """Safe after a lost context: the driver has freed everything with it."""
        with suppress(LaunchError, self._backend.driver_error), self._backend.current():
            for item in self._owned:
                item.free()
        self._owned.clear()


@dataclass
class CudaModule:
    """``handles`` are the driver's, of the functions that were launched cooperatively."""

    image: Path
    module: Any
    functions: dict[str, Any]
    handles: dict[str, int] = field(default_factory=dict)

    def unload(self) -> None:
        """Dropped with the backend's table of images; a cubin is shared by the variants in it."""


def packed(arguments: Sequence[bytes]) -> bytes:
    """The parameter buffer: each argument at its natural alignment (its size up to 8; accessors are 8-aligned)."""
    buffer = bytearray()
    for argument in arguments:
        alignment = len(argument) if len(argument) in (1, 2, 4) else 8
        buffer += b"\0" * (-len(buffer) % alignment) + argument
    return bytes(buffer)
