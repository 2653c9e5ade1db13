"""A declaration that is drawn: arrays with layout policies of all kinds, a kernel that reads and writes them, and
what is right. ``generated_declarations.py`` runs them."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.layout import STORAGES

MOST = 8  # configurations of a declaration
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
    """Draw layout policies of both arrays, in random order, until there are enough configurations."""
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
    """Yield (layout, arrays or extents, values without the default, what they mean, the default)."""
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
    if "record" in data:
        sizes = [
            (n, np.dtype(f if isinstance(f, str) else f["type"]).itemsize) for n, f in data["fields"].items()
        ]
        names = [field for field, _ in sizes]
        halves = [f"{'+'.join(names[:cut])}-{'+'.join(names[cut:])}" for cut in range(1, len(names))]
        groupings = dict.fromkeys([*halves, "-".join(names)] if len(names) > 1 else [])
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
