"""``autotune pull`` and ``autotune push``."""

from pathlib import Path
from typing import Any

from autotune.cli import options


@options.family_argument
@options.option(
    "--from DIR|https://…|git+https://…", "registry", default="",
    help="The registry (or AUTOTUNE_REGISTRY): a folder, one served over HTTPS, or a git repository.",
)  # fmt: skip
@options.option(
    "--device auto|cpu|cuda|cuda:N", default="auto",
    help="What it is for, and is proved on; auto is the first GPU, else the cpu.",
)  # fmt: skip
@options.make_workload_option(
    "What it is proved on, with other sizes made from it; default the family's own."
)
@options.option(
    "--policies DIR", type=options.FOLDER,
    help="Where the file goes (or AUTOTUNE_POLICIES; else your own folder, which every program reads).",
)  # fmt: skip
@options.data_option
@options.option("--replace", help="Replace a policy file that was measured here, or cannot be read.")
def pull_command(family: str, **asked: Any) -> None:
    from autotune.registry import pull

    pull(family, note=print, **asked)


@options.family_argument
@options.option("--to DIR", "registry", required=True, type=options.FOLDER, help="The registry's folder.")
@options.option("--device NAME", default="", help="Whose policy file, as nvidia-h200; default the only one.")
@options.policies_option
@options.option("--by NAME", default="", help="Who publishes it; default git's user.name.")
@options.option(
    "--record TEXT", default="",
    help="Where the record is, or the command that made it; default the command that sweeps the same workloads.",
)  # fmt: skip
@options.option("--commit", help="Commit it in the git working tree that the folder is.")
@options.option("--replace", help="Publish it although what is listed is faster, or has more entries.")
def push_command(family: str, registry: Path, **asked: Any) -> None:
    from autotune.registry import push

    push(family, registry, note=print, **asked)
