"""Calls of a configuration with an order, on a device that lends (lending.py): only what the order changes goes
through the host, and what was prepared is ordered once."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lending import Array, World, loaded, make_world

from autotune.errors import UsageError

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
DECLARED = "means: {declared: {order: sorted, key: values, descending: true}}, default: declared"
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


@pytest.mark.parametrize("order", ["given", "reversed", "declared"])
def test_only_outputs_that_an_order_changes_go_through_the_host(
    order: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world: World = make_world(monkeypatch)
    text = FAMILY.replace("default: reversed", f"default: {order}")
    if order == "declared":
        text = text.replace("[given, reversed]", "[given, declared]").replace("default: declared", DECLARED)
    else:
        (tmp_path / "family.py").write_text(MODULE)
    (tmp_path / "family.yaml").write_text(text)
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
        assert world.gpu.seen.count("upload") == (0 if order == "given" else 2)
        for name, made in handle().items():
            np.testing.assert_array_equal(made, expected[name])


SCALED = """\
schema: 1
family: scaled
source: scaled.cu
data:
  values: {role: input, type: int32, shape: [slot]}
  place: {role: input, type: uint32, link: slot, shape: [query]}
  factor: {role: input, type: int32, shape: [query]}
  found: {role: output, type: int32, shape: [query]}
kernels:
  scaled: {arguments: [values, place, factor, found], grid: ["ceil_div(query, 64)"], block: [64]}
policies:
  order: {layout: order, data: [slot], values: [given, by_factor], default: by_factor}
"""
BY_FACTOR = """\
import numpy as np
asked = []
def by_factor(arrays):
    asked.append(int(arrays["factor"].sum()))  # of whatever comes with the first call
    return np.roll(np.arange(arrays["values"].size), asked[0])
orders = {"by_factor": by_factor}
"""
SCALES = """\
#include "autotune/array.cuh"
template <class Policy>
__global__ void scaled(typename Policy::values values, typename Policy::place place, typename Policy::factor factor,
                       typename Policy::found found) {
  const unsigned i = blockIdx.x * 64 + threadIdx.x;
  if (i < found.extent(0)) found.store(factor.load(i) * values.load(place.load(i)), i);
}
"""


@pytest.mark.parametrize("where", ["gpu", "host"])
def test_an_order_of_prepared_arrays_is_made_once_and_what_comes_with_a_call_stays_where_it_is(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world: World = make_world(monkeypatch)
    (tmp_path / "family.yaml").write_text(SCALED)
    (tmp_path / "family.py").write_text(BY_FACTOR)
    (tmp_path / "scaled.cu").write_text(SCALES)
    values, place = np.arange(10, 80, dtype=np.int32), np.array([3, 69, 3, 0, 7], np.uint32)
    with loaded(tmp_path) as kernel, kernel.prepare(values=values, place=place) as handle:
        module: Any = kernel.family.module
        out = Array(np.zeros(len(place), np.int32))
        for call in range(4):
            factor = np.arange(len(place), dtype=np.int32) + call
            world.gpu.seen.clear()
            handle(Array(factor) if where == "gpu" else factor, out=out)
            np.testing.assert_array_equal(out.memory, factor * values[place])
            if call:
                assert world.gpu.seen.count("upload") == (0 if where == "gpu" else 1)
        assert module.asked == [10]
        handle.refill(values=values[::-1])
        handle(Array(factor) if where == "gpu" else factor, out=out)
        np.testing.assert_array_equal(out.memory, factor * values[::-1][place])
    with (
        loaded(tmp_path) as kernel,
        kernel.prepare(place=place) as handle,
    ):  # what is moved comes with the call
        for shift in range(2):
            given = {"values": values + shift, "factor": factor}
            if where == "gpu":
                given = {name: Array(array) for name, array in given.items()}
            handle(**given, out=out)
            np.testing.assert_array_equal(out.memory, factor * (values + shift)[place])


def test_a_capture_takes_an_order_that_was_made_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world: World = make_world(monkeypatch)
    world.stream = 7
    (tmp_path / "family.yaml").write_text(SCALED)
    (tmp_path / "family.py").write_text(BY_FACTOR)
    (tmp_path / "scaled.cu").write_text(SCALES)
    values, place = np.arange(10, 80, dtype=np.int32), np.array([3, 69, 3, 0, 7], np.uint32)
    factor = Array(np.arange(len(place), dtype=np.int32))
    factor.stream = 7
    with loaded(tmp_path) as kernel, kernel.prepare(values=values, place=place) as handle:
        world.gpu.capture = 31
        with pytest.raises(UsageError, match="the host makes an order of the arrays once: call it before"):
            handle(factor)
        world.gpu.capture = 0
        handle(factor)
        world.gpu.capture = 31
        world.gpu.seen.clear()
        np.testing.assert_array_equal(handle(factor).memory, factor.memory * values[place])
        assert "upload" not in world.gpu.seen
