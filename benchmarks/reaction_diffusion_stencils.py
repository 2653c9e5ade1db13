"""Updates a second on large lattices, of this project and of two stencil programs in one run: AN5D's j2d5pt and EBISU's
2d5pt, built here from their authors' sources.

    python benchmarks/reaction_diffusion_stencils.py --an5d AN5D-Artifact --ebisu EBISU-ICS23 --build programs
    python benchmarks/reaction_diffusion_stencils.py --programs programs --out benchmarks/results/stencils.csv

--build compiles with nvcc and stops; the programs may be carried to another machine. AN5D is what its artifact has
generated for V100 and P100, with its own flags (`-O3 --use_fast_math`) for --arch. EBISU names the GPUs that it
supports: a copy of it takes all from sm_80 on, and a header gives its driver what CUDA 13 and cub no longer have. Its
flags are -O3 and what its CMake files define.

All compute five points in float32, as many steps on the same lattice (EBISU advances 9 at a time, AN5D 10, 13 or 16).
They differ: their five weights are constants and their edges are fixed, ours are a factor for each point, walls without
flux and samples of F. So results are not compared with each other, but each with its own reference: AN5D's and EBISU's
programs compare a lattice of 2,048 points a side with a loop on the cpu, and ours have to give the bits of one step a
launch, on the lattice that is timed. Times are of the kernels by the device's clock or by waiting for the device,
without transfers; AN5D's is the mean of --runs, EBISU's of one run after its own warm-up, ours the median of --runs.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import reaction_diffusion_experiment as experiment
from harness import arguments, is_there
from result_files import read_rows, write_rows

AN5D = (
    "256-10-256",
    "256-10-128",
    "512-10-128",
    "512-13-256",
    "512-16-256",
)  # threads, steps, rows of a strip
WAVE = (
    "block_size=256,boundary=clamp,coefficient=separable,field_memory=register_wave,launch=graph,min_blocks=2"
)
OURS = (
    f"{WAVE},strip=8,vector_width=8,time_block=20,block_rows=1640",
    f"{WAVE},strip=8,vector_width=8,time_block=16,block_rows=2342",
    f"{WAVE},strip=8,vector_width=8,time_block=12,block_rows=1490",
    f"{WAVE},strip=16,vector_width=4,time_block=12,block_rows=3280",
)
FITTING = (256 - 2 * 9) * 44  # EBISU's article has 36 for 108 multiprocessors: 44 x 3 blocks are 132
CHECKED = 2048  # points a side
NEARLY = {
    "AN5D": 1e-3,
    "EBISU": 1e-5,
}  # of values up to 1,000 the largest error, and of values up to 1 the RMS
SHIM = """\
#include <cuda_runtime.h>
#define double4 ebisu_double4
#define float4 ebisu_float4
#define CubDebug(error) (error)
#define CubDebugExit(error) (error)
#define memoryClockRate memoryBusWidth
namespace cub { inline cudaError_t PtxVersion(int& version) { version = 0; return cudaSuccess; } }
"""


@dataclass(frozen=True)
class Row:
    """``error`` is what the program says of its small lattice; of ours how many words differ, which is none."""

    program: str
    commit: str
    grid: int
    steps: int
    ms: float
    updates_per_second: float
    error: str
    command: str


# ---- building


def build(folder: Path, arch: str, an5d: Path | None, ebisu: Path | None) -> None:
    """Compile what has a checkout, all at the same time. Raises RuntimeError with the compiler's message."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(4) as pool:
        jobs = []
        for shape in AN5D if an5d else ():
            jobs.append(pool.submit(build_an5d, folder, arch, an5d, shape))
        if ebisu:
            jobs.append(pool.submit(build_ebisu, folder, arch, ebisu, Path(scratch)))
        for job in jobs:
            print(job.result(), flush=True)


def build_an5d(folder: Path, arch: str, checkout: Any, shape: str) -> Path:
    sources = [checkout / "compiled" / "float" / f"j2d5pt-{shape}_{part}.cu" for part in ("host", "kernel")]
    target = folder / f"an5d-{shape}"
    flags = ["-O3", "--use_fast_math", f"-arch={arch}", "-DSB_TYPE=float", "-Xcompiler", "-fopenmp"]
    nvcc([*flags, "-I", checkout, *sources, "-o", target])
    target.with_suffix(".commit").write_text(commit_of(checkout))
    return target


def build_ebisu(folder: Path, arch: str, checkout: Path, scratch: Path) -> Path:
    source = scratch / "ebisu"
    shutil.copytree(checkout, source, ignore=shutil.ignore_patterns(".git"))
    source /= "2dstencil"
    (source / "shim.h").write_text(SHIM)
    header = source / "common" / "cuda_common.cuh"
    header.write_text(header.read_text().replace("__CUDA_ARCH__==800", "__CUDA_ARCH__>=800"))
    shared = ["-std=c++17", "-O3", f"-arch={arch}", "-D_TIMER_", "-DEBISU", "-I", source]
    shared += ["-I", source / "2d5pt", "-I", source.parent]
    parts: dict[str, list[Any]] = {
        "jacobi-temporal-traditional.cu": ["-rdc=true", "-DTRATEMPORAL"],
        "jacobi-2d.cu": ["-rdc=true"],
        "jacobi.driver.cpp": ["-include", source / "shim.h"],
        "2d5pt/jacobi_gold.cpp": [],
        "2d5pt/jacobi_gold_gen.cpp": [],
    }
    objects = []
    for name, flags in parts.items():
        objects.append(scratch / f"{Path(name).stem}.o")
        nvcc([*shared, *flags, "-c", source / name, "-o", objects[-1]])
    target = folder / "ebisu"
    nvcc([f"-arch={arch}", *objects, "-o", target])
    target.with_suffix(".commit").write_text(commit_of(checkout))
    return target


def nvcc(words: Sequence[Any]) -> None:
    done = subprocess.run(["nvcc", *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"nvcc {' '.join(map(str, words))}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def commit_of(checkout: Path) -> str:
    said = subprocess.run(
        ["git", "-C", str(checkout), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )
    return said.stdout.strip() or "not recorded"


# ---- running


def said_by(command: Sequence[str], seconds: float) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds)
    text = done.stdout + done.stderr
    if done.returncode not in (0, 255):  # EBISU gives -1 where its own error is above its own limit
        raise RuntimeError(f"exit code {done.returncode}: {text[-300:]}")
    return text


def number(pattern: str, text: str) -> float:
    """The last that the pattern finds."""
    found = re.findall(pattern, text)
    if not found:
        raise RuntimeError(f"it printed no {pattern}: {text[-300:]}")
    return float(found[-1])


def an5d_rows(program: Path, grids: Sequence[int], steps: int, runs: int) -> Iterator[Row]:
    commit = program.with_suffix(".commit").read_text()
    text = said_by([str(program), "-s", str(CHECKED), "-t", str(steps), "-n", "1", "-c"], 60)
    error = number(r"Max Error: (\S+)", text)
    if not error <= NEARLY["AN5D"] * 1000:
        raise RuntimeError(f"wrong by {error:g}")
    for grid in grids:
        command = [str(program), "-s", str(grid), "-t", str(steps), "-n", str(runs)]
        ms = number(r"Average: .*GFLOPS, +([0-9.]+) ms", said_by(command, 60))
        yield row(f"AN5D j2d5pt {program.stem[5:]}", commit, grid, steps, ms, f"{error:.1e}", command)


def ebisu_rows(program: Path, grids: Sequence[int], steps: int) -> Iterator[Row]:
    commit = program.with_suffix(".commit").read_text()
    steps = -(-steps // 9) * 9
    for threads in (256, 128):
        options = ["--fp32", "--warmup", f"--bdim={threads}"]
        small = [str(program), str(CHECKED), str(CHECKED), *options, "--iter=9", "--check"]
        error = number(r"RMS Error : (\S+)", said_by(small, 60))
        if not error <= NEARLY["EBISU"]:
            raise RuntimeError(f"{threads} threads: wrong by {error:g}")
        for grid in grids:
            command = [str(program), str(grid), str(grid), *options, f"--iter={steps}"]
            ms = number(r"\d+/\d+\t([0-9.]+)\t[0-9.]+\t", said_by(command, 60))
            name = f"EBISU 2d5pt {threads} threads"
            yield row(name, commit, grid, steps, ms, f"{error:.1e}", command)


def own_rows(device: str, grids: Sequence[int], steps: int, runs: int, texts: Sequence[str]) -> Iterator[Row]:
    """Each compared bit by bit with one step a launch; what differs or cannot run is printed, and has no row."""
    for grid in grids:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "times.csv"
            words = ["times", "--device", device, "--grid", str(grid), "--steps", str(steps)]
            words += ["--samples", str(runs), "--interval", str(max(1, steps // 2))]
            named = [word for text in texts for word in ("--configuration", text)]
            experiment.main([*words, *named, "--out", str(out)])
            for one in read_rows(out):
                command = ["reaction_diffusion_experiment.py", *words]
                yield row(f"autotune {one['configuration']}", "", grid, steps, float(one["ms"]), "0", command)


def row(program: str, commit: str, grid: int, steps: int, ms: float, error: str, command: list[str]) -> Row:
    said = " ".join([Path(command[0]).name, *command[1:]])
    return Row(program, commit, grid, steps, round(ms, 5), grid * grid * steps / ms * 1e3, error, said)


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__, "reaction_diffusion-stencils.csv")
    parser.add_argument("--an5d", type=Path, help="a checkout of khaki3/AN5D-Artifact")
    parser.add_argument("--ebisu", type=Path, help="a checkout of neozhang307/EBISU-ICS23")
    parser.add_argument("--build", type=Path, help="compile into this folder, then stop")
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--programs", type=Path, help="the folder that --build filled")
    parser.add_argument("--grid", type=int, action="append", help="default: 16384 and 10472")
    parser.add_argument("--steps", type=int, default=240)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60, help="no further program is started after these")
    parser.add_argument("--configuration", action="append", help="of ours; default: the fastest waves")
    parser.add_argument("--device", default="cuda")
    given = parser.parse_args(words)
    if given.build:
        build(given.build, given.arch, given.an5d, given.ebisu)
        return 0
    grids = given.grid or [16384, FITTING]
    found = [given.programs / name for name in [*(f"an5d-{shape}" for shape in AN5D), "ebisu"]]
    if given.check:
        for program in found:
            print(f"{program.name}: {'here' if program.exists() else 'not here'}")
        print(f"{given.device}: {is_there(given.device)}")
        return 0
    rows: list[dict[str, Any]] = []
    begin = time.perf_counter()
    parts = [own_rows(given.device, grids, given.steps, given.runs, given.configuration or OURS)]
    for program in found:
        if not program.exists():
            print(f"{program.name}: not here")
        elif program.name == "ebisu":
            parts.append(ebisu_rows(program, grids, given.steps))
        else:
            parts.append(an5d_rows(program, grids, given.steps, given.runs))
    for part in parts:
        try:
            for one in part:
                rows.append(asdict(one))
                write_rows(given.out, rows)
                print(
                    f"{one.ms:10.3f} ms {one.updates_per_second:.3e} updates/s  {one.grid}  {one.program}",
                    flush=True,
                )
                if time.perf_counter() - begin > given.seconds:
                    break
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as problem:
            print(f"left out: {problem}", flush=True)
        if time.perf_counter() - begin > given.seconds:
            print(f"{given.seconds:g} s are over")
            break
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
