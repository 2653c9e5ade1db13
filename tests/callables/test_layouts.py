"""Layouts of arrays whose function is left as it is: axes, padding, fields together, orders with their links."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from called_functions import contiguous, gathered, scaled, viewed

import autotune
from autotune.callables import Layouts
from autotune.errors import UsageError

MATRIX = np.random.default_rng(0).normal(size=(24, 40)).astype(np.float32)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compile_cache: str) -> None:
    monkeypatch.setenv("AUTOTUNE_CACHE", compile_cache)
    monkeypatch.chdir(tmp_path)


def tuned(function: Any, space: dict[str, list[Any]], layouts: Any, **inputs: Any) -> Any:
    return autotune.tune(function, space, inputs, layouts=layouts, progress=False)


def test_axes_and_padding_are_applied_to_what_is_handed_over() -> None:
    sums = np.zeros(24, np.float32)
    found = tuned(viewed, {"order": ["rows", "columns"]}, "all", matrix=MATRIX, sums=sums)
    assert not found.excluded
    trials = {trial.configuration: trial for trial in found.sweep.trials}
    assert len(trials) == 2 * 2 * 3 and {trial.state for trial in trials.values()} == {"measured"}
    assert {one["matrix_axes"] for one in trials} == {"0_1", "1_0"}
    assert {one["matrix_padding"] for one in trials} == {"none", "line", "odd"}
    costs = [
        trial.measurement.figures["transform_ms"].value for trial in trials.values() if trial.measurement
    ]
    assert len(costs) == len(trials) and max(costs) > 0
    with found.bound(matrix=MATRIX, sums=sums) as call:
        call.call()
        np.testing.assert_allclose(call.output("sums"), MATRIX.sum(axis=1), rtol=1e-5)


def test_what_a_function_takes_for_contiguous_is_excluded_with_a_reason() -> None:
    sums = np.zeros(24, np.float32)
    found = tuned(contiguous, {"order": ["rows"]}, "all", matrix=MATRIX, sums=sums)
    assert set(found.excluded) == {"matrix_axes=1_0", "matrix_padding=line", "matrix_padding=odd"}
    reason = found.excluded["matrix_axes=1_0"]
    assert (
        reason.startswith("the function is wrong with matrix_axes=1_0: sums: ")
        and "elements differ" in reason
    )
    assert len(found.sweep.trials) == 1


def test_an_order_moves_rows_and_renumbers_links_and_is_undone() -> None:
    count = 50
    rng = np.random.default_rng(1)
    values, out = rng.normal(size=count).astype(np.float32), np.zeros(count, np.float32)
    links = rng.permutation(count).astype(np.int32)
    layouts = Layouts(
        spaces={"node": ["links", "values", "out"]}, links={"links": "node"},
        orders={"node": {"sorted": {"order": "sorted", "key": "values"}, "random": {"order": "random", "seed": 1}}},
    )  # fmt: skip
    found = tuned(gathered, {"parts": [1]}, layouts, links=links, values=values, out=out)
    assert {trial.configuration["node_order"]: trial.state for trial in found.sweep.trials} == {
        "given": "measured", "sorted": "measured", "random": "measured",
    }  # fmt: skip
    with found.bound(links=links, values=values, out=out) as call:
        call.call()
        np.testing.assert_array_equal(call.output("out"), values[links])


def test_fields_may_lie_in_turn() -> None:
    x = np.arange(30, dtype=np.float32)
    space: dict[str, list[Any]] = {"chunk": [30]}
    found = tuned(
        scaled, space, Layouts(together=(("x", "other"),)), x=x, other=x + 1, y=np.zeros_like(x), factor=2.0
    )
    assert [trial.state for trial in found.sweep.trials] == ["measured"] * 2


@pytest.mark.parametrize(
    ("layouts", "said"),
    [
        ("axes", "layouts='axes': give 'all', or autotune.callables.Layouts"),
        (Layouts(axes=("z",)), "layouts= names 'z', which is not an array of the call (matrix, sums)"),
        (Layouts(links={"matrix": "node"}), "layouts= names the space 'node': say in spaces="),
    ],
)
def test_a_layout_of_what_is_not_there_is_refused(layouts: Any, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        tuned(viewed, {"order": ["rows"]}, layouts, matrix=MATRIX, sums=np.zeros(24, np.float32))
    assert said in str(refused.value)
