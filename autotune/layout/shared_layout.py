"""Arrays in shared memory: where their elements lie, and how often their words meet in a bank (host side of
``shared_array.cuh``)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from autotune.layout.arrays import SCALAR_TYPES
from autotune.layout.layout import Layout

_WARP, _BANKS, _WORD = 32, 32, 4
_WIDEST = 16  # bytes that a thread moves by one instruction


@dataclass(frozen=True)
class SharedLayout:
    """``layout`` has the extents as its ``sizes``, and of all dimensions those of ``DIMENSIONS`` alone."""

    DIMENSIONS: ClassVar = ("axes", "tiles", "curve", "swizzle", "padding")
    layout: Layout

    @property
    def elements(self) -> int:
        """Those that it takes room for."""
        return self.layout.grid(self.layout.sizes).elements

    @property
    def nbytes(self) -> int:
        return self.elements * self.layout.value_bytes

    @property
    def cpp(self) -> str:
        """Its type (shared_array.cuh)."""
        mapping = self.layout.mapping
        extents, strides = (
            ", ".join(map(str, numbers))
            for numbers in (self.layout.sizes, mapping.compute_known_strides(self.layout.sizes))
        )
        text = mapping.cpp(f"autotune::Extents<{extents}>", f"autotune::Strides<unsigned, {strides}>")
        return (
            f"autotune::SharedArray<{SCALAR_TYPES[self.layout.data.fields[0].type]}, {text}, {self.elements}>"
        )

    @property
    def headers(self) -> tuple[str, ...]:
        return ("autotune/shared_array.cuh", *self.layout.mapping.headers)

    def wavefronts(self) -> Mapping[str, tuple[int, int] | None]:
        """Count the wavefronts of a warp's request, by access pattern.

        Along an extent, the threads of a warp access neighbours along it, and then those along the other extents.
        ``by 2`` and ``by 4``, each accesses that many neighbours along the contiguous extent as one vector.

        Returns:
            Of each pattern the most wavefronts that a request takes, and the fewest that its bytes need; None where
            the neighbours are no vector.
        """
        sizes, names, size = self.layout.sizes, self.layout.data.shape, self.layout.value_bytes
        elements = self.layout.mapping.element(list(np.indices(sizes)), sizes)
        found: dict[str, tuple[int, int] | None] = {}
        for axis, name in enumerate(names):
            found[f"along {name}"] = _wavefronts(np.moveaxis(elements, axis, -1).reshape(-1) * size, size)
        last = self.layout.axes[-1]
        for count in (2, 4):
            if sizes[last] % count or size * count > _WIDEST:
                continue
            vectors = np.moveaxis(elements, last, -1).reshape(-1, count)
            first = vectors[:, :1]
            is_vector = not np.any(first % count) and np.array_equal(vectors, first + np.arange(count))
            pattern = f"along {names[last]} by {count}"
            found[pattern] = _wavefronts(first[:, 0] * size, size * count) if is_vector else None
        return found


def _wavefronts(addresses: NDArray[Any], size: int) -> tuple[int, int]:
    """The most of a warp's requests, and the fewest possible: threads access ``size`` bytes each at ``addresses``. As
    many threads at a time as access the bytes of all banks; each bank gives one word at a time."""
    lanes = min(_WARP, _BANKS * _WORD // size)
    addresses = np.concatenate([addresses, np.full(-len(addresses) % _WARP, addresses[-1])])
    words = addresses[:, None] // _WORD + np.arange(max(1, size // _WORD))
    words = np.sort(words.reshape(-1, lanes * words.shape[1]))
    is_first = np.diff(words, axis=1, prepend=-1) != 0
    counts = np.zeros((len(words), _BANKS), np.int64)
    np.add.at(counts, (np.nonzero(is_first)[0], words[is_first] % _BANKS), 1)
    passes = counts.max(axis=1).reshape(-1, _WARP // lanes).sum(axis=1)
    return int(passes.max()), _WARP // lanes
