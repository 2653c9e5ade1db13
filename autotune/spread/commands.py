"""``autotune spread``: one call of the tuned kernel shared by several devices, or by the ranks of an MPI program."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from autotune import cli, files
from autotune.cli import options
from autotune.declaration import Family, load_family
from autotune.device import device_names
from autotune.errors import AutotuneError, UnknownName, UsageError
from autotune.spread.plan import ALLOCATIONS
from autotune.spread.rank_spread import RankKernel
from autotune.spread.spread import Report, Spread, SpreadKernel

Note = Callable[[str], None]


def spread_command(
    family: options.FamilyArgument,
    workload: options.CallWorkload = "",
    input_: options.CallInput = None,
    output: options.CallOutput = None,
    device: Annotated[
        str,
        typer.Option(
            "--device",
            metavar="cuda:N,M|cpu,cpu",
            help="The devices that share the call; with --mpi this rank's.",
        ),
    ] = "auto",
    policies: options.Policies = None,
    data: options.Data = None,
    allocation: Annotated[
        str,
        typer.Option(
            "--allocation",
            metavar="automatic|contiguous|dynamic",
            help="Which device gets which units of the work; automatic balances by a cost model.",
        ),
    ] = "automatic",
    mpi: Annotated[
        bool,
        typer.Option(
            "--mpi", help="This is a rank of mpirun or srun: one a device, all share the work of the call."
        ),
    ] = False,
) -> None:
    """Run the tuned kernel once on given data, the work shared by several devices."""
    loaded = load_family(family, check=False)
    if allocation not in ALLOCATIONS:
        raise UnknownName("allocation", allocation, ALLOCATIONS)
    devices = device_names(device) if "," in device else [device]
    if mpi and len(devices) > 1:
        raise UsageError(f"--mpi is a rank for each device: name one, or cuda for the next one, not {device}")
    if not mpi and len(devices) == 1:
        raise UsageError(f"spread needs several devices (--device cuda:0,1), or --mpi: {device} is one")
    Spread.check(loaded, devices)
    if mpi:
        _run_rank(loaded, workload, input_ or [], output, data, RankKernel(
            loaded, device, policies, allocation, _teller(options.note)
        ))  # fmt: skip
        return

    def opened(of: Family) -> SpreadKernel:
        return SpreadKernel(of, devices, policies, allocation, _teller(options.note))

    cli.run(loaded, workload, input_ or [], output, device, policies, data, False, options.note, opened)


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


def _run_rank(
    family: Family,
    workload: str,
    given: list[str],
    output: Path | None,
    data: Path | None,
    kernel: RankKernel,
) -> None:
    """One call of all ranks; the first prints what it did, and writes the results."""
    texts = cli.checked_texts(workload, given, output)
    if cli.application_of(family, texts) is not None:
        raise UsageError(
            f"--mpi shares a call of the kernels: give a workload or every input of {family.name} by name, "
            "its application runs in one process"
        )
    inputs = cli.read_inputs(family, texts, workload, output, data)
    if output is not None and files.is_plain(output):
        files.writable(output.resolve().parent)
    try:
        outputs = kernel.run(inputs)
    except AutotuneError as problem:
        if kernel.is_told:
            raise
        raise typer.Exit(problem.exit_code) from None
    if kernel.is_first:
        cli.write_outputs(family, outputs, output, options.note)


COMMANDS = {"spread": spread_command}
