"""A program run on a device: as it is declared, or as it was tuned."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from autotune.compile import Cache, default_root
from autotune.device import open_backend
from autotune.program.bound import bind_program
from autotune.program.candidates import control
from autotune.program.declared import Given, Program
from autotune.program.machine import Machine, OnRead
from autotune.program.schedule import default_periods


def run_control(
    program: Program,
    arrays: Mapping[str, Any],
    scalars: Mapping[str, float] | None = None,
    device: str = "auto",
    on_read: OnRead | None = None,
    cache: str | Path | None = None,
) -> dict[str, NDArray[Any]]:
    """Run ``program`` as it is declared: every step in its family's control configuration.

    Args:
        program: what is run.
        arrays: the arrays of role input and state, by name.
        scalars: numbers in place of the program's.
        device: cpu, cuda or cuda:N; auto is the first GPU, else the cpu with a warning.
        on_read: called with what the host reads, by name, each time.
        cache: where compiled kernels are kept, by default the user's cache.

    Returns:
        The arrays of role state and output at the end, by name.

    Raises:
        UsageError, UnknownName, WorkloadError: steps that do not fit together, or arrays that do not fit them.
        CompilerError, DeviceError: what the device refused.
    """
    bound = bind_program(program, Given(workload="given", arrays=arrays, scalars=scalars or {}))
    with open_backend(device) as backend:  # type: ignore[attr-defined]
        assignment = control(bound, default_periods(bound), backend.device.limits)
        with Machine(bound, backend, Cache(Path(cache) if cache else default_root()), apart=True) as machine:
            machine.run_all(assignment, on_read)
            return {name: machine.fetch(name) for name, array in program.arrays.items() if array.is_returned}
