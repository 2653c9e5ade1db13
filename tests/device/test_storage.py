"""Kernels that read and write numbers held in fewer bits, on the cpu device and on a GPU: the host's rounding, nothing
else."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from fakes import write_family

from autotune.compile import Cache, default_root
from autotune.declaration import Family, Inputs, load_family
from autotune.device import CpuBackend, open_backend, run_each
from autotune.layout import STORAGES, Data, Field, Layout

STORED = """\
schema: 1
family: doubler
source: doubler.cu
default_workload: small
data:
  x: {role: input, type: float32, shape: [m, n]}
  pairs: {role: input, record: Pair, fields: {low: float32, high: float32}, shape: [n]}
  y: {role: output, type: float32, shape: [m, n], range: [-40, 40]}
kernels:
  doubler: {arguments: [x, pairs, y], grid: ["ceil_div(m * n, 64)"], block: [64]}
policies:
  x_storage: {layout: storage, data: [x], default: float32, values: STORAGES}
  pair_storage: {layout: storage, data: [pairs], values: [float32, float16, scaled_int16], default: float32}
  memory: {layout: memory, data: [x, pairs], values: [global, readonly, texture], default: global}
  records: {layout: records, data: [pairs], values: [aos, soa], default: aos}
  y_storage: {layout: storage, data: [y], values: [float32, float16, bfloat16, scaled_int8], default: float32}
tolerance: {y: {absolute: 1}}
reference: control
""".replace("STORAGES", f"[{', '.join(STORAGES)}]")
SOURCE = """\
#include "autotune/array.cuh"
struct Pair { float low, high; };
template <class Policy>
__global__ void doubler(typename Policy::x x, typename Policy::pairs pairs, typename Policy::y y) {
  const unsigned k = blockIdx.x * 64 + threadIdx.x, i = k / x.extent(1), j = k % x.extent(1);
  if (i >= x.extent(0)) return;
  const Pair pair = pairs.load(j);
  y.store(x.load(i, j) * pair.low + pair.high, i, j);
}
"""


def stored(array: np.ndarray[Any, Any], name: str, **more: Any) -> np.ndarray[Any, Any]:
    """What is left of an array of float32 that was stored so."""
    rank = array.ndim
    declared = Data(name="a", role="input", fields=(Field("", "float32"),), shape=("i", "j")[:rank], **more)
    layout = Layout(data=declared, storage=STORAGES[name] if name != "float32" else None)
    return layout.restore(layout.apply(array), array.shape)


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Family:
    return load_family(write_family(tmp_path_factory.mktemp("stored") / "doubler", STORED, SOURCE))


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def backend(request: pytest.FixtureRequest) -> Iterator[Any]:
    with closing(CpuBackend(1) if request.param == "cpu" else open_backend("cuda")) as made:
        yield made


def test_every_storage_of_inputs_and_outputs(
    family: Family, backend: Any, compile_cache: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTOTUNE_CACHE", compile_cache)
    random = np.random.default_rng(1)
    x = random.normal(0, 3, (3, 70)).astype(np.float32)
    x[1] /= 50  # a row of its own scale
    pairs = random.normal(0, 2, (70, 2)).astype(np.float32)
    records = pairs.view(family.data["pairs"].dtype).reshape(-1)
    inputs = Inputs.make(family, {"x": x, "pairs": records}, {}, {})
    asked = [
        *(f"x_storage={name}" for name in STORAGES),
        *(
            f"x_storage={name},memory={memory}"
            for name in ("float8_e4m3", "scaled_int8_by_row", "scaled_int16")
            for memory in ("readonly", "texture")
        ),
        *(
            f"pair_storage={name},records={way}"
            for name in ("float16", "scaled_int16")
            for way in ("aos", "soa")
        ),
        *(f"y_storage={name}" for name in ("float16", "bfloat16", "scaled_int8")),
    ]
    configurations = [family.space.configuration(text) for text in asked]
    made = run_each(family, configurations, inputs, backend, Cache(default_root()))
    for configuration, outputs in zip(configurations, made, strict=True):
        one = stored(x, str(configuration["x_storage"]))
        two = stored(pairs, str(configuration["pair_storage"]))
        exact = one * two[:, 0] + two[:, 1]
        expected = stored(exact, str(configuration["y_storage"]), low=-40.0, high=40.0)
        assert outputs["y"].dtype == np.float32
        # A GPU makes one rounding of a product and a sum, which is another number half of the time.
        if backend.device.kind == "cpu":
            np.testing.assert_array_equal(outputs["y"], expected, err_msg=configuration.id)
        else:
            step = {"float32": 5e-6, "float16": 0.032, "bfloat16": 0.26, "scaled_int8": 0.32}
            atol = step[str(configuration["y_storage"])]
            np.testing.assert_allclose(outputs["y"], expected, atol=atol, rtol=0, err_msg=configuration.id)
