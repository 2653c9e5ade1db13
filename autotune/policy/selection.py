"""Which configuration to run for this input on this device, and why.

    exact      an entry of this device whose declared features and options are those of the input
    predicted  the kept configurations by the times predicted from the entries, if the file says that this beats the
               nearest entry
    nearest    the other entries of this device, by the distance of the logarithms of the declared features
    capability the entries of other devices of the same compute capability, exact ones and then nearest first
    default    the file's minimax-regret configuration
    preset     what the family would have an untuned device of this kind run
    control    the family's defaults

The first that stands is taken. Every candidate that is passed over says why: stale, other options, another accuracy
class, more than the device has, a guess where the program is frozen, not known to repeat its bits where that is wanted.
A configuration of another architecture is never a candidate. A caller's bound on the
error admits those accuracy classes whose entries were off by no more than it in their sweeps; how far a call on other
data is off is not known.
"""

import math
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from autotune.compile import Variant
from autotune.declaration import Configuration, Family, PolicyValue, families
from autotune.errors import AutotuneError, DeviceError, NothingMeasured, PolicyFileError, UsageError
from autotune.files import policy_folders
from autotune.hardware import Device
from autotune.measure import find_objective
from autotune.policy.acceptance import (
    check_accuracy,
    check_options,
    describe_staleness,
    entry_refusal,
    file_refusal,
    find_configuration,
    resolve_accuracy,
    unmet_need,
)
from autotune.policy.file import Entry, Kept, PolicyFile, file_name, read_policy_file
from autotune.policy.frozen import Frozen, refuse_guess, resolve_frozen
from autotune.policy.prediction import (
    Features,
    Predicted,
    Taught,
    compute_expected_gains,
    feature_values,
    learn_from_times,
    rank_by_distance,
)
from autotune.policy.refined import add_refined
from autotune.record import accuracy_class

_SWEPT = "a sweep of this program"  # where a file of entries that were not read from one came from
_HEAD = 4096  # bytes; a policy file begins with its device


@dataclass(frozen=True)
class Candidate:
    """A configuration with the rule that brought it up (see above; ``file`` for a policy file that cannot be used), and
    the ``entry`` that it is from, if any; ``origin`` says where that is. ``refusal`` is why it is not taken, empty for
    the one that is. ``expected_ms`` is the recorded time, or what is predicted of this configuration with the relative
    standard deviation ``spread``; 0 when nothing is known. ``remark`` is what calls showed of it since."""

    match: str
    configuration: Configuration | None
    origin: str
    expected_ms: float = 0.0
    refusal: str = ""
    entry: Entry | None = None
    spread: float = 0.0
    remark: str = ""


@dataclass(frozen=True)
class Policies:
    """What the policy files say of a family on ``device``: ``own`` is the device's file, ``alike`` are those of other
    devices of the same compute capability, nearest folder first. ``frozen`` as in ``policy.frozen``."""

    device: Device
    own: PolicyFile | None = None
    alike: tuple[PolicyFile, ...] = ()
    frozen: Frozen = False

    @property
    def files(self) -> tuple[PolicyFile, ...]:
        """The device's own file first."""
        return (self.own, *self.alike) if self.own else self.alike


def find(
    family: Family, device: Device, folders: Sequence[Path], first: PolicyFile | None = None,
    frozen: Frozen | None = None,
) -> tuple[Policies | None, list[Candidate]]:  # fmt: skip
    """Find the first usable policy file of ``family`` for ``device``, and those of devices of the same compute
    capability; None if there is neither. ``first`` comes before those in ``folders``. Also return a rejected candidate
    for each file that cannot be used. Warns if the caller's folder does not exist and another one has the file."""
    passed: list[Candidate] = []
    own: PolicyFile | None = None
    alike: dict[str, PolicyFile] = {}
    if first and (swept := _usable(family, first, device.kind, passed)):
        if swept.device.slug == device.slug:
            own = swept
        elif device.compute_capability and swept.device.compute_capability == device.compute_capability:
            alike[f"{swept.device.slug}.yaml"] = swept
    seen: set[str] = set()
    for folder in folders:
        path = folder / file_name(family.name, device.slug)
        if os.path.realpath(path) in seen:
            continue
        seen.add(os.path.realpath(path))
        if own is None and _is_there(path):
            own = _usable(family, path, device.kind, passed)
        for other in _find_similar(path, device):
            found = _usable(family, other, device.kind, [])
            if found and found.device.compute_capability == device.compute_capability:
                alike.setdefault(other.name, found)
    if own is None and not alike:
        return None, passed
    if (
        first is None
        and folders
        and not folders[0].is_dir()
        and folders[0] not in policy_folders(None, family.folder)
    ):
        instead = own or next(iter(alike.values()))
        warnings.warn(
            f"policies folder {folders[0]} does not exist: {instead.path} is used instead", stacklevel=7
        )
    is_frozen = resolve_frozen(frozen, own)
    if own is not None and not is_frozen:
        own = add_refined(own, family, device, folders)
    return Policies(device, own, tuple(alike.values()), is_frozen), passed


def file_of(family: Family, name: str, folders: Iterable[Path]) -> Path | None:
    """The first policy file of that name; None where there is none."""
    paths = (folder / file_name(family.name, name) for folder in folders)
    return next((path for path in paths if path.is_file()), None)


def explain_untuned(
    family: Family, device: Device, folders: Sequence[Path], passed: Iterable[Candidate]
) -> str:
    """What a person should know where ``find`` found nothing: how to get a policy file, and where it is looked for."""
    why = "".join(f"; {c.origin}: {c.refusal}" for c in passed)
    shipped = families().get(family.name)
    is_shipped = shipped is not None and shipped.resolve() == family.folder
    places = dict.fromkeys(str(folder.absolute()) for folder in folders)
    return (
        f"no usable policy file for {family.name} on {device.slug}: running an untuned configuration; "
        f"`autotune sweep {family.name if is_shipped else family.folder}` makes one in ./policies. Looked for "
        f"{file_name(family.name, device.slug)} in {', '.join(places)}{why}"
    )


def _is_there(path: Path) -> bool:
    """Also where it cannot be read: that is worth a message."""
    try:
        return path.exists() or path.is_symlink()
    except OSError:
        return True


def _find_similar(path: Path, device: Device) -> list[Path]:
    """The policy files of other devices in the folder of ``path`` that seem to be of the same compute capability: those
    of a hundred others need not be parsed for it. A cpu has none to share."""
    if not device.compute_capability:
        return []
    named = re.compile(rb"compute_capability:\s*['\"]?" + re.escape(device.compute_capability).encode())
    paths = []
    with suppress(OSError):
        for other in sorted(path.parent.glob("*.yaml")):
            if other.name != path.name and other.is_file():
                with other.open("rb") as file:
                    if named.search(file.read(_HEAD)):
                        paths.append(other)
    return paths


def _usable(
    family: Family, source: PolicyFile | Path, kind: str, passed: list[Candidate]
) -> PolicyFile | None:
    """The file, or None with a candidate in ``passed`` that says why not."""
    try:
        file = read_policy_file(source) if isinstance(source, Path) else source
        reason = file_refusal(family, file, kind)
    except PolicyFileError as problem:
        reason = str(problem)
    if reason:
        origin = str(source) if isinstance(source, Path) else _SWEPT
        passed.append(Candidate("file", None, origin, refusal=reason))
        return None
    return file


def find_beyond_proved(
    policies: Policies | None, configuration: Configuration, sizes: Mapping[str, int]
) -> str:
    """Which of ``sizes`` are above those that the entries' sweeps proved ``configuration`` for, as ``n=5 (proved up to
    4)``; empty where one entry has them all, or none is of that configuration."""
    files = policies.files if policies else ()
    beyond = ""
    for item in (item for file in files for item in file.entries.values()):
        if dict(item.configuration) != dict(configuration):
            continue
        proved = [item.features, *item.proved.get("sizes", ())]
        most = {name: max(known.get(name, 0) for known in proved) for name in sizes}
        above = {name: size for name, size in sizes.items() if 0 < most[name] < size}
        if not above:
            return ""
        beyond = beyond or ", ".join(f"{n}={size} (proved up to {most[n]:g})" for n, size in above.items())
    return beyond


def candidates(
    family: Family,
    policies: Policies | None,
    numbers: Mapping[str, float],
    options: Mapping[str, Any],
    kind: str = "",
    *,
    accuracy: Mapping[str, Any] | float | None = None,
    objective: str = "kernel",
    reproducible: bool = False,
) -> list[Candidate]:
    """Every configuration worth considering, best first, those that may not be taken with their refusals; control
    is last and stands, unless the policies are frozen or only what is ``reproducible`` is wanted. ``numbers`` are the
    input's extents and scalars. ``kind`` (cpu, cuda) names the device's kind where there is no policy file.
    ``accuracy`` asks for another accuracy class than the family's own, or for all whose error is at most so much: then
    the class that is expected to be fastest for this input is first; its storage may be unable to hold the data.
    Entries of another ``objective`` count only in a file that has none of that one. Raises UnknownName, UsageError."""
    find_objective(objective)
    kind = policies.device.kind if policies else kind
    classes = admit(family, policies, accuracy) if isinstance(accuracy, float | int) else [accuracy or {}]
    lists = []
    for values in classes:
        asked = _Asked(
            family, options, numbers, feature_values(family.features, numbers), resolve_accuracy(family, values)
        )  # fmt: skip
        listed = _list_candidates(asked, policies, objective) if policies else []
        lists.append([*listed, *_list_untuned(asked, values, kind)])
    found = [candidate for listed in sorted(lists, key=_get_soonest) for candidate in listed]
    if not reproducible and not (policies and policies.frozen):
        return found
    return [
        c if c.refusal else replace(c, refusal=_refuse_unwanted(c, family, policies, reproducible))
        for c in found
    ]


def _refuse_unwanted(
    candidate: Candidate, family: Family, policies: Policies | None, reproducible: bool
) -> str:
    """Why a caller who takes no guesses, or no other bits, does not take it."""
    if refusal := refuse_guess(policies.frozen if policies else False, candidate.match):
        return refusal
    seen: list[Entry | None] = [candidate.entry]
    if candidate.entry is None:
        entries = [item for file in (policies.files if policies else ()) for item in file.entries.values()]
        known = [item for item in entries if not describe_staleness(family, item)]
        seen = [e for e in known if find_configuration(family, e.configuration)[0] == candidate.configuration]
    if not reproducible or (seen and all(item.reproducible for item in seen if item)):
        return ""
    return (
        "no sweep found that it gives the same bits each time: sweep again, or load with reproducible=False"
    )


@dataclass(frozen=True)
class _Asked:
    """An input: its ``numbers`` (extents and scalars) and what they make, the accuracy class that is ``wanted``."""

    family: Family
    options: Mapping[str, Any]
    numbers: Mapping[str, float]
    features: Features
    wanted: str


def _list_candidates(asked: _Asked, policies: Policies, objective: str) -> list[Candidate]:
    listed: list[Candidate] = []
    for whole in policies.files:
        file = select_objective(whole, objective)
        candidates = _entries(asked, policies.device, file)
        if whole is not policies.own:
            listed += [replace(c, match="capability", expected_ms=0.0) for c in candidates]
            continue
        near = sum(c.match == "exact" for c in candidates)  # these are first
        listed += [*candidates[:near], *_predict(asked, policies.device, file), *candidates[near:]]
    return [*listed, *(_default(asked, policies.device, file) for file in policies.files)]


def _list_untuned(asked: _Asked, accuracy: Mapping[str, Any], kind: str) -> Iterator[Candidate]:
    """What the family says by itself."""
    family, space = asked.family, asked.family.space
    if kind in space.presets:
        for configuration in space.configurations(kind)[:1]:
            refusal = check_accuracy(family, configuration, asked.wanted)
            yield Candidate("preset", configuration, f"the family's preset {kind}", refusal=refusal)
    given = {name: space.policy(name).value(value) for name, value in accuracy.items()}
    yield Candidate("control", Configuration({**space.control, **given}), "the family's defaults")


def _get_soonest(listed: Sequence[Candidate]) -> tuple[bool, float]:
    """The first candidate that stands: one whose time on this input is known before others, then the shorter time."""
    first = next((c for c in listed if not c.refusal and c.configuration is not None), None)
    if first is None:
        return True, math.inf
    return not first.expected_ms, first.expected_ms or (first.entry.median_ms if first.entry else math.inf)


def select_objective(file: PolicyFile, objective: str) -> PolicyFile:
    """``file`` with the entries of ``objective``, or all where it has none; what decides between entries is for the
    kernels' time."""
    entries = {name: item for name, item in file.entries.items() if item.objective == objective}
    if objective == "kernel" and entries:
        return replace(file, entries=entries)
    return replace(file, entries=entries or file.entries, prediction=None)


def _entries(asked: _Asked, device: Device, file: PolicyFile) -> list[Candidate]:
    """The entries of ``file``, each once: those of the same features, then the nearest."""
    family, candidates = asked.family, []
    known = {name: feature_values(family.features, item.features) for name, item in file.entries.items()}
    for name in rank_by_distance(known, asked.features):
        item, match = file.entries[name], "exact" if known[name] == asked.features else "nearest"
        configuration, wrong = find_configuration(family, item.configuration)
        refusal = entry_refusal(family, item, device) or check_options(item.options, asked.options) or wrong
        if not refusal and configuration is not None:
            refusal = check_accuracy(family, configuration, asked.wanted)
        origin = f"{file.path or _SWEPT}: {item.name}"
        expected_ms = item.median_ms if match == "exact" else 0.0
        candidates.append(Candidate(match, configuration, origin, expected_ms, refusal, item))
    return candidates


def basis(family: Family, file: PolicyFile, options: Mapping[str, Any], wanted: str) -> Taught | None:
    """What predictions for inputs with these ``options`` in the accuracy class ``wanted`` are made from: the entries
    that are not stale; None where the file's prediction is for others, or not better than the nearest entry."""
    rule = file.prediction
    if rule is None or not rule.is_better or check_options(rule.options, options) or rule.accuracy != wanted:
        return None
    features: dict[str, Features] = {}
    for name, item in file.entries.items():
        known = feature_values(family.features, item.features)
        is_alike = item.accuracy == rule.accuracy and not check_options(item.options, options)
        is_whole = known.keys() == family.features.keys() and min(known.values(), default=0.0) > 0
        if is_alike and is_whole and not describe_staleness(family, item):
            features[name] = known
    found = learn_from_times(
        rule, file.entries, features, lambda values: find_configuration(family, values)[0]
    )
    return found if len(found.rows) > 1 else None


def _predict(asked: _Asked, device: Device, file: PolicyFile) -> list[Candidate]:
    """The kept configurations by what they should take, the fastest first."""
    family = asked.family
    rests_on = basis(family, file, asked.options, asked.wanted)
    if rests_on is None or file.prediction is None:
        return []
    of_each = [
        (find_configuration(family, one.configuration)[0], one) for one in file.prediction.kept.values()
    ]
    kept = {configuration: one for configuration, one in of_each if configuration is not None}
    blocks = {configuration: _blocks(asked, configuration, one) for configuration, one in kept.items()}
    return [
        Candidate(
            "predicted", one.configuration, f"{file.path or _SWEPT}: from {len(rests_on.rows)} entries", one.ms,
            family.space.explain_exclusion(one.configuration) or unmet_need(kept[one.configuration].needs, device),
            spread=one.spread,
        )
        for one in rests_on.predict(asked.features, blocks)
    ]  # fmt: skip


def _blocks(asked: _Asked, configuration: Configuration, kept: Kept) -> int:
    """Return the number of blocks in the kernel's grid on the input; 0 if it is unknown."""
    family = asked.family
    if kernel := family.kernels.get(kept.kernel):
        with suppress(AutotuneError):
            names = {**asked.numbers, **asked.options, **configuration, **kept.numbers}
            variant = Variant.make(family, configuration, asked.options)
            return math.prod(variant.geometry(kernel, names).grid)
    return 0


def _default(asked: _Asked, device: Device, file: PolicyFile) -> Candidate:
    family = asked.family
    configuration, wrong = find_configuration(family, file.default)
    measured = file.entries.values()  # none in a file that was written by hand
    is_stale = measured and all(describe_staleness(family, e) for e in measured)
    refusal = "stale: every entry it was chosen over is" if is_stale else ""
    if configuration is not None:
        needs = next((e.needs for e in measured if dict(e.configuration) == dict(file.default)), {})
        refusal = refusal or wrong or unmet_need(needs, device)
        refusal = refusal or check_accuracy(family, configuration, asked.wanted)
    return Candidate("default", configuration, f"{file.path or _SWEPT}: default", 0.0, refusal or wrong)


def choose(
    listed: Iterable[Candidate], exclusion: Callable[[Configuration], str]
) -> tuple[Candidate, list[Candidate]]:
    """The first candidate that stands and that ``exclusion`` (device limits, sizes) lets pass, with all those looked
    at before it, refusals filled in. Raises DeviceError when not even control fits, NothingMeasured where that may not
    be taken."""
    passed: list[Candidate] = []
    listed = list(listed)
    for candidate in listed:
        if candidate.refusal or candidate.configuration is None:
            passed.append(candidate)
        elif reason := exclusion(candidate.configuration):
            passed.append(replace(candidate, refusal=reason))
        else:
            return candidate, passed
    if listed[-1].refusal:
        raise NothingMeasured(f"nothing may run on this input: {passed[0].origin}: {passed[0].refusal}")
    raise DeviceError(f"no configuration fits this input: {passed[-1].refusal}")


def rank_challengers(taken: Candidate, listed: Iterable[Candidate]) -> list[Candidate]:
    """Those of the rule that decided for ``taken``, each configuration once: first what is expected to gain most over
    it, since those that are predicted alike are also wrong alike; as listed where nothing is predicted."""
    others: dict[Configuration | None, Candidate] = {}
    for candidate in listed:
        if candidate.match == taken.match and not candidate.refusal:
            others.setdefault(candidate.configuration, candidate)
    for known in (taken.configuration, None):
        others.pop(known, None)
    if taken.match != "predicted":
        return list(others.values())
    found = [
        Predicted(c.configuration, c.expected_ms, c.spread)
        for c in (taken, *others.values())
        if c.configuration
    ]
    gains = dict(zip(others, compute_expected_gains(found), strict=True))
    return sorted(others.values(), key=lambda c: -gains[c.configuration])


# -- bounds on the error ------------------------------------------------------------------------------------


def admit(family: Family, policies: Policies | None, bound: float) -> list[Mapping[str, PolicyValue]]:
    """The classes as values of the family's accuracy policies: each whose results were off by no more than
    ``bound``, relative to the reference's largest magnitude (``measure.deviation``), on every workload; the family's
    own where no entry tells an error at all. Raises UsageError where none is left."""
    if not bound > 0:
        raise UsageError(
            f"max_error={bound}: it is a relative error above 0, such as 1e-3; leave it out for the family's own "
            "accuracy"
        )
    if not family.accuracy:
        raise UsageError(
            f"family {family.name} names no accuracy policies, so all of its configurations keep to one tolerance: "
            "leave max_error out"
        )
    worst = _errors_by_class(family, policies)
    own = {name: family.space.policy(name).default for name in family.accuracy}
    if not worst:
        return [own]
    admitted = [values for values, error in worst.values() if error <= bound]
    if not admitted:
        told = ", ".join(f"{name} {error:.2g}" for name, (_, error) in sorted(worst.items()))
        raise UsageError(
            f"{family.name}: max_error={bound:g} admits nothing that was measured ({told}); ask for one of "
            "these, or sweep more exact configurations"
        )
    return sorted(admitted, key=lambda values: values != own)


def _errors_by_class(
    family: Family, policies: Policies | None
) -> dict[str, tuple[Mapping[str, PolicyValue], float]]:
    """By accuracy class: its values, and the largest error of its entries that are not stale; nothing of a class in
    which one tells none."""
    worst_of: dict[str, tuple[Mapping[str, PolicyValue], float]] = {}
    unknown = set()
    for file in policies.files if policies else ():
        for item in file.entries.values():
            if describe_staleness(family, item) or not {*family.accuracy} <= item.configuration.keys():
                continue
            values = {name: item.configuration[name] for name in family.accuracy}
            name = accuracy_class(values, family.accuracy)
            if not item.errors:
                unknown.add(name)
            worst = max(item.errors.values(), default=0.0)
            worst_of[name] = values, max(worst, worst_of[name][1] if name in worst_of else 0.0)
    return {name: told for name, told in worst_of.items() if name not in unknown}
