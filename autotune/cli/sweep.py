"""``autotune sweep``: what is asked for, progress, and the files that come out."""

import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
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
from autotune.engine import TRIAL_SECONDS, Worker, launched, opened
from autotune.errors import DeviceError, FailedTrials, Interrupted, NothingMeasured, UnknownName
from autotune.figures import duration
from autotune.measure import CPU, CUDA
from autotune.policy import Entry, new_entries, read_policy_file, update
from autotune.record import OBJECTIVES, Study, newest_of_each
from autotune.search import Strategy

if TYPE_CHECKING:
    from autotune.engine import Sweep
    from autotune.record import Store

# Of a study, which choosing finalists anew does not change.
_OF_THE_SEARCH = ("searched", "beside", "visited")


@dataclass(frozen=True, kw_only=True)
class SweepRequest:
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
    strategy: Strategy = field(default_factory=Strategy)
    sanitize: bool = False
    again: bool = False
    retime: bool = False
    strict: bool = False

    @property
    def listed(self) -> int | None:
        """How many configurations there are, where they can be listed."""
        return None if self.configurations is None else len(self.configurations)

    @property
    def folder(self) -> Path:
        return self.out or Path("autotune-results") / self.family.name

    @property
    def policy_folder(self) -> Path:
        return self.policies or Path(os.environ.get("AUTOTUNE_POLICIES") or "policies")

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


def run(request: SweepRequest, out: Console, err: Console) -> None:
    """Everything that can be refused is refused first: names, data, device, folders. Then one sweep a workload."""
    workloads = _checked(request)
    root = paths.data_root(request.data)
    studies: list[Study] = []
    interrupted = ""
    names = device_names(request.device)
    program = _sanitizer(request, names[0])
    with launched(names, request.compiler, request.trial_seconds) as workers:
        with _compilers(request, names) as started:
            # What records and what reports take half a second to import: done while the devices are opened.
            from autotune.record import Store

            store = Store(request.store or request.folder)
            Thread(target=import_module, args=("autotune.report.files",), daemon=True).start()
            inputs = [(workload, prepare(request.family, workload, root)) for workload in workloads]
            opened(workers, request.compiler)
            _sanitizer(request, workers[0].device.kind)
            session = _Session(request, workers, started, store, root, program, out, err)
            for workload, prepared in inputs:
                study, interrupted = session.swept(workload, prepared)
                studies.append(study)
                if interrupted or study.about.lost:
                    break
        for worker in workers:
            worker.dismiss()
        _publish(request, studies, store, out)
    _raise_for(request, studies, interrupted)


def _checked(request: SweepRequest) -> list[Workload]:
    """The workloads, after names, values, limits and folders were looked at: before anything is made."""
    if request.objective not in OBJECTIVES:
        raise UnknownName("objective", request.objective, OBJECTIVES)
    request.family.orders  # noqa: B018 - refuses a value that stands for no order
    request.strategy.check(request.configurations)
    workloads = [load(request.family, name) for name in request.workloads or ("",)]
    paths.writable(request.folder)
    paths.writable(request.policy_folder)
    return workloads


def _raise_for(request: SweepRequest, studies: Sequence[Study], interrupted: str) -> None:
    """Raises what the command ends with, after all is recorded."""
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


def _sanitizer(request: SweepRequest, device: str) -> str:
    """The program that --sanitize asks for, empty without. Raises DeviceError where ``device`` is the cpu, or it is not
    installed."""
    if not request.sanitize:
        return ""
    if device == "cpu":
        raise DeviceError(
            "--sanitize has compute-sanitizer watch a GPU, and this is the cpu: leave it out there (kernels run in "
            "several orders and between guards all the same), or name a GPU with --device"
        )
    from autotune.engine import find_sanitizer

    return find_sanitizer()


@contextmanager
def _compilers(request: SweepRequest, names: Sequence[str]) -> Iterator[Pool | None]:
    """Compiler processes that start while the devices are opened, where there seems to be a GPU. A search asks for too
    few at a time to need them."""
    count = worthwhile(request.compiler_processes("cuda", len(names)), request.listed or 0)
    if count <= 1 or not request.strategy.tries_all or names[0] == "cpu" or find_spec("pycuda") is None:
        yield None
        return
    workers = compilers(count)
    try:
        yield workers
    finally:
        workers.stop()


@dataclass(frozen=True)
class _Session:
    """What the sweeps of one command share. ``sanitizer`` is the program that then watches the finalists, or empty."""

    request: SweepRequest
    workers: Sequence[Worker]
    compilers: Pool | None
    store: "Store"
    root: Path
    sanitizer: str
    out: Console
    err: Console

    def swept(self, workload: Workload, inputs: Inputs) -> tuple[Study, str]:
        """Sweep one workload under a progress bar: (the study, how far it was when it was interrupted, else empty)."""
        from autotune.engine import SweepInterrupted

        began = time.perf_counter()
        request, sweep = self.request, self._sweep(workload, inputs)
        count = request.strategy.most_trials(request.listed)
        total = min((limit for limit in (request.listed, count) if limit is not None), default=None)
        interrupted = ""
        with live(f"{request.family.name} {workload.name}", total, self.err) as view:
            sweep.watch = lambda trial, done, _all: view.update(trial, done, sweep.best_ms, sweep.busy_share)
            sweep.compiled = view.compiled
            try:
                study = sweep.run()
            except SweepInterrupted as stopped:
                study = stopped.study
                done = int(study.about.searched.get("tried", len(study.trials)))
                far = f"{done:,} of {total:,}" if total else f"{done:,}"
                interrupted = view.unfinished or f"what was measured is recorded ({far})"
        if self.sanitizer and not interrupted and not study.about.lost:
            try:
                study = self._sanitized(sweep, study)
            except SweepInterrupted as stopped:
                study, interrupted = stopped.study, "what was measured is recorded, but not sanitized"
        wall_s, device = time.perf_counter() - began, self.workers[0].device
        print_study(study, wall_s, sweep.phases, sweep.before, device, self.out, request.objective)
        return study, interrupted

    def _sweep(self, workload: Workload, inputs: Inputs) -> "Sweep":
        from autotune.engine import Sweep

        request, kind = self.request, self.workers[0].device.kind
        protocol = CPU if kind == "cpu" else CUDA
        return Sweep(
            workers=self.workers,
            family=request.family,
            workload=workload,
            inputs=inputs,
            configurations=request.configurations,
            space=request.space,
            strategy=request.strategy,
            seeds=() if request.strategy.tries_all else self._winners(),
            store=self.store,
            cache=Cache(default_root()),
            protocol=protocol.exactly(request.samples) if request.samples else protocol,
            processes=request.compiler_processes(kind, len(self.workers)),
            compilers=self.compilers if kind == "cuda" else None,
            again=request.again,
            retime=request.retime,
            root=self.root,
            note=lambda text: self.err.print(
                f"{request.family.name} on {workload.name}: {text}", markup=False
            ),
        )

    def _winners(self) -> list[Configuration]:
        """Of other devices and workloads in the record."""
        won = [study.decision for study in self.store.studies() if study.family == self.request.family.name]
        return [decision.winner.configuration for decision in won if decision]

    def _sanitized(self, sweep: "Sweep", study: Study) -> Study:
        """The study after compute-sanitizer has seen what may win: where it finds something, finalists are chosen and
        timed anew. Where it does not come to its end, ``lost`` says so."""
        from autotune.engine import TOOLS, findings, sanitized
        from autotune.measure import Task

        request = self.request

        def check(configurations: Sequence[Configuration]) -> Mapping[str, str]:
            what = f"{len(configurations)} configurations under {self.sanitizer} ({', '.join(TOOLS)})"
            self.err.print(f"{study.family} on {study.workload}: {what}", markup=False)
            task = Task(
                family=str(request.family.folder), workload=str(sweep.workload.path or study.workload),
                data=str(request.data or ""), device=device_names(request.device)[0], compiler=request.compiler,
                configurations=tuple(one.id for one in configurations), result="",
            )  # fmt: skip
            return findings(task, self.sanitizer)

        kept = {n: v for n, v in study.about.to_dict().items() if n in _OF_THE_SEARCH}
        try:
            while (seen := sanitized(study, self.store, check, request.objective)).trials != study.trials:
                tried = tuple(trial.configuration for trial in seen.trials)
                again = replace(sweep, configurations=tried, strategy=Strategy(), again=False, retime=True)
                study = again.run()
                for phase, seconds in again.phases.items():
                    sweep.phases[phase] += seconds
                study = replace(study, about=study.about.told(kept))
        except DeviceError as problem:
            lost = f"measured and recorded, but not sanitized: {problem}"
            return replace(study, about=replace(study.about, lost=lost))
        return seen


def _publish(request: SweepRequest, studies: Sequence[Study], store: "Store", out: Console) -> None:
    families = {request.family.name: request.family}
    newest = _latest(store.studies(), studies)
    won = [study for study in studies if study.decision]
    written: Path | None = None
    try:
        if won:
            same = [s for s in newest if (s.family, s.device) == (won[0].family, won[0].device)]
            written = update(request.policy_folder, [s for s in same if s.decision], request.objective)
    finally:  # after the policy file, which the report names; a disk may have room for that alone
        console = out if won else Console(quiet=True)
        write_reports(request.folder, newest, console, families, policies=[request.policy_folder])
    if written:
        out.print(f"policy file  {written}")
        kept = read_policy_file(written).entries
        new = [(study, new_entries(study, request.objective)) for study in studies]
        proved = [_proved(study, [kept[one.name] for one in own]) for study, own in new if own]
        for line in dict.fromkeys(proved):
            out.print(f"             {line}", markup=False)
        for one in (entry for _, own in new for entry in own):
            better = kept[one.name]
            if better.configuration != one.configuration:
                told = f"{Configuration(better.configuration).id}, {duration(better.median_ms)}"
                out.print(f"             keeps for {one.name} what an earlier sweep found: {told}")


def _proved(study: Study, entries: Sequence[Entry]) -> str:
    """For which sizes the winners of a study are right, as its ``entries`` say."""
    sizes = [entry.proved.get("sizes", []) for entry in entries]
    against = study.about.proof.get("against", "")
    told = f", against the result of {against} only" if against else ""
    if all(sizes):
        return f"proved for {study.workload} and {min(map(len, sizes))} ragged sizes near it{told}"
    why = study.about.proof.get("why_not", "")
    return f"proved for the swept sizes of {study.workload} only{told}{f': {why}' if why else ''}"


def _latest(recorded: Sequence[Study], swept: Sequence[Study]) -> list[Study]:
    """The newest study of each family, workload and device; ``swept`` ones stand for themselves."""
    newest = {study.key: study for study in newest_of_each(recorded)}
    for study in swept:
        if study.key in newest and newest[study.key].identity != study.identity:
            newest[study.key] = study
    return list(newest.values())
