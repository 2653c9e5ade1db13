"""A sweep of configurations that are named in a file: what ``autotune sweep`` does, on those and no others.

python benchmarks/drawn_sweep.py kernel.json --drawn configurations.txt --samples 7 --out out
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from kernel_tuner_run import drawn
from rich.console import Console

from autotune.cli.sweep import run
from autotune.declaration import load_family
from autotune.engine import SweepRequest


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("family")
    parser.add_argument("--drawn", type=Path, required=True)
    parser.add_argument("--workload", default="")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--samples", type=int, default=0)
    parser.add_argument("--race", type=float, default=0)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(words)
    family = load_family(given.family)
    request = SweepRequest(
        family=family, chosen=drawn(family, given.drawn), device=given.device, samples=given.samples,
        out=given.out, data=given.data,
        race=given.race, workloads=(given.workload,) if given.workload else (),
    )  # fmt: skip
    run(request, given.out / "policies", Console(), Console(stderr=True))


if __name__ == "__main__":
    main()
