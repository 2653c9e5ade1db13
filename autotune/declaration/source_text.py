"""What the text of a family's source does with the choices and arguments, which no compiler can find wrong."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from autotune.declaration import kernel_text, source_files
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
        """Raise FamilyError where a source that is compiled unmodified replaces a choice."""
        for path, line, message in self.find_redefined():
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

    def list_warnings(self) -> list[str]:
        """What a sweep of a source that is compiled unmodified should say first: each choice that nothing reads."""
        several = {policy.name for policy in self.family.space.policies if len(policy.values) > 1}
        found = self.find_unread() if self.family.is_plain else ()
        return [message for name, message in found if name in several]


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
