"""``autotune check``: would these policy files be accepted here, and does what they claim still hold."""

import math
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
from autotune.decision import MOST, TIE, time_ms
from autotune.device import Device
from autotune.devices import open_backend
from autotune.errors import AutotuneError, DeviceError, PolicyFileError
from autotune.family import Family
from autotune.family import load as load_family
from autotune.measure import CPU, CUDA
from autotune.policyfile import Entry, PolicyFile, read
from autotune.regret import percent
from autotune.space import Configuration
from autotune.summary import duration
from autotune.sweep import Sweep
from autotune.trial import Trial
from autotune.workload import load as load_workload
from autotune.workload import prepare

__all__ = ["Checked", "Request", "check", "claims", "policy_files"]


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is to be checked. ``family`` is the folder of a family that does not ship with autotune; ``tolerance`` how
    much worse than recorded a time may be, relative."""

    files: Sequence[Path]
    family: str = ""
    device: str = "auto"
    measure: bool = False
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


def policy_files(policies: Path | None) -> list[Path]:
    """Every policy file in the folders where they are looked for. Raises PolicyFileError when there is none."""
    folders = paths.policy_folders(policies)
    found = [path for folder in folders for path in sorted(folder.glob("*/*.yaml"))]
    if not found:
        raise PolicyFileError(f"no policy file in {', '.join(map(str, folders))}; `autotune sweep` makes one")
    return list({os.path.realpath(path): path for path in reversed(found)}.values())[::-1]


def check(request: Request, out: Console) -> None:
    """Print a line for each entry. Raises PolicyFileError when anything is refused or a claim does not hold."""
    refused = held = 0
    for path in request.files:
        for found in _file(request, path):
            held += not found.trouble
            refused += bool(found.trouble)
            where = f"{found.path}: {found.entry}" if found.entry else str(found.path)
            verdict = f"refused   {where}: {found.trouble}" if found.trouble else f"accepted  {where}"
            out.print(f"{verdict}{f'  ({found.remark})' if found.remark else ''}", markup=False)
    if refused:
        raise PolicyFileError(
            f"{refused} of {refused + held} would not be used, or do not hold what they claim; the reasons are above. "
            "`autotune sweep` measures anew"
        )


def _file(request: Request, path: Path) -> list[Checked]:
    try:
        file = read(path)
        family = load_family(request.family or file.family)
    except AutotuneError as problem:
        return [Checked(path, "", str(problem))]
    if file.family != family.name:
        return [Checked(path, "", f"it is for family {file.family}, not {family.name}")]
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
    return [c for c in accepted if c not in wanted] + _measured(request, family, file, wanted)


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


def _measured(request: Request, family: Family, file: PolicyFile, wanted: Sequence[Checked]) -> list[Checked]:
    """The accepted entries, timed again; one worker for all of them."""
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
    return results


def _retimed(request: Request, workers: Sequence[Worker], family: Family, item: Entry) -> tuple[str, str]:
    """Time the winner, the runner-up and control of an entry side by side: (what does not hold, the figures)."""
    from autotune.store import Store

    workload = load_workload(family, _workload(item.workload))
    inputs = prepare(family, workload, paths.data_root(request.data))
    if inputs.digest != item.workload_digest:
        return "the workload's input is not the one it was measured on; sweep again", ""
    winner, _ = known_configuration(family, item.configuration)
    assert winner is not None
    configurations = [winner, family.space.control]
    with suppress(AutotuneError):  # it may be of a value that is no more
        configurations.append(family.space.configuration(item.runner_up))
    with tempfile.TemporaryDirectory(prefix="autotune-check-") as folder:
        study = Sweep(
            workers=workers,
            family=family,
            workload=workload,
            inputs=inputs,
            configurations=list(dict.fromkeys(configurations)),
            store=Store(folder),
            cache=Cache(default_root()),
            protocol=CPU if workers[0].device.kind == "cpu" else CUDA,
        ).run()
    trials = {t.configuration: t for t in study.trials}
    return claims(item, trials, winner, family.space.control, request.tolerance)


def claims(
    item: Entry,
    trials: dict[Configuration, Trial],
    winner: Configuration,
    control: Configuration,
    tolerance: float,
) -> tuple[str, str]:
    """What of an entry's claims the new ``trials`` contradict (empty: nothing), and the new figures. The claims: it is
    right; it takes ``median_ms``; it is faster than control by ``margin_over_control``; it is not slower than the
    runner-up. Times may be worse by ``tolerance``, and by what both measurements leave open."""
    now = trials[winner]
    if now.measurement is None:
        return f"the winner is {now.state}: {now.reason}", ""
    took = time_ms(now)
    open_by = max(TIE, min(MOST, math.hypot(now.measurement.spread, item.spread)))
    figures = [f"{duration(took)}, recorded {duration(item.median_ms)}"]
    broken: list[str] = []
    if took > item.median_ms * (1 + tolerance + open_by):
        broken.append(
            f"takes {duration(took)}, {percent(took / item.median_ms - 1)} more than the recorded time"
        )
    against = trials.get(control)
    if against and against.measurement and item.margin_over_control:
        margin = time_ms(against) / took
        figures.append(f"{margin:.2f} x faster than control, recorded {item.margin_over_control:.2f}")
        if margin < item.margin_over_control / (1 + tolerance + open_by) or (
            margin < 1 / (1 + open_by) and item.margin_over_control >= 1
        ):
            broken.append(
                f"is {margin:.3g} x as fast as control, {item.margin_over_control:.3g} x is claimed"
            )
    for configuration, trial in trials.items():
        if configuration in (winner, control) or not trial.measurement:
            continue
        ratio = time_ms(trial) / took
        figures.append(f"runner-up {ratio:.2f} x the winner")
        if ratio < 1 / (1 + open_by):
            broken.append(f"the runner-up {configuration.id} is now faster: {duration(time_ms(trial))}")
    return "; ".join(broken), "; ".join(figures)
