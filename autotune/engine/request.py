"""A sweep as it is asked for, on the command line, from a program, by ssh or by a worker on another host.

Each option is one field of ``SweepRequest``, with its default, its help and how it is written; ``OPTIONS`` lists them.
The command line, ``autotune.sweep``, ``--on HOST`` and what a worker is sent are made from that list.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from autotune import files as paths
from autotune.compile import is_compiler
from autotune.declaration import (
    FULL,
    POSSIBLE,
    Configuration,
    Family,
    Inputs,
    Space,
    Workload,
    can_be_listed,
    families,
    load_family,
    load_workload,
    narrowed,
    workloads,
)
from autotune.device import checked_clocks
from autotune.errors import StoreError, UsageError
from autotune.measure import CPU, CUDA, KERNEL, OBJECTIVES, find_objective
from autotune.search import SAMPLERS, Strategy

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
        return self.word.replace("-", "_")

    @property
    def is_many(self) -> bool:
        """Whether it is given again for more."""
        return get_origin(self.kind) in (tuple, Mapping)


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

    workloads: Annotated[
        tuple[str, ...],
        Option(
            "A workload's name or file; again for more. Default: the family's own.",
            "NAME|PATH",
            "workload",
            "w",
        ),
    ] = ()
    device: Annotated[
        str,
        Option(
            "What measures: auto is the first GPU, else the cpu; several GPUs of one model share the work.",
            "auto|cpu|cuda|cuda:N,M",
        ),
    ] = "auto"
    preset: Annotated[
        str, Option("A named part of the space; `autotune list FAMILY` names them.", "NAME", shared=True)
    ] = "full"
    narrowed: Annotated[
        Mapping[str, Sequence[str]],
        Option("Hold a policy to these values; again for more.", "POLICY=V1,V2", "set", shared=True),
    ] = field(default_factory=dict)
    search: Annotated[
        str,
        Option(
            "Which configurations are tried, and in which order; auto suits a space too large to try whole.",
            "|".join(SAMPLERS),
            shared=True,
        ),
    ] = "exhaustive"
    trials: Annotated[int | None, Option("Try at most this many configurations more.", "N", shared=True)] = (
        None
    )
    time: Annotated[
        float | None, Option("Begin no new configuration after this many seconds.", "S", shared=True)
    ] = None
    seed: Annotated[
        int, Option("Random seed of the search; the same seed gives the same sequence.", "N", shared=True)
    ] = 0
    objective: Annotated[
        str,
        Option(
            f"Figure to minimise: {'; '.join(f'{name}: {one.doc}' for name, one in OBJECTIVES.items())}.",
            "|".join(OBJECTIVES),
            shared=True,
        ),
    ] = KERNEL
    clocks: Annotated[
        str,
        Option(
            "Hold the GPU's clock there meanwhile, where you may; it is given back however the sweep ends.",
            "MHZ|base|max",
            shared=True,
        ),
    ] = ""
    samples: Annotated[
        int,
        Option(
            "Exactly this many samples of each configuration and no finalists, to compare with tuners that do so.",
            "N",
            least=0,
            shared=True,
        ),
    ] = 0
    race: Annotated[
        float,
        Option(
            "A kernel of 10 ms and more that takes R times the best (1.02, say) is not run again; 0 disables it.",
            "R",
            least=0,
            shared=True,
        ),
    ] = 0.0
    trial_seconds: Annotated[
        float,
        Option(
            "A configuration that runs for longer, once its data are placed, is ended and recorded as timed_out.",
            "S",
            least=0.1,
            shared=True,
        ),
    ] = 120.0  # generous: most take less than one
    sanitize: Annotated[
        bool,
        Option(
            "Run the finalists under NVIDIA's compute-sanitizer too; what it finds makes them wrong_result."
        ),
    ] = False
    again: Annotated[bool, Option("Try everything again, also what is recorded; the record keeps both.")] = (
        False
    )
    retime: Annotated[bool, Option("Time the finalists again, on a machine that is idle now.")] = False
    compiler: Annotated[str, Option("CUDA compiler.", "nvrtc|nvcc", shared=True)] = ""
    processes: Annotated[int, Option("Compiler processes; 0 is one a core.", "N", least=0)] = 0
    out: Annotated[
        Path | None, Option("Results and record; default ./autotune-results/FAMILY.", "DIR", letter="o")
    ] = None
    store: Annotated[
        str | None,
        Option(
            "Keep the record there and not in --out: a folder, postgresql://… or grpc://…; many hosts may share it.",
            "URL|DIR",
        ),
    ] = None
    data: Annotated[
        Path | None, Option("Where workloads find their data files (or AUTOTUNE_DATA).", "DIR")
    ] = None

    @property
    def strategy(self) -> Strategy:
        """Raises UnknownName, UsageError."""
        return Strategy(sampler=self.search, trials=self.trials, seconds=self.time, seed=self.seed)

    @property
    def listed(self) -> int | None:
        """How many configurations there are, where they can be listed."""
        return None if self.configurations is None else len(self.configurations)

    @property
    def folder(self) -> Path:
        return self.out or Path("autotune-results") / self.family.name

    @property
    def root(self) -> Path:
        """The folder that workloads find their data in."""
        return paths.data_root(self.data)

    @property
    def space(self) -> Space:
        """What ``--set`` leaves of it."""
        whole = self.family.space.possible if self.preset == POSSIBLE else self.family.space
        return narrowed(whole, dict(self.narrowed))

    @cached_property
    def configurations(self) -> tuple[Configuration, ...] | None:
        """None where they are too many to list: a search draws them. Raises UnknownName, UsageError."""
        if self.chosen is not None:
            return self.chosen
        if self.preset in (FULL, POSSIBLE) and not can_be_listed(self.space):
            return None
        return self.family.space.configurations(self.preset, self.narrowed)

    def asked(self, workload: Workload) -> dict[str, Any]:
        """What this asks for on one workload, as plain values: all that a worker on another host has to know."""
        family = self.family
        is_shipped = family.folder.parent == paths.bundled("kernels")
        told = {option.name: getattr(self, option.name) for option in OPTIONS.values() if option.shared}
        return {
            "family": family.name if is_shipped else str(family.folder.resolve()),
            "workload": _called(family, workload),
            "data": str(self.data.resolve()) if self.data else "",
            **told,
            "narrowed": {name: list(values) for name, values in self.narrowed.items()},
        }

    def protocol(self, device_kind: str) -> "Protocol":
        """How a device of that kind measures."""
        protocol = CPU if device_kind == "cpu" else CUDA
        if self.race:
            protocol = replace(protocol, race=self.race)
        protocol = replace(protocol, figure=find_objective(self.objective).figure)
        if self.clocks:
            protocol = replace(protocol, clocks=self.clocks)
        return protocol.exactly(self.samples) if self.samples else protocol

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
        checked_clocks(self.clocks)
        self.family.orders  # noqa: B018 - refuses a value that stands for no order
        if self.race and self.race < 1:
            raise UsageError(
                f"--race {self.race:g} leaves out the best too: it is how many times the best a long kernel may take, "
                "1.02 for 2 % more (0: no race)"
            )
        self.strategy.check(self.configurations)
        paths.writable(self.folder)

    def cases(self) -> list[Case]:
        """The workloads by their names. Raises UnknownName, UsageError, WorkloadError."""
        return [Case(workload=load_workload(self.family, name)) for name in self.workloads or ("",)]


def _options() -> Iterator[Option]:
    """What the fields of a request say of themselves."""
    for one in fields(SweepRequest):
        if get_origin(one.type) is Annotated:
            kind, option = get_args(one.type)
            default = {} if one.default is MISSING else one.default
            word = option.word or one.name.replace("_", "-")
            yield replace(option, name=one.name, kind=kind, default=default, word=word)


OPTIONS: Mapping[str, Option] = {option.name: option for option in _options()}


def _called(family: Family, workload: Workload) -> str:
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
    """A request to join that sweep, on ``device`` of this host; ``own`` are the families' folders that may be run here,
    beside those that ship with autotune, and ``data`` is where the data are, if not where they are there. Raises
    AutotuneError; NotAsked where the sweep asks for code that nobody here named."""
    try:
        return SweepRequest(
            family=load_family(_trusted(told["family"], own)),
            workloads=(told["workload"],),
            device=device,
            store=store,
            data=data or (Path(told["data"]) if told["data"] else None),
            processes=processes,
            joins=True,
            **{option.name: told[option.name] for option in OPTIONS.values() if option.shared}
            | {"compiler": _trusted_compiler(told["compiler"])},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise StoreError(
            f"cannot join what another version of autotune asked for ({type(problem).__name__}: {problem}): have one "
            "version on all hosts"
        ) from None


def _trusted(asked: str, own: Sequence[str]) -> str:
    """The family to load: of ``own`` the folder that is called as the one that was asked for, else one that ships with
    autotune. The record's folder is never loaded: any user who may write there would run code here. Raises NotAsked."""
    name = Path(asked).name
    for folder in own:
        if Path(folder).resolve().name == name:
            return folder
    if asked in families():
        return asked
    raise NotAsked(
        f"the sweep asks for the family in {asked}, whose code would run here: read it, then name the folder {name} of "
        "this host with --family; without that a worker runs only families that ship with autotune"
    )


def _trusted_compiler(asked: str) -> str:
    """Raises NotAsked for a command that this host's user did not name."""
    if asked in ("", os.environ.get("CXX")) or is_compiler(asked):
        return asked
    raise NotAsked(
        f"the sweep asks for the compiler {asked!r}, which would run here: set CXX to it if that is what you want; "
        "without that a worker runs only compilers on PATH by their usual names"
    )
