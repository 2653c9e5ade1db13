"""From a kernel's text to a family folder: read, rewrite, try, and write."""

import math
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from autotune.adopt.accesses import Uses
from autotune.adopt.arrays import Array, Arrays
from autotune.adopt.callees import Callees
from autotune.adopt.declaration import BEFORE, Declaration
from autotune.adopt.excerpt import Excerpt
from autotune.adopt.function import Function
from autotune.adopt.host import steps
from autotune.adopt.inputs import InputsModule
from autotune.adopt.launch import Launch
from autotune.adopt.plain import plain
from autotune.adopt.proof import ENOUGH, MOST_ELEMENTS, Budget, Outcome, Proof
from autotune.adopt.rewriting import Text, parameter_text, rewrite_accesses
from autotune.adopt.source import HEADERS, Source, kind, span, walk
from autotune.adopt.symbols import symbols_of
from autotune.compile import lacked, lacking
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
    """What was made of a kernel. ``files`` by name, ``outcome`` of the runs; ``original`` is the text that the family's
    source was made from."""

    name: str
    declaration: Declaration
    files: dict[str, str]
    outcome: Outcome
    seconds: float
    original: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def arrays(self) -> list[Array]:
        return list(self.declaration.arrays.all.values())


@dataclass
class Adopter:
    """``values`` are those of the kernel's template, ``grid`` and ``block`` its launch, as the command line has them;
    ``told`` is called with what is done next."""

    source: Source
    kernel: str
    name: str
    defines: tuple[str, ...] = ()
    values: Sequence[str] = ()
    grid: str = ""
    block: str = ""
    told: Callable[[str], None] = lambda _: None

    def adopt(self) -> Adoption:
        """Read and rewrite the kernel and run both; guesses that the runs refute are made again. Raises
        FamilyError, UsageError."""
        begun = time.perf_counter()
        self.told("reading the kernel")
        self.source, self.host = plain(self.source, self.kernel, self.values)
        flat: frozenset[str] = frozenset()
        kept: frozenset[str] = frozenset()
        seen: dict[str, int] = {}
        notes: dict[str, None] = {}
        budget = Budget()
        for _ in range(_TRIES):
            adoption = self._made(flat, kept, seen, budget)
            outcome, arrays = adoption.outcome, adoption.declaration.arrays
            left = {name for name in outcome.left if arrays.all[name].by} - flat
            gaps = {name for name, part in outcome.written.items() if part < 1} - kept
            gaps -= {array.name for array in adoption.declaration.in_place}
            larger = self._larger(adoption)
            if left:
                flat |= left
                notes |= {
                    f"{name}: an index left its row, so it is taken as one line": None
                    for name in sorted(left)
                }
            elif larger and any(seen.get(name, 0) < size for name, size in larger.items()):
                seen |= larger
            elif gaps and outcome.is_proved:
                kept |= gaps
                notes |= {
                    f"{name}: some elements are not written, so they keep what the caller gives": None
                    for name in sorted(gaps)
                }
            else:
                break
        if outcome.is_proved and (why := self._beyond(adoption) or self._left_out(adoption)):
            outcome = replace(outcome, is_proved=False, why=why)
        return replace(adoption, outcome=outcome, notes=list(notes), seconds=time.perf_counter() - begun)

    @staticmethod
    def _larger(adoption: Adoption) -> dict[str, int]:
        """Room for what was touched behind an array whose size nothing tells."""
        arrays, found = adoption.declaration.arrays, {}
        for name, (_, last) in adoption.outcome.beyond.items():
            array = arrays.all[name]
            if adoption.declaration.is_open(array):
                inner = 1
                for other in array.shape[1:]:
                    inner *= adoption.declaration.small[0].get(other, 1)
                found[array.shape[0]] = -(-last // (array.bytes * inner))
        return found

    @staticmethod
    def _beyond(adoption: Adoption) -> str:
        beyond = ", ".join(
            f"{name} is touched from byte {first} to {last}"
            for name, (first, last) in adoption.outcome.beyond.items()
        )
        return f"the sizes are a guess that does not hold: {beyond}" if beyond else ""

    @staticmethod
    def _left_out(adoption: Adoption) -> str:
        """Outputs that the runs left out for the most part: no proof of what the kernel does to them."""
        found = [
            f"{int(100 * share)}% of {name}"
            for name, share in sorted(adoption.outcome.reached(adoption.arrays).items())
            if share < ENOUGH
        ]
        if not found:
            return ""
        return (
            f"the runs wrote {' and '.join(found)}, and less than {ENOUGH:.0%} proves little: where the launch is "
            "another, say it with --grid and --block"
        )

    # -- one attempt ------------------------------------------------------------------------------------

    def _made(
        self, flat: frozenset[str], kept: frozenset[str], seen: dict[str, int], budget: "Budget"
    ) -> Adoption:
        function = Function(self.source, self.source.kernel(self.kernel))
        excerpt = Excerpt(self.source, function.cursor)
        if mistakes := excerpt.mistakes():
            raise FamilyError(self._unread(function, mistakes))
        uses = Uses(function)
        callees = Callees(self.source, uses, excerpt.functions)
        callees.follow()
        through = {name for name, pointer in uses.pointers.items() if pointer.through}
        arrays = Arrays(uses, flat | through, self.host)
        if not arrays.all:
            inside = ", ".join(f"{c.type.spelling} {c.spelling}" for c in function.parameters)
            raise FamilyError(
                f"{self.source.path}: kernel {function.name} takes no pointer ({inside}): what lies inside a struct is "
                "not followed; pass its members one by one"
            )
        launch = self.host.asked(self.grid, self.block) if self.grid else self.host.launch
        geometry = Launch(arrays, launch, self.host.not_understood).geometry
        declaration = Declaration(
            self.name, self.source.path.name, arrays, geometry, f"{function.name} of {self.source.path.name}",
            self.defines, kept, geometry.shared_bytes or self._shared(function, geometry.block),
            symbols_of(excerpt.symbols),
        )  # fmt: skip
        if not any(declaration.policies()):
            why = "; ".join(f"{a.name}: {a.pointer.reason}" for a in arrays.all.values() if not a.is_accessor)
            raise FamilyError(
                f"{self.source.path}: nothing can be chosen for kernel {function.name}: its block is fixed, and no "
                f"array of it can have another layout{f' ({why})' if why else ''}"
            )
        fixed = (int(e.text) for e in arrays.extents.values() if e.text.isdigit())
        turns = (*_TURNS, max(17, *(n + 1 for n in (0, *fixed) if n <= _MOST_FIXED)))  # the last leaves rows
        sizes = [self._sizes(declaration, *given) for given in zip(_SMALL, [seen] * 3, turns, strict=True)]
        declaration.small = sizes
        large = self._large(declaration)
        files, original = self._files(declaration, excerpt, callees)
        files["workloads/adopted.yaml"] = declaration.workload_yaml(large)
        outcome = self._tried(declaration, files, original, sizes, budget)
        return Adoption(self.name, declaration, files, outcome, 0.0, original)

    def _unread(self, function: Function, mistakes: Sequence[str]) -> str:
        more = f" (and {len(mistakes) - 1} more)" if len(mistakes) > 1 else ""
        includes = re.findall(r"#\s*include\s*<[^>\n]*>", self.source.text(0, len(self.source.content)))
        if what := lacked(" ".join(includes)):
            advice = (
                f"its file uses {what}, which adopt cannot read: give it to autotune.Kernel; {lacking(what)}"
            )
        else:
            advice = HEADERS
        return f"{mistakes[0]}{more}: kernel {function.name} cannot be read; {advice}"

    @staticmethod
    def _shared(function: Function, block: Sequence[str]) -> str:
        """A guess at dynamic shared memory: an element for each thread, and some."""
        for cursor in walk(function.body):
            if kind(cursor) == "VAR_DECL" and cursor.type.get_canonical().kind.name == "INCOMPLETEARRAY":
                size = max(1, cursor.type.get_canonical().element_type.get_size())
                return " * ".join([str(4 * size), *(item for item in block if item != "1")])
        return ""

    def _large(self, declaration: Declaration) -> dict[str, int]:
        """Sizes of the workload: those of the first run where only that tells the room of an array, or larger ones
        would be too many elements."""
        arrays = declaration.arrays.all.values()
        if not any(declaration.is_open(array) for array in arrays):
            for rank in range(min(4, self._rank(declaration)), 5):
                sizes = self._sizes(declaration, _LARGE[rank], {})
                if sum(self._room(declaration, array, sizes) for array in arrays) <= MOST_ELEMENTS:
                    return sizes
        return dict(declaration.small[0])

    @staticmethod
    def _room(declaration: Declaration, array: Array, sizes: dict[str, int]) -> int:
        extents = (declaration.arrays.extents[name] for name in array.shape)
        return math.prod(int(Computed(e.text, e.name).evaluate(sizes)) for e in extents)

    @staticmethod
    def _rank(declaration: Declaration) -> int:
        rank = max(len(array.shape) for array in declaration.arrays.all.values())
        nested = sum(bound.is_loop for bounds in declaration.function.bounds.values() for bound in bounds)
        return max(rank, 2 if nested else 1)

    @staticmethod
    def _sizes(
        declaration: Declaration, numbers: Sequence[int], seen: dict[str, int], turns: int = _TURNS[0]
    ) -> dict[str, int]:
        """A number for every size and whole number that is open, in turn; ``turns`` for those of loops alone."""
        given: dict[str, int] = {}
        turn = 0
        parameters = {cursor.spelling for cursor in declaration.function.parameters}
        for name, type_ in declaration.scalars.items():
            if "int" in type_ and name in parameters:
                given[name] = 1
        texts = [*declaration.geometry.grid, *(e.text for e in declaration.arrays.extents.values())]
        used = {name for text in texts for name in re.findall(r"\w+", text)}
        for bound in (b for bounds in declaration.function.bounds.values() for b in bounds if b.is_loop):
            given |= {c.spelling: turns for c in walk(bound.limit) if c.spelling in given.keys() - used}
        blocks = {name: values[0] for name, values in declaration.geometry.policies.items()}
        multiples: dict[str, int] = {}
        for whole, by in declaration.geometry.divided:
            for name, step in steps(whole, int(by) if by.isdigit() else blocks.get(by, 1)).items():
                multiples[name] = math.lcm(step, multiples.get(name, 1))
        for cursor in declaration.function.parameters:
            name = cursor.spelling
            if name in declaration.bound or (name in given and name in used):
                step = multiples.get(name, 1)
                given[name] = -(-numbers[turn % len(numbers)] // step) * step
                turn += 1
            if name in declaration.geometry.block:
                given[name] = _BLOCK
        host = declaration.arrays.host
        for name, text in host.relations() if host else ():
            known = Computed(text, name)
            if name in given and known.names <= given.keys():
                value = int(known.evaluate(given))
                given[name] = value if known.names or 0 < value <= _MOST_FIXED else given[name]
        rooms = (e.name for e in declaration.arrays.extents.values() if e.is_given and e.name not in given)
        return given | {name: max(_ROOM, seen.get(name, 0)) for name in rooms}

    def _files(
        self, declaration: Declaration, excerpt: Excerpt, callees: Callees
    ) -> tuple[dict[str, str], str]:
        """The family's files, and the kernel as it was."""
        plain, text = Text(self.source), Text(self.source)
        excerpt.cut(plain)
        excerpt.cut(text)
        function = declaration.function
        for array in declaration.arrays.all.values():
            if array.is_accessor:
                rewrite_accesses(text, array)
                cursor = array.pointer.variable.cursor
                text.replace(span(cursor), parameter_text(array.name, declaration.declared(array)))
        callees.rewrite(text)
        begin = span(function.cursor)[0]
        text.replace((begin, begin), "template <class Policy>\n")
        before = excerpt.before()
        size = len(self.source.content)
        rewritten = text.between(0, size).strip("\n") + "\n"
        include = '#include "autotune/array.cuh"\n'
        if "autotune::element" in rewritten or "autotune::field" in rewritten:
            include += '#include "autotune/element.cuh"\n'
        source = f"{include}\n{before}{rewritten}{declaration.copy_kernels()}"
        source += '\n#ifndef AUTOTUNE_VARIANTS\n#include "default.cuh"\n#endif\n'
        original = f"{before}{plain.between(0, size)}"
        return {
            BEFORE: original,
            "family.yaml": declaration.family_yaml(),
            "family.py": InputsModule(declaration).text(),
            f"{self.name}.cu": source,
        }, original

    def _tried(
        self, declaration: Declaration, files: dict[str, str], original: str, sizes: Sequence[dict[str, int]],
        budget: Budget,
    ) -> Outcome:  # fmt: skip
        self.told("building both kernels for the cpu device")
        with TemporaryDirectory(prefix="autotune-") as made:
            folder = Path(made, self.name)
            write(folder, files)
            family = load_family(folder)
            built = Path(made, "built")
            built.mkdir()
            return Proof(declaration, family, original, built, budget, self.told).run(sizes)


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="surrogateescape")


def family_name(kernel: str) -> str:
    """The kernel's name as a family can have it. Raises UsageError."""
    name = re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kernel).lower()).strip("_")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise UsageError(f"{kernel!r} makes no family's name: give the folder one with -o")
    return name
