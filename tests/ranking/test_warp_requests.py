"""What a warp asks of memory, from accesses that are written down here."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from autotune.compile import Geometry
from autotune.ranking.trace import ACCESS, OTHER, READ, WRITE, AddressRange, Trace
from autotune.ranking.warp_requests import (
    SHARED,
    Requests,
    add_traffic,
    join_pieces,
    requests,
    requests_by_array,
    traced_lanes,
)

BEGIN = 1 << 20
PLENTY = 1 << 20  # of cache


def accesses(
    address: Callable[[int], int],
    *,
    count: int = 4,
    threads: int = 32,
    site: int = 1,
    kind: int = READ,
    array: int = 0,
) -> np.ndarray:
    """One access of each thread, ``count`` bytes at ``address`` of its number, behind the begin of an array."""
    rows = [(BEGIN + address(t), site, t, 0, count, kind, array) for t in range(threads)]
    return np.array(rows, ACCESS)


def rows(pitch: int, first: int) -> Callable[[int], int]:
    return lambda t: pitch * t + first


def trace(memory: str, *parts: np.ndarray) -> Trace:
    """The parts one after another in each thread."""
    found = np.concatenate(parts)
    found = found[np.argsort(found["thread"], kind="stable")]
    return Trace("k", Geometry((1, 1, 1), (32, 1, 1)), found, (AddressRange(memory, BEGIN, PLENTY),))


def asked(memory: str, *parts: np.ndarray, cache: float = PLENTY) -> Requests:
    return requests(trace(memory, *parts), cache)


@pytest.mark.parametrize(
    ("stride", "sectors", "lines"), [(4, 4, 1), (8, 8, 2), (32, 32, 8), (128, 32, 32), (0, 1, 1)]
)
def test_neighbours_share_sectors_and_lines(stride: int, sectors: int, lines: int) -> None:
    found = asked("global", accesses(lambda t: stride * t))
    assert (found.plain, found.sectors, found.lines) == (1, sectors, lines)
    assert (found.missed, found.waited, found.texture, found.constant) == (sectors, 1, 0, 0)


def test_two_warps_are_two_and_figures_are_a_warps() -> None:
    found = asked("readonly", accesses(lambda t: 4 * t, threads=64))
    assert (found.plain, found.sectors) == (1, 4)


def test_an_access_over_two_sectors_asks_for_both() -> None:
    assert asked("global", accesses(lambda t: 24, count=16, threads=1)).sectors == 2


def test_each_turn_of_a_loop_is_a_request_of_its_own() -> None:
    found = asked("global", *(accesses(rows(4, 128 * k), site=7) for k in range(3)))
    assert (found.plain, found.sectors, found.missed) == (3, 12, 12)


def test_what_was_read_is_in_the_cache_until_others_push_it_out() -> None:
    parts = [accesses(rows(4, 128 * k), site=k) for k in (*range(10), 0)]
    assert asked("global", *parts).missed == 40
    assert asked("global", *parts, cache=9 * 128).missed == 44
    assert asked("global", *parts).waited == 10


def test_writes_go_past_the_cache_and_nobody_waits() -> None:
    found = asked("global", *(accesses(lambda t: 4 * t, site=k, kind=WRITE) for k in range(2)))
    assert (found.plain, found.missed, found.waited) == (2, 8, 0)


def test_texels_go_by_four_and_constants_by_the_different_word() -> None:
    texture = asked("texture", accesses(lambda t: 4 * t))
    assert (texture.plain, texture.texture, texture.quads) == (0, 1, 8)
    assert asked("texture", accesses(lambda t: 512 * t)).quads == 32
    assert asked("constant", accesses(lambda t: 0)).constant == 1
    spread = asked("constant", accesses(lambda t: 4 * t))
    assert (spread.constant, spread.sectors, spread.missed) == (32, 0, 0)


@pytest.mark.parametrize(("stride", "passes"), [(4, 1), (8, 2), (128, 32), (132, 1), (0, 1)])
def test_words_of_shared_memory_that_meet_in_a_bank(stride: int, passes: int) -> None:
    written = accesses(lambda t: stride * t, kind=WRITE, array=OTHER)
    assert asked("global", written).shared == passes
    assert asked("global", written, accesses(lambda t: stride * t, site=2, array=OTHER)).shared == 2 * passes


def test_what_is_outside_of_arrays_and_never_written_is_the_hosts() -> None:
    assert asked("global", accesses(lambda t: 4 * t, array=OTHER)).count == 0
    assert requests(trace("global", np.array([], ACCESS)), PLENTY) == Requests()
    assert asked("", accesses(lambda t: 4 * t)).count == 0  # a texture's handle


def pieces(sites: Sequence[int]) -> np.ndarray:
    """A float4 in four accesses at these places of the code."""
    parts = [accesses(rows(16, 4 * k), site=site) for k, site in enumerate(sites)]
    found = np.concatenate(parts)
    return found[np.argsort(found["thread"], kind="stable")]


def test_members_read_one_after_another_are_one_access() -> None:
    found = join_pieces(pieces([1, 2, 3, 4]))
    assert len(found) == 32
    assert set(found["bytes"].tolist()) == {16}
    one = asked("global", pieces([1, 2, 3, 4]))
    assert (one.plain, one.lines, one.sectors) == (1, 4, 16)
    assert len(join_pieces(pieces([1, 1, 1, 1]))) == 128  # a loop's turns


# -- by array


@pytest.mark.parametrize(
    ("stride", "asked", "ideal", "sectors"), [(4, 128, 4, 4), (32, 128, 4, 32), (0, 4, 1, 1), (2, 66, 3, 3)]
)
def test_an_array_asks_for_different_bytes_which_a_few_sectors_could_hold(
    stride: int, asked: int, ideal: int, sectors: int
) -> None:
    _, (found,) = requests_by_array(trace("global", accesses(lambda t: stride * t)), PLENTY)
    assert (found.requests, found.asked_bytes, found.ideal, found.sectors) == (1, asked, ideal, sectors)
    assert (found.touched_bytes, found.missed, found.written_bytes) == (asked, sectors, 0)


def test_arrays_and_shared_memory_are_told_apart() -> None:
    parts = [
        accesses(lambda t: 4 * t, site=1),
        accesses(lambda t: PLENTY + 128 * t, site=2, kind=WRITE, array=1),
        accesses(lambda t: 8 * t, site=3, kind=WRITE, array=OTHER),
    ]
    found = np.concatenate(parts)
    ranges = (
        AddressRange("global", BEGIN, PLENTY, "x"),
        AddressRange("global", BEGIN + PLENTY, PLENTY, "y"),
    )
    whole, arrays = requests_by_array(Trace("k", Geometry((1, 1, 1), (32, 1, 1)), found, ranges), PLENTY)
    x, y, shared = arrays
    assert [one.name for one in arrays] == ["x", "y", SHARED]
    assert (x.sectors, y.sectors, y.written_bytes, y.wavefronts) == (4, 32, 128, 32)
    assert (shared.requests, shared.wavefronts) == (1, 2)
    assert whole.sectors == x.sectors + y.sectors


def test_bytes_that_are_read_again_are_touched_once() -> None:
    _, (found,) = requests_by_array(
        trace("global", *(accesses(rows(4, 0), site=k) for k in range(3))), PLENTY
    )
    assert (found.asked_bytes, found.touched_bytes, found.sectors, found.missed) == (384, 128, 12, 4)


def test_traffic_is_added_by_array_as_often_as_said() -> None:
    _, (one,) = requests_by_array(trace("global", accesses(lambda t: 4 * t)), PLENTY)
    (found,) = add_traffic([(one, 2.0), (one, 0.5)])
    assert (found.sectors, found.asked_bytes, found.name) == (10, 320, one.name)


def test_how_much_of_a_warp_was_traced() -> None:
    assert traced_lanes(accesses(lambda t: 4 * t, threads=48)) == 24
