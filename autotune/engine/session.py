"""The sweeps that a request asks for: checks of the request, the processes, and one sweep for each workload."""

import logging
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

from autotune.compile import Cache, Pool, compilers, default_root, limit_processes, make_checking_command
from autotune.declaration import Configuration, Inputs, SourceText, Workload, prepare
from autotune.device import device_names, lock_clocks
from autotune.engine.request import Case, SweepRequest
from autotune.engine.runner import NO_COMPILER, launch_workers, open_devices
from autotune.errors import DeviceError, NothingMeasured, UsageError
from autotune.hardware import Device
from autotune.measure import GivenOutputs, evaluate_reference
from autotune.record import Study, Trial, read_first_guesses, remarks
from autotune.search import FIVE, MOST_LISTED, Prior

if TYPE_CHECKING:
    from autotune.engine.process_worker import ProcessWorker
    from autotune.engine.sweep import Sweep
    from autotune.record import Store

_log = logging.getLogger("autotune")

_AT_A_TIME = 4  # variants of templates; fewer are sooner compiled than another process is started

_OF_THE_SEARCH = ("searched", "beside", "visited")  # of a study: choosing finalists again does not change it


class Watch(Protocol):
    """Receives the progress of one sweep. ``unfinished`` says how far the work before the first trial got, if it did
    not end."""

    @property
    def unfinished(self) -> str: ...

    def report_compiled(self, done: int, total: int) -> None: ...

    def update(self, trial: Trial, done: int, best_ms: float, busy_share: float) -> None: ...


# Times that a search begins from: the workload, and milliseconds by configuration, infinite where one failed.
Elsewhere = tuple[str, Mapping[Configuration, float]]

# Makes the Watch of a sweep from its title and its number of trials, if that is known.
Watched = Callable[[str, int | None], AbstractContextManager[Watch]]


@dataclass(frozen=True)
class Swept:
    """What came of one workload. ``wall_s`` and ``phases`` are the seconds of this run alone, ``before`` is how many
    trials the record had; ``interrupted`` says how far it was when it was, and is empty otherwise."""

    study: Study
    wall_s: float
    phases: Mapping[str, float]
    before: int
    device: Device
    interrupted: str

    @property
    def is_over(self) -> bool:
        """Whether nothing can follow in this session."""
        return bool(self.interrupted or self.study.about.lost)


@contextmanager
def open_session(
    request: SweepRequest,
    cases: Sequence[Case],
    watched: Watched,
    note: Callable[[str], None] = lambda text: _log.info("%s", text),
    elsewhere: Sequence[Elsewhere] = (),
) -> Iterator["Session"]:
    """The processes of a sweep of a checked ``request``, for the length of the block. Its search begins from the times
    ``elsewhere``. ``note`` is called with what a person should know at once. Raises AutotuneError."""
    began = time.monotonic()
    names = device_names(request.device)
    program = _sanitizer(request, names[0])
    with (
        launch_workers(names, _compiler(request, names[0]), request.trial_seconds) as workers,
        _compilers(request, names) as started,
    ):
        # What records takes a while to import: done while the devices are opened. In a notebook tqdm, which Optuna
        # imports, would advise to install widgets, which nothing here needs.
        with warnings.catch_warnings(action="ignore"):
            from autotune.record import Store

        store = Store(request.store or request.folder)
        yield Session(
            request, tuple(cases), workers, started, store, program, watched, note, elsewhere, began
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
    from autotune.engine.sanitizer import find_sanitizer

    return find_sanitizer()


def _compiler(request: SweepRequest, device: str) -> str:
    """What ``device`` compiles with; checks as --bounds asks for are the cpu's. Raises UsageError, CompilerError."""
    if request.compiler and device == "cpu":
        raise UsageError(NO_COMPILER)
    if request.bounds and device != "cpu":
        raise UsageError("--bounds checks indices on the cpu: add --device cpu (a GPU's check is --sanitize)")
    return make_checking_command() if request.bounds else request.compiler


@contextmanager
def _compilers(request: SweepRequest, names: Sequence[str]) -> Iterator[Pool | None]:
    """Compiler processes that start while the devices are opened, where there seems to be a GPU. A search asks for too
    few at a time to need them."""
    most = request.strategy.most_trials(request.listed)
    variants = min(number for number in (most, request.listed, MOST_LISTED) if number is not None)
    at_a_time = 1 if request.family.is_plain else _AT_A_TIME
    count = limit_processes(request.compiler_processes("cuda", len(names)), variants, at_a_time)
    if count <= 1 or not request.strategy.is_foreseen or names[0] == "cpu" or find_spec("pycuda") is None:
        yield None
        return
    workers = compilers(count)
    try:
        yield workers
    finally:
        workers.stop()


@dataclass(frozen=True)
class Session:
    """What the sweeps of one request share. ``sanitizer`` is the program that then watches the finalists, or empty;
    ``began`` is when the budget of the first began."""

    request: SweepRequest
    cases: Sequence[Case]
    workers: "Sequence[ProcessWorker]"
    compilers: Pool | None
    store: "Store"
    sanitizer: str
    watched: Watched
    note: Callable[[str], None]
    elsewhere: Sequence[Elsewhere] = ()
    began: float | None = None

    def sweeps(self) -> Iterator[Swept]:
        """Each case swept, until one is the last that can be; then the devices are closed while the caller goes on.
        Raises AutotuneError."""
        request, prepared = self.request, []
        for message in SourceText(request.family, request.family.folder).list_warnings():
            self.note(f"{request.family.name}: {message}")
        for case in self.cases:
            inputs = case.inputs or prepare(request.family, case.workload, request.root)
            answer = (
                evaluate_reference(request.family, inputs, case.reference)
                if case.reference is not None
                else None
            )
            prepared.append((case.workload, inputs, answer))
        open_devices(self.workers, request.compiler)
        _sanitizer(request, self.workers[0].device.kind)
        with lock_clocks(request.clocks, [worker.device for worker in self.workers]):
            began = self.began
            for given in prepared:
                swept = self.sweep(*given, began=began)
                yield swept
                began = time.monotonic()
                if swept.is_over:
                    break
        for worker in self.workers:
            worker.dismiss()

    def sweep(
        self,
        workload: Workload,
        inputs: Inputs,
        answer: GivenOutputs | None = None,
        began: float | None = None,
    ) -> Swept:
        """One workload, watched; its budget counts from ``began``, on the clock ``time.monotonic``, by default from
        the first configuration."""
        from autotune.engine.sweep import SweepInterrupted

        start = time.perf_counter()
        request, sweep = self.request, replace(self._sweep(workload, inputs, answer), clock_s=began)
        count = request.strategy.most_trials(request.listed)
        total = min((limit for limit in (request.listed, count) if limit is not None), default=None)
        interrupted = ""
        with self.watched(f"{request.family.name} {workload.name}", total) as view:
            sweep.watch = lambda trial, done, _all: view.update(trial, done, sweep.best_ms, sweep.busy_share)
            sweep.compiled = view.report_compiled
            try:
                study = sweep.run()
            except SweepInterrupted as stopped:
                study = stopped.study
                done = int(study.about.searched.get("tried", len(study.trials)))
                far = f"{done:,} of {total:,}" if total else f"{done:,}"
                interrupted = view.unfinished or f"what was measured is recorded ({far})"
        if self.sanitizer and not interrupted and not study.about.lost:
            try:
                study = self.sanitize(sweep, study)
            except SweepInterrupted as stopped:
                study, interrupted = stopped.study, "what was measured is recorded, but not sanitized"
        wall_s, device = time.perf_counter() - start, self.workers[0].device
        return Swept(study, wall_s, sweep.phases, sweep.before, device, interrupted)

    def _sweep(self, workload: Workload, inputs: Inputs, answer: GivenOutputs | None) -> "Sweep":
        from autotune.engine.sweep import Sweep

        request, kind = self.request, self.workers[0].device.kind
        return Sweep(
            workers=self.workers, request=request, workload=workload, inputs=inputs, answer=answer,
            seeds=() if request.strategy.tries_all else self._seeds(workload), store=self.store,
            prior=self._prior(workload),
            cache=Cache(default_root()), protocol=request.protocol(kind),
            compilers=self.compilers if kind == "cuda" else None,
            note=lambda text: self.note(f"{request.family.name} on {workload.name}: {text}"),
        )  # fmt: skip

    def _seeds(self, workload: Workload) -> list[Configuration]:
        """What a search begins with: what a static pass ranked first, and the winners of other devices and workloads in
        the record."""
        folder, family = self.request.folder, self.request.family
        won = [study.decision for study in self.store.studies() if study.family == family.name]
        winners = [decision.winner.configuration for decision in won if decision]
        return [*read_first_guesses(folder, family, workload.name, FIVE), *winners]

    def _prior(self, workload: Workload) -> Prior:
        """Of this workload: what ``--from`` named, and other devices in this record; else of others what was named."""
        family, device = self.request.family.name, self.workers[0].device.slug
        recorded = [one for one in self.store.studies() if one.family == family and one.device != device]
        known = [*self.elsewhere, *((one.workload, one.comparable) for one in recorded)]
        own = [times for name, times in known if name == workload.name]
        return Prior(own or [times for _, times in self.elsewhere])

    def sanitize(self, sweep: "Sweep", study: Study) -> Study:
        """Run compute-sanitizer on what may win, and return the study: if the tool finds something, finalists are
        chosen and timed again. ``lost`` says if the check did not finish."""
        from autotune.engine.sanitizer import TOOLS, findings, sanitize
        from autotune.measure import WatchedTask

        request = self.request

        def check(configurations: Sequence[Configuration]) -> Mapping[str, str]:
            what = f"{len(configurations)} configurations under {self.sanitizer} ({', '.join(TOOLS)})"
            self.note(f"{study.family} on {study.workload}: {what}")
            task = WatchedTask(
                family=str(request.family.folder), workload=str(sweep.workload.path or study.workload),
                data=str(request.data or ""), device=device_names(request.device)[0], compiler=request.compiler,
                configurations=tuple(one.id for one in configurations), result="",
            )  # fmt: skip
            return findings(task, self.sanitizer)

        kept = {n: v for n, v in study.about.to_dict().items() if n in _OF_THE_SEARCH}
        try:
            while (seen := sanitize(study, self.store, check, request.objective)).trials != study.trials:
                tried = tuple(trial.configuration for trial in seen.trials)
                anyhow = replace(request, chosen=tried, search="exhaustive", trials=None, budget="")
                again = replace(sweep, request=replace(anyhow, again=False, retime=True))
                study = again.run()
                for phase, seconds in again.phases.items():
                    sweep.phases[phase] += seconds
                study = replace(study, about=study.about.update(kept))
        except DeviceError as problem:
            lost = f"measured and recorded, but not sanitized: {problem}"
            return replace(study, about=replace(study.about, lost=lost))
        return seen


def raise_unless_measured(studies: Sequence[Study], where: str) -> None:
    """Raise DeviceError for a device that was lost, and NothingMeasured where no configuration has a time; ``where``
    says where all reasons are."""
    if lost := studies[-1].about.lost:
        raise DeviceError(lost)
    if not any(study.decision for study in studies):
        ended = "; ".join(remarks.states_text(study.states()) or "nothing tried" for study in studies)
        why = remarks.reasons(
            (t.state, t.reason, t.configuration.id) for study in studies for t in study.selection
        )
        raise NothingMeasured(
            f"no configuration could be measured: {ended}; all reasons are in {where}\n{why}".rstrip()
        )
