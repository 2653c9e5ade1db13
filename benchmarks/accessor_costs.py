"""The cost of accessors: registers and SASS instructions of kernels with accessors and of those with plain pointers.

    python benchmarks/accessor_costs.py [--arch sm_80 ...] [--only KERNEL ...] [--out COSTS.csv]
    python benchmarks/accessor_costs.py --times [--device cuda] [--seconds 60] [--families FOLDER] [--out TIMES.csv]
    python benchmarks/accessor_costs.py --types --out benchmarks/results/type-costs.csv

Each pair is compiled with NVRTC in the configuration that changes nothing (control); no GPU is needed. ``readme`` is
README.md's kernel and its arithmetic with pointers, ``example`` a kernel of examples/ and its plain.cu, which is often
another program (another loop, another unrolling), and ``adopted`` a plain kernel of examples/ or of a page and what
`autotune adopt` makes of it: the same statements. Instructions are those of the kernel's text without the padding
behind it.

With ``--types`` it is the examples of the header reference, one for each public type, from sm_90 on, which one of them
needs. With ``--times`` the pairs of one program run by turns on a GPU, at sizes of some milliseconds or less, once
their results are the same; the table is written after each pair. ``low`` and ``high`` are the 95 % interval of the
median of the rounds' ratios. Adopted families are read from ``--families`` where they are there, and else written there
by `autotune adopt`, which needs libclang and a C++ compiler; with ``--check`` this is all that is done.
"""

import hashlib
import math
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import yaml
from harness import arguments, bound, check
from result_files import RESULTS, read_rows, write_rows
from rich.console import Console

from autotune.adopt.process import AdoptRequest, adopt
from autotune.compile import Cache, Compiled, Variant, batch, compile_batch, default_root
from autotune.compile.nvrtc import Nvrtc
from autotune.compile.toolchain import Batch, VariantSource
from autotune.declaration import Family, Inputs, Workload, load_family, load_workload, prepare
from autotune.device import Backend, Resident, open_backend
from autotune.files import find_bundled, include_dir

ROOT = Path(__file__).parents[1]
ARCHS = ("sm_80", "sm_90", "sm_100")
EXAMPLES = (
    "bilateral", "forest", "hash_grid", "lattice_boltzmann", "lookup", "nbody", "recursive_filter", "spmv", "stencil",
)  # fmt: skip


@dataclass(frozen=True)
class Plain:
    """A kernel without accessors: a file, or the listing of that name in a page. ``sizes`` are those that are timed;
    the rest are arguments of `autotune adopt`."""

    file: str
    sizes: Mapping[str, int]
    listing: str = ""
    kernel: str = ""
    options: tuple[str, ...] = ()
    grid: str = ""
    block: str = ""


FILTER = "examples/recursive_filter/plain.cu"
FRAMES = {"frames": 8, "rows": 1024, "columns": 1024, "passes": 2}
FRAME_VALUES = 8 << 20
ADOPTED: Mapping[str, Plain] = {
    "bilateral": Plain("examples/bilateral/plain.cu", {"height": 2048, "width": 2048, "range_size": 256}),
    "blur": Plain(
        "docs/guides/tiles.md", {"height": 8192, "width": 8192, "image_rows": 8192}, "blur/plain.cu"
    ),
    "closest": Plain("docs/guides/layouts.md", {"count": 1 << 22, "clusters": 64, "axes": 3}, "closest/closest.cu"),
    "hash_grid": Plain(
        "examples/hash_grid/plain.cu", {"entries": 1 << 16, "count": 1 << 20, "levels": 16, "table_size": 1 << 20}
    ),
    "lattice_boltzmann": Plain("examples/lattice_boltzmann/plain.cu", {"rows": 2048, "columns": 2048}),
    "lookup": Plain(
        "examples/lookup/plain.cu", {"entries": 1 << 20, "query_count": 1 << 24, "keys_size": 1 << 20}
    ),
    "nbody": Plain("examples/nbody/plain.cu", {"count": 16384}),
    "nearest": Plain("docs/getting-started.md", {"points": 1 << 22, "centres": 64, "coordinates": 3}, "plain.cu"),
    "rms_norm": Plain(
        "docs/guides/torch.md", {"columns": 16384, "x_rows": 4096}, "rms_norm/plain.cu", grid="ceil_div(columns, 4)",
        block="128",
    ),
    "sharpen": Plain(
        FILTER, {"rows": 2048, "columns": 2048, "image_rows": 3}, kernel="sharpen",
        grid="ceil_div(columns, 32), ceil_div(rows, 8), 3", block="32, 8",
    ),
    "smooth_columns": Plain(
        FILTER, {**FRAMES, "image_size": FRAME_VALUES, "down_size": FRAME_VALUES}, kernel="smooth_columns"
    ),
    "smooth_rows": Plain(
        FILTER, {**FRAMES, "down_size": FRAME_VALUES, "across_size": FRAME_VALUES}, kernel="smooth_rows"
    ),
    "spmv": Plain("examples/spmv/plain.cu", {"rows": 1 << 20, "columns_size": 1 << 24, "x_size": 1 << 20}),
    "stencil": Plain(
        "examples/stencil/plain.cu", {"planes": 256, "rows": 512, "columns": 512, "field_rows": 256}
    ),
    "times": Plain(
        "docs/guides/unmodified-kernel.md",
        {"m": 4096, "n": 4096, "matrix_size": 1 << 24, "x_size": 4096, "y_size": 4096},
        "times.cu", "times<4>", ("-Dtile_size=64",), "ceil_div(m, 256)", "64",
    ),
    "turn": Plain(
        "docs/guides/images.md", {"height": 8192, "width": 8192, "image_rows": 8192}, "turn/plain.cu"
    ),
}  # fmt: skip
INSTRUCTION, NO_OPERATION = 16, 0x918  # bytes; the low bits of one that does nothing
LENGTHS = """
extern "C" __global__ void __launch_bounds__(128) lengths(const float* points, float* length, unsigned count) {
  const unsigned i = blockIdx.x * 128 + threadIdx.x;
  if (i >= count) return;
  float sum = 0;
  for (unsigned k = 0; k < 3; ++k) sum += points[3 * i + k] * points[3 * i + k];
  length[i] = sqrtf(sum);
}
"""
BASELINE = {
    "source": "plain.cu",
    "kernel": "lengths",
    "arguments": ["points", "length", "count"],
    "grid": ["ceil_div(count, 128)"],
    "block": [128],
}


@dataclass(frozen=True)
class Pair:
    """A family in whose control kernels have accessors, and the same kernels of plain pointers: its baseline, or those
    of the file ``plain``."""

    kind: str
    family: Family
    plain: Path


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__, "accessor-costs.csv")
    parser.add_argument("--arch", nargs="*", default=ARCHS)
    parser.add_argument(
        "--only",
        nargs="*",
        default=("lengths", *EXAMPLES, *ADOPTED),
        help="names of kernels",
    )
    parser.add_argument("--kinds", nargs="*", default=("readme", "example", "adopted"))
    parser.add_argument("--times", action="store_true", help="run the pairs of one program on a device")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rounds", type=int, default=100, help="of a pair, at most; default: 100")
    parser.add_argument("--seconds", type=float, default=60, help="of all pairs together; default: 60")
    parser.add_argument("--families", type=Path, help="folder of adopted families; default: a temporary one")
    parser.add_argument("--types", action="store_true", help="the examples of docs/reference")
    given = parser.parse_args(words)
    if given.types:
        write_rows(given.out, type_costs(given.arch))
        return 0
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        pairs = [
            pair
            for pair in made(given.families or Path(folder), given.only, given.kinds)
            if not given.times or (pair.family.baseline and pair.kind != "example")
        ]
        if given.check:
            return sum(check(pair.family, (), ["control"], device=given.device) for pair in pairs)
        if given.times:
            return times(pairs, given.device, given.rounds, begin + given.seconds, given.out)
        write_rows(given.out, costs(pairs, given.arch))
    return 0


def made(folder: Path, names: Sequence[str], kinds: Sequence[str]) -> Iterator[Pair]:
    """The pairs of these names; what is no file of the checkout is written to ``folder``."""
    if "lengths" in names and "readme" in kinds:
        yield Pair("readme", load_family(str(lengths(folder / "lengths"))), folder / "lengths" / "plain.cu")
    for name in (name for name in EXAMPLES if name in names and "example" in kinds):
        plain = ROOT / "examples" / name / "plain.cu"
        yield Pair("example", load_family(str(plain.parent)), plain)
    for name, kernel in ADOPTED.items() if "adopted" in kinds else ():
        if name in names:
            yield Pair("adopted", adopted(name, kernel, folder), folder / name / "before.cu")


def adopted(name: str, kernel: Plain, folder: Path) -> Family:
    """What `autotune adopt` makes of a plain kernel, or made of it before."""
    if (folder / name / "family.yaml").exists():
        return load_family(str(folder / name))
    source = ROOT / kernel.file
    if kernel.listing:
        page = source.read_text(encoding="utf-8")
        found = re.search(rf"```cpp\n// {re.escape(kernel.listing)}\n(.*?)```", page, re.DOTALL)
        assert found, f"{kernel.file} has no listing {kernel.listing}"
        source = folder / f"{name}.cu"
        source.write_text(found[1], encoding="utf-8")
    asked = AdoptRequest(source, folder / name, kernel.kernel, kernel.options, kernel.grid, kernel.block)
    adopt(asked, Console(quiet=True))
    return load_family(str(folder / name))


def lengths(folder: Path) -> Path:
    """The family that README.md begins with, with pointers as its baseline."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name, content in re.findall(r"```(?:yaml|cpp)\n(?:#|//) lengths/(\S+)\n(.*?)```", text, re.DOTALL):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    declared = yaml.safe_load((folder / "family.yaml").read_text(encoding="utf-8")) | {"baseline": BASELINE}
    (folder / "family.yaml").write_text(yaml.safe_dump(declared, sort_keys=False), encoding="utf-8")
    (folder / "plain.cu").write_text(LENGTHS, encoding="utf-8")
    return folder


# -- registers and instructions -------------------------------------------------------------------------------


def costs(pairs: Sequence[Pair], archs: Sequence[str]) -> list[dict[str, Any]]:
    rows = []
    for pair in pairs:
        for arch in archs:
            accessor = figures(control(pair.family), arch)
            has_baseline = pair.kind == "adopted" and pair.family.baseline
            pointer = figures(control(has_baseline) if has_baseline else plain_batch(pair.plain), arch)
            for kernel, (registers, count) in accessor.items():
                plain_registers, plain_count = pointer[kernel]
                rows.append({
                    "kernel": kernel, "kind": pair.kind, "arch": arch, "registers": registers,
                    "plain_registers": plain_registers, "instructions": count, "plain_instructions": plain_count,
                })  # fmt: skip
                print(f"{kernel:20} {pair.kind:8} {arch:7} registers {registers:3} {plain_registers:3}  "
                      f"instructions {count:5} {plain_count:5}")  # fmt: skip
    return rows


def type_costs(archs: Sequence[str]) -> list[dict[str, Any]]:
    """Registers and instructions of each example of the header reference, which a GPU before sm_90 does not run."""
    archs = [arch for arch in archs if int(arch.removeprefix("sm_")) >= 90]
    source = ROOT / "docs" / "reference" / "examples.cu"
    request = replace(plain_batch(source), include_dirs=(include_dir(),))
    sections = re.split(r"^// == .*\n", source.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    digests = {re.findall(r"__global__ void (\w+)", text)[0]: digest(text) for text in sections}
    return [
        {
            "kernel": kernel, "arch": arch, "registers": registers, "instructions": count, "example": digests[kernel],
            "compiler": Nvrtc(arch).identity.partition(" -")[0],
        }
        for arch in archs
        for kernel, (registers, count) in figures(request, arch).items()
    ]  # fmt: skip


def digest(text: str) -> str:
    """Of an example, which says for which text its costs are."""
    return hashlib.sha256(text.strip().encode()).hexdigest()[:12]


def control(family: Family) -> Batch:
    """The configuration that changes nothing."""
    return batch(family, (Variant.make(family, family.space.control, family.choose_options({})),))


def figures(request: Batch, arch: str) -> dict[str, tuple[int, int]]:
    """Registers and instructions by kernel. Raises AssertionError with the compiler's message."""
    (compiled,) = compile_batch(request, Nvrtc(arch), Cache(default_root()))
    assert isinstance(compiled, Compiled), compiled
    counts = instructions(compiled)
    return {kernel: (compiled.figures[kernel]["registers"], counts[kernel]) for kernel in compiled.symbols}


def instructions(compiled: Compiled) -> dict[str, int]:
    """How many each kernel has, without those that only fill its text."""
    from autotune.compile.same_code import _read

    module = _read(compiled.image, 0, 0)
    texts = {kernel: module.sections[f".text.{symbol}"][0] for kernel, symbol in compiled.symbols.items()}
    return {
        kernel: sum(
            int.from_bytes(code[at : at + 2], "little") & 0xFFF != NO_OPERATION
            for at in range(0, len(code), INSTRUCTION)
        )
        for kernel, code in texts.items()
    }


def plain_batch(source: Path) -> Batch:
    """All kernels of a file as they are."""
    text = source.read_text(encoding="utf-8")
    kernels = tuple(re.findall(r"__global__\s+void\s+(?:__launch_bounds__\(.*?\)\s*)?(\w+)\(", text))
    key = hashlib.sha256(text.encode()).hexdigest()
    instances = tuple((kernel, kernel) for kernel in kernels)
    return Batch(source, (), (VariantSource(key, "Plain", "", kernels, "", instances, is_plain=True),), ())


def tables() -> dict[str, str]:
    """What docs/results/accessor-costs.md has (pages.py): registers and instructions by accessors and by pointers."""
    archs: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for row in read_rows(RESULTS / "accessor-costs.csv"):
        archs.setdefault((row["kind"], row["kernel"]), {})[row["arch"]] = row
    made = {
        kind: "\n".join(
            [
                f"| kernel | {' | '.join(f'{arch}: registers | instructions' for arch in ARCHS)} |",
                f"|---|{'---|---|' * len(ARCHS)}",
                *(
                    f"| {kernel} | {' | '.join(_cells(rows[arch]) for arch in ARCHS)} |"
                    for (of, kernel), rows in archs.items()
                    if of == kind
                ),
            ]
        )
        for kind in ("readme", "adopted", "example")
    }
    made["times"] = "\n".join(
        [
            "| kernel | with accessors, ms | with pointers, ms | ratio | its 95 % interval |",
            "|---|---|---|---|---|",
            *(
                f"| {row['kernel']} | {float(row['ms']):.4f} | {float(row['plain_ms']):.4f} "
                f"| {float(row['ratio']):.3f} | {float(row['low']):.3f} to {float(row['high']):.3f} |"
                for row in read_rows(RESULTS / "accessor-times-h200.csv")
            ),
        ]
    )
    return made


def _cells(row: Mapping[str, str]) -> str:
    return " | ".join(f"{row[name]} ({row[f'plain_{name}']})" for name in ("registers", "instructions"))


# -- times ----------------------------------------------------------------------------------------------------


def times(pairs: Sequence[Pair], device: str, rounds: int, end: float, out: Path) -> int:
    """Write a row for each pair until ``end``, seconds of the monotonic clock; how many pairs have none."""
    rows: list[dict[str, Any]] = []
    with closing(open_backend(device)) as backend, backend.current(), ThreadPoolExecutor() as threads:
        waiting = [threads.submit(readied, pair, backend) for pair in pairs]
        for number, (pair, ready) in enumerate(zip(pairs, waiting, strict=True)):
            try:
                inputs = ready.result(end - time.monotonic())  # raises TimeoutError where none is left
                share = (end - time.monotonic()) / (len(pairs) - number)
                rows.append(row(pair, inputs, backend, rounds, time.monotonic() + share))
            except Exception as problem:  # noqa: BLE001 - of this pair; the others are measured
                print(f"{pair.family.name:20} {type(problem).__name__}: {problem}", flush=True)
            else:
                write_rows(out, rows)
        threads.shutdown(wait=False, cancel_futures=True)
    for made in rows:
        print("{kernel:20} {ms:10.5f} ms  plain {plain_ms:10.5f} ms  {ratio:.4f} ({low:.4f} .. {high:.4f})  "
              "{rounds} rounds  {clock_mhz} MHz".format(**made))  # fmt: skip
    print(f"{sum(made['ratio'] <= 1.01 for made in rows)} of {len(pairs)} within 1 % of plain, or faster")
    return len(pairs) - len(rows)


def readied(pair: Pair, backend: Backend) -> Inputs:
    """The inputs; both programs are in the cache of compiled kernels then."""
    for family in both(pair).values():
        compile_batch(control(family), backend.toolchain(), Cache(default_root()))
    return prepare(
        pair.family, timed(pair, is_small=backend.device.kind == "cpu"), find_bundled("workloads") / "data"
    )


def both(pair: Pair) -> dict[str, Family]:
    assert pair.family.baseline is not None
    return {"accessor": pair.family, "plain": pair.family.baseline}


def row(pair: Pair, inputs: Inputs, backend: Backend, rounds: int, end: float) -> dict[str, Any]:
    """Run both by turns, at least once. Raises AssertionError where their results differ."""
    taken: dict[str, list[list[float]]] = {what: [] for what in both(pair)}
    with closing(Resident(backend, inputs, most=3)) as resident:
        plans = {}
        made: dict[str, list[Any]] = {}
        for what, family in both(pair).items():
            variant = Variant.make(family, family.space.control, family.choose_options({}))
            (execution,) = bound(resident, (variant,))
            execution.run()
            made[what] = [execution.restore(d.name, d.shape_for(inputs.sizes)) for d in family.outputs]
            plans[what] = execution.run
        for ours, theirs in zip(*made.values(), strict=True):
            for name in ours.dtype.names or ((),):
                assert np.allclose(ours[name], theirs[name], 1e-4, 1e-5, equal_nan=True), "the results differ"
        while len(taken["plain"]) < rounds and (not taken["plain"] or time.monotonic() < end):
            for what in sorted(plans, reverse=len(taken["plain"]) % 2 == 1):
                taken[what].append(backend.sample(plans[what], 3, True))
        clocks = backend.describe()
    ours, theirs = (np.median(taken[what], axis=1) for what in ("accessor", "plain"))
    ratios, count = np.sort(ours / theirs), len(ours)
    away = 0.98 * math.sqrt(count)  # of the interval's ends from the middle, among the sorted ratios
    low, high = ratios[max(0, int(count / 2 - away))], ratios[min(count - 1, math.ceil(count / 2 + away))]
    return {
        "kernel": pair.family.name, "kind": pair.kind,
        "ms": round(median(ours), 6), "plain_ms": round(median(theirs), 6),
        "ratio": round(median(ratios), 4), "low": round(low, 4), "high": round(high, 4), "rounds": count,
        "device": backend.device.name,
        **{name: clocks.get(name, "") for name in ("clock_mhz", "clock_max_mhz", "throttle_reasons")},
    }  # fmt: skip


def timed(pair: Pair, is_small: bool) -> Workload:
    """The first workload of the family, at the sizes of ADOPTED unless it ``is_small``."""
    family = pair.family
    workload = load_workload(family, min((family.folder / "workloads").glob("*.yaml")).stem)
    if is_small:
        return workload
    if pair.kind == "readme":
        points = {**workload.arrays["points"], "shape": [1 << 24, 3]}
        return replace(workload, arrays={**workload.arrays, "points": points})
    sizes = ADOPTED[family.name].sizes
    numbers = {name: sizes.get(name, value) for name, value in workload.scalars.items()}
    return replace(workload, parameters={**workload.parameters, **sizes}, scalars=numbers)


if __name__ == "__main__":
    sys.exit(main())
