"""Outputs of a configuration with an order, on a device that lends (lending.py): only what the order changes goes
through the host."""

from pathlib import Path

import numpy as np
import pytest
from lending import Array, World, loaded, make_world

FAMILY = """\
schema: 1
family: finder
source: finder.cu
data:
  values: {role: input, type: int32, shape: [slot]}
  place: {role: input, type: uint32, link: slot, shape: [query]}
  found: {role: output, type: int32, shape: [query]}
  twice: {role: output, type: int32, shape: [slot]}
  next: {role: output, type: uint32, link: slot, shape: [query]}
kernels:
  finder: {arguments: [values, place, found, twice, next], grid: ["ceil_div(max(slot, query), 64)"], block: [64]}
policies:
  order: {layout: order, data: [slot], values: [given, reversed], default: reversed}
"""
MODULE = """\
import numpy as np
orders = {"reversed": lambda arrays: np.arange(arrays["values"].size)[::-1]}
"""
SOURCE = """\
#include "autotune/array.cuh"
template <class Policy>
__global__ void finder(typename Policy::values values, typename Policy::place place, typename Policy::found found,
                       typename Policy::twice twice, typename Policy::next next) {
  const unsigned i = blockIdx.x * 64 + threadIdx.x;
  if (i < twice.extent(0)) twice.store(2 * values.load(i), i);
  if (i >= found.extent(0)) return;
  found.store(values.load(place.load(i)), i);
  next.store(place.load(i), i);
}
"""


@pytest.mark.parametrize("order", ["given", "reversed"])
def test_only_outputs_that_an_order_changes_go_through_the_host(
    order: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world: World = make_world(monkeypatch)
    (tmp_path / "family.yaml").write_text(FAMILY.replace("default: reversed", f"default: {order}"))
    (tmp_path / "family.py").write_text(MODULE)
    (tmp_path / "finder.cu").write_text(SOURCE)
    values, place = np.arange(10, 80, dtype=np.int32), np.array([3, 69, 3, 0, 7], np.uint32)
    expected = {"found": values[place], "twice": 2 * values, "next": place}
    with loaded(tmp_path) as kernel, kernel.prepare(values, place) as handle:
        outs = {name: Array(np.zeros_like(right)) for name, right in expected.items()}
        for _ in range(2):
            world.gpu.seen.clear()
            handle(out=outs)
            for name, right in expected.items():
                np.testing.assert_array_equal(outs[name].memory, right)
                outs[name].memory[:] = 9
        assert world.gpu.seen.count("upload") == {"given": 0, "reversed": 2}[order]
        for name, made in handle().items():
            np.testing.assert_array_equal(made, expected[name])
