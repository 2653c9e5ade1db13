"""``autotune spread`` and its options."""

from typing import Annotated

import typer

from autotune.cli import options
from autotune.declaration import load_family


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
    """Run the tuned kernel once, shared by several devices. Or by the ranks of an MPI program."""
    from autotune.cli import Call
    from autotune.spread.call import spread_call

    call = Call(load_family(family, check=False), workload, tuple(input_ or ()), output, policies, data)
    spread_call(call, device, allocation, mpi, options.note)


COMMANDS = {"spread": spread_command}
