"""What was measured of a program, as lines of JSON that a later run goes on from: the identity of what a line was
measured on is part of it, so that one of another program, input or device is passed over."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from autotune import __version__
from autotune.device import Backend
from autotune.errors import StoreError, explained
from autotune.program.bound import BoundProgram
from autotune.program.candidates import Runnable
from autotune.program.steps import Either, KernelCall, Repeat, Step

_VERSION = 1  # of how it is measured: raised when older lines no longer compare


def digests(bound: BoundProgram) -> dict[str, str]:
    """What a program's figures depend on, by what it is: its own text with its scalars, its families, its input."""
    given = hashlib.sha256()
    for name, array in sorted(bound.given.items()):
        given.update(f"{name} {array.dtype.str} {array.shape}".encode())
        given.update(np.ascontiguousarray(array).view(np.uint8).data)
    return {**text_digests(bound, bound.scalars), "input": given.hexdigest()}


def text_digests(bound: BoundProgram, scalars: Mapping[str, float]) -> dict[str, str]:
    """Those of the program's text, and of its families."""
    program = bound.program
    roles = {name: array.role for name, array in program.arrays.items()}
    steps = [_to_plain(step) for step in program.steps]
    told = [program.name, roles, steps, {name: float(value) for name, value in scalars.items()}]
    families = {call.family.name: call.family for call in bound.each_call}
    code = [f"{n} {f.source_digest} {f.space_digest} {f.host_digest}" for n, f in sorted(families.items())]
    text = json.dumps(told, sort_keys=True, default=str)
    return {"program": _sha(text), "families": _sha("\n".join(code))}


def _to_plain(step: Step) -> list[Any]:
    """A step as plain values; a family by its name."""
    if isinstance(step, Repeat):
        return ["repeat", step.count, [_to_plain(inner) for inner in step.steps]]
    if isinstance(step, Either):
        return ["either", step.name, str(step.every), [_to_plain(call) for call in step.calls]]
    if isinstance(step, KernelCall):
        about = [dict(one) for one in (step.arrays, step.scalars, step.options, step.held)]
        return ["call", step.name, *about, str(step.every)]
    return [repr(step)]


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Record:
    """The lines in ``path`` that belong to ``bound`` on ``backend``. Raises StoreError."""

    def __init__(self, path: Path, bound: BoundProgram, backend: Backend) -> None:
        self._path = path
        device, compiler = backend.device, backend.toolchain().identity
        parts = {**digests(bound), "device": device.slug, "driver": device.driver, "compiler": compiler}
        self.identity = _sha(json.dumps([parts, __version__, _VERSION], sort_keys=True))[:16]
        self._lines = list(self._read())

    def _read(self) -> Iterator[dict[str, Any]]:
        try:
            text = self._path.read_text(encoding="utf-8") if self._path.is_file() else ""
        except (OSError, UnicodeDecodeError) as problem:
            raise StoreError(f"cannot read {self._path}: {problem}") from None
        for line in text.splitlines():
            try:
                told = json.loads(line)
            except ValueError:  # the last one of a run that was killed
                continue
            if isinstance(told, dict) and told.get("identity") == self.identity:
                yield told

    def find(self, **told: Any) -> list[dict[str, Any]]:
        """The lines that say all that."""
        return [line for line in self._lines if all(line.get(key) == value for key, value in told.items())]

    def find_step(self, candidate: Runnable) -> dict[str, Any]:
        """The line of a candidate in the loop; empty where there is none."""
        return next(iter(self.find(kind="step", **self.key(candidate))), {})

    @staticmethod
    def key(candidate: Runnable) -> dict[str, Any]:
        """What a candidate is known by."""
        call = candidate.call
        return {"step": call.step, "place": call.place, "configuration": candidate.configuration.id}

    def add(self, told: Mapping[str, Any]) -> None:
        """One line more, on disk when this returns."""
        line = {"identity": self.identity, **told}
        with explained(StoreError, f"cannot write {self._path}:"):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        self._lines.append(line)
