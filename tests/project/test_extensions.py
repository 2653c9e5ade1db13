"""Each extension can be deleted with those that need it, and all can: folders, lines in extensions.py, and nothing else
of autotune."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autotune.extensions import EXTENSIONS

ROOT = Path(__file__).parents[2]
# What goes with an extension besides its folder and its tests: tests of pages and programs that are about it.
ITS_OWN = ("tests/project", "tests/examples", "tests/support", "tests/families", "benchmarks", "docs")
SUITE = os.environ.get("AUTOTUNE_EXTENSIONS_SUITE", "")  # what pytest runs of the core's tests; all: tests

_READ = ("benchmarks", "docs", "examples", "CHANGELOG.md", "README.md", "SECURITY.md")  # by the core's tests


def imported(path: Path) -> set[str]:
    """The packages of autotune that a file imports, at any depth."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("autotune.")}
    return found


def core_files() -> list[Path]:
    """The core and its tests."""
    return sorted(
        path
        for folder in ("autotune", "tests")
        for path in (ROOT / folder).rglob("*.py")
        if path.relative_to(ROOT).parts[1] not in EXTENSIONS
        and not path.relative_to(ROOT).as_posix().startswith(ITS_OWN)
    )


def test_the_core_and_its_tests_import_no_extension() -> None:
    assert not {path: found for path in core_files() if (found := imported(path) & set(EXTENSIONS))}


# In one process: all modules, the help, and a sweep.
PROGRAM = """
import {modules}
import autotune
from autotune.cli import main
print(autotune.__file__)
assert main(["--help"]) == 0
sweep = ["sweep", "allpairs", "--workload", "ragged", "--preset", "control", "--device", "cpu"]
assert main([*sweep, "--policies", "own-policies"]) == 0
"""


STANDS_ON = {"advise": {"adopt", "ranking"}}  # all others know nothing of one another


def removals() -> list[list[str]]:
    """Sets of extensions to delete: of any two, each is deleted in a set that keeps the other, unless the other stands
    on it. Each extension is in two sets of its own choice, which no other has both of."""
    related = {name for pair in STANDS_ON.items() for name in (pair[0], *pair[1])}
    names = sorted(EXTENSIONS, key=lambda name: name not in related)
    places = ((low, high) for high in range(1, len(names)) for low in range(high))
    both = dict(zip(names, places, strict=False))
    sets = [
        {name for name in names if place in both[name]} for place in range(max(map(max, both.values())) + 1)
    ]
    return [sorted(gone | {o for o, needed in STANDS_ON.items() if needed & gone}) for gone in sets]


def test_each_extension_is_deleted_where_any_other_is_kept() -> None:
    for name in EXTENSIONS:
        for other in EXTENSIONS.keys() - {name}:
            if name not in STANDS_ON.get(other, set()):
                assert any(name in gone and other not in gone for gone in removals()), (name, other)


def test_an_extension_imports_no_other_but_what_it_stands_on() -> None:
    for name in EXTENSIONS:
        files = (ROOT / "autotune" / name).rglob("*.py")
        found = {other for path in files if "new_family" not in path.parts for other in imported(path)}
        assert found & EXTENSIONS.keys() - {name} == STANDS_ON.get(name, set()), name


@pytest.mark.parametrize("gone", [*removals(), list(EXTENSIONS)], ids=" ".join)
def test_the_core_works_without(gone: list[str], tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for name in ("autotune", *(("kernels", "tests", "pyproject.toml") if SUITE else ())):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns(*gone))
        else:
            shutil.copy(source, tree / name)
    for name in ("workloads", "policies", *(_READ if SUITE else ("kernels",))):
        (tree / name).symlink_to(ROOT / name)
    registry = tree / "autotune" / "extensions.py"
    text = registry.read_text()
    for name in gone:
        text, count = re.subn(
            rf'^    "{name}": Extension\(\n.*?^    \),\n', "", text, flags=re.MULTILINE | re.DOTALL
        )
        assert count == 1
    registry.write_text(text)

    def run(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, *words],
            cwd=tree,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tree), os.environ.get("PYTHONPATH", "")])},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    modules = [
        ".".join(path.relative_to(tree).with_suffix("").parts).removesuffix(".__init__")
        for path in (tree / "autotune").rglob("*.py")
        if path.name != "__main__.py" and "new_family" not in path.parts
    ]
    said = run("-c", PROGRAM.format(modules=", ".join(sorted(modules))))
    assert said.startswith(str(tree / "autotune" / "__init__.py"))
    assert "sweep" in said and "winner" in said
    if SUITE:
        run("-m", "pytest", "-q", "-p", "no:cacheprovider", *SUITE.split())
