"""A program on a GPU: turns as CUDA graphs, conversions, and tuning from end to end."""

from pathlib import Path

import numpy as np
import pytest
from particle_program import write_program

import autotune
from autotune.compile import Cache, default_root
from autotune.device import open_backend
from autotune.program import Program, ProgramBudget, load_given, run_control, save, tune
from autotune.program.bound import bind_program
from autotune.program.candidates import Assignment, candidates
from autotune.program.machine import Machine

pytestmark = pytest.mark.gpu


def test_any_layouts_give_what_the_cpu_gives_and_turns_are_graphs(tmp_path: Path) -> None:
    folder = write_program(tmp_path)
    program = Program.read(folder)
    given = load_given(program, "", folder)
    right = run_control(program, given.arrays, device="cpu")
    bound = bind_program(program, given)
    with open_backend("cuda") as backend, Machine(bound, backend, Cache(default_root())) as machine:  # type: ignore[attr-defined]
        groups = [
            [*candidates(calls[0], backend.device.limits, 1000).values()] for calls in bound.calls.values()
        ]
        for at in range(max(map(len, groups))):
            chosen = [many[at % len(many)][-1] for many in groups]
            assignment = Assignment(dict(zip(bound.calls, chosen, strict=True)))
            for _ in range(3):
                machine.start()
                machine.run_all(assignment)
                for name, array in right.items():
                    np.testing.assert_allclose(machine.fetch(name), array, rtol=1e-4, atol=1e-5)
        assert machine._graphs
        assert not machine._plain


def test_a_program_is_tuned_and_loaded(tmp_path: Path) -> None:
    folder = write_program(tmp_path)
    program = Program.read(folder)
    given = load_given(program, "", folder)
    tuned = tune(program, given, "cuda", tmp_path / "out", ProgramBudget(configurations=8))
    assert all(not row.refusal for row in tuned.rows)
    save(tuned, tmp_path / "policies")
    right = run_control(program, given.arrays, device="cpu")
    with autotune.load(folder, device="cuda", policies=tmp_path / "policies") as loaded:
        assert loaded.explain(**given.arrays).entry is not None
        for name, array in loaded(**given.arrays).items():
            np.testing.assert_allclose(array, right[name], rtol=1e-4, atol=1e-5)
