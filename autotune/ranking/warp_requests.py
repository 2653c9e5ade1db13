"""From the accesses of a few blocks to what a GPU's memory sees of them: requests of warps, their sectors and lines,
the words that meet in a bank, and what the first cache holds.

The threads of a warp access together what they access at the same place of the code the same time round. A line has
128 bytes, a sector 32; a multiprocessor's first cache is kept by lines and filled by sectors (CUDA C++ Best Practices
Guide).
"""

from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from autotune.ranking.trace import OTHER, Accesses, Trace

WARP, SECTOR, SECTORS, BANKS, WORD = 32, 32, 4, 32, 4
_WIDEST = 16  # bytes that a thread moves by one instruction
_PLACES = 40  # bits of a sector's or word's number in its array

Counts = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Requests:
    """Of one warp, on average: ``plain`` requests to global memory with their ``lines``; ``texture`` requests with
    their ``quads`` (texels four at a time, or lines where these are more); ``close`` requests to constant and shared
    memory with the different words asked of ``constant`` and the passes of ``shared`` (a request as often as its words
    meet in a bank). Of plain and texture requests together: ``sectors`` asked for, ``missed`` sectors, and how many
    requests ``waited`` for any of these."""

    plain: float = 0.0
    lines: float = 0.0
    texture: float = 0.0
    quads: float = 0.0
    close: float = 0.0
    constant: float = 0.0
    shared: float = 0.0
    sectors: float = 0.0
    missed: float = 0.0
    waited: float = 0.0

    @property
    def count(self) -> float:
        """Instructions that access memory."""
        return self.plain + self.texture + self.close


SHARED = "shared memory"  # the array of accesses outside of all that a family declares


@dataclass(frozen=True, kw_only=True)
class ArrayTraffic:
    """Of one array in the traced blocks of a launch, or of launches together: the different bytes that its warps'
    ``requests`` ask for (``asked_bytes``), the 32-byte ``sectors`` that these lie in and the fewest that could hold
    them (``ideal``), the ``missed`` ones that the first cache does not have, and the different bytes of all requests
    together (``touched_bytes``). ``wavefronts`` are passes of the first cache: lines, texels by four, words of constant
    memory, and of shared memory a request as often as its words meet in a bank."""

    name: str
    memory: str
    requests: float = 0.0
    asked_bytes: float = 0.0
    ideal: float = 0.0
    sectors: float = 0.0
    missed: float = 0.0
    touched_bytes: float = 0.0
    wavefronts: float = 0.0
    written_bytes: float = 0.0


def requests(trace: Trace, cache_bytes: float) -> Requests:
    """What the traced blocks ask for, in a first cache of which they have ``cache_bytes``."""
    return requests_by_array(trace, cache_bytes)[0]


def requests_by_array(trace: Trace, cache_bytes: float) -> tuple[Requests, tuple[ArrayTraffic, ...]]:
    """As ``requests``, and what they ask of each array."""
    accesses = trace.accesses
    memories = [r.memory for r in trace.ranges]
    is_array = accesses["array"] != OTHER
    shared = _select_shared(accesses[~is_array])
    own = accesses[is_array]
    own = own[np.array([bool(memory) for memory in memories] or [False])[own["array"]]] if len(own) else own
    warps = len(np.unique(_threads(accesses) // WARP))
    if not warps:
        return Requests(), ()
    count, passes = _passes(shared)
    staged = Requests(close=count / warps, shared=passes / warps)
    tile = ArrayTraffic(name=SHARED, memory="shared", requests=count, wavefronts=passes)
    traffic = (tile,) if count else ()
    if not len(own):
        return staged, traffic
    found, of_arrays = _count_array_requests(trace, join_pieces(own), memories, cache_bytes, warps, staged)
    return found, (*of_arrays, *traffic)


def _count_array_requests(
    trace: Trace, own: Accesses, memories: list[str], cache_bytes: float, warps: int, staged: Requests
) -> tuple[Requests, list[ArrayTraffic]]:
    of, first, warp = _group_requests(own)
    count = len(first)
    begins = np.array([r.begin for r in trace.ranges], np.uint64)
    offset = (own["address"] - begins[own["array"]]).astype(np.int64)
    array = np.zeros(count, np.int64)
    array[of] = own["array"]
    writes = np.zeros(count, bool)
    writes[of] = own["kind"] > 0
    ends = offset + np.maximum(own["bytes"], 1) - 1
    sectors_of = np.concatenate([offset // SECTOR, ends // SECTOR])
    request, sector = _deduplicate(np.concatenate([of, of]), sectors_of)
    lines = np.bincount(_deduplicate(request, sector // SECTORS)[0], minlength=count)
    words = np.bincount(_deduplicate(of, offset // WORD)[0], minlength=count)
    memory = np.array(memories)[array]
    texture, constant = memory == "texture", memory == "constant"
    plain = ~texture & ~constant
    cached = ~constant
    place, order = array[request] << 40 | sector, np.lexsort((warp, first))
    missed = _count_misses(request, place, order, writes, cached, cache_bytes)
    sectors = np.bincount(request, minlength=count)
    quads = np.maximum(np.ceil(words / 4), lines)
    passes = np.select([texture, constant], [quads, words], lines)
    found = replace(
        staged, plain=plain.sum() / warps, lines=lines[plain].sum() / warps, texture=texture.sum() / warps,
        quads=quads[texture].sum() / warps, close=staged.close + constant.sum() / warps,
        constant=words[constant].sum() / warps, sectors=sectors[cached].sum() / warps,
        missed=missed.sum() / warps, waited=((missed > 0) & ~writes).sum() / warps,
    )  # fmt: skip
    asked = _different_bytes(of, offset, own["bytes"], count)
    figures = {
        "requests": np.ones(count), "asked_bytes": asked, "ideal": np.ceil(asked / SECTOR), "sectors": sectors,
        "missed": missed, "wavefronts": passes, "written_bytes": asked * writes,
    }  # fmt: skip
    touched = _different_bytes(own["array"].astype(np.intp), offset, own["bytes"], len(memories))
    return found, [
        ArrayTraffic(
            name=trace.ranges[number].name, memory=memories[number], touched_bytes=float(touched[number]),
            **{name: float(figure[array == number].sum()) for name, figure in figures.items()},
        )
        for number in np.unique(array).tolist()
    ]  # fmt: skip


def _different_bytes(
    of: NDArray[np.intp], offset: NDArray[np.int64], sizes: NDArray[np.uint8], count: int
) -> NDArray[np.int64]:
    """The bytes that accesses ask for together, of each group that ``of`` says; what two of them share counts once."""
    order = np.lexsort((offset, of))
    group, begin = of[order], offset[order]
    end = begin + sizes[order]
    # How far the accesses of the same group before each come: groups are set apart by more than any array has bytes.
    apart = group.astype(np.int64) << _PLACES
    reached = np.concatenate([[0], np.maximum.accumulate(apart + end)[:-1]])
    own = np.maximum(0, apart + end - np.maximum(apart + begin, reached))
    return np.bincount(group, weights=own, minlength=count).astype(np.int64)


def traced_lanes(accesses: Accesses) -> float:
    """How many threads of a warp there are accesses of, on average."""
    threads = np.unique(_threads(accesses))
    return len(threads) / max(1, len(np.unique(threads // WARP)))


def add_traffic(parts: Sequence[tuple[ArrayTraffic, float]]) -> list[ArrayTraffic]:
    """Of each array and memory the sum of its ``parts``, each taken as often as its number says; most sectors from
    behind the first cache come first."""
    sums: dict[tuple[str, str], Counter[str]] = {}
    for part, times in parts:
        figures = asdict(part)
        key = figures.pop("name"), figures.pop("memory")
        sums.setdefault(key, Counter()).update({name: times * value for name, value in figures.items()})
    found = [ArrayTraffic(name=name, memory=memory, **figures) for (name, memory), figures in sums.items()]
    return sorted(found, key=lambda one: (-one.missed, -one.wavefronts, one.name))


def join_pieces(accesses: Accesses) -> Accesses:
    """With what a thread accesses piece after piece, the members of a vector or a record, as one access of at most 16
    aligned bytes. Pieces come from different places of the code: a loop's turns are not joined."""
    accesses = accesses[np.argsort(_threads(accesses), kind="stable")]
    while len(accesses):
        thread, before, after = _threads(accesses), accesses[:-1], accesses[1:]
        size = before["bytes"].astype(np.int64) * 2
        is_piece = (thread[1:] == thread[:-1]) & (size <= _WIDEST) & (before["site"] != after["site"])
        for name in ("array", "kind", "bytes"):
            is_piece &= before[name] == after[name]
        is_piece &= after["address"] == before["address"] + before["bytes"]
        is_piece &= before["address"] % np.maximum(size, 1).astype(np.uint64) == 0
        if not is_piece.any():
            break
        accesses = accesses.copy()
        accesses["bytes"][:-1][is_piece] *= 2
        accesses = accesses[np.concatenate([[True], ~is_piece])]
    return accesses


def _select_shared(accesses: Accesses) -> Accesses:
    """Those of shared memory, among all that are outside of arrays: what is never written is the host's own."""
    words = accesses["address"] // WORD
    return accesses[np.isin(words, np.unique(words[accesses["kind"] > 0]))]


def _passes(shared: Accesses) -> tuple[int, float]:
    """How many requests to shared memory, and with each as often as most of its words meet in one bank."""
    if not len(shared):
        return 0, 0.0
    shared = join_pieces(shared)
    of, first, _ = _group_requests(shared)
    begin = shared["address"].min() // (WORD * BANKS) * (WORD * BANKS)
    request, word = _deduplicate(of, ((shared["address"] - begin) // WORD).astype(np.int64))
    place, meeting = np.unique(request * BANKS + word % BANKS, return_counts=True)
    most = np.ones(len(first))
    np.maximum.at(most, place // BANKS, meeting)
    return len(first), float(most.sum())


def _threads(accesses: Accesses) -> NDArray[np.int64]:
    threads: NDArray[np.int64] = accesses["block"].astype(np.int64) << 12 | accesses["thread"]
    return threads


def _group_requests(accesses: Accesses) -> tuple[NDArray[np.intp], NDArray[np.int64], NDArray[np.int64]]:
    """Return each access's request number; for each request, the earliest position among the accesses of a thread, and
    its warp."""
    threads, thread = np.unique(_threads(accesses), return_inverse=True)
    sites, site = np.unique(accesses["site"], return_inverse=True)
    turn = _turns(thread * len(sites) + site)
    warps, warp = np.unique(threads // WARP, return_inverse=True)
    turns = int(turn.max(initial=0)) + 1
    found, of = np.unique((warp[thread] * len(sites) + site) * turns + turn, return_inverse=True)
    first = np.full(len(found), np.iinfo(np.int64).max)
    np.minimum.at(first, of, _turns(thread))
    return of, first, warps[found // turns // len(sites)]


def _turns(keys: NDArray[np.intp]) -> NDArray[np.int64]:
    """How many of the same key come before each."""
    order = np.argsort(keys, kind="stable")
    counts = np.bincount(keys)
    turns = np.empty(len(keys), np.int64)
    turns[order] = np.arange(len(keys)) - np.repeat(counts.cumsum() - counts, counts)
    return turns


def _deduplicate(
    request: NDArray[np.intp], place: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each place of a request once, in the order of requests."""
    pairs = np.unique(request.astype(np.int64) << _PLACES | place)
    return pairs >> _PLACES, pairs & ((1 << _PLACES) - 1)


def _count_misses(
    request: NDArray[np.int64], sector: NDArray[np.int64], order: NDArray[np.intp], writes: NDArray[np.bool_],
    cached: NDArray[np.bool_], cache_bytes: float,
) -> Counts:  # fmt: skip
    """Of each request, how many of its sectors the cache does not have, as the requests come in ``order``; the line
    that was not used for longest leaves. Writes go past it."""
    starts = np.searchsorted(request, np.arange(len(order) + 1))
    held: OrderedDict[int, int] = OrderedDict()  # of each line, its sectors
    room = max(8, int(cache_bytes / (SECTOR * SECTORS)))
    missed = np.zeros(len(order))
    places = sector.tolist()
    for i in order[cached[order]].tolist():
        begin, end = int(starts[i]), int(starts[i + 1])
        if writes[i]:
            missed[i] = end - begin
            continue
        for place in places[begin:end]:
            line, bit = place // SECTORS, 1 << place % SECTORS
            has = held.get(line, 0)
            if not has & bit:
                missed[i] += 1
                held[line] = has | bit
                if not has and len(held) > room:
                    held.popitem(last=False)
            if has:
                held.move_to_end(line)
    return missed
