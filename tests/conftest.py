"""How tests are run: what may be left out, in how many processes, and what they share.

A test is left out only when the machine lacks what its marker names, or a package of the dependency group ``heavy``;
the summary has one line for each such thing. ``--require-gpu`` (and ``--require MARKER``) turn that into a failure, for
machines that must have it.
"""

import gc
import importlib
import os
import shutil
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from exports import Exported, shifted_in, shipped
from fakes import write_family
from hypothesis import HealthCheck, settings
from import_path import import_path
from mpi_program import launcher
from nursery import Nursery
from postgres_cluster import Cluster, binaries
from pythons import OTHERS, interpreter, marker
from sanitized import libraries
from shared_data import SHARED

from autotune import processes
from autotune.engine.sanitizer import find_sanitizer
from autotune.errors import DeviceError

# No test judges a time, and a machine that is busy makes none fail.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

# Processes that import numpy would each start threads for algebra, and use none of them.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require-gpu", action="store_true", help="fail, instead of skip, tests that need a GPU"
    )
    parser.addoption("--require", action="append", default=[], help="as --require-gpu, for another marker")


@pytest.hookimpl(tryfirst=True)  # ahead of xdist's, which reads what is set here
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Folders are run by several processes; a file or a single test by this one, where a debugger and prints work.
    ``-n`` says otherwise."""
    asked = config.option
    if not config.pluginmanager.hasplugin("xdist") or hasattr(config, "workerinput"):
        return
    if asked.numprocesses is not None or asked.dist != "no":
        return
    alone = asked.usepdb or asked.trace or asked.collectonly or asked.capture == "no" or asked.keyword
    if not alone and all(Path(argument).is_dir() for argument in config.args) and not _has_gpu():
        processors = len(os.sched_getaffinity(0))
        # A quarter of the time of one process is waiting: for a browser, a database, processes that were started.
        asked.numprocesses = min(processors * 3 // 2, _MOST_PROCESSES) if processors > 1 else 0
        asked.dist = "worksteal"


def _has_gpu() -> bool:
    if find_spec("pycuda") is None:
        return False
    import pycuda.driver as driver

    try:
        driver.init()
    except driver.Error:  # the one failure that means: no device here
        return False
    return bool(driver.Device.count())


def _has_nvcc() -> bool:
    return bool(shutil.which("nvcc")) or Path("/usr/local/cuda/bin/nvcc").exists()


def _has_nvrtc() -> bool:
    """Whether the library is there as well: its Python package can be installed without it."""
    try:
        return importlib.import_module("cuda.bindings.nvrtc").nvrtcVersion() is not None
    except (ImportError, OSError, RuntimeError):
        return False


def _has_sanitizer() -> bool:
    try:
        return bool(find_sanitizer())
    except DeviceError:
        return False


_MOST_PROCESSES = 8  # each imports and collects for seconds, and compiles in processes of its own
_STARTED = processes._start
_NEEDS = {
    "asan": (lambda: bool(libraries()), "g++ with AddressSanitizer and UndefinedBehaviorSanitizer"),
    "chromium": (
        lambda: bool(shutil.which("chromium") and find_spec("playwright")),
        "the program chromium, and playwright",
    ),
    "clang": (lambda: shutil.which("clang++-19") is not None, "clang++ 19 (Debian package clang-19)"),
    "cmake": (lambda: shutil.which("cmake") is not None, "the program cmake"),
    "cutlass": (
        lambda: find_spec("cutlass_library") is not None,
        "CuTe's headers (pip install --no-deps nvidia-cutlass)",
    ),
    "git": (lambda: shutil.which("git") is not None, "the program git"),
    "gpu": (_has_gpu, "a CUDA device and PyCUDA"),
    "grpc": (lambda: bool(find_spec("grpc") and find_spec("google.protobuf")), "grpcio and protobuf"),
    "kernel_tuner": (
        lambda: getattr(find_spec("kernel_tuner"), "origin", None) is not None,  # not tests/kernel_tuner
        "Kernel Tuner (pip install --no-deps kernel_tuner python-constraint2 xmltodict)",
    ),
    "mkdocs": (lambda: find_spec("mkdocs") is not None, "mkdocs (dependency group docs)"),
    "mpi": (lambda: launcher() is not None, "the pip packages mpi4py and mpich"),
    "mummer": (lambda: shutil.which("mummer") is not None, "the mummer program"),
    "ncu": (lambda: shutil.which("ncu") is not None, "Nsight Compute's program ncu"),
    "notebook": (
        lambda: bool(find_spec("nbclient") and find_spec("ipykernel")),
        "nbclient and ipykernel (dependency group heavy)",
    ),
    "nvcc": (_has_nvcc, "nvcc"),
    "nvrtc": (_has_nvrtc, "cuda-bindings with NVRTC"),
    "openssl": (lambda: shutil.which("openssl") is not None, "the program openssl"),
    "pip": (lambda: find_spec("pip") is not None, "pip in this environment (uv leaves it out)"),
    "plink2": (lambda: shutil.which("plink2") is not None, "PLINK 2 (the program plink2)"),
    "plink": (lambda: shutil.which("plink1.9") is not None, "PLINK 1.9 (the program plink1.9)"),
    "postgresql": (
        lambda: bool(binaries() and find_spec("psycopg")),
        "PostgreSQL's server programs and psycopg",
    ),
    "root": (lambda: os.geteuid() == 0, "to be root, who alone may give a file away"),
    "sanitizer": (_has_sanitizer, "NVIDIA's program compute-sanitizer"),
    "shared": (SHARED.is_dir, "the folder shared/ beside the checkout"),
    "tracing": (lambda: bool(shutil.which("g++") or shutil.which("clang++")), "g++ or clang++"),
    "torch": (lambda: find_spec("torch") is not None, "torch (its build for the cpu will do)"),
    "numba": (lambda: find_spec("numba") is not None, "numba (no GPU)"),
    "triton": (lambda: bool(find_spec("triton") and find_spec("torch")), "triton and torch (no GPU)"),
    "warp": (lambda: find_spec("warp") is not None, "warp-lang (no GPU)"),
    "zig": (lambda: find_spec("ziglang") is not None, "ziglang"),
    **{marker(v): (lambda v=v: bool(interpreter(v)), f"Python {v}") for v in OTHERS},
}


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected lives to the end: to look for garbage in it costs seconds now, and a part of one at each full
    collection later, in every process."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


_MISSING = pytest.StashKey[str]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    required = {*config.getoption("--require"), *(["gpu"] if config.getoption("--require-gpu") else [])}
    marked: dict[str, list[pytest.Item]] = {}
    for item in items:
        for name in {mark.name for mark in item.iter_markers()} & _NEEDS.keys() - required:
            marked.setdefault(name, []).append(item)
    for name, found in marked.items():
        has, what = _NEEDS[name]
        if not has():
            for item in found:
                item.stash[_MISSING] = what


@pytest.hookimpl(tryfirst=True)  # before a fixture of the test's is set up
def pytest_runtest_setup(item: pytest.Item) -> None:
    """One line leaves tests out, so the summary has one line for each thing that is missing, with a count."""
    if what := item.stash.get(_MISSING, ""):
        pytest.skip(f"needs {what}")


# What tests import and nothing else uses, of the dependency group `heavy`.
_HEAVY = ("basis_set_exchange", "pyscf", "sklearn", "treelite")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that imports a package of _HEAVY is left out where that is not installed."""
    report = yield
    problem: BaseException | None = call.excinfo.value if call.excinfo else None
    while problem and not isinstance(problem, ModuleNotFoundError):  # a warning that was awaited hides it
        problem = problem.__context__
    name = (problem.name or "").partition(".")[0] if isinstance(problem, ModuleNotFoundError) else ""
    if name in _HEAVY and find_spec(name) is None:
        report.outcome = "skipped"
        report.longrepr = (__file__, 0, f"Skipped: needs {name} (dependency group heavy)")
    return report


@pytest.fixture(scope="session")
def compile_cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    """One for all tests, those of other processes too: AUTOTUNE_TEST_CACHE keeps it from one run to the next."""
    own = tmp_path_factory.getbasetemp()
    session = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    return os.environ.get("AUTOTUNE_TEST_CACHE") or str(session / "cache")


@pytest.fixture(autouse=True)
def _own_folders(
    compile_cache: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests share compiled kernels, and see no policy files or data of the user's."""
    monkeypatch.setenv("AUTOTUNE_CACHE", compile_cache)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path_factory.getbasetemp() / "data-home"))
    for name in ("AUTOTUNE_POLICIES", "AUTOTUNE_DATA", "AUTOTUNE_REGISTRY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _forked_children(nursery: Nursery, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What this process starts has imported already."""
    monkeypatch.setattr(processes, "_start", nursery.started)
    yield
    processes.end_spares()


@pytest.fixture
def fresh_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this process starts begins as a program's children do."""
    monkeypatch.setattr(processes, "_start", _STARTED)


@pytest.fixture
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is started finds autotune, and whatever else this one imports."""
    monkeypatch.setenv("PYTHONPATH", import_path())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small family whose reference is Python, so that it needs no compiler."""
    made = write_family(tmp_path / "doubler")
    (made / "family.py").write_text("def reference(arrays, options):\n    return {'y': 2 * arrays['x']}\n")
    return made


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    yield made
    made.close()


@pytest.fixture
def postgresql(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    """The address of an empty database."""
    return cluster.database(f"test{abs(hash(request.node.nodeid))}")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # No sandbox: CI runs as root, in a container; what is opened was made a moment ago.
        launched = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield launched
        launched.close()


# -- what the tests of the export read


@pytest.fixture(scope="module")
def allpairs(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    return shipped("allpairs", "ragged", tmp_path_factory.mktemp("allpairs"))


@pytest.fixture(scope="module")
def mummergpu(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    return shipped("mummergpu", "phix", tmp_path_factory.mktemp("mummergpu"), tree_order="reordered")


@pytest.fixture(scope="module")
def shifted(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    return shifted_in(tmp_path_factory.mktemp("shifted"))


@pytest.fixture(params=["allpairs", "shifted"])
def exported(request: pytest.FixtureRequest) -> Exported:
    found: Exported = request.getfixturevalue(request.param)
    return found
