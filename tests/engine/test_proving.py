"""Winners proved on odd sizes, proofs with a version, and what a sweep does that an earlier one left undone."""

import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from fake_device import FakeDevice, process, start_sweep
from fakes import FakeBackend, cost, sweep

from autotune.cli.commands import main
from autotune.compile.variant import Variant
from autotune.declaration import family as families
from autotune.declaration import workload as workloads
from autotune.declaration.family import Family
from autotune.declaration.space import Configuration
from autotune.declaration.workload import Inputs
from autotune.device.backend import LaunchError
from autotune.engine import odd_sizes
from autotune.engine.sweep import SweepInterrupted
from autotune.measure.reference import compute_expected
from autotune.measure.sampling import Timing
from autotune.measure.verify import PROOF_VERSION
from autotune.policy import file as policyfile
from autotune.policy import merge as policyfile_write
from autotune.record.store import Store
from autotune.record.study import Study
from autotune.record.trial import Trial

BEST = "block_size=64,memory=readonly"


class Sized(FakeBackend):
    """``wrong_at(configuration, n)`` says for which sizes a configuration is wrong, ``does_at`` does what it likes."""

    wrong_at: Callable[[Mapping[str, Any], int], bool] = lambda configuration, n: False
    does_at: Callable[[Mapping[str, Any], int], None] = lambda configuration, n: None

    def launch(self, module: Any, kernel: str, geometry: Any, arguments: Any) -> None:
        n = self._placed[arguments[0]].stored.nbytes // 4
        configuration = self.configurations[module.compiled.key]
        type(self).does_at(configuration, n)
        self.wrong = lambda c: type(self).wrong_at(c, n)
        super().launch(module, kernel, geometry, arguments)


def sized(
    wrong: Callable[[Mapping[str, Any], int], bool] = lambda c, n: False,
    does: Callable[[Mapping[str, Any], int], None] = lambda c, n: None,
) -> FakeBackend:
    made = type("Made", (Sized,), {"wrong_at": staticmethod(wrong), "does_at": staticmethod(does)})
    backend: FakeBackend = made()
    return backend


def by_id(study: Study) -> dict[str, Trial]:
    return {trial.configuration.id: trial for trial in study.trials}


def is_best(configuration: Mapping[str, Any]) -> bool:
    return Configuration(configuration).id == BEST


# -- odd sizes -------------------------------------------------------------------------------------------------


def test_a_winner_is_proved_on_ragged_sizes_and_the_entry_says_which(folder: Path, tmp_path: Path) -> None:
    study = sweep(folder, tmp_path).run()
    assert study.decision is not None
    sizes = [size["n"] for size in study.decision.winner.proved]
    assert {1, 7, 37, 31, 33, 999} <= set(
        sizes
    )  # a prime or two, around the smallest block, one less than there are
    (entry,) = policyfile_write.new_entries(study)
    assert entry.proved == {"sizes": [{"n": n} for n in sizes], "version": PROOF_VERSION}
    written = policyfile_write.update(tmp_path / "policies", [study])
    assert policyfile.read_policy_file(written).entries["small"].proved == entry.proved
    assert study.about.proof["sizes"] == entry.proved["sizes"]


def test_a_configuration_right_for_the_swept_sizes_only_makes_room_for_the_next(
    folder: Path, tmp_path: Path
) -> None:
    study = sweep(folder, tmp_path, sized(lambda c, n: is_best(c) and n % 8 != 0)).run()
    trial = by_id(study)[BEST]
    assert trial.state == "wrong_result" and trial.measurement is None
    assert trial.reason.startswith("right for the swept sizes, wrong for n=1: y: 1 of 1 elements differ")
    assert study.decision is not None and study.decision.winner.configuration.id != BEST
    assert study.decision.winner.proved and study.decision.winner.measurement.retimed_ms  # type: ignore[union-attr]


def test_where_every_configuration_is_wrong_for_other_sizes_none_wins(folder: Path, tmp_path: Path) -> None:
    study = sweep(folder, tmp_path, sized(lambda c, n: n == 37)).run()
    assert study.states() == {"wrong_result": 12} and study.decision is None


def test_a_size_that_a_constraint_excludes_is_not_tried(folder: Path, tmp_path: Path) -> None:
    path = folder / "family.yaml"
    path.write_text(path.read_text() + "constraints:\n  - {require: n % 4 == 0, reason: four at a time}\n")
    study = sweep(folder, tmp_path, sized(lambda c, n: n % 4 != 0)).run()
    assert study.states() == {"measured": 12}
    assert study.decision is not None and study.decision.winner.proved == ()
    (entry,) = policyfile_write.new_entries(study)
    assert entry.proved == {"sizes": [], "version": PROOF_VERSION}


def test_the_winners_of_other_objectives_are_proved_too(folder: Path, tmp_path: Path) -> None:
    study = sweep(folder, tmp_path, sized(lambda c, n: c["memory"] == "global" and n == 37)).run()
    for objective in ("kernel", "with-transfer", "with-transform"):
        (entry,) = policyfile_write.new_entries(study, objective)
        assert entry.proved["sizes"] and entry.configuration["memory"] != "global"


def test_a_refused_launch_names_the_size(folder: Path, tmp_path: Path) -> None:
    def refuse(configuration: Mapping[str, Any], n: int) -> None:
        if is_best(configuration) and n == 7:
            raise LaunchError("no such address")

    trial = by_id(sweep(folder, tmp_path, sized(does=refuse)).run())[BEST]
    assert trial.state == "launch_failed"
    assert trial.reason == "right for the swept sizes, but for n=7: no such address"


class Dies(FakeDevice):
    """In a process that ends where the best configuration meets a ragged size."""

    def __call__(self) -> FakeBackend:
        backend = sized(
            does=lambda c, n: os.kill(os.getpid(), signal.SIGSEGV) if is_best(c) and n == 37 else None
        )
        family = families.load_family(self.folder)
        backend.know([Variant(family, c) for c in family.space.configurations()])
        return backend


def test_a_crash_on_a_ragged_size_costs_that_configuration(folder: Path, tmp_path: Path) -> None:
    one = process(Dies(folder))
    one.start()
    try:
        study = sweep(folder, tmp_path, workers=[one]).run()
    finally:
        one.close()
    trial = by_id(study)[BEST]
    assert (
        trial.state == "crashed"
        and "but for n=37: the measuring process was ended by SIGSEGV" in trial.reason
    )
    assert study.decision is not None and study.decision.winner.proved
    assert not study.about.warning


def made(
    folder: Path, arrays: str, data: str, tmp_path: Path, python: str = ""
) -> tuple[Family, Inputs, Any]:
    """A family of these data, on a workload of these arrays."""
    declared = yaml.safe_load((folder / "family.yaml").read_text())
    declared["data"] = yaml.safe_load(data) | {"y": {"role": "output", "type": "float32", "shape": ["n"]}}
    declared["policies"] = {"block_size": {"values": [64], "default": 64}}
    declared["kernels"]["doubler"]["arguments"] = list(declared["data"])
    (folder / "family.yaml").write_text(yaml.safe_dump(declared, sort_keys=False))
    (folder / "workloads" / "small.yaml").write_text(
        f"schema: 1\nworkload: small\nfamily: doubler\n{arrays}\n"
    )
    if python:
        (folder / "family.py").write_text(python)
    family = families.load_family(folder)
    workload = workloads.load_workload(family)
    return family, workloads.prepare(family, workload, tmp_path), workload


def test_arrays_that_share_an_extent_are_cut_alike(folder: Path, tmp_path: Path) -> None:
    arrays = "arrays:\n  x: {random: uniform, shape: [300, 9]}\n  w: {random: uniform, shape: [9]}"
    data = "{x: {role: input, type: float32, shape: [n, m]}, w: {role: input, type: float32, shape: [m]}}"
    family, inputs, workload = made(folder, arrays, data, tmp_path)
    steps = odd_sizes.grid_steps(Variant(family, family.space.control), inputs, {})
    assert steps == {"n": 64}
    cut = list(odd_sizes.make_odd_inputs(family, workload, inputs, tmp_path, {"n": [64]}))
    shapes = [(c.sizes["n"], c.sizes["m"]) for c in cut]
    small = [(1, 1), (7, 5), (37, 9), (63, 5), (65, 5), (299, 8)]
    assert shapes == [*small, (300, 9), (301, 10), (365, 12)]
    x, w = inputs.arrays["x"], inputs.arrays["w"]
    for one in cut:
        n, m = one.sizes["n"], one.sizes["m"]
        assert one.arrays["x"][-1, -1] == x[-1, -1] and one.arrays["w"][-1] == w[-1]
        assert one.arrays["x"][0, 0] != x[0, 0] and one.arrays["w"][0] != w[0]
        if n < 300 and m < 9:
            assert np.array_equal(one.arrays["x"], x[300 - n :, 9 - m :])
            assert np.array_equal(one.arrays["w"], w[9 - m :])


def test_a_reference_that_takes_long_is_computed_for_less_than_the_workload_only(
    folder: Path, tmp_path: Path
) -> None:
    data = "{x: {role: input, type: float32, shape: [n]}}"
    family, inputs, workload = made(folder, "arrays: {x: {random: uniform, shape: [99]}}", data, tmp_path)
    cut = odd_sizes.make_odd_inputs(family, workload, inputs, tmp_path, {}, up_to=0)
    assert [one.sizes["n"] for one in cut] == [1, 7, 37, 98]


LINKED = """
x: {role: input, type: float32, shape: [n]}
next: {role: input, type: int32, link: n, shape: [n]}
"""


@pytest.mark.parametrize(
    ("arrays", "data", "why"),
    [
        (
            "arrays:\n  x: {random: uniform, shape: [300]}\n  next: {random: integers, high: 300, shape: [300]}",
            LINKED,
            "next holds links",
        ),
        (
            "arrays:\n  x: {random: uniform, shape: [300]}\n  place: {random: integers, high: 300, shape: [300]}",
            "{x: {role: input, type: float32, shape: [n]}, place: {role: input, type: int32, shape: [n]}}",
            "n: the values of place may number its places",
        ),
    ],
)
def test_what_cutting_would_break_is_not_cut(
    arrays: str, data: str, why: str, folder: Path, tmp_path: Path
) -> None:
    family, inputs, workload = made(folder, arrays, data, tmp_path)
    sizes, proofs = odd_sizes.compute_odd_proofs(
        family, workload, inputs, tmp_path, {}, lambda made: compute_expected(family, made, tmp_path)[0]
    )
    assert not sizes.sizes and not proofs and why in sizes.why_not


def test_a_family_that_makes_its_inputs_says_what_is_ragged(folder: Path, tmp_path: Path) -> None:
    python = (
        "import numpy as np\n"
        "def inputs(parameters, root):\n    return {'x': np.ones(parameters['n'], np.float32)}\n"
        "def reference(arrays, options):\n"
        "    if arrays['x'].size == 3: raise ValueError('not three')\n"
        "    return {'y': 2 * arrays['x']}\n"
    )
    data = "{x: {role: input, type: float32, shape: [n]}}"
    family, inputs, workload = made(folder, "parameters: {n: 100}", data, tmp_path, python)
    sizes, _ = odd_sizes.compute_odd_proofs(
        family, workload, inputs, tmp_path, {}, lambda made: compute_expected(family, made, tmp_path)[0]
    )
    assert not sizes.sizes and "write ragged(parameters)" in sizes.why_not
    other = folder.with_name("other")
    folder.rename(other)
    (other / "family.py").write_text(
        python + "def ragged(parameters):\n    for n in (1, 3, 5):\n        yield {'n': n}\n"
    )
    family = families.load_family(other)
    sizes, proofs = odd_sizes.compute_odd_proofs(
        family, workload, inputs, tmp_path, {}, lambda made: compute_expected(family, made, tmp_path)[0]
    )
    assert [size.told for size in sizes.sizes] == [{"n": 1}, {"n": 5}]  # three has no reference
    assert [made.sizes["n"] for made, _ in proofs] == [1, 5]


# -- what an earlier sweep left undone -------------------------------------------------------------------------


class Killed(BaseException):
    """What a signal that nobody catches does: nothing is said, nothing is written."""


@pytest.mark.parametrize("moment", ["before", "proved", "timed", 0, 1, 2])
def test_finalists_that_a_kill_cut_short_are_done_by_the_same_command(
    moment: str | int, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before them, after the first proof, before they are timed, or after some of their rows."""
    from autotune.engine.finalists import Finalists
    from autotune.engine.proof import Prover
    from autotune.record.store import StudyStore

    def die(*_args: Any, **_kwargs: Any) -> None:
        raise Killed

    rows = 0
    recorded = StudyStore.record

    def record(self: StudyStore, trial: Trial) -> None:
        nonlocal rows
        rows += bool(trial.measurement and trial.measurement.retimed_ms)
        if isinstance(moment, int) and rows > moment:
            raise Killed
        recorded(self, trial)

    with monkeypatch.context() as patched:
        patched.setattr(StudyStore, "record", record)
        if moment == "before":
            patched.setattr(Finalists, "run", die)
        if moment == "proved":
            proved, seen = Prover.prove, []
            patched.setattr(
                Prover, "prove", lambda self, t: die() if seen else (seen.append(t), proved(self, t))[1]
            )
        if moment == "timed":
            patched.setattr(Finalists, "_time_in_turn", die)
        with pytest.raises(Killed):
            sweep(folder, tmp_path).run()
    backend = FakeBackend()
    study = sweep(folder, tmp_path, backend).run()
    assert backend.launched
    again = [t for t in study.trials if t.measurement and t.measurement.retimed_ms]
    assert len(again) >= 3 and study.decision is not None and study.decision.winner in again
    assert study.decision.winner.proved
    idle = FakeBackend()
    sweep(folder, tmp_path, idle).run()
    assert idle.launched == []


@pytest.mark.filterwarnings("ignore:.*its last line was torn")
@pytest.mark.parametrize(("number", "isolated"), [(signal.SIGKILL, False), (signal.SIGTERM, True)])
def test_a_signal_while_finalists_are_timed_costs_nothing(
    number: signal.Signals, isolated: bool, folder: Path, tmp_path: Path
) -> None:
    journal = tmp_path / "out" / "store.journal"
    running = start_sweep(folder, tmp_path, tmp_path / "log", 3, isolated)
    while running.poll() is None and (not journal.exists() or journal.read_bytes().count(b'"trial":') < 12):
        time.sleep(0.002)
    running.send_signal(number)
    running.wait()
    study = sweep(folder, tmp_path).run()
    assert study.states() == {"measured": 12} and study.decision is not None
    assert study.decision.winner.proved and study.decision.winner.measurement.retimed_ms  # type: ignore[union-attr]


def test_an_interruption_in_that_phase_is_made_good(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_args: Any, **_kwargs: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Timing, "interleave", stop)
        with pytest.raises(SweepInterrupted):
            sweep(folder, tmp_path).run()
    study = sweep(folder, tmp_path).run()
    assert study.decision is not None and study.decision.winner.measurement.retimed_ms  # type: ignore[union-attr]


def test_again_tries_everything_anew_and_retime_the_finalists(folder: Path, tmp_path: Path) -> None:
    sweep(folder, tmp_path).run()
    slower = FakeBackend(costs=lambda c: 2 * cost(c))
    study = sweep(folder, tmp_path, slower, retime=True).run()
    retimed = {t.configuration.id: t for t in study.trials if t.measurement and t.measurement.retimed_ms}
    assert set(retimed) <= set(slower.launched) and len(set(slower.launched)) < 12
    assert study.about.retime_ratio == pytest.approx(2)
    assert retimed[BEST].measurement.retimed_ms == pytest.approx(2 * retimed[BEST].measurement.median_ms)  # type: ignore[union-attr]
    anew = FakeBackend(costs=lambda c: 3 * cost(c))
    study = sweep(folder, tmp_path, anew, again=True).run()
    assert len(set(anew.launched)) == 12
    assert by_id(study)[BEST].measurement.median_ms == pytest.approx(3)  # type: ignore[union-attr]
    assert study.about.retime_ratio == pytest.approx(1)
    journal = (tmp_path / "out" / "store.journal").read_text()
    assert journal.count('"trial":') >= 24 + len(retimed)  # the older rows are still there


# -- control, and what was searched ----------------------------------------------------------------------------


def test_the_control_is_tried_beside_a_selection_without_it(folder: Path, tmp_path: Path) -> None:
    configurations = families.load_family(folder).space.configurations("full", {"memory": ["readonly"]})
    seen: list[tuple[int, int]] = []
    study = sweep(
        folder,
        tmp_path,
        configurations=configurations,
        watch=lambda trial, done, total: seen.append((done, total)),
    ).run()
    assert len(study.trials) == 5 and study.decision is not None
    assert study.decision.over_control.ratio == pytest.approx(cost(study.control))
    assert seen[-1] == (4, 4)
    assert study.about.beside == (study.control.id,)
    assert study.about.searched == {"tried": 4, "of": 4, "space": 12, "by": "exhaustive"}
    (entry,) = policyfile_write.new_entries(study)
    assert entry.searched == {"tried": 5, "of": 12, "by": "exhaustive"} and entry.margin_over_control
    backend = FakeBackend()
    whole = sweep(folder, tmp_path, backend).run()
    assert whole.about.beside == () and whole.about.searched["tried"] == 12
    part = sweep(folder, tmp_path, backend, configurations=configurations).run()
    assert part.about.beside == ()  # the record has it from a selection that it was part of
    assert len(part.selection) == 5


def test_a_control_beside_the_selection_wins_nothing(folder: Path, tmp_path: Path) -> None:
    """What a person leaves out is neither the winner nor in a policy file, however fast it is."""

    def costs(configuration: Mapping[str, Any]) -> float:
        return 0.5 if dict(configuration) == {"memory": "global", "block_size": 128} else cost(configuration)

    few = families.load_family(folder).space.configurations("full", {"memory": ["texture"]})
    study = sweep(folder, tmp_path, FakeBackend(costs=costs), configurations=few).run()
    (recorded,) = Store(tmp_path / "out").studies()
    for each in (study, recorded):
        assert each.decision is not None and each.decision.control is not None
        assert each.decision.winner.configuration.id == "block_size=64,memory=texture"
        assert each.decision.winner.proved and each.decision.control.configuration == each.control
        assert each.decision.over_control.ratio == 0.25 and not each.decision.is_reliable
        (entry,) = policyfile_write.new_entries(each)
        assert entry.configuration["memory"] == "texture" and entry.margin_over_control == 0.25
        assert each.states() == {"measured": 4}


KERNELS = {
    "no bound": "true",
    "whole blocks": "i < x.extent(0) / 64 * 64",
}


@pytest.mark.parametrize("condition", KERNELS.values(), ids=KERNELS)
def test_kernels_right_for_multiples_of_the_block_only_never_win(
    condition: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the cpu: one without a bound, which writes past its arrays, and one that leaves the rest out. Both are faster
    than the right one."""
    source = (folder / "doubler.cu").read_text()
    careful = "if (i < x.extent(0))"
    assert careful in source
    slower = "if (!Policy::careless) for (volatile int turn = 0; turn < 500; turn = turn + 1) {}"
    made = f"{slower}\n  if (Policy::careless ? {condition} : i < x.extent(0))"
    (folder / "doubler.cu").write_text(source.replace(careful, made))
    declared = (folder / "family.yaml").read_text()
    declared = declared.replace("policies:\n", "policies:\n  careless: {values: [0, 1], default: 0}\n", 1)
    (folder / "family.yaml").write_text(declared)
    workload = folder / "workloads" / "small.yaml"
    workload.write_text(workload.read_text().replace("1000", "1024"))
    places = ["--out", str(tmp_path / "out"), "--policies", str(tmp_path / "policies")]
    arguments = ["--set", "memory=global", "--samples", "9"]  # so that none is given up by a slow first run
    assert main(["sweep", str(folder), "--device", "cpu", *arguments, *places]) == 0
    (study,) = Store(tmp_path / "out").studies()
    assert study.decision is not None and study.decision.winner.configuration["careless"] == 0
    wrong = [t for t in study.trials if t.state in ("wrong_result", "crashed")]
    assert wrong and all(t.configuration["careless"] == 1 for t in wrong)
    assert all(t.reason.startswith("right for the swept sizes, ") for t in wrong)
    (entry,) = policyfile_write.new_entries(study)
    assert entry.proved["sizes"] and "odd sizes near it" in capsys.readouterr().out
