"""``autotune spread``: one call shared by several devices, or by the ranks of an MPI program."""

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from autotune.cli import options
from autotune.declaration import Family, load_family
from autotune.errors import AutotuneError, UnknownName, UsageError

if TYPE_CHECKING:
    from autotune.cli import RunRequest
    from autotune.spread.spread import Report, Spread


@options.family_argument
@options.call_options
@options.option(
    "--device cuda:N,M|cpu,cpu", default="auto",
    help="Devices that share the call; with --mpi, the device of this rank.",
)  # fmt: skip
@options.policies_option
@options.data_option
@options.option(
    "--allocation automatic|contiguous|dynamic", default="automatic",
    help="How units of work are assigned to devices; automatic balances them by a cost model.",
)  # fmt: skip
@options.option(
    "--mpi", help="Run as a rank of mpirun or srun: one rank per device, all share the work of the call."
)
def spread_command(family: str, device: str, allocation: str, mpi: bool, **asked: Any) -> None:
    from autotune.cli import RunRequest

    spread_call(RunRequest(load_family(family, check=False), **asked), device, allocation, mpi)


def spread_call(call: "RunRequest", device: str, allocation: str, mpi: bool) -> None:
    """Run the call on the devices that ``device`` names, or, with ``mpi``, on those of all ranks. Raises UsageError,
    UnknownName for what cannot be spread, AutotuneError."""
    from autotune.cli import run_call
    from autotune.device import device_names
    from autotune.spread.plan import ALLOCATIONS
    from autotune.spread.spread import Spread, SpreadKernel

    if allocation not in ALLOCATIONS:
        raise UnknownName("allocation", allocation, ALLOCATIONS)
    devices = device_names(device) if "," in device else [device]
    if mpi and len(devices) > 1:
        raise UsageError(f"--mpi is a rank for each device: name one, or cuda for the next one, not {device}")
    if not mpi and len(devices) == 1:
        raise UsageError(f"spread needs several devices (--device cuda:0,1), or --mpi: {device} is one")
    Spread.check(call.family, devices)
    if mpi:
        _run_rank(call, device, allocation)
        return

    def open_kernel(of: Family) -> SpreadKernel:
        return SpreadKernel(of, devices, call.policies, allocation, partial(_note, call))

    run_call(call, open_kernel, call.enable_notes(print))


def _note(call: "RunRequest", spread: "Spread", report: "Report") -> None:
    """Print a line of the run, and one of each device."""
    note, on = call.enable_notes(print), ", ".join(share.device for share in report.shares)
    note(f"{spread.family.name} on {on}: {report.configuration} ({spread.match}), {report.elapsed_s:.3f} s")
    for line in report.lines():
        note(f"  {line}")


def _run_rank(call: "RunRequest", device: str, allocation: str) -> None:
    """One call of all ranks; the first prints what it did, and writes the results. An error is printed by the first,
    and by the rank whose error it is."""
    from autotune.cli import write_outputs
    from autotune.files import is_plain, writable
    from autotune.spread.rank_spread import RankSpread

    if call.application is not None:
        raise UsageError(
            f"--mpi shares a call of the kernels: give a workload or every input of {call.family.name} by name, "
            "its application runs in one process"
        )
    inputs = call.inputs()
    if call.output is not None and is_plain(call.output):
        writable(call.output.resolve().parent)
    made = RankSpread(call.family, inputs, device, policies=call.policies)
    try:
        with made as spread:
            spread.calibrate()
            report = spread.run(allocation)
            if not spread.ranks.is_first:
                return
            _note(call, spread, report)
            outputs = spread.outputs()
    except AutotuneError as problem:
        if made.ranks.is_first or not made.ranks.is_others:
            raise
        raise click.exceptions.Exit(problem.exit_code) from None
    write_outputs(call.family, outputs, call.output, call.enable_notes(print))
