"""Random data declarations and layouts, and arrays to store: what the layout tests draw from."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from autotune.layout.arrays import SCALAR_TYPES, Data, Field
from autotune.layout.bit_packing import PACKINGS, packing
from autotune.layout.curve import CURVES, Curve
from autotune.layout.dimensions import DIMS
from autotune.layout.layout import Layout
from autotune.layout.storage import STORAGES
from autotune.layout.swizzle import Swizzle

AXES = ("i", "j", "k", "l", "m", "n")


def data(type_name: str = "int32", rank: int = 1, **more: Any) -> Data:
    """An input of plain elements, its extents named i, j, k, ..."""
    return Data(name="a", role="input", fields=(Field("", type_name),), shape=AXES[:rank], **more)


def record(*types: str, rank: int = 1, **more: Any) -> Data:
    """An input of records with fields f0, f1, …"""
    fields = tuple(Field(f"f{i}", type_name) for i, type_name in enumerate(types))
    return Data(name="a", role="input", fields=fields, record="Record", shape=AXES[:rank], **more)


def random_array(declared: Data, shape: tuple[int, ...], top: int | None, seed: int) -> NDArray[Any]:
    """Random bytes (NaNs and all) as an array of ``declared``; with ``top``, whole numbers up to it."""
    generator = np.random.default_rng(seed)
    if top is not None:
        return generator.integers(0, top, shape, endpoint=True).astype(declared.dtype)
    raw = generator.bytes(math.prod(shape) * declared.dtype.itemsize)
    return np.frombuffer(raw, declared.dtype).reshape(shape).copy()


@st.composite
def mappings(draw: st.DrawFn, rank: int) -> dict[str, Any]:
    """Draw tiles, a curve and a swizzle for an array of ``rank`` extents; each may be left out."""
    found: dict[str, Any] = {}
    few = 4 if rank <= 3 else 2  # so that padding does not outgrow the array
    if draw(st.booleans()):
        found["tiles"] = tuple(draw(st.lists(st.integers(1, few), min_size=rank, max_size=rank)))
    if rank > 1 and draw(st.booleans()):
        along = draw(st.sampled_from([(0, 1), (0, 2), (1, 2), (0, 1, 2)] if rank > 2 else [(0, 1)]))
        found["curve"] = Curve(draw(st.sampled_from(CURVES)), along, draw(st.sampled_from([0, 2, few])))
    if rank > 1 and draw(st.booleans()):
        found["steps"] = (Swizzle(draw(st.sampled_from([2, 4])), draw(st.sampled_from([1, 2]))),)
    return found


@st.composite
def layouts(draw: st.DrawFn) -> tuple[Layout, NDArray[Any]]:
    """Any combination of the layout choices for any kind of data, with an array to store."""
    few, many = ((6, 1, 3), (3, 4, 6))  # the largest extent, and how many extents there are
    most, least_rank, most_rank = draw(st.sampled_from([few, few, many]))
    shape = tuple(draw(st.lists(st.integers(1, most), min_size=least_rank, max_size=most_rank)))
    rank = len(shape)
    common: dict[str, Any] = {"rank": rank, "plane": draw(st.sampled_from([(32, 1), (32, 4)]))}
    kind = draw(st.sampled_from(["plain", "record", "packed"]))
    chosen: dict[str, Any] = {}
    top = None
    if kind == "plain":
        declared = data(draw(st.sampled_from(list(SCALAR_TYPES))), **common)
    elif kind == "record":
        alike = draw(
            st.sampled_from([("int8", "uint8"), ("int16",), ("float32", "int32"), ("int64", "float64")])
        )
        declared = record(*draw(st.lists(st.sampled_from(alike), min_size=1, max_size=4)), **common)
    else:
        chosen = {
            "packing": packing(draw(st.sampled_from(list(PACKINGS)))),
            "vector": draw(st.sampled_from([1, 2, 4])),
        }
        top = min(2 ** chosen["packing"].bits - 1, 2**31 - 1)
        axis = draw(st.sampled_from(AXES[:rank]))
        longer = draw(st.integers(1, 150))  # past a word of every packing
        shape = tuple(longer if name == axis else n for name, n in zip(AXES, shape, strict=False))
        declared = data("int32", packed=axis, **common)
    members = draw(st.integers(1, 3))
    every = groupings([f.name for f in declared.fields])[1:] if declared.record else []
    layout = Layout(
        data=declared,
        **draw(mappings(rank)),
        axes=tuple(draw(st.permutations(range(rank)))),
        padding=draw(st.integers(1, 5)),
        plus=draw(st.integers(0, 2)),
        records=draw(st.sampled_from(["aos", "soa", "aosoa2", "aosoa3", "aosoa4", *every])),
        dims=draw(st.sampled_from(DIMS.values)),
        group=(members, draw(st.integers(0, members - 1))),
        **chosen,
    )
    return layout, random_array(declared, shape, top, draw(st.integers(0, 2**32)))


@st.composite
def stored_layouts(draw: st.DrawFn) -> tuple[Layout, NDArray[Any]]:
    """Any storage with any other choice for plain numbers and records, and finite numbers of many sizes to store."""
    drawn, array = draw(layouts().filter(lambda made: made[0].packing is None))
    storage = STORAGES[draw(st.sampled_from(list(STORAGES)))]
    kind = "float64" if storage.name == "float32" else draw(st.sampled_from(["float32", "float64"]))
    bounds: dict[str, Any] = draw(st.sampled_from([{}, {"low": -3.0, "high": 100.0}]))
    fields = tuple(replace(field, type=kind) for field in drawn.data.fields)
    declared = replace(drawn.data, fields=fields, **bounds)
    layout = replace(drawn, data=declared, storage=storage, group=(1, 0))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = (*array.shape, len(fields))
    numbers = generator.normal(0, 1, shape) * np.exp2(generator.integers(-12, 12, shape))
    return layout, numbers.astype(kind).view(declared.dtype).reshape(array.shape)


def groupings(names: list[str]) -> list[str]:
    """Every way to group them, as a value of ``records``, from all together on."""
    if len(names) < 2:
        return names
    *rest, last = names
    found = []
    for groups in groupings(rest):
        for group in (parts := groups.split("-")):
            found.append("-".join(f"{each}+{last}" if each == group else each for each in parts))
        found.append(f"{groups}-{last}")
    return found
