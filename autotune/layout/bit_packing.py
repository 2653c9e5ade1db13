"""packing: several small non-negative integers in one 32-bit word (host side of ``packing.cuh``)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.errors import UnknownName, WorkloadError


@dataclass(frozen=True)
class Packing:
    """``elements`` of ``bits`` each in a word of ``word_bytes``. Side by side with the first in the lowest bits,
    or, when ``planar``, bit k of plane p is bit p of element k."""

    name: str
    bits: int
    planar: bool = False

    @property
    def elements(self) -> int:
        return 32 if self.planar else 32 // self.bits

    @property
    def word_bytes(self) -> int:
        return 4 * self.bits if self.planar else 4

    @property
    def cpp(self) -> str:
        return f"autotune::{'Planes' if self.planar else 'Bits'}<{self.bits}>"

    def pack(self, values: NDArray[np.integer]) -> NDArray[np.uint32]:
        """Integers of shape (..., n), n a multiple of ``elements`` -> words (..., n / elements, word_bytes / 4).

        Raises WorkloadError when a value does not fit in ``bits`` bits.
        """
        top = (1 << self.bits) - 1
        if values.size and (values.min() < 0 or values.max() > top):
            bad = values.min() if values.min() < 0 else values.max()
            raise WorkloadError(f"packing {self.name} holds 0..{top}, found {bad}; take a wider packing")
        grouped = values.reshape(*values.shape[:-1], -1, self.elements)
        if self.bits == 32:
            return grouped.astype(np.uint32)
        narrow = np.ascontiguousarray(grouped, "<u2" if self.bits == 16 else "u1")  # the words' bytes, nearly
        if self.planar:
            # packbits takes any non-zero for a one, and keeps 32 elements of a row in 4 bytes
            planes = [np.packbits(narrow & (1 << p), axis=-1, bitorder="little") for p in range(self.bits)]
            return np.concatenate([plane.view("<u4") for plane in planes], axis=-1)
        for shift in (self.bits << k for k in range(8)):  # join neighbours until a byte is full
            if shift >= 8:
                break
            narrow = narrow[..., 0::2] | narrow[..., 1::2] << shift
        return np.ascontiguousarray(narrow).view("<u4").reshape(*grouped.shape[:-1], 1)

    def unpack(self, words: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """The inverse of ``pack``: (..., m, word_bytes / 4) -> (..., m * elements)."""
        if self.planar:
            bits = np.unpackbits(
                np.ascontiguousarray(words)[..., None].view(np.uint8), axis=-1, bitorder="little"
            )
            weights = np.uint32(1) << np.arange(self.bits, dtype=np.uint32)[:, None]
            grouped = (bits * weights).sum(axis=-2, dtype=np.uint32)
        else:
            shifts = np.arange(self.elements, dtype=np.uint32) * np.uint32(self.bits % 32)
            grouped = (words >> shifts) & np.uint32((1 << self.bits) - 1)
        values: NDArray[np.uint32] = grouped.reshape(*grouped.shape[:-2], -1)
        return values


PACKINGS = {
    p.name: p
    for p in (
        Packing("int32", 32),
        Packing("int16", 16),
        Packing("int8", 8),
        Packing("bits4", 4),
        Packing("bits2", 2),
        Packing("planes1", 1, planar=True),
        Packing("planes2", 2, planar=True),
        Packing("planes4", 4, planar=True),
    )
}


def packing(name: str) -> Packing:
    if name not in PACKINGS:
        raise UnknownName("packing", name, PACKINGS)
    return PACKINGS[name]


def words_along(
    packing: Packing, array: NDArray[Any], axis: int, extent: int, vector: int
) -> NDArray[np.uint8]:
    """``array`` with ``extent`` accesses of ``vector`` words along ``axis`` and their bytes as the last axis; the last
    word is filled up with 0."""
    moved = np.moveaxis(array, axis, -1)
    short = extent * packing.elements * vector - moved.shape[-1]
    moved = np.pad(moved, [(0, 0)] * (moved.ndim - 1) + [(0, short)])
    words = np.ascontiguousarray(packing.pack(moved))
    return np.moveaxis(words.reshape(*moved.shape[:-1], extent, -1).view(np.uint8), -2, axis)


def elements_along(packing: Packing, raw: NDArray[np.uint8], axis: int, count: int) -> NDArray[Any]:
    """The inverse of ``words_along``: the first ``count`` elements along ``axis``."""
    words = np.ascontiguousarray(np.moveaxis(raw, axis, -2)).view(np.uint32)
    grouped = words.reshape(*words.shape[:-2], -1, packing.word_bytes // 4)
    return np.ascontiguousarray(np.moveaxis(packing.unpack(grouped)[..., :count], -1, axis))
