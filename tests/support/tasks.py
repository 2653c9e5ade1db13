"""What a program that watches kernels is given: configurations of a family, on the cpu."""

from pathlib import Path

from autotune.declaration import family as families
from autotune.measure.profiled_process import WatchedTask


def task(folder: Path, *configurations: str) -> WatchedTask:
    family = families.load_family(folder)
    ids = tuple(family.space.configuration(one).id for one in configurations)
    return WatchedTask(
        family=str(folder),
        workload="small",
        data="",
        device="cpu",
        compiler="",
        configurations=ids,
        result="",
    )
