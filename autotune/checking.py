"""``autotune check``: would these policy files be accepted here, and does what they claim still hold."""

import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from autotune import paths
from autotune.acceptance import entry_refusal, file_refusal, known_configuration
from autotune.cache import Cache, default_root
from autotune.crew import Worker, launched, opened
from autotune.device import Device
from autotune.devices import open_backend
from autotune.entry_claims import broken
from autotune.errors import AutotuneError, DeviceError, PolicyFileError, UsageError
from autotune.family import Family
from autotune.family import load as load_family
from autotune.measure import CPU, CUDA
from autotune.policyfile import Entry, PolicyFile, read
from autotune.record import Study
from autotune.renewing import needed, record, renewable, renewed, unlike
from autotune.space import Configuration
from autotune.summary import duration
from autotune.sweep import Sweep
from autotune.workload import load as load_workload
from autotune.workload import prepare

__all__ = ["Checked", "Request", "check", "policy_files"]


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is to be checked. ``families`` are folders of families that do not ship with autotune; ``tolerance`` how
    much worse than recorded a time may be, relative. ``renew`` times stale entries too and writes those whose claim
    holds with the hashes of now."""

    files: Sequence[Path]
    families: tuple[str, ...] = ()
    device: str = "auto"
    measure: bool = False
    renew: bool = False
    workloads: tuple[str, ...] = ()
    tolerance: float = 0.1
    trial_seconds: float = 120.0
    data: Path | None = None


@dataclass(frozen=True)
class Checked:
    """``trouble`` is why an entry (or the whole file: ``entry`` empty) is refused; empty when it is accepted."""

    path: Path
    entry: str
    trouble: str
    remark: str = ""
    verdict: str = "accepted"


def policy_files(policies: Path | None) -> list[Path]:
    """Every policy file in the folders where they are looked for. Raises PolicyFileError when there is none."""
    folders = paths.policy_folders(policies)
    found = [path for folder in folders for path in sorted(folder.glob("*/*.yaml"))]
    if not found:
        raise PolicyFileError(f"no policy file in {', '.join(map(str, folders))}; `autotune sweep` makes one")
    return list({os.path.realpath(path): path for path in reversed(found)}.values())[::-1]


def check(request: Request, out: Console) -> None:
    """Print a line for each entry. Raises UsageError, and PolicyFileError when anything is refused or a claim does not
    hold."""
    if request.renew and not request.measure:
        raise UsageError("--renew goes with --measure: what is renewed is timed again")
    if len({Path(folder).resolve().name for folder in request.families}) < len(request.families):
        raise UsageError(f"--family names one folder a family: {', '.join(request.families)} are of one name")
    refused = held = 0
    for path in request.files:
        for found in _file(request, path):
            held += not found.trouble
            refused += bool(found.trouble)
            where = f"{found.path}: {found.entry}" if found.entry else str(found.path)
            verdict = (
                f"refused   {where}: {found.trouble}" if found.trouble else f"{found.verdict:<10}{where}"
            )
            out.print(f"{verdict}{f'  ({found.remark})' if found.remark else ''}", markup=False)
    if refused:
        raise PolicyFileError(
            f"{refused} of {refused + held} would not be used, or do not hold what they claim; the reasons are above. "
            "`autotune sweep` measures anew"
        )


def _file(request: Request, path: Path) -> list[Checked]:
    try:
        file = read(path)
        given = [load_family(folder) for folder in request.families]
        family = next((one for one in given if one.name == file.family), None)
        if family is None and given:
            names = " or ".join(one.name for one in given)
            return [Checked(path, "", f"it is for family {file.family}, not {names}")]
        family = family or load_family(file.family)
    except AutotuneError as problem:
        return [Checked(path, "", str(problem))]
    own, remark = _device(request, file)
    accepted = [_entry(path, family, file, item, own) for item in file.entries.values()]
    accepted.append(_default(path, family, file, remark))
    if not request.measure:
        return accepted
    if own is None:
        return [*accepted, Checked(path, "", f"cannot be measured here: {remark}")]
    wanted = [
        c for c in accepted if not c.trouble and c.entry in file.entries and _is_wanted(request, c.entry)
    ]
    if missing := set(request.workloads) - {_workload(name) for name in file.entries}:
        accepted.append(Checked(path, min(missing), "no such entry"))
    stale = [
        c for c in accepted
        if request.renew and c.entry in file.entries and _is_wanted(request, c.entry)
        and renewable(family, file.entries[c.entry], c.trouble)
    ]  # fmt: skip
    measured = _measured(request, family, file, wanted, stale)
    if any(c.verdict == "renewed" for c in measured):  # the default is stale when every entry is
        accepted[len(file.entries)] = _default(path, family, read(path), remark)
    return [c for c in accepted if c not in wanted and c not in stale] + measured


def _workload(entry: str) -> str:
    return entry.partition(" (")[0]


def _is_wanted(request: Request, entry: str) -> bool:
    return not request.workloads or _workload(entry) in request.workloads


def _device(request: Request, file: PolicyFile) -> tuple[Device | None, str]:
    """The device of this machine that the file is for, or None and why not."""
    kind = str(file.device["kind"])
    name = request.device if request.device != "auto" else kind
    try:
        backend = open_backend(name)
    except DeviceError as problem:
        return (
            None,
            f"no {kind} device here: {str(problem).partition(';')[0]}"
            if request.measure
            else f"no {kind} device here",
        )
    found = backend.device
    backend.close()
    if found.kind != kind or found.name != file.device["name"]:
        return None, f"for {file.device['name']}, here is {found.name}"
    return found, ""


def _entry(path: Path, family: Family, file: PolicyFile, item: Entry, device: Device | None) -> Checked:
    # Without the device its limits are those of its compute capability, as far as they are known.
    capability = str(file.device.get("compute_capability", "")).replace(".", "")
    kind = "cpu" if file.device["kind"] == "cpu" else "cuda"
    stand_in = Device(kind=kind, name=str(file.device["name"]), arch=f"sm_{capability}")  # type: ignore[arg-type]
    _, wrong = known_configuration(family, item.configuration)
    return Checked(path, item.workload, entry_refusal(family, item, device or stand_in) or wrong)


def _default(path: Path, family: Family, file: PolicyFile, remark: str) -> Checked:
    reason = (
        file_refusal(family, file, str(file.device["kind"])) or known_configuration(family, file.default)[1]
    )
    return Checked(path, "default", reason, remark)


# -- measuring ----------------------------------------------------------------------------------------------


def _measured(
    request: Request, family: Family, file: PolicyFile, wanted: Sequence[Checked], stale: Sequence[Checked]
) -> list[Checked]:
    """The accepted entries and those that may be renewed, timed again; one worker for all of them."""
    if not wanted and not stale:
        return []
    kind = str(file.device["kind"])
    name = request.device if request.device != "auto" else kind
    results: list[Checked] = []
    with launched([name], "", request.trial_seconds) as workers:
        opened(workers, "")
        for item in wanted:
            try:
                trouble, remark = _retimed(request, workers, family, file.entries[item.entry])
            except AutotuneError as problem:
                trouble, remark = f"cannot be measured: {problem}", ""
            results.append(replace(item, trouble=trouble, remark=remark))
        results += [_renewed(request, workers, family, file, item) for item in stale]
    return results


def _renewed(
    request: Request, workers: Sequence[Worker], family: Family, file: PolicyFile, item: Checked
) -> Checked:
    """A stale entry, timed again and written with the hashes of now where its claim holds."""
    before = file.entries[item.entry]
    try:
        configurations = needed(family, before)
        study = _study(request, workers, family, before, configurations)
        if study is None:
            return replace(item, trouble=_OTHER_INPUT)
        trials = {t.configuration: t for t in study.trials}
        if reason := unlike(before, trials, configurations[0], family.space.control, request.tolerance):
            return replace(item, trouble=f"{item.trouble.partition(';')[0]}, and a sweep is needed: {reason}")
        after = renewed(before, study, configurations[0])
        record(item.path, {item.entry: before}, {item.entry: after})
    except AutotuneError as problem:
        return replace(item, trouble=f"cannot be renewed: {problem}")
    told = f"{duration(after.median_ms)}, recorded {duration(before.median_ms)}"
    return replace(item, trouble="", remark=told, verdict="renewed")


def _retimed(request: Request, workers: Sequence[Worker], family: Family, item: Entry) -> tuple[str, str]:
    """Time the winner, the runner-up and control of an entry side by side: (what does not hold, the figures)."""
    winner, _ = known_configuration(family, item.configuration)
    assert winner is not None
    configurations = [winner, family.space.control]
    with suppress(AutotuneError):  # it may be of a value that is no more
        configurations.append(family.space.configuration(item.runner_up))
    study = _study(request, workers, family, item, list(dict.fromkeys(configurations)))
    if study is None:
        return _OTHER_INPUT, ""
    trials = {t.configuration: t for t in study.trials}
    return broken(item, trials, winner, family.space.control, request.tolerance)


_OTHER_INPUT = "the workload's input is not the one it was measured on; sweep again"


def _study(
    request: Request,
    workers: Sequence[Worker],
    family: Family,
    item: Entry,
    configurations: list[Configuration],
) -> Study | None:
    """The configurations verified and timed on the entry's workload, the best of them side by side; None when that is
    another input by now."""
    from autotune.store import Store

    workload = load_workload(family, _workload(item.workload))
    inputs = prepare(family, workload, paths.data_root(request.data))
    if inputs.digest != item.workload_digest:
        return None
    with tempfile.TemporaryDirectory(prefix="autotune-check-") as folder:
        return Sweep(
            workers=workers,
            family=family,
            workload=workload,
            inputs=inputs,
            configurations=configurations,
            store=Store(folder),
            cache=Cache(default_root()),
            protocol=CPU if workers[0].device.kind == "cpu" else CUDA,
        ).run()
