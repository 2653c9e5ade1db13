"""A family whose policies group the fields of records: every grouping, one field alone, what a GPU's compiler makes."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from cpu_results import backend, compiled, results

from autotune.compile.batches import compile_batch
from autotune.compile.cache import Cache
from autotune.compile.nvrtc import Nvrtc, ptx
from autotune.compile.toolchain import Compiled
from autotune.compile.variant import Variant, batch
from autotune.declaration import Configuration, Family, bind, load_family
from autotune.device.cpu.backend import CpuBackend
from autotune.errors import AutotuneError

__all__ = ["backend"]

DECLARATION = """
schema: 1
family: pulled
source: pulled.cu
default_workload: small
reference: control
data:
  bodies:
    role: input
    record: Body
    fields: {x: float32, y: float32, mass: float64, charge: float64}
    shape: [body]
  moved:
    role: output
    record: Body
    fields: {x: float32, y: float32, mass: float64, charge: float64}
    shape: [body]
  weight: {role: output, type: float64, shape: [body]}
kernels:
  pulled: {arguments: [bodies, moved, weight], grid: ["ceil_div(body, 32)"], block: [32]}
policies:
  bodies_records:
    layout: records
    data: [bodies]
    values: [aos, x+y+mass-charge, x+y-mass+charge, x+charge-y+mass, x+y-mass-charge, x-y-mass+charge, x-y-mass-charge]
    default: aos
  moved_records:
    layout: records
    data: [moved]
    values: [whole, hot_cold]
    default: whole
    means: {whole: aos, hot_cold: x+y-charge+mass}
  memory: {layout: memory, data: [bodies], values: [global, readonly, texture], default: global}
"""
WORKLOAD = """
schema: 1
workload: small
family: pulled
arrays:
  bodies: {npy: bodies.npy}
"""
SOURCE = """
#include "autotune/field_access.cuh"

struct Body {
  float x, y;
  double mass, charge;
};

template <class Policy>
__global__ void pulled(typename Policy::bodies bodies, typename Policy::moved moved, typename Policy::weight weight) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= bodies.extent(0)) return;
  Body body = bodies.load(i);
  body.x += 1;
  moved.store(body, i);
  autotune::store_field<&Body::y>(moved, 2 * body.y, i);
  weight.store(autotune::load_field<&Body::mass>(bodies, bodies.extent(0) - 1 - i), i);
}
"""


@pytest.fixture
def pulled(tmp_path: Path) -> Family:
    (tmp_path / "family.yaml").write_text(DECLARATION)
    (tmp_path / "pulled.cu").write_text(SOURCE)
    return load_family(str(tmp_path))


def test_each_gives_what_numpy_gives(pulled: Family, backend: CpuBackend) -> None:
    bodies = np.zeros(77, pulled.data["bodies"].dtype)
    for k, name in enumerate(bodies.dtype.names or ()):
        bodies[name] = np.arange(77) + 100 * k
    expected = bodies.copy()
    expected["x"] += 1
    expected["y"] *= 2
    groups, *others = (policy.values for policy in pulled.space.policies)
    chosen = zip(groups, *(itertools.cycle(values) for values in others), strict=False)
    names = [policy.name for policy in pulled.space.policies]
    variants = [Variant(pulled, Configuration(dict(zip(names, values, strict=True)))) for values in chosen]
    binaries = compiled(backend, variants, 16, optimize="-Og")
    for variant, found in results(backend, binaries, bind(pulled, {"bodies": bodies}, {}, {})):
        assert found["moved"].tobytes() == expected.tobytes(), variant.configuration.id
        np.testing.assert_array_equal(found["weight"], bodies["mass"][::-1], err_msg=variant.configuration.id)


@pytest.mark.nvrtc
def test_a_gpu_s_compiler_takes_them(pulled: Family, tmp_path: Path) -> None:
    variants = tuple(Variant(pulled, c) for c in pulled.space.configurations()[::5])
    for made in compile_batch(batch(pulled, variants), Nvrtc("sm_90"), Cache(tmp_path / "cache")):
        assert isinstance(made, Compiled), made
        assert all(figures["local_bytes"] == 0 for figures in made.figures.values())


def test_only_what_needs_the_header_includes_it(pulled: Family) -> None:
    def headers(configuration: str) -> tuple[str, ...]:
        return Variant(pulled, pulled.space.configuration(configuration)).headers

    assert headers("control") == ()
    assert headers("moved_records=hot_cold") == ("autotune/fields.cuh",)
    assert "autotune/fields.cuh" in pulled.sources
    included = pytest.importorskip("autotune.export.program").list_included
    assert "autotune/fields.cuh" in included(pulled)


def test_a_library_that_stores_them_otherwise_makes_another_space(
    pulled: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autotune.declaration.family_folder.dimension_digest", lambda name: f"other {name}")
    assert load_family(str(pulled.folder)).space_digest != pulled.space_digest


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("hot_cold: x+y-charge+mass", "hot_cold: x+y-mass", "field charge is in no group"),
        ("hot_cold: x+y-charge+mass", "hot_cold: x+y+z-mass", "unknown field 'z'"),
        ("data: [moved]", "data: [weight]", "weight has no fields to group"),
    ],
)  # fmt: skip
def test_what_is_refused(pulled: Family, before: str, after: str, said: str) -> None:
    assert before in DECLARATION
    (pulled.folder / "family.yaml").write_text(DECLARATION.replace(before, after))
    with pytest.raises(AutotuneError, match=re.escape(said)):
        load_family(str(pulled.folder))


ALONE = """
#include "autotune/field_access.cuh"

struct Body {
  float x, y;
  double mass, charge;
};

template <class Policy>
__global__ void pulled(typename Policy::bodies bodies, typename Policy::moved moved, typename Policy::weight weight) {
  autotune::store_field<&Body::y>(moved, 1.0f, threadIdx.x);
  weight.store(autotune::load_field<&Body::mass>(bodies, threadIdx.x), threadIdx.x);
}
"""


@pytest.mark.nvrtc
def test_one_field_is_one_access_and_a_group_the_widest(pulled: Family) -> None:
    def accesses(text: str, configuration: str) -> list[str]:
        (pulled.folder / "pulled.cu").write_text(text)
        family = load_family(str(pulled.folder))
        made = ptx(
            batch(family, (Variant(family, family.space.configuration(configuration)),)), Nvrtc("sm_90")
        )
        return re.findall(r"(?:ld|st)\.global\S*", made)

    for configuration in (
        "memory=readonly",
        "memory=readonly,bodies_records=x+y-mass+charge,moved_records=hot_cold",
    ):
        store, load, weight = accesses(ALONE, configuration)
        assert load in {"ld.global.nc.f64", "ld.global.nc.b64", "ld.global.nc.u64", "ld.global.nc.v2.u32"}, (
            load
        )
        assert store.rpartition(".")[2] in {"b32", "u32", "f32"} and ".v" not in store
        assert weight.startswith("st.global")
    whole = SOURCE.replace("autotune::load_field<&Body::mass>(bodies, bodies.extent(0) - 1 - i)", "0.0")
    loads = [
        a for a in accesses(whole, "memory=readonly,bodies_records=x+y-mass+charge") if a.startswith("ld")
    ]
    assert [re.sub(r"[ubf](?=\d)", "b", load) for load in loads] in (
        ["ld.global.nc.v2.b32", "ld.global.nc.v4.b32"],
        ["ld.global.nc.b64", "ld.global.nc.v4.b32"],
    )
