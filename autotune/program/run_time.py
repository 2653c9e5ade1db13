"""A program run on a device: as it was tuned, or as it is declared."""

import warnings
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from autotune.compile import Cache, default_root
from autotune.device import Closing, foreign, open_backend
from autotune.errors import UnknownName, UsageError
from autotune.program.bound import BoundProgram, bind_program
from autotune.program.candidates import Assignment, control
from autotune.program.declared import Given, Program
from autotune.program.machine import Machine, OnRead
from autotune.program.policy import Found, find
from autotune.program.schedule import default_periods, segments

_KEPT = 2  # inputs of different sizes that stay ready


def load(
    program: "str | PathLike[str] | Program",
    device: str | None = None,
    policies: str | Path | None = None,
    cache: str | Path | None = None,
) -> "TunedProgram":
    """The tuned program of a folder, ready to be called.

    Args:
        program: a folder with a program.yaml, that file, or a program.
        device: cpu, cuda or cuda:N, and nothing else runs then. None takes the first GPU, else the cpu with a warning.
        policies: the folder of policy files to look in first.
        cache: where compiled kernels are kept, by default the user's cache.

    Returns:
        What runs the whole loop: called with arrays and scalars by name it gives the arrays of role state and output.

    Raises:
        UsageError, FamilyError, DeviceError.
    """
    read = program if isinstance(program, Program) else Program.read(program)
    return TunedProgram(read, device or "auto", policies, Cache(Path(cache) if cache else default_root()))


class Running(Closing):
    """A program whose arrays are on the device, in the chosen layouts, until it is closed."""

    def __init__(self, machine: Machine, found: Found) -> None:
        self._machine, self.found = machine, found

    @property
    def assignment(self) -> Assignment:
        """What each step runs."""
        return self.found.assignment

    def run(self, on_read: OnRead | None = None) -> None:
        """The whole program once, from where the arrays are now; ``on_read`` is called with what the host reads."""
        self._machine.run_all(self.assignment, on_read)

    def turn(self, turns: int = 1) -> None:
        """The first ``turns`` turns of its loops."""
        listed = list(segments(self._machine.bound, self.assignment.periods, turns))
        self._machine.run(self.assignment, listed)

    def fetch(self, name: str) -> NDArray[Any]:
        """An array as it is now. Raises UnknownName, and UsageError before a step has made it."""
        if name not in self._machine.bound.data:
            raise UnknownName("array", name, self._machine.bound.data)
        return self._machine.fetch(name)

    def put(self, name: str, array: Any) -> None:
        """New content for an array that the program is given, of the same shape and type. Raises UsageError."""
        bound = self._machine.bound
        if name not in bound.given:
            raise UnknownName("array to give", name, bound.given)
        made = bind_program(
            bound.program,
            Given(workload="", arrays={**bound.given, name: foreign.fetched(array)}, scalars=bound.scalars),
        )
        if made.shapes != bound.shapes:
            raise UsageError(
                f"array {name} has shape {made.shapes[name]}, not {bound.shapes[name]}: start anew"
            )
        self._machine.put(name, made.given[name])

    def close(self) -> None:
        """Free the arrays. Safe to call twice."""
        self._machine.close()


class TunedProgram(Closing):
    """A program ready to be called on one device, until it is closed; a context manager."""

    def __init__(self, program: Program, device: str, policies: str | Path | None, cache: Cache) -> None:
        self.program, self._policies, self._cache = program, policies, cache
        self._backend = open_backend(device)
        self._ready: dict[Any, Running] = {}
        self._is_warned = False

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
            CompilerError, DeviceError: what the device refused.
        """
        bound = self._bound(given)
        key = (
            tuple((name, array.shape, array.dtype.str) for name, array in bound.given.items()),
            *bound.scalars.items(),
        )
        if key in self._ready:
            running = self._ready[key]
            running._machine.start(bound.given)  # noqa: SLF001 - one module
        else:
            while len(self._ready) >= _KEPT:
                self._ready.pop(next(iter(self._ready))).close()
            running = self._ready[key] = self._started(bound)
        running.run(on_read)
        arrays = self.program.arrays.items()
        return {name: running.fetch(name) for name, array in arrays if array.is_returned}

    def start(self, **given: Any) -> Running:
        """Put the arrays on the device in the chosen layouts, where they stay: run the program there as often as you
        like, and fetch what you want to see. Raises as a call does."""
        return self._started(self._bound(given))

    def explain(self, **given: Any) -> Found:
        """The assignment for such an input, where it comes from, and what was passed over. Raises as a call does."""
        return find(self._bound(given), self._backend.device, self._policies)

    def _bound(self, given: dict[str, Any]) -> BoundProgram:
        scalars = {name: float(given[name]) for name in given if name in self.program.scalars}
        arrays = {name: foreign.fetched(array) for name, array in given.items() if name not in scalars}
        return bind_program(self.program, Given(workload="", arrays=arrays, scalars=scalars))

    def _started(self, bound: BoundProgram) -> Running:
        found = find(bound, self._backend.device, self._policies)
        if found.entry is None and not self._is_warned:
            self._is_warned = True
            why = f" ({'; '.join(found.passed)})" if found.passed else ""
            warnings.warn(
                f"program {self.program.name} was not tuned on {self.device}{why}: it runs as declared; tune it with "
                "autotune program",
                stacklevel=4,
            )
        return Running(Machine(bound, self._backend, self._cache), found)

    def close(self) -> None:
        """Free its arrays and release the device. Safe to call twice."""
        for running in self._ready.values():
            running.close()
        self._ready.clear()
        self._backend.close()


def run_control(
    program: Program,
    arrays: Mapping[str, Any],
    scalars: Mapping[str, float] | None = None,
    device: str = "auto",
    on_read: OnRead | None = None,
    cache: str | Path | None = None,
) -> dict[str, NDArray[Any]]:
    """Run ``program`` as it is declared: every step in its family's control configuration.

    Args:
        program: what is run.
        arrays: the arrays of role input and state, by name.
        scalars: numbers in place of the program's.
        device: cpu, cuda or cuda:N; auto is the first GPU, else the cpu with a warning.
        on_read: called with what the host reads, by name, each time.
        cache: where compiled kernels are kept, by default the user's cache.

    Returns:
        The arrays of role state and output at the end, by name.

    Raises:
        UsageError, UnknownName, WorkloadError: steps that do not fit together, or arrays that do not fit them.
        CompilerError, DeviceError: what the device refused.
    """
    bound = bind_program(program, Given(workload="given", arrays=arrays, scalars=scalars or {}))
    with open_backend(device) as backend:  # type: ignore[attr-defined]
        assignment = control(bound, default_periods(bound), backend.device.limits)
        with Machine(bound, backend, Cache(Path(cache) if cache else default_root()), apart=True) as machine:
            machine.run_all(assignment, on_read)
            return {name: machine.fetch(name) for name, array in program.arrays.items() if array.is_returned}
