"""What the engine asks of whoever measures."""

from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any, Protocol, TypeAlias

from autotune.compile import CompileFailure, Toolchain
from autotune.declaration import Configuration, Family, Inputs
from autotune.engine.messages import (
    Compare,
    Describe,
    Died,
    Job,
    Prove,
    Ragged,
    Reference,
    Retime,
    Setting,
    Tried,
)
from autotune.hardware import Device

# A configuration with what the compiler made of it.
Made: TypeAlias = Job | tuple[Configuration, CompileFailure]


class Worker(Protocol):
    """One device, asked from the sweeping process. ``device`` and ``toolchain`` are known once ``start`` returned;
    ``lost`` says why it is given up, or is empty. ``pipe`` becomes readable when ``receive`` has something;
    ``deadline`` (time.monotonic) is when it should be called at the latest."""

    device: Device
    toolchain: Toolchain
    lost: str

    @property
    def room(self) -> int: ...

    @property
    def busy(self) -> bool: ...

    @property
    def pipe(self) -> Connection | None: ...

    @property
    def deadline(self) -> float: ...

    def start(self) -> None: ...

    def reference(self, request: Reference, family: Family, inputs: Inputs) -> float:
        """Expected outputs for ``study``: the milliseconds they took. Raises AutotuneError."""
        ...

    def study(self, setting: Setting, family: Family, inputs: Inputs) -> None: ...

    def send(self, jobs: Sequence[Job]) -> None: ...

    def receive(self) -> list[Tried | Died]:
        """What came of the jobs since. Raises AutotuneError for what ends the sweep."""
        ...

    def take_back(self) -> list[Job]:
        """The jobs that a lost worker has not tried."""
        ...

    def ask(self, request: Retime | Compare | Describe | Ragged | Prove, trials: float) -> Any:
        """The answer, with no job in hand. Raises LaunchError when there is none in the time of so many ``trials``:
        Ended where the process ended over it."""
        ...

    def close(self, at_once: bool = False) -> None: ...
