"""Ten Triton kernels of public repositories with only the import of their decorator changed, compared with Triton's own
autotuner: time to tune, winner and its time; and a kernel with a wrong, a crashing and a hanging configuration.

    python benchmarks/triton_public.py --sources DIR [--seconds 280] [--kernels matmul,attention] [--out FILE.csv]

``--sources`` has a folder for each repository (``SOURCES``: where it is from, at which commit, its licence) with the
files that ``CASES`` names. They are copied to a temporary folder; for autotune ``@triton.autotune`` becomes
``@autotune`` behind the import of it. What else they import of their own package and is not among the files is replaced
there by a few lines (``STAND_INS``). Each kernel is called by its own package's function.

Each engine tunes in a process of its own with an empty Triton cache: five kernels by autotune first, then five by
Triton first. The wall time is that of the first call: compiling and the start of processes are in it. Then both
winners' launches are timed in turn, and the kernel with faults is tuned. A row is written as soon as it is complete.
A tutorial's own comparison with cuBLAS is left out.
``--profile`` writes where the time of autotune's processes goes, by samples of their stacks.
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
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

from harness import arguments, is_there, python_path
from result_files import write_rows

from autotune.errors import AutotuneError

ENGINES = ("autotune", "triton")
ENGINE = os.environ.get("TRITON_PUBLIC_ENGINE", "autotune")
ROUNDS = 5
PLACE = os.environ.get("TRITON_PUBLIC_DEVICE", "cuda")  # the cpu, with TRITON_INTERPRET=1, to try this script

if find_spec("triton") and find_spec("torch"):
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


def lay_out(sources: Path, folder: Path, engine: str, profile: str = "") -> Path:
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
            texts[_module_file(file)] = (_SAMPLED if profile else "") + text
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

    def run(self, best: Mapping[str, Any]) -> None:
        config = next(one for one in self.tuner.configs if one.all_kwargs() == best)
        if config.pre_hook is not None:
            named = dict(zip(self.tuner.arg_names, self.args, strict=False))
            config.pre_hook({**named, **self.kwargs, **config.all_kwargs()})
        self.tuner.fn.run(*self.args, grid=self.grid, warmup=False, **self.kwargs, **best)


def timed(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Milliseconds of each winner, in turn: the median of the rounds."""
    torch.manual_seed(0)
    launch = Launch.catch(CASES[found[0]["kernel"]])

    def ms(best: Mapping[str, Any]) -> float:
        return float(
            triton.testing.do_bench(lambda: launch.run(best), warmup=15, rep=50, return_mode="median")
        )

    rounds = [[ms(one["best"]) for one in found] for _ in range(ROUNDS)]
    return {"kernel": found[0]["kernel"], "ms": [median(column) for column in zip(*rounds, strict=True)]}


_SAMPLED = "import triton_public as _public; _public.sample_stacks()\n"
_sampling: list[threading.Thread] = []


def sample_stacks() -> None:
    """From now on, count where this process's main thread is, and write it once a second: by the phase's function, the
    project's innermost function, and the innermost one."""
    folder = os.environ.get("TRITON_PUBLIC_PROFILE", "")
    if not folder or _sampling:
        return
    counts: Counter[str] = Counter()
    main, began = threading.main_thread().ident, time.perf_counter()

    def watch() -> None:
        written = 0.0
        while True:
            time.sleep(0.002)
            frame = sys._current_frames().get(main or 0)  # noqa: SLF001
            names = []
            while frame is not None:
                code = frame.f_code
                names.append(f"{Path(code.co_filename).stem}.{code.co_name}:{frame.f_lineno}")
                frame = frame.f_back
            counts[" < ".join(names[:9])] += 1
            if time.perf_counter() - began - written > 1.0:
                written = time.perf_counter() - began
                lines = [
                    f"{count * 100 / counts.total():5.1f}% {where}" for where, count in counts.most_common(40)
                ]
                text = "\n".join([f"{written:.1f} s, {counts.total()} samples, {sys.argv}", *lines])
                place = Path(folder, f"stacks-{os.getpid()}.txt")
                with suppress(OSError):
                    place.with_suffix(".new").write_text(text)
                    place.with_suffix(".new").replace(place)

    _sampling.append(threading.Thread(target=watch, daemon=True))
    _sampling[0].start()


# -- the whole comparison ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """The rows so far, in ``out``. What began may be awaited until ``ends`` (time.perf_counter)."""

    sources: Path
    folder: Path
    out: Path
    ends: float
    profile: str = ""

    def run(self, names: Sequence[str]) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        half = (len(names) + 1) // 2
        began, room = time.perf_counter(), self.ends - time.perf_counter() - 35.0
        subprocess.run(
            [sys.executable, "-c", "import torch, triton, autotune"], check=False, env=os.environ | _PATH
        )
        halves = ((ENGINES, [*names[:half]]), (ENGINES[::-1], [*names[half:]]))
        for number, (engines, some) in enumerate(halves):
            until = began + room * (number + 1) / 2
            found: dict[str, dict[str, Any]] = {}
            for engine in engines:
                is_last = engine == engines[-1]
                left = max(until - time.perf_counter(), 5.0)
                seconds = left if is_last else left * (0.8 if engine == "triton" else 0.5)
                words = ["--tune", ",".join(some), "--seconds", f"{seconds:.0f}"]
                found[engine] = {one["kernel"]: one for one in self.apart(words, engine, f"{engine}{number}")}
                some[:] = [name for name in some if name in found[engine]]
            both = [[found[engine][name] for engine in ENGINES] for name in some]
            for one in self.apart(["--time", json.dumps(both)], "triton", f"triton{number}") if both else ():
                ours, own = (found[engine][one["kernel"]] for engine in ENGINES)
                rows.append(_row(ours, own, one["ms"], engines[0]))
                write_rows(self.out, rows)
        return rows

    def apart(self, what: Sequence[str], engine: str, name: str) -> Iterator[dict[str, Any]]:
        """The answers of this script, a line each, in a process of its own, with caches of its own."""
        environment = {
            **os.environ, **_PATH, "TRITON_PUBLIC_ENGINE": engine, "TRITON_PUBLIC_PROFILE": self.profile,
            "TRITON_CACHE_DIR": str(self.folder / f"cache-{name}"),
            "AUTOTUNE_POLICIES": str(self.folder / "policies"),
        }  # fmt: skip
        packages = lay_out(self.sources, self.folder, engine, self.profile if engine == "autotune" else "")
        command = [sys.executable, str(Path(__file__).resolve()), "--packages", str(packages), *what]
        errors = self.folder / f"{name}.txt"
        with (
            errors.open("w") as stderr,
            subprocess.Popen(
                command, env=environment, cwd=self.folder, stdout=subprocess.PIPE, stderr=stderr, text=True
            ) as child,
        ):
            timer = threading.Timer(max(self.ends - time.perf_counter(), 1.0), child.kill)
            timer.start()
            assert child.stdout is not None
            for line in child.stdout:
                if line.startswith("{"):
                    one = json.loads(line)
                    print(f"{time.strftime('%X')} {name}: {line.rstrip()[:700]}", flush=True)
                    yield one
            timer.cancel()
        if said := errors.read_text():
            print(f"{name} ended with {child.returncode} and said:\n{said[-3000:]}", flush=True)

    def faults(self) -> dict[str, str]:
        """By configuration, what the record says of the kernel with faults."""
        from autotune.record import read_record

        for one in self.apart(["--tune", "faulty"], "autotune", "faulty"):
            print(f"faulty: {one['seconds']:.1f} s {one['note']}")
        try:
            (study,) = read_record(str(next(Path(self.folder, "autotune-results").glob("*faulty*"))))
        except (StopIteration, AutotuneError) as problem:
            return {"all": f"nothing was tried: {problem}"}
        return {
            str(trial.configuration["HOW"]): f"{trial.state} {trial.reason[:90]}" for trial in study.trials
        }


_PATH = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).resolve().parent), python_path()])}


def _row(ours: dict[str, Any], own: dict[str, Any], ms: Sequence[float], first: str) -> dict[str, Any]:
    case = CASES[ours["kernel"]]
    source = SOURCES[case.source]
    return {
        "kernel": ours["kernel"], "configurations": own["configs"],
        "autotune_s": round(ours["seconds"], 2), "triton_s": round(own["seconds"], 2),
        "autotune_ms": round(ms[0], 5), "triton_ms": round(ms[1], 5),
        "autotune_best": json.dumps(ours["best"]), "triton_best": json.dumps(own["best"]),
        "repository": source.repository, "commit": source.commit[:10], "licence": source.licence,
        "file": case.module, "function": case.kernel, "first": first, "phases": ours["phases"], "note": ours["note"],
    }  # fmt: skip


# -- without a GPU -----------------------------------------------------------------------------------------------


class _NoGpu:
    """What Triton asks of a driver while modules are imported, as on an H100."""

    def get_current_target(self) -> Any:
        return import_module("triton.backends.compiler").GPUTarget("cuda", 90, 32)

    def get_active_torch_device(self) -> Any:
        return torch.device("cpu")

    def get_current_device(self) -> int:
        return 0


def compile_all(names: Sequence[str], every: bool) -> None:
    """Each kernel is called as its package does, and its configurations, or the first, compile for an H100."""
    global PLACE  # noqa: PLW0603 - the inputs' place
    from autotune.callables.choices import Alternatives
    from autotune.callables.triton import _values

    PLACE = "cpu"
    cuda = torch.cuda
    cuda.device = lambda _index: nullcontext()  # type: ignore[assignment,misc]
    cuda.get_device_capability = lambda *_: (9, 0)  # type: ignore[assignment]
    cuda.get_device_properties = lambda *_: SimpleNamespace(multi_processor_count=132)  # type: ignore[assignment]
    for name in names:
        triton.runtime.driver.set_active(_NoGpu())
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


def say(work: Callable[[], dict[str, Any]]) -> None:
    """What it gives, on a line; what goes wrong with one kernel, and the next one follows."""
    try:
        print(json.dumps(work()), flush=True)
    except Exception:  # noqa: BLE001 - a kernel of somebody else's
        traceback.print_exc()


def main(argv: list[str] | None = None) -> int:
    parser = arguments(__doc__, "triton-public.csv")
    parser.add_argument("--sources", type=Path, help="the folder with the repositories' files")
    parser.add_argument("--kernels", default=",".join(CASES), help="which, separated by commas")
    parser.add_argument(
        "--seconds", type=float, default=280.0, help="for all; nothing begins that would pass them"
    )
    parser.add_argument(
        "--profile", default="", help="a folder for samples of the stacks of autotune's processes"
    )
    parser.add_argument("--every", action="store_true", help="with --check: compile every configuration")
    parser.add_argument("--packages", default="", help="of the process of one engine: what it imports from")
    parser.add_argument("--tune", default="", help="tune these here, by the engine in TRITON_PUBLIC_ENGINE")
    parser.add_argument("--time", default="", help="time these winners here")
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
    sys.path.insert(0, asked.packages)
    for name in asked.tune.split(",") if asked.tune else ():
        if time.perf_counter() - begin < asked.seconds:
            say(lambda name=name: tune(name))  # type: ignore[misc]
    for found in json.loads(asked.time) if asked.time else ():
        say(lambda found=found: timed(found))  # type: ignore[misc]
    if asked.packages:
        return 0
    if not asked.sources:
        parser.error("--sources is missing: a folder with the files that SOURCES and FILES name")
    with tempfile.TemporaryDirectory() as folder:
        profile = str(Path(asked.profile).resolve()) if asked.profile else ""
        if profile:
            Path(profile).mkdir(parents=True, exist_ok=True)
        comparison = Comparison(
            asked.sources.resolve(), Path(folder), asked.out.resolve(), begin + asked.seconds, profile
        )
        rows = comparison.run(names)
        print(f"{'kernel':12} {'configs':>7} {'ours s':>8} {'triton s':>8} {'ours ms':>9} {'triton ms':>9}")
        for row in rows:
            print(
                f"{row['kernel']:12} {row['configurations']:7} {row['autotune_s']:8} {row['triton_s']:8} "
                f"{row['autotune_ms']:9} {row['triton_ms']:9}  {row['phases']} {row['note']}"
            )
        total = {name: round(sum(row[f"{name}_s"] for row in rows), 1) for name in ENGINES}
        print(f"{len(rows)} kernels, seconds in all: {total}", flush=True)
        if not profile and time.perf_counter() < comparison.ends - 15.0:
            print("with faults:", flush=True)
            for how, ended in sorted(comparison.faults().items()):
                print(f"  HOW={how}: {ended}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
