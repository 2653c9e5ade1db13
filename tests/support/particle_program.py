"""A small program with kernels that disagree: a force along the last index, a move point by point, an energy."""

from pathlib import Path
from typing import Any

import yaml

_FORCES = """
#include "autotune/array.cuh"
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    forces(typename Policy::points points, typename Policy::force force, float strength) {
  const unsigned i = blockIdx.x * Policy::block_size + threadIdx.x;
  if (i >= points.extent(0)) return;
  float x[3];
  for (unsigned k = 0; k < 3; ++k) x[k] = points.load(i, k);
  for (unsigned k = 0; k < 3; ++k) force.store(-strength * x[k] + 0.5f * x[(k + 1) % 3], i, k);
}
"""

_MOVE = """
#include "autotune/array.cuh"
template <class Policy>
__global__ void __launch_bounds__(64)
    move(typename Policy::x x, typename Policy::v v, typename Policy::f f, typename Policy::x_next x_next,
         typename Policy::v_next v_next, float dt) {
  const unsigned i = blockIdx.x * 64 + threadIdx.x;
  if (i >= x.extent(0)) return;
  for (unsigned k = 0; k < 3; ++k) {
    const float speed = v.load(i, k) + dt * f.load(i, k);
    v_next.store(speed, i, k);
    x_next.store(x.load(i, k) + dt * speed, i, k);
  }
}
"""

_ENERGY = """
#include "autotune/array.cuh"
template <class Policy>
__global__ void __launch_bounds__(64) energy(typename Policy::v v, typename Policy::each each) {
  const unsigned i = blockIdx.x * 64 + threadIdx.x;
  if (i >= v.extent(0)) return;
  float sum = 0;
  for (unsigned k = 0; k < 3; ++k) sum += v.load(i, k) * v.load(i, k);
  each.store(0.5f * sum, i);
}
"""


def _points(role: str) -> dict[str, Any]:
    return {"role": role, "type": "float32", "shape": ["count", "axis"]}


def _axes(*data: str) -> dict[str, Any]:
    means = {"aos": ["count", "axis"], "soa": ["axis", "count"]}
    return {"layout": "axes", "data": [*data], "values": ["aos", "soa"], "means": means, "default": "aos"}


_FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "forces": (
        _FORCES,
        {
            "scalars": {"strength": {"type": "float32", "default": 1}},
            "data": {"points": _points("input"), "force": _points("output")},
            "kernels": {
                "forces": {
                    "arguments": ["points", "force", "strength"],
                    "grid": ["ceil_div(count, block_size)"],
                    "block": ["block_size"],
                }
            },
            "policies": {
                "axes": _axes("points"),
                "force_axes": _axes("force"),
                "memory": {
                    "layout": "memory",
                    "data": ["points"],
                    "values": ["global", "texture"],
                    "default": "global",
                },
                "block_size": {"values": [32, 64], "default": 64},
            },
        },
    ),
    "move": (
        _MOVE,
        {
            "scalars": {"dt": {"type": "float32", "default": 0.01}},
            "data": {
                **{name: _points("input") for name in ("x", "v", "f")},
                **{name: _points("output") for name in ("x_next", "v_next")},
            },
            "kernels": {
                "move": {
                    "arguments": ["x", "v", "f", "x_next", "v_next", "dt"],
                    "grid": ["ceil_div(count, 64)"],
                    "block": [64],
                }
            },
            "policies": {"axes": _axes("x", "x_next"), "rest": _axes("v", "v_next", "f")},
        },
    ),
    "energy": (
        _ENERGY,
        {
            "data": {
                "v": _points("input"),
                "each": {"role": "output", "type": "float32", "shape": ["count"]},
            },
            "kernels": {
                "energy": {"arguments": ["v", "each"], "grid": ["ceil_div(count, 64)"], "block": [64]}
            },
            "policies": {"axes": _axes("v")},
        },
    ),
}

PROGRAM: dict[str, Any] = {
    "schema": 1,
    "program": "particles",
    "default_workload": "tiny",
    "scalars": {"dt": 0.125, "steps": 6},
    "arrays": {"positions": "state", "velocities": "state", "forces": "scratch", "energies": "output"},
    "steps": [
        {
            "repeat": "steps",
            "steps": [
                {"call": "forces", "arrays": {"points": "positions", "force": "forces"}},
                {
                    "call": "move",
                    "arrays": {"x": "positions", "v": "velocities", "f": "forces", "x_next": "positions",
                               "v_next": "velocities"},
                    "scalars": {"dt": "dt"},
                },
                {"call": "energy", "arrays": {"v": "velocities", "each": "energies"}, "every": 3},
                {"read": ["energies"], "every": 3},
            ],
        }
    ],
    "presets": {
        "aos": {"forces": {"axes": "aos", "force_axes": "aos"}, "move": {"axes": "aos", "rest": "aos"},
                "energy": {"axes": "aos"}},
        "soa": {"forces": {"axes": "soa", "force_axes": "soa"}, "move": {"axes": "soa", "rest": "soa"},
                "energy": {"axes": "soa"}},
    },
}  # fmt: skip

_WORKLOAD: dict[str, Any] = {
    "schema": 1,
    "workload": "tiny",
    "program": "particles",
    "arrays": {
        "positions": {"random": "normal", "shape": [70, 3], "seed": 1},
        "velocities": {"random": "normal", "shape": [70, 3], "seed": 2},
    },
}


def write_families(folder: Path) -> None:
    """The folders of the families."""
    for name, (source, told) in _FAMILIES.items():
        place = folder / name
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{name}.cu").write_text(source)
        common = {"schema": 1, "family": name, "source": f"{name}.cu", "reference": "control"}
        tolerance = {"tolerance": {"relative": 1e-5, "absolute": 1e-6}}
        (place / "family.yaml").write_text(yaml.safe_dump({**common, **told, **tolerance}, sort_keys=False))


def write_program(folder: Path, content: dict[str, Any] | None = None) -> Path:
    """The program's folder, with its families and a workload."""
    write_families(folder)
    (folder / "program.yaml").write_text(yaml.safe_dump(content or PROGRAM, sort_keys=False))
    (folder / "workloads").mkdir(exist_ok=True)
    (folder / "workloads" / "tiny.yaml").write_text(yaml.safe_dump(_WORKLOAD, sort_keys=False))
    return folder
