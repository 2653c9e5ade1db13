"""A program run on a device: as it was tuned, or as it is declared."""

import warnings
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from autotune.compile import Cache, default_root
from autotune.device import Closing, foreign, open_backend
from autotune.errors import UnknownName
from autotune.program.bound import BoundProgram, bind_program
from autotune.program.declared import Given, Program
from autotune.program.machine import Machine, OnRead
from autotune.program.policy import Found, find

_KEPT = 2  # inputs of different sizes that stay ready


def load(
    program: str | PathLike[str] | Program, device: str | None = None, policies: str | Path | None = None,
    cache: str | Path | None = None,
) -> "TunedProgram":  # fmt: skip
    """The tuned program of a folder (or of its program.yaml), ready to be called.

    ``device`` is cpu, cuda or cuda:N, and nothing else runs then; None takes the first GPU, else the cpu with a
    warning. ``policies`` names the folder of policy files to look in first, ``cache`` where compiled kernels are kept.
    Raises UsageError, FamilyError, DeviceError.
    """
    read = program if isinstance(program, Program) else Program.read(program)
    return TunedProgram(read, device or "auto", policies, Cache(Path(cache) if cache else default_root()))


class Running(Closing):
    """A program whose arrays are on the device, in the layouts that ``found`` chose, until it is closed."""

    def __init__(self, machine: Machine, found: Found) -> None:
        self._machine, self.found = machine, found

    def run(self, on_read: OnRead | None = None) -> None:
        """The whole program once, from where the arrays are now; ``on_read`` is called with what the host reads."""
        self._machine.run_all(self.found.assignment, on_read)

    def fetch(self, name: str) -> NDArray[Any]:
        """An array as it is now. Raises UnknownName, and UsageError before a step has made it."""
        if name not in self._machine.bound.data:
            raise UnknownName("array", name, self._machine.bound.data)
        return self._machine.fetch(name)

    def start(self, given: Mapping[str, NDArray[Any]]) -> None:
        """Begin with other content."""
        self._machine.start(given)

    def close(self) -> None:
        """Free the arrays. Safe to call twice."""
        self._machine.close()


class TunedProgram(Closing):
    """A program ready to be called on one device, until it is closed; a context manager. ``is_declared`` runs every
    step in its family's control configuration, and reads from copies what is updated in place."""

    def __init__(
        self, program: Program, device: str, policies: str | Path | None, cache: Cache, is_declared: bool = False
    ) -> None:  # fmt: skip
        self.program, self._policies, self._cache, self._is_declared = program, policies, cache, is_declared
        self._backend = open_backend(device)
        self._ready: dict[Any, Running] = {}

    @property
    def device(self) -> str:
        """The name of the device that calls go to."""
        return self._backend.device.name

    def __repr__(self) -> str:
        return f"<TunedProgram {self.program.name} on {self.device}>"

    def __call__(self, *, on_read: OnRead | None = None, **given: Any) -> dict[str, NDArray[Any]]:
        """Run the whole program.

        Args:
            on_read: called with what the host reads in between, by name, each time.
            given: the arrays of role input and state, and scalars in place of the program's, by name.

        Returns:
            The arrays of role state and output at the end, by name.

        Raises:
            WorkloadError, UsageError, UnknownName: for arrays that do not fit the program.
            CompilerError, DeviceError: what the device rejected.
        """
        bound = self._bind(given)
        key = tuple((name, array.shape) for name, array in bound.given.items()), *bound.scalars.items()
        if key in self._ready:
            self._ready[key].start(bound.given)
        else:
            while len(self._ready) >= _KEPT:
                self._ready.pop(next(iter(self._ready))).close()
            self._ready[key] = self._start(bound)
        running = self._ready[key]
        running.run(on_read)
        return {name: running.fetch(name) for name, array in self.program.arrays.items() if array.is_returned}

    def start(self, **given: Any) -> Running:
        """Put the arrays on the device in the chosen layouts, where they stay: run the program there as often as you
        like, and fetch what you want to see. Raises as a call does."""
        return self._start(self._bind(given))

    def explain(self, **given: Any) -> Found:
        """The assignment for such an input, where it comes from, and what was passed over. Raises as a call does."""
        return find(self._bind(given), self._backend.device, self._policies)

    def _bind(self, given: Mapping[str, Any]) -> BoundProgram:
        scalars = {name: float(given[name]) for name in given if name in self.program.scalars}
        arrays = {name: foreign.fetch(array) for name, array in given.items() if name not in scalars}
        return bind_program(self.program, Given(workload="", arrays=arrays, scalars=scalars))

    def _start(self, bound: BoundProgram) -> Running:
        selected = find(bound, self._backend.device, self._policies, [] if self._is_declared else None)
        if selected.entry is None and not self._is_declared:
            why = f" ({'; '.join(selected.passed)})" if selected.passed else ""
            told = f"program {self.program.name} was not tuned on {self.device}{why}: it runs as declared"
            warnings.warn(f"{told}; tune it with autotune program", stacklevel=4)
        return Running(Machine(bound, self._backend, self._cache, apart=self._is_declared), selected)

    def close(self) -> None:
        """Free its arrays and release the device. Safe to call twice."""
        for running in self._ready.values():
            running.close()
        self._ready.clear()
        self._backend.close()


def run_control(
    program: Program, arrays: Mapping[str, Any], scalars: Mapping[str, float] | None = None,
    device: str = "auto", on_read: OnRead | None = None,
) -> dict[str, NDArray[Any]]:  # fmt: skip
    """Run ``program`` as it is declared: every step in its family's control configuration. ``arrays`` are those of role
    input and state, ``on_read`` is called with what the host reads. Returns the arrays of role state and output at the
    end. Raises as a call of a tuned program does."""
    with TunedProgram(program, device, None, Cache(default_root()), is_declared=True) as declared:
        return declared(on_read=on_read, **{**arrays, **(scalars or {})})
