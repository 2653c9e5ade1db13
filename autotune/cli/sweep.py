"""``autotune sweep``: what is asked for, progress, and the files that come out."""

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from rich.console import Console

from autotune import files as paths
from autotune.cli.report import write_reports
from autotune.cli.terminal import failures, live, print_study, reasons, states
from autotune.compile import Cache, Pool, compilers, default_root, worthwhile
from autotune.declaration import (
    MOST_LISTED,
    Configuration,
    Family,
    Inputs,
    Space,
    Workload,
    listed,
    narrowed,
    prepare,
)
from autotune.declaration import load_workload as load
from autotune.device import device_names
from autotune.errors import DeviceError, FailedTrials, Interrupted, NothingMeasured, UnknownName
from autotune.figures import duration
from autotune.measure import CPU, CUDA
from autotune.policy import Entry, new_entries, read_policy_file, update
from autotune.record import OBJECTIVES, Study, newest_of_each
from autotune.search import Search, default_trials, search
from autotune.sweep import TRIAL_SECONDS, Worker, launched, opened

if TYPE_CHECKING:
    from autotune.record import Store
    from autotune.sweep import Sweep

__all__ = ["Request", "run"]


_OF_THE_SEARCH = (
    "searched",
    "beside",
    "visited",
)  # of a study, which choosing finalists anew does not change


@dataclass(frozen=True, kw_only=True)
class Request:
    """A sweep as asked for on the command line."""

    family: Family
    workloads: tuple[str, ...] = ()
    device: str = "auto"
    preset: str = "full"
    narrowed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    out: Path | None = None
    store: str | None = None
    policies: Path | None = None
    data: Path | None = None
    compiler: str = ""
    processes: int = 0
    trial_seconds: float = TRIAL_SECONDS
    samples: int = 0
    objective: str = "kernel"
    search: str = "exhaustive"
    trials: int | None = None
    seconds: float | None = None
    seed: int = 0
    sanitize: bool = False
    again: bool = False
    retime: bool = False
    strict: bool = False

    @property
    def listed(self) -> int | None:
        """How many configurations there are, where they can be listed."""
        return None if self.configurations is None else len(self.configurations)

    @property
    def is_searched(self) -> bool:
        return self.search != "exhaustive" or self.trials is not None or self.seconds is not None

    @property
    def budget(self) -> dict[str, object]:
        """What the study says of its search: ``by`` what, and with which limits."""
        limits = [f"{self.trials:,} trials"] if self.trials is not None else []
        limits += [f"time limit {self.seconds:g} s"] if self.seconds is not None else []
        seed = {} if self.search == "exhaustive" else {"seed": self.seed}
        return {"by": self.search, **seed, "budget": ", ".join(limits)}

    @property
    def folder(self) -> Path:
        return self.out or Path("autotune-results") / self.family.name

    @property
    def space(self) -> Space:
        """What ``--set`` leaves of it."""
        return narrowed(self.family.space, dict(self.narrowed))

    @cached_property
    def configurations(self) -> tuple[Configuration, ...] | None:
        """None where they are too many to list: a search draws them. Raises UnknownName, UsageError."""
        product = math.prod(len(policy.values) for policy in self.space.policies)
        if self.preset == "full" and product > MOST_LISTED and listed(self.space) is None:
            return None
        return self.family.space.configurations(self.preset, self.narrowed)

    def compiler_processes(self, device_kind: str, workers: int = 1) -> int:
        """One a core; a core is left to each measuring process where there is a GPU to keep busy."""
        cores = len(os.sched_getaffinity(0))
        return self.processes or (cores if device_kind == "cpu" else max(1, cores - workers))


def run(request: Request, out: Console, err: Console) -> None:
    """Everything that can be refused is refused first: names, data, device, folders. Then one sweep a workload."""
    # Names, values and limits are checked before anything is made.
    if request.objective not in OBJECTIVES:
        raise UnknownName("objective", request.objective, OBJECTIVES)
    request.family.orders  # noqa: B018 - refuses a value that stands for no order
    if request.configurations is None or request.is_searched:
        search(request.space, request.configurations, request.search, seed=request.seed,
               trials=request.trials, seconds=request.seconds)  # fmt: skip
    workloads = [load(request.family, name) for name in request.workloads or ("",)]
    paths.writable(request.folder)
    policies = request.policies or Path(os.environ.get("AUTOTUNE_POLICIES") or "policies")
    paths.writable(policies)
    root = paths.data_root(request.data)
    studies: list[Study] = []
    interrupted = ""
    names = device_names(request.device)
    program = _sanitizer(request, names[0])
    with launched(names, request.compiler, request.trial_seconds) as workers:
        with _compilers(request, names) as ready:
            # What records and what reports take half a second to import: done while the devices are opened.
            from autotune.record import Store

            store = Store(request.store or request.folder)
            Thread(target=import_module, args=("autotune.report.files",), daemon=True).start()
            inputs = [(workload, prepare(request.family, workload, root)) for workload in workloads]
            opened(workers, request.compiler)
            _sanitizer(request, workers[0].device.kind)
            for workload, prepared in inputs:
                study, interrupted = _one(
                    request, workers, ready, workload, prepared, root, store, program, out, err
                )
                studies.append(study)
                if interrupted or study.about.lost:
                    break
        for worker in workers:
            worker.dismiss()
        _publish(request, studies, store, policies, out)
    if interrupted:
        raise Interrupted(f"interrupted: {interrupted}; the same command goes on from there")
    if lost := studies[-1].about.lost:
        raise DeviceError(lost)
    if not any(study.decision for study in studies):
        ended = "; ".join(states(study) or "nothing tried" for study in studies)
        why = reasons((t.state, t.reason, t.configuration.id) for study in studies for t in study.selection)
        where = f"all reasons are in {request.folder}/results.csv"
        raise NothingMeasured(f"no configuration could be measured: {ended}; {where}\n{why}".rstrip())
    if request.strict and (told := [line for study in studies for line in failures(study)]):
        raise FailedTrials(
            f"--strict: {'; '.join(told)}; everything is recorded, all reasons are in {request.folder}/results.csv"
        )


def _sanitizer(request: Request, device: str) -> str:
    """The program that --sanitize asks for, empty without. Raises DeviceError where ``device`` is the cpu, or it is not
    installed."""
    if not request.sanitize:
        return ""
    if device == "cpu":
        raise DeviceError(
            "--sanitize has compute-sanitizer watch a GPU, and this is the cpu: leave it out there (kernels run in "
            "several orders and between guards all the same), or name a GPU with --device"
        )
    from autotune.sweep import find_sanitizer

    return find_sanitizer()


@contextmanager
def _compilers(request: Request, names: Sequence[str]) -> Iterator[Pool | None]:
    """Compiler processes that start while the devices are opened, where there seems to be a GPU. A search asks for too
    few at a time to need them."""
    count = worthwhile(request.compiler_processes("cuda", len(names)), request.listed or 0)
    if count <= 1 or request.is_searched or names[0] == "cpu" or find_spec("pycuda") is None:
        yield None
        return
    workers = compilers(count)
    try:
        yield workers
    finally:
        workers.stop()


def _one(
    request: Request,
    workers: Sequence[Worker],
    ready: Pool | None,
    workload: Workload,
    inputs: Inputs,
    root: Path,
    store: "Store",
    sanitizer: str,
    out: Console,
    err: Console,
) -> tuple[Study, str]:
    """Sweep one workload under a progress bar: (the study, how far it was when it was interrupted, else empty).
    ``sanitizer`` is the program that then watches the finalists, or empty."""
    from autotune.sweep import Interrupted, Sweep

    began = time.perf_counter()
    device = workers[0].device
    protocol = CPU if device.kind == "cpu" else CUDA
    sweep = Sweep(
        workers=workers,
        family=request.family,
        workload=workload,
        inputs=inputs,
        configurations=request.configurations,
        space=request.space,
        store=store,
        cache=Cache(default_root()),
        protocol=protocol.exactly(request.samples) if request.samples else protocol,
        processes=request.compiler_processes(device.kind, len(workers)),
        compilers=ready if device.kind == "cuda" else None,
        again=request.again,
        retime=request.retime,
        budget=request.budget,
        root=root,
    )
    total = request.listed
    if request.is_searched:
        sweep.searched = _searched(request, store)
        limit = request.trials or (total if request.seconds else default_trials(total))
        total = limit if total is None or limit is None else min(total, limit)
    interrupted = ""
    sweep.note = lambda text: err.print(f"{request.family.name} on {workload.name}: {text}", markup=False)
    with live(f"{request.family.name} {workload.name}", total, err) as view:
        sweep.watch = lambda trial, done, _all: view.update(trial, done, sweep.best_ms, sweep.busy_share)
        sweep.compiled = view.compiled
        try:
            study = sweep.run()
        except Interrupted as stopped:
            study = stopped.study
            done = int(study.about.searched.get("tried", len(study.trials)))
            far = f"{done:,} of {total:,}" if total else f"{done:,}"
            interrupted = view.unfinished or f"what was measured is recorded ({far})"
    if sanitizer and not interrupted and not study.about.lost:
        try:
            study = _sanitized(request, sweep, study, sanitizer, err)
        except Interrupted as stopped:
            study, interrupted = stopped.study, "what was measured is recorded, but not sanitized"
    wall_s = time.perf_counter() - began
    print_study(study, wall_s, sweep.phases.seconds, sweep.before, device, out, request.objective)
    return study, interrupted


def _sanitized(request: Request, sweep: "Sweep", study: Study, program: str, err: Console) -> Study:
    """The study after compute-sanitizer has seen what may win: where it finds something, finalists are chosen and timed
    anew. Where it does not come to its end, ``lost`` says so."""
    from autotune.measure import Task
    from autotune.sweep import TOOLS, findings, sanitized

    def check(configurations: Sequence[Configuration]) -> Mapping[str, str]:
        what = f"{len(configurations)} configurations under {program} ({', '.join(TOOLS)})"
        err.print(f"{study.family} on {study.workload}: {what}", markup=False)
        task = Task(
            family=str(request.family.folder), workload=str(sweep.workload.path or study.workload),
            data=str(request.data or ""), device=device_names(request.device)[0], compiler=request.compiler,
            configurations=tuple(one.id for one in configurations), result="",
        )  # fmt: skip
        return findings(task, program)

    kept = {n: v for n, v in study.about.to_dict().items() if n in _OF_THE_SEARCH}
    try:
        while (seen := sanitized(study, sweep.store, check, request.objective)).trials != study.trials:
            tried = tuple(trial.configuration for trial in seen.trials)
            study = replace(sweep, configurations=tried, searched=None, again=False, retime=True).run()
            study = replace(study, about=study.about.told(kept))
    except DeviceError as problem:
        lost = f"measured and recorded, but not sanitized: {problem}"
        return replace(study, about=replace(study.about, lost=lost))
    return seen


def _searched(request: Request, store: "Store") -> Callable[[Callable[[Configuration], str]], Search]:
    """What makes the search; the winners of other devices and workloads in the record come early in it."""
    won = [study.decision for study in store.studies() if study.family == request.family.name]
    return lambda exclusion: search(
        request.space,
        request.configurations,
        request.search,
        seed=request.seed,
        trials=request.trials,
        seconds=request.seconds,
        seeds=[decision.winner.configuration for decision in won if decision],
        exclusion=exclusion,
    )


def _publish(
    request: Request, studies: Sequence[Study], store: "Store", policies: Path, out: Console
) -> None:
    families = {request.family.name: request.family}
    newest = _latest(store.studies(), studies)
    won = [study for study in studies if study.decision]
    written: Path | None = None
    try:
        if won:
            same = [s for s in newest if (s.family, s.device) == (won[0].family, won[0].device)]
            written = update(policies, [s for s in same if s.decision], request.objective)
    finally:  # after the policy file, which the report names; a disk may have room for that alone
        told = out if won else Console(quiet=True)
        write_reports(request.folder, newest, told, families, policies=[policies])
    if written:
        out.print(f"policy file  {written}")
        entries = read_policy_file(written).entries
        for line in dict.fromkeys(_proved(study, entries, request.objective) for study in won):
            out.print(f"             {line}", markup=False)
        for new in (e for study in studies for e in new_entries(study, request.objective)):
            kept = entries[new.workload]
            if kept.configuration != new.configuration:
                better = f"{Configuration(kept.configuration).id}, {duration(kept.median_ms)}"
                out.print(f"             keeps for {new.workload} what an earlier sweep found: {better}")


def _proved(study: Study, entries: Mapping[str, Entry], objective: str) -> str:
    """For which sizes the winner of a study is right."""
    names = {new.workload for new in new_entries(study, objective)}
    sizes = [entries[name].proved.get("sizes", []) for name in names if name in entries]
    if sizes and all(sizes):
        return f"proved for {study.workload} and {min(map(len, sizes))} ragged sizes near it"
    why = study.about.proof.get("why_not", "")
    return f"proved for the swept sizes of {study.workload} only{f': {why}' if why else ''}"


def _latest(recorded: Sequence[Study], swept: Sequence[Study]) -> list[Study]:
    """The newest study of each family, workload and device; ``swept`` ones stand for themselves."""
    newest = {study.key: study for study in newest_of_each(recorded)}
    for study in swept:
        if study.key in newest and newest[study.key].identity != study.identity:
            newest[study.key] = study
    return list(newest.values())
