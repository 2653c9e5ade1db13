"""Launch geometry of a variant, and why one cannot run at a size on a device."""

from pathlib import Path
from typing import Any

import pytest
from demo_family import at
from demo_family import load as load_demo

from autotune.compile.variant import Geometry, Variant, scalar_bytes
from autotune.declaration import family
from autotune.declaration.family import Family
from autotune.hardware import Limits

ALLPAIRS = family.load_family("allpairs")


def made(of: Family, text: str = "control") -> Variant:
    return Variant.make(of, of.space.configuration(text), of.choose_options({}))


def names(of: Variant, instances: int, attributes: int = 131) -> dict[str, Any]:
    sizes = of.family.sizes({"genotypes": (instances, attributes)})
    return {**sizes, **dict(of.options), **of.configuration}


@pytest.mark.parametrize(
    ("text", "instances", "grid", "block"),
    [
        ("control", 37, 1369, 128),  # a block a pair
        ("shared", 1, 1, 128),
        ("accumulate=register_tile", 37, 3 * 5, 128),  # 16 x 8 pairs a block
        ("accumulate=register_tile,tile=2", 37, 2 * 3, 128),  # 32 x 16
        ("accumulate=register_tile,tile=4,block_size=256", 65, 2 * 2, 256),  # 64 x 64
        ("accumulate=register_tile,tile=8,block_size=64", 129, 2 * 5, 64),  # 128 x 32
    ],
)
def test_geometry(text: str, instances: int, grid: int, block: int) -> None:
    chosen = made(ALLPAIRS, text)
    kernel = ALLPAIRS.kernels["allpairs"]
    assert chosen.geometry(kernel, names(chosen, instances)) == Geometry((grid, 1, 1), (block, 1, 1), 0)


def test_three_dimensions_and_shared_memory(tmp_path: Path) -> None:
    kernel = {
        "arguments": ["x"],
        "grid": ["n", "m", 2],
        "block": [8, "block // 8"],
        "shared_bytes": "4 * block",
    }
    demo = load_demo(tmp_path, at("kernels", "demo", value=kernel))
    geometry = made(demo).geometry(demo.kernels["demo"], {"n": 5, "m": 3, "block": 128})
    assert geometry == Geometry((5, 3, 2), (8, 16, 1), 512)
    assert geometry.block_size == 128


@pytest.mark.parametrize(
    ("geometry", "limits", "reason"),
    [
        (Geometry((1, 1, 1), (1024, 1, 1)), Limits(), ""),
        (Geometry((1, 1, 1), (1025, 1, 1)), Limits(), "a block of 1025 threads is outside 1..1024"),
        (Geometry((1, 1, 1), (0, 1, 1)), Limits(), "a block of 0 threads is outside 1..1024"),
        (Geometry((0, 1, 1), (32, 1, 1)), Limits(), "a grid of 0 blocks in x is outside 1..2147483647"),
        (
            Geometry((2**31, 1, 1), (32, 1, 1)),
            Limits(),
            "a grid of 2147483648 blocks in x is outside 1..2147483647",
        ),
        (Geometry((1, 65536, 1), (32, 1, 1)), Limits(), "a grid of 65536 blocks in y is outside 1..65535"),
        (Geometry((1, 1, 65536), (32, 1, 1)), Limits(), "a grid of 65536 blocks in z is outside 1..65535"),
        (
            Geometry((1, 1, 1), (32, 1, 1), 8),
            Limits(shared_bytes_per_block=4),
            "8 bytes of shared memory a block pass 4",
        ),
    ],
)
def test_geometry_refusal(geometry: Geometry, limits: Limits, reason: str) -> None:
    assert geometry.explain_refusal(limits) == reason


@pytest.mark.parametrize(
    ("text", "instances", "limits", "reason"),
    [
        ("control", 37, Limits(), ""),
        ("memory=constant", 125, Limits(), ""),
        (
            "memory=constant",
            126,
            Limits(),
            "genotypes: 66024 bytes do not fit in 65536 bytes of constant memory",
        ),
        (
            "memory=texture",
            37,
            Limits(texture_1d_texels=4096),
            "genotypes: 4847 texels pass the 1D texture limit of 4096",
        ),
        (
            "control",
            46341,
            Limits(),
            "kernel allpairs: a grid of 2147488281 blocks in x is outside 1..2147483647",
        ),
        (
            "control",
            37,
            Limits(threads_per_block=64),
            "kernel allpairs: a block of 128 threads is outside 1..64",
        ),
        (
            "control",
            200,
            Limits(memory_bytes=159999),
            "distance: 160000 bytes pass the device's memory of 159999",
        ),
    ],
)
def test_exclusion(text: str, instances: int, limits: Limits, reason: str) -> None:
    chosen = made(ALLPAIRS, text)
    assert chosen.explain_exclusion(names(chosen, instances), limits) == reason


def test_exclusion_by_a_constraint_on_sizes(tmp_path: Path) -> None:
    change = at("constraints", value=[{"require": "block <= n", "reason": "a block would be empty"}])
    demo = load_demo(tmp_path, change)
    sizes = demo.sizes({"x": (127, 5), "tree": (127,)})
    bound = {**sizes, "mode": "fast", "limit": 1, "double": 2, **demo.space.control}
    assert made(demo).explain_exclusion(bound, Limits()) == "a block would be empty"
    assert made(demo).explain_exclusion({**bound, "n": 128, "half": 64}, Limits()) == ""


@pytest.mark.parametrize(
    ("type_name", "value", "raw"),
    [
        ("int32", -2, "feffffff"),
        ("uint8", 255, "ff"),
        ("float32", 1.0, "0000803f"),
        ("int64", 1, "0100000000000000"),
    ],
)
def test_scalar_bytes(type_name: str, value: float, raw: str) -> None:
    assert scalar_bytes(type_name, value).hex() == raw
