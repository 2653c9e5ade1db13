"""From a kernel's text to a family folder: read, rewrite, try, and write."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from autotune.cli.adopt.accesses import Uses
from autotune.cli.adopt.arrays import Array, Arrays
from autotune.cli.adopt.callees import Callees
from autotune.cli.adopt.declaration import BEFORE, Declaration, bytes_of
from autotune.cli.adopt.excerpt import Excerpt
from autotune.cli.adopt.function import Function
from autotune.cli.adopt.inputs import InputsModule
from autotune.cli.adopt.launch import Launch
from autotune.cli.adopt.proof import Outcome, Proof
from autotune.cli.adopt.rewriting import Text, parameter_text, rewrite_accesses
from autotune.cli.adopt.sizes import Sizes
from autotune.cli.adopt.source import Source, children, kind, span, walk
from autotune.cli.adopt.symbols import symbols_of
from autotune.declaration import load_family
from autotune.errors import FamilyError, UsageError

_TRIES = 5
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
    source: Source
    kernel: str
    name: str
    defines: tuple[str, ...] = ()

    def adopt(self) -> Adoption:
        """Read and rewrite the kernel and run both; guesses that the runs refute are made again. Raises
        FamilyError."""
        begun = time.perf_counter()
        flat: frozenset[str] = frozenset()
        cleared: frozenset[str] = frozenset()
        seen: dict[str, int] = {}
        notes: dict[str, None] = {}
        for _ in range(_TRIES):
            adoption = self._made(flat, cleared, seen)
            outcome, arrays = adoption.outcome, adoption.declaration.arrays
            left = {name for name in outcome.left if arrays.all[name].by} - flat
            gaps = self._gaps(adoption) - cleared
            larger = self._larger(adoption)
            if left:
                flat |= left
                notes |= {
                    f"{name}: an index left its row, so it is taken as one line": None
                    for name in sorted(left)
                }
            elif larger and any(seen.get(name, 0) < size for name, size in larger.items()):
                seen |= larger
            elif gaps:
                cleared |= gaps
            else:
                break
        if outcome.is_proved and (beyond := self._beyond(adoption)):
            outcome = replace(
                outcome, is_proved=False, why=f"the sizes are a guess that does not hold: {beyond}"
            )
        return replace(adoption, outcome=outcome, notes=list(notes), seconds=time.perf_counter() - begun)

    @staticmethod
    def _gaps(adoption: Adoption) -> set[str]:
        """Outputs of which a run left elements unwritten."""
        declaration = adoption.declaration
        return {
            a.name
            for a in adoption.arrays
            if a.is_written
            and a not in declaration.in_place
            and adoption.outcome.written.get(a.name, 1.0) < 1
        }

    @staticmethod
    def _larger(adoption: Adoption) -> dict[str, int]:
        """Room for what was touched behind an array whose size nothing tells."""
        arrays, found = adoption.declaration.arrays, {}
        parameters = {cursor.spelling for cursor in adoption.declaration.function.parameters}
        for name, (_, last) in adoption.outcome.beyond.items():
            array = arrays.all[name]
            extent = arrays.extents[array.shape[0]]
            if extent.is_given and extent.name not in parameters:
                inner = 1
                for other in array.shape[1:]:
                    inner *= adoption.declaration.small[0].get(other, 1)
                found[extent.name] = -(-last // (bytes_of(array) * inner))
        return found

    @staticmethod
    def _beyond(adoption: Adoption) -> str:
        return ", ".join(
            f"{name} is touched from byte {first} to {last}"
            for name, (first, last) in adoption.outcome.beyond.items()
        )

    # -- one attempt ------------------------------------------------------------------------------------

    def _made(self, flat: frozenset[str], cleared: frozenset[str], seen: dict[str, int]) -> Adoption:
        function = Function(self.source, self.source.kernel(self.kernel))
        if mistakes := self.source.mistakes(function.cursor):
            more = f" (and {len(mistakes) - 1} more)" if len(mistakes) > 1 else ""
            raise FamilyError(
                f"{mistakes[0]}{more}: kernel {function.name} cannot be read; name "
                "the folders of its headers with -I and its macros with -D"
            )
        excerpt = Excerpt(self.source, function.cursor)
        uses = Uses(function)
        callees = Callees(self.source, uses, excerpt.functions)
        callees.follow()
        through = {name for name, pointer in uses.pointers.items() if pointer.through}
        arrays = Arrays(uses, flat | through)
        if not arrays.all:
            inside = ", ".join(f"{c.type.spelling} {c.spelling}" for c in function.parameters)
            raise FamilyError(
                f"{self.source.path}: kernel {function.name} takes no pointer ({inside}): what lies inside a struct is "
                "not followed; pass its members one by one"
            )
        geometry = Launch(arrays).geometry
        declaration = Declaration(
            self.name, self.source.path.name, arrays, geometry, f"{function.name} of {self.source.path.name}",
            self.defines, cleared, self._shared(function, geometry.block), self._template(function),
            symbols_of(excerpt.symbols),
        )  # fmt: skip
        sizes = [self._sizes(declaration, small, seen) for small in _SMALL]
        large = self._sizes(declaration, _LARGE[min(4, self._rank(declaration))], {})
        declaration.small = sizes
        files, original = self._files(declaration, excerpt, callees)
        files["workloads/adopted.yaml"] = declaration.workload_yaml(large)
        outcome = self._tried(declaration, files, original, sizes)
        return Adoption(self.name, declaration, files, outcome, 0.0, original)

    def _template(self, function: Function) -> tuple[str, ...]:
        """Values for the kernel's own template parameters: those of the first use of it in its file. Raises
        FamilyError for types, which decide what every expression means."""
        parameters = [c for c in children(function.cursor) if kind(c).startswith("TEMPLATE_")]
        if kind(function.cursor) != "FUNCTION_TEMPLATE":
            return ()
        if wrong := [c.spelling for c in parameters if kind(c) != "TEMPLATE_NON_TYPE_PARAMETER"]:
            raise FamilyError(
                f"{self.source.path}: kernel {function.name} is a template over the type {wrong[0]}: write the type "
                "that you use in its place"
            )
        text = self.source.content.decode("utf-8", "replace")
        used = re.search(rf"\b{re.escape(function.name)}\s*<\s*([\w\s,]+?)\s*>\s*<<<", text)
        found = [word.strip() for word in used[1].split(",")] if used else []
        return tuple(
            found[place] if place < len(found) and found[place].isdigit() else "1"
            for place in range(len(parameters))
        )

    @staticmethod
    def _shared(function: Function, block: Sequence[str]) -> str:
        """A guess at dynamic shared memory: an element for each thread, and some."""
        for cursor in walk(function.body):
            if kind(cursor) == "VAR_DECL" and cursor.type.get_canonical().kind.name == "INCOMPLETEARRAY":
                size = max(1, cursor.type.get_canonical().element_type.get_size())
                return " * ".join([str(4 * size), *(item for item in block if item != "1")])
        return ""

    @staticmethod
    def _rank(declaration: Declaration) -> int:
        rank = max(len(array.shape) for array in declaration.arrays.all.values())
        nested = sum(bound.is_loop for bounds in declaration.function.bounds.values() for bound in bounds)
        return max(rank, 2 if nested else 1)

    @staticmethod
    def _sizes(declaration: Declaration, numbers: Sequence[int], seen: dict[str, int]) -> dict[str, int]:
        """A number for every size and whole number that is open, in turn."""
        given: dict[str, int] = {}
        turn = 0
        parameters = {cursor.spelling for cursor in declaration.function.parameters}
        for name, type_ in declaration.scalars.items():
            if "int" in type_ and name in parameters:
                given[name] = 1
        used = {extent.text for extent in declaration.arrays.extents.values()}
        used |= {found for text in declaration.geometry.grid for found in re.findall(r"^(?:ceil_div\()?(\w+)", text)
                 if text in (found, f"ceil_div({found}, {text.rpartition(', ')[2]}")}  # fmt: skip
        for cursor in declaration.function.parameters:
            name = cursor.spelling
            if name in declaration.bound or (name in given and name in used):
                given[name] = numbers[turn % len(numbers)]
                turn += 1
        blocks = {name: values[0] for name, values in declaration.geometry.policies.items()}
        for extent, block in declaration.geometry.unguarded.items():
            if declaration.arrays.extents.get(extent):
                step = int(block) if block.isdigit() else blocks[block]
                given[extent] = -(-given.get(extent, numbers[-1]) // step) * step
        found = Sizes(declaration.arrays, declaration.geometry, given, blocks, seen).all()
        extents = declaration.arrays.extents
        return {n: v for n, v in found.items() if n in given or (n in extents and extents[n].is_given)}

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
        if declaration.template:
            opening = begin + self.source.content[begin:].index(b"<") + 1
            text.replace((opening, opening), "class Policy, ")
        else:
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
        self, declaration: Declaration, files: dict[str, str], original: str, sizes: Sequence[dict[str, int]]
    ) -> Outcome:
        with TemporaryDirectory(prefix="autotune-") as made:
            folder = Path(made, self.name)
            write(folder, files)
            family = load_family(folder)
            built = Path(made, "built")
            built.mkdir()
            return Proof(declaration, family, original, built).run(sizes)


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
