"""The house has floors: a package imports only what stands above it, and of another only what that one lists. A family
imports one module."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "autotune"
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
    ("family", "cli"),  # beside each other: what families import is for nobody here
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
            assert other == own or other in ("__version__", "lazy", "study_html"), f"{module}: {name}"
            continue
        assert FLOOR[other] < FLOOR[own], f"{other} stands beside or below {own}"
        if (PACKAGE / other).is_dir():
            assert module == f"autotune.{other}", f"{module} is private to {other}"
            assert name in listed(PACKAGE / other / "__init__.py"), f"autotune.{other} does not list {name}"


def listed(file: Path) -> list[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    (found,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
    )
    names: list[str] = found
    return names


# ---- families

# What a family, or a program that builds on families, may import: the tuned kernels, and what is made for families.
FOR_FAMILIES = {"autotune": PACKAGE / "__init__.py", "autotune.family": PACKAGE / "family.py"}
FAMILIES = sorted(
    path
    for folder in (ROOT / "kernels", ROOT / "examples", PACKAGE / "cli" / "new_family")
    for path in folder.rglob("*.py")
)


@pytest.mark.parametrize("path", FAMILIES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_family_imports_what_is_for_families(path: Path) -> None:
    for module, name in imports(path):
        assert module in FOR_FAMILIES, f"{module} is private to autotune: a family imports autotune.family"
        assert name in listed(FOR_FAMILIES[module]), f"{module} does not list {name}"


def test_nothing_is_for_families_that_none_imports() -> None:
    asked = {name for path in FAMILIES for module, name in imports(path) if module == "autotune.family"}
    assert asked == set(listed(FOR_FAMILIES["autotune.family"]))


def test_what_is_for_families_is_there_and_loads_nothing_before_it_is_asked_for() -> None:
    program = """
import sys
import autotune.family
loaded = {name for name in sys.modules if name.startswith(("autotune.", "numpy", "pandas", "yaml"))}
assert loaded == {"autotune.errors", "autotune.family"}, loaded
for name in autotune.family.__all__:
    getattr(autotune.family, name)
"""
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("kernels/*/*.py")), ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_a_familys_application_is_imported_by_nothing_but_autotune_run(path: Path) -> None:
    """Else every sweep and every program that calls the kernel would load it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    allowed = [
        node
        for function in tree.body
        if isinstance(function, ast.FunctionDef)
        and (path.name, function.name) == ("family.py", "application")
        for node in ast.walk(function)
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level and node not in allowed:
            reached = [node.module or "", *(alias.name for alias in node.names)]
            assert not any(name.split(".")[0] == "app" for name in reached), ast.unparse(node)
