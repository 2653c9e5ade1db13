"""Programs as they are declared: what fits together is read, what does not is rejected with the array and the step."""

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from particle_program import PROGRAM, write_families, write_program

from autotune.declaration import make_array
from autotune.errors import AutotuneError, UsageError, WorkloadError
from autotune.program import Given, KernelCall, Program, Read, Repeat, Swap, load_given
from autotune.program.bound import bind_program

Change = Callable[[dict[str, Any]], object]


def refusal(folder: Path, change: Change, **given: Any) -> str:
    content = copy.deepcopy(PROGRAM)
    change(content)
    write_program(folder, content)
    with pytest.raises(AutotuneError) as caught:
        program = Program.read(folder)
        found = load_given(program, "", folder)
        bind_program(program, Given(workload="", arrays={**found.arrays, **given}, scalars=found.scalars))
    return str(caught.value)


def inner(content: dict[str, Any], at: int) -> dict[str, Any]:
    found: dict[str, Any] = content["steps"][0]["steps"][at]
    return found


def test_a_program_is_read_and_its_arrays_have_shapes(tmp_path: Path) -> None:
    program = Program.read(write_program(tmp_path) / "program.yaml")
    bound = bind_program(program, load_given(program, "tiny", tmp_path))
    assert bound.shapes == {"positions": (70, 3), "velocities": (70, 3), "forces": (70, 3), "energies": (70,)}
    assert [call.family.name for calls in bound.calls.values() for call in calls] == [
        "forces",
        "move",
        "energy",
    ]
    assert bound.calls["move"][0].inputs.scalars["dt"] == 0.125
    assert {name: array.dtype for name, array in bound.given.items()} == dict.fromkeys(
        ("positions", "velocities"), np.dtype("float32")
    )


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda c: inner(c, 0).update(call="nowhere"), r"'nowhere'.*and .*/nowhere has no family\.yaml"),
        (lambda c: inner(c, 0)["arrays"].pop("points"), "step forces: no array is given for points"),
        (
            lambda c: inner(c, 0)["arrays"].update(points="position"),
            "'position'.*step forces; did you mean 'positions'",
        ),
        (lambda c: inner(c, 0)["arrays"].update(dots="positions"), "'dots'.*step forces.*points"),
        (
            lambda c: inner(c, 0)["arrays"].update(points="forces"),
            "step forces.*reads array forces.*before a step",
        ),
        (lambda c: c["arrays"].update(positions="input"), "step move: it writes array positions"),
        (lambda c: c["arrays"].update(extra="scratch"), "array extra is in no step"),
        (lambda c: c["arrays"].update(positions="shared"), "shared"),
        (
            lambda c: inner(c, 1)["arrays"].update(v_next="positions"),
            "step move: x_next and v_next both go to",
        ),
        (
            lambda c: inner(c, 2)["arrays"].update(each="forces"),
            r"step energy: array forces has shape \(70, 3\)",
        ),
        (lambda c: inner(c, 1)["scalars"].update(dt="dtt"), "'dtt'.*step move: scalar dt.*did you mean 'dt'"),
        (lambda c: inner(c, 1)["scalars"].update(mass=1), "'mass'.*step move"),
        (lambda c: inner(c, 0).update(set={"axes": "sao"}), "step forces.*'sao'.*did you mean 'soa'"),
        (lambda c: inner(c, 2).update(every=0), "every"),
        (
            lambda c: inner(c, 2).update(every={"choose": [1, "never"]}),
            "step energy: array energies has no content without",
        ),
        (lambda c: c["steps"][0].update(repeat="turns"), "'turns'"),
        (lambda c: inner(c, 1).update(name="forces"), "two steps are called forces"),
        (lambda c: inner(c, 3).update(call="energy"), "give one of call"),
        (lambda c: c["presets"]["aos"].update(foces={}), "'foces'.*preset aos; did you mean 'forces'"),
        (lambda c: c["presets"]["aos"]["forces"].update(axs="aos"), "'axs'.*preset aos: forces.*'axes'"),
        (lambda c: c["presets"]["aos"]["forces"].update(axes="sao"), "'sao'.*did you mean 'soa'"),
        (lambda c: c["arrays"].update({"7s": "scratch"}), "7s"),
        (
            lambda c: c["steps"][0]["steps"].append({"swap": ["positions", "energies"]}),
            "swap positions, energies",
        ),
        (lambda c: c["arrays"].update(positions={"role": "state", "ordered_by": "velocities"}), "ordered_by"),
        (lambda c: c.update(sheme=1), "sheme"),
        (lambda c: inner(c, 0).update(evry=2), "evry"),
    ],
)
def test_what_does_not_fit_together_is_refused(tmp_path: Path, change: Change, told: str) -> None:
    said = refusal(tmp_path, change)
    assert re.search(told, said), said


def test_an_array_may_have_a_capital_as_data_of_families_may(tmp_path: Path) -> None:
    content = copy.deepcopy(PROGRAM)
    content["arrays"]["E"] = content["arrays"].pop("energies")
    inner(content, 2)["arrays"]["each"] = "E"
    inner(content, 3)["read"] = ["E"]
    program = Program.read(write_program(tmp_path, content))
    assert bind_program(program, load_given(program, "tiny", tmp_path)).shapes["E"] == (70,)


def test_arrays_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    nothing: Change = lambda content: None  # noqa: E731
    assert "step forces: array positions has shape (70,)" in refusal(
        tmp_path, nothing, positions=np.zeros(70)
    )
    said = refusal(tmp_path, nothing, positions=np.zeros((5, 3)))
    assert "step move" in said and "v is velocities (70, 3)" in said and "x is positions (5, 3)" in said
    assert "'masses'" in refusal(tmp_path, nothing, masses=np.zeros(3))


def test_what_is_not_given_is_named(tmp_path: Path) -> None:
    program = Program.read(write_program(tmp_path))
    with pytest.raises(WorkloadError, match="array velocities is not given"):
        bind_program(program, Given(workload="", arrays={"positions": np.zeros((4, 3))}, scalars={}))


def test_a_workload_may_come_from_python(tmp_path: Path) -> None:
    write_program(tmp_path)
    (tmp_path / "program.py").write_text(
        "import numpy as np\n\ndef inputs(parameters, root):\n"
        "    many = parameters['count']\n"
        "    return {'positions': np.ones((many, 3)), 'velocities': np.zeros((many, 3)), 'dt': 0.5}\n"
    )
    told = {
        "schema": 1,
        "workload": "few",
        "program": "particles",
        "parameters": {"count": 5},
        "scalars": {"steps": 2},
    }
    (tmp_path / "workloads" / "few.yaml").write_text(yaml.safe_dump(told))
    program = Program.read(tmp_path)
    given = load_given(program, "few", tmp_path)
    assert given.arrays["positions"].shape == (5, 3) and given.scalars == {"dt": 0.5, "steps": 2}
    with pytest.raises(AutotuneError, match="unknown workload"):
        load_given(program, "many", tmp_path)


@pytest.mark.parametrize("drawn", ["integers", "uniform"])
def test_a_random_array_needs_high_above_low(drawn: str, tmp_path: Path) -> None:
    write_program(tmp_path)
    array = {"random": drawn, "shape": [4, 3], "low": 2}
    told = {"schema": 1, "workload": "few", "program": "particles", "arrays": {"positions": array}}
    (tmp_path / "workloads" / "few.yaml").write_text(yaml.safe_dump(told))
    with pytest.raises(
        WorkloadError, match=r"array positions: high \(1, exclusive\) must be above low \(2\)"
    ):
        load_given(Program.read(tmp_path), "few", tmp_path)


def test_a_workload_s_arrays_are_those_of_a_family_s(tmp_path: Path) -> None:
    write_program(tmp_path)
    array = {"random": "uniform", "shape": [4, 3], "low": -2.0, "high": 3.0, "seed": 5}
    told = {"schema": 1, "workload": "few", "program": "particles", "arrays": {"positions": array}}
    (tmp_path / "workloads" / "few.yaml").write_text(yaml.safe_dump(told))
    given = load_given(Program.read(tmp_path), "few", tmp_path)
    np.testing.assert_array_equal(given.arrays["positions"], make_array(array, tmp_path, None, "positions"))


def test_a_program_in_python_is_the_one_in_yaml(tmp_path: Path) -> None:
    write_families(tmp_path)
    program = Program(
        name="particles",
        folder=tmp_path,
        arrays={"positions": "state", "velocities": "state", "next": "state", "forces": "scratch"},
        scalars={"steps": 3},
        steps=[
            Repeat("steps", [
                KernelCall("forces", arrays={"points": "positions", "force": "forces"}),
                KernelCall("move", arrays={"x": "positions", "v": "velocities", "f": "forces", "x_next": "next",
                                     "v_next": "velocities"}),
                Swap("positions", "next"),
                Read(["positions"], every=2),
            ])
        ],
    )  # fmt: skip
    given = {name: np.ones((4, 3)) for name in ("positions", "velocities", "next")}
    bound = bind_program(program, Given(workload="", arrays=given, scalars={}))
    assert bound.shapes["forces"] == (4, 3)
    with pytest.raises(UsageError, match="calls no family"):
        Program(name="empty", arrays={"a": "state"}, steps=[Read(["a"])])
