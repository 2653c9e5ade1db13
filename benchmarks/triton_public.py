"""Ten Triton kernels of public repositories with only the import of their decorator changed, compared with Triton's own
autotuner: time to tune, winner and its time; and a kernel with a wrong, a crashing and a hanging configuration.

    python benchmarks/triton_public.py --sources DIR [--seconds 200] [--kernels matmul,attention] [--out FILE.csv]

``--sources`` has a folder for each repository (``SOURCES``: where it is from, at which commit, its licence) with the
files that ``CASES`` names. They are copied to a temporary folder; for autotune ``@triton.autotune`` becomes
``@autotune`` behind the import of it. What else they import of their own package and is not among the files is replaced
there by a few lines (``STAND_INS``). Each kernel is called by its own package's function.

Each engine tunes all kernels in one process, with an empty Triton cache: first autotune, and the kernel with faults,
then Triton. The wall time is that of the first call: compiling is in it, and what of the start of processes is not over
by then. Behind each of Triton's, both winners' launches are timed in turns. A row is written as soon as it is complete.
A tutorial's own comparison with cuBLAS is left out.
"""

import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

from harness import arguments, is_there, python_path
from result_files import RESULTS, read_frame, write_rows

from autotune.errors import AutotuneError

ENGINES = ("autotune", "triton")
ENGINE = os.environ.get("TRITON_PUBLIC_ENGINE", "autotune" if "--check" in sys.argv else "")
ROUNDS, SAMPLES = 10, 20
AHEAD = 20_000_000  # cycles that the GPU waits, while the host queues samples
FLUSHED = 256 << 20  # bytes that are written before each sample
PLACE = os.environ.get("TRITON_PUBLIC_DEVICE", "cuda")  # the cpu, with TRITON_INTERPRET=1, to try this script

if ENGINE and find_spec("triton") and find_spec("torch"):
    import torch
    import triton
    import triton.language as tl

    if ENGINE == "triton":
        from triton import autotune
    else:
        from autotune.callables.triton import autotune

    HOW = [triton.Config({"BLOCK": 1024, "HOW": how}) for how in range(5)]
    LIMIT = {} if ENGINE == "triton" else {"trial_seconds": 3.0}

    @autotune(configs=HOW, key=["n"], **LIMIT)
    @triton.jit
    def faulty(x, out, stop, n, BLOCK: tl.constexpr, HOW: tl.constexpr):
        """0 and 1 are right, 2 is wrong, 3 writes where nothing is, 4 never ends."""
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        if HOW == 4:
            turns = 0
            while tl.load(stop, volatile=True) == 0:
                turns += 1
        place = out + (1 << 42) if HOW == 3 else out
        tl.store(place + at, tl.load(x + at, at < n) * (3 if HOW == 2 else 2), at < n)


# -- where the kernels are from --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """A repository at a commit, in a folder of that name; ``root`` is where its packages begin."""

    repository: str
    commit: str
    licence: str
    root: str = ""


SOURCES = {
    # Triton's tutorials: of a repository of its own organisation, and of a smaller copy
    "triton": Source(
        "triton-lang/Triton-to-tile-IR", "50ec1da08373023d0aa8469725c6b59dbd2da16e", "MIT", "python/tutorials"
    ),
    "triton-tutorials": Source("JongseoKang/triton", "4e746e786e2dfd800bbb6b0576012bc17a74a64c", "MIT"),
    "flash-linear-attention": Source(
        "fla-org/flash-linear-attention", "bc3b101dcb713ddc5bd8924b66754eb68b5ccf89", "MIT"
    ),
    "Liger-Kernel": Source(
        "linkedin/Liger-Kernel", "ead96b618e5c67bddc6a6e9bcb99bfe6b5ab661c", "BSD-2-Clause", "src"
    ),
    "mamba": Source("state-spaces/mamba", "e9594ce1c732d97440f0332fdc43170a2294dbfa", "Apache-2.0"),
}

_FLA, _MAMBA = "flash-linear-attention", "mamba"
_SSD = "mamba_ssm/ops/triton/"

# The files, with the line that a tutorial's own run begins at: what follows is left out.
FILES: Mapping[str, Mapping[str, str]] = {
    "triton": {"03-matrix-multiplication.py": "torch.manual_seed(0)"},
    "triton-tutorials": {
        "06-fused-attention.py": "@pytest.mark.parametrize",
        "09-persistent-matmul.py": "def matmul_tma_persistent_get_configs",
    },
    _FLA: dict.fromkeys(
        ("fla/ops/utils/op.py", "fla/ops/utils/cumsum.py", "fla/ops/common/chunk_h.py",
         "fla/ops/common/chunk_scaled_dot_kkt.py"), ""
    ),
    "Liger-Kernel": {"liger_kernel/ops/dyt.py": ""},
    _MAMBA: dict.fromkeys(
        (f"{_SSD}ssd_bmm.py", f"{_SSD}ssd_chunk_state.py", f"{_SSD}ssd_chunk_scan.py", f"{_SSD}softplus.py",
         "mamba_ssm/utils/determinism.py"), ""
    ),
}  # fmt: skip

STAND_INS = {
    "fla/utils.py": (
        "autotune_cache_kwargs = {}\nIS_GATHER_SUPPORTED, IS_NVIDIA_BLACKWELL = True, False\n"
        "def check_shared_mem(*_): return True\ndef input_guard(function): return function\n"
    ),
    "fla/ops/backends.py": "def dispatch(_): return lambda function: function\n",
    "fla/ops/utils/__init__.py": "prepare_chunk_offsets = prepare_chunk_indices = None\n",
    "fla/ops/utils/index.py": "prepare_chunk_indices = None\n",
    "fla/ops/utils/cache.py": "from triton import autotune as fla_cache_autotune\n",
    "fla/ops/common/__init__.py": "",
    "liger_kernel/utils.py": "def is_npu_available(): return False\n",
    "liger_kernel/ops/__init__.py": "",
    "liger_kernel/ops/utils.py": (
        "def compare_version(*_): return True\ndef ensure_contiguous(function): return function\n"
        "def get_npu_core_count(): return 0\ndef infer_device(): return 'cuda'\n"
    ),
}

# What is only imported, where it is not installed.
ABSENT = {
    "einops": "rearrange = repeat = None\n",
    "pytest": "class mark:\n    parametrize = None\n",
    "packaging": "class version:\n    parse = staticmethod(lambda text: tuple(map(int, text.split('.')[:2])))\n",
}


# A tutorial compares itself with it: its library need not be there.
_CUBLAS = "if torch.cuda.is_available():\n    from triton._C.libtriton import nvidia"


def lay_out(sources: Path, folder: Path, engine: str) -> Path:
    """A folder that the kernels' modules are imported from."""
    root = folder / f"packages-{engine}"
    texts = {**STAND_INS, **{f"{name}.py": text for name, text in ABSENT.items() if not find_spec(name)}}
    for source, files in FILES.items():
        for file, until in files.items():
            text = (sources / source / SOURCES[source].root / file).read_text(encoding="utf-8")
            text = text[: text.index(f"\n{until}") + 1] if until else text
            text = text.replace(_CUBLAS, f"if False:{_CUBLAS.partition(':')[2]}")
            if engine == "autotune":
                text = text.replace("@triton.autotune(", "@autotune(")
                changed = "\nimport triton\nfrom autotune.callables.triton import autotune\n"
                text = text.replace("\nimport triton\n", changed, 1)
            texts[_module_file(file)] = text
    for file, text in texts.items():
        place = root / file
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        for above in place.relative_to(root).parents[:-1]:
            (root / above / "__init__.py").touch()
    return root


def _module_file(file: str) -> str:
    """03-matrix-multiplication.py is no module's name."""
    return f"tutorial_{file.replace('-', '_')}" if file[0].isdigit() else file


# -- the kernels, as their packages call them -------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A ``kernel`` of a ``module``, and what makes a call of it by the package's own function."""

    source: str
    module: str
    kernel: str
    prepare: Callable[[Any], Callable[[], object]]


def numbers(*shape: int, kind: str = "float16", scale: float = 0.5) -> Any:
    return (torch.randn(shape, device=PLACE, dtype=torch.float32) * scale).to(getattr(torch, kind))


def wait() -> None:
    if PLACE == "cuda":
        torch.cuda.synchronize()


def falling(*shape: int, axis: int) -> Any:
    """What a sum of decays is: it falls along the axis."""
    return -(torch.rand(shape, device=PLACE) * 0.01).cumsum(axis)


def matmul(module: Any) -> Callable[[], object]:
    a, b = numbers(2048, 2048), numbers(2048, 2048)
    return lambda: module.matmul(a, b)


def attention(module: Any) -> Callable[[], object]:
    q, k, v = (numbers(2, 16, 2048, 64) for _ in range(3))
    return lambda: module.attention(q, k, v, True, 0.125, False, False)


def persistent(module: Any) -> Callable[[], object]:
    a, b = numbers(2048, 2048), numbers(2048, 2048)
    return lambda: module.matmul_persistent(a, b)


def chunk_h(module: Any) -> Callable[[], object]:
    k, v, g = numbers(2, 2048, 8, 128), numbers(2, 2048, 8, 128), falling(2, 2048, 8, axis=1)
    return lambda: module.chunk_fwd_h(k, v, g=g, output_final_state=True)


def chunk_kkt(module: Any) -> Callable[[], object]:
    k, g = numbers(2, 4096, 8, 128, scale=0.1), falling(2, 4096, 8, axis=1)
    beta = torch.rand(2, 4096, 8, device=PLACE)
    return lambda: module.chunk_scaled_dot_kkt_fwd(k, g=g, beta=beta)


def cumsum(module: Any) -> Callable[[], object]:
    s = numbers(8, 8192, 32, kind="float32")
    return lambda: module.chunk_global_cumsum_scalar(s)


def dyt(module: Any) -> Callable[[], object]:
    x, alpha = numbers(2048, 4096, kind="bfloat16"), torch.full((1,), 0.5, device=PLACE)
    gamma, beta = (numbers(4096, kind="bfloat16") for _ in range(2))
    return lambda: module.liger_dyt_fwd(x, alpha, gamma, beta)


def bmm_chunk(module: Any) -> Callable[[], object]:
    shape = (4, 4096, 2, 128) if PLACE == "cuda" else (1, 64, 1, 32)
    a, b = numbers(*shape), numbers(*shape)
    return lambda: module._bmm_chunk_fwd(a, b, 256)  # noqa: SLF001


def _ssd() -> tuple[Any, ...]:
    """x, B or C, dt and dA_cumsum of 2 sequences of 4096 in chunks of 256, with 16 heads."""
    x, b = numbers(2, 4096, 16, 64), numbers(2, 4096, 1, 128)
    dt = torch.rand(2, 16, 16, 256, device=PLACE) * 0.1
    return x, b, dt, falling(2, 16, 16, 256, axis=3)


def chunk_state(module: Any) -> Callable[[], object]:
    x, b, dt, decay = _ssd()
    return lambda: module._chunk_state_fwd(b, x, dt, decay)  # noqa: SLF001


def chunk_scan(module: Any) -> Callable[[], object]:
    x, c, dt, decay = _ssd()
    cb, states = numbers(2, 16, 1, 256, 256), numbers(2, 16, 16, 64, 128)
    skip = torch.rand(16, device=PLACE)
    return lambda: module._chunk_scan_fwd(cb, x, dt, decay, c, states, D=skip)  # noqa: SLF001


_TUTORIALS = "triton-tutorials"
_OPS = "mamba_ssm.ops.triton"
CASES = {
    "matmul": Case("triton", "tutorial_03_matrix_multiplication", "matmul_kernel", matmul),
    "dyt": Case("Liger-Kernel", "liger_kernel.ops.dyt", "_dyt_fwd_kernel", dyt),
    "chunk_kkt": Case(
        _FLA, "fla.ops.common.chunk_scaled_dot_kkt", "chunk_scaled_dot_kkt_fwd_kernel", chunk_kkt
    ),
    "chunk_scan": Case(_MAMBA, f"{_OPS}.ssd_chunk_scan", "_chunk_scan_fwd_kernel", chunk_scan),
    "attention": Case(_TUTORIALS, "tutorial_06_fused_attention", "_attn_fwd", attention),
    "chunk_state": Case(_MAMBA, f"{_OPS}.ssd_chunk_state", "_chunk_state_fwd_kernel", chunk_state),
    "bmm_chunk": Case(_MAMBA, f"{_OPS}.ssd_bmm", "_bmm_chunk_fwd_kernel", bmm_chunk),
    "persistent": Case(_TUTORIALS, "tutorial_09_persistent_matmul", "matmul_kernel_persistent", persistent),
    "cumsum": Case(_FLA, "fla.ops.utils.cumsum", "chunk_global_cumsum_scalar_kernel", cumsum),
    "chunk_h": Case(_FLA, "fla.ops.common.chunk_h", "chunk_fwd_kernel_h", chunk_h),
}


def tuner_of(case: Case) -> tuple[Any, Any]:
    """The kernel's module, and what the decorator made, below whatever is around it."""
    module = import_module(case.module)
    found = getattr(module, case.kernel)
    while not hasattr(found, "configs"):
        found = found.fn
    return module, found


# -- in a process of one engine ----------------------------------------------------------------------------------


def tune(name: str) -> dict[str, Any]:
    """What one engine finds, in this process: seconds of the first call, and the winner; why it has none."""
    torch.manual_seed(0)
    if name == "faulty":
        module, kernel = None, faulty
        x, stop = numbers(1 << 20), torch.zeros(1, dtype=torch.int32, device=PLACE)
        out = torch.empty_like(x)
        work: Callable[[], object] = lambda: faulty[(1024,)](x, out, stop, 1 << 20)  # noqa: E731
    else:
        module, kernel = tuner_of(CASES[name])
        work = CASES[name].prepare(module)
    wait()
    with warnings.catch_warnings(record=True) as said, phases() as spent:
        warnings.simplefilter("always")
        begin = time.perf_counter()
        work()
        wait()
        seconds = time.perf_counter() - begin
    note = next((str(one.message) for one in said if "is not tuned" in str(one.message)), "")
    best = kernel.best_config.all_kwargs()
    found = {"kernel": name, "seconds": seconds, "best": best, "configs": len(kernel.configs), "note": note}
    return {**found, "phases": " ".join(spent)}


@contextmanager
def phases() -> Iterator[list[str]]:
    """What tuning says of its seconds, by phase; nothing for an engine that does not."""
    heard: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: heard.append(record.getMessage().partition(": ")[2])  # type: ignore[method-assign]
    log = logging.getLogger("autotune")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield heard
    finally:
        log.removeHandler(handler)


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel as its package makes it, without a configuration."""

    tuner: Any
    grid: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    @classmethod
    def catch(cls, case: Case) -> "Launch":
        module, tuner = tuner_of(case)
        caught: list[Launch] = []

        def run(*args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> None:
            caught.append(cls(tuner, grid, args, kwargs))

        tuner.run = run
        try:
            case.prepare(module)()
        finally:
            del tuner.run
        return caught[-1]

    def bind(self, best: Mapping[str, Any]) -> Callable[[], object]:
        """The launch with a configuration."""
        hook = next(one.pre_hook for one in self.tuner.configs if one.all_kwargs() == best)
        named = dict(zip(self.tuner.arg_names, self.args, strict=False))

        def run() -> None:
            if hook is not None:
                hook({**named, **self.kwargs, **best})
            self.tuner.fn.run(*self.args, grid=self.grid, warmup=False, **self.kwargs, **best)

        return run


def sample(work: Callable[[], object], flushed: Any) -> list[float]:
    """Milliseconds of launches, each behind a flush of the cache. They are queued while the GPU waits: what a launch
    takes the host, tens of µs with many arguments, is in none."""
    if PLACE == "cpu":
        begin = time.perf_counter()
        work()
        return [(time.perf_counter() - begin) * 1e3]
    pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(SAMPLES)]
    torch.cuda._sleep(AHEAD)  # noqa: SLF001
    for begin, end in pairs:
        flushed.zero_()
        begin.record()
        work()
        end.record()
    wait()
    return [begin.elapsed_time(end) for begin, end in pairs]


def timed(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Milliseconds of each winner, in turn: the median of all samples."""
    torch.manual_seed(0)
    launch = Launch.catch(CASES[found[0]["kernel"]])
    works = [launch.bind(one["best"]) for one in found]
    flushed = torch.empty(FLUSHED if PLACE == "cuda" else 1, dtype=torch.int8, device=PLACE)
    for work in works:
        work()
    wait()
    rounds = [[sample(work, flushed) for work in works] for _ in range(ROUNDS if PLACE == "cuda" else 1)]
    return {"ms": [median(chain.from_iterable(column)) for column in zip(*rounds, strict=True)]}


def serve() -> None:
    """Answer each request, a line of JSON, by another; what goes wrong with one kernel, and the next one follows."""
    if PLACE == "cpu":
        torch.cuda.device = lambda _index: nullcontext()  # type: ignore[assignment,misc]
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer = tune(asked["tune"]) if "tune" in asked else timed(asked["time"])
        except Exception as problem:  # noqa: BLE001 - a kernel of somebody else's
            answer = {
                "error": f"{type(problem).__name__}: {problem}",
                "trace": traceback.format_exc()[-1500:],
            }
        print(json.dumps(answer), flush=True)


# -- the whole comparison ----------------------------------------------------------------------------------------


class Process:
    """One engine's process, with a Triton cache of its own; it is killed at ``ends`` (time.perf_counter)."""

    def __init__(self, engine: str, sources: Path, folder: Path, ends: float) -> None:
        self.engine, self._said = engine, folder / f"{engine}.txt"
        environment = {
            **os.environ, **_PATH, "TRITON_PUBLIC_ENGINE": engine,
            "TRITON_CACHE_DIR": str(folder / f"cache-{engine}"), "AUTOTUNE_POLICIES": str(folder / "policies"),
        }  # fmt: skip
        packages = lay_out(sources, folder, engine)
        with self._said.open("w") as said:
            self._running = subprocess.Popen(
                [sys.executable, str(Path(__file__).resolve()), "--packages", str(packages)],
                env=environment, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True,
            )  # fmt: skip
        self._timer = threading.Timer(max(ends - time.perf_counter(), 1.0), self._running.kill)
        self._timer.daemon = True
        self._timer.start()
        self._is_ready = False

    def ask(self, **asked: Any) -> dict[str, Any] | None:
        """Its answer; None where it has ended, or something went wrong, which is printed."""
        assert self._running.stdin and self._running.stdout
        with suppress(OSError, ValueError):
            self._is_ready = self._is_ready or bool(self._read())
            self._running.stdin.write(json.dumps(asked) + "\n")
            self._running.stdin.flush()
            answer = self._read()
            name = asked["tune"] if "tune" in asked else asked["time"][0]["kernel"]
            print(f"{time.strftime('%X')} {self.engine} {name}: {json.dumps(answer)[:700]}", flush=True)
            return None if "error" in answer else answer
        return None

    def _read(self) -> dict[str, Any]:
        """The next answer, whatever else the kernels' packages print. Raises OSError at the end."""
        assert self._running.stdout
        for line in self._running.stdout:
            if line.startswith("{"):
                return dict(json.loads(line))
        raise OSError("it has ended")

    def close(self) -> None:
        assert self._running.stdin
        with suppress(OSError):
            self._running.stdin.close()
        code = self._running.wait()
        self._timer.cancel()
        if said := self._said.read_text():
            print(f"{self.engine} ended with {code} and said:\n{said[-1500:]}", flush=True)


def compare(
    names: Sequence[str], sources: Path, folder: Path, out: Path, ends: float
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The rows, which are in ``out`` as well, and what became of the configurations with faults."""
    ours, theirs = processes = [Process(engine, sources, folder, ends) for engine in ENGINES]
    import_module("autotune.engine.sweep")  # from the disk, while both begin
    found = {name: answer for name in names if (answer := ours.ask(tune=name))}
    faulty = ours.ask(tune="faulty")
    rows: list[dict[str, Any]] = []
    for name, own in found.items():
        other = theirs.ask(tune=name)
        if other and (ms := theirs.ask(time=[own, other])):
            rows.append(_row(own, other, ms["ms"]))
            write_rows(out, rows)
    for process in processes:
        process.close()
    return rows, read_faults(folder) if faulty else {}


def read_faults(folder: Path) -> dict[str, str]:
    """By configuration, what the record says of the kernel with faults."""
    from autotune.record import read_record

    try:
        (study,) = read_record(str(next(Path(folder, "autotune-results").glob("*faulty*"))))
    except (StopIteration, AutotuneError) as problem:
        return {"all": f"nothing was tried: {problem}"}
    return {str(trial.configuration["HOW"]): f"{trial.state} {trial.reason[:90]}" for trial in study.trials}


_PATH = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).resolve().parent), python_path()])}


def _row(ours: dict[str, Any], own: dict[str, Any], ms: Sequence[float]) -> dict[str, Any]:
    case = CASES[ours["kernel"]]
    source = SOURCES[case.source]
    return {
        "kernel": ours["kernel"], "configurations": own["configs"],
        "autotune_s": round(ours["seconds"], 2), "triton_s": round(own["seconds"], 2),
        "autotune_ms": round(ms[0], 5), "triton_ms": round(ms[1], 5),
        "autotune_best": json.dumps(ours["best"]), "triton_best": json.dumps(own["best"]),
        "repository": source.repository, "commit": source.commit[:10], "licence": source.licence,
        "file": case.module, "function": case.kernel, "phases": ours["phases"], "note": ours["note"],
    }  # fmt: skip


def tables() -> dict[str, str]:
    """What docs/guides/from-triton.md has (pages.py)."""
    made = [
        "| kernel | of | configurations | autotune, s | Triton, s | autotune's winner, ms | Triton's winner, ms |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in read_frame(RESULTS / "triton-public-h200.csv").to_dict("records"):
        if "is not tuned" in str(row["note"]):
            continue  # its first configuration ran; the page says why
        made.append(
            f"| {row['kernel']} | {row['repository']} | {row['configurations']} | {row['autotune_s']:.1f} "
            f"| {row['triton_s']:.1f} | {row['autotune_ms']:.4g} | {row['triton_ms']:.4g} |"
        )
    return {"h200": "\n".join(made)}


# -- without a GPU -----------------------------------------------------------------------------------------------


def compile_all(names: Sequence[str], every: bool) -> None:
    """Each kernel is called as its package does, and its configurations, or the first, compile for an H100."""
    global PLACE  # noqa: PLW0603 - the inputs' place
    from autotune.callables.choices import Alternatives
    from autotune.callables.triton import _Compiler, _values

    PLACE = "cpu"
    driver = _Compiler(import_module("triton.backends.compiler").GPUTarget("cuda", 90, 32))
    driver.get_active_torch_device = lambda: torch.device(PLACE)  # type: ignore[method-assign]
    cuda = torch.cuda
    cuda.device = lambda _index: nullcontext()  # type: ignore[assignment,misc]
    cuda.get_device_capability = lambda *_: (9, 0)  # type: ignore[assignment]
    cuda.get_device_properties = lambda *_: SimpleNamespace(multi_processor_count=132)  # type: ignore[assignment]
    for name in names:
        triton.runtime.driver.set_active(driver)
        launch = Launch.catch(CASES[name])
        tuner = launch.tuner
        named = {**dict(zip(tuner.arg_names, launch.args, strict=False)), **launch.kwargs}
        configs = tuner._prune_configs(named, launch.kwargs)  # noqa: SLF001
        listed = [_values(one, tuner.configs) for one in configs]
        problem, _ = tuner._problem(  # noqa: SLF001
            named, len(launch.args), configs, listed, launch.grid, Alternatives.read(listed)
        )
        begin = time.perf_counter()
        for values in listed if every else listed[:1]:
            problem.calls.build("sm_90", values)
        spent = time.perf_counter() - begin
        print(
            f"{name}: {len(listed)} configurations; {'all' if every else 'the first'} compiled, {spent:.1f} s"
        )


def main(argv: list[str] | None = None) -> int:
    parser = arguments(__doc__, "triton-public.csv")
    parser.add_argument("--sources", type=Path, help="the folder with the repositories' files")
    parser.add_argument("--kernels", default=",".join(CASES), help="which, separated by commas")
    parser.add_argument(
        "--seconds", type=float, default=200.0, help="for all; what is not done by then is left out"
    )
    parser.add_argument("--every", action="store_true", help="with --check: compile every configuration")
    parser.add_argument("--packages", default="", help="of the process of one engine: what it imports from")
    asked = parser.parse_args(argv)
    begin = time.perf_counter()
    names = asked.kernels.split(",")
    if asked.check:
        for peer in ("torch", "triton"):
            print(f"{peer}: {'installed' if find_spec(peer) else 'not installed'}")
        print(f"cuda: {is_there('cuda')}")
        for source in SOURCES.values():
            print(f"{source.repository} at {source.commit[:10]}, {source.licence}")
        if asked.sources and find_spec("triton") and find_spec("torch"):
            with tempfile.TemporaryDirectory() as folder:
                os.environ["TRITON_CACHE_DIR"] = f"{folder}/cache"
                sys.path.insert(0, str(lay_out(asked.sources, Path(folder), "autotune")))
                compile_all(names, asked.every)
        return 0
    if asked.packages:
        sys.path.insert(0, asked.packages)
        serve()
        return 0
    if not asked.sources:
        parser.error("--sources is missing: a folder with the files that SOURCES and FILES name")
    with tempfile.TemporaryDirectory() as folder:
        rows, faults = compare(
            names, asked.sources.resolve(), Path(folder), asked.out.resolve(), begin + asked.seconds
        )
        print(f"{'kernel':12} {'configs':>7} {'ours s':>8} {'triton s':>8} {'ours ms':>9} {'triton ms':>9}")
        for row in rows:
            print(
                f"{row['kernel']:12} {row['configurations']:7} {row['autotune_s']:8} {row['triton_s']:8} "
                f"{row['autotune_ms']:9} {row['triton_ms']:9}  {row['phases']} {row['note']}"
            )
        total = {name: round(sum(row[f"{name}_s"] for row in rows), 1) for name in ENGINES}
        print(f"{len(rows)} kernels, seconds in all: {total}", flush=True)
        for how, ended in sorted(faults.items()):
            print(f"  HOW={how}: {ended}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
