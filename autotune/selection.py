"""Which configuration to run for this input on this device, and why.

Order: the workload measured on this device with these very sizes and options; the nearest one in features
(log-scaled); the policy file's default; control. Every candidate that is passed over says why.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune.device import Device
from autotune.errors import AutotuneError, PolicyFileError
from autotune.family import Family
from autotune.layouts_digest import layouts_digest
from autotune.policyfile import Entry, PolicyFile, file_name, read
from autotune.space import Configuration

__all__ = ["Candidate", "candidates", "choose", "find"]


@dataclass(frozen=True)
class Candidate:
    """A configuration with the rule that brought it up (exact, nearest, default, control). ``refusal`` is why it is
    not taken, empty for the one that is. ``expected_ms`` is the recorded time, 0 when there is none."""

    match: str
    configuration: Configuration | None
    origin: str
    expected_ms: float = 0.0
    refusal: str = ""


def find(
    family: Family, device: Device, folders: Iterable[Path]
) -> tuple[PolicyFile | None, list[Candidate]]:
    """The first readable policy file of ``family`` for ``device``, and a refused candidate for each unreadable one."""
    passed: list[Candidate] = []
    for folder in folders:
        path = folder / file_name(family.name, device.slug)
        if not path.is_file():
            continue
        try:
            found = read(path)
        except PolicyFileError as problem:
            passed.append(Candidate("file", None, str(path), refusal=str(problem)))
            continue
        if found.family != family.name or found.device.get("kind") != device.kind:
            passed.append(
                Candidate("file", None, str(path), refusal=f"it is for {found.family} on {found.device}")
            )
            continue
        stale = [_stale(family, item) for item in found.entries.values()]
        if stale and all(stale):
            passed.append(Candidate("file", None, str(path), refusal=f"every entry is {stale[0]}"))
            continue
        return found, passed
    return None, passed


def candidates(
    family: Family, policies: PolicyFile | None, sizes: Mapping[str, int], options: Mapping[str, Any],
    kind: str = "",
) -> list[Candidate]:  # fmt: skip
    """Every configuration worth considering, best first, stale and foreign ones refused; control is last and stands.
    A preset named after the device's kind (cpu, cuda) comes before it."""
    listed: list[Candidate] = []
    if policies is not None:
        origin = str(policies.path)
        near = sorted(policies.entries.values(), key=lambda e: (_distance(e.features, sizes), e.workload))
        for item in near:
            match = "exact" if dict(item.features) == dict(sizes) else "nearest"
            refusal = _stale(family, item) or _other_options(item, options)
            configuration, wrong = _configuration(family, item.configuration)
            name = f"{origin}: {item.workload}"
            listed.append(Candidate(match, configuration, name, item.median_ms, refusal or wrong))
        configuration, wrong = _configuration(family, policies.default)
        fresh = any(not _stale(family, e) for e in policies.entries.values())
        stale = "" if fresh else "stale: every entry it was chosen over is"
        listed.append(Candidate("default", configuration, f"{origin}: default", 0.0, stale or wrong))
    if kind in family.space.presets:  # what the family would have an untuned device of this kind run
        for configuration in family.space.configurations(kind)[:1]:
            listed.append(Candidate("preset", configuration, f"the family's preset {kind}"))
    listed.append(Candidate("control", family.space.control, "the family's defaults"))
    return listed


def choose(
    listed: Iterable[Candidate], exclusion: Callable[[Configuration], str]
) -> tuple[Candidate, list[Candidate]]:
    """The first candidate that stands and that ``exclusion`` (device limits, sizes) lets pass, with all those looked
    at before it, refusals filled in. Raises AutotuneError when not even control fits."""
    passed: list[Candidate] = []
    for candidate in listed:
        if candidate.refusal or candidate.configuration is None:
            passed.append(candidate)
            continue
        if reason := exclusion(candidate.configuration):
            passed.append(
                Candidate(
                    candidate.match, candidate.configuration, candidate.origin, candidate.expected_ms, reason
                )
            )
            continue
        return candidate, passed
    raise AutotuneError(f"no configuration fits this input: {passed[-1].refusal}")


def _distance(features: Mapping[str, int], sizes: Mapping[str, int]) -> float:
    """Euclidean distance of the logarithms; a feature that one side lacks counts as a factor of 1000."""
    total = 0.0
    for name in features.keys() | sizes.keys():
        if name in features and name in sizes and features[name] > 0 and sizes[name] > 0:
            total += math.log(features[name] / sizes[name]) ** 2
        else:
            total += math.log(1000.0) ** 2
    return math.sqrt(total)


def _stale(family: Family, item: Entry) -> str:
    for what, recorded, now in (
        ("kernel source", item.source_digest, family.source_digest),
        ("layouts", item.layouts_digest, layouts_digest()),
        ("space", item.space_digest, family.space_digest),
    ):
        if recorded != now:
            return f"stale: the {what} changed since it was measured; sweep again"
    return ""


def _other_options(item: Entry, options: Mapping[str, Any]) -> str:
    for name, value in options.items():
        if str(item.options.get(name, value)) != str(value):
            return f"measured with {name}={item.options[name]}, not {value}"
    return ""


def _configuration(family: Family, values: Mapping[str, Any]) -> tuple[Configuration | None, str]:
    """The configuration in today's space: a policy that did not exist then takes its default."""
    chosen = dict(family.space.control)
    try:
        for name, value in values.items():
            chosen[name] = family.space.policy(name).value(value)
    except AutotuneError as problem:
        return None, str(problem)
    configuration = Configuration(chosen)
    return configuration, family.space.exclusion(configuration)
