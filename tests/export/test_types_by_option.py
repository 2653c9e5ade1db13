"""Types that depend on an option: everything downstream has those of the options that were chosen."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autotune
from autotune.authoring.lint import lint
from autotune.compile.cache import Cache, default_root
from autotune.compile.variant import Variant, default_header
from autotune.declaration.family import load_family
from autotune.declaration.workload import bind
from autotune.device.cpu.backend import CpuBackend
from autotune.device.resident import run_once
from autotune.errors import AutotuneError, WorkloadError
from autotune.export.choices import select_entries
from autotune.measure.reference import compute_expected
from autotune.measure.verify import difference

REAL = "float64 if precision == 'float64' else float32"
FAMILY = f"""\
schema: 1
family: scaled
source: scaled.cu
options:
  other: {{values: [1, 2], default: 1}}
  precision: {{values: [float32, float64], default: float32}}
scalars:
  factor: {{type: "{REAL}", default: 0.1}}
data:
  x: {{role: input, type: "{REAL}", shape: [n, m]}}
  weight: {{role: input, type: "{REAL}", shape: [n], access: pointer}}
  kept: {{role: scratch, type: "{REAL}", shape: [n, m]}}
  y: {{role: output, type: "{REAL}", shape: [n, m]}}
structs:
  all: [factor, x, weight, kept]
kernels:
  keep: {{arguments: all, grid: [n], block: [32]}}
  scale: {{arguments: [kept, y, weight, factor], grid: [n], block: [32]}}
policies:
  kept_axes:
    {{layout: axes, data: [kept], values: [rows, columns], means: {{rows: [n, m], columns: [m, n]}}, default: rows}}
  kept_padding: {{layout: padding, data: [kept], values: [1, 8], default: 1}}
tolerance: {{relative: "1e-14 if precision == 'float64' else 1e-6"}}
"""
SOURCE = """\
#include "autotune/array.cuh"
enum class Precision { float32, float64 };
template <class Policy>
__global__ void keep(typename Policy::all a) {
  for (unsigned i = threadIdx.x; i < a.x.extent(1); i += blockDim.x)
    a.kept.store(a.x.load(blockIdx.x, i) * a.factor, blockIdx.x, i);
}
template <class Policy>
__global__ void scale(typename Policy::kept kept, typename Policy::y y, typename Policy::weight weight,
                      typename Policy::factor factor) {
  for (unsigned i = threadIdx.x; i < y.extent(1); i += blockDim.x)
    y.store(kept.load(blockIdx.x, i) * weight[blockIdx.x] + factor, blockIdx.x, i);
}
"""
PYTHON = """\
import numpy as np

def reference(arrays, options):
    x, weight, factor = arrays["x"], arrays["weight"], options["factor"]
    assert x.dtype == weight.dtype == np.dtype(options["precision"])
    return {"y": x.astype(float) * factor * weight[:, None].astype(float) + factor}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "family.yaml").write_text(FAMILY)
    (tmp_path / "scaled.cu").write_text(SOURCE)
    (tmp_path / "family.py").write_text(PYTHON)
    return tmp_path


def given() -> dict[str, Any]:
    random = np.random.default_rng(3)
    return {"x": random.random((5, 11)), "weight": random.random(5)}


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_every_stage_has_the_types_of_the_options(folder: Path, precision: str) -> None:
    family = load_family(folder)
    inputs = bind(family, given(), {"precision": precision}, {})
    assert {array.dtype.name for array in inputs.arrays.values()} == {precision}
    expected, _ = compute_expected(family, inputs, default_root())
    assert expected["y"].dtype == precision
    backend = CpuBackend(1)
    for configuration in family.space.configurations():
        variant = Variant.make(family, configuration, inputs.options)
        assert {layout.data.dtype.name for layout in variant.layouts.values()} == {precision}
        found = run_once(family, configuration, inputs, backend, Cache(default_root()))["y"]
        assert found.dtype == precision
        within = family.tolerances(inputs.names(configuration))
        assert within["y"].relative == (1e-14 if precision == "float64" else 1e-6)
        assert difference("y", found, expected["y"], within) == ""


def test_a_call_gives_what_its_options_say(folder: Path) -> None:
    with pytest.warns(UserWarning, match="untuned"):
        scaled = autotune.load(folder, device="cpu")
    arrays = given()
    wide, narrow = scaled(**arrays, precision="float64"), scaled(**arrays)
    assert (wide.dtype, narrow.dtype) == (np.float64, np.float32)
    np.testing.assert_allclose(wide, arrays["x"] * 0.1 * arrays["weight"][:, None] + 0.1, rtol=1e-14)
    np.testing.assert_allclose(narrow, wide, rtol=1e-6)
    with scaled.prepare(weight=arrays["weight"], precision="float64") as prepared:
        np.testing.assert_array_equal(prepared(x=arrays["x"]), wide)
        prepared.refill(weight=2 * arrays["weight"])
        np.testing.assert_allclose(prepared(x=arrays["x"]) - 0.1, 2 * (wide - 0.1), rtol=1e-12)
        with pytest.raises(
            WorkloadError, match="weight: it is float64, and with these options it is float32"
        ):
            prepared(x=arrays["x"], precision="float32")


def test_the_types_are_those_of_the_struct_and_of_its_names(folder: Path) -> None:
    family = load_family(folder)
    assert family.apply_types({"precision": "float64"}).apply_types({}) is family
    assert family.space_digest == family.apply_types({"precision": "float64"}).space_digest
    texts = [
        Variant.make(family, family.space.control, family.choose_options({"precision": name})).source.struct
        for name in ("float32", "float64")
    ]
    for text, real in zip(texts, ("float", "double"), strict=True):
        assert f"  using weight = const {real}*;\n  using factor = {real};\n" in text
        assert f"    {real} factor;\n" in text
    assert "  using factor = float;\n" in default_header(family)
    assert not [found for found in lint(str(folder)) if found.rule.startswith("argument")]
    with pytest.raises(AutotuneError, match="cannot be exported: the type of x depends on an option"):
        select_entries(family, [])


MISTAKES = [
    ("float64 if precison == 'float64' else float32", "family scaled: x: type: unknown name 'precison'"),
    ("float64 if n == 3 else float32", "family scaled: x: type: unknown name 'n'"),
    ("double if precision == 'float64' else float32", "unknown name 'double'"),
    ("3 if precision == 'float64' else float32", "is 3 with precision=float64; it can be int8, "),
    (
        "'float16' if precision == 'float64' else float32",
        "is 'float16' with precision=float64; it can be int8",
    ),
    ("double", "'double' is not one of .*several numbers together"),
]


@pytest.mark.parametrize(("text", "said"), MISTAKES)
def test_a_type_that_is_none_is_refused(folder: Path, text: str, said: str) -> None:
    (folder / "family.yaml").write_text(
        FAMILY.replace(f'input, type: "{REAL}", shape: [n, m]', f'input, type: "{text}", shape: [n, m]')
    )
    with pytest.raises(AutotuneError, match=said):
        load_family(folder)


def test_what_no_type_allows_is_found_for_every_option(folder: Path) -> None:
    """An image may be interpolated where it is float32, and the other precision is not."""
    text = FAMILY.replace(
        f'input, type: "{REAL}", shape: [n, m]',
        f'input, type: "{REAL}", image: {{filter: linear}}, shape: [n, m]',
    )
    (folder / "family.yaml").write_text(text)
    with pytest.raises(AutotuneError, match=r"filter: linear is for float32, .* and this holds float64"):
        load_family(folder)
