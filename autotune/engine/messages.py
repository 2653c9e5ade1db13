"""What is asked of a measuring process, and what it answers: values that are sent through its pipe.

    -> Opened    Setting -> Sign.SET    Job -> Sign.PLACED, Tried, Job -> Sign.PLACED, Tried, …
    Question -> Answer or ``Refused``

Like every process it may say Warned and Failure.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import Any, TypeAlias

from numpy.typing import NDArray

from autotune.compile import Compiled, CompileFailure, KernelProfile, Toolchain, Variant, profiles
from autotune.declaration import Configuration, Family, Inputs, Workload
from autotune.device import LaunchError
from autotune.engine.shared_inputs import NO_ROOM, SharedInputs, read_arrays, write_arrays
from autotune.errors import StoreError, explained
from autotune.hardware import Device
from autotune.measure import Figure, Protocol, Samples
from autotune.record import State, Trial


@dataclass(frozen=True, kw_only=True)
class Setting(SharedInputs):
    """One study, as it is sent to a process. ``arrays`` also has an ``expected-NAME.npy`` for each output."""

    workload: Workload
    protocol: Protocol


@dataclass(frozen=True)
class Job:
    """One compiled configuration to be tried. ``best_ms`` is the best time of the sweep when it was sent; ``same`` is
    equal for configurations that make the device do the very same, or empty. One that is ``in_full`` is verified and
    sampled to the end, however slow it is."""

    configuration: Configuration
    compiled: Compiled
    best_ms: float = math.inf
    same: str = ""
    in_full: bool = False

    def phases_ms(self, seconds: Mapping[str, float]) -> dict[str, float]:
        """Wall milliseconds by phase: of compiling it, and of ``seconds``."""
        return {"compile": self.compiled.seconds * 1e3, **{name: s * 1e3 for name, s in seconds.items()}}


@dataclass(frozen=True)
class Tried:
    """A trial, with the seconds it took by phase: ``wait`` for the job, ``place``, ``verify``, ``measure``, and the
    device's own time in ``kernels``. ``lost`` says that the device's context went with it."""

    trial: Trial
    seconds: Mapping[str, float]
    lost: bool = False


@dataclass(frozen=True)
class Died:
    """A job whose process ended over it, ``seconds`` after it had begun."""

    job: Job
    state: State
    reason: str
    seconds: float


@dataclass(frozen=True)
class Retimed:
    """By configuration: samples, why the result was wrong afterwards (or empty), and figures that take calls of their
    own, where the protocol asks for any."""

    samples: Mapping[Configuration, Samples]
    wrong: Mapping[Configuration, str]
    figures: Mapping[Configuration, Mapping[str, Figure]] = field(default_factory=dict)


@dataclass(frozen=True)
class Compared:
    """Samples of the baseline, and of the configurations timed in turn with it (``beside``); or why it has none."""

    baseline: Samples | None
    beside: Mapping[Configuration, Samples]
    reason: str = ""


@dataclass(frozen=True)
class OddSize:
    """Inputs near those of a Setting, of another size: ``told`` are the extents that a reader knows it by, ``sizes``
    all extents, ``text`` is what messages say of it. Those ``is_of_winners`` cost more, and only what is to enter a
    policy file is proved on them."""

    number: int
    told: Mapping[str, int]
    sizes: Mapping[str, int]
    scalars: Mapping[str, float]
    options: Mapping[str, str | int]
    text: str
    is_of_winners: bool


@dataclass(frozen=True)
class OddSizes:
    """Where there are none, ``why_not`` says why."""

    sizes: tuple[OddSize, ...] = ()
    why_not: str = ""

    def list_reported(self, swept: Mapping[str, int]) -> list[dict[str, int]]:
        """Each once, as a reader knows it, without those of the ``swept`` sizes."""
        reported: list[dict[str, int]] = []
        for size in self.sizes:
            if size.sizes != swept and size.told not in reported:
                reported.append(dict(size.told))
        return reported


@dataclass(frozen=True)
class Proved:
    """``state`` is ``measured`` where it was right, ``excluded`` where there is no room to try it; ``lost`` says that
    the device's context went with it. Where it ``repeats``, all runs on the swept inputs gave the same bits."""

    state: State
    reason: str = ""
    lost: bool = False
    repeats: bool = False


@dataclass(frozen=True)
class Question:
    """``method`` of the process's ``Measuring``, called with ``arguments`` while no job is in hand."""

    method: Callable[..., Any]
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Opened:
    """The device is there."""

    device: Device
    toolchain: Toolchain


class Sign(Enum):
    """``SET``: a study's arrays are there, and its first job begins. ``PLACED``: a job's data are on the device, and
    its kernels come next."""

    SET = auto()
    PLACED = auto()


@dataclass(frozen=True)
class Refused:
    """There is no answer, because of ``reason``; the next request may have one."""

    reason: str


class Ended(LaunchError):
    """A measuring process ended over a request; ``state`` says how."""

    def __init__(self, state: State, reason: str) -> None:
        super().__init__(reason)
        self.state = state


# A configuration with what the compiler made of it.
Made: TypeAlias = Job | tuple[Configuration, CompileFailure]


def load_inputs(setting: Setting) -> tuple[Family, Inputs]:
    """The family and its inputs as a Setting names them. Raises FamilyError."""
    return setting.load("the sweep; what was measured is recorded")


def static_profiles(family: Family, inputs: Inputs, device: Device, job: Job) -> tuple[KernelProfile, ...]:
    """The static profile of each kernel of a compiled configuration."""
    names = inputs.names(job.configuration)
    variant = Variant.make(family, job.configuration, inputs.options)
    return profiles(variant, job.compiled, names, device)


def trial_of(
    workload: Workload, device: Device, configuration: Configuration, state: State, reason: str, **more: Any
) -> Trial:
    """The trial of a configuration; ``more`` are fields of it."""
    return Trial(
        family=workload.family, workload=workload.name, device=device.slug, configuration=configuration, state=state,
        reason=reason, **more,
    )  # fmt: skip


def write_expected(folder: Path, outputs: Mapping[str, NDArray[Any]]) -> None:
    """The expected outputs that a Setting's ``arrays`` has. Raises StoreError when there is no room for them."""
    told = f"cannot write the expected outputs to {folder}, where measuring processes read them:"
    with explained(StoreError, told, NO_ROOM):
        write_arrays(folder, "expected", outputs)


def read_odd_size(setting: Setting, family: Family, size: OddSize) -> tuple[Inputs, dict[str, NDArray[Any]]]:
    """The inputs of an odd size and their expected outputs, from the files that ``write_odd_sizes`` wrote."""
    prefix = f"ragged{size.number}"
    inputs = Inputs(
        arrays=read_arrays(setting.arrays, f"{prefix}-input", family.inputs),
        sizes=size.sizes, options=size.options, scalars=size.scalars,
    )  # fmt: skip
    return inputs, read_arrays(setting.arrays, f"{prefix}-expected", family.outputs)
