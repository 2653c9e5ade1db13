"""``autotune rank`` and its options."""

from typing import Any

from autotune.cli import options
from autotune.declaration import load_family
from autotune.engine import SweepRequest


@options.family_argument
@options.sweep_options("preset", "narrowed", "out", "data", "compiler", "processes", "trials", "seed")
@options.make_workload_option("Workload to trace; default: the family's own.")
@options.option("--arch sm_XX", multiple=True, help="Compute capability to rank for; repeat for more.")
def rank_command(family: str, workload: str, arch: tuple[str, ...], **asked: Any) -> None:
    from autotune.cli import run_static
    from autotune.ranking.printing import rank_for_workload

    request = SweepRequest(family=load_family(family), workloads=(workload,), **asked)
    rows = run_static(request, arch or ("sm_90",), options.out, options.err)
    rank_for_workload(request, rows, options.out, options.err)
