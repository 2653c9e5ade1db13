"""The first call of a function, in a measuring process: what it gives back, and to which arrays it writes.

Nothing declares that for a Python function. An array that is another after the call was written, and so was one that
is where all of them held something else before. Where the result is the same whatever was in it before,
its content does not matter, and every verified run begins with a pattern in it; else it is given to each run as it
was.
"""

import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.callables.declared import name_after
from autotune.callables.libraries import Kind
from autotune.compile import Compiled, Variant
from autotune.declaration import Configuration, Family
from autotune.device import Execution, LaunchError, Resident
from autotune.engine import ProcessWorker, SharedInputs
from autotune.errors import UsageError
from autotune.measure import GUARD_BYTES

_MODERATE = 0x30  # such bytes are a number of between 0 and 1 in 16, 32 and 64 bits
PATTERNS = (0xFF, 0x7E)  # NaN or -1, and a number too large to be missed


@dataclass(frozen=True)
class Seen:
    """One call: the arrays that it ``changed`` and those that were ``patterned`` (in files, canonical), the checksums
    of these, and what it gave back."""

    folder: Path
    changed: tuple[str, ...]
    sums: dict[str, int]
    returned: tuple[tuple[str, Kind], ...]

    def array(self, name: str) -> NDArray[Any] | None:
        """After the call; None where it is as it was."""
        file = self.folder / f"{name}.npy"
        return np.asarray(np.load(file)) if file.exists() else None


def call_once(
    measuring: Any, given: SharedInputs, folder: Path, patterned: Sequence[str], byte: int, harmless: bool = False,
    known: Mapping[str, int] = MappingProxyType({}), configuration: Configuration | None = None,
) -> Seen:  # fmt: skip
    """One call of a ``configuration``, or of that of the latest call, with a pattern in some of the arrays; where it
    is to be ``harmless``, with another number in each, and 0 in whole numbers, which may be indices, and no results
    are kept. Nor are those with the checksums ``known``. It is asked of a measuring process, whose ``measuring`` has
    the device; every argument is declared as read and written. Raises LaunchError."""
    backend: Any = measuring.swept.backend
    execution: Execution = backend.held or _place(backend, given, configuration)
    family = execution.variant.family
    for number, one in enumerate(execution.beginnings):
        execution.begin(one.name)
        if one.source_name in patterned:
            is_index = family.data[one.source_name].dtype.kind != "f"
            moderate = 0 if is_index else _MODERATE + number % 8
            backend.fill(one.placed, moderate if harmless else byte)
    before = {one.source_name: backend.checksum(one.placed) for one in execution.beginnings}
    with warnings.catch_warnings(action="ignore") if patterned else nullcontext():
        execution.run()
    backend.synchronize()
    sums = {name: backend.checksum(execution.placed[name_after(name)]) for name in before}
    changed = tuple(name for name, one in before.items() if sums[name] != one)
    folder.mkdir(exist_ok=True)
    returned = {} if harmless else backend.given_back
    results = {name: array for name, (_, array) in returned.items()}
    for name in dict.fromkeys((*changed, *patterned)) if not harmless else ():
        if known.get(name) != sums[name]:
            shape = family.data[name].shape_for(execution.names)
            results[name] = execution.restore(name_after(name), shape)
    for name, array in results.items():
        np.save(folder / f"{name}.npy", array, allow_pickle=False)
    return Seen(folder, changed, sums, tuple((name, kind) for name, (kind, _) in returned.items()))


def _place(backend: Any, given: SharedInputs, configuration: Configuration | None) -> Execution:
    """A configuration, or the default, with the arrays, held on the device for the next calls."""
    family, inputs = given.load("the first call")
    variant = Variant.make(family, configuration or family.space.control, inputs.options)
    resident = Resident(backend, inputs, guard=GUARD_BYTES)
    try:
        execution = resident.execution(variant, backend.load(Compiled("", Path(), {})))
    except BaseException:
        resident.close()
        raise
    backend.hold(resident, execution)
    return execution


def _release(measuring: Any) -> None:
    measuring.swept.backend.release()


@dataclass(frozen=True)
class Roles:
    """What the first call showed: the arrays that are ``written`` with whether they are read as well, and what came
    back with its kind; ``results`` of all of these, canonical."""

    written: dict[str, bool]
    returned: dict[str, Kind]
    results: dict[str, NDArray[Any]]


def roles_of(
    worker: ProcessWorker, family: Family, given: SharedInputs, folder: Path, named: Sequence[str], what: str,
    contents: Mapping[str, NDArray[Any]], listed: Sequence[Configuration],
) -> Roles:  # fmt: skip
    """By up to four calls of the first of ``listed`` that works, by default of the default. ``named`` are arrays that
    are said to be written, ``contents`` are those that were given. Raises UsageError where the first call fails, and
    where it leaves nothing to verify."""
    first = _call_first(worker, given, folder, what, listed or (family.space.control,))

    def get_left(name: str, run: Seen = first) -> NDArray[Any]:
        found = run.array(name)
        return contents[name] if found is None else found

    others = _find_overwritten(worker, family, given, folder)
    written = dict.fromkeys([*named, *first.changed, *others], True)
    if not written and not first.returned:
        raise UsageError(
            f"{what} returns nothing, and no array changes during the call: name in outputs= what it writes"
        )
    if written:
        try:
            runs = [
                worker.ask(
                    1, call_once, given, folder / f"pattern{byte}", tuple(written), byte, False, first.sums
                )
                for byte in PATTERNS
            ]
        except LaunchError:  # it reads what it writes, as an index perhaps
            runs = []
        for name in written:
            near = [
                run.sums[name] == first.sums[name] or _is_near(get_left(name, run), get_left(name))
                for run in runs
            ]
            written[name] = not near or not all(near)
    worker.ask(1, _release)
    results = {name: get_left(name) for name in (*written, *(name for name, _ in first.returned))}
    return Roles(written, dict(first.returned), results)


def _call_first(
    worker: ProcessWorker, given: SharedInputs, folder: Path, what: str, listed: Sequence[Configuration]
) -> Seen:
    """Of the first configuration that works. Raises UsageError where none does."""
    reason = ""
    for one in listed:
        try:
            return worker.ask(1, call_once, given, folder / "first", (), 0, False, {}, one)
        except LaunchError as problem:
            reason = reason or str(problem)
            worker.ask(1, _release)
    if len(listed) > 1:
        raise UsageError(f"{what} fails with each configuration, with the first ({listed[0].id}): {reason}")
    raise UsageError(
        f"{what} fails with the default configuration ({listed[0].id}): {reason}; the first of the values is the "
        "default, and must work"
    )


def _find_overwritten(
    worker: ProcessWorker, family: Family, given: SharedInputs, folder: Path
) -> Sequence[str]:
    """The arrays that a call changes though all held something else before, whole numbers 0: those too that held the
    result already."""
    names = tuple(data.name for data in family.inputs)
    try:
        return worker.ask(1, call_once, given, folder / "all", names, 0, True).changed
    except LaunchError:  # such numbers are nothing for it
        return ()


def _is_near(one: NDArray[Any], other: NDArray[Any]) -> bool:
    if one.dtype.kind != "f":
        return bool(np.array_equal(one, other))
    return bool(np.allclose(one, other, rtol=1e-2, atol=1e-2, equal_nan=True))
