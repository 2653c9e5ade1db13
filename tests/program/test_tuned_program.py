"""A program tuned on the cpu: measured, solved, proved, kept, loaded, explained and reported."""

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from particle_program import write_program

import autotune
from autotune.cli import main
from autotune.device import open_backend
from autotune.errors import CompilerError, PolicyFileError, UnknownName
from autotune.hardware import Device
from autotune.program import Program, ProgramBudget, Tuned, load_given, run_control, save, tune, write_report
from autotune.program.aging import judge
from autotune.program.costs import cost
from autotune.program.policy import find
from autotune.program.record import Record
from autotune.program.report import stories
from autotune.program.solve import greedy, solve
from autotune.program.survey import select

BUDGET = ProgramBudget(configurations=8, samples=2, turns=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_program(tmp_path_factory.mktemp("tuned"))


@pytest.fixture(scope="module")
def tuned(folder: Path) -> Tuned:
    program = Program.read(folder)
    return tune(program, load_given(program, "", folder), "cpu", folder / "out", BUDGET, processes=1)


@pytest.fixture
def policies(tuned: Tuned, tmp_path: Path) -> Iterator[Path]:
    save(tuned, tmp_path / "policies")
    yield tmp_path / "policies"


def test_the_table_has_the_assignments_that_are_compared(tuned: Tuned) -> None:
    names = [row.name for row in tuned.rows]
    assert names[:1] == ["chosen"] and {"control", "aos", "soa", "own best", "greedy", "runner-up 1"} <= {
        *names
    }
    assert all(not row.refusal and row.measured_ms > 0 and row.predicted_ms > 0 for row in tuned.rows)
    assert tuned.chosen.measured_ms <= 1.0102 * min(row.measured_ms for row in tuned.rows)
    assert tuned.compared > 20
    soa = tuned.row("soa")
    assert soa is not None and {
        dict(one.configuration).get("axes") for one in soa.assignment.chosen.values()
    } == {"soa"}
    assert not soa.cost.conversions


def test_the_exact_answer_is_the_least_of_all_predictions(tuned: Tuned) -> None:
    best = tuned.solution.cost.ms
    assert tuned.solution.gap < 1e-6 and tuned.solution.bound == pytest.approx(best)
    assert all(best <= row.cost.ms * (1 + 1e-9) for row in tuned.rows)
    assert cost(tuned.problem, greedy(tuned.problem)).ms >= best * (1 - 1e-9)


def test_conversions_pay_where_kernels_disagree_enough(tuned: Tuned) -> None:
    """With times that are planted: what one step loses in another layout is more than a conversion takes."""

    def planted(ms: float) -> set[str]:
        options = {
            step: tuple(
                replace(one, ms=1.0 if dict(one.of.configuration)["axes"] == wanted else 9.0) for one in many
            )
            for (step, many), wanted in zip(tuned.problem.options.items(), ("soa", "aos", "aos"), strict=True)
        }
        problem = replace(tuned.problem, options=options, convert_ms=lambda *_: ms, read_ms=lambda *_: 0.0)
        return {one.array for one in solve(problem).cost.conversions}

    assert planted(0.5) == {"positions"}
    assert planted(50.0) == set()


def test_little_is_measured_and_nothing_twice(tuned: Tuned, folder: Path) -> None:
    lines = [json.loads(line) for line in (folder / "out" / "program.jsonl").read_text().splitlines()]
    steps = [line for line in lines if line["kind"] == "step"]
    assert len(steps) == tuned.counts.in_loop == sum(len(many) for many in tuned.problem.options.values())
    assert tuned.counts.runs == max(len(many) for many in tuned.problem.options.values())
    assert tuned.counts.assignments == np.prod([len(many) for many in tuned.problem.options.values()])
    program = Program.read(folder)
    again = tune(program, load_given(program, "", folder), "cpu", folder / "out", BUDGET, processes=1)
    assert again.identity == tuned.identity
    now = [json.loads(line) for line in (folder / "out" / "program.jsonl").read_text().splitlines()]
    assert [line for line in now if line["kind"] == "step"] == steps
    assert again.solution.cost.ms == pytest.approx(tuned.solution.cost.ms)


def test_little_time_leaves_a_right_answer_of_less(tuned: Tuned, folder: Path) -> None:
    program, said = Program.read(folder), list[str]()
    budget = replace(BUDGET, configurations=24, seconds=1e-3)
    found = tune(
        program,
        load_given(program, "", folder),
        "cpu",
        folder / "hasty",
        budget,
        processes=1,
        note=said.append,
    )
    assert not found.chosen.refusal and found.chosen.measured_ms > 0
    assert [row.name for row in found.rows][:2] == ["chosen", "control"] and found.row("greedy") is None
    assert any("greedy: not compared, no time is left" in line for line in said)
    assert any(line.endswith("not timed in the loop: no time is left") for line in said)
    assert any(line.startswith("forces: 4 of") for line in said)
    assert [line.split(":")[0] for line in said if line.endswith(" s")] == [*found.seconds]


def test_every_form_is_swept_and_the_budget_holds(tuned: Tuned) -> None:
    (call,) = tuned.bound.calls["forces"]
    limits = tuned.device.limits
    few, forms, possible = select(call, limits, ProgramBudget(configurations=4), [])
    assert (len(few), forms, possible) == (4, 4, 16)
    assert len({one.key for one in few}) == 4
    more, _, _ = select(call, limits, ProgramBudget(configurations=8), [])
    assert {one.configuration for one in few} <= {one.configuration for one in more} and len(more) == 8


def test_the_policy_file_says_what_was_chosen_and_is_loaded(
    tuned: Tuned, folder: Path, policies: Path
) -> None:
    (path,) = policies.rglob("*.yaml")
    entry = yaml.safe_load(path.read_text())["entries"]["tiny"]
    assert entry["steps"].keys() == {"forces", "move", "energy"} and entry["regret"] >= 0
    assert entry["beside_ms"].keys() == {row.name for row in tuned.rows[1:]}
    given = load_given(Program.read(folder), "", folder)
    right = run_control(Program.read(folder), given.arrays, device="cpu")
    read: list[Any] = []
    with autotune.load(folder, device="cpu", policies=policies) as program:
        found = program.explain(**given.arrays)
        assert (
            found.origin.endswith("tiny (these sizes)") and found.assignment.id == tuned.chosen.assignment.id
        )
        for _ in range(2):
            got = program(**given.arrays, on_read=read.append)
            for name, array in right.items():
                np.testing.assert_allclose(got[name], array, rtol=1e-5, atol=1e-6)
        assert len(read) == 4
        longer = program(**given.arrays, steps=7)
        assert not np.allclose(longer["positions"], right["positions"])
        few = {name: array[:9] for name, array in given.arrays.items()}
        assert "the nearest sizes" in program.explain(**few).origin
        assert program(**few)["positions"].shape == (9, 3)


def test_arrays_stay_on_the_device_between_runs(tuned: Tuned, folder: Path, policies: Path) -> None:
    given = load_given(Program.read(folder), "", folder)
    twice = run_control(Program.read(folder), given.arrays, {"steps": 12}, device="cpu")
    with (
        autotune.load(folder, device="cpu", policies=policies) as program,
        program.start(**given.arrays) as running,
    ):
        running.run()
        running.run()
        np.testing.assert_allclose(running.fetch("positions"), twice["positions"], rtol=1e-4, atol=1e-5)
        with pytest.raises(UnknownName, match="'masses'"):
            running.fetch("masses")


def edited(before: str, after: str) -> Any:
    return lambda file, _: file.write_text(re.sub(before, after, file.read_text()))


def source_changed(_: Path, folder: Path) -> None:
    source = folder / "forces" / "forces.cu"
    source.write_text(source.read_text() + "// another\n")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (edited("program: particles", ""), "has no program"),
        (edited("axes: (aos|soa)", "axes: oas"), "unknown value"),
        (edited("program_digest: ", "program_digest: 0"), "program.yaml"),
        (source_changed, "source"),
    ],
)
def test_a_file_that_is_not_of_this_program_is_passed_over(
    policies: Path, tmp_path: Path, change: Any, told: str
) -> None:
    """With its reason, and the program runs as declared."""
    folder = write_program(tmp_path / "other")
    (path,) = policies.rglob("*.yaml")
    change(path, folder)
    given = load_given(Program.read(folder), "", folder)
    with autotune.load(folder, device="cpu", policies=policies) as program:
        found = program.explain(**given.arrays)
        assert found.entry is None and any(re.search(told, reason) for reason in found.passed), found.passed
        with pytest.warns(UserWarning, match="not tuned"):
            program.start(**given.arrays).close()


def test_a_file_of_another_program_is_not_written_over(tuned: Tuned, policies: Path) -> None:
    (path,) = policies.rglob("*.yaml")
    path.write_text(path.read_text().replace("program: particles", "program: others"))
    with pytest.raises(PolicyFileError, match="of program others"):
        save(tuned, policies)
    assert "program: others" in path.read_text()


def test_it_says_who_gave_way(tuned: Tuned) -> None:
    options = {
        step: tuple(
            replace(one, ms=1.0 if dict(one.of.configuration)["axes"] == wanted else 1.5) for one in many
        )
        for (step, many), wanted in zip(tuned.problem.options.items(), ("soa", "aos", "aos"), strict=True)
    }
    problem = replace(tuned.problem, options=options, convert_ms=lambda *_: 9.0, read_ms=lambda *_: 0.0)
    told = stories(problem, solve(problem).picks, tuned.bound.data)["positions"]
    gave = [line for line in told if "gave way to" in line]
    assert len(gave) == 1 and gave[0].endswith(": 500 µs more a run")
    assert any("and has it" in line for line in told) and not any("copied" in line for line in told)
    cheap = replace(problem, convert_ms=lambda *_: 0.001)
    told = stories(cheap, solve(cheap).picks, tuned.bound.data)["positions"]
    assert any("copied from" in line and "1.00 µs each" in line for line in told)


def test_the_report_has_the_picture_and_the_table(tuned: Tuned, tmp_path: Path) -> None:
    text = write_report(tuned, tmp_path / "report.html").read_text()
    assert text.count("<svg") == 1 and "default-src 'none'" in text and "<script" not in text
    for step in tuned.problem.options:
        assert f">{step}</text>" in text
    for row in tuned.rows:
        assert f"<td>{row.name}</td>" in text
    for name in tuned.bound.data:
        assert f">{name}</text>" in text
    own = tuned.row("own best")
    assert own is not None
    shown = replace(tuned, rows=(replace(own, name="chosen"), *tuned.rows[1:]))
    drawn = write_report(shown, tmp_path / "own.html").read_text().count("conversion: ")
    assert drawn == sum(len(one.readers) for one in own.cost.conversions)


def test_a_step_that_fails_leaves_the_rest(tmp_path: Path) -> None:
    """One value does not compile, one is wrong: the others are measured, and each failure has its reason."""
    folder = write_program(tmp_path)
    source, family = folder / "energy" / "energy.cu", folder / "energy" / "family.yaml"
    text = source.read_text().replace("float sum = 0;", "float sum = Policy::bad == 2 ? 1 : 0;")
    source.write_text(text.replace("each.store", 'static_assert(Policy::bad != 1, "not so");\n  each.store'))
    told = yaml.safe_load(family.read_text())
    told["policies"]["bad"] = {"values": [0, 1, 2], "default": 0}
    family.write_text(yaml.safe_dump(told))
    program = Program.read(folder)
    found = tune(program, load_given(program, "", folder), "cpu", folder / "out", BUDGET, processes=1)
    failed = found.failed["energy"]
    assert failed.keys() == {f"axes={axes},bad={bad}" for axes in ("aos", "soa") for bad in (1, 2)}
    assert all(("compile_failed" if "bad=1" in one else "wrong_result") in why for one, why in failed.items())
    assert not found.chosen.refusal
    text = write_report(found, tmp_path / "report.html").read_text()
    assert "What failed" in text and "not so" in text
    told["policies"]["bad"]["default"] = 1
    family.write_text(yaml.safe_dump(told))
    with pytest.raises(CompilerError, match="step energy: "):
        tune(program, load_given(program, "", folder), "cpu", folder / "out", BUDGET, processes=1)


def test_orders_that_age() -> None:
    """A step of 10 ms behind which turns take 1 ms, and then 0.1 ms more each, until they take 5."""
    turns = [min(5.0, 1.0 + 0.1 * age) for age in range(80)]
    aged = judge("sort", 10.0, turns, (10, 5, 20, 40, 0))
    assert aged.chosen == 10 and aged.by_period[10] == pytest.approx(1.0 + 1.45)
    assert aged.by_period[0] == 5.0 and aged.by_period[5] == pytest.approx(2.0 + 1.2)
    assert aged.pays_after == 3  # it has gained 4, 3.9 and 3.8 by then
    never = judge("sort", 10.0, [1.0] * 40, (10, 0))
    assert (never.chosen, never.pays_after) == (0, 0)


def test_how_often_a_step_runs_is_chosen(tmp_path: Path, folder: Path) -> None:
    content = yaml.safe_load((folder / "program.yaml").read_text())
    content["steps"][0]["steps"][2]["every"] = {"choose": [3, 1]}
    write_program(tmp_path, content)
    program = Program.read(tmp_path)
    found = tune(program, load_given(program, "", tmp_path), "cpu", tmp_path / "out", BUDGET, processes=1)
    (aged,) = found.aged
    assert aged.step == "energy" and aged.by_period.keys() == {3, 1} and len(aged.turn_ms) == 6
    assert found.chosen.assignment.periods == {"energy": aged.chosen}
    path = save(found, tmp_path / "policies")
    for period in (1, 3):
        content = yaml.safe_load(path.read_text())
        content["entries"]["tiny"]["periods"] = {"energy": period}
        path.write_text(yaml.safe_dump(content))
        assert find(found.bound, found.device, tmp_path / "policies").assignment.periods == {"energy": period}


def test_the_command_tunes_explains_and_runs(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["program", str(folder), "--device", "cpu", "--policies", str(tmp_path / "policies")]
    assert main([*words, "--explain"]) == 8
    assert "no policy file" in capsys.readouterr().err
    assert main([*words, "--budget", "8", "--out", str(folder / "command"), "--processes", "1"]) == 0
    said = capsys.readouterr().out
    assert "assignment" in said and "runner-up 1" in said and (folder / "command" / "report.html").is_file()
    assert main([*words, "--explain"]) == 0
    assert "positions (float32 [count, axis])" in capsys.readouterr().out
    assert main([*words, "--control"]) == 0
    assert "positions: float32 (70, 3)" in capsys.readouterr().out
    assert main(["program", str(tmp_path)]) == 2


def test_files_of_other_devices_are_not_looked_at(tuned: Tuned, policies: Path) -> None:
    other = Device(kind="cpu", name="another", arch="x86_64")
    assert find(tuned.bound, other, policies).entry is None


def test_the_entry_of_the_nearest_sizes_is_taken(tuned: Tuned, policies: Path) -> None:
    (path,) = policies.rglob("*.yaml")
    content = yaml.safe_load(path.read_text())
    entry = content["entries"]["tiny"]
    shapes = {name: [100 * shape[0], *shape[1:]] for name, shape in entry["shapes"].items()}
    content["entries"] = {"vast": {**copy.deepcopy(entry), "shapes": shapes}, "tiny": entry}
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    assert find(tuned.bound, tuned.device, policies).origin.endswith("tiny (these sizes)")


def test_lines_of_another_input_or_of_a_run_that_was_killed_are_passed_over(
    tuned: Tuned, tmp_path: Path
) -> None:
    path, bound = tmp_path / "program.jsonl", tuned.bound
    with open_backend("cpu") as backend:
        Record(path, bound, backend).add({"kind": "queue", "ms": 1.5})
        path.write_text(path.read_text() + '{"kind": "que')
        assert [line["ms"] for line in Record(path, bound, backend).find(kind="queue")] == [1.5]
        for other in (
            replace(bound, scalars={**bound.scalars, "dt": 0.5}),
            replace(bound, given={**bound.given, "positions": bound.given["positions"] + 1}),
        ):
            assert not Record(path, other, backend).find(kind="queue")
