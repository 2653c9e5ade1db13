"""``autotune export`` and its options."""

from pathlib import Path
from typing import Any

from autotune.cli import options
from autotune.declaration import load_family


@options.family_argument
@options.option(
    "--device NAME", required=True, multiple=True,
    help="Device whose policy file is exported, such as nvidia-h200; repeat for several in one dispatch table.",
)  # fmt: skip
@options.option(
    "--output DIR", "--out", "-o", required=True, type=options.FOLDER, help="Folder for the files."
)
@options.make_workload_option("Workload for the example's input; default: the family's own.")
@options.make_sweep_option("objective")
@options.policies_option
@options.data_option
def export_command(family: str, device: tuple[str, ...], output: Path, **asked: Any) -> None:
    from autotune.export import export

    export(load_family(family), device, output, options.out, **asked)
