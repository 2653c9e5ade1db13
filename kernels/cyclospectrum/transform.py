"""Counting by a transform: how long it is, and the passes that make it (autocorrelation.cuh)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from autotune.family import Execution

__all__ = ["PRIMES", "Transform", "count_by_transform"]

PRIMES = {"wide": 3 * 2**30 + 1, "narrow": 7 * 2**26 + 1}
_FEWEST_BITS = 6  # of a field, and of a row
_FEWEST_STAGES, _MOST_STAGES = 6, 9  # of a pass over columns: a block has 32 columns in shared memory
_MARKED = 4096  # residues of a block of mark


@dataclass(frozen=True)
class Transform:
    """2^``bits`` elements: passes over columns of 2^stages elements, then rows of 2^``row_stages``."""

    bits: int
    row_stages: int

    @classmethod
    def of(cls, total: int, row_bits: int) -> "Transform":
        """For prefix sums in [0, ``total``): at least 2 ``total`` - 1 elements, so that no difference comes around."""
        bits = max(_FEWEST_BITS, (2 * max(total, 1) - 2).bit_length())
        in_columns = max(0, bits - row_bits)
        passes = -(-in_columns // _MOST_STAGES)
        return cls(bits, bits - max(in_columns, passes * _FEWEST_STAGES))

    @property
    def columns(self) -> tuple[tuple[int, int], ...]:
        """(span, stages) of each pass: in blocks of 2^span elements, columns of 2^stages. The first come longest."""
        left = self.bits - self.row_stages
        passes = -(-left // _MOST_STAGES)
        found, span = [], self.bits
        for done in range(passes):
            stages = -(-left // (passes - done))
            found.append((span, stages))
            span, left = span - stages, left - stages
        return tuple(found)

    @property
    def filled(self) -> int:
        """Elements of the half that positions and counts lie in."""
        return 1 << (self.bits - 1)

    def scale(self, prime: int) -> int:
        """1 / 2^bits modulo the prime; twice times 2^32, since Montgomery's product takes that away twice."""
        return pow(2, 64 - self.bits, prime)

    def forward(self) -> Iterator[dict[str, Any]]:
        """The scalars of each launch of columns_forward, in order; of columns_back in the opposite order."""
        for span, stages in self.columns:
            yield {
                "span": span,
                "stages": stages,
                "filled": self.filled if span == self.bits else 2**self.bits,
                "blocks": 2 ** (self.bits - stages - 5),
                "words": 33 * 2 ** self.columns[0][1],
            }


def count_by_transform(execution: Execution) -> None:
    """Queue what leaves in ``field`` how often each difference of prefix sums occurs."""
    transform = Transform.of(int(execution.names["total"]), int(execution.names["row_bits"]))
    passes = list(transform.forward())
    execution.launch("empty_field", filled=transform.filled if passes else 2**transform.bits)
    execution.launch("mark")
    for scalars in passes:
        execution.launch("columns_forward", **scalars)
    execution.launch(
        "square_rows",
        bits=transform.bits,
        stages=transform.row_stages,
        scale=transform.scale(PRIMES[str(execution.names["prime_size"])]),
        blocks=max(1, 2 ** (transform.bits - transform.row_stages - 1)) if passes else 1,
        words=33 * 2**transform.row_stages // 16,
    )
    for scalars in reversed(passes):
        execution.launch("columns_back", **scalars)
