"""The work of one call in pieces for several devices: parts of the runs of work-units with equally many components.

A piece costs what the article's model says (``cost_model``); no chunk reaches from one subclass into the next. Matrices
are added up over the devices; a list of integrals lies in no piece's order, so it is made on one device.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import Execution, UsageError

from .cost_model import CostModel, Share
from .expansion import SORTED, Run, orders, runs_of
from .launches import Launch, Step, after, before, blocks_of, compute, ordered_pairs
from .tiles import Shape

__all__ = ["Piece", "joined", "pieces_of", "shares_of", "subclass_launches", "units"]

# In components: what a work-unit costs beside them, as measured on an H200 with (H2O)27 digested into matrices
# (benchmarks/eri_subclasses.py). The seconds of a component are found where it runs.
RELATIVE = CostModel(component=1.0, transfer=127.0, start=0.0)
_LARGEST = 1 / 512  # of all cost, in one piece
_BATCH = 32
_PARTS = 128  # of all tiles, which make a launch together however many there are


@dataclass(frozen=True)
class Piece:
    """One launch for ``share``: work-units of one subclass."""

    share: Share
    launch: Launch


def pieces_of(
    counts: NDArray[Any],
    granularity: str,
    block_size: int,
    split: int = 1,
    model: CostModel = RELATIVE,
    largest: float = _LARGEST,
) -> list[Piece]:
    """Every work-unit of sorted pairs (``counts``: primitive pairs of each), by subclass, the fewest components first;
    no piece above a share ``largest`` of all cost, unless it is one block or work-unit."""
    runs = sorted(runs_of(counts), key=lambda run: run.each)
    costs = [model.seconds(Share(run.each, run.units)) for run in runs]
    pieces = []
    for run, cost in zip(runs, costs, strict=True):
        steps = blocks_of(run, block_size // split) if granularity == "block" else run.units
        many = min(steps, max(1, int(np.ceil(cost / (largest * sum(costs))))))
        edges = [steps * number // many for number in range(many + 1)]
        for first, last in itertools.pairwise(edges):
            pieces.append(_piece(run, granularity, block_size, split, first, last))
    return pieces


def joined(launches: Iterable[Launch]) -> Iterator[Launch]:
    """Those of pieces in a row as few as possible: of each run one, so that the host is not what is waited for."""
    for _, some in itertools.groupby(
        launches, lambda one: (one.each, one.first_bra, one.first_ket, one.kets)
    ):
        parts = list(some)
        yield replace(parts[0], threads=sum(p.threads for p in parts), units=sum(p.units for p in parts))


def shares_of(counts: NDArray[Any]) -> list[Share]:
    """The subclasses, the fewest components first."""
    found: dict[int, int] = {}
    for run in runs_of(counts):
        found[run.each] = found.get(run.each, 0) + run.units
    return [Share(components, number) for components, number in sorted(found.items())]


def subclass_launches(execution: Execution) -> Iterator[tuple[Share, Callable[[], None]]]:
    """Each subclass of one call and what launches it, for timing it alone; tables must have been made."""
    names = execution.names
    _check_order(names)
    counts = ordered_pairs(execution)["count"]
    if names["granularity"] == "tile":
        pieces = _runs_of_tiles(counts, Shape.of(names))
    else:
        pieces = pieces_of(counts, names["granularity"], names["block_size"], names["split"], largest=1.0)
    for share in shares_of(counts):
        steps = [
            compute(execution, piece.launch) for piece in pieces if piece.share.components == share.components
        ]
        yield share, _all(steps)


def _runs_of_tiles(counts: NDArray[Any], shape: Shape) -> list[Piece]:
    """A launch of tiles for each run."""
    runs = runs_of(counts)
    tiles = [shape.tiles(run) for run in runs]
    return [
        Piece(
            Share(run.each, run.units),
            Launch(threads=many * shape.block_size, units=run.units, first_unit=first),
        )
        for run, many, first in zip(runs, tiles, itertools.accumulate(tiles, initial=0), strict=False)
    ]


def _all(steps: Sequence[Step]) -> Callable[[], None]:
    def do() -> None:
        for step in steps:
            step.do()

    return do


def units(arrays: Mapping[str, NDArray[Any]], names: Mapping[str, Any]) -> Any:
    """The pieces of one call, for ``autotune run`` on several devices. Raises UsageError for what cannot be spread."""
    from autotune.family import Units  # noqa: PLC0415  # only where several devices are

    _check(names)
    counts = arrays["pairs"]["count"][orders[names["order"]](dict(arrays))]
    if names["granularity"] == "tile":
        return _parts_of_tiles(counts, Shape.of(names))
    pieces = pieces_of(counts, names["granularity"], names["block_size"], names["split"])

    def run(execution: Execution, first: int, count: int) -> None:
        for step in before(execution):
            step.do()
        for launch in joined(piece.launch for piece in pieces[first : first + count]):
            compute(execution, launch).do()
        for step in after(execution):
            step.do()

    subclasses = {
        components: number for number, components in enumerate(sorted({p.share.components for p in pieces}))
    }
    return Units(
        costs=np.array([RELATIVE.seconds(piece.share) for piece in pieces]),
        run=run,
        batch=_BATCH,
        sums=("integrals", "coulomb", "exchange"),
        groups=np.array([subclasses[piece.share.components] for piece in pieces], np.int64),
    )


def _parts_of_tiles(counts: NDArray[Any], shape: Shape) -> Any:
    """Every 128th tile is a unit, so that all units are alike and any of them in a row are one launch."""
    from autotune.family import Units  # noqa: PLC0415  # only where several devices are

    tiles = sum(map(shape.tiles, runs_of(counts)))

    def run(execution: Execution, first: int, count: int) -> None:
        threads = -(-tiles // _PARTS) * count * shape.block_size
        launch = Launch(threads=threads, units=tiles, first_unit=first, parts=_PARTS, share=count)
        for step in (*before(execution), compute(execution, launch), *after(execution)):
            step.do()

    return Units(costs=np.ones(_PARTS), run=run, batch=_PARTS, sums=("integrals", "coulomb", "exchange"))


def _check(names: Mapping[str, Any]) -> None:
    if names["output"] != "coulomb_exchange":
        raise UsageError(
            "a list of integrals is made on one device, since no device's share of it lies together: take "
            "output=coulomb_exchange to have several devices"
        )
    _check_order(names)


def _check_order(names: Mapping[str, Any]) -> None:
    if names["expansion"] != "index" or names["order"] not in SORTED:
        raise UsageError(
            f"expansion={names['expansion']},order={names['order']} cannot be spread: work goes to devices by "
            f"subclass, with expansion=index and order {' or '.join(SORTED)}"
        )


def _piece(run: Run, granularity: str, block_size: int, split: int, first: int, last: int) -> Piece:
    """Steps ``first`` to ``last`` (blocks, or work-units) of a run."""
    if granularity == "block":
        number = _units_before(run, block_size // split, last) - _units_before(
            run, block_size // split, first
        )
        threads = (last - first) * block_size
    else:
        number = last - first
        threads = number * {"component": run.each, "thread": 1}[granularity]
    launch = Launch(
        threads=threads, units=number, each=run.each, first_unit=first, first_bra=run.first_bra,
        first_ket=run.first_ket, kets=run.kets,
    )  # fmt: skip
    return Piece(Share(run.each, number), launch)


def _units_before(run: Run, width: int, block: int) -> int:
    """Work-units of a run in its first ``block`` blocks (autotune/runs.cuh: chunk)."""
    if run.kets:
        rows, chunk = divmod(block, -(-run.kets // width))
        return rows * run.kets + min(chunk * width, run.kets)
    group = 0
    while width * ((group + 1) * (group + 2) // 2) <= block:
        group += 1
    row, chunk = divmod(block - width * (group * (group + 1) // 2), group + 1)
    row += group * width
    return min(row * (row + 1) // 2 + min(chunk * width, row + 1), run.units)
