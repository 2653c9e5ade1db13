"""``autotune spread`` and its options."""

from typing import Any

from autotune.cli import options
from autotune.declaration import load_family


@options.family_argument
@options.call_options
@options.option(
    "--device",
    default="auto",
    metavar="cuda:N,M|cpu,cpu",
    help="The devices that share the call; with --mpi this rank's.",
)
@options.policies_option
@options.data_option
@options.option(
    "--allocation",
    default="automatic",
    metavar="automatic|contiguous|dynamic",
    help="Which device gets which units of the work; automatic balances by a cost model.",
)
@options.option(
    "--mpi",
    is_flag=True,
    help="This is a rank of mpirun or srun: one a device, all share the work of the call.",
)
def spread_command(family: str, device: str, allocation: str, mpi: bool, **asked: Any) -> None:
    from autotune.cli import Call
    from autotune.spread.call import spread_call

    call = Call(load_family(family, check=False), **asked)
    spread_call(call, device, allocation, mpi, options.note)
