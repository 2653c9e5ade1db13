"""Correct before fast: a variant's outputs against the family's reference, before any of its times count.

Integers are compared exactly where the family declares no tolerance of their own, floating point by the tolerance that
it declares: on the device where the layout allows it, and again on the host, which has the last word, where that found
a difference.

Each verified run begins with a pattern in everything that no kernel may rely on: outputs, scratch arrays, what is no
element in an input (padding, the rest of a block), the guards around every array, constant memory outside of the
arrays in it. The pattern is another in the next run: in the first one it is NaN for floating point and -1 for integers,
so that nothing can be added to it unseen; then a number too large to be missed.

Three runs are verified, the third on what the second left in scratch, and the last two timed ones are looked at. A
configuration that is so slow at its first run that it is not timed at all (``sampling.hopeless_ms``), and so is never
chosen, has that run only.

Where a family has ``reference: itself``, nothing says what is right, and the first verified run of a configuration
stands in for it: the second one, in which the patterns differ, and what the timed runs left are held against it. An
element that neither run wrote counts as no part of the result, unless the control writes it.

What this sees, how often, and what it does not see: docs/concepts/verification.md.
"""

import math
import zlib
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from autotune.declaration import Configuration, Family, Tolerance, tolerance
from autotune.device import Backend, Execution, LaunchError, Placed, PlacedInput, Shared, linear
from autotune.layout import Layout, Stored

# A part of every study's identity. Raise it when verification catches more than before: what an older one said is then
# no longer taken.
PROOF_VERSION = 3


GUARD_BYTES = 64 << 10  # on either side of an array: a row of most arrays
PATTERNS = (0xFF, 0x7E)  # NaN or -1; as a float, 8e37 (in double precision, 1e300)
_MOST_OWN = 64  # configurations whose checksums are remembered: the finalists, and the latest
AGAIN = (0xFF, 0xFE)  # for what was verified before; -8e37 is below everything, as the other is above


@dataclass
class Verifier:
    """Holds the reference outputs, resident once per output layout. ``expected`` are canonical arrays, or None where
    each configuration's first run is its own; ``ran_ms`` is what all verified runs took by now, ``last_ms`` the
    latest."""

    backend: Backend
    family: Family
    expected: Mapping[str, NDArray[Any]] | None
    ran_ms: float = 0.0
    last_ms: float = 0.0
    # None where there was no room for it.
    _resident: dict[str, "_Reference | None"] = field(default_factory=dict)
    _right: dict[str, set[int]] = field(default_factory=dict)  # checksums of outputs that were found right
    # Checksums that are its own.
    _same: dict[Configuration, dict[str, set[int]]] = field(default_factory=dict)
    _first: "_FirstRun | None" = None
    # Elements of its outputs that no run of it wrote, where there are any.
    _left_out: dict[Configuration, dict[str, NDArray[np.bool_]]] = field(default_factory=dict)
    _control_changes: frozenset[str] | None = None
    _byte: int = PATTERNS[0]
    _bits: set[tuple[int, ...]] | None = None  # of the outputs of each run, where they are wanted

    def run(
        self,
        execution: Execution,
        cold: bool,
        patterns: tuple[int, ...] = PATTERNS,
        once_above_ms: float = math.inf,
    ) -> tuple[str, float]:
        """Run ``execution`` once on each of the patterns, and once more on what the last of these runs left in scratch:
        (why it is wrong or empty, milliseconds of the fastest run:
        the first one may have recorded graphs, and the others take blocks and threads in another order where the device
        has one). When the first run takes longer than ``once_above_ms``, it is the only one, unless it recorded
        graphs: what counts is how they are replayed."""
        fastest, recorded = math.inf, execution.graphs
        for number, byte in enumerate((*patterns, patterns[-1])):
            is_fresh = number < len(patterns)
            elapsed = self._run(execution, cold, byte, is_shuffled=is_fresh and number > 0, is_fresh=is_fresh)
            fastest = min(fastest, elapsed)
            if self.expected is None and number == 0 and not self._is_kept(execution):
                self._keep(execution)
                reason = self._check_guards(execution) or self._inputs(execution)
            else:
                reason = self.check_left(execution)
            if reason:
                return reason, fastest
            if self._bits is not None:
                self._bits.add(self._bits_of(execution))
            if fastest > once_above_ms and execution.graphs == recorded:
                break
        return self._compare_with_control(execution) if self.expected is None else "", fastest

    def repeat(self, execution: Execution, cold: bool) -> tuple[str, bool]:
        """Six runs, on every pattern and in every order that the device has: why one is wrong (or empty), and whether
        all of them gave the same bits."""
        self._bits = set()
        reason = self.run(execution, cold)[0] or self.run(execution, cold, AGAIN)[0]
        found, self._bits = self._bits, None
        return reason, not reason and len(found) == 1

    def check_left(self, execution: Execution) -> str:
        """What the latest runs of ``execution`` did wrong, by what they left: its outputs, the guards as they were
        filled for the latest verified run, its inputs (which are restored); or empty."""
        return self._check_guards(execution) or self._inputs(execution) or self.outputs(execution)

    def outputs(self, execution: Execution) -> str:
        """How the outputs differ from the reference, as ``check_left``."""
        if self.expected is None:
            return self._differs_from_own(execution)
        return next(
            (reason for data in self.family.outputs if (reason := self._compare(execution, data.name))), ""
        )

    def run_reference(self, execution: Execution, byte: int) -> tuple[str, dict[str, NDArray[Any]]]:
        """One run on a pattern, to become a reference: why it is none (or empty), and the outputs as plain arrays."""
        self._run(execution, False, byte, is_shuffled=byte != PATTERNS[0])
        if reason := self._check_guards(execution) or self._inputs(execution):
            return reason, {}
        return "", {name: execution.restore(name, shape) for name, shape in self._shapes(execution).items()}

    def restore_inputs(self, execution: Execution) -> bool:
        """Restore inputs that something wrote to; return whether there were any."""
        changed = [item for item in execution.inputs if item.has_changed(self.backend)]
        for item in changed:
            item.restore(self.backend)
        return bool(changed)

    def _run(
        self, execution: Execution, cold: bool, byte: int, *, is_shuffled: bool, is_fresh: bool = True
    ) -> float:
        """One run on a pattern. Unless it ``is_fresh``, the run before was on the same pattern, and only outputs get it
        again."""
        self._byte = byte
        for data in self.family.data.values():
            is_due = data.role == "output" or (is_fresh and data.role != "input")
            if is_due and execution.has_memory(data.name):
                self.backend.fill(execution.placed[data.name], byte)
        if is_fresh:
            self._fill_around(execution, byte)
        # Backwards (an even seed) when it is verified first, which turns every pair of blocks and threads round; in an
        # order that is drawn when it is verified again.
        seed = 2 * zlib.crc32(execution.variant.configuration.id.encode()) + (byte == AGAIN[1])
        with self.backend.shuffle(seed) if is_shuffled else nullcontext():
            elapsed = self.backend.sample(execution.run, 1, cold)[0]
        self.ran_ms += elapsed
        self.last_ms = elapsed
        return elapsed

    def _fill_around(self, execution: Execution, byte: int) -> None:
        for item in execution.inputs:
            item.fill_slack(self.backend, byte)
        for placed in self._list_guarded(execution).values():
            for guard in placed.guards:
                self.backend.fill(guard, byte)
        if execution.uses_constant:
            self.backend.fill_constants(execution.module, byte)
            execution.prepare()

    def _list_guarded(self, execution: Execution) -> dict[str, Placed]:
        """Each memory of its own, under the name of the first array in it."""
        return {
            name: linear(placed)
            for name, placed in execution.placed.items()
            if not isinstance(placed, Shared) and execution.has_memory(name)
        }

    def _check_guards(self, execution: Execution) -> str:
        for name, placed in self._list_guarded(execution).items():
            around = [np.flatnonzero(self.backend.download(one) != self._byte) for one in placed.guards]
            if not any(found.size for found in around):
                continue
            before, behind = around
            size = execution.variant.layouts[name].value_bytes
            for side, away in (("after its end", behind), ("before its beginning", GUARD_BYTES - 1 - before)):
                if away.size:
                    return (
                        f"writes outside of {name}: {away.size} bytes {side}, the nearest {int(away.min())} and the "
                        f"furthest {int(away.max())} bytes from it (an element has {size})"
                    )
        return ""

    def _inputs(self, execution: Execution) -> str:
        for item in execution.inputs:
            if item.has_changed(self.backend):
                reason = self._describe_write(execution, item)
                item.restore(self.backend)
                return reason
        return ""

    def _describe_write(self, execution: Execution, item: PlacedInput) -> str:
        """Return which input the kernel writes, and where it differs if that is known."""
        for name, given in item.canonical.items():
            if where := difference(name, execution.restore(name, given.shape), given, {}):
                return f"writes its input {where}"
        return f"writes its input {' or '.join(item.placed)}"

    def _is_kept(self, execution: Execution) -> bool:
        return self._first is not None and self._first.configuration == execution.variant.configuration

    def _keep(self, execution: Execution) -> None:
        """Remember what the first run of ``execution`` left, on the device."""
        before, self._first = self._first, None  # if there is no room for another
        layouts = execution.variant.layouts
        rooms = {name: layouts[name].room(shape) for name, shape in self._shapes(execution).items()}
        sizes = {name: room.nbytes for name, room in rooms.items()}
        if before and {name: copy.stored.nbytes for name, copy in before.copies.items()} == sizes:
            copies = before.copies  # to allocate takes longer than to copy
        else:
            if before:
                before.free()
            copies = {name: self.backend.place(room) for name, room in rooms.items()}
        for name, copy in copies.items():
            self.backend.copy(copy, execution.placed[name])
        configuration = execution.variant.configuration
        self._first = _FirstRun(configuration, self._byte, copies)
        self._same.pop(configuration, None)
        self._same[configuration] = {name: {value} for name, value in self._sums(execution).items()}
        for old in list(self._same)[:-_MOST_OWN]:
            del self._same[old]

    def _shapes(self, execution: Execution) -> dict[str, tuple[int, ...]]:
        return {data.name: data.shape_for(execution.names) for data in self.family.outputs}

    def _bits_of(self, execution: Execution) -> tuple[int, ...]:
        """Return checksums of the outputs' elements, without the gaps between them, which hold the run's pattern."""
        sums = []
        for name, shape in self._shapes(execution).items():
            if execution.variant.layouts[name].is_dense(shape):
                sums.append(self.backend.checksum(execution.placed[name]))
            else:
                sums.append(zlib.crc32(execution.restore(name, shape).tobytes()))
        return tuple(sums)

    def _sums(self, execution: Execution) -> dict[str, int]:
        return {data.name: self.backend.checksum(execution.placed[data.name]) for data in self.family.outputs}

    def _differs_from_own(self, execution: Execution) -> str:
        """How the outputs differ from those of the configuration's first run. The same bytes after two patterns are the
        same result, all of it written."""
        same, sums = self._same.get(execution.variant.configuration), self._sums(execution)
        if same is None or all(value in same[name] for name, value in sums.items()):
            return ""
        if not self._is_kept(execution):  # compared when it was measured, and gone since
            return ""
        assert self._first is not None
        shapes, left_out = self._shapes(execution), {}
        # After two patterns what neither run wrote is no number twice, or two numbers that are far apart.
        is_alike = self._first.byte != self._byte and all(
            self._is_number(execution, name)
            and not self._count_mismatches(execution, name, self._first.copies[name])
            for name in shapes
        )
        for name, shape in shapes.items() if not is_alike else ():
            left = execution.restore(name, shape)
            self.backend.copy(execution.placed[name], self._first.copies[name])
            first = execution.restore(name, shape)
            layout = execution.variant.layouts[name]
            untouched = _holds(layout, first, self._first.byte) & _holds(layout, left, self._byte)
            if untouched.all():
                return f"writes no element of {name}, or only adds to what was there"
            if untouched.any():
                left_out[name] = untouched
            within = self.family.tolerances(execution.names)
            if reason := difference(name, np.where(untouched, first, left), first, within):
                return f"gives another result in each run: {reason}"
        for name, value in sums.items():
            same[name].add(value)
        self._left_out[execution.variant.configuration] = left_out
        return ""

    def _compare_with_control(self, execution: Execution) -> str:
        """Which element the control writes and ``execution`` does not, and which array only one of them changes: where
        nothing says what is right, who does less would win."""
        configuration, control = execution.variant.configuration, self.family.space.control
        changes = frozenset(name for name in self.family.beginnings if self._changes(execution, name))
        if configuration == control:
            self._control_changes = changes
        if self._control_changes is None:
            return ""
        written = self._left_out.get(control, {})
        for name, left_out in self._left_out.get(configuration, {}).items():
            less = left_out & ~written.get(name, np.zeros_like(left_out))
            if less.any():
                first = [int(i) for i in np.argwhere(less)[0]]
                return (
                    f"leaves {int(less.sum())} of {less.size} elements of {name} as they were, the first at {first}, "
                    f"which the control writes {_NO_ANSWER}"
                )
        for name in sorted(changes ^ self._control_changes):
            array = self.family.beginnings[name]
            if name in changes:
                return f"writes {array}, which the control leaves as it was {_NO_ANSWER}"
            return f"leaves {array} as it was, which the control writes {_NO_ANSWER}"
        return ""

    def _changes(self, execution: Execution, name: str) -> bool:
        """Whether the array, which begins as an input, is another afterwards."""
        begins_as = self.family.beginnings[name]
        given = next(item.canonical[begins_as] for item in execution.inputs if begins_as in item.canonical)
        is_coded = execution.variant.layouts[name].storage
        return not is_coded and execution.restore(name, given.shape).tobytes() != given.tobytes()

    def _is_number(self, execution: Execution, name: str) -> bool:
        """Whether the device can compare the output element by element, within the tolerance. It takes NaN for NaN."""
        layout = execution.variant.layouts[name]
        element = self.family.data[name].element
        is_coded = layout.packing or (layout.storage and element not in getattr(self.backend, "elements", ()))
        shape = layout.data.shape_for(execution.names)
        if self.family.data[name].dtype not in _NUMBERS or is_coded or not layout.is_dense(shape):
            return False
        return self.family.tolerances(execution.names)[name].nan != tolerance.WRONG

    def _count_mismatches(self, execution: Execution, name: str, right: Placed, lenient: bool = False) -> int:
        """``lenient``: as the tolerance says, also of a NaN that is expected."""
        within, kind = self.family.tolerances(execution.names)[name], self.family.data[name].dtype
        bounds, ignores_nan = (within.relative, within.absolute), lenient and within.nan == tolerance.IGNORE
        return self.backend.count_mismatches(execution.placed[name], right, kind, bounds, ignores_nan)

    def _compare(self, execution: Execution, name: str) -> str:
        assert self.expected is not None, "what is its own reference is compared elsewhere"
        layout, placed = execution.variant.layouts[name], execution.placed[name]
        data, expected = self.family.data[name], self.expected[name]
        moved = [
            space for space in (*data.shape, *(f.link for f in data.fields)) if space in execution.orders
        ]
        within = self.family.tolerances(execution.names)
        is_number = self._is_number(execution, name)
        is_plain = layout.is_dense(expected.shape) and not moved
        if is_plain and (is_number or _is_exact(expected.dtype)) and (right := self._reference(name, layout)):
            apart = (
                self._count_mismatches(execution, name, right.placed, lenient=True)
                if is_number
                else self.backend.count_mismatches(placed, right.placed)
            )
            if not apart and right.is_whole(self.backend):
                return ""
        # In another order the same bytes are another result, and so they are by another tolerance.
        key = f"{name} {layout!r} {within} {execution.variant.configuration.id if moved else ''}"
        checksums, checksum = self._right.setdefault(key, set()), self.backend.checksum(placed)
        if checksum in checksums:  # the very bytes that were right before
            return ""
        got = execution.restore(name, expected.shape)
        reason = difference(name, got, expected, within)
        if not reason:
            checksums.add(checksum)
        return reason

    def _reference(self, name: str, layout: Layout) -> "_Reference | None":
        """Return the expected output on the device, in that layout; None if the device has no room left for it."""
        key = f"{name} {layout!r}"
        if key not in self._resident:
            assert self.expected is not None
            self._resident[key] = None
            with suppress(LaunchError):
                self._resident[key] = _Reference.make(self.backend, layout.apply(self.expected[name]))
        return self._resident[key]

    def close(self) -> None:
        for right in self._resident.values():
            if right is not None:
                right.placed.free()
        self._resident.clear()
        if self._first is not None:
            self._first.free()


@dataclass(frozen=True)
class _Reference:
    """An expected output on the device, where a kernel that writes anywhere might write, and its checksum."""

    placed: Placed
    checksum: int

    @classmethod
    def make(cls, backend: Backend, stored: Stored) -> Self:
        placed = backend.place(stored)
        return cls(placed, backend.checksum(placed))

    def is_whole(self, backend: Backend) -> bool:
        return backend.checksum(self.placed) == self.checksum


@dataclass(frozen=True)
class _FirstRun:
    """What one run of a configuration left in the outputs, which were filled with ``byte`` before it, on the device."""

    configuration: Configuration
    byte: int
    copies: Mapping[str, Placed]

    def free(self) -> None:
        for placed in self.copies.values():
            placed.free()


_NO_ANSWER = "(there is no other reference: give an answer, or a reference)"
_NUMBERS = (np.dtype(np.float32), np.dtype(np.float64))


def _holds(layout: Layout, array: NDArray[Any], byte: int) -> NDArray[np.bool_]:
    """Which elements are as they were filled: every byte of them is ``byte``, or of the code that they were stored
    as."""
    filled = np.full(array.dtype.itemsize, byte, np.uint8)
    if layout.storage:
        room = layout.room((1,) * array.ndim)
        whole = replace(room, buffer=np.full(room.nbytes, byte, np.uint8))
        filled = np.ascontiguousarray(layout.restore(whole, (1,) * array.ndim)).reshape(-1).view(np.uint8)
    single = np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(array.size, -1)
    return np.asarray((single == filled).all(axis=1).reshape(array.shape))


def _is_exact(dtype: np.dtype[Any]) -> bool:
    """Integers, or records of them."""
    return all(dtype[name].kind in "iu" for name in dtype.names) if dtype.names else dtype.kind in "iu"


def difference(
    name: str, got: NDArray[Any], expected: NDArray[Any], tolerances: Mapping[str, Tolerance]
) -> str:
    """How ``got`` differs from ``expected`` beyond the tolerance that the array, or each field of a record, has by its
    name; at all where it has none. Empty when it does not."""
    if got.dtype.names:
        parts = (difference(f"{name}.{f}", got[f], expected[f], tolerances) for f in got.dtype.names)
        return next((part for part in parts if part), "")
    within = tolerances.get(name, Tolerance())
    wrong = _find_wrong(got, expected, within)
    count, allowed = int(np.count_nonzero(wrong)), within.may_differ(expected.size)
    if count <= allowed:
        return ""
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    return (
        f"{name}: {count} of {expected.size} elements differ, the first at {list(first)}: "
        f"{got[first]!s}, expected {expected[first]!s}{_describe_tolerance(name, expected.dtype, within, allowed)}"
    )


def _find_wrong(got: NDArray[Any], expected: NDArray[Any], within: Tolerance) -> NDArray[np.bool_]:
    """Which elements are off by more than the bounds of ``within``."""
    if expected.dtype.kind in "iub":
        wrong = np.asarray(got != expected)
        if (within.relative or within.absolute) and expected.dtype.kind != "b":
            wrong[wrong] = _distance(got[wrong], expected[wrong]) > (
                within.absolute + within.relative * np.abs(expected[wrong].astype(np.float64))
            )
        return wrong
    wrong = ~np.isclose(got, expected, rtol=within.relative, atol=within.absolute, equal_nan=True)
    if within.nan == tolerance.IGNORE:
        return np.asarray(wrong & ~np.isnan(expected))
    return np.asarray(wrong | np.isnan(got) if within.nan == tolerance.WRONG else wrong)


def _distance(got: NDArray[Any], expected: NDArray[Any]) -> NDArray[np.float64]:
    """|got - expected| of whole numbers of one type. Their own type may be too small for it, and float64 for the two of
    them: what is taken is the larger less the smaller one modulo 2**64."""
    larger, smaller = (pick(got, expected).astype(np.uint64) for pick in (np.maximum, np.minimum))
    apart: NDArray[np.float64] = (larger - smaller).astype(np.float64)
    return apart


def _describe_tolerance(name: str, dtype: np.dtype[Any], within: Tolerance, allowed: int) -> str:
    """What a reason says of the tolerance."""
    if dtype.kind in "iub" and within.declared == tolerance.FOR_FLOATS:
        return (
            f" (tolerance does not apply to {name}: {dtype}; integers are compared exactly where they have none of "
            f"their own, tolerance: {{{name}: {{absolute: 1}}}})"
        )
    if dtype.kind == "f" and not within.declared:
        return " (compared bit by bit, since the family declares no tolerance)"
    share = f"; {allowed} elements may" if within.share else ""
    return f" ({within.declared}: {within}{share})" if within.declared else ""
