"""Numbers that only the source knows, read from its binary for grids and shared memory."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from demo_family import at, refusal

from autotune.compile import (
    Cache,
    Compiled,
    HostCxx,
    Variant,
    batch,
    compile_batch,
    compile_many,
    find_compiler,
    profiles,
    same_code,
)
from autotune.compile.nvcc import Nvcc
from autotune.compile.nvrtc import Nvrtc
from autotune.declaration import Family, Inputs, bind, load_family
from autotune.device import LaunchError, open_backend
from autotune.device.resident import run_once
from autotune.hardware import Device, Limits

SOURCE = """
#include "autotune/array.cuh"
#include "autotune/shared.cuh"
constexpr int least = 3;
template <class Policy>
struct Tile {
  float row[Policy::lines][16];
  static constexpr unsigned width = 32 * Policy::lines;
};
template <class Policy>
__global__ void count(typename Policy::x x, typename Policy::y y) {
  Tile<Policy>& tile = *autotune::dynamic_shared<Tile<Policy>>();
  if (threadIdx.x == 0) tile.row[Policy::lines - 1][15] = static_cast<float>(gridDim.x);
  __syncthreads();
  for (unsigned i = blockIdx.x * Tile<Policy>::width + threadIdx.x; i < x.extent(0); i += 32)
    if (i < (blockIdx.x + 1) * Tile<Policy>::width) y.store(tile.row[Policy::lines - 1][15] + x.load(i), i);
}
"""
DECLARED: dict[str, Any] = {
    "schema": 1,
    "family": "tiled",
    "source": "tiled.cu",
    "compiled": {"width": "Tile<Policy>::width", "tile_bytes": "sizeof(Tile<Policy>)", "least": "least"},
    "data": {
        "x": {"role": "input", "type": "float32", "shape": ["n"]},
        "y": {"role": "output", "type": "float32", "shape": ["n"]},
    },
    "kernels": {
        "count": {
            "arguments": ["x", "y"],
            "grid": ["max(least, ceil_div(n, width))"],
            "block": [32],
            "shared_bytes": "tile_bytes",
        }
    },
    "policies": {"lines": {"values": [1, 2], "default": 1}},
}


@pytest.fixture(scope="module")
def tiled(tmp_path_factory: pytest.TempPathFactory) -> Family:
    folder = tmp_path_factory.mktemp("tiled")
    (folder / "tiled.cu").write_text(SOURCE)
    (folder / "family.yaml").write_text(yaml.safe_dump(DECLARED))
    return load_family(folder)


def of(n: int, family: Family) -> Inputs:
    return bind(family, {"x": np.zeros(n, np.float32)}, {}, {})


TOOLCHAINS = [
    pytest.param(Nvrtc("sm_90"), marks=pytest.mark.nvrtc, id="nvrtc"),
    pytest.param(Nvcc("sm_90"), marks=pytest.mark.nvcc, id="nvcc"),
    pytest.param(HostCxx(find_compiler()), id="host"),
]


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
def test_every_compiler_gives_them_and_the_cache_keeps_them(
    toolchain: Any, tiled: Family, tmp_path: Path
) -> None:
    variants = tuple(Variant.make(tiled, c, {}) for c in tiled.space.configurations())
    for is_cached in (False, True):
        for lines, compiled in enumerate(
            compile_batch(batch(tiled, variants), toolchain, Cache(tmp_path)), 1
        ):
            assert isinstance(compiled, Compiled) and compiled.cached == is_cached
            assert compiled.numbers == {"width": 32 * lines, "tile_bytes": 64 * lines, "least": 3}


def test_a_launch_reads_them(tiled: Family, tmp_path: Path) -> None:
    with open_backend("cpu") as backend:
        for lines, blocks in ((1, 10), (2, 5)):
            configuration = tiled.space.configuration(f"lines={lines}")
            found = run_once(tiled, configuration, of(300, tiled), backend, Cache(tmp_path))
            assert found["y"].tolist() == [blocks] * 300


@pytest.mark.nvrtc
def test_what_is_known_before_and_after_it_is_compiled(tiled: Family, tmp_path: Path) -> None:
    variant, inputs = Variant.make(tiled, tiled.space.control, {}), of(3200, tiled)
    names, limits = inputs.names(tiled.space.control), Limits(grid_x=99)
    assert variant.explain_exclusion(names, limits) == ""
    device = Device(kind="cuda", name="sm_90", arch="sm_90")
    ((compiled,),) = compile_many(batch(tiled, (variant,)), Nvrtc("sm_90"), Cache(tmp_path), 1, 1)
    assert isinstance(compiled, Compiled)
    told = {**names, **compiled.numbers}
    assert (
        variant.explain_exclusion(told, limits) == "kernel count: a grid of 100 blocks in x is outside 1..99"
    )
    (profile,) = profiles(variant, compiled, names, device)
    assert (profile.blocks, profile.dynamic_shared_bytes) == (100, 64)
    assert profile.numbers == compiled.numbers
    assert same_code.compute_sameness(variant, compiled, names)


def test_a_launch_that_no_device_has_is_refused_when_it_is_bound(tiled: Family, tmp_path: Path) -> None:
    with open_backend("cpu") as backend:
        limits = replace(backend.device.limits, grid_x=2)
        backend.device = replace(backend.device, limits=limits)
        with pytest.raises(LaunchError, match=r"a grid of 3 blocks in x is outside 1\.\.2"):
            run_once(tiled, tiled.space.control, of(9, tiled), backend, Cache(tmp_path))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("kernels", "demo", "block"), ["width"], "unknown name 'width'"),
        (("constraints",), [{"require": "width > 1", "reason": "no"}], "unknown name 'width'"),
        (("policies", "width"), {"values": [1], "default": 1}, "the name 'width' is used twice"),
        (("compiled", "a b"), "1", "a b"),
    ],
)
def test_only_grids_and_shared_memory_may_read_them(
    tmp_path: Path, path: tuple[str, ...], value: Any, message: str
) -> None:
    def change(content: dict[str, Any]) -> None:
        content["compiled"] = {"width": "Tile<Policy>::width"}
        at(*path, value=value)(content)

    assert message in refusal(tmp_path, change)
