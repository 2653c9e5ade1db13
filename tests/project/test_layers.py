"""The house has floors: a package imports only what stands above it, and of another only what that one lists."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "autotune"
FLOORS = (
    ("errors",),
    ("hardware", "figures", "yamlfile", "files", "processes"),
    ("layout",),
    ("declaration",),
    ("compile",),
    ("device",),
    ("measure",),
    ("record",),
    ("search",),
    ("sweep", "policy"),
    ("dispatch", "report", "export"),
    ("cli",),
)
FLOOR = {name: number for number, names in enumerate(FLOORS) for name in names}
FACES = ("__init__", "__main__")  # what a program and the command line begin with


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """(module, name) of each import of autotune's own, at any depth."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "autotune":
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.startswith("autotune."))


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


MODULES = sorted(
    path
    for path in PACKAGE.rglob("*.py")
    if "_bundled" not in path.parts and "new_family" not in path.parts and room(path) not in FACES
)


def test_every_room_has_a_floor() -> None:
    assert {room(path) for path in MODULES} == set(FLOOR)
    assert sum(path.parent == PACKAGE for path in PACKAGE.glob("*.py")) <= 9


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_module_imports_from_floors_above_it_and_what_they_list(path: Path) -> None:
    own = room(path)
    for module, name in imports(path):
        parts = [*module.split("."), name][1:]
        other = parts[0]
        if other == own or other not in FLOOR:
            assert other == own or other in ("__version__", "study_html"), f"{module}: {name}"
            continue
        assert FLOOR[other] < FLOOR[own], f"{other} stands beside or below {own}"
        if (PACKAGE / other).is_dir():
            assert module == f"autotune.{other}", f"{module} is private to {other}"
            assert name in listed(other), f"autotune.{other} does not list {name}"


def listed(package: str) -> list[str]:
    tree = ast.parse((PACKAGE / package / "__init__.py").read_text(encoding="utf-8"))
    (found,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
    )
    names: list[str] = found
    return names
