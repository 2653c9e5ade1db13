"""How many variants a compiler call gets: few at first, so that measuring starts early, then enough for all cores.

A call costs little by itself (0.05 s); a variant costs 0.05 s, and 0.4 s where kernels are large.
"""

from collections.abc import Iterator, Set
from itertools import repeat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from autotune.toolchain import Batch, VariantSource

__all__ = ["chunked", "sizes"]

_CALLS = 3  # of each process, at least, so that all are done at about the same time


def sizes(missing: int, processes: int, most: int) -> Iterator[int]:
    """How many of ``missing`` variants each compiler call gets, without end; never more than ``most``.

    A call gets a process's share of what was given out before it: it is then ready by the time that the results
    before it are used up, if using one takes as long as all processes together need to make one.
    """
    if processes <= 1:
        yield from repeat(most)
    full = min(most, max(1, -(-missing // (_CALLS * processes))))
    given = 0
    while given // processes < full:
        size = max(1, given // processes)
        yield size
        given += size
    yield from repeat(full)


def chunked(batch: "Batch", uncached: Set[str], processes: int, most: int) -> Iterator["Batch"]:
    """The batch in consecutive chunks of at most ``most`` variants, with as many of the ``uncached`` keys in each as
    ``sizes`` says. Variants that need no compiler are a chunk of their own where they come first: nothing has to be
    waited for."""
    wanted = sizes(len(uncached), processes, most)
    chunk: list[VariantSource] = []
    new, size = 0, next(wanted)
    for variant in batch.variants:
        if chunk and (len(chunk) == most or new == size or (new == 0 and variant.key in uncached)):
            yield batch.of(chunk)
            size = next(wanted) if new else size
            chunk, new = [], 0
        chunk.append(variant)
        new += variant.key in uncached
    if chunk:
        yield batch.of(chunk)
