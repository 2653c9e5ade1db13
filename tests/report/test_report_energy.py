"""What a report says of time against energy."""

from dataclasses import replace

from report_pages import fake_study

from autotune.record import ENERGY, Study, Trial
from autotune.report.blocks import Block
from autotune.report.energy import energy_blocks
from autotune.report.trials import rows
from autotune.report.verdict import facts, roles_of


def powered(trial: Trial) -> Trial:
    """Texture takes a tenth of the power."""
    if trial.measurement is None:
        return trial
    watts = 50.0 if trial.configuration["memory"] == "texture" else 500.0
    joules = watts * trial.measurement.median_ms / 1e3
    measurement = replace(trial.measurement, energy_j=joules, energy_spread=0.02, power_w=watts)
    return replace(trial, measurement=measurement)


def blocks(study: Study) -> list[Block]:
    decision = study.decision
    return energy_blocks(study, rows(study, decision, 10**6), roles_of(study, decision))


def test_the_front_of_time_and_energy_with_what_has_a_name() -> None:
    plain = fake_study()
    study = replace(plain, trials=tuple(map(powered, plain.trials)), about=plain.about.told({"idle_w": 75.0}))
    (block,) = blocks(study)
    by_time, by_energy = study.decided(), study.decided(ENERGY)
    assert by_time and by_energy and by_energy.winner.configuration != by_time.winner.configuration
    assert block.table and block.chart
    found = {row[-1]: row for row in block.table.rows}
    assert found[by_time.winner.configuration][0] == "winner"
    assert found[by_energy.winner.configuration][0] == "least energy"
    assert found[study.control][0] == "control"
    costs = {t.configuration: (t.time_ms, t.measurement.energy_j) for t in study.trials if t.measurement}
    beaten = {
        one
        for one, (ms, joules) in costs.items()
        if any(a <= ms and b <= joules and (a, b) != (ms, joules) for a, b in costs.values())
    }
    assert {one for one, row in found.items() if not row[0]} <= costs.keys() - beaten
    assert costs.keys() - beaten <= found.keys()
    assert "(±2.0 %), at 50.0 W in " in block.text and "takes 75.0 W, which is in all" in block.text
    assert ("power with nothing to do", "75.0 W") in facts(study)


def test_without_energy_there_is_nothing_of_it() -> None:
    assert blocks(fake_study()) == []
