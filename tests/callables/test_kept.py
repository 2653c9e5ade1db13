"""The processes that tune a program's functions: kept between them, and replaced where others would do otherwise."""

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from called_functions import fragile, scaled, summed
from waiting import is_gone, wait_for

import autotune
from autotune.callables import kept
from autotune.callables.backend import Calls
from autotune.callables.choices import Alternatives
from autotune.callables.functions import Importable
from autotune.compile import BuildError, ProcessDied

X = np.arange(100, dtype=np.float32)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compile_cache: str) -> Iterator[None]:
    monkeypatch.setenv("AUTOTUNE_CACHE", compile_cache)
    monkeypatch.chdir(tmp_path)
    yield
    kept.end_kept()


class Built:
    """Something that is built; ``values`` say how that ends."""

    def build(self, _arch: str, how: str) -> None:
        if how == "wrong":
            raise ValueError("no such thing")
        if how == "ended":
            os._exit(3)


def built(arch: str, values: Mapping[str, Any]) -> int:
    Calls(Importable.make(Built()), Alternatives({}), {}).build(arch, values)
    return os.getpid()


def test_processes_that_compile_are_forked_and_one_that_ends_is_replaced() -> None:
    forks = kept.Forks(2, Calls(Importable.make(Built()), Alternatives({}), {}))
    try:
        first = forks.submit(built, "sm_90", {"how": "right"}).result()
        assert first != os.getpid()
        with pytest.raises(BuildError, match=r"how.*wrong.*no such thing"):
            forks.submit(built, "sm_90", {"how": "wrong"}).result()
        with pytest.raises(ProcessDied):
            forks.submit(built, "sm_90", {"how": "ended"}).result()
        pids = {forks.submit(built, "sm_90", {"how": "right"}).result() for _ in range(4)}
        assert forks.is_there
    finally:
        forks.stop()
    assert not forks.is_there
    for pid in pids:
        wait_for(lambda pid=pid: is_gone(pid))


def measured_by(function: Any, space: Any, **inputs: Any) -> set[str]:
    """The processes that measured it."""
    result = autotune.tune(function, space, {"x": X, **inputs}, progress=False, again=True)
    return {trial.worker for trial in result.sweep.trials}


def test_the_next_function_is_measured_by_the_same_process_until_a_file_or_the_environment_is_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def of_scaled() -> set[str]:
        return measured_by(scaled, {"chunk": [10, 50]}, y=np.zeros_like(X), factor=2.0)

    first = of_scaled()
    assert len(first) == 1
    assert measured_by(summed, {"parts": [1, 2]}) == first
    file = sys.modules["called_functions"].__file__
    assert file is not None
    os.utime(file)
    second = of_scaled()
    assert second != first
    monkeypatch.setenv("SOMETHING", "else")
    third = of_scaled()
    assert third not in (first, second)
    kept.end_kept()
    assert of_scaled() != third


def test_processes_are_not_kept_where_tuning_ends_by_an_error() -> None:
    first = measured_by(summed, {"parts": [1, 2]})
    with pytest.raises(autotune.AutotuneError, match="no such tile"):
        measured_by(scaled, {"chunk": [10], "how": ["raises"]}, y=np.zeros_like(X), factor=2.0)
    assert measured_by(summed, {"parts": [1, 2]}) != first


def test_the_next_function_may_take_its_process_down_where_it_is_probed() -> None:
    first = measured_by(summed, {"parts": [1, 2]})
    result = autotune.tune(fragile, {"parts": [1, 2]}, {"x": X, "y": np.zeros_like(X)}, progress=False)
    assert first != {trial.worker for trial in result.sweep.trials}
    assert result.declared.arrays["y"].role == "output"


def test_results_of_16_bits_are_compared_by_torch() -> None:
    torch = pytest.importorskip("torch", reason="needs torch (its build for the cpu will do)")
    from called_functions import halved

    for dtype in (torch.float16, torch.bfloat16):
        x = torch.arange(1, 400, dtype=torch.float32).to(dtype)
        given = {"x": x, "out": torch.zeros_like(x)}
        space = {"factor": [0.5, 0.5001, 0.6]}
        result = autotune.tune(halved, space, given, progress=False)
        states = {trial.configuration["factor"]: trial.state for trial in result.sweep.trials}
        assert states == {"0.5": "measured", "0.5001": "measured", "0.6": "wrong_result"}
