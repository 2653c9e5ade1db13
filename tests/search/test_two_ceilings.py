"""The question whether two GPUs' ceilings improve a prior, as benchmarks/transfer.py asks it."""

import math
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
import transfer

from autotune.declaration import Configuration

KERNEL = "convolution_milo"
FAST, SLOW, FAILED = (Configuration({"tile": tile}) for tile in (1, 2, 3))
FLOOR = transfer.find_floor(KERNEL, "A100")
RECORD = {FAST: FLOOR / 0.5, SLOW: FLOOR / 0.1, FAILED: math.inf}


def study(gpu: str, times: Mapping[Configuration, float]) -> Any:
    trials = [SimpleNamespace(configuration=one, time_ms=ms, state="measured") for one, ms in times.items()]
    return SimpleNamespace(family=KERNEL, workload=gpu, device="unknown", trials=trials)


def test_what_reaches_the_threshold_scales_by_bandwidth_and_the_rest_by_rate() -> None:
    bandwidth, rate = 1555 / 224, 19.5 / 10.4
    scaled = transfer.scale(RECORD, KERNEL, "A100", "W6600", 0.4)
    assert scaled == pytest.approx(
        {FAST: bandwidth * RECORD[FAST], SLOW: rate * RECORD[SLOW], FAILED: math.inf}
    )
    one_factor = transfer.scale(RECORD, KERNEL, "A100", "W6600", 0.6)
    assert one_factor == pytest.approx({one: rate * ms for one, ms in RECORD.items()})


def test_no_time_is_below_what_the_bytes_need() -> None:
    floor = transfer.find_floor(KERNEL, "W6600")
    assert floor == pytest.approx(FLOOR * 1555 / 224)
    assert transfer.scale(RECORD, KERNEL, "A100", "W6600", None) == pytest.approx(
        {FAST: floor, SLOW: RECORD[SLOW] * 19.5 / 10.4, FAILED: math.inf}
    )


def test_two_factors_may_swap_what_ranks_do_not() -> None:
    """The fast one is limited by memory, of which the other GPU has little: there it is the slow one."""
    near = {FAST: FLOOR / 0.5, SLOW: FLOOR / 0.3}
    own = study("W6600", {FAST: 3.0, SLOW: 2.0})
    rows = {(r["method"], r["threshold"]): r for r in transfer.compare_ceilings(own, {"A100": near})}
    assert len(rows) == 2 + len(transfer.THRESHOLDS)
    by_ranks, swapped = next(iter(rows.values())), rows["two factors", 0.4]
    assert (by_ranks["method"], by_ranks["visits"], by_ranks["above"]) == ("ranks", 2, 0)
    assert (swapped["visits"], swapped["above"], swapped["of"]) == (1, 1, 2)
    assert by_ranks["largest_share"] == pytest.approx(0.5)
    assert rows["two factors", 0.1]["visits"] == 2  # both are: one factor, which drops out
