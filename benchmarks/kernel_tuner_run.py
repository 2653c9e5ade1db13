"""A family's configurations under Kernel Tuner: the same kernel text, inputs and expected outputs as ours.

    python benchmarks/kernel_tuner_run.py nvcuda --family allpairs --workload hapmap3 --preset tiles \\
        --set memory=global,readonly --samples 7 --out kernel-tuner.json

Kernel Tuner passes arrays and numbers, not structs: a plain kernel takes the parts of the accessors and puts them
together; the family's own source, headers and policy structs are compiled as they are. What Kernel Tuner's user
would prepare by hand (every layout of every input, the expected outputs) is made before its clock starts.
A family whose choices are macros (a T1 file, a plain kernel) is given as it is: its source, its parameters, and a
function that keeps the configurations asked for. ``--drawn`` names a file with one configuration a line.
Needs kernel_tuner, a CUDA device, and cuda-bindings (nvcuda) or CuPy (cupy).
"""

import json
import re
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from harness import arguments, check, inputs_of, variants_of

from autotune.compile import Variant
from autotune.declaration import Configuration, Family, Inputs, load_family
from autotune.files import include_dir
from autotune.measure import compute_expected

INDEX = "configuration_index"  # the one tuned parameter besides the block size: which policy struct


@dataclass(frozen=True)
class Task:
    """What tune_kernel is given. ``parts`` has each argument by configuration."""

    configurations: tuple[Configuration, ...]
    source: str
    options: list[str]
    parts: list[dict[int, Any]]
    answer: list[Any]
    blocks: tuple[int, ...]
    grids: tuple[tuple[int, int, int], ...]


def task(family: Family, inputs: Inputs, configurations: Sequence[Configuration], cache: Path) -> Task:
    """Raises ValueError for what has no plain form: several kernels, a plan, scalars, orders, groups, other memory."""
    variants = variants_of(family, configurations, inputs.options)
    (kernel,) = family.kernels.values()
    memories = {layout.memory for v in variants for layout in v.layouts.values()}
    if hasattr(family.module, "plan") or family.scalars or not memories <= {"global", "readonly"}:
        raise ValueError(
            f"{family.name}: only one kernel over plain global memory can be given to Kernel Tuner"
        )
    names = [dict(inputs.names(c)) for c in configurations]
    geometries = [v.geometry(kernel, n) for v, n in zip(variants, names, strict=True)]
    expected, _ = compute_expected(family, inputs, cache)
    parts: list[dict[int, Any]] = []
    answer: list[Any] = []
    for name in kernel.arguments:
        stored: dict[str, Any] = {}
        columns: list[dict[int, Any]] = []
        for index, variant in enumerate(variants):
            layout, is_output = variant.layouts[name], name in expected
            key = repr(
                (layout.axes, layout.packing, layout.vector, layout.records, layout.padding, layout.dims)
            )
            if key not in stored:
                stored[key] = layout.apply(expected[name] if is_output else inputs.arrays[name])
                buffer = stored[key].buffer.view(np.int32 if stored[key].nbytes % 4 == 0 else np.uint8)
                stored[key] = stored[key], np.zeros_like(buffer) if is_output else buffer, buffer
            form, content, wanted = stored[key]
            wide = np.uint32 if form.index_bits == 32 else np.uint64
            given = form.known.list_given(form.extents, form.strides, form.part_stride)
            kinds = zip((np.uint32, wide, wide), given, strict=True)
            row = [content, *(kind(number) for kind, numbers in kinds for number in numbers)]
            columns = columns or [{} for _ in row]
            for column, value in zip(columns, row, strict=True):
                column[index] = value
        answer += [wanted if name in expected else None, *[None] * (len(columns) - 1)]
        parts += columns
    return Task(
        tuple(configurations),
        plain_source(family, variants),
        ["-std=c++17", f"-I{include_dir()}", f"-I{family.folder}", *family.compile_options],
        parts,
        answer,
        tuple(g.block_size for g in geometries),
        tuple(g.grid for g in geometries),
    )


def plain_source(family: Family, variants: Sequence[Variant]) -> str:
    """The kernel's own text as a device function, all policy structs behind ``#if``, a kernel of plain arguments."""
    (kernel,) = family.kernels.values()
    structs = ""
    for index, variant in enumerate(variants):
        body = variant.source.struct.partition("{")[2]
        structs += f"#{'el' if index else ''}if {INDEX} == {index}\nstruct Chosen {{{body}"
    parameters, made = [], []
    for name in kernel.arguments:
        data = family.data[name]
        index_type = "unsigned int" if data.index_bits == 32 else "unsigned long long"
        known = variants[0].layouts[name].known  # of which every variant is given as many numbers
        given = {
            "extent": ("unsigned int", known.extents.count(0)),
            "stride": (index_type, known.strides.count(0)),
            "part": (index_type, int(not known.part_stride)),
        }
        given = {field: one for field, one in given.items() if one[1]}
        parameters.append(f"int * {name}_data")
        parameters += [
            f"{kind} {name}_{field}{n}" for field, (kind, count) in given.items() for n in range(count)
        ]
        members = " ".join(
            ["int* data;", *(f"{kind} {field}s[{count}];" for field, (kind, count) in given.items())]
        )
        values = ", ".join([
            f"{name}_data",
            *(f"{{{', '.join(f'{name}_{field}{n}' for n in range(count))}}}" for field, (_, count) in given.items()),
        ])  # fmt: skip
        made.append(
            f"  struct {name}_parts {{ {members} }} const {name} = {{{values}}};\n"
            f"  const auto {name}_accessor = autotune::bit_cast<typename Chosen::{name}>({name});\n"
        )
    accessors = ", ".join(f"{name}_accessor" for name in kernel.arguments)
    text = family.source.read_text(encoding="utf-8").replace(
        "__global__", "static __device__ __forceinline__"
    )
    text = re.sub(r"__launch_bounds__\([^()]*\)", "", text)  # the plain kernel below has them
    return (
        "#define AUTOTUNE_VARIANTS\n"
        '#include "autotune/array.cuh"\n'
        f"{text}\n"
        f"{structs}#endif\n"
        f'extern "C" __global__ void __launch_bounds__(block_size_x) plain({", ".join(parameters)}) {{\n'
        f"{''.join(made)}  {kernel.name}<Chosen>({accessors});\n}}\n"
    )


def plain_arguments(
    family: Family, inputs: Inputs, configurations: Sequence[Configuration], samples: int
) -> dict[str, Any]:
    """Return keyword arguments of tune_kernel for a kernel that is compiled unmodified. The result is compared with
    nothing: a T1 file does not say what is right."""
    (kernel,) = family.kernels.values()
    names = list(family.space.control)
    wanted = {tuple(c[name] for name in names) for c in configurations}
    sizes = {c: dict(inputs.names(c)) for c in configurations}
    grids = {tuple(c[n] for n in names): [e.integer(sizes[c]) for e in kernel.grid] for c in configurations}

    def argument(name: str) -> Any:
        if kind := family.number_type(name):
            return np.dtype(kind).type(inputs.scalars.get(name, inputs.sizes.get(name)))
        data = family.data[name]
        if data.role == "input":
            return np.ascontiguousarray(inputs.arrays[name])
        begins_as = family.beginnings.get(name)
        return (
            inputs.arrays[begins_as].copy()
            if begins_as
            else np.zeros(data.shape_for(inputs.sizes), data.dtype)
        )

    def is_wanted(p: Mapping[str, Any]) -> bool:  # a lambda is taken apart by its text
        return tuple(p[name] for name in names) in wanted

    return {
        "kernel_name": kernel.name,
        "kernel_source": family.source.read_text(encoding="utf-8"),
        "problem_size": lambda p: tuple(grids[tuple(p[name] for name in names)]),
        "grid_div_x": [],
        "grid_div_y": [],
        "grid_div_z": [],
        "arguments": [argument(name) for name in kernel.arguments],
        "cmem_args": {symbol: inputs.arrays[name] for name, symbol in family.symbols.items()} or None,
        "tune_params": {name: sorted({c[name] for c in configurations}) for name in names},
        "restrictions": [is_wanted],
        "block_size_names": [
            block.text if block.text in names else f"block_size_{axis}"
            for axis, block in zip("xyz", kernel.block, strict=False)
        ],
        "compiler_options": ["-std=c++17", f"-I{family.folder}", *family.compile_options],
        "iterations": samples,
        "quiet": True,
    }  # fmt: skip


def arguments_of(work: Task, tunable: Callable[..., Any]) -> list[Any]:
    """Each argument: the value itself where all configurations share it, else one that Kernel Tuner chooses."""
    chosen = []
    for values in work.parts:
        unique: dict[Any, Any] = {}
        ids = {}
        for index, value in values.items():
            key = id(value) if isinstance(value, np.ndarray) else value
            unique.setdefault(key, value)
            ids[index] = key
        first = next(iter(unique.values()))
        chosen.append(first if len(unique) == 1 else tunable(lambda p, ids=ids: ids[p[INDEX]], unique))
    return chosen


def tune_arguments(work: Task, tunable: Callable[..., Any], samples: int) -> dict[str, Any]:
    """Keyword arguments of tune_kernel: everything visited, verified, nothing cached or simulated."""
    blocks = work.blocks
    of_a_size = [
        f"(block_size_x == {size} and {INDEX} in {tuple(i for i, b in enumerate(blocks) if b == size)})"
        for size in sorted(set(blocks))
    ]
    return {
        "kernel_name": "plain",
        "kernel_source": work.source,
        "problem_size": lambda p: work.grids[p[INDEX]],
        "grid_div_x": [],
        "grid_div_y": [],
        "grid_div_z": [],
        "arguments": arguments_of(work, tunable),
        "tune_params": {INDEX: list(range(len(blocks))), "block_size_x": sorted(set(blocks))},
        "restrictions": [" or ".join(of_a_size)],
        "answer": work.answer,
        "atol": 0,
        "compiler_options": work.options,
        "iterations": samples,
        "quiet": True,
    }


def drawn(family: Family, path: Path | None) -> tuple[Configuration, ...]:
    """The configurations in a file, one a line."""
    lines = path.read_text(encoding="utf-8").splitlines() if path else []
    return tuple(family.space.configuration(line) for line in lines if line)


def add_task(parser: ArgumentParser) -> None:
    """Add the options by which engine_peers.py gives every peer the same work."""
    parser.add_argument("--family", default="allpairs")
    parser.add_argument("--workload", default="")
    parser.add_argument("--preset", default="tiles")
    parser.add_argument("--set", action="append", default=[], metavar="POLICY=V1,V2")
    parser.add_argument("--samples", type=int, default=7, help="which Helion does not ask for")
    parser.add_argument("--data", type=Path)
    parser.add_argument(
        "--cache", type=Path, default=Path("kernel-tuner-cache"), help="for the expected outputs"
    )
    parser.add_argument("--drawn", type=Path, help="a file with the configurations, one a line")


def load_task(asked: Namespace) -> tuple[Family, Inputs, Sequence[Configuration]]:
    """The family, inputs and configurations that the options of ``add_task`` name."""
    family = load_family(asked.family)
    inputs = inputs_of(family, asked.workload, asked.data)
    narrowed = {key: values.split(",") for key, _, values in (text.partition("=") for text in asked.set)}
    return family, inputs, drawn(family, asked.drawn) or family.space.configurations(asked.preset, narrowed)


def read_task(
    doc: str | None, out: str, words: Sequence[str] | None
) -> tuple[Namespace, Family, Inputs, Sequence[Configuration], Task]:
    """What the command line of a script with that ``doc`` asks for, and the work that it makes."""
    parser = arguments(doc, out)
    add_task(parser)
    asked = parser.parse_args(words)
    family, inputs, configurations = load_task(asked)
    return asked, family, inputs, configurations, task(family, inputs, configurations, asked.cache)


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__, "kernel-tuner.json")
    parser.add_argument("backend", choices=("nvcuda", "cupy"))
    add_task(parser)
    asked = parser.parse_args(words)
    family, inputs, configurations = load_task(asked)
    if family.is_plain:
        work = plain_arguments(family, inputs, configurations, asked.samples)
    else:
        made = task(family, inputs, configurations, asked.cache)
    if asked.check:
        given = work if family.is_plain else tune_arguments(made, lambda _key, _forms: None, asked.samples)
        print(f"tune_kernel: {', '.join(given)}")
        return check(family, [inputs], configurations, peers=("kernel_tuner", "cupy"))

    began = time.perf_counter()
    import kernel_tuner
    from kernel_tuner.accuracy import Tunable

    given = work if family.is_plain else tune_arguments(made, Tunable, asked.samples)
    results, environment = kernel_tuner.tune_kernel(**given, lang=asked.backend)
    wall_s = time.perf_counter() - began
    rows = [
        {
            "configuration": Configuration({name: r[name] for name in family.space.control}).id
            if family.is_plain
            else made.configurations[r[INDEX]].id,
            "times_ms": [float(t) for t in r.get("times", ())],
            "compile_ms": r.get("compile_time", 0.0),
            "verify_ms": r.get("verification_time", 0.0),
            "benchmark_ms": r.get("benchmark_time", 0.0),
        }
        for r in results
    ]
    about = {"kernel_tuner": kernel_tuner.__version__, "device": environment["device_name"], "wall_s": wall_s}
    asked.out.write_text(json.dumps({**about, "rows": rows}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
