"""The house has floors: a package imports only what stands above it, and of another only what that one lists. A family
imports one module."""

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "autotune"
FLOORS = (
    ("errors",),
    ("hardware", "figures", "files", "processes", "extensions"),
    ("layout",),
    ("declaration",),
    ("compile",),
    ("device",),
    ("measure",),
    ("record",),
    ("search",),
    ("engine", "policy"),
    ("dispatch", "report"),
    ("api",),
    ("family", "cli"),  # one layer: no package imports what families import
    # the extensions, which know nothing of one another
    ("adopt", "authoring", "callables", "export", "kernel_tuner", "program", "ranking", "registry", "spread"),
    ("advise",),  # stands on two of them
)
FLOOR = {name: number for number, names in enumerate(FLOORS) for name in names}
FACES = ("__init__", "__main__")  # what a program and the command line begin with


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """(module, name) of each import of autotune's own, at any depth."""
    for node in ast.walk(parsed(path)):
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


def test_a_module_imports_from_floors_above_it_and_what_they_list() -> None:
    for path, (module, name) in [(each, found) for each in MODULES for found in imports(each)]:
        own, other = room(path), [*module.split("."), name][1]
        if other == own or other not in FLOOR:
            assert other == own or other in ("__version__", "Kernel"), f"{path}: {module}: {name}"
            continue
        assert FLOOR[other] < FLOOR[own], f"{path}: {other} stands beside or below {own}"
        if (PACKAGE / other).is_dir():
            assert module == f"autotune.{other}", f"{path}: {module} is private to {other}"
            assert name in listed(PACKAGE / other / "__init__.py"), (
                f"{path}: autotune.{other} does not list {name}"
            )


@cache
def offered(file: Path) -> dict[str, str]:
    """The names that a package's stub lists, by the module that has them."""
    stub = file.with_suffix(".pyi")
    tree = ast.parse(stub.read_text(encoding="utf-8") if stub.is_file() else "")
    return {
        alias.name: node.module or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@cache
def listed(file: Path) -> list[str]:
    if names := offered(file):
        return [*names]
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
    for folder in (ROOT / "kernels", ROOT / "examples", PACKAGE / "authoring" / "new_family")
    for path in folder.rglob("*.py")
)


def test_a_family_imports_what_is_for_families() -> None:
    for path, (module, name) in [(each, found) for each in FAMILIES for found in imports(each)]:
        assert module in FOR_FAMILIES, f"{path}: {module} is private to autotune: take autotune.family"
        assert name in listed(FOR_FAMILIES[module]), f"{path}: {module} does not list {name}"


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


def test_a_familys_application_is_imported_by_nothing_but_autotune_run() -> None:
    """Else every sweep and every program that calls the kernel would load it."""
    for path in ROOT.glob("kernels/*/*.py"):
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
                said = f"{path}: {ast.unparse(node)}"
                assert not any(name.split(".")[0] == "app" for name in reached), said


# -- imports inside functions

# Commands, which load what they use when they are called; a process that is started reads the last one.
TABLES = {
    "adopt.commands", "advise.commands", "export.commands", "kernel_tuner.commands", "program.commands",
    "ranking.commands", "registry.commands", "spread.commands", "cli.show", "__main__",
}  # fmt: skip
# What takes a tenth of a second and more to import, or is not installed everywhere: a dispatcher, and a command that
# has no use for it, do without.
HEAVY = {
    "clang", "cuda", "filelock", "grpc", "jinja2", "jsonschema", "mpi4py", "optuna", "pandas", "platformdirs", "plotly",
    "psycopg", "pycuda", "pynvml", "scipy", "sqlalchemy", "torch",
}  # fmt: skip
# By package, what its functions import beyond these two, and why.
INSIDE = {
    "__init__": {"EXTENSIONS": "importing autotune loads nothing but itself"},
    "cli": {
        "report": "only where a report is asked for",
        "OPTIONS Console": "run has no option of a sweep, and prints no table",
    },
    "compile": {
        "find_nvcc": "a host library without CUDA asks for no nvcc",
        "Child program": "multiprocessing, 10 ms, for a variant that is in the cache",
    },
    "declaration": {
        "kernel_of": "what names no T1 file, as a dispatcher, does without",
    },
    "device": {"CpuBackend CudaBackend": "the device that is opened needs nothing of the other"},
    "dispatch": {
        "cpu_model": "a dispatcher on a GPU reads nothing of the processor",
        "median": "statistics, with fractions and decimals, for calls that are timed",
    },
    "files": {"PackageNotFoundError distribution": "email and zipfile, for advice that is rarely given"},
    "family": {"load_family": "what is for families loads the errors alone"},
    "measure": {
        "CpuBackend HostCxx find_compiler run_once": "only where the reference is a configuration, or has C++"
    },
    "policy": {
        "Device read_policy_file read_record": "",
        "locked median": "trials and studies, 10 ms, for what only writes",
    },
    "record": {
        "kernel_tuner t4": "only for another tuner's file",
    },
    "report": {"pandas clean csv_text write_text": ""},
    "engine": {
        "default_root find_compiler runtime": "while a started process waits for its first job",
        "Store Sweep SweepInterrupted TOOLS WatchedTask": "while a sweep's processes start",
        "find_sanitizer findings sanitized": "only for --sanitize",
    },
}


@cache
def trees() -> dict[str, ast.Module]:
    """Every module by its name below autotune; a package by its own."""
    found = {}
    for path in MODULES + [PACKAGE / f"{name}.py" for name in FACES]:
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
        found[name] = parsed(path)
    return found


def written(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    """(module, name) of the imports among ``nodes``."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)


@cache
def at_once(module: str) -> tuple[tuple[str, str], ...]:
    """What importing the module imports; not what only types need."""
    return tuple(written(trees()[module].body))


def inside(tree: ast.Module) -> set[tuple[str, str]]:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {found for function in functions for found in written(ast.walk(function))}


@cache
def loaded(module: str, name: str) -> frozenset[str]:
    """The modules below autotune that ``from module import name`` loads first, or the package from elsewhere."""
    if module.partition(".")[0] != "autotune":
        return frozenset([module.partition(".")[0]])
    own = module.partition(".")[2]
    packages = {own.rpartition(".")[0]} & trees().keys()
    if f"{own}.{name}" in trees():
        return frozenset([*packages, own, f"{own}.{name}"])
    lazily = offered(PACKAGE / own / "__init__.py").get(name)
    return frozenset([*packages, own, *([f"{own}.{lazily}"] if lazily else [])]) - {""}


@cache
def closure(first: frozenset[str]) -> set[str]:
    """All that is loaded with ``first``."""
    found, new = set(), set(first)
    while new:
        found |= new
        imported = [pair for name in new if name in trees() for pair in at_once(name)]
        new = {one for pair in imported for one in loaded(*pair)} - found
    return found


def test_imports_inside_functions_keep_something_light() -> None:
    for module, tree in trees().items():
        given = closure(frozenset([module]))
        for imported, name in sorted(inside(tree)):
            excepted = " ".join(INSIDE.get(module.partition(".")[0], {})).split()
            if module in TABLES or (name or imported) in excepted:
                continue
            heavy = closure(loaded(imported, name)) & HEAVY - given
            assert heavy, f"{module}: from {imported} import {name} saves nothing inside a function"


# -- packages


def test_there_are_few_packages_each_with_its_sentence() -> None:
    packages = sorted(path.parent for path in PACKAGE.glob("*/__init__.py") if path.parent.name != "_bundled")
    assert len(packages) <= 23
    for package in packages:
        said = ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8"))) or ""
        first = said.split("\n\n")[0]
        assert first.endswith(".") and ". " not in first, (
            f"{package.name}/__init__.py: one sentence says what it is for"
        )
        assert listed(package / "__init__.py")


def test_no_circle() -> None:
    """Of modules, inside a package too, at any depth: what a function imports when it is called counts."""
    done: set[str] = set()

    def walk(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, f"a circle: {' -> '.join([*path[path.index(module) :], module])}"
        if module in done or module not in trees():
            return
        for imported, name in written(ast.walk(trees()[module])):
            if imported.partition(".")[0] != "autotune":
                continue
            own = imported.partition(".")[2]
            target = f"{own}.{name}" if f"{own}.{name}" in trees() else own
            if target and target != module and not target.startswith("__"):
                walk(target, (*path, module))
        done.add(module)

    for module in trees():
        walk(module, ())


def test_no_name_of_a_class_stands_for_two_things() -> None:
    places: dict[str, list[str]] = {}
    for path in MODULES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(path.relative_to(PACKAGE).as_posix())
    assert not {name: found for name, found in places.items() if len(found) > 1}


# -- tests


def test_tests_mirror_the_packages() -> None:
    tests = PACKAGE.parent / "tests"
    folders = {
        path.name for path in tests.iterdir() if path.is_dir() and not path.name.startswith((".", "_"))
    }
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")} - {"_bundled"}
    assert folders == packages | {"examples", "families", "project", "proofs", "root", "support"}


def test_no_support_module_imports_what_is_gone() -> None:
    for path in (PACKAGE.parent / "tests" / "support").glob("*.py"):
        for module, name in written(ast.walk(ast.parse(path.read_text(encoding="utf-8")))):
            if module.partition(".")[0] == "autotune":
                found = import_module(module)
                is_there = not name or hasattr(found, name) or import_module(f"{module}.{name}")
                assert is_there, f"{path}: {module}: {name}"
