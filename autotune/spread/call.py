"""One call of the tuned kernel shared by several devices, or by the ranks of an MPI program, from the command line."""

from collections.abc import Callable

import click

from autotune.cli import Call, run_call, write_outputs
from autotune.declaration import Family
from autotune.device import device_names
from autotune.errors import AutotuneError, UnknownName, UsageError
from autotune.files import is_plain, writable
from autotune.spread.plan import ALLOCATIONS
from autotune.spread.rank_spread import RankKernel
from autotune.spread.spread import Report, Spread, SpreadKernel

Note = Callable[[str], None]


def spread_call(call: Call, device: str, allocation: str, mpi: bool, note: Note) -> None:
    """Run the call on the devices that ``device`` names, or, with ``mpi``, on those of all ranks. Raises UsageError,
    UnknownName for what cannot be spread, AutotuneError."""
    if allocation not in ALLOCATIONS:
        raise UnknownName("allocation", allocation, ALLOCATIONS)
    devices = device_names(device) if "," in device else [device]
    if mpi and len(devices) > 1:
        raise UsageError(f"--mpi is a rank for each device: name one, or cuda for the next one, not {device}")
    if not mpi and len(devices) == 1:
        raise UsageError(f"spread needs several devices (--device cuda:0,1), or --mpi: {device} is one")
    Spread.check(call.family, devices)
    note = call.noted(note)
    if mpi:
        kernel = RankKernel(call.family, device, call.policies, allocation, _teller(note))
        _run_rank(call, kernel, note)
        return

    def opened(of: Family) -> SpreadKernel:
        return SpreadKernel(of, devices, call.policies, allocation, _teller(note))

    run_call(call, opened, note)


def _teller(note: Note) -> Callable[[Spread, Report], None]:
    """Prints a line of each run, and one of each device."""

    def tell(spread: Spread, report: Report) -> None:
        on = ", ".join(share.device for share in report.shares)
        note(
            f"{spread.family.name} on {on}: {report.configuration} ({spread.match}), {report.elapsed_s:.3f} s"
        )
        for line in report.lines():
            note(f"  {line}")

    return tell


def _run_rank(call: Call, kernel: RankKernel, note: Note) -> None:
    """One call of all ranks; the first prints what it did, and writes the results."""
    if call.application is not None:
        raise UsageError(
            f"--mpi shares a call of the kernels: give a workload or every input of {call.family.name} by name, "
            "its application runs in one process"
        )
    inputs = call.inputs()
    if call.output is not None and is_plain(call.output):
        writable(call.output.resolve().parent)
    try:
        outputs = kernel.run(inputs)
    except AutotuneError as problem:
        if kernel.is_told:
            raise
        raise click.exceptions.Exit(problem.exit_code) from None
    if kernel.is_first:
        write_outputs(call.family, outputs, call.output, note)
