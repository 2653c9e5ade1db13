"""reversed: the indices of some extents run backwards (host side of ``reversal.cuh``)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from autotune.errors import UnknownName
from autotune.layout.arrays import Data
from autotune.layout.dimension import step_dimension


@dataclass(frozen=True)
class Reversal:
    """The axes whose last index is stored first."""

    header: ClassVar[str] = "autotune/reversal.cuh"
    name: ClassVar[str] = "a reversal"
    span: ClassVar[int] = 1
    device: ClassVar[Mapping[str, int]] = {}
    reversed: tuple[int, ...]

    def __str__(self) -> str:
        return ", ".join(map(str, self.reversed))

    def moved(self, at: Sequence[Any], _axes: Sequence[int], extents: Sequence[int]) -> list[Any]:
        return [extents[i] - 1 - each if i in self.reversed else each for i, each in enumerate(at)]

    def cpp(self, mapping: str, _axes: Sequence[int]) -> str:
        return f"autotune::Reversed<{mapping}, {self}>"

    def host_cpp(self, _axes: Sequence[int]) -> str:
        return " ".join(f"at[{axis}] = extents[{axis}] - 1 - at[{axis}];" for axis in self.reversed)


def reversal_of(value: object, data: Data, where: str) -> Reversal | None:
    """What a value says: ``none``, ``all``, or a list of extents. Raises UnknownName."""
    names = [] if value == "none" else list(data.shape) if value == "all" else value
    if not isinstance(names, list) or not set(names) <= set(data.shape):
        raise UnknownName("reversed layout", value, ("none", "all", f"some of {list(data.shape)}"), where)
    axes = tuple(axis for axis, name in enumerate(data.shape) if name in names)
    return Reversal(axes) if axes else None


REVERSED = step_dimension("reversed", Reversal, reversal_of, Reversal.header, probes=("all",))
