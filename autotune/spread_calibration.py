"""What chunks take on each device, found by timing some of them before a plan is made."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from autotune.spread_plan import Chunk, Model, Units, group_edges

__all__ = ["calibrated"]

_FLAT = 0.97  # twice as large a chunk that takes more than this a unit of cost says that larger ones do too

Times = Mapping[
    int, Sequence[tuple[float, float]]
]  # of each worker: (seconds, seconds of the copy) of each chunk


def calibrated(
    units: Units, bytes_per_unit: NDArray[np.float64], most: float, timed: Callable[[Sequence[Chunk]], Times]
) -> tuple[dict[int, Model], Units]:
    """(model of each worker, ``units`` with costs as measured). ``timed`` runs chunks on every device; ``most`` is the
    share of the units that one chunk may have.

    Chunks of 1, 2, 4 ... units, in the group with the largest cost, until twice as many take twice as long: a device
    that a few units cannot fill takes as long for a few as for one. Then one chunk of each other group, since groups
    differ in more than a family's estimates say.
    """
    edges = group_edges(units)
    low, high = max(pairwise(edges), key=lambda ends: units.cost(Chunk(ends[0], ends[1] - ends[0])))
    asked = [Chunk(low, 1)]
    if len(edges) == 2:  # one group, in which units may differ
        asked += {Chunk(int(units.costs.argmin()), 1), Chunk(int(units.costs.argmax()), 1)} - {asked[0]}
    samples = {worker: list(times) for worker, times in timed(asked).items()}
    many, limit = 2, min(units.batch, high - low, max(2, int(len(units) * most)))
    while many <= limit:
        chunk = Chunk(low + (high - low - many) // 2, many)
        for worker, times in timed([chunk]).items():
            samples[worker] += times
        asked.append(chunk)
        many *= 2
        if all(_is_flat(units, asked, times) for times in samples.values()):
            break
    models = {worker: _curve(units, bytes_per_unit, asked, times) for worker, times in samples.items()}
    others = [(first, last) for first, last in pairwise(edges) if (first, last) != (low, high)]
    if not others:
        return models, units
    chunks = [_middle(first, last, units.batch, most) for first, last in others]
    found = timed(chunks)
    costs = units.costs.copy()
    for number, ((first, last), chunk) in enumerate(zip(others, chunks, strict=True)):
        ratios = [
            times[number][0] / max(models[worker].seconds(units.cost(chunk), 1), 1e-300)
            for worker, times in found.items()
        ]
        costs[first:last] *= float(np.mean(ratios))
    return models, replace(units, costs=costs)


def _middle(first: int, last: int, batch: int, most: float) -> Chunk:
    many = min(batch, max(1, int((last - first) * most)))
    return Chunk(first + (last - first - many) // 2, many)


def _is_flat(units: Units, chunks: Sequence[Chunk], times: Sequence[tuple[float, float]]) -> bool:
    (before, (first, _)), (after, (second, _)) = list(zip(chunks, times, strict=True))[-2:]
    return second * units.cost(before) >= _FLAT * first * units.cost(after)


def _curve(
    units: Units, nbytes: NDArray[np.float64], chunks: Sequence[Chunk], times: Sequence[tuple[float, float]]
) -> Model:
    sent = sum(float(nbytes[c.first : c.first + c.count].sum()) for c in chunks)
    return Model.through(
        [(units.cost(chunk), seconds) for chunk, (seconds, _) in zip(chunks, times, strict=True)],
        sum(copied for _, copied in times) / max(sent, 1.0),
    )
