"""What an export holds: the configurations that policy files name, each with the options it is compiled for, and the
entries and fallbacks that lead to them."""

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from autotune.compile import Variant
from autotune.declaration import KEYWORDS, Configuration, Family
from autotune.errors import FamilyError, PolicyFileError
from autotune.policy import PolicyFile, acceptance, feature_values, select_objective


@dataclass(frozen=True)
class Winner:
    """A configuration compiled for certain options. ``name`` is its C++ namespace, ``about`` a line on its origin."""

    name: str
    variant: Variant
    about: str


@dataclass(frozen=True)
class Row:
    """A line of the dispatch table: an entry of ``device`` with the winner's place in ``Choices.winners``; or, without
    ``features``, what is taken by ``rule`` where no entry fits (``device`` empty: on any)."""

    rule: str
    name: str
    device: str
    capability: int
    options: Mapping[str, Any]
    winner: int
    features: tuple[float, ...] = ()
    median_ms: float = 0.0


@dataclass
class Choices:
    """``left_out`` says what of the policy files is not in the export, and why."""

    family: Family
    winners: list[Winner] = field(default_factory=list)
    entries: list[Row] = field(default_factory=list)
    fallbacks: list[Row] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    @property
    def architectures(self) -> list[int]:
        return sorted({row.capability for row in (*self.entries, *self.fallbacks) if row.capability})

    def place(self, name: str, configuration: Configuration, options: Mapping[str, Any], about: str) -> int:
        """Where the winner is among ``winners``; added when it is not there."""
        variant = Variant.make(self.family, configuration, options)
        for i, known in enumerate(self.winners):
            if known.variant.configuration == configuration and known.variant.options == variant.options:
                return i
        taken = {winner.name for winner in self.winners}
        names = (f"{identifier(name)}{'' if n == 1 else f'_{n}'}" for n in itertools.count(1))
        unused = next(text for text in names if text not in taken)
        self.winners.append(Winner(unused, variant, " ".join(about.split())))  # a comment of one line
        return len(self.winners) - 1

    def fall_back(
        self, rule: str, configuration: Configuration, about: str, device: str = "", capability: int = 0
    ) -> None:
        """Have ``configuration`` taken by ``rule`` where no entry fits, whatever the options."""
        names = list(self.family.options)
        for values in itertools.product(*(self.family.options[name].values for name in names)):
            options = dict(zip(names, values, strict=True))
            winner = self.place("_".join([rule, *map(str, values)]), configuration, options, about)
            self.fallbacks.append(Row(rule, "", device, capability, options, winner))


def identifier(text: str) -> str:
    """``text`` as a C++ name."""
    words = re.sub(r"\W+", "_", text).strip("_").lower() or "entry"
    words = f"_{words}" if words[0].isdigit() else words
    return f"{words}_" if words in KEYWORDS else words


def select_entries(family: Family, files: Sequence[PolicyFile], objective: str = "kernel") -> Choices:
    """The entries of ``files`` that would be used at run time for ``objective``, with their winners, the files'
    defaults and the family's own fallbacks for every option. Raises FamilyError for a family that needs Python on
    the host, PolicyFileError when nothing of a file would be used."""
    if obstacle := next(_obstacles(family), ""):
        raise FamilyError(f"family {family.name} cannot be exported: {obstacle}")
    choices = Choices(family)
    for file in files:
        _take(choices, file, objective)
    if not choices.entries and not choices.fallbacks:
        raise PolicyFileError(
            f"{', '.join(str(file.path) for file in files)}: nothing is left to export: {'; '.join(choices.left_out)}"
        )
    if "cuda" in family.space.presets:
        choices.fall_back("preset", family.space.configurations("cuda")[0], "the family's preset")
    choices.fall_back("control", family.space.control, "the family's control")
    return choices


def _obstacles(family: Family) -> Iterator[str]:
    """Yield why it cannot be exported: it needs Python on the host, two of its configurations cannot be in one program,
    or the program cannot know what it needs."""
    if getattr(family.module, "plan", None) is not None:
        yield (
            "its family.py has a plan, the host program of a call (launches, passes, sizes that one kernel computes "
            "for the next), and that is Python; what is exported launches every kernel once"
        )
    if family.compiled:
        yield (
            f"its launches read numbers of the compiled source ({', '.join(family.compiled)}), and an export's are "
            "known before it is compiled"
        )
    if family.is_plain:
        yield (
            "its choices are macros, and an export holds several configurations of one source. The source needs no "
            f"export: `autotune show {family.folder} CONFIGURATION` prints the #defines to put ahead of it"
        )
    for name in family.symbols:
        yield f"{name} is filled into a symbol of its source, which all configurations share"
    for name in family.beginnings:
        yield f"{name} begins as a copy of an input, and an export makes no copies"
    for kernel in family.kernels.values():
        if kernel.template:
            yield f"kernel {kernel.name} names its own template arguments; leave out template:"
        for name in kernel.arguments:
            if name in family.data and len(family.data[name].shape) > 8:
                yield f"{name} has more than 8 axes"
    for policy in family.space.policies:
        if policy.adds is not None:
            yield (
                f"policy {policy.name} chooses compile options, and an export is compiled with the same ones for all "
                "configurations: put the options that win into compile_options"
            )
    yield from _obstacles_of_arrays(family)


def _obstacles_of_arrays(family: Family) -> Iterator[str]:
    inner = {data.name for data in family.data.values() if data.role not in ("input", "output")}
    for name in (name for name in family.typed_names if name not in inner):
        yield (
            f"the type of {name} depends on an option, and what calls an export has one type for it: declare one"
        )
    for data in family.data.values():
        if data.converted:
            yield (
                f"{data.name} is a converted view of {data.of}, whose copy a kernel makes between two others, and an "
                "export launches the family's own alone"
            )
        elif data.of:
            yield f"{data.name} is a view of {data.of}, and an export gives every array memory of its own"


def _take(found: Choices, file: PolicyFile, objective: str) -> None:
    """Add what ``file`` has for ``objective``. Raises PolicyFileError for one of which nothing would be used."""
    family, device, capability = found.family, file.device.name, _capability(found.family, file)
    counted = select_objective(file, objective).entries
    if others := [name for name in file.entries if name not in counted]:
        found.left_out.append(f"{device}: entries of another objective than {objective}: {', '.join(others)}")
    for item in sorted(counted.values(), key=lambda e: e.name):
        configuration, reason = acceptance.find_own_configuration(family, item.configuration)
        reason = acceptance.describe_staleness(family, item) or reason
        if reason or configuration is None:
            found.left_out.append(f"{device}: entry {item.name}: {reason}")
            continue
        options = family.choose_options(item.options)
        about = f"won on {item.name}, {device}: {item.median_ms:.6g} ms"
        winner = found.place(item.name, configuration, options, about)
        known = feature_values(family.features, item.features)
        features = tuple(known.get(name, math.nan) for name in family.features)
        found.entries.append(
            Row("", item.name, device, capability, options, winner, features, item.median_ms)
        )
    if file.prediction:
        found.left_out.append(
            f"{device}: what decides between entries for inputs that no entry matches; the nearest entry stands in"
        )
    configuration, reason = acceptance.find_own_configuration(family, file.default)
    if reason or configuration is None:
        found.left_out.append(f"{device}: the default: {reason}")
    else:
        found.fall_back("default", configuration, f"the default of {device}", device, capability)


def _capability(family: Family, file: PolicyFile) -> int:
    """The compute capability of a file that can be exported. Raises PolicyFileError for any other."""
    if file.device.kind != "cuda":
        raise PolicyFileError(
            f"{file.path}: it is for the {file.device.kind} {file.device.name}, and an export is CUDA: "
            "name a GPU's policy file with --device; docs/guides/no-gpu.md shows one to write by hand"
        )
    if reason := acceptance.file_refusal(family, file, "cuda"):
        raise PolicyFileError(f"{file.path}: {reason}")
    text = file.device.compute_capability
    if not text:
        raise PolicyFileError(f"{file.path}: its device has no compute capability; add it, in the form '9.0'")
    return int(text.replace(".", ""))
