"""The seam: a device whose kernels are calls of a function. All else (memory, guards, patterns, events, flushing) is
the device's own, and the engine measures on it as on any other.

A configuration is "compiled" by the function's own means (``build``), where it has any, in the engine's compiler
processes; its plan calls the function with the device's memory as arrays of the library that the arguments are of.
"""

import platform
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import NDArray

from autotune.callables import libraries
from autotune.callables.choices import Alternatives
from autotune.callables.declared import name_after
from autotune.callables.functions import Importable
from autotune.callables.libraries import Kind, Memory
from autotune.compile import Batch, BuildError, Built, Compiled
from autotune.device import Backend, Execution, LaunchError, Resident, linear
from autotune.errors import AutotuneError, cause
from autotune.layout import handle

_CHOICE = re.compile(r"static constexpr \w+ (\w+) = (?:\w+::)?([^;]+);")  # of a variant's struct


@dataclass(frozen=True)
class Calls:
    """What a measuring process calls: the function, with the values of a configuration, ``fixed`` arguments, arrays of
    these ``kinds`` by argument, and the array of another argument for those in ``same``. ``tools`` names what else
    decides the machine code, such as compilers."""

    function: Importable
    choices: Alternatives
    kinds: Mapping[str, Kind]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    same: Mapping[str, str] = field(default_factory=dict)
    tools: str = ""

    def import_libraries(self) -> None:
        """Import all that building needs, in a process that builds. Raises what that does."""
        getattr(self.function.load(), "import_libraries", lambda: None)()

    def build(self, arch: str, values: Mapping[str, Any]) -> None:
        """Build a configuration by the function's own means, where it has any. Raises BuildError with its message."""
        build = getattr(self.function.load(), "build", None)
        try:
            if build is not None:
                build(arch, **self.fixed, **values)
        except Exception as problem:
            raise BuildError(f"{dict(values)}: {cause(problem)}") from problem


@dataclass(frozen=True)
class CallToolchain:
    """Builds a configuration by the function's own ``build(**choices)``; the binary is empty, since the function finds
    what was built in the cache of its library."""

    calls: Calls
    arch: str
    suffix: str = ".call"

    @property
    def identity(self) -> str:
        parts = (f"python {platform.python_version()}", self.calls.tools, self.arch)
        return "; ".join(filter(None, parts))

    def build(self, batch: Batch) -> Built:
        """Raises BuildError with the library's message."""
        choices = self.calls.choices
        for variant in batch.variants:
            named = dict(_CHOICE.findall(variant.struct))
            words = {
                name: next(word for word in words if str(word) == named[name])
                for name, words in choices.words.items()
            }
            self.calls.build(self.arch, choices.get_values(words))
        symbols = {variant.key: {"call": "call"} for variant in batch.variants}
        return Built(b"call", symbols, {})


@dataclass(frozen=True)
class CallModule:
    """Nothing is loaded: the library does so at the first call."""

    numbers: Mapping[str, int] = field(default_factory=dict)
    lock: AbstractContextManager[Any] = field(default_factory=nullcontext)

    def unload(self) -> None:
        """There is nothing to unload."""


class CallBackend:
    """``inner`` with calls in place of launches."""

    def __init__(self, inner: Backend, calls: Calls, function: Callable[..., Any] | None = None) -> None:
        self.inner, self.device = inner, inner.device
        self._resident: Resident | None = None
        self.held: Execution | None = None
        self.turn_to(calls, function)

    def turn_to(self, calls: Calls, function: Callable[..., Any] | None = None) -> None:
        """Call that from now on. Raises UsageError where it cannot be imported."""
        self.release()
        self.calls, self.function = calls, function or calls.function.load()
        self._made: Any = None
        self._latest: Execution | None = None

    def hold(self, resident: Resident, execution: Execution) -> None:
        """Keep those for the first calls of a function, until ``release``; ``held`` is the execution."""
        self._resident, self.held = resident, execution

    def release(self) -> None:
        if self._resident is not None:
            self._resident.close()
        self._resident, self.held = None, None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def toolchain(self, compiler: str = "") -> CallToolchain:  # noqa: ARG002
        return CallToolchain(self.calls, self.device.arch)

    def load(self, compiled: Compiled) -> CallModule:  # noqa: ARG002
        return CallModule()

    def call(self, execution: Execution) -> None:
        """What the plan of every family of callables does."""
        self._latest = execution
        arguments = execution.make_once("arguments", lambda: self._arguments(execution))

        def work(_stream: int) -> None:
            self._made = self.function(**arguments)

        try:
            execution.stage("call", work)
        except LaunchError:
            raise
        except AutotuneError as problem:  # of the function's own: it costs one trial
            raise LaunchError(str(problem)) from problem

    def _arguments(self, execution: Execution) -> dict[str, Any]:
        calls = self.calls
        arrays = {
            n: libraries.hand_over(kind, self.memory(execution, n, kind)) for n, kind in calls.kinds.items()
        }
        same = {name: arrays[other] for name, other in calls.same.items()}
        chosen = calls.choices.get_values(execution.variant.configuration)
        return {**calls.fixed, **arrays, **same, **chosen}

    def memory(self, execution: Execution, name: str, kind: Kind) -> Memory:
        """Return the memory of an argument, by its layout."""
        written = name_after(name)
        name = written if written in execution.placed else name
        placed, layout = execution.placed[name], execution.variant.layouts[name]
        members, member = layout.group
        size = kind.dtype.itemsize
        address = handle(linear(placed).argument) + member * size
        strides = tuple(step * members * size for step in placed.stored.strides)
        shape = tuple(placed.stored.extents)
        ordinal = None if self.device.kind == "cpu" else self.device.ordinal
        return Memory(address, shape, strides, kind.dtype, ordinal, placed)

    @property
    def elements(self) -> tuple[str, ...]:
        """Those of 16 bits that ``count_mismatches`` compares where they are."""
        return ("float16", "bfloat16") if "torch" in sys.modules else ()

    def count_mismatches(self, placed: Any, expected: Any, *how: Any) -> int:
        """As the device's own; of elements of 16 bits by torch, within ``how[1]``."""
        latest = self._latest
        name = next((name for name, one in latest.placed.items() if one is placed), "") if latest else ""
        element = latest.variant.layouts[name].data.element if latest and name else ""
        if latest is None or not how or element not in self.elements:
            return self.inner.count_mismatches(placed, expected, *how)
        own = Kind("torch", element)
        seen = self.memory(latest, name, own)
        right = replace(seen, address=handle(linear(expected).argument), owner=expected)
        self.synchronize()
        try:
            made, wanted = (libraries.hand_over(own, one).float() for one in (seen, right))
            near = sys.modules["torch"].isclose(made, wanted, *how[1], equal_nan=True)
            return int(near.numel()) - int(near.sum())
        except RuntimeError:  # no room for it: the host compares
            return 1

    def sample(self, plan: Callable[[], None], count: int, cold: bool) -> list[float]:
        """As the device's own; what a call reads and writes is as it was before each call, which is not timed."""
        execution = getattr(plan, "__self__", None)
        if not isinstance(execution, Execution):
            return self.inner.sample(plan, count, cold)
        if not execution.beginnings:
            times = self.inner.sample(plan, count, cold)
        else:
            times = [self._sample_fresh(execution, cold) for _ in range(count)]
        self._settle(execution)
        return times

    def _sample_fresh(self, execution: Execution, cold: bool) -> float:
        runs = 0

        def run_once() -> None:
            nonlocal runs
            runs += 1
            execution.run()

        self._begin(execution)
        (elapsed,) = self.inner.sample(run_once, 1, cold)
        if runs > 1:  # it was taken again: what is left is not of one call
            self._begin(execution)
            execution.run()
            self.inner.synchronize()
        return elapsed

    def kernel_times(self, plan: Callable[[], None]) -> dict[str, float]:
        execution = getattr(plan, "__self__", None)
        if not isinstance(execution, Execution):
            return self.inner.kernel_times(plan)
        self._begin(execution)
        times = self.inner.kernel_times(plan)
        self._settle(execution)
        return times

    def _begin(self, execution: Execution) -> None:
        for one in execution.beginnings:
            execution.begin(one.name)

    def _settle(self, execution: Execution) -> None:
        """What the latest call gave back, into the outputs that are compared. Raises LaunchError."""
        written = {*self.calls.kinds, *map(name_after, self.calls.kinds)}
        names = [data.name for data in execution.variant.family.outputs if data.name not in written]
        if not names:
            return
        made = name_outputs(self._made)
        for name in names:
            if name not in made:
                raise LaunchError(f"returns {sorted(made) or 'nothing'}, and the first call gave {name} too")
            kind, data = libraries.kind_of_result(name, made[name]), execution.variant.layouts[name].data
            if kind.name != (data.element or data.dtype.name):
                raise LaunchError(
                    f"{name} has elements of {kind.name}, and those of the first call were {data.dtype}"
                )
            libraries.copy_back(name, kind, self.memory(execution, name, kind), made[name])
        self.inner.synchronize()

    @property
    def given_back(self) -> dict[str, tuple[Kind, NDArray[Any]]]:
        """What the latest call gave back: its kind and its content. Raises LaunchError."""
        made = name_outputs(self._made)
        return {
            n: (libraries.kind_of_result(n, value), libraries.content(value)) for n, value in made.items()
        }


def name_outputs(made: Any) -> dict[str, Any]:
    """What a function gave back, by the names that outputs get."""
    if isinstance(made, Mapping):
        return {str(name): value for name, value in made.items()}
    if isinstance(made, tuple | list):
        return {f"result_{number}": value for number, value in enumerate(made)}
    return {} if made is None else {"result": made}
