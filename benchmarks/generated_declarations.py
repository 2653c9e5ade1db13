"""Does every configuration of declarations that combine all layouts give what control gives?

    python benchmarks/generated_declarations.py --count 500 --device cpu
    python benchmarks/generated_declarations.py --count 50 --device cuda

A declaration is drawn from a seed: arrays of one to three extents, of numbers, records, packed numbers, images or
trees, a kernel that copies, scales, shifts, sums or walks them, and layout policies of all kinds. Several share a
family, so that one compiler call builds many. Each configuration of each declaration is run once and compared with its
control, and control with numpy. Writes a row a declaration; the exit code is 1 when one is not equal.
"""

import argparse
import itertools
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from harness import write_rows
from numpy.typing import NDArray

from autotune.compile import Cache, Compiled, Toolchain, Variant, batch, compile_many, default_root
from autotune.declaration import Configuration, Family, Inputs, bind, load_family
from autotune.device import Backend, Resident, open_backend
from autotune.layout import STORAGES, every_grouping

TOGETHER = 10  # declarations of a family
MOST = 8  # configurations of a declaration
_LINKS = 0.5  # of the trees have a choice of links, the others of records
CONSTANT_BYTES = 6144  # of an array: ten of them fit
CPP = {
    "float32": "float", "float64": "double", "int32": "int", "uint8": "unsigned char", "int16": "short",
    "uint32": "unsigned",
}  # fmt: skip
INDICES = "ijk"
Draw = np.random.Generator


@dataclass
class Declaration:
    """One kernel ``k<number>`` with what it reads and writes, and what is right. ``bound`` is how far a result may be
    off, for storages that round."""

    number: int
    kind: str
    operation: str
    shape: tuple[int, ...]
    data: dict[str, dict[str, Any]] = field(default_factory=dict)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    expected: NDArray[Any] = field(default_factory=lambda: np.zeros(0))
    structs: str = ""
    body: str = ""
    threads: int = 0
    bound: float = 0.0
    policies: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def extents(self) -> list[str]:
        return [f"n{self.number}_{axis}" for axis in range(len(self.shape))]

    def name(self, of: str) -> str:
        return f"{of}{self.number}"

    @property
    def count(self) -> int:
        """Configurations."""
        return int(np.prod([len(policy["values"]) for policy in self.policies.values()], dtype=int))

    def values(self, number: int) -> dict[str, Any]:
        """Of its policies, in its configuration of that number, which begins again behind the last; 0 is control."""
        found, number = {}, number % self.count
        for name, policy in self.policies.items():
            number, place = divmod(number, len(policy["values"]))
            found[name] = policy["values"][place]
        return found

    @property
    def kernel(self) -> str:
        arguments = ", ".join(f"typename Policy::{name} {name.rstrip('0123456789')}" for name in self.data)
        return f"""{self.structs}
template <class Policy>
__global__ void k{self.number}({arguments}) {{
  unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= {self.threads}u) return;
{self.body}
}}
"""


# -- arrays and kernels ---------------------------------------------------------------------------------------------


def declaration(number: int, draw: Draw) -> Declaration:
    """Any, from what ``draw`` gives."""
    kind = str(draw.choice(["numbers", "numbers", "records", "records", "packed", "image", "pair", "tree"]))
    rank = {"tree": 1, "image": int(draw.integers(2, 4)), "pair": 1}.get(kind, int(draw.integers(1, 4)))
    limits = {1: (1, 150), 2: (2, 14), 3: (2, 8)}[rank]
    shape = tuple(int(n) for n in draw.integers(*limits, rank))
    made = Declaration(number, kind, "", shape)
    makers = {"records": _records, "packed": _packed, "pair": _pair, "tree": _tree}
    makers.get(kind, _numbers)(made, draw)
    _policies(made, draw)
    if kind == "packed" and f"packing_{made.name('x')}" not in made.policies:
        made.data[made.name("x")]["layout"] = {"packing": "int32"}
    return made


def _unravelled(shape: Sequence[int]) -> str:
    """The indices i, j, k of thread ``at``, the last one fastest."""
    lines = [
        f"  const unsigned {INDICES[axis]} = at % {shape[axis]}u; at /= {shape[axis]}u;"
        for axis in range(len(shape) - 1, 0, -1)
    ]
    return "\n".join([*lines, "  const unsigned i = at;"])


def _indices(rank: int) -> str:
    return ", ".join(INDICES[:rank])


def _shifted(shape: Sequence[int], by: Sequence[int]) -> str:
    return ", ".join(f"({name} + {step}u) % {n}u" for name, step, n in zip(INDICES, by, shape, strict=False))


def _numbers(made: Declaration, draw: Draw) -> None:
    types = (
        ["float32", "int32"]
        if made.kind == "image"
        else ["float32", "float32", "float64", "int32", "uint8", "int16"]
    )
    kind = str(draw.choice(types))
    made.operation = str(draw.choice(["copy", "scale", "shift", "sum"]))
    x = draw.integers(0, 16, made.shape).astype(kind)
    made.arrays["x"], rank = x, len(made.shape)
    out = kind if made.operation in ("copy", "shift") else "float64" if kind == "float64" else "float32"
    steps = [int(n) for n in draw.integers(1, 9, rank)]
    at, own = _indices(rank), f"x.load({_indices(rank)})"
    body = {
        "copy": f"  y.store({own}, {at});",
        "shift": f"  y.store(x.load({_shifted(made.shape, steps)}), {at});",
        "scale": f"  y.store(2 * static_cast<{CPP[out]}>({own}) + 1, {at});",
    }
    if made.operation == "sum":
        made.expected = x.astype(out).sum(axis=tuple(range(1, rank)))
        loops = "".join(
            f"for (unsigned {INDICES[a]} = 0; {INDICES[a]} < {made.shape[a]}u; ++{INDICES[a]}) "
            for a in range(1, rank)
        )
        made.threads = made.shape[0]
        made.body = (
            f"  const unsigned i = at;\n  {CPP[out]} sum = 0;\n  {loops}sum += {own};\n  y.store(sum, i);"
        )
    else:
        made.expected = {
            "copy": x, "shift": np.roll(x, [-n for n in steps], tuple(range(rank))),
            "scale": (2 * x.astype(out) + 1).astype(out),
        }[made.operation]  # fmt: skip
        made.threads = x.size
        made.body = f"{_unravelled(made.shape)}\n{body[made.operation]}"
    shape = made.extents[: made.expected.ndim]
    made.data = {
        made.name("x"): {
            "role": "input",
            "type": kind,
            "shape": made.extents,
            "constant_bytes": CONSTANT_BYTES,
        },
        made.name("y"): {"role": "output", "type": out, "shape": shape},
    }
    if made.kind == "image":
        made.data[made.name("x")]["image"] = {"edge": "clamp"}


def _records(made: Declaration, draw: Draw) -> None:
    types = [["float32"] * 3, ["float32"] * 4, ["float64", "float32", "int32"], ["int16", "int16", "int32", "int32"],
             ["float32"] * 5, ["uint8"] * 4][draw.integers(6)]  # fmt: skip
    names = [f"f{place}" for place in range(len(types))]
    dtype = np.dtype(list(zip(names, types, strict=True)))
    x = np.zeros(made.shape, dtype)
    for name in names:
        x[name] = draw.integers(0, 100, made.shape)
    made.arrays["x"], rank = x, len(made.shape)
    made.operation = str(draw.choice(["copy", "shift", "field"]))
    record = made.name("Record")
    members = " ".join(f"{CPP[kind]} {name};" for name, kind in zip(names, types, strict=True))
    made.structs = f"struct {record} {{ {members} }};"
    fields = dict(zip(names, types, strict=True))
    whole = {"record": record, "fields": fields, "shape": made.extents}
    made.data = {
        made.name("x"): {"role": "input", **whole, "constant_bytes": CONSTANT_BYTES},
        made.name("y"): {"role": "output", **whole},
    }
    steps = [int(n) for n in draw.integers(1, 9, rank)]
    at, there = _indices(rank), _shifted(made.shape, steps)
    moved = np.roll(x, [-n for n in steps], tuple(range(rank)))
    made.threads = x.size
    if made.operation == "field":
        chosen = int(draw.integers(len(names)))
        made.data[made.name("y")] = {"role": "output", "type": types[chosen], "shape": made.extents}
        made.expected = moved[names[chosen]]
        store = f"y.store(autotune::load_field<&{record}::f{chosen}>(x, {there}), {at});"
    else:
        made.expected = x if made.operation == "copy" else moved
        store = f"y.store(x.load({at if made.operation == 'copy' else there}), {at});"
    made.body = f"{_unravelled(made.shape)}\n  {store}"


def _packed(made: Declaration, draw: Draw) -> None:
    made.operation = "unpack"
    top = int(draw.choice([2, 4, 16]))
    x = draw.integers(0, top, made.shape).astype("int32")
    made.arrays["x"], made.expected, made.threads = x, x, x.size
    rank = len(made.shape)
    last = INDICES[rank - 1]
    at = ", ".join([*INDICES[: rank - 1], f"{last} / Words::elements"])
    made.body = f"""{_unravelled(made.shape)}
  using Words = typename Policy::{made.name("x")}::value_type;
  using Packing = typename Words::packing;
  const Words words = x.load({at});
  const unsigned within = {last} % Words::elements;
  y.store(Packing::element(words.word[within / Packing::elements], within % Packing::elements), {_indices(rank)});"""
    made.data = {
        made.name("x"): {"role": "input", "type": "int32", "shape": made.extents, "packed": made.extents[-1],
                         "range": [0, top - 1], "constant_bytes": CONSTANT_BYTES},
        made.name("y"): {"role": "output", "type": "int32", "shape": made.extents},
    }  # fmt: skip


def _pair(made: Declaration, draw: Draw) -> None:
    """Two arrays over one extent, which may be merged."""
    kind = str(draw.choice(["float32", "float64", "int16"]))
    made.operation = "add"
    made.arrays = {name: draw.integers(0, 50, made.shape).astype(kind) for name in "xv"}
    made.expected, made.threads = made.arrays["x"] + made.arrays["v"], made.shape[0]
    made.data = {made.name(name): {"role": "input", "type": kind, "shape": made.extents} for name in "xv"}
    made.data[made.name("y")] = {"role": "output", "type": kind, "shape": made.extents}
    made.body = "  y.store(x.load(at) + v.load(at), at);"


def _tree(made: Declaration, draw: Draw) -> None:
    """Each element's parent's weight, and links that an order renumbers."""
    made.operation = "parents"
    count = made.shape[0]
    names = draw.permutation(count)
    parent = np.zeros(count, np.int32)
    parent[names[1:]] = [names[int(draw.integers(max(0, i - 5), i))] for i in range(1, count)]
    parent[names[0]] = -1
    x = np.zeros(count, [("weight", "float32"), ("parent", "int32")])
    x["weight"], x["parent"] = draw.integers(0, 100, count), parent
    made.arrays["x"], made.threads = x, count
    made.expected = np.where(parent < 0, -1, x["weight"][parent]).astype("float32")
    record = made.name("Record")
    made.structs = f"struct {record} {{ float weight; int parent; }};"
    made.data = {
        made.name("x"): {
            "role": "input", "record": record, "shape": made.extents, "constant_bytes": CONSTANT_BYTES,
            "fields": {"weight": "float32", "parent": {"type": "int32", "link": made.extents[0]}},
        },
        made.name("y"): {"role": "output", "type": "float32", "shape": made.extents},
    }  # fmt: skip
    made.body = f"""  const {record} own = x.load(at);
  y.store(own.parent < 0 ? -1.0f : autotune::load_field<&{record}::weight>(x, own.parent), at);"""


# -- policies -------------------------------------------------------------------------------------------------------


def _policies(made: Declaration, draw: Draw) -> None:
    """Layout policies of both arrays, in an order by chance, until there are as many configurations as are wanted."""
    offers = [*_offers(made, "x", draw), *_offers(made, "y", draw)]
    for place in draw.permutation(len(offers)):
        layout, targets, values, means, default = offers[place]
        chosen = [
            default,
            *(values[i] for i in sorted(draw.permutation(len(values))[: int(draw.integers(1, 3))])),
        ]
        if made.count * len(chosen) > MOST:
            continue
        policy = {"layout": layout, "data": targets, "values": chosen, "default": default}
        if kept := {value: means[value] for value in chosen if value in means}:
            policy["means"] = kept
        made.policies[f"{layout}_{targets[0]}"] = policy


def _offers(
    made: Declaration, of: str, draw: Draw
) -> Iterator[tuple[str, list[str], list[Any], dict[str, Any], Any]]:
    """(layout, arrays or extents, values beside the default, what they mean, the default)."""
    name, data = made.name(of), made.data[made.name(of)]
    rank, is_input = len(data["shape"]), of == "x"
    means: dict[str, Any]
    both = (
        [name, made.name("v")] if is_input and made.kind == "pair" else [name]
    )  # what is merged is stored alike
    for each in both:
        made.data[each]["plane"] = {"width": 32, "rows": 4}
    is_plain = "type" in data and "packed" not in data
    if made.kind == "image" and is_input:
        data["layout"] = {"memory": "texture"}  # in other memory an image is a line
        yield "dims", both, ["image", "2d", *(["image_pitched"] if rank == 2 else [])], {}, "1d"
    elif is_input:
        memories = ["readonly", "texture", *(["constant"] if "constant_bytes" in data else [])]
        yield "memory", both, memories, {}, "global"
        yield "dims", both, ["2d", "2d_pitched"], {}, "1d"
    else:
        is_image = made.kind == "image" and rank > 1
        yield "dims", both, ["2d", *(["image"] if is_image else [])], {}, "1d"
    if len(both) > 1:
        yield "grouping", both, ["merged"], {}, "split"
    if rank > 1:
        orders = [list(order) for order in itertools.permutations(data["shape"])]
        means = {f"p{place}": order for place, order in enumerate(orders)}
        yield "axes", both, [*means][1:], means, "p0"
    if made.kind == "tree" and is_input and draw.random() < _LINKS:
        yield "links", both, ["relative16"], {}, "absolute"  # with which records are aos
    elif "record" in data:
        sizes = [
            (n, np.dtype(f if isinstance(f, str) else f["type"]).itemsize) for n, f in data["fields"].items()
        ]
        groupings = every_grouping(sizes, name)[1:]
        alike = len({size for _, size in sizes}) == 1
        yield "records", both, [*groupings, *(["aosoa4"] if alike else [])], {}, "aos"
    if "packed" in data:
        bits = max(1, int(data["range"][1])).bit_length()
        packings = ["int16", "int8", "bits4", *(["bits2", "planes2"] if bits <= 2 else ["planes4"])]
        yield "packing", both, packings, {}, "int32"
        yield "vector", both, [2, 4], {}, 1
    if made.kind in ("tree", "pair") and is_input:
        means = {
            "drawn": {"order": "random", "seed": 3},
            "moved": {"order": "breadth_first" if made.kind == "tree" else "random"},
        }
        yield "order", [data["shape"][0]], ["drawn", "moved"], means, "given"
    if is_plain and data["type"] in ("float32", "float64") and made.kind != "image" and len(both) == 1:
        if is_input:
            yield "storage", both, [n for n in STORAGES if n != data["type"]], {}, data["type"]
        else:
            yield (
                "storage",
                [name],
                [n for n in ("float16", "bfloat16") if n != data["type"]],
                {},
                data["type"],
            )
    if made.kind == "image":
        return
    yield "padding", both, [4, "3+1"], {}, 1
    tile = "x".join(str(int(n)) for n in draw.integers(1, 5, rank))
    yield "tiles", both, [tile], {}, "none"
    if rank > 1:
        yield "curve", both, ["morton", "hilbert", "hilbert2"], {}, "none"
        yield "swizzle", both, ["xor2", "xor4x2"], {}, "none"


# -- families -------------------------------------------------------------------------------------------------------


def family_of(folder: Path, members: Sequence[Declaration]) -> Family:
    """All of them in one."""
    extents = {
        extent: {"value": size} for m in members for extent, size in zip(m.extents, m.shape, strict=True)
    }
    content = {
        "schema": 1, "family": folder.name, "source": "kernels.cu", "reference": "control", "extents": extents,
        "data": {name: data for m in members for name, data in m.data.items()},
        "kernels": {
            f"k{m.number}": {"arguments": [*m.data], "grid": [f"ceil_div({m.threads}, 64)"], "block": [64]}
            for m in members
        },
        "policies": {name: policy for m in members for name, policy in m.policies.items()},
    }  # fmt: skip
    folder.mkdir(parents=True)
    (folder / "family.yaml").write_text(json.dumps(content, indent=1))
    texts = [f'#include "autotune/{name}.cuh"' for name in ("field_access", "image")]
    (folder / "kernels.cu").write_text("\n".join([*texts, *(member.kernel for member in members)]))
    return load_family(folder)


def inputs_of(family: Family, members: Sequence[Declaration]) -> Inputs:
    return bind(family, {m.name(of): array for m in members for of, array in m.arrays.items()}, {}, {})


def configurations(members: Sequence[Declaration]) -> list[Configuration]:
    """As many as the one with the most needs, so that each declaration is in all of its own; the first is control."""
    most = max(m.count for m in members)
    return [
        Configuration({name: value for m in members for name, value in m.values(number).items()})
        for number in range(most)
    ]


def outputs(
    backend: Backend, family: Family, inputs: Inputs, made: Sequence[tuple[Variant, Compiled]]
) -> list[Any]:
    """Of each variant, by name; None where this device rules it out."""
    resident = Resident(backend, inputs)
    found: list[Any] = []
    for variant, compiled in made:
        if reason := variant.exclusion(inputs.names(variant.configuration), backend.device.limits):
            print(reason)
            found.append(None)
            continue
        execution = resident.execution(variant, backend.load(compiled))
        for data in family.outputs:
            execution.backend.fill(execution.placed[data.name], 0xA5)
        execution.run()
        found.append(
            {data.name: execution.restore(data.name, data.shape_for(inputs.sizes)) for data in family.outputs}
        )
    resident.close()
    return found


def rounding(made: Declaration, values: Mapping[str, Any]) -> float:
    """How far apart results may be in a configuration: its storages' rounding, of numbers up to the largest."""
    largest = (
        float(np.abs(made.arrays["x"].astype("float64")).max())
        if made.arrays["x"].dtype.names is None
        else 0.0
    )
    chosen = [
        STORAGES[str(v)] for name, v in values.items() if name.startswith("storage_") and str(v) in STORAGES
    ]
    relative = sum(1 / s.largest if s.is_scaled else 2.0 ** -(s.mantissa + 1) for s in chosen)
    return relative * 4 * (largest + 1) * max(1, made.arrays["x"].size // made.threads) if chosen else 0.0


def compared(members: Sequence[Declaration], found: Sequence[Any]) -> list[dict[str, Any]]:
    """A row a declaration."""
    rows = []
    for made in members:
        name, control = made.name("y"), found[0]
        wrong = "" if control is not None and np.array_equal(control[name], made.expected) else "control"
        excluded = sum(found[number] is None for number in range(made.count))
        for number in range(1, made.count):
            values = made.values(number)
            if wrong or found[number] is None:
                continue
            if not _are_equal(found[number][name], made.expected, rounding(made, values)):
                wrong = ",".join(f"{key}={value}" for key, value in values.items())
        rows.append(
            {
                "declaration": made.number, "kind": made.kind, "operation": made.operation,
                "shape": "x".join(map(str, made.shape)), "policies": " ".join(sorted(made.policies)),
                "configurations": made.count, "excluded": excluded, "unequal": wrong,
            }
        )  # fmt: skip
    return rows


def _are_equal(found: NDArray[Any], expected: NDArray[Any], bound: float) -> bool:
    if bound:
        return bool(np.allclose(found.astype("float64"), expected.astype("float64"), rtol=0, atol=bound))
    return found.tobytes() == np.ascontiguousarray(expected).tobytes()


def toolchain_of(backend: Backend, optimize: str) -> Toolchain:
    toolchain: Any = backend.toolchain()
    is_cpu = backend.device.kind == "cpu"
    found: Toolchain = replace(toolchain, last=(*toolchain.last, optimize)) if is_cpu else toolchain
    return found


def tried(
    backend: Backend, toolchain: Toolchain, folder: Path, members: Sequence[Declaration], processes: int
) -> list[Any]:
    """A row a declaration. Raises AssertionError for what does not compile."""
    family = family_of(folder, members)
    variants = tuple(Variant.of(family, configuration, {}) for configuration in configurations(members))
    at_once = max(1, -(-len(variants) // processes))
    chunks = compile_many(
        batch(family, variants), toolchain, Cache(default_root()), processes, at_once, early=False
    )
    made = []
    for variant, binary in zip(variants, itertools.chain(*chunks), strict=True):
        assert isinstance(binary, Compiled), f"{variant.configuration.id}: {binary}"
        made.append((variant, binary))
    return compared(members, outputs(backend, family, inputs_of(family, members), made))


def told(rows: Sequence[Mapping[str, Any]], device: str, seconds: float) -> int:
    """The exit code; says what was found."""
    wrong = [row for row in rows if row["unequal"]]
    excluded = sum(row["excluded"] for row in rows)
    print(
        f"{len(rows)} declarations, {sum(row['configurations'] for row in rows) - excluded} configurations on "
        f"{device}, {excluded} excluded, {len(wrong)} declarations with an unequal one; {seconds:.0f} s"
    )
    for row in wrong:
        print(f"  {row['declaration']} ({row['kind']}, {row['operation']}, {row['shape']}): {row['unequal']}")
    return 1 if wrong else 0


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first declaration")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--optimize", default="-O0", help="of the cpu device's compiler")
    parser.add_argument("--out", type=Path, default=Path("generated-declarations.csv"))
    parser.add_argument("--keep", type=Path, help="a folder for the families, to look at")
    given = parser.parse_args(words)
    begin, rows = time.perf_counter(), []
    place = given.keep or Path(tempfile.mkdtemp(prefix="autotune-generated-"))
    backend = open_backend(given.device)
    try:
        toolchain = toolchain_of(backend, given.optimize)
        for first in range(given.first, given.first + given.count, TOGETHER):
            numbers = range(first, min(first + TOGETHER, given.first + given.count))
            members = [declaration(n, np.random.default_rng([given.seed, n])) for n in numbers]
            with backend.current():
                rows += tried(backend, toolchain, place / f"generated{first}", members, given.processes)
            write_rows(given.out, rows)
    finally:
        backend.close()
        if not given.keep:
            shutil.rmtree(place, ignore_errors=True)
    return told(rows, given.device, time.perf_counter() - begin)


if __name__ == "__main__":
    sys.exit(main())
