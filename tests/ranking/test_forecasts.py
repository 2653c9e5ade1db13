"""Estimates from requests and profiles, and what they cannot tell apart."""

from dataclasses import replace

import pytest

from autotune.compile import Geometry, KernelProfile
from autotune.declaration import Configuration, Policy
from autotune.ranking.forecasts import (
    CACHE_BYTES,
    Forecast,
    Launched,
    cache_share,
    find_unseen_policies,
    forecast,
    sort_by_cycles,
)
from autotune.ranking.warp_requests import Requests

PROFILE = KernelProfile(kernel="k", block_size=256, registers=32, blocks_per_sm=8, occupancy=1.0)
FEW = Requests(plain=10, lines=10, sectors=40, missed=10, waited=5)
ONE = Configuration({"memory": "global"})


def cycles(requests: Requests, profile: KernelProfile = PROFILE, blocks: int = 100_000) -> float:
    launched = Launched(Geometry((blocks, 1, 1), (256, 1, 1)), requests)
    return forecast("sm_90", ONE, [(launched, profile)]).cycles


@pytest.mark.parametrize(
    "more",
    [{"lines": 200}, {"missed": 200}, {"constant": 300}, {"shared": 300}, {"quads": 200}, {"close": 100}],
)
def test_more_of_anything_takes_longer(more: dict[str, float]) -> None:
    assert cycles(replace(FEW, **more)) > 1.5 * cycles(FEW)


def test_latency_is_shared_by_the_warps_that_are_resident() -> None:
    waiting = Requests(plain=50, lines=50, sectors=50, missed=50, waited=50)
    assert cycles(waiting, replace(PROFILE, blocks_per_sm=1)) > 2 * cycles(waiting)


def test_the_multiprocessor_with_most_blocks_counts() -> None:
    assert cycles(FEW, blocks=132) == cycles(FEW, blocks=1)
    assert cycles(FEW, blocks=133) == pytest.approx(2 * cycles(FEW, blocks=132), rel=0.4)
    assert cycles(FEW, blocks=133) > cycles(FEW, blocks=132)


def test_what_takes_most_is_named() -> None:
    launched = Launched(Geometry((1000, 1, 1), (256, 1, 1)), replace(FEW, constant=900))
    assert forecast("sm_90", ONE, [(launched, PROFILE)]).bound == "constant and shared"


def test_launches_add_up() -> None:
    launched = Launched(Geometry((1000, 1, 1), (256, 1, 1)), FEW)
    once, twice = (forecast("sm_90", ONE, [(launched, PROFILE)] * count).cycles for count in (1, 2))
    assert twice == pytest.approx(2 * once)


def test_blocks_share_the_cache_that_shared_memory_leaves() -> None:
    assert cache_share(PROFILE, 8) == CACHE_BYTES
    assert cache_share(PROFILE, 4) == CACHE_BYTES / 2
    assert cache_share(replace(PROFILE, static_shared_bytes=16 << 10), 8) == CACHE_BYTES / 2


def test_policies_that_change_no_estimate_are_named() -> None:
    policies = (Policy("memory", ("global", "texture"), "global"), Policy("maths", ("a", "b"), "a"))
    launched = (Launched(Geometry((1, 1, 1), (32, 1, 1)), FEW),)
    found = [
        Forecast(Configuration({"memory": m, "maths": a}), 10.0 + 5 * (m == "texture"), "cache", launched)
        for m in policies[0].values
        for a in policies[1].values
    ]
    lost = Forecast(Configuration({"memory": "global", "maths": "c"}), 0.0, "", message="why not")
    assert find_unseen_policies([*found, lost], policies) == ["maths"]
    assert [one.cycles for one in sort_by_cycles([lost, *found[::-1]])] == [10.0, 10.0, 15.0, 15.0]
