"""Figures as people read them."""

import math

import pytest

from autotune import figures as units


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0.0000004, "0.400 ns"), (0.00012, "120 ns"), (0.0123, "12.3 µs"), (0.9994, "999 µs"),
        (0.9996, "1.00 ms"), (1.2345, "1.23 ms"), (999.6, "1.00 s"), (12345.0, "12.3 s"), (1.5e7, "15000 s"),
        (math.inf, "–"), (0.0, "0 ns"),
    ],
)  # fmt: skip
def test_times_for_people(ms: float, text: str) -> None:
    assert units.duration(ms) == text


def test_other_figures_for_people() -> None:
    assert [units.percent(v) for v in (-12.34, 0.04, -0.04, 250, 1234, math.nan)] == [
        "−12.3 %", "0.0 %", "0.0 %", "+250 %", "+1,234 %", "–",
    ]  # fmt: skip
    assert [units.ratio(v) for v in (1.0, 12.34, 1666, math.nan)] == ["1.00×", "12.3×", "1670×", "–"]
    assert [units.si(v).strip() for v in (0, 12, 999.9, 1.5e12)] == ["0", "12.0", "1.00 k", "1.50 T"]
    assert units.spread(0.0042) == "±0.4 %"
    assert [units.share(v) for v in (0, 0.001, 0.5, 0.999, 1)] == ["0 %", "<1 %", "50 %", ">99 %", "100 %"]
    assert [units.size(v) for v in (0, 1023, 1536, 2.5e9)] == ["0 B", "1023 B", "1.50 KiB", "2.33 GiB"]
    assert [units.correlation(v) for v in (1, -0.001, -0.5)] == ["1.00", "0.00", "−0.50"]
    assert [units.points(3.25), units.seconds(0), units.seconds(0.25)] == ["+3.2 pp", "0 s", "250 ms"]
    assert [units.number(v) for v in (0.123456, 12.3, 123456.7)] == ["0.123", "12.3", "123,457"]
