"""autotune.tune: any callable through the engine, and what may go wrong with one."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from called_functions import Opened, accumulated, changing, copied, ranked, scaled, silent, summed

import autotune
from autotune.callables import TunedCall
from autotune.errors import NothingMeasured, StoreError, UsageError
from autotune.record import read_record

COUNT = 3000
X = np.random.default_rng(0).normal(size=COUNT).astype(np.float32)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compile_cache: str) -> None:
    monkeypatch.setenv("AUTOTUNE_CACHE", compile_cache)
    monkeypatch.chdir(tmp_path)


def tuned(function: Any, space: Any, **inputs: Any) -> TunedCall:
    named = (
        "check",
        "outputs",
        "where",
        "key",
        "name",
        "tolerance",
        "trial_seconds",
        "search",
        "trials",
        "again",
    )
    options = {name: inputs.pop(name) for name in named if name in inputs}
    return autotune.tune(function, space, inputs, progress=False, out="record", **options)


def states(found: TunedCall, name: str) -> dict[Any, tuple[str, str]]:
    """By the word of that choice: state and reason."""
    return {trial.configuration[name]: (trial.state, trial.reason) for trial in found.sweep.trials}


def test_each_fault_is_one_failed_trial_with_its_reason() -> None:
    faults = ["right", "crashes", "raises", "reads_wrong", "leaves_out", "writes_input", "hangs"]
    y = np.zeros_like(X)
    found = tuned(scaled, {"chunk": [COUNT], "how": faults}, x=X, y=y, factor=2.0, trial_seconds=1.0)
    ended = states(found, "how")
    assert {how: state for how, (state, _) in ended.items()} == {
        "right": "measured", "crashes": "crashed", "raises": "launch_failed", "reads_wrong": "wrong_result",
        "leaves_out": "wrong_result", "writes_input": "wrong_result", "hangs": "timed_out",
    }  # fmt: skip
    assert "SIGABRT" in ended["crashes"][1]
    assert ended["raises"][1] == "RuntimeError: no such tile"
    assert "writes its input x" in ended["writes_input"][1]
    assert found.configuration == {"chunk": COUNT, "how": "right"}
    assert not y.any(), "the caller's arrays are left alone"
    found(X, y, 2.0)
    np.testing.assert_array_equal(y, X * 2)


def test_what_is_recorded_is_not_tried_again_and_the_record_is_every_others() -> None:
    space = {"chunk": [100, COUNT]}
    first = tuned(scaled, space, x=X, y=np.zeros_like(X), factor=2.0)
    begun = [trial.begun_s for trial in first.sweep.trials]
    again = tuned(scaled, space, x=X, y=np.ones_like(X), factor=2.0)
    assert [trial.begun_s for trial in again.sweep.trials] == begun
    (study,) = read_record("record")
    assert study.family == "scaled_float32" and len(study.trials) == 2
    assert first.sweep.report().read_text(encoding="utf-8").count("scaled_float32")


def test_what_is_read_and_written_is_given_to_each_run_as_it_was() -> None:
    found = tuned(accumulated, {"twice": [False, True]}, x=X, total=np.ones_like(X))
    assert found.configuration == {"twice": False}
    assert states(found, "twice")["true"][0] == "wrong_result"
    assert found.declared.arrays["total"].role == "inout"
    assert found.declared.arrays["x"].role == "input"


def test_what_held_the_result_already_is_seen_to_be_written() -> None:
    found = tuned(scaled, {"chunk": [100]}, x=X, y=X * 2, factor=2.0)
    assert found.declared.arrays["y"].role == "output"
    found = tuned(copied, {"parts": [1]}, x=X, y=X.copy())
    assert found.declared.arrays["y"].role == "output"
    places = np.arange(1, 10, dtype=np.int32)
    found = tuned(ranked, {"parts": [1]}, x=np.arange(9, dtype=np.float32), out=places)
    assert found.declared.arrays["out"].role == "output"


def test_libraries_are_opened_before_the_first_call() -> None:
    found = tuned(Opened(), {"chunk": [1, 2]}, x=X, y=np.zeros_like(X))
    assert {state for state, _ in states(found, "chunk").values()} == {"measured"}


def test_what_is_given_back_is_verified() -> None:
    found = tuned(
        summed,
        {"parts": [1, 3]},
        x=X,
        check=lambda x: {"sum": float(x.sum(dtype=np.float64)), "squares": x * x},
    )
    assert [trial.state for trial in found.sweep.trials] == ["measured"] * 2
    with pytest.raises(NothingMeasured, match="sum: 1 of 1 elements differ"):
        tuned(summed, {"parts": [1, 3]}, x=X, check={"sum": 1.0, "squares": X * X})


def test_a_result_of_another_shape_is_a_failed_trial() -> None:
    found = tuned(changing, {"parts": [3, 5]}, x=X)
    assert states(found, "parts")[5] == (
        "launch_failed", "result is float32 of shape (5,), and the first call gave float32 of shape (3,)"
    )  # fmt: skip


def test_a_reference_may_be_given_as_arrays_or_as_a_function() -> None:
    y = np.zeros_like(X)
    wrong = {"y": X * 3}
    with pytest.raises(NothingMeasured, match="wrong_result"):
        tuned(scaled, {"chunk": [100]}, x=X, y=y, factor=2.0, check=wrong)
    found = tuned(scaled, {"chunk": [100]}, x=X, y=y, factor=2.0, check=lambda x, y, factor: x * factor)
    assert found.configuration == {"chunk": 100}


@pytest.mark.parametrize(
    ("inputs", "options", "said"),
    [
        ({"x": X, "chunk": 1}, {}, "chunk is in inputs= and in space="),
        ({"x": X}, {"outputs": ["z"]}, "'z' in outputs= is none of the inputs (x)"),
        ({"x": X}, {"key": ["n"]}, "'n' in key= is none of the inputs (x)"),
        ({"x": X.astype(np.complex64)}, {}, "x has elements of complex64"),
        ({"x": X[:0]}, {}, "x has shape (0,)"),
        ({"x": X, "lock": sys.stdout}, {}, "cannot be sent to a measuring process"),
    ],
)
def test_what_cannot_be_tuned_is_refused_before_a_process_starts(
    inputs: dict[str, Any], options: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError) as refused:
        autotune.tune(scaled, {"chunk": [1]}, inputs, progress=False, **options)
    assert said in str(refused.value)


def test_a_cache_that_others_may_write_to_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cache" / "kernels"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    monkeypatch.setenv("AUTOTUNE_CACHE", str(tmp_path / "cache"))
    with pytest.raises(StoreError, match=r"kernels can be written by other users.*AUTOTUNE_CACHE_SHARED=1"):
        tuned(summed, {"parts": [1, 2]}, x=X)
    monkeypatch.setenv("AUTOTUNE_CACHE_SHARED", "1")
    assert len(tuned(summed, {"parts": [1, 2]}, x=X).sweep.trials) == 2


def test_an_option_that_there_is_not_is_named() -> None:
    with pytest.raises(UsageError, match=r"autotune.tune has no seconds="):
        autotune.tune(scaled, {"chunk": [1]}, {"x": X}, seconds=3)


def test_a_default_that_fails_is_said_at_once() -> None:
    with pytest.raises(
        UsageError, match=r"scaled_float32 fails with the default configuration .*: RuntimeError: no such"
    ):
        tuned(scaled, {"chunk": [1], "how": ["raises", "right"]}, x=X, y=np.zeros_like(X), factor=2.0)


def test_a_function_that_leaves_nothing_to_verify_is_refused() -> None:
    with pytest.raises(UsageError, match="returns nothing, and no array changes during the call"):
        tuned(silent, {"parts": [1, 2]}, x=X)


def test_listed_configurations_are_the_ones_that_are_tried() -> None:
    listed = [{"chunk": 10, "how": "right"}, {"chunk": COUNT, "how": "reads_wrong"}]
    found = tuned(scaled, listed, x=X, y=np.zeros_like(X), factor=2.0)
    assert {trial.configuration.id for trial in found.sweep.trials} == {
        "chunk=10,how=right",
        f"chunk={COUNT},how=reads_wrong",
    }


PROGRAM = """
import numpy as np
import autotune

def doubled(x, *, parts):
    return 2 * x

{guard}found = autotune.tune(doubled, {{"parts": [1, 2]}}, {{"x": np.ones(9, np.float32)}}, progress=False)
{guard}print(sorted(found.configuration))
"""


@pytest.mark.parametrize("guard", ["if __name__ == '__main__': ", ""], ids=["guarded", "unguarded"])
def test_a_program_is_imported_by_measuring_processes(guard: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(guard=guard))
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    if guard:
        assert done.stdout == "['parts']\n", done.stderr
    else:
        assert 'put what the program does below `if __name__ == "__main__":`' in done.stderr
