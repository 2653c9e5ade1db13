"""The policy file: winners with their provenance, in YAML that a person can read and edit.

One file per family and device. ``merge`` puts sweeps into it. Reading runs no code, is bounded in size and depth, and
gives either a PolicyFile or a PolicyFileError that says what is wrong and where.
"""

import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import yaml

from autotune.declaration import yamlfile
from autotune.errors import PolicyFileError, explained
from autotune.files import replace_file
from autotune.hardware import Device
from autotune.measure import KERNEL, OBJECTIVES, TIME, Figure, find_objective

SCHEMA = 2
_LOCK_SECONDS = 60
_OWN = ("name", "workload")  # an item's key says these
_LONGEST = 200  # characters of a device's name
_CAPABILITY = re.compile(r"(\d+\.\d)?")
_DEVICE = ("kind", "name", "compute_capability", "driver")


class NewerSchema(PolicyFileError):
    """A file of a later autotune: it can neither be read nor may it be replaced."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One workload's winner, of one accuracy class and by one ``objective``; ``name`` is its key in the file
    (``entry_name``).

    ``features`` are the input's extents and scalars that the expressions of the family's ``features`` read; selection
    compares the values of these expressions. Times are in milliseconds; ``spread`` is the relative half-width of the
    median's 95 % interval (see ``measure.spread``), ``margin_over_control`` control's time over the winner's (1: noise
    may have made the difference; 0: control was not measured). ``needs`` is by kernel: threads of a block, registers of
    a thread, shared bytes of a block. ``binding_resource`` limits the occupancy of the kernel that takes the most time
    (see ``occupancy``). The winner is the best in ``objective``; ``tie_set``, ``runner_up`` and the margin are by it.
    If it is no time, ``figures`` are the winner's figures that it names and ``runner_up_cost`` the runner-up's cost.
    From ``break_even`` launches on the same data the winner for kernels alone is cheaper than the winner for a single
    call, layout included; ``break_even_with`` is the other of the two (0: one of them always is). ``renewed`` and
    ``renewed_from`` say that the entry's machine code was the same after its sources changed: when that was found, and
    the date and digests of the sweep.
    ``times_ms`` has the times here of the configurations that the file keeps (``Kept``), by their names, ``blocks`` the
    number of their kernel's blocks. The digests say what it was measured with. ``proved`` says for which ``sizes``,
    besides the workload's own, its results were compared with the reference's, and by which ``version`` of the
    verification, ``against`` which configuration if that is the reference; without sizes it is proved for the
    workload's own only. ``searched`` is how much of the space was ``tried``, ``of`` how many configurations, ``by``
    which search and with which ``budget``. ``sanitizer`` names those of compute-sanitizer's tools that found nothing
    in the winner. ``refined`` says that a program's own calls found the entry, not a sweep: how many, among which
    configurations. ``pulled`` says that it came from a registry: which, whose, and where it was proved here. ``errors``
    is its outputs' error, if known (``Trial.errors``); ``reproducible`` says that repeated runs gave the same bits
    (``Trial.reproducible``)."""

    name: str
    workload: str
    features: Mapping[str, float]
    options: Mapping[str, Any]
    accuracy: str = ""
    configuration: Mapping[str, Any]
    median_ms: float
    spread: float
    samples: int
    tie_set: list[str] = field(default_factory=list)
    runner_up: str = ""
    runner_up_ms: float = 0.0
    margin_over_control: float = 0.0
    binding_resource: str = ""
    needs: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    transform_ms: float = 0.0
    transfer_ms: float = 0.0
    objective: str = KERNEL
    figures: Mapping[str, Figure] = field(default_factory=dict)
    runner_up_cost: float = 0.0
    break_even: int = 0
    break_even_with: str = ""
    renewed: str = ""
    renewed_from: Mapping[str, str] = field(default_factory=dict)
    proved: Mapping[str, Any] = field(default_factory=dict)
    searched: Mapping[str, Any] = field(default_factory=dict)
    times_ms: Mapping[str, float] = field(default_factory=dict)
    blocks: Mapping[str, int] = field(default_factory=dict)
    refined: Mapping[str, Any] = field(default_factory=dict)
    pulled: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, float] = field(default_factory=dict)
    reproducible: bool = False
    source_digest: str = ""
    layouts_digest: str = ""
    space_digest: str = ""
    workload_digest: str = ""
    compiler: str = ""
    driver: str = ""
    libraries: Mapping[str, str] = field(default_factory=dict)
    autotune: str = ""
    date: str = ""
    protocol: Mapping[str, Any] = field(default_factory=dict)
    sanitizer: str = ""

    @property
    def cost(self) -> float:
        """What its objective counts."""
        return sum(self.figure(name).value for name in find_objective(self.objective).figures)

    @property
    def cost_spread(self) -> float:
        """Relative half-width of the 95 % interval of the median that its objective counts."""
        return self.figure(find_objective(self.objective).figure).spread or 0.0

    def figure(self, name: str) -> Figure:
        """The winner's figure of that name: a time, or one that its objective names. Raises KeyError."""
        times = {
            TIME: Figure(self.median_ms, self.spread),
            "transfer_ms": Figure(self.transfer_ms),
            "transform_ms": Figure(self.transform_ms),
        }
        return times[name] if name in times else self.figures[name]


@dataclass(frozen=True, kw_only=True)
class Kept:
    """One configuration, under the name that the entries' ``times_ms`` have it by; ``needs`` as an entry has them,
    ``kernel`` the one that takes the most time, ``numbers`` what of the compiled source its launch reads."""

    name: str
    configuration: Mapping[str, Any]
    needs: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    kernel: str = ""
    numbers: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What decides for inputs that no entry matches, where it loses no more than the nearest entry when each entry is
    left out in turn (``prediction.compute_left_out_losses``). ``options`` and ``accuracy`` are those of the entries
    it is made from, ``left_out`` the mean regret of either, empty where there are too few entries to say. The best of
    ``kept`` loses at most ``kept_regret`` on any entry. ``covered`` is what a plan of sweeps was made for: by parameter
    the lowest and the highest value; ``covered_regret`` what 95 % of the inputs there should keep to.
    ``multiprocessors`` are the device's, 0 where they are not known; ``reach`` and ``load_counts`` as in
    ``prediction.Taught``."""

    options: Mapping[str, Any]
    accuracy: str = ""
    left_out: Mapping[str, float] = field(default_factory=dict)
    kept: Mapping[str, Kept] = field(default_factory=dict)
    kept_regret: float = 0.0
    covered: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    covered_regret: float = 0.0
    multiprocessors: int = 0
    reach: float = 8.0
    load_counts: float = 0.0

    @property
    def is_better(self) -> bool:
        """Whether it is known to lose less than the nearest entry, or as little."""
        return self.left_out.get("prediction", math.inf) <= self.left_out.get("nearest", -math.inf)


@dataclass(frozen=True, kw_only=True)
class PolicyFile:
    """A policy file. ``default`` is the minimax-regret configuration over the workloads ``default_over``,
    ``default_regret`` its worst slowdown minus 1. ``refine`` is the number of calls in which programs try the best few
    configurations on inputs that nobody measured (0: none). A ``frozen`` file forbids that, and configurations for
    inputs that nobody measured (``policy.frozen``)."""

    family: str
    device: Device
    entries: Mapping[str, Entry]
    default: Mapping[str, Any]
    default_regret: float = 0.0
    default_over: list[str] = field(default_factory=list)
    prediction: Prediction | None = None
    refine: int = 0
    frozen: bool = False
    path: Path | None = None


def file_name(family: str, device: str) -> Path:
    """Return a policy file's path below a policies folder."""
    return Path(family) / f"{device}.yaml"


def read_policy_file(path: Path) -> PolicyFile:
    """Raises PolicyFileError for anything that is not a policy file of a schema known here; NewerSchema for a later
    one."""
    with explained(PolicyFileError, f"cannot read {path}:"):
        if path.exists() and not path.is_file():  # a pipe would be waited for, a device has no end
            raise PolicyFileError(f"{path} is not a file; delete it or name another folder with --policies")
    return parse(yamlfile.read(path, PolicyFileError), path)


def parse(content: dict[str, Any], path: Path) -> PolicyFile:
    """The policy file that ``content``, read from ``path``, is. Raises PolicyFileError."""
    schema = content.get("schema")
    if schema != SCHEMA:
        newer = isinstance(schema, int) and schema > SCHEMA
        what = "it was written by a later autotune: take that one" if newer else "sweep again"
        raise (NewerSchema if newer else PolicyFileError)(
            f"{path}: schema {schema!r} is not {SCHEMA}, which this version reads; {what}, or name another folder "
            "with --policies"
        )
    try:
        if wrong := yamlfile.fault(content, "policy"):
            raise ValueError(wrong)
        return _policy_file(content, path)
    except (KeyError, TypeError, ValueError, RecursionError) as problem:
        # jsonschema names the place best; it is only asked now, since it takes long to load. It cannot order the places
        # where numbers and words are keys side by side, nor compute with every number.
        with suppress(TypeError, ValueError, ArithmeticError):
            yamlfile.check(content, "policy", path, PolicyFileError)
        raise PolicyFileError(f"{path}: not a policy file: {problem}") from None


def _policy_file(content: Mapping[str, Any], path: Path) -> PolicyFile:
    """Of what the schema accepts."""
    rule = content.get("prediction")
    if rule and not rule["kept"]:
        raise ValueError("prediction.kept is empty")
    kept = {str(name): Kept(name=str(name), **one) for name, one in rule["kept"].items()} if rule else {}
    told = {
        "device": _device(content["device"]),
        "entries": {
            str(name): _entry(str(name), one) for name, one in (content.get("entries") or {}).items()
        },
        "prediction": Prediction(**{**rule, "kept": kept}) if rule else None,
        "path": path,
    }
    return PolicyFile(**{**{key: value for key, value in content.items() if key != "schema"}, **told})


def make_device(kind: str, name: str, compute_capability: str = "", driver: str = "") -> Device:
    """The device that a file or record tells of, with the limits of its compute capability as far as they are known."""
    arch = f"sm_{compute_capability.replace('.', '')}" if compute_capability else "unknown"
    return Device(kind="cpu" if kind == "cpu" else "cuda", name=name, arch=arch, driver=driver)


def _device(content: Mapping[str, Any]) -> Device:
    for key, value in content.items():
        if len(value) > _LONGEST or not value.isprintable():
            raise ValueError(
                f"device {key} is {value!r:.40}, not one line of at most {_LONGEST} printable characters"
            )
    if not _CAPABILITY.fullmatch(content.get("compute_capability", "")):
        raise ValueError(
            f"device compute_capability is {content['compute_capability']!r}, not of the form 9.0"
        )
    return make_device(**content)


def entry_name(workload: str, accuracy: str, objective: str) -> str:
    """An entry's key; an empty ``accuracy`` is the family's own class."""
    named = f"{workload} ({accuracy})" if accuracy else workload
    return named if objective == KERNEL else f"{named} ({objective})"


def _entry(name: str, content: Mapping[str, Any]) -> Entry:
    figures = {key: Figure(**value) for key, value in content.get("figures", {}).items()}
    entry = Entry(**{"name": name, "workload": name, **content, "figures": figures})
    if entry.objective not in OBJECTIVES:
        raise ValueError(f"entry {name}: objective {entry.objective!r} is not one of {', '.join(OBJECTIVES)}")
    aim = OBJECTIVES[entry.objective]
    if missing := [one for one in aim.figures if not aim.is_time and one not in entry.figures]:
        raise ValueError(f"entry {name}: objective {aim.name} without the figure {missing[0]}")
    workload = name.removesuffix(f" ({entry.objective})").removesuffix(f" ({entry.accuracy})")
    return replace(entry, workload=workload)


def content(file: PolicyFile) -> dict[str, Any]:
    """The mapping that is written: keys in a fixed order, names sorted, empty ones left out."""
    plain: dict[str, Any] = {
        "schema": SCHEMA,
        "family": file.family,
        "device": {name: getattr(file.device, name) for name in _DEVICE},
        "default": _sort(file.default),
        "default_regret": file.default_regret,
        "default_over": list(file.default_over),
    }
    if rule := file.prediction:
        kept = {name: _to_plain(one) for name, one in rule.kept.items()}
        plain["prediction"] = _sort({**_to_plain(rule), "kept": kept})
    if file.refine:
        plain["refine"] = file.refine
    if file.frozen:
        plain["frozen"] = True
    plain["entries"] = {name: _to_plain(item) for name, item in sorted(file.entries.items())}
    return plain


def _to_plain(item: Entry | Kept | Prediction) -> dict[str, Any]:
    """Its fields, names in them sorted, without those that are empty or as they are where they are left out."""
    usual = {f.name: f.default for f in fields(item) if not f.name.endswith("digest")}
    plain = {}
    for name, value in asdict(item).items():
        if name in _OWN or value == usual.get(name) or (value == {} and name != "options"):
            continue
        plain[name] = _sort(value) if isinstance(value, dict) else value
    return plain


def _sort(mapping: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _sort(value) if isinstance(value, Mapping) else value
        for key, value in sorted(mapping.items())
        if value is not None
    }


def write(path: Path, file: PolicyFile) -> None:
    text = "# Written by autotune; may be edited. `autotune sweep` merges new measurements into it.\n"
    text += yaml.safe_dump(content(file), sort_keys=False, width=110, allow_unicode=True)
    with replace_file(path, 0o644) as temporary, temporary.open("w", encoding="utf-8") as opened:
        opened.write(text)
        opened.flush()
        os.fsync(opened.fileno())


@contextmanager
def lock(path: Path) -> Iterator[Path]:
    """Where ``path`` leads to, a link followed, while nobody else may write there. Raises PolicyFileError when it is
    locked for long, or cannot be written."""
    import filelock

    with explained(PolicyFileError, f"cannot write {path}:", "; name a folder you may write with --policies"):
        path.parent.mkdir(parents=True, exist_ok=True)
        real = Path(os.path.realpath(path))
        try:
            with filelock.FileLock(f"{real}.lock", timeout=_LOCK_SECONDS):
                yield real
        except filelock.Timeout:
            raise PolicyFileError(
                f"{path} has been locked for {_LOCK_SECONDS} s by another process; run the same command again when "
                "that one is done (a sweep measures nothing twice)"
            ) from None
