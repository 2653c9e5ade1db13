"""What an accessor costs: registers and SASS instructions of kernels with accessors, beside those with plain pointers.

    python benchmarks/accessor_costs.py [--arch sm_80 ...] [--only KERNEL ...] [--out COSTS.csv]
    python benchmarks/accessor_costs.py --times [--device cuda] [--rounds 15] [--out TIMES.csv]

Each pair is compiled with NVRTC in the configuration that changes nothing (control); no GPU is needed. ``readme`` is
README.md's kernel beside its arithmetic with pointers, ``example`` a kernel of examples/ beside its plain.cu, which is
often another program (another loop, another unrolling), and ``adopted`` a plain.cu beside what `autotune adopt` makes
of it: the same statements. Instructions are those of the kernel's text without the padding behind it.

With ``--times`` the pairs of one program run by turns on a GPU, at sizes of some milliseconds or less.
"""

import hashlib
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import yaml
from harness import arguments, bound, check
from result_files import RESULTS, read_rows, write_rows
from rich.console import Console

from autotune.adopt.process import AdoptRequest, adopt
from autotune.compile import Cache, Compiled, Variant, batch, compile_batch, default_root
from autotune.compile.nvrtc import Nvrtc
from autotune.compile.toolchain import Batch, VariantSource
from autotune.declaration import Family, Workload, load_family, load_workload, prepare
from autotune.device import Resident, open_backend
from autotune.files import find_bundled

ROOT = Path(__file__).parents[1]
ARCHS = ("sm_80", "sm_90", "sm_100")
EXAMPLES = (
    "bilateral", "forest", "hash_grid", "lattice_boltzmann", "lookup", "nbody", "recursive_filter", "spmv", "stencil",
)  # fmt: skip
ADOPTED: Mapping[str, Mapping[str, int]] = {  # with the sizes that are timed
    "bilateral": {"height": 2048, "width": 2048, "range_size": 256},
    "hash_grid": {"entries": 1, "count": 1 << 20, "levels": 16, "table_size": 1 << 16},
    "lattice_boltzmann": {"rows": 2048, "columns": 2048},
    "lookup": {"entries": 1 << 20, "query_count": 1 << 22, "keys_size": 1 << 20},
    "nbody": {"count": 16384},
    "stencil": {"planes": 256, "rows": 512, "columns": 512, "field_rows": 256},
}
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
    """A family in whose control kernels have accessors, and a source with the same kernels of plain pointers."""

    kind: str
    family: Family
    plain: Path


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__, "accessor-costs.csv")
    parser.add_argument("--arch", nargs="*", default=ARCHS)
    parser.add_argument("--only", nargs="*", default=("lengths", *EXAMPLES), help="names of kernels")
    parser.add_argument("--kinds", nargs="*", default=("readme", "example", "adopted"))
    parser.add_argument("--times", action="store_true", help="run the pairs of one program on a device")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        pairs = [
            pair
            for pair in made(Path(folder), given.only, given.kinds)
            if not given.times or pair.family.baseline
        ]
        if given.check:
            return sum(check(pair.family, (), ["control"], device=given.device) for pair in pairs)
        rows = times(pairs, given.device, given.rounds) if given.times else costs(pairs, given.arch)
    write_rows(given.out, rows)
    return 0


def made(folder: Path, names: Sequence[str], kinds: Sequence[str]) -> Iterator[Pair]:
    """The pairs of these names; what is no file of the checkout is written to ``folder``."""
    if "lengths" in names and "readme" in kinds:
        yield Pair("readme", load_family(str(lengths(folder / "lengths"))), folder / "lengths" / "plain.cu")
    for name in (name for name in EXAMPLES if name in names):
        plain = ROOT / "examples" / name / "plain.cu"
        if "example" in kinds:
            yield Pair("example", load_family(str(plain.parent)), plain)
        if "adopted" in kinds and name in ADOPTED:
            adopt(AdoptRequest(plain, folder / name), Console(quiet=True))
            yield Pair("adopted", load_family(str(folder / name)), plain)


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
            control = Variant.make(pair.family, pair.family.space.control, pair.family.choose_options({}))
            accessor = figures(batch(pair.family, (control,)), arch)
            pointer = figures(plain_batch(pair.plain), arch)
            for kernel, (registers, count) in accessor.items():
                plain_registers, plain_count = pointer[kernel]
                rows.append({
                    "kernel": kernel, "kind": pair.kind, "arch": arch, "registers": registers,
                    "plain_registers": plain_registers, "instructions": count, "plain_instructions": plain_count,
                })  # fmt: skip
                print(f"{kernel:20} {pair.kind:8} {arch:7} registers {registers:3} {plain_registers:3}  "
                      f"instructions {count:5} {plain_count:5}")  # fmt: skip
    return rows


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
    return {
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


def _cells(row: Mapping[str, str]) -> str:
    return " | ".join(f"{row[name]} ({row[f'plain_{name}']})" for name in ("registers", "instructions"))


# -- times ----------------------------------------------------------------------------------------------------


def times(pairs: Sequence[Pair], device: str, rounds: int) -> list[dict[str, Any]]:
    backend = open_backend(device)
    rows = []
    for pair in pairs:
        family, baseline = pair.family, pair.family.baseline
        assert baseline is not None
        inputs = prepare(family, timed(pair, is_small=device == "cpu"), find_bundled("workloads") / "data")
        resident = Resident(backend, inputs, most=3)
        plans = {}
        for what, one in (("accessor", family), ("plain", baseline)):
            variant = Variant.make(one, one.space.control, one.choose_options({}))
            (execution,) = bound(resident, (variant,))
            plans[what] = execution.run
        taken: dict[str, list[float]] = {what: [] for what in plans}
        for _ in range(rounds):
            for what, plan in plans.items():
                taken[what] += backend.sample(plan, 3, True)
        ms, plain_ms = (median(taken[what]) for what in ("accessor", "plain"))
        rows.append({
            "kernel": family.name, "kind": pair.kind, "ms": round(ms, 6), "plain_ms": round(plain_ms, 6),
            "ratio": round(ms / plain_ms, 4), "samples": len(taken["plain"]), "device": backend.device.name,
        })  # fmt: skip
        print(f"{family.name:20} {pair.kind:8} {ms:10.5f} ms  plain {plain_ms:10.5f} ms  {ms / plain_ms:.4f}")
        resident.close()
    backend.close()
    return rows


def timed(pair: Pair, is_small: bool) -> Workload:
    """The first workload of the family, at the sizes of ADOPTED unless it ``is_small``."""
    family = pair.family
    workload = load_workload(family, min((family.folder / "workloads").glob("*.yaml")).stem)
    if is_small or pair.kind == "example":
        return workload
    if pair.kind == "readme":
        points = {**workload.arrays["points"], "shape": [1 << 24, 3]}
        return replace(workload, arrays={**workload.arrays, "points": points})
    sizes = ADOPTED[family.name]
    numbers = {name: sizes.get(name, value) for name, value in workload.scalars.items()}
    return replace(workload, parameters={**workload.parameters, **sizes}, scalars=numbers)


if __name__ == "__main__":
    sys.exit(main())
