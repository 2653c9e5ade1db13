"""``autotune check``: would these policy files be accepted here, and does what they claim still hold."""

import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from autotune import files as paths
from autotune.compile import Cache, default_root
from autotune.declaration import Configuration, Family, load_family, load_workload, prepare
from autotune.device import open_backend
from autotune.errors import AutotuneError, DeviceError, PolicyFileError, UsageError
from autotune.figures import duration
from autotune.figures import loss_percent as percent
from autotune.hardware import Device
from autotune.measure import CPU, CUDA
from autotune.policy import Entry, PolicyFile, entry_refusal, file_refusal, known_configuration, stale, write
from autotune.policy import new_entries as entries
from autotune.policy import read_policy_file as read
from autotune.record import MOST, TIE, BreakEven, Study, Trial, break_even, cost_ms, noise
from autotune.sweep import Sweep, Worker, launched, opened

__all__ = [
    "Checked",
    "Request",
    "broken",
    "check",
    "needed",
    "policy_files",
    "record",
    "renewable",
    "renewed",
    "unlike",
]


def broken(
    item: Entry,
    trials: dict[Configuration, Trial],
    winner: Configuration,
    control: Configuration,
    tolerance: float,
) -> tuple[str, str]:
    """What of an entry's claims the new ``trials`` contradict (empty: nothing), and the new figures. The claims: it is
    right; it takes ``median_ms`` (with what its objective adds); it is faster than control by ``margin_over_control``;
    it is not slower than the runner-up. Times may be worse by ``tolerance``, and by what both measurements leave
    open."""
    now = trials[winner]
    if now.measurement is None:
        return f"the winner is {now.state}: {now.reason}", ""
    took, recorded = cost_ms(now, item.objective), item.cost_ms
    open_by = max(TIE, min(MOST, math.hypot(now.measurement.spread, item.spread)))
    figures = [f"{duration(took)}, recorded {duration(recorded)}"]
    found: list[str] = []
    if took > recorded * (1 + tolerance + open_by):
        found.append(f"takes {duration(took)}, {percent(took / recorded - 1)} more than the recorded time")
    against = trials.get(control)
    if against and against.measurement and item.margin_over_control:
        margin = cost_ms(against, item.objective) / took
        figures.append(f"{margin:.2f} x faster than control, recorded {item.margin_over_control:.2f}")
        if margin < item.margin_over_control / (1 + tolerance + open_by) or (
            margin < 1 / (1 + open_by) and item.margin_over_control >= 1
        ):
            found.append(f"is {margin:.3g} x as fast as control, {item.margin_over_control:.3g} x is claimed")
    for configuration, trial in trials.items():
        if configuration in (winner, control) or not trial.measurement:
            continue
        ratio = cost_ms(trial, item.objective) / took
        figures.append(f"runner-up {ratio:.2f} x the winner")
        if ratio < 1 / (1 + open_by):
            found.append(
                f"the runner-up {configuration.id} is now faster: {duration(cost_ms(trial, item.objective))}"
            )
    return "; ".join(found), "; ".join(figures)


_LOCK_SECONDS = 60

_DIGESTS = ("source_digest", "layouts_digest", "space_digest")


def renewable(family: Family, item: Entry, refusal: str) -> bool:
    """Whether ``item`` is refused only since its kernel source, headers, layouts or declaration changed."""
    configuration, wrong = known_configuration(family, item.configuration)
    return bool(refusal) and refusal == stale(family, item) and configuration is not None and not wrong


def needed(family: Family, item: Entry) -> list[Configuration]:
    """What is to be timed, the winner first: it, control, the runner-up, the tie set, the other end of the break-even;
    without those that are no more."""
    winner, _ = known_configuration(family, item.configuration)
    assert winner is not None
    found = [winner, family.space.control]
    for name in (item.runner_up, *item.tie_set, item.break_even_with):
        with suppress(AutotuneError):
            found.append(family.space.configuration(name))
    return list(dict.fromkeys(found))


def unlike(
    item: Entry,
    trials: Mapping[Configuration, Trial],
    winner: Configuration,
    control: Configuration,
    tolerance: float,
) -> str:
    """Why the new ``trials`` do not bear out the entry, empty when they do: its winner has to be right and, in what its
    objective counts, within noise of the best of them; its margin over control the recorded one within ``tolerance``
    and noise, either way: a margin that moved says that more changed than was timed. Times themselves may change."""
    now = trials.get(winner)
    if now is None or now.measurement is None:
        return f"the winner is {now.state}: {now.reason}" if now else "the winner was not tried"
    took = cost_ms(now, item.objective)
    best = min(trials.values(), key=lambda t: cost_ms(t, item.objective))
    if took > cost_ms(best, item.objective) * (1 + noise(best, now, item.objective)):
        return (
            f"{best.configuration.id} is faster than the winner now: {duration(cost_ms(best, item.objective))}, "
            f"winner {duration(took)}"
        )
    against = trials.get(control)
    if item.margin_over_control:
        if against is None or against.measurement is None:
            return f"control is {against.state}: {against.reason}" if against else "control was not tried"
        margin = cost_ms(against, item.objective) / took
        allowed = (1 + tolerance) * (1 + noise(now, against, item.objective))
        if not item.margin_over_control / allowed <= margin <= item.margin_over_control * allowed:
            return (
                f"is {margin:.3g} x as fast as control, recorded {item.margin_over_control:.3g} x, and at most "
                f"{percent(tolerance)} apart is allowed"
            )
    return ""


def renewed(item: Entry, study: Study, winner: Configuration) -> Entry:
    """``item`` with the figures and hashes of ``study``, in which ``needed`` was timed. The winner stays; regrets over
    other entries' winners stay as they were."""
    trials = {t.configuration: t for t in study.trials if t.measurement}
    own = trials[winner]
    (found,) = entries(replace(study, trials=(own,)), item.objective)
    ties = [t for t in trials.values() if cost_ms(t, item.objective)
            <= cost_ms(own, item.objective) * (1 + noise(own, t, item.objective))]  # fmt: skip
    slower = [t for t in trials.values() if t not in ties and t.configuration != study.control]
    runner_up = min(slower, key=lambda t: cost_ms(t, item.objective), default=None)
    control = trials.get(study.control)
    margin = cost_ms(control, item.objective) / cost_ms(own, item.objective) if control else 0.0
    pair = _break_even(item, trials, own)
    return replace(
        found,
        workload=item.workload,
        tie_set=sorted((t.configuration.id for t in ties), key=lambda name: (name != winner.id, name)),
        runner_up=runner_up.configuration.id if runner_up else "",
        runner_up_ms=round(cost_ms(runner_up, item.objective), 7) if runner_up else 0.0,
        margin_over_control=round(margin, 3),
        break_even=pair.launches if pair else 0,
        break_even_with=item.break_even_with if pair else "",
        regret_with=item.regret_with,
        renewed=found.date,
        renewed_from=item.renewed_from or {"date": item.date, **{name: getattr(item, name) for name in _DIGESTS}},
    )  # fmt: skip


def _break_even(item: Entry, trials: Mapping[Configuration, Trial], own: Trial) -> BreakEven | None:
    other = next((t for c, t in trials.items() if c.id == item.break_even_with), None)
    if other is None:
        return None
    return break_even(own, other) if item.objective == "kernel" else break_even(other, own)


def record(path: Path, before: Mapping[str, Entry], after: Mapping[str, Entry]) -> None:
    """Put the entries ``after`` into the policy file at ``path`` where it still has those of ``before``: what a sweep
    has written in the meantime stays. Raises PolicyFileError when it cannot be written."""
    import filelock

    real = Path(os.path.realpath(path))
    try:
        with filelock.FileLock(f"{real}.lock", timeout=_LOCK_SECONDS):
            now = read(real)
            kept = {name: item for name, item in after.items() if now.entries.get(name) == before[name]}
            write(real, replace(now, entries={**now.entries, **kept}))
    except filelock.Timeout:
        raise PolicyFileError(
            f"{path} has been locked for {_LOCK_SECONDS} s by another process; try again"
        ) from None
    except OSError as problem:
        raise PolicyFileError(f"cannot write {path}: {problem.strerror or problem}") from None


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
    from autotune.record import Store

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
