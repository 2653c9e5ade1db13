"""The policy file of a program: the chosen configurations with their provenance, in YAML that a person can read.

``FOLDER/programs/NAME/DEVICE.yaml``, in the folders of the families' policy files. Reading runs no code. An entry that
was tuned for another text of the program or of a family is stale, and rejected with the reason.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from autotune import __version__
from autotune.declaration import Configuration, yamlfile
from autotune.errors import AutotuneError, PolicyFileError
from autotune.files import policy_folders, write_text
from autotune.hardware import Device
from autotune.program.bound import BoundProgram
from autotune.program.candidates import Assignment, Runnable, control
from autotune.program.declared import Program
from autotune.program.record import text_digests
from autotune.program.report import stories
from autotune.program.schedule import default_periods
from autotune.program.tuning import Tuned

_SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class ProgramEntry:
    """What a file has for one workload, with its ``name``."""

    name: str
    told: Mapping[str, Any]

    def distance(self, bound: BoundProgram) -> float:
        """How far its sizes are from those of ``bound``: 0 for the same, infinite for arrays of other kinds."""
        shapes = self.told["shapes"]
        if shapes.keys() != bound.given.keys():
            return math.inf
        pairs = [(shapes[name], array.shape) for name, array in bound.given.items()]
        if any(len(one) != len(other) for one, other in pairs):
            return math.inf
        return sum(abs(math.log(n / m)) for one, other in pairs for n, m in zip(one, other, strict=True))


@dataclass(frozen=True, kw_only=True)
class Found:
    """The assignment for an input, where it comes from, and what was passed over, with the reasons."""

    assignment: Assignment
    origin: str
    entry: ProgramEntry | None = None
    passed: tuple[str, ...] = ()


def place_of(folder: Path, program: str, device: str) -> Path:
    """The file of a program on a device, by the device's slug."""
    return folder / "programs" / program / f"{device}.yaml"


def save(tuned: Tuned, folder: Path) -> Path:
    """Write the result to the policy file below ``folder``; its entries for other workloads stay. Raises StoreError,
    PolicyFileError."""
    program, device = tuned.bound.program, tuned.device
    path = place_of(folder, program.name, device.slug)
    content: dict[str, Any] = {
        "schema": _SCHEMA, "program": program.name, "device": {"kind": device.kind, "name": device.name}, "entries": {},
    }  # fmt: skip
    if path.is_file():
        content["entries"] = dict(_read(path, program)["entries"])
    content["entries"][tuned.workload] = entry_of(tuned)
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=110)
    return write_text(path, f"# Made by autotune program {program.name}; see docs/guides/programs.md\n{text}")


def entry_of(tuned: Tuned) -> dict[str, Any]:
    """What a file says of one tuning."""
    row, bound = tuned.chosen, tuned.bound
    numbers = {
        "turn_ms": row.measured_ms, "predicted_ms": row.predicted_ms, "bound_ms": tuned.solution.bound,
        "regret": tuned.regret,
    }  # fmt: skip
    return {
        "shapes": {name: list(array.shape) for name, array in bound.given.items()},
        "scalars": {name: float(value) for name, value in bound.scalars.items()},
        "steps": {
            step: {"call": one.call.place, "family": one.call.family.name, "configuration": dict(one.configuration)}
            for step, one in row.assignment.chosen.items()
        },
        "periods": dict(row.assignment.periods),
        **{name: float(f"{value:.6g}") for name, value in numbers.items()},
        "beside_ms": {one.name: float(f"{one.measured_ms:.6g}") for one in tuned.rows[1:] if not one.refusal},
        "arrays": stories(tuned.problem, row.picks, bound.data),
        **{f"{name}_digest": value for name, value in tuned.digests.items()},
        "compiler": tuned.compiler, "driver": tuned.device.driver, "autotune": __version__,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "measured": asdict(tuned.counts),
    }  # fmt: skip


def _read(path: Path, program: Program) -> dict[str, Any]:
    """Raises PolicyFileError."""
    content = yamlfile.read(path, PolicyFileError)
    if fault := yamlfile.fault(content, "program_policy"):
        raise PolicyFileError(f"{path}: {fault}; delete the file and tune again")
    if content["program"] != program.name:
        raise PolicyFileError(f"{path} is of program {content['program']}, not of {program.name}")
    return content


def find(
    bound: BoundProgram, device: Device, policies: str | Path | None = None, folders: Sequence[Path] | None = None
) -> Found:  # fmt: skip
    """The assignment for ``bound``: of the first policy file that has one, the entry for these sizes or the nearest;
    else the program as declared. Raises UsageError where that cannot run."""
    program, passed = bound.program, list[str]()
    beside = [program.folder / "policies"] if program.folder else []
    for folder in [*policy_folders(policies), *beside] if folders is None else folders:
        path = place_of(folder, program.name, device.slug)
        try:
            entries = _entries(path, program, device) if path.is_file() else []
        except PolicyFileError as problem:
            passed.append(str(problem))
            continue
        for entry in sorted(entries, key=lambda one: one.distance(bound)):
            try:
                assignment = _assignment(bound, entry, device)
            except AutotuneError as problem:
                passed.append(f"{path}: {entry.name}: {problem}")
                continue
            how = "these sizes" if entry.distance(bound) == 0 else "the nearest sizes"
            origin = f"{path}: {entry.name} ({how})"
            return Found(assignment=assignment, origin=origin, entry=entry, passed=tuple(passed))
    declared = control(bound, default_periods(bound), device.limits)
    return Found(assignment=declared, origin="the program as declared", passed=tuple(passed))


def _entries(path: Path, program: Program, device: Device) -> list[ProgramEntry]:
    """What a file has for a device. Raises PolicyFileError."""
    content = _read(path, program)
    if (name := content["device"]["name"]) != device.name:
        raise PolicyFileError(f"{path}: it is of {name}, and this is {device.name}")
    return [ProgramEntry(name=name, told=told) for name, told in content["entries"].items()]


def _assignment(bound: BoundProgram, entry: ProgramEntry, device: Device) -> Assignment:
    """What an entry says. Raises PolicyFileError for one that is stale or does not fit."""
    told = entry.told
    if math.isinf(entry.distance(bound)):
        raise PolicyFileError("its arrays are of other kinds")
    if told["scalars"].keys() != bound.scalars.keys():
        raise PolicyFileError("stale: the program has other scalars since it was tuned; tune again")
    for what, digest in text_digests(bound, told["scalars"]).items():  # a call may change them
        if told[f"{what}_digest"] != digest:
            of = "program.yaml" if what == "program" else "source, space or Python of a family"
            raise PolicyFileError(f"stale: the {of} changed since it was tuned; tune again")
    chosen = {}
    for step, calls in bound.calls.items():
        one = told["steps"].get(step, {"call": len(calls)})
        if one["call"] >= len(calls):
            raise PolicyFileError(f"it has no step {step} as the program has")
        space = calls[one["call"]].family.space
        values = {name: space.policy(name).value(value) for name, value in one["configuration"].items()}
        candidate = Runnable(calls[one["call"]], Configuration({**space.control, **values}))
        if reason := candidate.explain_refusal(device.limits):
            raise PolicyFileError(f"step {step}: {candidate.configuration.id} cannot run here: {reason}")
        chosen[step] = candidate
    kept = told.get("periods", {})
    return Assignment(chosen, {step: kept.get(step, often) for step, often in default_periods(bound).items()})
