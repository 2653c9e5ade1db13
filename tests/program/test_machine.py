"""A program on a device: the right results in any layouts, with conversions between them."""

import random
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from numpy.typing import NDArray
from particle_program import write_families, write_program

from autotune import Kernel
from autotune.compile import Cache, default_root
from autotune.device import open_backend
from autotune.errors import CompilerError
from autotune.program import Either, Given, KernelCall, Program, Repeat, Swap, load_given, run_control
from autotune.program.bound import BoundProgram, bind_program
from autotune.program.candidates import Assignment, candidates, control
from autotune.program.conversion import Converter, FormConversion
from autotune.program.forms import Form
from autotune.program.machine import Machine
from autotune.program.proving import WholeProof
from autotune.program.schedule import segments

CPU = open_backend("cpu")


@pytest.fixture(scope="module")
def bound(tmp_path_factory: pytest.TempPathFactory) -> BoundProgram:
    folder = write_program(tmp_path_factory.mktemp("particles"))
    program = Program.read(folder)
    return bind_program(program, load_given(program, "", folder))


@pytest.fixture
def cache() -> Iterator[Cache]:
    yield Cache(default_root())


def expected(bound: BoundProgram, turns: int = 6) -> dict[str, NDArray[Any]]:
    x, v = (bound.given[name].astype(np.float64) for name in ("positions", "velocities"))
    for turn in range(turns):
        v = v + 0.125 * (-x + 0.5 * np.roll(x, -1, axis=1))
        x = x + 0.125 * v
        if turn % 3 == 0:
            energies = 0.5 * (v * v).sum(axis=1)
    return {"positions": x, "velocities": v, "energies": energies}


def drawn(bound: BoundProgram, seed: int) -> Assignment:
    chosen = random.Random(seed)
    groups = {step: candidates(calls[0], CPU.device.limits, 1000) for step, calls in bound.calls.items()}
    return Assignment(
        {step: chosen.choice(chosen.choice([*found.values()])) for step, found in groups.items()}
    )


def test_the_program_as_declared_computes_what_it_says(bound: BoundProgram) -> None:
    read: list[NDArray[Any]] = []
    got = run_control(
        bound.program,
        bound.given,
        device="cpu",
        on_read=lambda arrays: read.append(arrays["energies"].copy()),
    )
    assert got.keys() == {"positions", "velocities", "energies"}
    for name, right in expected(bound).items():
        np.testing.assert_allclose(got[name], right, rtol=1e-4, atol=1e-5)
    assert len(read) == 2
    np.testing.assert_allclose(read[0], expected(bound, 1)["energies"], rtol=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_any_assignment_gives_the_same_results(bound: BoundProgram, cache: Cache, seed: int) -> None:
    with Machine(bound, CPU, cache) as machine:
        for again in range(2):  # one assignment after another, on what the last one left
            assignment = drawn(bound, seed + 10 * again)
            machine.start()
            machine.run_all(assignment)
            for name, right in expected(bound).items():
                np.testing.assert_allclose(
                    machine.fetch(name), right, rtol=1e-4, atol=1e-5, err_msg=assignment.id
                )


def test_turns_that_are_repeated_are_replayed(bound: BoundProgram, cache: Cache) -> None:
    recorded = []

    class Recording:
        def __getattr__(self, name: str) -> Any:
            return getattr(CPU, name)

        def record(self, steps: Any) -> Any:
            recorded.append(steps)
            return CPU.record(steps)

    with Machine(bound, Recording(), cache) as machine:
        assignment = drawn(bound, 3)
        for _ in range(3):
            machine.start()
            machine.run_all(assignment)
            np.testing.assert_allclose(
                machine.fetch("positions"), expected(bound)["positions"], rtol=1e-4, atol=1e-5
            )
        assert recorded


def test_conversions_are_made_where_forms_differ_and_only_there(bound: BoundProgram, cache: Cache) -> None:
    groups = {step: candidates(calls[0], CPU.device.limits, 1000) for step, calls in bound.calls.items()}

    def pick(step: str, **values: str) -> Any:
        return next(
            one for one in chain(*groups[step].values()) if values.items() <= dict(one.configuration).items()
        )

    forces, move = pick("forces", axes="soa", force_axes="soa"), pick("move", axes="soa", rest="soa")
    alike = Assignment({"forces": forces, "move": move, "energy": pick("energy", axes="soa")})
    other = Assignment({**alike.chosen, "energy": pick("energy", axes="aos")})
    (first, *rest) = segments(bound, {})
    with Machine(bound, CPU, cache) as machine:
        for assignment, due in ((alike, []), (other, ["velocities"])):
            machine.start()
            made = [action for segment in (first, *rest) for action in machine.actions(assignment, segment)]
            converted = [action.array for action in made if action.kind == "convert"]
            assert converted == due * 2  # in turns 0 and 3
            assert sum(action.kind == "call" for action in made) == 6 + 6 + 2


def test_names_may_be_swapped(tmp_path: Path) -> None:
    write_families(tmp_path)
    program = Program(
        name="swapping", folder=tmp_path,
        arrays={"a": "state", "b": "state", "v": "input", "f": "input", "w": "output"},
        steps=[
            Repeat(3, [
                KernelCall("move", arrays={"x": "a", "x_next": "b", "v_next": "w"}, scalars={"dt": 1}),
                Swap("a", "b"),
            ])
        ],
    )  # fmt: skip
    ones = np.ones((4, 3))
    got = run_control(program, {"a": 0 * ones, "b": 7 * ones, "v": ones, "f": ones}, device="cpu")
    np.testing.assert_array_equal(got["a"], 6 * ones)
    np.testing.assert_array_equal(got["b"], 4 * ones)


def test_a_step_may_choose_between_calls(tmp_path: Path, cache: Cache) -> None:
    write_families(tmp_path)
    calls = [
        KernelCall("forces", arrays={"points": "x", "force": "f"}, scalars={"strength": strength})
        for strength in (1, 2)
    ]
    program = Program(
        name="choosing", folder=tmp_path, arrays={"x": "input", "f": "output"}, steps=[Either("force", calls)]
    )
    x = np.ones((4, 3))
    bound = bind_program(program, Given(workload="", arrays={"x": x}, scalars={}))
    first = control(bound, {}, CPU.device.limits)
    other = next(iter(candidates(bound.calls["force"][1], CPU.device.limits, 10).values()))[0]
    with Machine(bound, CPU, cache) as machine:
        for assignment, right in ((first, -0.5), (Assignment({"force": other}), -1.5)):
            machine.start()
            machine.run_all(assignment)
            np.testing.assert_allclose(machine.fetch("f"), right * np.ones((4, 3)))


def _line(role: str) -> dict[str, Any]:
    return {"role": role, "type": "float32", "shape": ["n"]}


_SHIFT = """
#include "autotune/array.cuh"
template <class Policy>
__global__ void __launch_bounds__(32) shift(typename Policy::a a, typename Policy::b b) {
  for (unsigned i = 0; i < a.extent(0); ++i) b.store(a.load(i ? i - 1 : a.extent(0) - 1) + 1.0f, i);
}
"""


def test_a_kernel_that_reads_what_it_has_overwritten_is_found_out(tmp_path: Path, cache: Cache) -> None:
    """In place it is another program than the one that is declared."""
    told = {
        "schema": 1, "family": "shift", "source": "shift.cu", "reference": "control", "tolerance": {"relative": 1e-6},
        "data": {"a": _line("input"), "b": _line("output")},
        "kernels": {"shift": {"arguments": ["a", "b"], "grid": [1], "block": [1]}},
        "policies": {"pad": {"layout": "padding", "data": ["b"], "values": [1, 4], "default": 1}},
    }  # fmt: skip
    (tmp_path / "shift").mkdir()
    (tmp_path / "shift" / "shift.cu").write_text(_SHIFT)
    (tmp_path / "shift" / "family.yaml").write_text(yaml.safe_dump(told))
    program = Program(
        name="shifting",
        folder=tmp_path,
        arrays={"a": "state"},
        steps=[Repeat(2, [KernelCall("shift", arrays={"b": "a"})])],
    )
    bound = bind_program(program, Given(workload="", arrays={"a": np.arange(5)}, scalars={}))
    declared = control(bound, {}, CPU.device.limits)
    with Machine(bound, CPU, cache, apart=True) as reference, Machine(bound, CPU, cache) as machine:
        reference.run(declared, list(segments(bound, {}, 1)))
        np.testing.assert_array_equal(reference.fetch("a"), np.roll(np.arange(5), 1) + 1)
        proof = WholeProof(reference, declared)
        assert "step shift, run 1: array a differs in" in proof.find_difference(
            machine, declared, list(segments(bound, {}))
        )


def test_every_layout_of_records_is_converted_into_every_other(tmp_path: Path, cache: Cache) -> None:
    from autotune.layout import Data, Field, layout_of

    data = Data(name="bodies", role="input", record="Body", shape=("body",),
                fields=tuple(Field(name, "float32") for name in ("x", "y", "z", "mass")))  # fmt: skip
    shape, converter = (37,), Converter(CPU, cache)
    content = np.arange(4 * 37, dtype=np.float32).view(data.dtype).reshape(shape)
    forms = [
        Form.make(layout_of(data, {"records": kind}), shape)
        for kind in ("aos", "soa", "aosoa8", "x+y-z-mass")
    ]
    pairs = [FormConversion(before, after, shape) for before in forms for after in forms if before != after]
    converter.prepare(pairs)
    for pair in pairs:
        source = CPU.place(pair.before.layout.apply(content))
        target = CPU.place(pair.after.layout.room(shape))
        converter.make_copy(pair, source, target)()
        kept = pair.after.layout.room(shape)
        from dataclasses import replace

        got = pair.after.layout.restore(replace(kept, buffer=CPU.download(target)), shape)
        np.testing.assert_array_equal(got, content)
    assert len({form.digest for form in forms}) == 4


def test_a_form_is_the_same_whatever_memory_a_kernel_reads_it_through() -> None:
    from autotune.layout import Data, Field, layout_of

    data = Data(name="grid", role="input", fields=(Field("", "float32"),), shape=("row", "column"))
    shape = (6, 8)
    plain = Form.make(layout_of(data, {}), shape)
    assert Form.make(layout_of(data, {"memory": "texture"}), shape) == plain
    assert (
        Form.make(layout_of(data, {"padding": 4}), shape) == plain
    )  # eight columns are whole multiples of four
    assert Form.make(layout_of(data, {"padding": 16}), shape) != plain
    assert Form.make(layout_of(data, {"axes": ["column", "row"]}), shape) != plain


_DRIFT = """
extern "C" __global__ void drift(float* x, const float* v, int n, float dt) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) x[i] += dt * v[i];
}
"""


def test_a_plain_kernel_is_a_step(tmp_path: Path, cache: Cache) -> None:
    """What it reads and writes by one pointer is one array of the program."""
    drift = Kernel(
        _DRIFT, "drift", arguments={"x": "inout float32[n]", "v": "float32[n]", "n": "int32", "dt": np.float32(1)},
        grid="ceil_div(n, BLOCK)", block="BLOCK", policies={"BLOCK": [32, 64]},
    )  # fmt: skip
    program = Program(
        name="drifting", arrays={"x": "state", "v": "input"}, scalars={"step": 0.5},
        steps=[Repeat(4, [KernelCall(drift, scalars={"dt": "step"})])],
    )  # fmt: skip
    given = {"x": np.arange(70.0), "v": np.ones(70)}
    np.testing.assert_array_equal(run_control(program, given, device="cpu")["x"], np.arange(70) + 2)
    bound = bind_program(program, Given(workload="", arrays=given, scalars={"step": 1.0}))
    (group,) = candidates(bound.calls["drift"][0], CPU.device.limits, 10).values()
    assert [dict(one.configuration)["BLOCK"] for one in group] == [32, 64]
    with Machine(bound, CPU, cache) as machine:
        machine.run_all(Assignment({"drift": group[1]}))
        np.testing.assert_array_equal(machine.fetch("x"), np.arange(70) + 4)


@pytest.mark.parametrize("broken", ["_execution", "make_copy"])
def test_a_run_that_fails_leaves_nothing_to_be_taken_for_an_array(
    tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    """What is given and never written stays on the device for the next start, but for a copy that was not made."""
    write_families(tmp_path)
    program = Program(
        name="failing", folder=tmp_path, arrays={**dict.fromkeys("xvf", "input"), "y": "output", "w": "output"},
        steps=[KernelCall("move", arrays={"x_next": "y", "v_next": "w"}, scalars={"dt": 1})],
    )  # fmt: skip
    x = np.arange(12).reshape(4, 3)
    bound = bind_program(program, Given(workload="", arrays={"x": x, "v": 0 * x, "f": x}, scalars={}))
    plain = control(bound, {}, CPU.device.limits)
    form = plain.chosen["move"].forms["x"]
    groups = candidates(bound.calls["move"][0], CPU.device.limits, 1000).values()
    other = Assignment({"move": next(many[0] for many in groups if many[0].forms["x"] != form)})

    def refused(*_: Any) -> Any:
        raise CompilerError("it does not compile")

    with Machine(bound, CPU, cache) as machine:
        machine.run_all(plain)
        with monkeypatch.context() as patched:
            patched.setattr(machine.converter if broken == "make_copy" else machine, broken, refused)
            with pytest.raises(CompilerError):
                machine.run_all(other)
        machine.start()
        machine.run_all(other)
        np.testing.assert_array_equal(machine.fetch("y"), 2 * x)


_FLIP = """
#include "autotune/array.cuh"
template <class Policy>
__global__ void __launch_bounds__(1)
    flip(typename Policy::x x, typename Policy::ids ids, typename Policy::x_after x_after,
         typename Policy::ids_after ids_after) {
  const unsigned n = x.extent(0);
  for (unsigned i = 0; i < n; ++i) {
    const unsigned to = Policy::how == 1 ? n - 1 - i : i;
    x_after.store(x.load(i) + (Policy::how == 2 ? 0.5f : 0.0f), to);
    ids_after.store(ids.load(i), to);
  }
}
"""


@pytest.mark.parametrize(
    ("how", "about", "family", "said"),
    [
        (1, {"ordered_by": "numbers"}, {}, ""),
        (1, {}, {}, "step flip, run 1: array y differs in 4 of 5 elements by more than 0, at most by 4"),
        (
            2,
            {"ordered_by": "numbers"},
            {},
            "array y differs in 5 of 5 elements by more than 0, at most by 0.5",
        ),
        (2, {"ordered_by": "numbers", "tolerance": {"absolute": 1}}, {}, ""),
        (2, {"tolerance": {"relative": 0.1}}, {}, "by more than 0.4, at most by 0.5"),
        (2, {"tolerance": {"relative": 0.2}}, {}, ""),
        (2, {}, {"absolute": 0.4}, "by more than 0.4, at most by 0.5"),
        (2, {}, {"absolute": 0.6}, ""),
    ],
)
def test_arrays_are_compared_in_their_order_and_within_their_tolerance(
    tmp_path: Path, cache: Cache, how: int, about: dict[str, Any], family: dict[str, float], said: str
) -> None:
    told = {
        "schema": 1, "family": "flip", "source": "flip.cu", "reference": "control",
        "data": {"x": _line("input"), "ids": {**_line("input"), "type": "int32"},
                 "x_after": _line("output"), "ids_after": {**_line("output"), "type": "int32"}},
        "kernels": {"flip": {"arguments": ["x", "ids", "x_after", "ids_after"], "grid": [1], "block": [1]}},
        "policies": {"how": {"values": [0, 1, 2], "default": 0}},
        **({"tolerance": {"x_after": family}} if family else {}),
    }  # fmt: skip
    (tmp_path / "flip").mkdir()
    (tmp_path / "flip" / "flip.cu").write_text(_FLIP)
    (tmp_path / "flip" / "family.yaml").write_text(yaml.safe_dump(told))
    arrays = {
        "x": "input", "ids": "input", "y": {"role": "output", **about},
        "numbers": {"role": "output", "ordered_by": "numbers"},
    }  # fmt: skip
    call = KernelCall("flip", arrays={"x_after": "y", "ids_after": "numbers"})
    program = Program(name="flipping", folder=tmp_path, arrays=arrays, steps=[call])
    given = {"x": np.arange(5), "ids": np.arange(5)}
    bound = bind_program(program, Given(workload="", arrays=given, scalars={}))
    declared = control(bound, {}, CPU.device.limits)
    (group,) = candidates(bound.calls["flip"][0], CPU.device.limits, 10).values()
    flipped, listed = Assignment({"flip": group[how]}), list(segments(bound, {}))
    with Machine(bound, CPU, cache, apart=True) as reference, Machine(bound, CPU, cache) as machine:
        found = WholeProof(reference, declared).find_difference(machine, flipped, listed)
        assert (said in found) if said else not found, found


def test_what_a_program_cannot_hold_is_left_out(tmp_path: Path) -> None:
    """Constant memory and merged arrays; and of a policy of accuracy all but the default, where nothing names more."""
    told = {
        "schema": 1, "family": "left", "source": "left.cu", "reference": "control", "accuracy": ["rough"],
        "data": {"a": _line("input"), "b": _line("input"), "c": _line("output")},
        "kernels": {"left": {"arguments": ["a", "b", "c"], "grid": [1], "block": [1]}},
        "policies": {
            "memory": {"layout": "memory", "data": ["a", "b"], "default": "global",
                       "values": ["global", "readonly", "texture", "constant"]},
            "grouping": {"layout": "grouping", "data": ["a", "b"], "values": ["split", "merged"], "default": "split"},
            "rough": {"values": [0, 1], "default": 0},
        },
    }  # fmt: skip
    (tmp_path / "left").mkdir()
    (tmp_path / "left" / "left.cu").write_text("")
    (tmp_path / "left" / "family.yaml").write_text(yaml.safe_dump(told))

    def left(arrays: dict[str, Any], call: KernelCall, held: Any = None) -> dict[str, set[Any]]:
        bound = bind_program(
            Program(name="leaving", folder=tmp_path, arrays=arrays, steps=[call]),
            Given(workload="", arrays={name: np.zeros(9) for name in ("a", "b")}, scalars={}),
        )
        found = chain.from_iterable(candidates(bound.calls["left"][0], CPU.device.limits, 99, held).values())
        values: dict[str, set[Any]] = {}
        for one in found:
            for name, value in dict(one.configuration).items():
                values.setdefault(name, set()).add(value)
        return values

    arrays, call = {"a": "input", "b": "input", "c": "output"}, KernelCall("left")
    usual = {"memory": {"global", "readonly", "texture"}, "grouping": {"split"}, "rough": {0}}
    assert left(arrays, call) == usual
    assert left(arrays, call, {"rough": (0, 1)}) == {**usual, "rough": {0, 1}}
    in_place = KernelCall("left", arrays={"c": "a"})  # which memory that is only read does not see
    assert left({"a": "state", "b": "input"}, in_place) == {**usual, "memory": {"global"}}


def test_what_is_cleared_before_a_step_is_not_what_the_step_reads(tmp_path: Path, cache: Cache) -> None:
    """In place, an output that begins as zeros would be the input."""
    told = {
        "schema": 1, "family": "shift", "source": "shift.cu", "reference": "control",
        "data": {"a": _line("input"), "b": {**_line("output"), "zero": "n > 0"}},
        "kernels": {"shift": {"arguments": ["a", "b"], "grid": [1], "block": [1]}},
        "policies": {"pad": {"layout": "padding", "data": ["b"], "values": [1, 4], "default": 1}},
    }  # fmt: skip
    (tmp_path / "shift").mkdir()
    (tmp_path / "shift" / "shift.cu").write_text(_SHIFT.replace("i ? i - 1 : a.extent(0) - 1", "i"))
    (tmp_path / "shift" / "family.yaml").write_text(yaml.safe_dump(told))
    call = KernelCall("shift", arrays={"b": "a"})
    program = Program(name="shifting", folder=tmp_path, arrays={"a": "state"}, steps=[Repeat(3, [call])])
    bound = bind_program(program, Given(workload="", arrays={"a": np.arange(5)}, scalars={}))
    with Machine(bound, CPU, cache) as machine:
        machine.run_all(control(bound, {}, CPU.device.limits))
        np.testing.assert_array_equal(machine.fetch("a"), np.arange(5) + 3)
