"""An array of six extents, from the declaration to a result; seven are rejected."""

from pathlib import Path

import numpy as np
from demo_family import at, refusal

from autotune.compile.cache import Cache, default_root
from autotune.declaration.family import load_family
from autotune.declaration.workload import bind
from autotune.device.cpu.backend import CpuBackend
from autotune.device.resident import run_each

FAMILY = """\
schema: 1
family: six
source: six.cu
extents:
  depth: {value: f * levels}
options:
  levels: {values: [1, 2], default: 2}
data:
  x: {role: input, type: float32, shape: [a, b, c, d, e, f]}
  x_read: {role: view, of: x, converted: true, type: float32, shape: [a, b, c, d, e, f]}
  y: {role: output, type: float32, shape: [f, e, d, c, b, a]}
  z: {role: output, type: float32, shape: [depth]}
kernels:
  six: {arguments: [x_read, y, z], grid: [a * b], block: [32]}
policies:
  x_axes:
    layout: axes
    data: [x]
    values: [given, turned]
    means: {given: [a, b, c, d, e, f], turned: [f, d, b, e, c, a]}
    default: given
  read_axes: {layout: axes, data: [x_read], values: [same, other], means: {other: [b, c, f, e, a, d]}, default: same}
  y_padding: {layout: padding, data: [y], values: [1, 4], default: 1}
"""
SOURCE = """\
#include "autotune/array.cuh"
template <class Policy>
__global__ void six(typename Policy::x_read x, typename Policy::y y, typename Policy::z z) {
  const unsigned i = blockIdx.x / x.extent(1), j = blockIdx.x % x.extent(1);
  for (unsigned n = threadIdx.x; n < x.extent(2) * x.extent(3) * x.extent(4) * x.extent(5); n += 32) {
    const unsigned f = n % x.extent(5), left = n / x.extent(5), e = left % x.extent(4);
    const unsigned d = left / x.extent(4) % x.extent(3), c = left / x.extent(4) / x.extent(3);
    y.store(x.load(i, j, c, d, e, f), f, e, d, c, j, i);
  }
  if (blockIdx.x == 0)
    for (unsigned n = threadIdx.x; n < z.extent(0); n += 32) z.store(static_cast<float>(n), n);
}
"""


def test_six_extents_in_every_layout(tmp_path: Path) -> None:
    (tmp_path / "family.yaml").write_text(FAMILY)
    (tmp_path / "six.cu").write_text(SOURCE)
    family = load_family(tmp_path)
    x = np.arange(2 * 3 * 2 * 3 * 2 * 5, dtype=np.float32).reshape(2, 3, 2, 3, 2, 5)
    inputs = bind(family, {"x": x}, {}, {})
    assert [bind(family, {"x": x}, {"levels": n}, {}).sizes["depth"] for n in (1, 2)] == [5, 10]
    texts = ("control", "x_axes=turned,y_padding=4", "read_axes=other", "x_axes=turned,read_axes=other")
    configurations = [family.space.configuration(text) for text in texts]
    with CpuBackend(1) as backend:
        for found in run_each(family, configurations, inputs, backend, Cache(default_root())):
            np.testing.assert_array_equal(found["y"], x.transpose())
            assert found["z"].tolist() == [*range(10)]


def test_seven_extents_are_refused(tmp_path: Path) -> None:
    assert "is too long" in refusal(tmp_path, at("data", "y", "shape", value=["n"] * 7))
