"""From a kernel's text to a family folder: read, rewrite, try, and write."""

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from autotune.adopt.accesses import Uses
from autotune.adopt.arrays import Array, Arrays
from autotune.adopt.callees import Callees
from autotune.adopt.declaration import BEFORE, Declaration
from autotune.adopt.elements import symbols_of
from autotune.adopt.excerpt import Excerpt
from autotune.adopt.function import Function
from autotune.adopt.host import steps
from autotune.adopt.inputs import inputs_module
from autotune.adopt.launch import KernelLaunch
from autotune.adopt.plain import make_plain
from autotune.adopt.proof import ENOUGH, MOST_ELEMENTS, Budget, Proof, measure_coverage
from autotune.adopt.rewriting import Invariants, Text, rewrite_accesses
from autotune.adopt.source import HEADERS, CudaSource, names_in, span, type_kind, walk
from autotune.adopt.trial import Outcome
from autotune.compile import stand_ins
from autotune.declaration import Expression as Computed
from autotune.declaration import load_family
from autotune.errors import FamilyError, UsageError

_TRIES = 5
_BLOCK = 64  # threads, where a number of the kernel says how many
_TURNS = (3, 7)  # of a loop up to a number that is no size
_ROOM = 100  # elements of an array whose size nothing tells, for a start
_MOST_FIXED = 256  # of a number that the program fixes, for the runs to be short
_SMALL = ((37, 23, 17, 13), (19, 41, 11, 29), (64, 33, 16, 8))  # odd ones, and some that a block divides
_LARGE = {1: (1 << 20,), 2: (1024, 1024), 3: (128, 128, 128), 4: (32, 32, 32, 32)}


@dataclass
class Adoption:
    """What was made of a kernel. ``files`` by name, ``outcome`` of the runs."""

    declaration: Declaration
    files: dict[str, str]
    outcome: Outcome
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    @property
    def arrays(self) -> list[Array]:
        return list(self.declaration.arrays.all.values())


@dataclass
class Adopter:
    """Turns a kernel into a family. ``values`` are its template's arguments, ``grid`` and ``block`` its launch, from
    the command line; ``told`` is called with the name of each step. Earlier runs have shown which arrays to declare
    with one extent (``flat``), which outputs have gaps (``kept``), and how large sizes are that no source gives
    (``seen``)."""

    source: CudaSource
    kernel: str
    name: str
    defines: tuple[str, ...] = ()
    values: Sequence[str] = ()
    grid: str = ""
    block: str = ""
    told: Callable[[str], None] = lambda _: None
    flat: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()
    seen: dict[str, int] = field(default_factory=dict)

    def adopt(self) -> Adoption:
        """Read and rewrite the kernel and run both; guesses that the runs refute are made again. Raises
        FamilyError, UsageError."""
        begun = time.perf_counter()
        self.told("reading the kernel")
        self.source, self.host = make_plain(self.source, self.kernel, self.values)
        notes, budget = dict[str, None](), Budget()
        for _ in range(_TRIES):
            adoption = self._make(budget)
            outcome, declaration = adoption.outcome, adoption.declaration
            left = {name for name in outcome.left if declaration.arrays.all[name].by} - self.flat
            gaps = {name for name, part in outcome.written.items() if part < 1} - self.kept
            gaps -= {array.name for array in declaration.in_place}
            larger = self._enlarge_sizes(adoption)
            if left:
                self.flat |= left
                note = "an index left its row, so it is taken as one line"
            elif any(self.seen.get(name, 0) < size for name, size in larger.items()):
                self.seen |= larger
                continue
            elif gaps and outcome.is_proved:
                self.kept |= gaps
                note = "some elements are not written, so they keep what the caller gives"
            else:
                break
            notes |= dict.fromkeys(f"{name}: {note}" for name in sorted(left or gaps))
        if outcome.is_proved and (
            why := self._describe_overrun(outcome) or self._describe_unreached(adoption)
        ):
            outcome = replace(outcome, is_proved=False, why=why)
        return replace(adoption, outcome=outcome, notes=list(notes), seconds=time.perf_counter() - begun)

    @staticmethod
    def _enlarge_sizes(adoption: Adoption) -> dict[str, int]:
        """Room for what was touched behind an array whose size nothing tells."""
        declaration, enlarged = adoption.declaration, {}
        for name, (_, last) in adoption.outcome.beyond.items():
            array = declaration.arrays.all[name]
            if declaration.is_open(array):
                inner = math.prod(declaration.small[0].get(other, 1) for other in array.shape[1:])
                enlarged[array.shape[0]] = -(-last // (array.element.bytes * inner))
        return enlarged

    @staticmethod
    def _describe_overrun(outcome: Outcome) -> str:
        found = (f"{name} is accessed from byte {p[0]} to {p[1]}" for name, p in outcome.beyond.items())
        return f"the sizes are a guess that does not hold: {', '.join(found)}" if outcome.beyond else ""

    @staticmethod
    def _describe_unreached(adoption: Adoption) -> str:
        """Outputs that the runs left out for the most part: no proof of what the kernel does to them."""
        shares = sorted(measure_coverage(adoption.outcome, adoption.arrays).items())
        found = " and ".join(f"{int(100 * share)}% of {name}" for name, share in shares if share < ENOUGH)
        return found and (
            f"the runs wrote {found}, and less than {ENOUGH:.0%} proves little: where the launch is another, say it "
            "with --grid and --block"
        )

    # -- one attempt ------------------------------------------------------------------------------------

    def _make(self, budget: Budget) -> Adoption:
        function = Function(self.source, self.source.kernel(self.kernel))
        excerpt = Excerpt(self.source, function.cursor)
        self._refuse_unread(function.name, excerpt.find_mistakes())
        uses = Uses(function)
        callees = Callees(self.source, uses, excerpt.functions)
        callees.follow()
        through = {name for name, pointer in uses.pointers.items() if pointer.through}
        arrays = Arrays(uses, self.flat | through, self.host)
        if not arrays.all:
            inside = ", ".join(f"{c.type.spelling} {c.spelling}" for c in function.parameters)
            raise FamilyError(
                f"{self.source.path}: kernel {function.name} takes no pointer ({inside}): pointers inside a struct are "
                "not followed; pass its members one by one"
            )
        launch = self.host.read_command_line(self.grid, self.block) if self.grid else self.host.launch
        geometry = KernelLaunch(arrays, launch, self.host.not_understood).geometry
        declaration = Declaration(
            self.name, self.source.path.name, arrays, geometry, f"{function.name} of {self.source.path.name}",
            self.defines, self.kept, geometry.shared_bytes or _guess_shared_bytes(function, geometry.block),
            symbols_of(excerpt.symbols),
        )  # fmt: skip
        fixed = (int(e.text) for e in arrays.extents.values() if e.text.isdigit())
        turns = (*_TURNS, max(17, *(n + 1 for n in (0, *fixed) if n <= _MOST_FIXED)))  # the last leaves rows
        given = zip(_SMALL, [self.seen] * 3, turns, strict=True)
        declaration.small = [_sizes(declaration, *each) for each in given]
        files = self._files(declaration, excerpt, callees)
        return Adoption(declaration, files, self._try(declaration, files, budget))

    def _refuse_unread(self, kernel: str, mistakes: Sequence[str]) -> None:
        if not mistakes:
            return
        more = f" (and {len(mistakes) - 1} more)" if len(mistakes) > 1 else ""
        advice = HEADERS
        if what := stand_ins.find_lacked(self.source.text(), self.source.path.name):
            advice = f"adopt reads what the cpu device has: give it to autotune.Kernel; {stand_ins.describe_lack(what)}"
        raise FamilyError(f"{mistakes[0]}{more}: kernel {kernel} cannot be read; {advice}")

    def _files(self, declaration: Declaration, excerpt: Excerpt, callees: Callees) -> dict[str, str]:
        plain, text = Text(self.source), Text(self.source)
        excerpt.cut(plain)
        excerpt.cut(text)
        invariants = Invariants(text, declaration.function)
        for array in declaration.arrays.all.values():
            if array.is_accessor:
                rewrite_accesses(text, array.pointer, array.by, array.element.record, invariants)
                parameter = f"typename Policy::{declaration.name_array(array)} {array.name}"
                text.replace(span(array.pointer.variable.cursor), parameter)
        callees.rewrite(text)
        begin, size = span(declaration.function.cursor)[0], len(self.source.content)
        text.replace((begin, begin), "template <class Policy>\n")
        before, rewritten = excerpt.collect_prelude(), text.read_between(0, size).strip("\n") + "\n"
        include = '#include "autotune/array.cuh"\n'
        if "autotune::element" in rewritten or "autotune::field" in rewritten:
            include += '#include "autotune/element.cuh"\n'
        source = f"{include}\n{before}{rewritten}{declaration.copy_kernels()}"
        return {
            BEFORE: f"{before}{plain.read_between(0, size)}",
            "family.yaml": declaration.family_yaml(),
            "family.py": inputs_module(declaration),
            f"{self.name}.cu": f'{source}\n#ifndef AUTOTUNE_VARIANTS\n#include "default.cuh"\n#endif\n',
            "workloads/adopted.yaml": declaration.workload_yaml(_choose_large_sizes(declaration)),
        }

    def _try(self, declaration: Declaration, files: dict[str, str], budget: Budget) -> Outcome:
        self.told("building both kernels for the cpu device")
        with TemporaryDirectory(prefix="autotune-") as made:
            folder, built = Path(made, self.name), Path(made, "built")
            write(folder, files)
            built.mkdir()
            return Proof(declaration, load_family(folder), built, budget, self.told).run()


# -- sizes ------------------------------------------------------------------------------------------------


def _guess_shared_bytes(function: Function, block: Sequence[str]) -> str:
    """A guess at dynamic shared memory: an element for each thread, and some."""
    for cursor in walk(function.body, "VAR_DECL"):
        if type_kind(cursor) == "INCOMPLETEARRAY":
            size = max(1, cursor.type.get_canonical().element_type.get_size())
            return " * ".join([str(4 * size), *(item for item in block if item != "1")])
    return ""


def _choose_large_sizes(declaration: Declaration) -> dict[str, int]:
    """Sizes of the workload: those of the first run where only that tells the room of an array, or larger ones would be
    too many elements."""
    arrays, extents = declaration.arrays.all.values(), declaration.arrays.extents
    is_nested = any(bound.is_loop for bound in declaration.function.bounds)
    least = max(len(array.shape) for array in arrays)
    if not any(declaration.is_open(array) for array in arrays):
        for rank in range(min(4, max(least, 1 + is_nested)), 5):
            sizes = _sizes(declaration, _LARGE[rank], {})
            named = {name: extents[name].text for array in arrays for name in array.shape}
            counts = {name: int(Computed(text, name).evaluate(sizes)) for name, text in named.items()}
            if sum(math.prod(counts[name] for name in array.shape) for array in arrays) <= MOST_ELEMENTS:
                return sizes
    return dict(declaration.small[0])


def _sizes(
    declaration: Declaration, numbers: Sequence[int], seen: Mapping[str, int], turns: int = _TURNS[0]
) -> dict[str, int]:
    """A number for every size and whole number that is open, in turn; ``turns`` for those of loops alone."""
    function, geometry, arrays = declaration.function, declaration.geometry, declaration.arrays
    parameters = [cursor.spelling for cursor in function.parameters]
    given = {name: 1 for name, type_ in declaration.scalars.items() if "int" in type_ and name in parameters}
    texts = [*geometry.grid, *(e.text for e in arrays.extents.values())]
    used = {name for text in texts for name in re.findall(r"\w+", text)}
    for bound in (bound for bound in function.bounds if bound.is_loop):
        given |= {c.spelling: turns for c in names_in(bound.limit) if c.spelling in given.keys() - used}
    multiples: dict[str, int] = {}
    for whole, by in geometry.divided:
        for name, step in steps(whole, int(by) if by.isdigit() else geometry.usual.get(by, 1)).items():
            multiples[name] = math.lcm(step, multiples.get(name, 1))
    sized = [name for name in parameters if name in declaration.bound or (name in given and name in used)]
    for turn, name in enumerate(sized):
        step = multiples.get(name, 1)
        given[name] = -(-numbers[turn % len(numbers)] // step) * step
    given |= {name: _BLOCK for name in parameters if name in geometry.block}
    for name, text in arrays.host.relations() if arrays.host else ():
        known = Computed(text, name)
        if name in given and known.names <= given.keys():
            value = int(known.evaluate(given))
            given[name] = value if known.names or 0 < value <= _MOST_FIXED else given[name]
    rooms = (e.name for e in arrays.extents.values() if e.is_given and e.name not in given)
    return given | {name: max(_ROOM, seen.get(name, 0)) for name in rooms}


# -- the folder -------------------------------------------------------------------------------------------


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="surrogateescape")


def family_name(kernel: str) -> str:
    """The kernel's name as a family can have it. Raises UsageError."""
    name = re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kernel).lower()).strip("_")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise UsageError(f"{kernel!r} is not a valid family name: name the folder with -o")
    return name
