"""What the paper does not have, in figures."""

import importlib
from pathlib import Path

import pandas as pd
import pytest

from autotune.declaration import load_family

beyond = importlib.import_module("mummergpu_beyond")


def test_a_single_call_counts_transfer_and_transform(tmp_path: Path) -> None:
    family = load_family("mummergpu")
    searches = [("tree", "walk"), ("coarse_table", "ranges"), ("fine_table", "ranges")]
    control = {"workload": "lmono", "state": "measured", **family.space.control}
    rows = pd.DataFrame([{**control, "search": search, "emit": emit} for search, emit in searches])
    for name in ("kernel_match_ms", "kernel_print_count_ms"):
        rows[name] = [10.0, 1.0, 0.5]
    rows = rows.assign(time_ms=[20.0, 2.0, 1.0], transfer_ms=[100.0, 3.0, 9.0], transform_ms=[1.0, 1.0, 1.0])
    rows.to_csv(tmp_path / "rows.csv", index=False)
    of = beyond.read(tmp_path / "rows.csv")
    assert of["lmono"]["all"].tolist() == [121.0, 6.0, 11.0]
    lines = beyond.one_call(of, family).splitlines()
    assert lines[-1] == "| lmono | 1, 11 | coarse table, control's | 2, 6 | 20, 121 |"
    assert "| `search` | coarse_table to fine_table | -50.0 [-50, -50] (1) |" in beyond.effects(of, family)


@pytest.mark.parametrize(("value", "text"), [(0.1234, "0.123"), (12.34, "12.3"), (1234.5, "1,234")])
def test_milliseconds_have_three_digits(value: float, text: str) -> None:
    assert beyond.ms(value) == text
