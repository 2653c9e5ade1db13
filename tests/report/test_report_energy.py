"""What a report says of time against energy."""

from dataclasses import replace

from measured import with_figures
from report_pages import fake_study

from autotune.measure import Figure
from autotune.record import Study, Trial
from autotune.report.blocks import Block
from autotune.report.result_section import roles_of
from autotune.report.trade_offs import choice_blocks
from autotune.report.trials import rows


def powered(trial: Trial) -> Trial:
    """Texture takes a tenth of the power."""
    if trial.measurement is None:
        return trial
    watts = 50.0 if trial.configuration["memory"] == "texture" else 500.0
    joules = watts * trial.measurement.median_ms / 1e3
    figures = {"energy_j": Figure(joules, 0.02), "power_w": Figure(watts), "idle_w": Figure(75.0)}
    measurement = with_figures(trial.measurement, **figures)
    return replace(trial, measurement=measurement)


def blocks(study: Study) -> list[Block]:
    decision = study.decision
    assert decision
    found = choice_blocks(study, decision, rows(study, decision, 10**6), roles_of(study, decision))
    return [block for block in found if block.title == "Time against energy"]


def test_the_front_of_time_and_energy_with_what_has_a_name() -> None:
    plain = fake_study()
    study = replace(plain, trials=tuple(map(powered, plain.trials)))
    (block,) = blocks(study)
    by_time, by_energy = study.decide(), study.decide("energy")
    assert by_time and by_energy and by_energy.winner.configuration != by_time.winner.configuration
    assert block.table and block.chart
    found = {row[-1]: row for row in block.table.rows}
    assert found[by_time.winner.configuration][0] == "winner"
    assert found[by_energy.winner.configuration][0] == "least energy"
    assert found[study.control][0] == "control"
    costs = {t.configuration: (t.time_ms, t.value("energy_j")) for t in study.trials if t.measurement}
    beaten = {
        one
        for one, (ms, joules) in costs.items()
        if any(a <= ms and b <= joules and (a, b) != (ms, joules) for a, b in costs.values())
    }
    assert {one for one, row in found.items() if not row[0]} <= costs.keys() - beaten
    assert costs.keys() - beaten <= found.keys()
    assert " ± 2.0%, power 50.0 W, idle power 75.0 W, in " in block.text


def test_without_energy_there_is_nothing_of_it() -> None:
    assert blocks(fake_study()) == []
