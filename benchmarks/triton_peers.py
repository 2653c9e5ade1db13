"""Ten Triton kernels with only the import of their decorator changed, beside Triton's own autotuner: time to tune,
winner and its time; and a kernel with a wrong, a crashing and a hanging configuration.

    python benchmarks/triton_peers.py [--seconds 170] [--kernels softmax,matmul] [--out triton-peers.csv]

The kernels are in the manner of Triton's tutorials (add, softmax, matmul, layer_norm), of Liger (rms_norm, swiglu,
cross_entropy, rope) and of flash-linear-attention (chunk_sums, linear_attention). Each engine tunes them in a
process of its own, with an empty Triton cache; the wall time is that of the first call, and includes compiling and the
start of processes. Then a third process times both winners in turn with triton.testing.do_bench. An engine begins no
kernel after half of the seconds: 420 are enough for all ten.
"""

import json
import logging
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

from harness import arguments, is_there, python_path
from result_files import RESULTS, read_frame, write_rows

ENGINES = ("autotune", "triton")
ENGINE = os.environ.get("TRITON_PEERS_ENGINE", "autotune")
ROUNDS = 5
PLACE = os.environ.get("TRITON_PEERS_DEVICE", "cuda")

if find_spec("triton") and find_spec("torch"):
    import torch
    import triton
    import triton.language as tl

    if ENGINE == "triton":
        from triton import autotune
    else:
        from autotune.callables.triton import autotune

    def blocks(
        *sizes: int, warps: Sequence[int] = (2, 4, 8, 16), stages: Sequence[int] = (1, 3)
    ) -> list[Any]:
        return [
            triton.Config({"BLOCK": size}, num_warps=w, num_stages=s)
            for size, w, s in product(sizes, warps, stages)
        ]

    @autotune(configs=blocks(256, 512, 1024, 2048, stages=(1,)), key=["n"])
    @triton.jit
    def add(x, y, out, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + at, tl.load(x + at, at < n) + tl.load(y + at, at < n), at < n)

    ROWS = [triton.Config({}, num_warps=w, num_stages=s) for w, s in product((1, 2, 4, 8, 16), (1, 2, 3, 4))]

    @autotune(configs=ROWS, key=["columns"])
    @triton.jit
    def softmax(x, out, columns, WIDTH: tl.constexpr):
        row, at = tl.program_id(0).to(tl.int64), tl.arange(0, WIDTH)
        values = tl.load(x + row * columns + at, at < columns, other=-float("inf"))
        powers = tl.exp(values - tl.max(values, 0))
        tl.store(out + row * columns + at, powers / tl.sum(powers, 0), at < columns)

    TILES = [
        triton.Config({"M": m, "N": n, "K": k, "GROUP": 8}, num_warps=w, num_stages=s)
        for m, n, k, w, s in product((64, 128), (64, 128, 256), (32, 64), (4, 8), (3, 4))
    ]

    @autotune(configs=TILES, key=["rows", "columns", "depth"])
    @triton.jit
    def matmul(
        a, b, c, rows, columns, depth,
        M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, GROUP: tl.constexpr,
    ):  # fmt: skip
        tile = tl.program_id(0)
        across = tl.cdiv(columns, N)
        first = tile // (GROUP * across) * GROUP
        size = min(tl.cdiv(rows, M) - first, GROUP)
        row, column = first + tile % (GROUP * across) % size, tile % (GROUP * across) // size
        i, j, k = row * M + tl.arange(0, M), column * N + tl.arange(0, N), tl.arange(0, K)
        left, right = a + i[:, None] * depth + k[None, :], b + k[:, None] * columns + j[None, :]
        total = tl.zeros((M, N), tl.float32)
        for _ in range(0, depth, K):
            total = tl.dot(tl.load(left), tl.load(right), total)
            left += K
            right += K * columns
        tl.store(c + i[:, None] * columns + j[None, :], total.to(tl.float16))

    @autotune(configs=ROWS, key=["columns"])
    @triton.jit
    def layer_norm(x, weight, bias, out, columns, WIDTH: tl.constexpr):
        row, at = tl.program_id(0).to(tl.int64), tl.arange(0, WIDTH)
        values = tl.load(x + row * columns + at, at < columns, other=0.0).to(tl.float32)
        centred = tl.where(at < columns, values - tl.sum(values, 0) / columns, 0.0)
        scaled = centred * tl.rsqrt(tl.sum(centred * centred, 0) / columns + 1e-5)
        made = scaled * tl.load(weight + at, at < columns) + tl.load(bias + at, at < columns)
        tl.store(out + row * columns + at, made, at < columns)

    @autotune(configs=ROWS, key=["columns"])
    @triton.jit
    def rms_norm(x, weight, out, columns, WIDTH: tl.constexpr):
        row, at = tl.program_id(0).to(tl.int64), tl.arange(0, WIDTH)
        values = tl.load(x + row * columns + at, at < columns, other=0.0).to(tl.float32)
        scale = tl.rsqrt(tl.sum(values * values, 0) / columns + 1e-6)
        tl.store(out + row * columns + at, values * scale * tl.load(weight + at, at < columns), at < columns)

    @autotune(configs=blocks(512, 1024, 2048, 4096, stages=(1,)), key=["n"])
    @triton.jit
    def swiglu(gate, up, out, n, BLOCK: tl.constexpr):
        at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        g = tl.load(gate + at, at < n).to(tl.float32)
        tl.store(out + at, g * tl.sigmoid(g) * tl.load(up + at, at < n), at < n)

    @autotune(configs=blocks(1024, 4096, 8192, warps=(4, 8, 16)), key=["columns"])
    @triton.jit
    def cross_entropy(logits, labels, losses, columns, BLOCK: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        most, total = -float("inf"), 0.0
        for begin in range(0, columns, BLOCK):
            at = begin + tl.arange(0, BLOCK)
            values = tl.load(logits + row * columns + at, at < columns, other=-float("inf")).to(tl.float32)
            larger = tl.maximum(most, tl.max(values, 0))
            total = total * tl.exp(most - larger) + tl.sum(tl.exp(values - larger), 0)
            most = larger
        label = tl.load(labels + row)
        tl.store(losses + row, most + tl.log(total) - tl.load(logits + row * columns + label).to(tl.float32))

    @autotune(configs=ROWS, key=["half"])
    @triton.jit
    def rope(x, cos, sin, out, half, WIDTH: tl.constexpr):
        row, at = tl.program_id(0).to(tl.int64), tl.arange(0, WIDTH)
        c, s = tl.load(cos + row * half + at, at < half), tl.load(sin + row * half + at, at < half)
        low, high = x + row * 2 * half + at, x + row * 2 * half + half + at
        a, b = tl.load(low, at < half), tl.load(high, at < half)
        tl.store(out + row * 2 * half + at, a * c - b * s, at < half)
        tl.store(out + row * 2 * half + half + at, b * c + a * s, at < half)

    @autotune(configs=blocks(32, 64, 128), key=["length"])
    @triton.jit
    def chunk_sums(x, out, length, columns, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
        chunk, column = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        at = (chunk * CHUNK + tl.arange(0, CHUNK))[:, None] * columns + column[None, :]
        tl.store(out + at, tl.cumsum(tl.load(x + at), axis=0))

    @autotune(configs=blocks(32, 64, 128, warps=(2, 4, 8), stages=(1, 2, 3)), key=["length"])
    @triton.jit
    def linear_attention(q, k, v, out, length, WIDTH: tl.constexpr, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
        head, part = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        state = tl.zeros((WIDTH, BLOCK), tl.float32)
        step, wide = tl.arange(0, CHUNK), tl.arange(0, WIDTH)
        base = head * length * WIDTH
        for begin in range(0, length, CHUNK):
            rows = (begin + step)[:, None] * WIDTH
            a, b = tl.load(q + base + rows + wide[None, :]), tl.load(k + base + rows + wide[None, :])
            values = tl.load(v + base + rows + part[None, :])
            near = tl.where(step[:, None] >= step[None, :], tl.dot(a, tl.trans(b)), 0.0).to(tl.float16)
            made = tl.dot(near, values) + tl.dot(a, state.to(tl.float16))
            state += tl.dot(tl.trans(b), values)
            tl.store(out + base + rows + part[None, :], made.to(tl.float16))

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


def numbers(*shape: int, kind: str = "float16") -> Any:
    if PLACE == "cpu":  # to compile for, and not to run
        return torch.empty(shape, dtype=getattr(torch, kind))
    return torch.randn(shape, device=PLACE, dtype=torch.float32).to(getattr(torch, kind)) * 0.5


def wait() -> None:
    if PLACE == "cuda":
        torch.cuda.synchronize()


def line(n: int) -> Any:
    return lambda meta: (triton.cdiv(n, meta["BLOCK"]),)


def calls(name: str) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The grid, the arguments and the constants of a kernel's call."""
    torch.manual_seed(0)
    n, rows = 1 << 22, 2048
    match name:
        case "add":
            return line(n), (numbers(n), numbers(n), numbers(n), n), {}
        case "softmax":
            return (rows,), (numbers(rows, 4000), numbers(rows, 4000), 4000), {"WIDTH": 4096}
        case "matmul":
            size = 2048
            grid = lambda meta: (triton.cdiv(size, meta["M"]) * triton.cdiv(size, meta["N"]),)  # noqa: E731
            return grid, (*(numbers(size, size) for _ in range(3)), size, size, size), {}
        case "layer_norm":
            given = numbers(rows, 4096), numbers(4096), numbers(4096), numbers(rows, 4096), 4096
            return (rows,), given, {"WIDTH": 4096}
        case "rms_norm":
            return (rows,), (numbers(rows, 8192), numbers(8192), numbers(rows, 8192), 8192), {"WIDTH": 8192}
        case "swiglu":
            return line(n), (numbers(n), numbers(n), numbers(n), n), {}
        case "cross_entropy":
            labels = torch.randint(0, 32000, (512,), device=PLACE)
            return (512,), (numbers(512, 32000), labels, numbers(512, kind="float32"), 32000), {}
        case "rope":
            given = (
                numbers(1 << 15, 128),
                numbers(1 << 15, 64),
                numbers(1 << 15, 64),
                numbers(1 << 15, 128),
                64,
            )
            return (1 << 15,), given, {"WIDTH": 64}
        case "chunk_sums":
            grid = lambda meta: (4096 // 64, 1024 // meta["BLOCK"])  # noqa: E731
            x = numbers(4096, 1024, kind="float32")
            return grid, (x, torch.empty_like(x), 4096, 1024), {"CHUNK": 64}
        case "linear_attention":
            grid = lambda meta: (32, 128 // meta["BLOCK"])  # noqa: E731
            given = [numbers(32, 2048, 128) * 0.2 for _ in range(3)]
            return grid, (*given, torch.empty_like(given[0]), 2048), {"WIDTH": 128, "CHUNK": 64}
        case _:
            stop = torch.zeros(1, dtype=torch.int32, device=PLACE)
            return line(1 << 20), (numbers(1 << 20), numbers(1 << 20), stop, 1 << 20), {}


KERNELS = (
    "add", "softmax", "matmul", "layer_norm", "rms_norm", "swiglu", "cross_entropy", "rope", "chunk_sums",
    "linear_attention",
)  # fmt: skip


def tune(name: str) -> dict[str, Any]:
    """What one engine finds, in this process: seconds of the first call, and the winner; why it has none."""
    kernel = globals()[name]
    grid, given, constants = calls(name)
    wait()
    with warnings.catch_warnings(record=True) as said, phases() as spent:
        warnings.simplefilter("always")
        begin = time.perf_counter()
        kernel[grid](*given, **constants)
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


def timed(name: str, found: Sequence[dict[str, Any]]) -> list[float]:
    """Milliseconds of each winner, in turn: the median of the rounds."""
    kernel = globals()[name].fn
    grid, given, constants = calls(name)

    def run(best: dict[str, Any]) -> float:
        shape = grid({**dict(zip(kernel.arg_names, given, strict=False)), **best}) if callable(grid) else grid
        work = lambda: kernel[shape](*given, **constants, **best)  # noqa: E731
        return float(triton.testing.do_bench(work, warmup=20, rep=60, return_mode="median"))

    rounds = [[run(one["best"]) for one in found] for _ in range(ROUNDS)]
    return [median(column) for column in zip(*rounds, strict=True)]


def apart(what: Sequence[str], engine: str, folder: str, seconds: float = 500.0) -> list[Any]:
    """The answers of this script, a line each, in a process of its own, with caches of its own."""
    environment = {
        **os.environ, "TRITON_PEERS_ENGINE": engine, "TRITON_CACHE_DIR": f"{folder}/{engine}",
        "PYTHONPATH": python_path(), "AUTOTUNE_POLICIES": f"{folder}/policies",
    }  # fmt: skip
    command = [sys.executable, str(Path(__file__).resolve()), *what]
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=False, timeout=seconds
    )
    if done.returncode:
        print(f"{engine} ended early:\n{done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith(("{", "["))]


def compared(names: Sequence[str], seconds: float) -> list[dict[str, Any]]:
    """A row for each kernel that both engines got to."""
    with tempfile.TemporaryDirectory() as folder:
        found: dict[str, dict[str, Any]] = {}
        for engine in ENGINES:
            words = ["--tune", ",".join(names), "--seconds", str(seconds / 2)]
            found[engine] = {one["kernel"]: one for one in apart(words, engine, folder)}
            names = [name for name in names if name in found[engine]]
        both = [[found[engine][name] for engine in ENGINES] for name in names]
        times = apart(["--time", json.dumps(both)], "triton", folder)
    return [
        {
            "kernel": ours["kernel"], "configurations": own["configs"],
            "autotune_s": round(ours["seconds"], 2), "triton_s": round(own["seconds"], 2),
            "autotune_ms": round(ms[0], 5), "triton_ms": round(ms[1], 5),
            "autotune_best": json.dumps(ours["best"]), "triton_best": json.dumps(own["best"]), "phases": ours["phases"],
            "note": ours["note"],
        }
        for (ours, own), ms in zip(both, times, strict=False)
    ]  # fmt: skip


def compiled(names: Sequence[str]) -> None:
    """Compiles the first configuration of each kernel for an H100, which need not be there."""
    from autotune.callables.choices import Alternatives
    from autotune.callables.triton import _values

    for name in names:
        kernel = globals()[name]
        grid, given, constants = calls(name)
        config = kernel.configs[0]
        listed = [_values(config, kernel.configs)]
        named = {**dict(zip(kernel.arg_names, given, strict=False)), **constants}
        problem, _ = kernel._problem(named, len(given), [config], listed, grid, Alternatives.read(listed))  # noqa: SLF001
        problem.calls.build("sm_90", listed[0])
        print(f"{name}: {len(kernel.configs)} configurations, the first of them compiles")


def faults() -> dict[str, str]:
    """By configuration, what the record says of the kernel with faults."""
    from autotune.record import read_record

    with tempfile.TemporaryDirectory() as folder:
        print(apart(["--tune", "faulty"], "autotune", folder)[0]["note"])
        (record,) = Path(folder, "autotune-results").iterdir()
        (study,) = read_record(str(record))
        return {
            str(trial.configuration["HOW"]): f"{trial.state} {trial.reason[:90]}" for trial in study.trials
        }


def tables() -> dict[str, str]:
    """What docs/guides/from-triton.md has (pages.py)."""
    frame = read_frame(RESULTS / "triton-peers-h200.csv")
    made = [
        "| kernel | configurations | autotune, s | Triton, s | autotune's winner, ms | Triton's winner, ms |",
        "|---|---|---|---|---|---|",
    ]
    for row in frame.dropna(subset=["triton_s"]).to_dict("records"):
        made.append(
            f"| {row['kernel']} | {row['configurations']:.0f} | {row['autotune_s']:.1f} | {row['triton_s']:.1f} "
            f"| {row['autotune_ms']:.4g} | {row['triton_ms']:.4g} |"
        )
    return {"h200": "\n".join(made)}


def main(argv: list[str] | None = None) -> int:
    parser = arguments(__doc__, "triton-peers.csv")
    parser.add_argument("--kernels", default=",".join(KERNELS), help="which, separated by commas")
    parser.add_argument("--seconds", type=float, default=170.0, help="of tuning, for both engines together")
    parser.add_argument("--tune", default="", help="tune these here, by the engine in TRITON_PEERS_ENGINE")
    parser.add_argument("--time", default="", help="time these winners here")
    asked = parser.parse_args(argv)
    if asked.check:
        for peer in ("torch", "triton"):
            print(f"{peer}: {'installed' if find_spec(peer) else 'not installed'}")
        print(f"cuda: {is_there('cuda')}")
        if find_spec("triton") and find_spec("torch"):
            with tempfile.TemporaryDirectory() as folder:
                os.environ["TRITON_CACHE_DIR"] = folder
                compiled([*KERNELS, "faulty"] if PLACE == "cpu" else [])
        return 0
    begin = time.perf_counter()
    for name in asked.tune.split(",") if asked.tune else ():
        if time.perf_counter() - begin < asked.seconds:
            print(json.dumps(tune(name)), flush=True)
    for found in json.loads(asked.time) if asked.time else ():
        print(json.dumps(timed(found[0]["kernel"], found)), flush=True)
    if asked.tune or asked.time:
        return 0
    rows = compared(asked.kernels.split(","), asked.seconds)
    print(f"{'kernel':18} {'configs':>7} {'ours s':>8} {'triton s':>8} {'ours ms':>9} {'triton ms':>9}")
    for row in rows:
        print(
            f"{row['kernel']:18} {row['configurations']:7} {row['autotune_s']:8} {row['triton_s']:8} "
            f"{row['autotune_ms']:9} {row['triton_ms']:9}  {row['phases']} {row['note']}"
        )
    total = {name: sum(row[f"{name}_s"] for row in rows) for name in ENGINES}
    print(f"{len(rows)} kernels, seconds in all: {total}")
    if rows:
        write_rows(asked.out, rows)
    print("with faults:")
    for how, ended in sorted(faults().items()):
        print(f"  HOW={how}: {ended}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
