"""A family whose policies reverse extents: from its YAML to results on the cpu device, a dispatched call, an export."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from cpu_results import backend, compiled, results

import autotune
from autotune.cli.commands import main
from autotune.compile.variant import Variant
from autotune.declaration.family import load_family
from autotune.declaration.family_folder import Family
from autotune.declaration.workload import bind
from autotune.device.cpu.backend import CpuBackend
from autotune.errors import UnknownName
from autotune.layout import layout_of

__all__ = ["backend"]

DECLARATION = """
schema: 1
family: shifted
source: shifted.cu
reference: control
data:
  x: {role: input, type: float32, shape: [row, column]}
  y: {role: output, type: float32, shape: [row, column], layout: {reversed: [row]}}
kernels:
  shifted: {arguments: [x, y], grid: ["ceil_div(column, 32)", row], block: [32]}
policies:
  reversed: {layout: reversed, data: [x], values: [none, all, rows], means: {rows: [row]}, default: all}
  swizzle: {layout: swizzle, data: [x], values: [none, xor4x2], default: none}
  tiles: {layout: tiles, data: [x], values: [none, 3x5], default: none}
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
    return load_family(str(tmp_path))


def test_each_gives_what_numpy_gives(shifted: Family, backend: CpuBackend) -> None:
    x = np.random.default_rng(3).normal(size=(13, 37)).astype(np.float32)
    expected = 2 * x - np.roll(x, (-1, -3), (0, 1))
    variants = [Variant(shifted, c) for c in shifted.space.configurations()]
    assert len(variants) == 12
    binaries = compiled(backend, variants, 12, optimize="-Og")
    for variant, found in results(backend, binaries, bind(shifted, {"x": x}, {}, {})):
        np.testing.assert_array_equal(found["y"], expected, err_msg=variant.configuration.id)


def test_a_call_is_dispatched(shifted: Family) -> None:
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    with (
        pytest.warns(UserWarning, match="running an untuned configuration"),
        autotune.load(str(shifted.folder), device="cpu") as kernel,
    ):
        np.testing.assert_array_equal(kernel(x), 2 * x - np.roll(x, (-1, -3), (0, 1)))


def test_it_is_stored_backwards(shifted: Family) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    stored = layout_of(shifted.data["x"], {"reversed": "all"}).apply(x)
    assert stored.buffer is not None and stored.buffer.view(np.float32).tolist() == [5, 4, 3, 2, 1, 0]


@pytest.mark.parametrize("choice", [{}, {"swizzle": "xor2x2"}, {"tiles": "2x2", "axes": ["column", "row"]}])
def test_an_export_stores_the_same_bytes(shifted: Family, tmp_path: Path, choice: dict[str, object]) -> None:
    members = pytest.importorskip("autotune.export.parts").members
    layout = layout_of(shifted.data["x"], {"reversed": ["column"], **choice})
    told = "".join(f"  layout.{name} = {value};\n" for name, value in members(layout))
    shutil.copytree(Path(autotune.__file__).parent / "export" / "cpp", tmp_path / "tuned")
    (tmp_path / "main.cpp").write_text(
        '#include <cstdio>\n#include <numeric>\n#include "tuned/layout.h"\nint main() {\n  tuned::Layout layout;\n'
        f"{told}  std::vector<float> x(15);\n  std::iota(x.begin(), x.end(), 0.0f);\n"
        "  const tuned::Bytes bytes = tuned::stored(layout, {3, 5}, x.data());\n"
        "  std::fwrite(bytes.data(), 1, bytes.size(), stdout);\n}\n"
    )
    subprocess.run(["g++", "-std=c++17", "-I.", "-o", "main", "main.cpp"], cwd=tmp_path, check=True)
    found = subprocess.run([str(tmp_path / "main")], check=True, capture_output=True).stdout
    stored = layout.apply(np.arange(15, dtype=np.float32).reshape(3, 5))
    assert stored.buffer is not None and found == stored.buffer.tobytes()


def test_show_tells_it_and_what_is_no_extent_is_refused(
    shifted: Family, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(shifted.folder), "reversed=rows", "--arch", "sm_90"]) in (0, 3)
    assert "reversed" in capsys.readouterr().out
    with pytest.raises(UnknownName, match="unknown reversed layout"):
        layout_of(shifted.data["x"], {"reversed": ["depth"]})
