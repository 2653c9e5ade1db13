"""What a lint says, and where: one finding is one mistake at one line.

``Declared`` is what the rules read: the family as it is loaded, the line of each key of family.yaml, the C++ sources
without their comments, and the names that family.py defines. Nothing of a family is imported or compiled.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import yaml

from autotune.declaration import Family, reached, yamlfile

Lines = Mapping[tuple[str | int, ...], int]


_NOT_CODE = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)


@dataclass(frozen=True)
class Finding:
    """``rule`` is the mistake's name. An ``error`` keeps the family from working or makes a sweep pointless; a
    ``warning`` may be meant. ``message`` says what, which value and what to do; ``line`` counts from 1."""

    rule: str
    path: Path
    line: int
    message: str
    is_error: bool = True

    @property
    def severity(self) -> str:
        return "error" if self.is_error else "warning"

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.severity}: {self.message} [{self.rule}]"

    def to_dict(self) -> dict[str, str | int]:
        """What ``lint --json`` prints of it."""
        return {
            "path": str(self.path), "line": self.line, "severity": self.severity, "rule": self.rule,
            "message": self.message,
        }  # fmt: skip


def blanked(text: str) -> str:
    """C++ with comments and strings as blanks, so that every place stays where it was. Raw strings are not known."""
    return _NOT_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


@dataclass(frozen=True)
class Source:
    """A C++ file of the family. ``code`` is its text with comments and strings blanked out, line by line the same."""

    path: Path
    code: str

    @classmethod
    def read(cls, path: Path) -> "Source":
        text = path.read_text(encoding="utf-8", errors="replace")
        return cls(path, blanked(text))

    def line(self, position: int) -> int:
        """The line, from 1, of a position in ``code``."""
        return self.code.count("\n", 0, position) + 1


@dataclass(frozen=True)
class Declared:
    """A family that can be loaded. ``folder`` is where it lies, as it was named."""

    folder: Path
    family: Family
    lines: Lines

    @property
    def file(self) -> Path:
        return self.folder / "family.yaml"

    @cached_property
    def taken(self) -> frozenset[str]:
        """Every argument of every kernel."""
        return frozenset(name for kernel in self.family.kernels.values() for name in kernel.arguments)

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """The kernel source and the headers that it includes, but for ``default.cuh``, which is made from family.yaml.
        Other files may lie beside them: the kernel as it was before, say. Raises FamilyError."""
        paths = reached([self.folder / self.family.source.name], self.folder).values()
        return tuple(map(Source.read, paths))

    @cached_property
    def python(self) -> str:
        """The text of all Python in the folder."""
        return "\n".join(
            p.read_text(encoding="utf-8", errors="replace") for p in sorted(self.folder.glob("*.py"))
        )

    @cached_property
    def tree(self) -> ast.Module:
        """family.py, without anything where there is none. Raises SyntaxError."""
        file = self.folder / "family.py"
        return ast.parse(file.read_bytes() if file.is_file() else b"", str(file))

    @cached_property
    def defined(self) -> frozenset[str]:
        """The names that family.py binds at its top level. Raises SyntaxError."""
        return frozenset(_bound(self.tree.body))

    @cached_property
    def orders(self) -> frozenset[str] | None:
        """The names in ``orders`` of family.py; None where those cannot be read off its text. Raises SyntaxError."""
        given = [keys for keys in map(_orders_given, self.tree.body) if keys is not None]
        if len(given) < sum(map(_changes_orders, ast.walk(self.tree))):
            return None  # somewhere else, or not by a dictionary that is written out
        keys = [key.value for each in given for key in each if isinstance(key, ast.Constant)]
        names = frozenset(key for key in keys if isinstance(key, str))
        return names if len(keys) == sum(map(len, given)) else None

    def line(self, *place: str | int) -> int:
        """The line of a key of family.yaml, or of the nearest one around it."""
        return line_of(self.lines, place)

    def found(self, rule: str, message: str, *place: str | int, is_error: bool = True) -> Finding:
        """A finding at a key of family.yaml."""
        return Finding(rule, self.file, self.line(*place), message, is_error)


def line_of(lines: Lines, place: tuple[str | int, ...]) -> int:
    """The line of a key, or of the nearest one around it."""
    while place and place not in lines:
        place = place[:-1]
    return lines.get(place, 1)


def lines_of(path: Path) -> dict[tuple[str | int, ...], int]:
    """The line, from 1, of every key and list item of a YAML file that ``yamlfile.read`` has accepted."""
    lines: dict[tuple[str | int, ...], int] = {}

    def walk(node: yaml.Node, place: tuple[str | int, ...]) -> None:
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                lines[*place, key.value] = key.start_mark.line + 1
                walk(value, (*place, key.value))
        elif isinstance(node, yaml.SequenceNode):
            for i, value in enumerate(node.value):
                lines[*place, i] = value.start_mark.line + 1
                walk(value, (*place, i))

    walk(yamlfile.nodes(path), ())
    return lines


def _orders_given(item: ast.stmt) -> Sequence[ast.expr | None] | None:
    """The keys that a statement of family.py's own level gives ``orders``; None where it does nothing of the kind."""
    match item:
        case (
            ast.Assign(targets=[ast.Name(id="orders")], value=ast.Dict(keys=keys))
            | ast.AnnAssign(target=ast.Name(id="orders"), value=ast.Dict(keys=keys))
            | ast.AugAssign(target=ast.Name(id="orders"), op=ast.BitOr(), value=ast.Dict(keys=keys))
        ):
            return keys
        case ast.Assign(targets=[ast.Subscript(value=ast.Name(id="orders"), slice=key)]):
            return [key]
        case _:
            return None


def _changes_orders(node: ast.AST) -> bool:
    match node:
        case ast.Name(id="orders", ctx=ast.Store()):
            return True
        case ast.Subscript(value=ast.Name(id="orders"), ctx=ast.Store() | ast.Del()):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id="orders"), attr=method)):
            return method in ("update", "setdefault", "pop", "clear")
        case ast.alias(name=name, asname=bound):
            return "orders" in (bound or name, "*")
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return name == "orders"
        case _:
            return False


def _bound(body: list[ast.stmt]) -> Iterator[str]:
    for item in body:
        match item:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from (alias.asname or alias.name for alias in names)
            case ast.Assign(targets=targets):
                yield from (target.id for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
                yield name
            case _:
                pass
