"""@autotune.tuned: the first call of a kind tunes, later ones run the winner; policy files; several processes."""

import importlib
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import filelock
import numpy as np
import pytest

import autotune
from autotune.callables import tuning
from autotune.errors import NothingMeasured, UsageError

X = np.arange(2000, dtype=np.float32)
MODULE = """
import autotune

calls = []

@autotune.tuned(space={{"parts": [1, 2]}}, key={key}, progress=False, **{options})
def doubled(x, factor=2.0, *, parts):
    "Twice."
    calls.append(parts)
    return factor * x

@autotune.tuned(space={{"parts": [1, 2]}}, progress=False)
def outer(x, *, parts):
    return doubled(x) + 1
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compile_cache: str) -> None:
    monkeypatch.setenv("AUTOTUNE_CACHE", compile_cache)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))


def made(tmp_path: Path, key: tuple[str, ...] = (), **options: Any) -> ModuleType:
    """A module with decorated functions, as a new program imports it."""
    (tmp_path / "decorated.py").write_text(MODULE.format(key=key, options=options))
    sys.modules.pop("decorated", None)
    importlib.invalidate_caches()
    return importlib.import_module("decorated")


@pytest.fixture
def sweeps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many configurations each sweep was to choose among, 0 for all."""
    found: list[int] = []
    real = tuning.tune_problem

    def counted(*args: Any, **options: Any) -> Any:
        found.append(len(options.get("chosen", ())))
        return real(*args, **options)

    monkeypatch.setattr("autotune.callables.deciding.tune_problem", counted)
    return found


def test_one_call_of_a_kind_tunes_and_a_later_program_reads_its_winner(
    tmp_path: Path, sweeps: list[int]
) -> None:
    first = made(tmp_path)
    np.testing.assert_array_equal(first.doubled(X), 2 * X)
    first.doubled(X + 1)
    first.doubled(x=X)
    assert sweeps == [0]
    assert first.doubled.chosen(X) == {"parts": first.calls[0]}
    assert sorted(path.name for path in (tmp_path / "policies" / "doubled_float32").glob("*.*l")) != []
    made(tmp_path).doubled(X)
    assert sweeps == [0], "another program finds the policy file"


def test_other_sizes_try_what_policy_files_foretell(tmp_path: Path, sweeps: list[int]) -> None:
    module = made(tmp_path)
    module.doubled(X)
    module.doubled(X[:1000])
    assert sweeps[0] == 0 and 1 <= sweeps[1] <= 2


def test_calls_are_told_apart_by_the_key_alone_and_by_elements(tmp_path: Path, sweeps: list[int]) -> None:
    module = made(tmp_path, key=("x",))
    module.doubled(X, 2.0)
    module.doubled(X, 3.0)
    assert len(sweeps) == 1
    module.doubled(X.astype(np.float64), 2.0)
    assert len(sweeps) == 2
    assert {path.name for path in (tmp_path / "policies").iterdir()} == {"doubled_float32", "doubled_float64"}


def test_what_is_frozen_never_tunes_and_says_what_it_lacks(tmp_path: Path, sweeps: list[int]) -> None:
    with pytest.raises(
        NothingMeasured, match=r"doubled_float32 has not been tuned: no call.json in .*it is frozen"
    ):
        made(tmp_path, frozen=True).doubled(X)
    made(tmp_path).doubled(X)
    frozen = made(tmp_path, frozen=True)
    frozen.doubled(X)
    with pytest.warns(UserWarning, match=r"was not tuned for x_0=1000.* on cpu-.*: it runs .*nearest"):
        frozen.doubled(X[:1000])
    assert sweeps == [0]


def test_the_environment_freezes_what_does_not_say(
    tmp_path: Path, sweeps: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTOTUNE_FROZEN", "1")
    with pytest.raises(NothingMeasured, match="it is frozen"):
        made(tmp_path).doubled(X)
    monkeypatch.setenv("AUTOTUNE_FROZEN", "exact")
    with pytest.raises(NothingMeasured, match="it is frozen"):
        made(tmp_path).doubled(X)
    assert not sweeps


def test_ranks_run_what_the_first_one_decides(tmp_path: Path, sweeps: list[int]) -> None:
    """Any agreement will do: what decides is asked by it, and only there."""
    asked: list[Callable[[], Any]] = []

    class Agreement:
        def decide(self, decide: Callable[[], Any]) -> dict[str, int]:
            asked.append(decide)
            return {"parts": 2}

    module = made(tmp_path)
    function = autotune.tuned(space={"parts": [1, 2]}, agreement=Agreement())(module.doubled.function)
    np.testing.assert_array_equal(function(X), 2 * X)
    function(X)
    assert (module.calls, len(asked), sweeps) == ([2, 2], 1, [])


def test_an_edited_function_is_tuned_again(tmp_path: Path, sweeps: list[int]) -> None:
    made(tmp_path).doubled(X)
    text = MODULE.replace("return factor * x", "return x * factor")
    (tmp_path / "decorated.py").write_text(text.format(key=(), options={}))
    importlib.invalidate_caches()
    del sys.modules["decorated"]
    importlib.import_module("decorated").doubled(X)
    assert sweeps == [0, 0]


def lock_of(tmp_path: Path, module: ModuleType) -> filelock.FileLock:
    """The lock that a process holds which tunes that call."""
    module.doubled(X)
    (found,) = (tmp_path / "autotune-results" / "doubled_float32").glob("*.lock")
    for policy in (tmp_path / "policies" / "doubled_float32").iterdir():
        policy.unlink()
    return filelock.FileLock(found)


def test_another_process_tunes_and_this_one_runs_the_fallback(tmp_path: Path, sweeps: list[int]) -> None:
    with lock_of(tmp_path, made(tmp_path)):
        module = made(tmp_path, others="fallback")
        module.doubled(X)
        assert module.calls == [1] and sweeps == [0], "the default, and nothing is tuned"
    module.doubled(X)
    assert len(sweeps) == 2, "the other one has ended without a winner"


def test_another_process_tunes_and_this_one_waits_for_its_winner(tmp_path: Path, sweeps: list[int]) -> None:
    module = made(tmp_path)
    lock = lock_of(tmp_path, module)
    kept = {path: path.read_bytes() for path in (tmp_path / "policies" / "doubled_float32").iterdir()}
    assert not kept
    waiting = made(tmp_path)
    with lock:
        thread = threading.Thread(target=waiting.doubled, args=(X,))
        thread.start()
        assert not waiting.calls
        other = made(tmp_path)
        found = autotune.tune(other.doubled.function, {"parts": [1, 2]}, {"x": X}, progress=False)
        found.save_policy()
        before = len(sweeps)
    thread.join()
    assert len(sweeps) == before and len(waiting.calls) == 1


def test_a_tuned_function_that_a_measured_one_calls_is_not_tuned_there(
    tmp_path: Path, sweeps: list[int]
) -> None:
    module = made(tmp_path)
    np.testing.assert_array_equal(module.outer(X), 2 * X + 1)
    assert len(sweeps) == 2, "the outer one, and the inner one by the outer one's call here"


def test_a_decorated_function_is_still_itself(tmp_path: Path) -> None:
    module = made(tmp_path)
    assert module.doubled.__doc__ == "Twice." and module.doubled.__name__ == "doubled"
    np.testing.assert_array_equal(module.doubled.function(X, parts=1), 2 * X)


def test_a_space_that_the_function_does_not_have_is_refused() -> None:
    with pytest.raises(
        UsageError, match="doubled has no argument 'tile', which space= chooses; it has x, parts"
    ):

        @autotune.tuned(space={"tile": [1]})
        def doubled(x: Any, *, parts: int) -> Any:
            return x

    with pytest.raises(UsageError, match="doubled has no argument 'n', which key= names; it has x"):

        @autotune.tuned(space={"parts": [1]}, key=["n"])
        def doubled(x: Any, *, parts: int) -> Any:
            return x

    with pytest.raises(UsageError, match="others='never'"):
        autotune.tuned(space={"parts": [1]}, others="never")  # type: ignore[arg-type]


def test_importing_autotune_loads_none_of_it() -> None:
    program = (
        "import sys, autotune; assert not [m for m in sys.modules if m.startswith(('autotune.', 'numpy'))]"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
