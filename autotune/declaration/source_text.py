"""What the text of a family's source does with the choices and arguments, which no compiler can find wrong."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from autotune.declaration import kernel_text, source_files
from autotune.declaration.access import POINTER
from autotune.declaration.family_folder import Family
from autotune.errors import FamilyError

_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(\w+)(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class SourceText:
    """The source of ``family`` and its own headers as text; ``folder`` is the family's, as a person named it."""

    family: Family
    folder: Path

    @cached_property
    def files(self) -> Mapping[Path, str]:
        """The kernel source and the headers that it includes, without comments and with every place where it was."""
        paths = source_files.follow_includes([self.folder / self.family.source.name], self.folder).values()
        texts = {path: path.read_text(encoding="utf-8", errors="replace") for path in paths}
        return {path: kernel_text.blank_comments(text) for path, text in texts.items()}

    @cached_property
    def python(self) -> str:
        """The text of all Python in the folder."""
        paths = sorted(self.folder.glob("*.py"))
        return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in paths)

    def is_named_in_python(self, name: str) -> bool:
        """In a string, so that a plan may read it."""
        return bool(re.search(rf"""["']{name}["']""", self.python))

    def check(self) -> None:
        """Raise FamilyError where a source that is compiled unmodified replaces a choice, or cannot write an output."""
        wrong = [(path, line, message) for path, line, is_error, message in self.find_misplaced() if is_error]
        for path, line, message in [*self.find_redefined(), *wrong]:
            raise FamilyError(f"{path.name}:{line}: {message}")

    def find_redefined(self) -> Iterator[tuple[Path, int, str]]:
        """File, line and message of each ``#define`` that replaces the macro of a policy whatever the configuration is:
        one inside of a conditional may be a default, so it is accepted."""
        family = self.family
        templates = {entry for kernel in family.kernels.values() for entry in kernel.template}
        macros = {policy.name for policy in family.space.policies if policy.is_constant} - templates
        todo = [self.folder / family.source.name] if family.is_plain else []
        for path in todo:
            for line, directive, rest in _find_unconditional(self.files[path]):
                named = re.match(r"\s*(\w+)(.*)", rest)
                if directive == "define" and named and named[1] in macros:
                    name, value = named[1], " ".join(named[0].rstrip("\\").split())
                    message = (
                        f"#define {value} replaces the value of policy {name} in every configuration: delete it, or "
                        f"put it into #ifndef {name} ... #endif"
                    )
                    yield path, line, message
                for included in source_files.find_quoted_includes(f"#{directive}{rest}"):
                    places = (path.parent / included, self.folder / included)
                    todo += [one for one in places if one in self.files and one not in todo][:1]

    def find_unread(self) -> Iterator[tuple[str, str]]:
        """Name and message of each policy, constant in the source, that no source, launch or clearing reads."""
        family = self.family
        kernels, ahead = family.kernels.values(), "" if family.is_plain else r"::\s*"
        read = [*family.zero.values()]
        for kernel in kernels:
            read += [*kernel.grid, *kernel.block, kernel.shared_bytes]
        for name in (policy.name for policy in family.space.policies if policy.is_constant):
            if (
                any(name in expression.names for expression in read)
                or any(name in kernel.template for kernel in kernels)
                or any(re.search(rf"{ahead}\b{name}\b", text) for text in self.files.values())
                or self.is_named_in_python(name)
            ):
                continue
            called = name if family.is_plain else f"Policy::{name}"
            files = ", ".join(path.name for path in self.files)
            message = (
                f"no kernel reads policy {name!r}: {called} is not in {files}, and no grid, block or shared_bytes "
                "reads it, so its values are the same program; read it in a kernel, or delete it"
            )
            yield name, message

    def find_misplaced(self) -> Iterator[tuple[Path, int, bool, str]]:
        """File, line, whether it is an error, and message of each parameter that seems to be another argument's. Only
        of a source that is compiled unmodified, with one kernel whose parameters can all be read."""
        family = self.family
        for kernel, launch in family.kernels.items() if family.is_plain and len(family.kernels) == 1 else ():
            passed = {argument: family.beginnings.get(argument, argument) for argument in launch.arguments}
            for path, text in self.files.items():
                defined = kernel_text.definition(text, kernel.rsplit("::", maxsplit=1)[-1])
                parameters = defined.parameters if defined else ()
                if len(parameters) != len(launch.arguments):
                    continue
                for i, argument in enumerate(launch.arguments):
                    role = family.data[argument].role if family.accesses.get(argument) == POINTER else ""
                    if what := _find_misplacement(parameters[i], role, passed[argument], passed.values()):
                        line = text.count("\n", 0, parameters[i].at) + 1
                        is_error = role == "output" and parameters[i].is_constant
                        where = f"parameter {i + 1} of kernel {kernel}"
                        yield path, line, is_error, f"{where} {what}: compare the order of both"

    def list_warnings(self) -> list[str]:
        """What a sweep of a source that is compiled unmodified should say first: each choice that nothing reads, each
        parameter with another argument's name."""
        several = {policy.name for policy in self.family.space.policies if len(policy.values) > 1}
        found = self.find_unread() if self.family.is_plain else ()
        swapped = [message for _, _, is_error, message in self.find_misplaced() if not is_error]
        return [*(message for name, message in found if name in several), *swapped]


def _find_unconditional(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, name and rest of each directive that no ``#if`` can leave out."""
    depth = 0
    for found in _DIRECTIVE.finditer(text):
        if found[1].startswith("if"):
            depth += 1
        elif found[1] == "endif":
            depth -= 1
        elif depth == 0:
            yield text.count("\n", 0, found.start()) + 1, found[1], found[2]


def _find_misplacement(
    parameter: kernel_text.Parameter, role: str, argument: str, passed: Collection[str]
) -> str:
    """In what a parameter differs from the ``argument`` that it gets, an array by a pointer if it has a ``role``; empty
    where it may be that."""
    if role == "output" and parameter.is_constant:
        return f"is `{parameter.text}`, and the declaration passes the output {argument}"
    if parameter.name == argument:
        return ""
    if parameter.name in passed:
        return f"is named {parameter.name}, the declaration passes {argument}"
    if role == "input" and parameter.role in ("output", "inout"):
        return f"is written (`{parameter.text}`), and the declaration passes the input {argument}"
    return ""
