"""What a program that watches kernels is given: configurations of a family, on the cpu."""

from pathlib import Path

from autotune.declaration import family as families
from autotune.measure.watched_process import Task


def task(folder: Path, *configurations: str) -> Task:
    family = families.load_family(folder)
    ids = tuple(family.space.configuration(one).id for one in configurations)
    return Task(
        family=str(folder),
        workload="small",
        data="",
        device="cpu",
        compiler="",
        configurations=ids,
        result="",
    )
