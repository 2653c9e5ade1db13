"""The process that a profiler watches: it places a workload's data and runs each configuration's plan once.

``python -m autotune.measure.profiled_process TASK.json`` reads a WatchedTask and writes a WatchedResult next to it; it
measures nothing itself.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from autotune import files as paths
from autotune.compile import Cache, CompileFailure, Geometry, Variant, batch, compile_batch, default_root
from autotune.declaration import load_family, load_workload, prepare
from autotune.device import Backend, LaunchError, Module, Resident, open_backend
from autotune.errors import AutotuneError, DeviceError, explained
from autotune.processes import program


@dataclass(frozen=True, kw_only=True)
class WatchedTask:
    """``family`` is a name or folder, ``workload`` a name or file, ``data`` the folder of its data files (or empty),
    ``configurations`` are ids; the answer goes to ``result``."""

    family: str
    workload: str
    data: str
    device: str
    compiler: str
    configurations: tuple[str, ...]
    result: str


@dataclass(frozen=True, kw_only=True)
class WatchedResult:
    """``runs``: for each configuration in turn its id, the struct in its kernels' template argument (or empty) and the
    kernels that it launched, one by one; configurations that only order data otherwise share a struct. ``failed``:
    id -> why it did not run to its end. ``device`` is the device's slug, the digests those of what ran."""

    device: str
    source_digest: str
    space_digest: str
    workload_digest: str
    runs: Sequence[Sequence[Any]]
    failed: Mapping[str, str]


class _Counting:
    """A backend that writes down what is launched on it."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.launched: list[str] = []

    def launch(self, module: Module, kernel: str, geometry: Geometry, arguments: Sequence[bytes]) -> None:
        self._backend.launch(module, kernel, geometry, arguments)
        self.launched.append(kernel)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)


@dataclass(frozen=True)
class WatchedRun:
    """What became of a task under a program: the program's exit code, its log, all that was said, and the result, which
    is None where the process did not come to its end."""

    code: int
    log: str
    said: str
    result: WatchedResult | None

    @property
    def tail(self) -> str:
        """The last lines of what was said, without tables and empty frames."""
        lines = [line.strip() for line in self.said.splitlines()]
        lines = [line for line in lines if line.strip("= ") and not line.startswith('"')]
        return " | ".join(lines[-4:]) or "it printed nothing"


def run_watched(
    task: WatchedTask, command: Callable[[Path, Path], list[str]], what: str, seconds: float
) -> WatchedRun:
    """``task`` in this process's like, under the program that ``command(log, task file)`` begins with. Raises
    DeviceError, in which the run is called ``what``, when it cannot be started or takes longer than ``seconds``."""
    with tempfile.TemporaryDirectory(prefix="autotune-watched-") as name:
        log, given, result = (Path(name) / part for part in ("log", "task.json", "result.json"))
        given.write_text(json.dumps(asdict(replace(task, result=str(result)))), encoding="utf-8")
        arguments = command(log, given)
        try:
            with explained(DeviceError, f"cannot start {arguments[0]}:"):
                done = program(arguments, seconds=seconds)
        except subprocess.TimeoutExpired:
            raise DeviceError(
                f"{what} did not end within {seconds:.0f} s: take a smaller workload, or fewer configurations"
            ) from None
        printed = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
        answer = WatchedResult(**json.loads(result.read_text(encoding="utf-8"))) if result.is_file() else None
        return WatchedRun(done.returncode, printed, f"{printed}\n{done.stdout}\n{done.stderr}", answer)


def run(task: WatchedTask, backend: Backend) -> WatchedResult:
    """Run every configuration once on ``backend``. Raises AutotuneError for a family, workload or compiler that cannot
    be used at all."""
    family = load_family(task.family)
    inputs = prepare(family, load_workload(family, task.workload), paths.data_root(task.data or None))
    runs: list[tuple[str, str, list[str]]] = []
    failed: dict[str, str] = {}
    counting: Any = _Counting(backend)
    with closing(Resident(counting, inputs, most=1)) as resident:
        for named in task.configurations:
            variant = Variant.make(family, family.space.configuration(named), inputs.options)
            (built,) = compile_batch(
                batch(family, (variant,)), backend.toolchain(task.compiler), Cache(default_root())
            )
            if isinstance(built, CompileFailure):
                failed[named] = built.message
                continue
            counting.launched = []
            try:
                resident.execution(variant, backend.load(built)).run()
                backend.synchronize()
            except LaunchError as problem:
                failed[named] = str(problem)
            source = variant.source
            runs.append((named, "" if source.is_alone else source.name, counting.launched))
    return WatchedResult(
        device=backend.device.slug, source_digest=family.source_digest, space_digest=family.space_digest,
        workload_digest=inputs.digest, runs=runs, failed=failed,
    )  # fmt: skip


def main(path: str) -> int:
    """The exit code; an error is one line of text."""
    try:
        given = json.loads(Path(path).read_text(encoding="utf-8"))
        task = WatchedTask(**{**given, "configurations": tuple(given["configurations"])})
        with closing(open_backend(task.device)) as backend:
            found = run(task, backend)
        Path(task.result).write_text(json.dumps(asdict(found)), encoding="utf-8")
    except AutotuneError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return problem.exit_code
    return 0
