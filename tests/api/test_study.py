"""A sweep from a program: what it gives back and what it leaves, on the cpu."""

import io
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import FAMILY, write_family
from hypothesis import given
from hypothesis import strategies as st
from import_path import import_path
from numpy.typing import NDArray
from plain import blur, floats
from rich.console import Console

import autotune
from autotune.api.sweeps import _bind as bound
from autotune.api.sweeps import write_given_workload
from autotune.cli.commands import main
from autotune.declaration import bind, load_family, load_workload, prepare
from autotune.errors import (
    AutotuneError,
    NothingMeasured,
    UnknownName,
    UsageError,
    WorkloadError,
)
from autotune.policy.file import read_policy_file
from autotune.record import Store
from autotune.report.progress_bar import Live, make_console, pace, show_live

X = np.linspace(-1, 1, 777, dtype=np.float32)
FEW = {"block_size": [64, 128]}


@pytest.fixture(scope="module")
def doubler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A family whose reference is Python."""
    made = write_family(tmp_path_factory.mktemp("study") / "doubler")
    (made / "family.py").write_text("def reference(arrays, options):\n    return {'y': 2 * arrays['x']}\n")
    return made


@pytest.fixture(scope="module")
def swept(doubler: Path, compile_cache: str) -> autotune.SweepResult:
    """Six configurations, for arrays."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTOTUNE_CACHE", compile_cache)
        return autotune.sweep(doubler, x=X, set=FEW, device="cpu", out=doubler.parent / "out")


# -- what it gives back


def test_the_winner_is_told_and_called(swept: autotune.SweepResult, doubler: Path) -> None:
    assert {t.state for t in swept.trials} == {"measured"} and len(swept.trials) == 6
    assert swept.failures == ()
    assert swept.best.configuration == swept.record.decision.winner.configuration
    assert swept.best.configuration in swept.best.tie_set
    assert swept.best.ms > 0
    low, high = swept.best.interval
    assert low <= swept.best.speedup <= high
    with autotune.load(swept) as kernel:
        np.testing.assert_array_equal(kernel(X), 2 * X)
        chosen, _ = kernel.explain(kernel.bind(X))
        assert (chosen.match, chosen.configuration) == ("exact", swept.best.configuration)
        assert chosen.origin == f"a sweep of this program: {swept.workload}"
        nearest, _ = kernel.explain(kernel.bind(X[:100]))
        assert nearest.match == "nearest"


def test_the_device_of_a_loaded_study_can_be_named(swept: autotune.SweepResult) -> None:
    assert swept.device == "cpu"
    with autotune.load(swept, device="cpu", policies="no-such-folder") as kernel:
        assert kernel.kind == "cpu"


def test_trials_as_a_table(swept: autotune.SweepResult) -> None:
    frame = swept.to_pandas()
    assert list(frame["state"]) == ["measured"] * 6
    assert set(frame["block_size"]) == {64, 128}
    assert set(frame["workload"]) == {swept.workload}


def test_it_shows_itself(swept: autotune.SweepResult) -> None:
    assert repr(swept).startswith(f"<SweepResult doubler on {swept.workload}, ")
    assert "6 trials, best " in repr(swept)
    winner = next(t for t in swept.trials if t.configuration != swept.record.control)
    unsure = "no configuration is reliably faster than control"
    for spread, says in ((0.0, "3.00 x faster than control>"), (2.0, unsure)):
        trials = [
            replace(
                t,
                measurement=replace(
                    t.measurement, median_ms=ms, retimed_ms=0.0, spread=spread, abandoned=False
                ),
            )
            for t in swept.trials
            if t.measurement
            for ms in (1.0 if t is winner else 3.0,)
        ]
        shown = repr(replace(swept, record=replace(swept.record, trials=tuple(trials))))
        assert says in shown and ("x faster" in shown) == (not spread)
    html = swept._repr_html_()
    assert f"doubler on {swept.workload}" in html and "winner" in html


def test_a_report_and_a_policy_file_are_made_when_asked_for(
    swept: autotune.SweepResult, tmp_path: Path
) -> None:
    left = {path.name for path in swept.out.iterdir()}
    assert not left & {"results.csv", "report.html"}
    page = swept.report(tmp_path / "report")
    assert page == tmp_path / "report" / "report.html"
    assert swept.workload in page.read_text()
    assert (tmp_path / "report" / "results.csv").is_file()
    file = swept.save_policy(tmp_path / "policies")
    entry = read_policy_file(file).entries[swept.workload]
    assert entry.configuration == dict(swept.best.configuration)
    assert dict(entry.features) == {"n": 777}
    with autotune.load(swept.folder, device="cpu", policies=tmp_path / "policies") as kernel:
        assert kernel.explain(kernel.bind(X))[0].match == "exact"


# -- the same record as the command's


def test_what_is_recorded_is_not_tried_again(swept: autotune.SweepResult, doubler: Path) -> None:
    again = autotune.sweep(doubler, x=X.copy(), set=FEW, device="cpu", out=swept.out)
    assert again.record.identity == swept.record.identity
    assert again.trials == swept.trials
    assert "measure" not in again.phases
    whole = autotune.sweep(doubler, x=X, device="cpu", out=swept.out, search="random", trials=2)
    assert len(whole.trials) == 8


def test_the_command_sweeps_what_a_program_gave(
    swept: autotune.SweepResult, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = swept.out / "workloads" / f"{swept.workload}.yaml"
    limits = ["--set", "block_size=64,128", "--device", "cpu", "--policies", str(tmp_path)]
    assert main(["sweep", str(swept.folder), "-w", str(file), "--out", str(swept.out), *limits]) == 0
    assert "6 of them recorded before" in capsys.readouterr().out
    assert len(Store(swept.out).studies()) == 1


def test_a_named_workload_and_one_at_hand(doubler: Path, tmp_path: Path) -> None:
    asked = {
        "set": {"block_size": 64, "memory": "global"},
        "device": "cpu",
        "samples": 1,
        "out": tmp_path / "out",
    }
    study = autotune.sweep(str(doubler), workload="small", **asked)
    assert study.workload == "small"
    assert len(study.trials) == 2  # and the control
    family = load_family(doubler)
    other = autotune.sweep(family, workload=replace(load_workload(family), cold=False), **asked)
    assert other.record.identity != study.record.identity
    raced = autotune.sweep(family, workload="small", race=1.02, **asked)
    assert raced.record.about.protocol["race"] == 1.02


def test_an_interruption_leaves_a_record_to_go_on_from(
    doubler: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Ctrl-C comes: a KeyboardInterrupt while trials are watched."""
    seen: list[object] = []

    def update(self: Live, *_: object) -> None:
        seen.append(self)
        if len(seen) == 3:
            raise KeyboardInterrupt

    asked = {"x": X, "set": FEW, "device": "cpu", "samples": 1, "out": tmp_path / "out"}
    with monkeypatch.context() as patch:
        patch.setattr(Live, "update", update)
        with pytest.raises(KeyboardInterrupt, match=r"recorded \(3 of 6\); the same call resumes from there"):
            autotune.sweep(doubler, **asked)
    (left,) = Store(tmp_path / "out").studies()
    assert len(left.trials) == 3 and left.about.interrupted
    study = autotune.sweep(doubler, **asked)
    assert len(study.trials) == 6
    assert {t.configuration for t in left.trials} < {t.configuration for t in study.trials}
    assert [t.phases_ms for t in study.trials[:3]] == [t.phases_ms for t in left.trials]  # not tried again


# -- what is right


def test_what_is_right_may_come_with_the_call(doubler: Path, tmp_path: Path) -> None:
    """By a function, which also answers for the sizes that the winner is proved on, or as arrays."""
    (doubler.parent / "without").mkdir()
    family = write_family(doubler.parent / "without" / "doubler")
    text = (family / "family.yaml").read_text().replace("reference: control\n", "")
    (family / "family.yaml").write_text(text)
    asked = {
        "x": X,
        "set": {"block_size": 64, "memory": "readonly"},
        "device": "cpu",
        "out": tmp_path / "out",
    }
    asked_for: list[tuple[int, ...]] = []

    def reference(inputs: dict[str, NDArray[Any]], options: dict[str, Any]) -> NDArray[Any]:
        asked_for.append(inputs["x"].shape)
        assert options == {}
        return 2 * inputs["x"]

    by_function = autotune.sweep(family, reference=reference, **asked)
    assert by_function.best.configuration["memory"] == "readonly"
    assert asked_for[0] == X.shape and (1,) in asked_for
    winner = by_function.decision.winner
    assert {"n": 1} in winner.proved
    by_arrays = autotune.sweep(family, expected=2 * X, **asked)
    assert by_arrays.record.identity == by_function.record.identity  # the same outputs for the same inputs
    with pytest.raises(NothingMeasured, match="wrong_result") as caught:
        autotune.sweep(family, expected={"y": 3 * X}, **asked)
    assert f"all reasons are in the record ({tmp_path / 'out'})" in str(caught.value)
    first, second = Store(tmp_path / "out").studies()
    differing = {name for name in first.parts if first.parts[name] != second.parts[name]}
    assert differing == {"expected outputs"}


# -- arrays of others


class Elsewhere:
    """An array on a GPU, as cupy has it."""

    def __init__(self, content: NDArray[Any]) -> None:
        self._content = content
        self.__cuda_array_interface__ = {
            "shape": content.shape, "typestr": content.dtype.str, "data": (64, False), "version": 3
        }  # fmt: skip

    def get(self) -> NDArray[Any]:
        return self._content


class Packed:
    """An array that knows DLPack alone."""

    def __init__(self, content: NDArray[Any]) -> None:
        self._content = content

    def __dlpack__(self, **named: Any) -> Any:
        return self._content.__dlpack__(**named)

    def __dlpack_device__(self) -> Any:
        return self._content.__dlpack_device__()


@pytest.mark.parametrize("kind", [Elsewhere, Packed, list, lambda array: array.astype(np.float64)])
def test_arrays_of_any_kind_are_the_same_inputs(doubler: Path, kind: Callable[..., Any]) -> None:
    family = load_family(doubler)
    assert bound(family, {"x": kind(X)}).digest == bind(family, {"x": X}, {}, {}).digest


def test_what_lies_on_a_gpu_is_swept_and_may_be_the_answer(
    swept: autotune.SweepResult, tmp_path: Path
) -> None:
    given = {"inputs": {"x": Elsewhere(X)}, "expected": Elsewhere(2 * X)}
    study = autotune.sweep(swept, set=FEW, samples=1, device="cpu", out=tmp_path / "out", **given)
    assert study.workload == swept.workload


# -- an unmodified kernel


def test_a_plain_kernel_is_swept_and_called(tmp_path: Path) -> None:
    """Its sizes come with the arrays; control is right where nothing else says what is."""
    kernel, content = blur(), floats(300)
    asked = {"inputs": {"in": content}, "weights": np.array([0.25, 0.5, 0.25]), "RADIUS": 1}
    study = autotune.sweep(kernel, device="cpu", samples=1, out=tmp_path / "out", **asked)
    assert len(study.trials) == 4 and not study.failures
    assert study.folder == kernel.folder.resolve()
    assert study.workload.startswith("given-300x3-")
    padded = np.pad(content, 1, mode="edge")
    with autotune.load(study) as winner:
        made = winner(content, weights=asked["weights"], RADIUS=1)
    np.testing.assert_allclose(made, np.convolve(padded, asked["weights"], "valid"), rtol=1e-5)


# -- errors


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"device": "gpu"}, UnknownName, "unknown device 'gpu'"),
        ({"set": {"memroy": "global"}}, UnknownName, "did you mean 'memory'"),
        ({"set": {"memory": "shared"}}, UnknownName, "unknown value"),
        ({"preset": "none"}, UnknownName, "preset"),
        ({"search": "luck"}, UnknownName, "luck"),
        ({"objective": "luck"}, UnknownName, "objective"),
        ({"race": 0.98}, UsageError, r"--race 0.98 would drop the best too: .* 1.02 for 2 % more"),
        ({"z": X}, UnknownName, "unknown input 'z'"),
        ({"x": X.reshape(7, 111)}, WorkloadError, "x"),
        ({"x": np.array(["a"])}, WorkloadError, "x"),
        ({"workload": "small"}, UsageError, "name a workload, or give its inputs"),
        ({"inputs": {"x": X}}, UsageError, "'x' is given twice"),
        ({"expected": X, "reference": lambda inputs, options: X}, UsageError, "pass one of the two"),
        ({"expected": X[:5]}, WorkloadError, r"y has shape \(5,\), declared is \(777,\)"),
        ({"expected": {"z": X}}, WorkloadError, "'z', which is no output of family doubler"),
        ({"expected": np.full_like(X, np.nan)}, WorkloadError, "no finite value"),
        ({"reference": lambda inputs, options: {}}, WorkloadError, "gives no 'y'"),
        ({"sanitize": True}, AutotuneError, "compute-sanitizer"),
        ({"trial": 3}, UnknownName, "unknown input 'trial' in family doubler, or argument; did you mean 'trials'"),
        ({"data": X}, UsageError, "data is a ndarray, and sweep takes a folder there$"),
        ({"trials": "5"}, UsageError, "trials is a str, and sweep takes a whole number there"),
        ({"seed": "x"}, UsageError, "seed is a str, and sweep takes a whole number"),
        ({"samples": -1}, UsageError, "--samples -1: it is at least 0"),
    ],
)  # fmt: skip
def test_a_mistake_is_an_error_that_says_so(
    doubler: Path, tmp_path: Path, changes: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        autotune.sweep(doubler, **{"x": X, "device": "cpu", "out": tmp_path / "out", "set": FEW, **changes})


def test_an_input_with_the_name_of_an_argument_goes_in_inputs(tmp_path: Path) -> None:
    kernel = autotune.Kernel(
        "__global__ void twice(float* y, const float* data, int n) {\n"
        "  const int i = blockIdx.x * bs + threadIdx.x; if (i < n) y[i] = 2 * data[i]; }", "twice",
        arguments={"y": "output float32[n]", "data": "input float32[n]", "n": "int32"},
        grid="ceil_div(n, bs)", block="bs", policies={"bs": [64]},
    )  # fmt: skip
    with pytest.raises(
        UsageError, match=r"twice has an input of that name, which goes in inputs=\{'data': …\}"
    ):
        autotune.sweep(kernel, data=X, device="cpu", out=tmp_path)
    assert autotune.sweep(kernel, inputs={"data": X}, device="cpu", out=tmp_path).best.ms > 0


def test_a_family_that_is_not_there() -> None:
    with pytest.raises(UsageError, match="cannot sweep a int: give a family's name"):
        autotune.sweep(3)
    with pytest.raises(UnknownName, match="unknown family 'alpairs'; did you mean 'allpairs'"):
        autotune.sweep("alpairs")


def test_without_a_default_workload_inputs_are_asked_for(tmp_path: Path) -> None:
    family = write_family(tmp_path / "doubler")
    (family / "family.yaml").write_text(
        (family / "family.yaml").read_text().replace("default_workload: small\n", "")
    )
    (family / "workloads" / "small.yaml").unlink()
    with pytest.raises(UsageError, match=r"name a file with workload=, or give its inputs \(x\)"):
        autotune.sweep(family)


def test_an_error_of_the_programs_own_reference_is_its_own(doubler: Path, tmp_path: Path) -> None:
    def reference(inputs: dict[str, Any], options: dict[str, Any]) -> Any:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        autotune.sweep(doubler, x=X, reference=reference, device="cpu", out=tmp_path / "out")


# -- the workload that arrays become


@given(
    st.lists(st.floats(-9, 9, width=32), min_size=1, max_size=20),
    st.lists(st.floats(-9, 9, width=32), min_size=1, max_size=20),
    st.booleans(),
)
def test_its_name_follows_from_the_contents_and_its_file_gives_them_back(
    tmp_path_factory: pytest.TempPathFactory,
    doubler: Path,
    first: list[float],
    second: list[float],
    cold: bool,
) -> None:
    family, folder = load_family(doubler), tmp_path_factory.getbasetemp() / "given"
    one, other = (bind(family, {"x": content}, {}, {}) for content in (first, second))
    made = write_given_workload(family, one, {}, cold, folder)
    assert made.name.startswith(f"given-{len(first)}-")
    same = np.array_equal(one.arrays["x"].view(np.uint32), other.arrays["x"].view(np.uint32))
    assert (write_given_workload(family, other, {}, cold, folder).name == made.name) == same
    assert made.path is not None
    read = load_workload(family, made.path)
    found = prepare(family, read, Path("nowhere"))
    assert found.digest == one.digest
    assert (read.name, read.arrays) == (made.name, made.arrays)


def test_scalars_and_options_are_kept_with_the_arrays(tmp_path: Path) -> None:
    declared = (
        "scalars: {factor: {type: float32}, count: {type: int32, default: 3}, both: {type: int32, value: 2 * count}}\n"
        "options: {mode: {values: [fast, exact], default: fast}}\n"
    )
    family = load_family(write_family(tmp_path / "doubler", FAMILY + declared))
    asked = {"x": X, "factor": np.float32(0.5), "mode": "exact"}
    inputs = bound(family, asked)
    assert (dict(inputs.scalars), inputs.options) == (
        {"factor": 0.5, "count": 3, "both": 6},
        {"mode": "exact"},
    )
    made = write_given_workload(family, inputs, {"factor": inputs.scalars["factor"]}, False, tmp_path / "out")
    assert made.path is not None
    read = load_workload(family, made.path)
    assert prepare(family, read, Path("nowhere")).digest == inputs.digest
    assert (read.scalars, read.options, read.cold) == ({"factor": 0.5}, {"mode": "exact"}, False)
    other = bound(family, {**asked, "factor": 0.25})
    assert write_given_workload(family, other, {"factor": 0.25}, False, tmp_path / "out").name != made.name


# -- a script, a terminal, a notebook

SCRIPT = """
import logging, os, signal, sys, warnings
import numpy as np
import optuna
import plotly.tools  # adds a filter of its own
import autotune

def state():
    return (
        [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)],
        list(warnings.filters), warnings.showwarning, warnings.formatwarning,
        logging.getLogger().level, logging.getLogger("autotune").level, list(logging.getLogger().handlers),
        list(logging.getLogger("autotune").handlers), optuna.logging.get_verbosity(),
        dict(os.environ), os.getcwd(), sys.stdout, sys.stderr, sys.excepthook, list(sys.path),
    )

x = np.linspace(-1, 1, 777, dtype=np.float32)
before = state()
study = autotune.sweep(FOLDER, x=x, set={"block_size": [64, 128]}, device="cpu", search="tpe", trials=4)
with autotune.load(study) as kernel:
    assert (kernel(x) == 2 * x).all()
study._repr_html_(), repr(study), study.to_pandas(), study.report(), study.save_policy()
assert state() == before
"""


def run_script(doubler: Path, folder: Path, text: str, **named: Any) -> "subprocess.CompletedProcess[str]":
    script = folder / "program.py"
    script.write_text(text.replace("FOLDER", repr(str(doubler))))
    environment = {**os.environ, "PYTHONPATH": import_path()}
    return subprocess.run(
        [sys.executable, str(script)], cwd=folder, env=environment, capture_output=True, text=True, check=False,
        **named,
    )  # fmt: skip


def test_a_script_needs_no_guard_and_hears_nothing(doubler: Path, tmp_path: Path) -> None:
    """And finds everything of its own as it was."""
    done = run_script(doubler, tmp_path, SCRIPT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "autotune-results" / "doubler" / "report.html").is_file()
    assert len(list((tmp_path / "policies" / "doubler").glob("*.yaml"))) == 1


def test_a_notebook_shows_lines() -> None:
    with pace("f small", 3, Console(force_jupyter=True, force_terminal=True)) as steps:
        assert steps._bar is None


def test_a_bar_on_a_terminal_redirects_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stdout", terminal)
    with show_live("f small", 3, make_console(True)):
        assert sys.stdout is terminal
    assert "f small" in terminal.getvalue()
    shown = terminal.getvalue()
    with show_live("f small", 3, make_console(False)):
        pass
    assert terminal.getvalue() == shown


@pytest.mark.parametrize("stdout", [io.StringIO(), None])
def test_where_nobody_watches_nothing_is_shown(
    stdout: io.StringIO | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", stdout)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert make_console(True).quiet
