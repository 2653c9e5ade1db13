"""Where nothing says what is right, a configuration's first run stands in for it: what that catches, and what it lets
pass."""

from pathlib import Path
from typing import Any

import pytest
from fakes import FAMILY, write_family
from test_verify import (
    ONE,
    Bench,
    Kernel,
    adds,
    forgets,
    reads_scratch_first,
    uses_what_is_behind_the_input,
    writes_before,
    writes_behind,
)

from autotune.declaration import family as families
from autotune.declaration import workload as workloads
from autotune.engine.odd_sizes import compute_odd_proofs
from autotune.errors import FamilyError
from autotune.measure.reference import compute_expected

OWN = ONE.replace("reference: control", "reference: itself")


def nothing(kernel: Kernel) -> None:
    pass


def another_each_time(kernel: Kernel) -> None:
    kernel.y[:] = kernel.run


def wrong_each_time_alike(kernel: Kernel) -> None:
    kernel.y[:] = 3 * kernel.x


@pytest.mark.parametrize("does", [Kernel.right, forgets, wrong_each_time_alike])
def test_what_is_the_same_each_time_passes(does: Any, tmp_path: Path) -> None:
    """An element that nothing writes is no part of the result; a result that is always wrong is not seen."""
    assert Bench(tmp_path, does, OWN).tried().trial.state == "measured"


@pytest.mark.parametrize(
    ("does", "reason"),
    [
        (nothing, "writes no element of y"),
        (adds, "writes no element of y, or only adds to what was there"),
        (another_each_time, "gives another result in each run: y: 1000 of 1000"),
        (reads_scratch_first, "writes no element of y, or only adds"),
        (uses_what_is_behind_the_input, "gives another result in each run: y: 1 of 1000"),
        (writes_behind, "writes outside of y: 4 bytes after its end"),
        (writes_before, "writes outside of x: 4 bytes before its beginning"),
    ],
)
def test_what_depends_on_anything_but_the_inputs_is_refused(does: Any, reason: str, tmp_path: Path) -> None:
    trial = Bench(tmp_path, does, OWN).tried().trial
    assert trial.state == "wrong_result"
    assert trial.reason.startswith(reason)


def test_a_late_change_is_seen_in_what_the_timed_runs_left(tmp_path: Path) -> None:
    def does(kernel: Kernel) -> None:
        kernel.y[:] = 2 * kernel.x if kernel.run < 3 else 5.0

    trial = Bench(tmp_path, does, OWN).tried().trial
    assert trial.reason.startswith("right when first verified, wrong when it was timed: gives another result")


def test_nothing_else_takes_it_for_an_answer(tmp_path: Path) -> None:
    family = families.load_family(
        write_family(tmp_path / "doubler", FAMILY.replace("reference: control", "reference: itself"))
    )
    workload = workloads.load_workload(family)
    inputs = workloads.prepare(family, workload, tmp_path)
    with pytest.raises(FamilyError, match="there is no reference: write reference"):
        compute_expected(family, inputs, tmp_path)
    sizes, proofs = compute_odd_proofs(
        family, workload, inputs, tmp_path, {}, lambda made: compute_expected(family, made, tmp_path)[0]
    )
    assert not sizes.sizes
    assert not proofs
    assert "there is no reference" in sizes.why_not
