"""--objective: winners by the kernels' time, with the transfer, with the transform too; and the break-even."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from fakes import sweep
from hypothesis import given
from hypothesis import strategies as st
from measured import with_figures
from rich.console import Console
from test_decision import CONTROL, trial

from autotune.cli.commands import main
from autotune.cli.terminal import print_study
from autotune.declaration import family as families
from autotune.declaration import yamlfile
from autotune.errors import PolicyFileError, UnknownName
from autotune.hardware import Device
from autotune.policy.file import Entry
from autotune.policy.file import read_policy_file as read
from autotune.policy.merge import merge_winners, update
from autotune.policy.merge import new_entries as entries
from autotune.policy.selection import candidates, find
from autotune.record.decision import break_even, decide
from autotune.record.study import Study
from autotune.record.trial import Trial

FAST = "block_size=64,memory=readonly"  # the kernels' winner, in the study below dear to lay out
CHEAP = "block_size=64,memory=global"


def laid_out(found: Trial, transform: float, transfer: float = 0.0) -> Trial:
    assert found.measurement is not None
    measurement = with_figures(found.measurement, transform_ms=transform, transfer_ms=transfer)
    return replace(found, measurement=measurement)


@pytest.fixture
def study(folder: Path, tmp_path: Path) -> Study:
    """A sweep in which readonly takes 1 ms and 7 + 1 ms once, global 3 ms and 1 + 2 ms once."""
    done = sweep(folder, tmp_path).run()
    once = {"global": (1.0, 2.0), "readonly": (7.0, 1.0), "texture": (9.0, 9.0)}
    return replace(done, trials=tuple(laid_out(t, *once[t.configuration["memory"]]) for t in done.trials))


# -- who wins -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("objective", "winner", "margin"),
    [("kernel", "a=2,b=x", 3.0), ("with-transfer", "a=2,b=y", 5.0 / 2.5), ("with-transform", "a=1,b=x", 3.1 / 2.5)],
)  # fmt: skip
def test_an_objective_decides_by_its_sum(objective: str, winner: str, margin: float) -> None:
    trials = [
        laid_out(trial(1, "x", 3.0), 0.1, 2.0),
        laid_out(trial(2, "x", 1.0), 8.0, 3.0),
        laid_out(trial(2, "y", 2.0), 9.0, 0.5),
    ]
    found = decide(trials, CONTROL, objective)
    assert found is not None
    assert found.winner.configuration.id == winner
    if objective != "with-transform":  # there control itself wins
        assert found.over_control.ratio == pytest.approx(margin)
    assert found.objective == objective
    with pytest.raises(UnknownName, match="did you mean 'with-transfer'"):
        decide(trials, CONTROL, "with-transfers")


def test_a_tie_is_one_of_the_sum() -> None:
    """5 % of the kernel do not matter if a transform takes 20 times as long."""
    trials = [laid_out(trial(1, "y", 1.00), 20.0), laid_out(trial(2, "y", 1.05), 20.0)]
    alone, together = decide(trials, CONTROL), decide(trials, CONTROL, "with-transform")
    assert alone is not None and together is not None
    assert (len(alone.tie_set), len(together.tie_set)) == (1, 2)
    # … and is broken by what a second launch would cost, before occupancy.
    trials[1] = laid_out(trial(2, "y", 1.05, footprint=0), 19.9)
    trials[0] = laid_out(trial(1, "y", 1.00, occupancy=0.5, footprint=100), 20.0)
    again = decide(trials, CONTROL, "with-transform")
    assert again is not None and again.winner.configuration.id == "a=1,b=y"


def test_what_is_cheap_to_lay_out_need_not_have_been_a_finalist() -> None:
    trials = [laid_out(trial(1, "y", 1.0, retimed=1.0), 9.0), laid_out(trial(2, "y", 2.0), 0.0)]
    found = decide(trials, CONTROL, "with-transform")
    assert found is not None and found.winner.configuration.id == "a=2,b=y"


# -- break-even ---------------------------------------------------------------------------------------------

TIMES = st.floats(0.001, 1000.0)


@given(TIMES, TIMES, TIMES, TIMES)
def test_the_break_even_is_the_first_number_of_launches_that_pays(
    lasting_ms: float, lasting_once: float, single_ms: float, single_once: float
) -> None:
    lasting = laid_out(trial(1, "y", lasting_ms), lasting_once)
    single = laid_out(trial(2, "y", single_ms), single_once)

    def total(each: Trial, launches: int) -> float:
        return each.once_ms + launches * each.time_ms

    found = break_even(lasting, single)
    if found is None:
        assert lasting.time_ms >= single.time_ms or lasting.once_ms <= single.once_ms
        return
    assert (found.lasting, found.single) == (lasting.configuration, single.configuration)
    assert total(lasting, found.launches) <= total(single, found.launches) * (1 + 1e-9)
    if found.launches > 1:
        assert total(lasting, found.launches - 1) >= total(single, found.launches - 1) * (1 - 1e-9)


def test_it_is_in_the_entry_and_in_the_summary(study: Study) -> None:
    (kernel,), (single,) = entries(study), entries(study, "with-transform")
    # (8 - 3) ms more once, 2 ms less a launch
    assert (kernel.break_even, kernel.break_even_with) == (3, CHEAP)
    assert (single.break_even, single.break_even_with) == (3, FAST)
    for objective, said in (
        ("kernel", "from 3 launches on the same data the winner pays; below that, use block_size=64"),
        ("with-transform", f"the same data {FAST.replace(',', ', ')} pays; below that, use the winner"),
    ):
        out = Console(file=io.StringIO(), width=200)
        print_study(study, 1.0, {}, 0, Device(kind="cuda", name="Fake GPU", arch="sm_90"), out, objective)
        assert said in out.file.getvalue()  # type: ignore[attr-defined]


def test_the_summary_leaves_out_sizes_that_never_change(study: Study) -> None:
    sizes = {"n": 203, "taps": 7, "m": 301}
    told = replace(study, about=study.about.update({"features": sizes, "constants": ["taps"]}))
    out = Console(file=io.StringIO(), width=200)
    print_study(told, 1.0, {}, 0, Device(kind="cpu", name="Some", arch=""), out)
    assert "(203 x 301), cpu: Some" in out.file.getvalue()  # type: ignore[attr-defined]


# -- the policy file ----------------------------------------------------------------------------------------


def test_entries_of_two_objectives_stand_beside_each_other(study: Study, tmp_path: Path) -> None:
    path = update(tmp_path, [study])
    alone = read(path)
    update(tmp_path, [study], "with-transform")
    both = read(path)
    yamlfile.check(yamlfile.read(path, PolicyFileError), "policy", path, PolicyFileError)
    assert list(both.entries) == ["small", "small (with-transform)"]
    assert both.entries["small"] == alone.entries["small"]
    assert (both.default, both.default_over, both.prediction) == (
        alone.default,
        alone.default_over,
        alone.prediction,
    )
    item = both.entries["small (with-transform)"]
    assert (item.objective, item.median_ms, item.cost) == ("with-transform", 3.0, 6.0)
    assert item.margin_over_control == pytest.approx(7.5 / 6.0, rel=0.01)
    assert item.runner_up_ms > 6.0
    assert "objective" not in path.read_text().partition("small (with-transform)")[0]


def test_a_better_entry_stays_by_what_its_objective_counts(study: Study) -> None:
    first = merge_winners(None, [study], "with-transform")
    slower = replace(
        study, trials=tuple(laid_out(t, 99.0) for t in study.trials if t.configuration.id != CHEAP)
    )
    kept = merge_winners(first, [slower], "with-transform").entries["small (with-transform)"]
    assert kept == first.entries["small (with-transform)"]


def test_an_objective_that_is_none_is_refused(study: Study, tmp_path: Path) -> None:
    path = update(tmp_path, [study], "with-transfer")
    path.write_text(path.read_text().replace("objective: with-transfer", "objective: transfer"))
    with pytest.raises(PolicyFileError, match="transfer"):
        read(path)


# -- selection ----------------------------------------------------------------------------------------------


def taken(folder: Path, policies: Path, objective: str, n: int = 1000) -> tuple[str, str, float]:
    family = families.load_family(folder)
    known, _ = find(family, Device(kind="cuda", name="Fake GPU", arch="sm_90"), [policies])
    first = candidates(family, known, {"n": n}, {}, objective=objective)[0]
    assert first.configuration is not None
    return first.match, first.configuration.id, first.expected_ms


def test_selection_keeps_objectives_apart(folder: Path, study: Study, tmp_path: Path) -> None:
    policies = tmp_path / "policies"
    update(policies, [study])
    assert taken(folder, policies, "with-transform")[1] == FAST  # there is no other
    update(policies, [study], "with-transform")
    assert taken(folder, policies, "kernel") == ("exact", FAST, 1.0)
    assert taken(folder, policies, "with-transform") == ("exact", CHEAP, 3.0)
    assert taken(folder, policies, "with-transfer")[1] == FAST
    assert taken(folder, policies, "with-transform", n=4000)[:2] == ("nearest", CHEAP)
    with pytest.raises(UnknownName, match="objective"):
        taken(folder, policies, "kernels")


def test_explain_says_it(
    folder: Path, study: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policies = tmp_path / "policies"
    update(policies, [study])
    arguments = ["explain", str(folder), "--device", "fake-gpu", "--policies", str(policies)]
    assert main(arguments) == 0
    assert (
        f"break-even: from 3 launches on the same data it pays; below that, use {CHEAP}"
        in capsys.readouterr().out
    )
    assert main([*arguments, "--objective", "with-transform"]) == 0
    assert "tuned for kernel: 1.00 ms; none is tuned for with-transform" in capsys.readouterr().out
    update(policies, [study], "with-transform")
    assert main([*arguments, "--objective", "with-transform"]) == 0
    shown = capsys.readouterr().out
    assert "tuned for with-transform: 6.00 ms" in shown
    assert f"break-even: from 3 launches on the same data {FAST} pays; below that, use it" in shown
    assert main([*arguments, "--objective", "with"]) == 2


def test_the_cost_of_an_entry_is_that_of_its_trial(study: Study) -> None:
    for objective in ("kernel", "with-transfer", "with-transform"):
        item: Entry = entries(study, objective)[0]
        decision = decide(study.trials, study.control, objective)
        assert decision is not None
        assert item.cost == pytest.approx(decision.winner.cost(objective))


def test_the_command_refuses_another_word(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", str(folder), "--objective", "with-transfers"]) == 2
    assert "did you mean 'with-transfer'" in capsys.readouterr().err
