"""A family whose policies choose tiles, curves, swizzles and padding: configurations with every value of each."""

from pathlib import Path

import numpy as np
import pytest
from cpu_results import backend, compiled, results

from autotune.cli.commands import main
from autotune.compile.batches import compile_batch
from autotune.compile.cache import Cache
from autotune.compile.nvrtc import Nvrtc
from autotune.compile.toolchain import Compiled
from autotune.compile.variant import Variant, batch, default_header
from autotune.declaration import family as families
from autotune.declaration.family_folder import Family
from autotune.declaration.workload import bind
from autotune.device.cpu.backend import CpuBackend

__all__ = ["backend"]

DECLARATION = """
schema: 1
family: shifted
source: shifted.cu
reference: control
data:
  x: {role: input, type: float32, shape: [row, column]}
  y: {role: output, type: float32, shape: [row, column], layout: {padding: 64B+4B}}
kernels:
  shifted: {arguments: [x, y], grid: ["ceil_div(column, 32)", row], block: [32]}
policies:
  axes:
    layout: axes
    data: [x]
    values: [rows, columns]
    means: {rows: [row, column], columns: [column, row]}
    default: rows
  tiles:
    layout: tiles
    data: [x, y]
    values: [none, 8x8, flat]
    means: {flat: {column: 5}}
    default: none
  curve:
    layout: curve
    data: [x, y]
    values: [none, morton, hilbert, hilbert4]
    default: none
  swizzle: {layout: swizzle, data: [x], values: [none, xor4x2], default: none}
"""
SOURCE = """
#include "autotune/array.cuh"

template <class Policy>
__global__ void shifted(typename Policy::x x, typename Policy::y y) {
  const unsigned row = blockIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= x.extent(1)) return;
  y.store(2 * x.load(row, column) - x.load((row + 1) % x.extent(0), (column + 3) % x.extent(1)), row, column);
}
"""


@pytest.fixture
def shifted(tmp_path: Path) -> Family:
    (tmp_path / "family.yaml").write_text(DECLARATION)
    (tmp_path / "shifted.cu").write_text(SOURCE)
    return families.load_family(str(tmp_path))


def test_each_gives_what_numpy_gives(shifted: Family, backend: CpuBackend) -> None:
    x = np.random.default_rng(3).normal(size=(13, 37)).astype(np.float32)
    expected = 2 * x - np.roll(x, (-1, -3), (0, 1))
    variants = [Variant(shifted, c) for c in shifted.space.configurations()[::7]]
    for policy in shifted.space.policies:
        assert {variant.configuration[policy.name] for variant in variants} == set(policy.values), policy.name
    binaries = compiled(backend, variants, 8, optimize="-Og")
    for variant, found in results(backend, binaries, bind(shifted, {"x": x}, {}, {})):
        np.testing.assert_array_equal(found["y"], expected, err_msg=variant.configuration.id)


@pytest.mark.gpu
def test_every_configuration_gives_on_a_gpu_what_numpy_gives(shifted: Family) -> None:
    from autotune.device.cuda.backend import CudaBackend

    x = np.random.default_rng(4).normal(size=(130, 205)).astype(np.float32)
    variants = [Variant(shifted, c) for c in shifted.space.configurations()]
    assert len(variants) == 48
    with CudaBackend(0) as gpu:
        binaries = compiled(gpu, variants, 24)
        for variant, found in results(gpu, binaries, bind(shifted, {"x": x}, {}, {})):
            expected = 2 * x - np.roll(x, (-1, -3), (0, 1))
            np.testing.assert_array_equal(found["y"], expected, err_msg=variant.configuration.id)


@pytest.mark.nvrtc
def test_a_gpu_s_compiler_takes_them(shifted: Family, tmp_path: Path) -> None:
    variants = tuple(Variant(shifted, c) for c in shifted.space.configurations()[::7])
    for made in compile_batch(batch(shifted, variants), Nvrtc("sm_90"), Cache(tmp_path / "cache")):
        assert isinstance(made, Compiled), made
        assert all(figures["local_bytes"] == 0 for figures in made.figures.values())


def test_only_what_needs_a_header_includes_it(shifted: Family) -> None:
    def headers(configuration: str) -> tuple[str, ...]:
        return Variant(shifted, shifted.space.configuration(configuration)).headers

    assert headers("control") == ()
    assert headers("tiles=8x8") == ("autotune/tile.cuh",)
    assert headers("curve=morton,swizzle=xor4x2") == ("autotune/curve.cuh", "autotune/swizzle.cuh")
    assert "#include" not in default_header(shifted)
    assert {f"autotune/{name}.cuh" for name in ("tile", "curve", "swizzle")} < shifted.sources.keys()
    included = pytest.importorskip("autotune.export.program").list_included
    assert {f"autotune/{name}.cuh" for name in ("tile", "curve", "swizzle")} < included(shifted).keys()


def test_a_library_that_stores_them_otherwise_makes_another_space(
    shifted: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = DECLARATION[: DECLARATION.index("  tiles:")].replace("64B+4B", "2")
    (shifted.folder / "family.yaml").write_text(plain)
    before = families.load_family(str(shifted.folder)).space_digest
    monkeypatch.setattr("autotune.declaration.family_folder.dimension_digest", lambda name: f"other {name}")
    assert families.load_family(str(shifted.folder)).space_digest == before
    (shifted.folder / "family.yaml").write_text(DECLARATION)
    assert families.load_family(str(shifted.folder)).space_digest != shifted.space_digest


TURNED = """
schema: 1
family: turned
source: turned.cu
reference: control
data:
  x: {role: input, type: float32, shape: [row, column]}
  y: {role: output, type: float32, shape: [column, row]}
kernels:
  turned: {arguments: [x, y], grid: ["ceil_div(column, 8)", "ceil_div(row, 8)"], block: [8, 8]}
policies:
  groups: {values: [1, 2, 8], default: 1}
"""
THROUGH_A_TILE = """
#include "autotune/array.cuh"
#include "autotune/shared_array.cuh"

template <class Policy>
__global__ void turned(typename Policy::x x, typename Policy::y y) {
  __shared__ autotune::SharedTile<float, 8, 8, autotune::Xor<Policy::groups>> tile;
  const unsigned column = blockIdx.x * 8 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
  if (row < x.extent(0) && column < x.extent(1)) tile(threadIdx.y, threadIdx.x) = x.load(row, column);
  __syncthreads();
  const unsigned to_row = blockIdx.x * 8 + threadIdx.y, to_column = blockIdx.y * 8 + threadIdx.x;
  if (to_row < y.extent(0) && to_column < y.extent(1)) y.store(tile(threadIdx.x, threadIdx.y), to_row, to_column);
}
"""


def test_a_shared_tile_keeps_what_is_put_into_it(tmp_path: Path, backend: CpuBackend) -> None:
    (tmp_path / "family.yaml").write_text(TURNED)
    (tmp_path / "turned.cu").write_text(THROUGH_A_TILE)
    turned = families.load_family(str(tmp_path))
    x = np.random.default_rng(5).normal(size=(13, 21)).astype(np.float32)
    binaries = compiled(
        backend, [Variant(turned, c) for c in turned.space.configurations()], 8, optimize="-Og"
    )
    for variant, found in results(backend, binaries, bind(turned, {"x": x}, {}, {})):
        np.testing.assert_array_equal(found["y"], x.T, err_msg=variant.configuration.id)


AS_IT_STANDS = """
schema: 1
family: stands
source: stands.cu
choices: macros
reference: control
data:
  x: {role: input, type: float32, shape: [row, column], access: accessor}
  y: {role: output, type: float32, shape: [row, column]}
kernels:
  stands: {arguments: [x, y, row, column], grid: ["ceil_div(column, 32)", row], block: [32]}
policies:
  tiles: {layout: tiles, data: [x], values: [none, 4x4], default: none}
  curve: {layout: curve, data: [x], values: [none, hilbert], default: none}
"""
COPIES = """
__global__ void stands(Policy::x x, float* y, int rows, int columns) {
  const int row = blockIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column < columns && row < rows) y[row * columns + column] = x.load(row, column);
}
"""


def test_a_kernel_as_it_stands_gets_the_headers_ahead(tmp_path: Path, backend: CpuBackend) -> None:
    (tmp_path / "family.yaml").write_text(AS_IT_STANDS)
    (tmp_path / "stands.cu").write_text(COPIES)
    stands = families.load_family(str(tmp_path))
    x = np.random.default_rng(6).normal(size=(9, 14)).astype(np.float32)
    variants = [Variant(stands, c) for c in stands.space.configurations()[::3]]  # neither, and both
    assert [v.source.headers[1:] for v in variants] == [(), ("autotune/tile.cuh", "autotune/curve.cuh")]
    for variant, found in results(
        backend, compiled(backend, variants, 2, optimize="-Og"), bind(stands, {"x": x}, {}, {})
    ):
        np.testing.assert_array_equal(found["y"], x, err_msg=variant.configuration.id)


def test_show_tells_them(shifted: Family, capsys: pytest.CaptureFixture[str]) -> None:
    told = "tiles=8x8,curve=hilbert4,swizzle=xor4x2"
    assert main(["show", str(shifted.folder), told, "--arch", "sm_90"]) in (0, 3)
    shown = " ".join(capsys.readouterr().out.split())
    assert "axes tiles curve swizzle records padding texel bytes" in shown
    assert "8x8 hilbert4 along row, column - aos 16+1 4" in shown
    assert "8x8 hilbert4 along row, column xor4x2 aos - 4" in shown
