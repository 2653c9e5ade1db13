"""Work in units, who runs which of them, and how long that should take."""

import heapq
import math
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from autotune.declaration import Units
from autotune.errors import UnknownName

ALLOCATIONS = ("automatic", "contiguous", "dynamic")


_TURNS = 4  # for each worker at least, where chunks go to the worker that has room
_ROUNDS = (1, 2, 3, 4, 6, 8, 12, 16, 32, 64)  # chunks for each worker that are considered
_AS_GOOD = 1.01
_NEAR = 0.02  # what models may differ by for one's plan to be as good by the other
_NEAR_COPIES = 0.25  # the same of copies, most of which run while the device computes
_TAIL = 1 / 12  # of a worker's time, at its end, in small chunks: models are off by a few percent
_PIECES = (1 / 32, 1 / 64)  # of a worker's time, in one of these
_FLAT = 0.97  # twice as large a chunk that takes more than this a unit of cost says that larger ones do too
_SHORTEST_S = 2e-3  # handing out a chunk and hearing of its end takes the host about a tenth of that


@dataclass(frozen=True, order=True, slots=True)
class Chunk:
    """Units ``first`` .. ``first + count - 1``."""

    first: int
    count: int

    def sum_over(self, values: NDArray[Any]) -> float:
        """The sum of its units' ``values``."""
        return float(values[self.first : self.first + self.count].sum())


@dataclass(frozen=True)
class Model:
    """A worker's device's times: seconds for one unit of cost, and for a byte of results copied to the host, while the
    device computes. ``points`` are (cost, seconds) of single chunks, rising: if there are some, a chunk's time is
    interpolated between them, and in proportion to the cost beyond the last."""

    per_cost: float
    per_byte: float = 0.0
    points: tuple[tuple[float, float], ...] = ()

    def seconds(self, cost: float) -> float:
        """Of a chunk."""
        if not self.points or cost > self.points[-1][0]:
            return self.per_cost * cost
        above = bisect_left(self.points, (cost,))
        (low, first), (high, second) = self.points[max(0, above - 1)], self.points[above]
        return second if low == high else first + (second - first) * (cost - low) / (high - low)

    def is_near(self, other: "Model") -> bool:
        """Whether a plan by one is as good by the other."""
        is_as_fast = math.isclose(self.per_cost, other.per_cost, rel_tol=_NEAR)
        are_copies = math.isclose(self.per_byte, other.per_byte, rel_tol=_NEAR_COPIES)
        return is_as_fast and are_copies and bool(self.points) == bool(other.points)

    @classmethod
    def fit(cls, points: Iterable[tuple[float, float]], per_byte: float = 0.0) -> "Model":
        """From (cost, seconds) of single chunks. A chunk takes no longer than one of a higher cost."""
        costs, seconds = np.array(sorted(points), np.float64).T
        seconds = np.maximum.accumulate(seconds)
        per_cost = float(seconds[-1] / max(costs[-1], 1e-300))
        return cls(per_cost, per_byte, tuple(zip(costs.tolist(), seconds.tolist(), strict=True)))

    def refine(self, samples: Sequence[tuple[float, float, float, float]]) -> "Model":
        """After a run of such chunks, each (cost, seconds, bytes, seconds of the copy): what they took is the better
        guide for the next one."""
        costs, seconds, nbytes, copied = np.array(samples, np.float64).T
        per_byte = float(copied.sum() / max(nbytes.sum(), 1))
        if not self.points:
            return Model.fit(zip(costs, seconds, strict=True), per_byte)
        expected = sum(self.seconds(cost) for cost in costs)
        ratio = float(seconds.sum()) / max(expected, 1e-300)
        return Model(self.per_cost * ratio, per_byte, tuple((cost, s * ratio) for cost, s in self.points))


@dataclass(frozen=True)
class Allocation:
    """``queues`` has each worker's chunks in the order in which it runs them; ``shared`` are for the one that has room.
    ``steals`` says that a worker whose queue is empty takes from the one with the most left."""

    allocation: str
    batch: int
    queues: tuple[tuple[Chunk, ...], ...]
    shared: tuple[Chunk, ...] = ()
    steals: bool = False


def group_edges(units: Units) -> list[int]:
    """Where groups begin, and the end of the last: [0, units] where there are none."""
    cuts = [] if units.groups is None else (np.flatnonzero(np.diff(units.groups)) + 1).tolist()
    return [0, *cuts, len(units)]


def chunks_of(units: Units, first: int, last: int, batch: int) -> list[Chunk]:
    """Units ``first`` .. ``last - 1`` in chunks of at most ``batch``, of nearly one size within a group."""
    chunks: list[Chunk] = []
    edges = [first, *(cut for cut in group_edges(units) if first < cut < last), last]
    for begin, end in pairwise(edges):
        many = -(-(end - begin) // batch)
        for number in range(many):
            low, high = (begin + (end - begin) * k // many for k in (number, number + 1))
            chunks.append(Chunk(low, high - low))
    return chunks


def allocate(
    units: Units, allocation: str, models: Sequence[Model], batch: int = 0, bytes_per_unit: ArrayLike = 0.0
) -> Allocation:
    """The plan of that name for as many workers as there are ``models``. ``batch`` is at most that of ``units``, for
    which 0 stands; ``bytes_per_unit`` of results go to the host. Raises UnknownName."""
    given, batch = batch, min(batch or units.batch, units.batch)
    match allocation:
        case "automatic":
            return _plan_automatic(units, models, batch, bytes_per_unit)
        case "contiguous":
            edges = _edges(units.costs, [1 / max(model.per_cost, 1e-300) for model in models])
            queues = tuple(tuple(chunks_of(units, low, high, batch)) for low, high in pairwise(edges))
            return Allocation(allocation, batch, queues)
        case "dynamic":
            if not given and len(models) > 1:  # a batch that is all there is would be one worker's
                batch = min(batch, -(-len(units) // (_TURNS * len(models))))
            return Allocation(allocation, batch, ((),) * len(models), tuple(_costliest_first(units, batch)))
    raise UnknownName("allocation", allocation, ALLOCATIONS)


def _plan_automatic(
    units: Units, models: Sequence[Model], batch: int, bytes_per_unit: ArrayLike
) -> Allocation:
    """Make a balanced plan with the best batch for the devices: fewer launches cost less, more launches divide better.
    Of all plans predicted to end within 1 % of the first, take the one with the largest batch: a large launch fills a
    device better than the times of single chunks show. Chunks take some milliseconds, so that no device waits for the
    host to hand one out."""
    sizes = {min(batch, -(-len(units) // (len(models) * rounds))) for rounds in _ROUNDS}
    queues = {size: _balance(units, models, size) for size in sorted(sizes)}
    plans = [Allocation("automatic", size, each, steals=True) for size, each in queues.items()]
    seconds = float(units.costs.sum()) * max(model.per_cost for model in models)
    plans = [p for p in plans if seconds / sum(map(len, p.queues)) >= _SHORTEST_S] or plans[-1:]
    ends = [max(predict(plan, units, models, bytes_per_unit)) for plan in plans]
    plan, end = [pair for pair in zip(plans, ends, strict=True) if pair[1] <= min(ends) * _AS_GOOD][-1]
    tailed = [plan, *(_add_tail(plan, units, models, piece) for piece in _PIECES)]
    finest = [p for p in tailed if max(predict(p, units, models, bytes_per_unit)) <= end * _AS_GOOD]
    return finest[-1] if len(models) > 1 else plan


def _add_tail(plan: Allocation, units: Units, models: Sequence[Model], piece: float) -> Allocation:
    """The plan with the end of each queue in chunks of a share ``piece`` of its time, that a worker which is done can
    take: what is left then is little, whatever the models were off by."""
    queues = []
    for queue, model in zip(plan.queues, models, strict=True):
        seconds = [_predict_chunk(model, chunk, units) for chunk in queue]
        left, piece_s, cut = _TAIL * sum(seconds), piece * sum(seconds), deque[Chunk]()
        for chunk, takes in zip(reversed(queue), reversed(seconds), strict=True):
            is_end = left > 0 and takes > 0
            cut.extendleft(
                reversed(_cut(chunk, min(1.0, left / takes), piece_s / takes) if is_end else [chunk])
            )
            left -= takes
        queues.append(tuple(cut))
    return replace(plan, queues=tuple(queues))


def _cut(chunk: Chunk, tail: float, piece: float) -> list[Chunk]:
    """``chunk``, and a share ``tail`` of it, its last units, in chunks of a share ``piece`` of it each."""
    whole = chunk.count - math.ceil(tail * chunk.count)
    many = max(1, round((chunk.count - whole) / max(1.0, piece * chunk.count)))
    edges = [0, *(whole + (chunk.count - whole) * k // many for k in range(many + 1))]
    return [Chunk(chunk.first + low, high - low) for low, high in pairwise(edges) if low < high]


def _balance(units: Units, models: Sequence[Model], batch: int) -> tuple[tuple[Chunk, ...], ...]:
    """Each chunk, the costliest first, to the worker that would be done with it first (Graham 1969, LPT)."""
    queues: list[list[Chunk]] = [[] for _ in models]
    loads = [0.0] * len(models)
    for chunk in _costliest_first(units, batch):
        ends = [load + _predict_chunk(model, chunk, units) for load, model in zip(loads, models, strict=True)]
        worker = ends.index(min(ends))
        queues[worker].append(chunk)
        loads[worker] = ends[worker]
    return tuple(map(tuple, queues))


def _predict_chunk(model: Model, chunk: Chunk, units: Units) -> float:
    """Seconds that ``model`` expects of a chunk."""
    return model.seconds(chunk.sum_over(units.costs))


def _costliest_first(units: Units, batch: int) -> list[Chunk]:
    return sorted(chunks_of(units, 0, len(units), batch), key=lambda chunk: -chunk.sum_over(units.costs))


def predict(
    plan: Allocation, units: Units, models: Sequence[Model], bytes_per_unit: ArrayLike = 0.0
) -> list[float]:
    """Seconds that each worker should take: its computing, or its copies where they take longer, and the copy of its
    last chunk, which nothing hides."""
    queues = [list(queue) for queue in plan.queues]
    busy = [sum(_predict_chunk(models[w], chunk, units) for chunk in queue) for w, queue in enumerate(queues)]
    free = [(seconds, worker) for worker, seconds in enumerate(busy)]
    heapq.heapify(free)
    for chunk in plan.shared:
        seconds, worker = heapq.heappop(free)
        queues[worker].append(chunk)
        heapq.heappush(free, (seconds + _predict_chunk(models[worker], chunk, units), worker))
    for seconds, worker in free:
        busy[worker] = seconds
    nbytes = np.broadcast_to(np.asarray(bytes_per_unit, np.float64), len(units))
    finish_s = []
    for model, queue, seconds in zip(models, queues, busy, strict=True):
        copies = [chunk.sum_over(nbytes) * model.per_byte for chunk in queue]
        finish_s.append(max(seconds, sum(copies)) + copies[-1] if copies else seconds)
    return finish_s


def _edges(costs: NDArray[np.float64], speeds: Sequence[float]) -> list[int]:
    """Where to cut a row of units so that each worker's share of the cost is as its share of the speed."""
    reached = np.concatenate(([0.0], np.cumsum(costs)))
    wanted = np.concatenate(([0.0], np.cumsum(speeds))) / sum(speeds) * reached[-1]
    middles = (reached[1:] + reached[:-1]) / 2
    edges = np.searchsorted(middles, wanted)
    edges[0], edges[-1] = 0, len(costs)
    return [int(edge) for edge in edges]


# Of each worker: (seconds, seconds of the copy) of each chunk.
Times = Mapping[int, Sequence[tuple[float, float]]]


def calibrate(
    units: Units, bytes_per_unit: NDArray[np.float64], most: float, timed: Callable[[Sequence[Chunk]], Times]
) -> tuple[dict[int, Model], Units]:
    """(model of each worker, ``units`` with costs as measured). ``timed`` runs chunks on every device; ``most`` is the
    share of the units that one chunk may have.

    Chunks of 1, 2, 4 ... units, in the group with the largest cost, until twice as many take twice as long: a device
    that a few units cannot fill takes as long for a few as for one. Then one chunk of each other group, since groups
    differ in more than a family's estimates say.
    """
    edges = group_edges(units)
    low, high = max(pairwise(edges), key=lambda ends: Chunk(ends[0], ends[1] - ends[0]).sum_over(units.costs))
    asked: list[Chunk] = []
    samples: defaultdict[int, list[tuple[float, float]]] = defaultdict(list)

    def sample(*chunks: Chunk) -> None:
        asked.extend(chunks)
        for worker, times in timed(chunks).items():
            samples[worker] += times

    sample(Chunk(low, 1))
    if len(edges) == 2:  # one group, in which units may differ
        sample(*{Chunk(int(units.costs.argmin()), 1), Chunk(int(units.costs.argmax()), 1)} - {asked[0]})
    many, limit = 2, min(units.batch, high - low, max(2, int(len(units) * most)))
    while many <= limit:
        sample(_get_middle(low, high, many))
        many *= 2
        if all(_is_flat(units, asked, times) for times in samples.values()):
            break
    if asked[-1].count < limit:  # a plan's chunks are as large as that
        sample(_get_middle(low, high, limit))
    models = {worker: _curve(units, bytes_per_unit, asked, times) for worker, times in samples.items()}
    others = [(first, last) for first, last in pairwise(edges) if (first, last) != (low, high)]
    if not others:
        return models, units
    counts = [min(units.batch, max(1, int((last - first) * most))) for first, last in others]
    chunks = [_get_middle(*ends, count) for ends, count in zip(others, counts, strict=True)]
    measured = timed(chunks)
    costs = units.costs.copy()
    for number, ((first, last), chunk) in enumerate(zip(others, chunks, strict=True)):
        expected = {worker: _predict_chunk(models[worker], chunk, units) for worker in measured}
        ratios = [measured[worker][number][0] / max(each, 1e-300) for worker, each in expected.items()]
        costs[first:last] *= float(np.mean(ratios))
    return models, replace(units, costs=costs)


def _get_middle(first: int, last: int, many: int) -> Chunk:
    return Chunk(first + (last - first - many) // 2, many)


def _is_flat(units: Units, chunks: Sequence[Chunk], times: Sequence[tuple[float, float]]) -> bool:
    (before, (first, _)), (after, (second, _)) = list(zip(chunks, times, strict=True))[-2:]
    return second * before.sum_over(units.costs) >= _FLAT * first * after.sum_over(units.costs)


def _curve(
    units: Units, nbytes: NDArray[np.float64], chunks: Sequence[Chunk], times: Sequence[tuple[float, float]]
) -> Model:
    sent = sum(chunk.sum_over(nbytes) for chunk in chunks)
    points = [(chunk.sum_over(units.costs), each[0]) for chunk, each in zip(chunks, times, strict=True)]
    return Model.fit(points, sum(copied for _, copied in times) / max(sent, 1.0))
