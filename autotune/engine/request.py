"""A sweep as it is asked for, on the command line, from a program, by ssh or by a worker on another host.

Each option is one field of ``SweepRequest``, with its default, its help and how it is written; ``OPTIONS`` lists them.
The command line, ``autotune.sweep``, ``--on HOST`` and what a worker is sent are made from that list.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from keyword import iskeyword
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_origin

from autotune import files as paths
from autotune.compile import is_compiler
from autotune.declaration import (
    FULL,
    POSSIBLE,
    Configuration,
    Family,
    Inputs,
    SourceText,
    Space,
    Workload,
    families,
    load_family,
    load_workload,
    workloads,
)
from autotune.errors import StoreError, UsageError
from autotune.measure import CPU, CUDA, KERNEL, OBJECTIVES, find_objective
from autotune.search import SAMPLERS, Strategy, can_be_listed, narrow

if TYPE_CHECKING:
    from autotune.measure import Protocol, Reference


@dataclass(frozen=True)
class Option:
    """The field ``name`` of a request, as a person gives it. ``word`` is what the command line calls it, ``letter`` its
    short form there; ``least`` is the least number. A ``shared`` one is what each host that takes part has to know."""

    help: str
    metavar: str = ""
    word: str = ""
    letter: str = ""
    least: float | None = None
    shared: bool = False
    name: str = ""
    kind: Any = None
    default: Any = None

    @property
    def argument(self) -> str:
        """What ``autotune.sweep`` calls it."""
        return self.name if iskeyword(self.word) else self.word.replace("-", "_")

    @property
    def is_many(self) -> bool:
        """Whether it is given again for more."""
        return get_origin(self.kind) in (tuple, Mapping)


def _option(default: Any, doc: str, metavar: str = "", word: str = "", **more: Any) -> Any:
    """A field of a request that is an option."""
    option = Option(doc, metavar, word, default=default, **more)
    return field(default_factory=lambda: default, metadata={"option": option})


_shared = partial(_option, shared=True)


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is swept on: a workload; its ``inputs``, where they are at hand; and what is right for them, where that is
    not the family's to say."""

    workload: Workload
    inputs: Inputs | None = None
    reference: "Reference | None" = None


@dataclass(frozen=True, kw_only=True)
class SweepRequest:
    """A sweep as asked for. ``chosen`` stands in for the preset's configurations. One that ``joins`` tries what another
    sweep in the same record asked for, and leaves the end to that one. The other fields are options."""

    family: Family
    chosen: tuple[Configuration, ...] | None = None
    joins: bool = False

    workloads: tuple[str, ...] = _option(
        (),
        "Name or file of a workload; repeat for more. Default: the family's own.",
        "NAME|PATH",
        "workload",
        letter="w",
    )
    device: str = _option(
        "auto",
        "Device that measures: auto is the first GPU, or the cpu if there is none; several GPUs of one model share "
        "the work.",
        "auto|cpu|cuda|cuda:N,M",
    )
    preset: str = _shared(
        "full", "Named part of the space to sweep; `autotune list FAMILY` lists the names.", "NAME"
    )
    narrowed: Mapping[str, Sequence[str]] = _shared(
        {}, "Restrict a policy to these values; repeat for more policies.", "POLICY=V1,V2", "set"
    )
    search: str = _shared(
        "",
        "How configurations are chosen, and in which order; auto is for spaces too large to try completely. Default: "
        "exhaustive, with a --budget auto.",
        "|".join(SAMPLERS),
    )
    prior: tuple[str, ...] = _option(
        (), "Begin from times of other devices: a record, or a policy file; again for more.", "RECORD", "from"
    )
    trials: int | None = _shared(None, "Try at most N further configurations.", "N")
    budget: str = _shared(
        "",
        "Start no new configuration this long after the start: 30s, 5m, 1h. 0s names five without measuring.",
        "DURATION",
    )
    seed: int = _shared(0, "Random seed of the search; the same seed gives the same sequence.", "N")
    objective: str = _shared(
        KERNEL,
        f"Figure to minimise: {'; '.join(f'{name}: {one.doc}' for name, one in OBJECTIVES.items())}.",
        "|".join(OBJECTIVES),
    )
    clocks: str = _shared(
        "",
        "Lock the GPU's clock during the sweep, if permitted; it is reset when the sweep ends for any reason.",
        "MHZ|base|max",
    )
    samples: int = _shared(
        0,
        "Take exactly N samples of each configuration and no finalists, to compare with tuners that do so.",
        "N",
        least=0,
    )
    race: float = _shared(
        0.0,
        "Drop a configuration of 10 ms or more after one run if it takes R times the best (such as 1.02); 0 disables "
        "it.",
        "R",
        least=0,
    )
    trial_seconds: float = _shared(
        120.0,
        "Kill a configuration that runs longer than S seconds, and record it as timed_out.",
        "S",
        least=0.1,
    )
    sanitize: bool = _option(
        False,
        "Also run the finalists under NVIDIA's compute-sanitizer; one with an error is recorded as wrong_result.",
    )
    bounds: bool = _option(
        False,
        "Check every index on the cpu: an index outside its array fails the configuration. Writes no policy file.",
    )
    again: bool = _option(False, "Try recorded configurations again; the record keeps both.")
    retime: bool = _option(False, "Time the finalists again, for example when the machine is idle.")
    compiler: str = _shared("", "CUDA compiler to use.", "nvrtc|nvcc")
    processes: int = _option(0, "Number of compiler processes; 0 is one per core.", "N", least=0)
    out: Path | None = _option(
        None, "Folder for results and record; default ./autotune-results/FAMILY.", "DIR", letter="o"
    )
    store: str | None = _option(
        None,
        "Keep the record here instead of in --out: a folder, postgresql://… or grpc://…; several hosts can share it.",
        "URL|DIR",
    )
    data: Path | None = _option(None, "Folder with the workloads' data files (or AUTOTUNE_DATA).", "DIR")

    @property
    def strategy(self) -> Strategy:
        """Raises UnknownName, UsageError."""
        sampler = self.search or ("auto" if self.budget else "exhaustive")
        return Strategy(
            sampler=sampler, trials=self.trials, seconds=_parse_seconds(self.budget), seed=self.seed
        )

    @property
    def listed(self) -> int | None:
        """How many configurations there are, where they can be listed."""
        return None if self.configurations is None else len(self.configurations)

    @property
    def folder(self) -> Path:
        return self.out or Path("autotune-results") / (self.family.name + ("-bounds" if self.bounds else ""))

    @property
    def root(self) -> Path:
        """The folder that workloads find their data in."""
        return paths.data_root(self.data)

    @property
    def space(self) -> Space:
        """What ``--set`` leaves of it."""
        whole = self.family.space.possible if self.preset == POSSIBLE else self.family.space
        return narrow(whole, dict(self.narrowed))

    @cached_property
    def configurations(self) -> tuple[Configuration, ...] | None:
        """None where they are too many to list: a search draws them. Raises UnknownName, UsageError."""
        if self.chosen is not None:
            return self.chosen
        if self.preset in (FULL, POSSIBLE) and not can_be_listed(self.space):
            return None
        return self.family.space.configurations(self.preset, self.narrowed)

    def serialise(self, workload: Workload) -> dict[str, Any]:
        """What this asks for on one workload, as plain values: all that a worker on another host has to know."""
        family = self.family
        is_shipped = family.folder.parent == paths.find_bundled("kernels")
        told = {option.name: getattr(self, option.name) for option in OPTIONS.values() if option.shared}
        return {
            "family": family.name if is_shipped else str(family.folder.resolve()),
            "workload": _name_workload(family, workload),
            "data": str(self.data.resolve()) if self.data else "",
            **told,
            "narrowed": {name: list(values) for name, values in self.narrowed.items()},
        }

    def protocol(self, device_kind: str) -> "Protocol":
        """How a device of that kind measures."""
        protocol = CPU if device_kind == "cpu" else CUDA
        if self.race:
            protocol = replace(protocol, race=self.race)
        protocol = replace(protocol, figure=find_objective(self.objective).figure, clocks=self.clocks)
        return protocol.fix_samples(self.samples) if self.samples else protocol

    def compiler_processes(self, device_kind: str, workers: int = 1) -> int:
        """One a core; a core is left to each measuring process where there is a GPU to keep busy."""
        cores = len(os.sched_getaffinity(0))
        return self.processes or (cores if device_kind == "cpu" else max(1, cores - workers))

    def check(self) -> None:
        """Names, values, limits and the record's folder, before anything is made. Raises AutotuneError."""
        for option in OPTIONS.values():
            value = getattr(self, option.name)
            if option.least is not None and value < option.least:
                raise UsageError(f"--{option.word} {value}: it is at least {option.least:g}")
        find_objective(self.objective)
        if not re.fullmatch(r"(base|max|0*[1-9]\d*)?", self.clocks, re.ASCII):
            raise UsageError(
                f"cannot read --clocks {self.clocks!r}: write base, max, or a whole number of MHz (1500)"
            )
        SourceText(self.family, self.family.folder).check()
        self.family.orders  # noqa: B018 - refuses a value that stands for no order
        if self.race and self.race < 1:
            raise UsageError(
                f"--race {self.race:g} would drop the best too: it is the allowed ratio of a long kernel's time to "
                "the best, 1.02 for 2 % more (0 disables it)"
            )
        if self.bounds and self.family.is_plain:
            raise UsageError(
                f"--bounds checks accessors, and the kernels of {self.family.name} have none: omit it"
            )
        self.strategy.check(self.configurations)
        paths.writable(self.folder)

    def cases(self) -> list[Case]:
        """The workloads by their names. Raises UnknownName, UsageError, WorkloadError."""
        return [Case(workload=load_workload(self.family, name)) for name in self.workloads or ("",)]


# What the fields of a request say of themselves.
OPTIONS: Mapping[str, Option] = {
    one.name: replace(option, name=one.name, kind=one.type, word=option.word or one.name.replace("_", "-"))
    for one in fields(SweepRequest)
    if (option := one.metadata.get("option"))
}


def _parse_seconds(budget: str) -> float | None:
    """Of ``30s``, ``5m``, ``1h`` or a bare number of seconds; None of an empty one. Raises UsageError."""
    if not budget:
        return None
    found = re.fullmatch(r"(\d+\.?\d*)\s*([smh]?)", budget.strip(), re.ASCII)
    if not found:
        raise UsageError(
            f"cannot read --budget {budget!r}: write 30s, 5m or 1h, or 0s to name five without measuring"
        )
    return float(found[1]) * {"m": 60, "h": 3600}.get(found[2], 1)


def _name_workload(family: Family, workload: Workload) -> str:
    """By its name where the family knows it by that, which other hosts do too, else by its file."""
    if workload.path is None or workloads(family).get(workload.name) == workload.path:
        return workload.name
    return str(workload.path.resolve())


class NotAsked(StoreError):
    """The record has no such study, or it needs code that nobody here named."""


def request_of(
    told: Mapping[str, Any], store: str, *, device: str, own: Sequence[str] = (), data: Path | None = None,
    processes: int = 0,
) -> SweepRequest:  # fmt: skip
    """Make a request to join that sweep on ``device`` of this host. It may run the families that ship with autotune and
    those in the folders ``own``. ``data`` is the folder of the data; by default the path that the sweep has. Raises
    AutotuneError; NotAsked if the sweep asks for code that nobody here named."""
    try:
        return SweepRequest(
            family=load_family(_find_trusted(told["family"], own)),
            workloads=(told["workload"],),
            device=device,
            store=store,
            data=data or (Path(told["data"]) if told["data"] else None),
            processes=processes,
            joins=True,
            **{option.name: told[option.name] for option in OPTIONS.values() if option.shared}
            | {"compiler": _check_compiler(told["compiler"])},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise StoreError(
            f"cannot join a sweep of another version of autotune ({type(problem).__name__}: {problem}): install "
            "one version on all hosts"
        ) from None


def _find_trusted(asked: str, own: Sequence[str]) -> str:
    """The family to load: of ``own`` the folder that is called as the one that was asked for, else one that ships with
    autotune. The record's folder is never loaded: any user who may write there would run code here. Raises NotAsked."""
    name = Path(asked).name
    for folder in own:
        if Path(folder).resolve().name == name:
            return folder
    if asked in families():
        return asked
    raise NotAsked(
        f"the sweep uses the family in {asked}, whose code would run here: read it, then name the folder {name} of "
        "this host with --family; without that a worker runs only families that ship with autotune"
    )


def _check_compiler(asked: str) -> str:
    """Raises NotAsked for a command that this host's user did not name."""
    if asked in ("", os.environ.get("CXX")) or is_compiler(asked):
        return asked
    raise NotAsked(
        f"the sweep uses the compiler {asked!r}, which would run here: set CXX to it if that is what you want; "
        "without that a worker runs only compilers on PATH by their usual names"
    )
