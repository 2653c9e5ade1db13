"""Blocks of reads cut into what is searched at once, by how many matches the reads so far had."""

from collections.abc import Iterator

import numpy as np

from ..sequences import ReadBlock

__all__ = ["Portions"]

_FIRST_BASES = 1 << 20
# Few enough to be written while the next are searched, enough to keep all cores busy.
_MATCHES = 1 << 21


class Portions:
    """``most`` is how many bases a portion may have. Where it ``adapts``, it has fewer when they have many matches."""

    def __init__(self, most: int, adapts: bool) -> None:
        self._most, self._adapts = most, adapts
        self._bases = self._matches = 0

    def found(self, bases: int, matches: int) -> None:
        """What the reads of a portion had."""
        self._bases, self._matches = self._bases + bases, self._matches + matches

    def of(self, blocks: Iterator[ReadBlock]) -> Iterator[ReadBlock]:
        """Each block in one portion or several, of whole reads."""
        for block in blocks:
            first, reads = 0, len(block.headers)
            while first < reads:
                end = block.offsets[first] + self._bases_at_once()
                last = int(np.searchsorted(block.offsets, end, side="right")) - 1
                last = max(last, first + 1)
                yield block if last - first == reads else block.part(first, last)
                first = last

    def _bases_at_once(self) -> int:
        if not self._adapts:
            return self._most
        if not self._bases:
            return min(self._most, _FIRST_BASES)
        return max(1, min(self._most, int(_MATCHES * self._bases / max(1, self._matches))))
