"""Windows of constant memory and spread work on real GPUs."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest
import walker

from autotune.cli.commands import main
from autotune.compile.batches import compile_batch
from autotune.compile.cache import Cache, default_root
from autotune.compile.toolchain import CompileFailure
from autotune.compile.variant import Variant, batch
from autotune.declaration import family, workload
from autotune.device.resident import Resident
from autotune.spread.plan import ALLOCATIONS, Chunk
from autotune.spread.spread import Spread
from autotune.spread.team import Member

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore:no usable policy file")]


def devices() -> list[str]:
    """Every GPU, or the only one twice."""
    from autotune.device.cuda.driver import devices as names

    return [f"cuda:{number}" for number in range(len(names()))] if len(names()) > 1 else ["cuda:0"] * 2


def test_windows_are_right_in_every_configuration_and_in_samples_in_a_queue(tmp_path: Path) -> None:
    from autotune.device.cuda.backend import CudaBackend

    loaded = family.load_family(walker.write(tmp_path / "walker", items=20001))
    inputs = workload.prepare(loaded, workload.load_workload(loaded, "small"), tmp_path)
    right = loaded.module.reference(inputs.arrays, {})  # type: ignore[union-attr]
    variants = tuple(Variant(loaded, configuration) for configuration in loaded.space.configurations())
    with CudaBackend() as backend:
        resident = Resident(backend, inputs)
        built = compile_batch(batch(loaded, variants), backend.toolchain(), Cache(default_root()))
        executions = []
        for variant, compiled in zip(variants, built, strict=True):
            assert not isinstance(compiled, CompileFailure)
            executions.append(resident.execution(variant, backend.load(compiled)))
        for execution in executions:  # in turn: each finds what another one left in constant memory
            execution.prepare()
            assert all(ms > 0 for ms in backend.sample(execution.run, 20, False))
            for name, array in right.items():
                np.testing.assert_array_equal(
                    execution.restore(name, array.shape), array, execution.variant.configuration.id
                )
        resident.close()


@pytest.mark.parametrize("padding", [1, 8])
def test_every_allocation_gives_the_result_on_gpus(tmp_path: Path, padding: int) -> None:
    loaded = family.load_family(walker.write(tmp_path / "walker", items=20001, rows=200, width=1000))
    inputs = workload.prepare(loaded, workload.load_workload(loaded, "small"), tmp_path)
    right = loaded.module.reference(inputs.arrays, {})  # type: ignore[union-attr]
    chosen = {"memory": "constant", "padding": padding}
    with Spread(loaded, inputs, devices(), configuration=chosen) as spread:
        assert spread.is_pinned
        spread.calibrate()
        for allocation in ALLOCATIONS:
            for gather in (True, False):
                spread._parts["y"][...] = -7
                report = spread.run(allocation, gather=gather)
                for name, array in spread.fetch().items():
                    np.testing.assert_array_equal(array, right[name], allocation)
                assert all(share.device_s > 0 for share in report.shares)


def test_a_gpu_worker_killed_in_the_middle_changes_nothing(tmp_path: Path) -> None:
    loaded = family.load_family(walker.write(tmp_path / "walker", items=20001, rows=200, width=1000))
    inputs = workload.prepare(loaded, workload.load_workload(loaded, "small"), tmp_path)
    right = loaded.module.reference(inputs.arrays, {})  # type: ignore[union-attr]
    with Spread(loaded, inputs, devices(), configuration={"memory": "constant"}) as spread:
        done: list[Chunk] = []

        def kill(member: Member, chunk: Chunk) -> None:
            done.append(chunk)
            if len(done) == 20:
                os.kill(spread.members[0].process.pid, signal.SIGKILL)

        with pytest.warns(UserWarning, match="SIGKILL"):
            spread.run("contiguous", 1, watch=kill)
        for name, array in spread.outputs().items():
            np.testing.assert_array_equal(array, right[name])


def test_the_command_on_several_gpus(tmp_path: Path) -> None:
    names = ",".join(dict.fromkeys(devices()))
    if "," not in names:
        pytest.skip("needs several GPUs: the command does not take one twice")
    made = walker.write(tmp_path / "walker")
    output = tmp_path / "out.npz"
    assert main(["spread", str(made), "-w", "small", "--device", names, "-o", str(output)]) == 0
    assert set(np.load(output)) == {"y", "total"}
