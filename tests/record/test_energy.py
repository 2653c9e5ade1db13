"""--objective energy: joules and milliseconds of a call, on a device whose power is known."""

import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from fakes import PROTOCOL, FakeBackend, cost, sweep, write_family
from rich.console import Console

from autotune.cli.commands import main
from autotune.cli.terminal import print_study
from autotune.declaration import load_family
from autotune.errors import DeviceError
from autotune.hardware import Device
from autotune.measure import Figure
from autotune.measure.energy import EnergyMeter, Reading
from autotune.policy import acceptance, read_policy_file, update
from autotune.record import Study, read_results, results_frame, write_results

GPU = Device(kind="cuda", name="Some GPU", arch="sm_90")
MEASURED = replace(PROTOCOL, figure="energy_j")
FAST, FRUGAL = "block_size=64,memory=readonly", "block_size=64,memory=texture"
IDLE_W = 70.0


def power(configuration: Mapping[str, Any]) -> float:
    """Texture takes 2 ms where readonly takes 1 ms, and a third of the power."""
    return {"global": 400.0, "readonly": 600.0, "texture": 200.0}[configuration["memory"]]


class Powered(FakeBackend):
    """Its clock is that of its kernels, and of who sleeps meanwhile; each configuration has a power."""

    joules = 0.0

    def _spend(self, name: str, ms: float) -> None:
        super()._spend(name, ms)
        configuration = self.launched[-1]
        values = dict(pair.split("=") for pair in configuration.split(","))
        self.joules += power(values) * ms / 1e3

    def counter(self) -> Reading:
        return Reading(self.clock_ms / 1e3, self.joules)

    def sleep(self, seconds: float) -> None:
        self.clock_ms += seconds * 1e3
        self.joules += IDLE_W * seconds


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Study]:
    place, backend = tmp_path_factory.mktemp("energy"), Powered()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("autotune.measure.energy.energy_counter", lambda device: backend.counter)
        patch.setattr("autotune.measure.energy._IDLE_S", 0.02)
        patch.setattr("autotune.measure.energy.SECONDS", 0.02)
        # The host's clock is the device's: how long this machine takes for anything does not count.
        clock = SimpleNamespace(perf_counter=lambda: backend.clock_ms / 1e3, sleep=backend.sleep)
        patch.setattr("autotune.measure.energy.time", clock)
        yield sweep(write_family(place / "doubler"), place, backend, protocol=MEASURED).run()


def joules(configuration: Mapping[str, Any]) -> float:
    return power(configuration) * cost(configuration) / 1e3


def test_energy_is_measured_beside_the_time_and_has_a_winner_of_its_own(study: Study) -> None:
    by_time, by_energy = study.decide(), study.decide("energy")
    assert by_time and by_energy and by_energy.control
    assert (by_time.winner.configuration.id, by_energy.winner.configuration.id) == (FAST, FRUGAL)
    measured = by_energy.winner.measurement
    assert measured is not None
    found = measured.figures["energy_j"]
    assert found.value == pytest.approx(joules(by_energy.winner.configuration))
    assert measured.value("power_w") == pytest.approx(200)
    assert found.spread == pytest.approx(0) and measured.time_ms == pytest.approx(2.0)
    control = joules(study.control)
    assert by_energy.over_control.ratio == pytest.approx(control / joules(by_energy.winner.configuration))
    assert by_energy.break_even is None
    assert measured.value("idle_w") == pytest.approx(IDLE_W)


def test_it_is_another_study_than_that_of_times(study: Study, folder: Path, tmp_path: Path) -> None:
    plain = sweep(folder, tmp_path).run()
    assert plain.identity != study.identity
    assert plain.decide("energy") is None
    assert not any(t.measurement and "energy_j" in t.measurement.figures for t in plain.trials)
    assert not {"energy_j", "idle_w"} & set(results_frame([plain]).columns)


def test_the_table_has_it_and_reads_back(study: Study, tmp_path: Path) -> None:
    assert {"energy_j", "energy_spread_relative", "power_w", "idle_w"} <= set(results_frame([study]).columns)
    (again,) = read_results([write_results([study], tmp_path / "results.csv")])
    found, decided = again.decide("energy"), study.decide("energy")
    assert found and decided
    assert found.winner.configuration.id == FRUGAL
    assert found.over_control == decided.over_control
    assert found.winner.value("idle_w") == decided.winner.value("idle_w")


def test_the_policy_file_keeps_it_and_explain_says_it(
    study: Study, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = update(tmp_path / "policies", [study], "energy")
    (item,) = read_policy_file(path).entries.values()
    assert (item.name, item.objective) == ("small (energy)", "energy")
    assert item.cost == item.figure("energy_j").value == pytest.approx(0.4, rel=0.05)
    assert item.figure("power_w").value == pytest.approx(200, rel=0.05)
    assert item.median_ms == pytest.approx(2.0) and item.runner_up_cost > item.cost
    written = yaml.safe_load(path.read_text())["entries"]["small (energy)"]
    assert {"figures", "runner_up_cost", "objective"} <= set(written)
    assert set(written["figures"]) == {"energy_j", "power_w", "idle_w"}
    update(tmp_path / "policies", [study])
    arguments = ["explain", str(folder), "--device", "fake-gpu", "--policies", str(tmp_path / "policies")]
    assert main([*arguments, "--objective", "energy"]) == 0
    shown = capsys.readouterr().out
    assert re.search(
        r"tuned for energy: [34]\d\d mJ ± \d\.\d%, power \d+ W, idle power [\d.]+ W, in 2\.00 ms",
        shown,
    )
    assert main(arguments) == 0
    assert "energy" not in capsys.readouterr().out


def test_an_entry_is_held_against_new_energy(study: Study, folder: Path, tmp_path: Path) -> None:
    (item,) = read_policy_file(update(tmp_path, [study], "energy")).entries.values()
    trials = {trial.configuration: trial for trial in study.trials}
    family = load_family(folder)
    assert acceptance.Claim(family, item).contradictions(trials, 0.1) == []
    claimed = replace(
        item, figures={"energy_j": Figure(item.cost / 2)}, margin_over_control=2 * item.margin_over_control
    )
    said = acceptance.Claim(family, claimed).contradictions(trials, 0.1)
    assert any("more than the recorded energy" in line for line in said)
    assert any("control takes" in line for line in said)


def test_the_terminal_shows_both(study: Study) -> None:
    out = Console(file=io.StringIO(), width=200)
    print_study(study, 1.0, {}, 0, GPU, out, "energy")
    shown = out.file.getvalue()  # type: ignore[attr-defined]
    assert "with it      power 200 W, idle power 70.0 W" in shown
    assert "mJ" in shown and "2.00 ms" in shown


def test_a_counter_that_never_moves_ends_the_measurement() -> None:
    powered, fixed = Powered(), iter(range(10**9))
    execution: Any = SimpleNamespace(run=lambda: None, has_own_plan=True)
    with pytest.raises(
        DeviceError, match=r"energy counter of Fake GPU stood still while it was busy for 3.2 s"
    ):
        EnergyMeter(powered, lambda: Reading(next(fixed) / 1e3, 1.0), 0.0, 0.2)(execution, 1.0)
