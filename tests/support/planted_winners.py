"""Faults that the swept input and smaller ones do not show, and some that every verified run shows: of one kernel that
is right, each value of ``fault`` an accuracy class of its own, so that each wins in its class. What wins may enter the
policy file, and is proved on more than other finalists."""

from dataclasses import dataclass
from pathlib import Path

__all__ = ["PLANTED", "Planted", "write"]

SIZE = 60000
LENGTH = "if (i < n) length.store(value, i);"
BINS = "if (i < n) bins.add(1, static_cast<int>(point * 8.0f) & 7);"
LOWEST = """if (i == 0) {
  unsigned at = 0;
  for (unsigned j = 1; j < n; ++j) if (points.load(j) < points.load(at)) at = j;
  lowest.store(static_cast<int>(at), 0);
}"""
MOST = "if (i < n) most.store(point, i);"
UNSEEN = ("measured", "")


@dataclass(frozen=True)
class Planted:
    """As ``planted.Fault``, but for the parts of the kernel."""

    name: str
    what: str
    length: str = LENGTH
    bins: str = BINS
    lowest: str = LOWEST
    most: str = MOST
    cpu: tuple[str, str] = ("wrong_result", "length: ")


def _length(value: str, before: str = "") -> str:
    return f"{before}if (i < n) length.store({value}, i);"


PLANTED = (
    Planted("right", "nothing, in a class of its own", cpu=UNSEEN),
    # -- other values at the swept sizes, and sizes above them
    Planted(
        "kept_value",
        "keeps a value of its first input for all later ones",
        _length("i == 0 ? value * (kept / point) : value", "if (i == 0 && kept == 0.0f) kept = point;\n"),
        cpu=("wrong_result", "right for the swept sizes, wrong for n=1: length: "),
    ),
    Planted(
        "kept_result",
        "keeps its result for inputs of the same size",
        "if (i < n && i < ROOM) {\n"
        "  if (seen[i] != n) seen[i] = n, memo[i] = value;\n"
        "  length.store(memo[i], i);\n"
        "} else if (i < n) length.store(value, i);",
        cpu=("wrong_result", "wrong for n=60000 and other values: length: "),
    ),
    Planted(
        "swept_size",
        "the swept size compiled in",
        "if (i < n && i < SIZE) length.store(value, i);",
        cpu=("wrong_result", "wrong for n=60001: length: 1 of 60001"),
    ),
    Planted(
        "fixed_grid", "a grid of the blocks that the swept size takes", cpu=("wrong_result", "wrong for n=60065")
    ),
    Planted(
        "grid_cap",
        "a grid of at most the blocks that the swept size takes",
        cpu=("wrong_result", "wrong for n=60065"),
    ),
    Planted(
        "zero_condition",
        "cleared up to the swept size only",
        cpu=("wrong_result", "wrong for n=60001: bins: "),
    ),
    Planted(
        "far_overflow",
        "an index that overflows far above the swept size",
        _length("value + (i * 65521u < i)"),
        cpu=UNSEEN,
    ),
    # -- other scalars and options
    Planted(
        "scalar_ignored",
        "a scalar's swept value compiled in",
        _length("value / factor * 2.0f"),
        cpu=("wrong_result", "wrong for n=37, factor=1.5: length: "),
    ),
    Planted(
        "option_ignored",
        "an option's swept value compiled in",
        _length("value / Policy::times * 2.0f"),
        cpu=("wrong_result", "wrong for n=37, times=3: length: "),
    ),
    # -- state from one call to the next
    Planted(
        "parity",
        "wrong in every second call, by a mark in scratch",
        "if (i < n) {\n"
        "  const bool is_marked = work.load(i) == 4711.0f;\n"
        "  work.store(is_marked ? 0.0f : 4711.0f, i);\n"
        "  length.store(is_marked ? value + 1.0f : value, i);\n"
        "}",
    ),
    Planted(
        "kept_tag",
        "wrong where scratch holds what the call before left",
        "if (i < n) {\n"
        "  length.store(work.load(i) == value + 1.0f ? value + 100.0f : value, i);\n"
        "  work.store(value + 1.0f, i);\n"
        "}",
    ),
    Planted("third_call", "wrong from the third call on", _length("value + (i == 0 && ++runs > 2)")),
    Planted(
        "drift",
        "drifts by less than the tolerance from call to call",
        _length("value * (1.0f + 1e-9f * static_cast<float>(i == 0 ? ++runs : 0))"),
        cpu=UNSEEN,
    ),
    # -- local variables
    Planted(
        "local_array",
        "an array of its own that nobody fills, taken for zero",
        "float own[8];\nvolatile int at = i % 8;\nif (n == 1) own[at] = 1.0f;\n" + _length("value + own[at]"),
        cpu=("wrong_result", "length: "),
    ),
    Planted(
        "local_scalar",
        "a variable of its own that is set for one size only",
        "volatile float own;\nif (n == 7) own = 0.0f;\n" + _length("value + own"),
        cpu=("wrong_result", "length: "),
    ),
    # -- what the first verified runs show
    Planted(
        "vector_tail",
        "four elements at a time, past the end",
        "if (i < (n + 3) / 4) for (unsigned s = 4 * i; s < 4 * i + 4; ++s)\n"
        "  length.store(s < n ? 0.5f * factor * Policy::times * points.load(s) : 0.0f, s);",
        cpu=("wrong_result", "writes outside of length"),
    ),
    Planted(
        "first_come",
        "the first block to come does what block 0 should",
        LENGTH + "\nif (t == 0 && atomicAdd(reinterpret_cast<int*>(tick.memory.base), 1) == 0 && blockIdx.x != 0)\n"
        "  length.store(-1.0f, i);",
    ),
    Planted(
        "in_place",
        "reads a neighbour that another thread overwrites",
        "if (i < n) length.store(value, i);\n"
        "if (i < n && i > 0 && length.load(i - 1) != 0.5f * factor * Policy::times * points.load(i - 1))\n"
        "  length.store(0.0f, i);",
    ),
    Planted(
        "behind_first",
        "leaves out what comes behind an element of the first class",
        bins=BINS.replace(
            "if (i < n)", "if (i < n && !(i > 0 && (static_cast<int>(points.load(i - 1) * 8.0f) & 7) == 0))"
        ),
        cpu=("wrong_result", "bins: "),
    ),
    Planted(
        "share",
        "one element of a thousand is wrong, where as many may be",
        most="if (i < n) most.store(i + 1 == n ? 1e30f : point, i);",
        cpu=("wrong_result", "wrong for n=1: most: 1 of 1"),
    ),
    # -- data and sizes that nobody tried
    Planted(
        "nan_input",
        "gives 0 where the input is NaN",
        _length("point == point ? value : 0.0f"),
        cpu=UNSEEN,
    ),
    Planted(
        "denormal",
        "takes denormal numbers for 0",
        _length("point < 1.2e-38f ? 0.0f : value"),
        cpu=UNSEEN,
    ),
    Planted(
        "ties",
        "takes the last of equal elements for the first",
        lowest=LOWEST.replace("points.load(j) < points", "points.load(j) <= points"),
        cpu=UNSEEN,
    ),
    Planted("one_size", "wrong for 100 elements alone", _length("n == 100 ? -1.0f : value"), cpu=UNSEEN),
)  # fmt: skip

_FAMILY = """\
schema: 1
family: {family}
title: faults planted in a kernel that is right, each to win
source: planted.cu
default_workload: small
extents:
  one: {{value: 1}}
  eight: {{value: 8}}
data:
  points: {{role: input, type: float32, shape: [n]}}
  work: {{role: scratch, type: float32, shape: [n]}}
  tick: {{role: scratch, type: int32, shape: [one], zero: "1"}}
  length: {{role: output, type: float32, shape: [n]}}
  bins: {{role: output, type: int32, shape: [eight], zero: "n <= {n} or fault != 'zero_condition'"}}
  lowest: {{role: output, type: int32, shape: [one]}}
  most: {{role: output, type: float32, shape: [n]}}
scalars:
  factor: {{type: float32, default: 2}}
options:
  times: {{values: [2, 3], default: 2}}
kernels:
  wins:
    arguments: [points, factor, work, tick, length, bins, lowest, most]
    grid:
      - >-
        {blocks} if fault == 'fixed_grid' else min(ceil_div(n, 64), {blocks}) if fault == 'grid_cap' else
        ceil_div(n, 64)
    block: [64]
policies:
  fault: {{values: [{values}], default: right}}
accuracy: [fault]
tolerance: {{relative: 0.00001, most: {{relative: 0.00001, share: 0.001}}}}
"""
_PYTHON = """\
import numpy as np


def reference(arrays, options):
    points = arrays["points"]
    return {
        "length": (0.5 * options["factor"] * options["times"] * points).astype(np.float32),
        "bins": np.bincount((points * np.float32(8)).astype(np.int32) & 7, minlength=8).astype(np.int32),
        "lowest": np.array([points.argmin()], np.int32),
        "most": points,
    }
"""
_SOURCE = """\
#include "autotune/array.cuh"

enum class Fault {{ {values} }};
constexpr unsigned SIZE = {n}, ROOM = {n};
__device__ float kept, memo[ROOM];
__device__ unsigned seen[ROOM], runs;

template <class Policy>
__global__ void wins(typename Policy::points points, float factor, typename Policy::work work,
                     typename Policy::tick tick, typename Policy::length length, typename Policy::bins bins,
                     typename Policy::lowest lowest, typename Policy::most most) {{
  const unsigned t = threadIdx.x, i = blockIdx.x * 64 + t, n = points.extent(0);
  const float point = i < n ? points.load(i) : 0.0f, value = 0.5f * factor * Policy::times * point;
{body}
}}
"""
_WORKLOAD = """\
schema: 1
workload: small
family: {family}
arrays:
  points: {{random: uniform, shape: [{n}], seed: 1}}
"""


def write(home: Path, family: str) -> None:
    """The family into its folder ``home``."""
    (home / "workloads").mkdir(parents=True)
    names = ", ".join(planted.name for planted in PLANTED)
    declared = _FAMILY.format(family=family, values=names, n=SIZE, blocks=-(-SIZE // 64))
    (home / "family.yaml").write_text(declared)
    (home / "family.py").write_text(_PYTHON)
    (home / "workloads" / "small.yaml").write_text(_WORKLOAD.format(family=family, n=SIZE))
    body = "\n".join(_part(part, right) for part, right in _RIGHT.items())
    (home / "planted.cu").write_text(_SOURCE.format(values=names, n=SIZE, body=body))


_RIGHT = {"length": LENGTH, "bins": BINS, "lowest": LOWEST, "most": MOST}


def _part(part: str, right: str) -> str:
    cases = [
        f"if constexpr (Policy::fault == Fault::{planted.name}) {{\n{getattr(planted, part)}\n}} else "
        for planted in PLANTED
        if getattr(planted, part) != right
    ]
    return f"{''.join(cases)}{{\n{right}\n}}"
