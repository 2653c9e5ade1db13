"""What a process that is watched while it runs configurations is told, for the family of the fakes."""

from pathlib import Path

from autotune.declaration.family import load_family
from autotune.measure.ncu_process import Task


def task(folder: Path, *configurations: str) -> Task:
    family = load_family(folder)
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
