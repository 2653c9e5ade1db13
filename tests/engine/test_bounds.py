"""``sweep --bounds``: an index outside of its array fails the configuration, though all results are right."""

import shlex
from pathlib import Path

import pandas as pd
import pytest
from fakes import write_family
from plain import vector_add

from autotune.cli.commands import main
from autotune.compile import HostCxx, make_checking_command
from autotune.errors import UsageError

# The last column of a row reads on, which is the next row's first or what pads the array, and uses nothing of it. Codes
# of 8 bits, fields of records and places of elements are checked too.
FAMILY = """\
schema: 1
family: doubler
source: doubler.cu
default_workload: small
extents: {eight: {value: 8}}
data:
  x: {role: input, type: float32, shape: [n, eight], range: [-1, 1]}
  pairs: {role: input, record: Pair, fields: {a: float32, b: float32}, shape: [n]}
  counts: {role: output, type: int32, shape: [n], zero: "1"}
  y: {role: output, type: float32, shape: [n, eight]}
kernels:
  doubler:
    arguments: [x, pairs, counts, y]
    grid: ["ceil_div(n, 64)"]
    block: [64]
policies:
  leaves: {values: [none, load, field, element], default: none}
  axes:
    {layout: axes, data: [x], values: [rows, columns], means: {rows: [n, eight], columns: [eight, n]}, default: rows}
  storage: {layout: storage, data: [x], values: [float32, float16], default: float32}
constraints:
  - {require: "leaves == 'none' or axes == 'rows'", reason: "one is enough"}
  - {require: "storage == 'float32' or leaves == 'none' or leaves == 'load'", reason: "one is enough"}
tolerance: {y: {absolute: 0.1}}
reference: control
"""
WORKLOAD = """\
schema: 1
workload: small
family: doubler
parameters: {n: 1000}
"""
INPUTS = """\
import numpy as np


def inputs(parameters, data):
    random = np.random.default_rng(1)
    pairs = np.zeros(parameters["n"], [("a", np.float32), ("b", np.float32)])
    return {"x": random.uniform(-1, 1, (parameters["n"], 8)).astype(np.float32), "pairs": pairs}
"""
SOURCE = """\
#include "autotune/element.cuh"
#include "autotune/field_access.cuh"
#include "autotune/storage.cuh"
enum class Leaves { none, load, field, element };
struct Pair { float a, b; };
template <class Policy>
__global__ void doubler(typename Policy::x x, typename Policy::pairs pairs, typename Policy::counts counts,
                        typename Policy::y y) {
  const unsigned i = blockIdx.x * 64 + threadIdx.x;
  if (i >= x.extent(0)) return;
  const unsigned beyond = i + (Policy::leaves == Leaves::field || Policy::leaves == Leaves::element);
  const float b = autotune::load_field<&Pair::b>(pairs, Policy::leaves == Leaves::field ? beyond : i);
  atomicAdd(&autotune::element(counts, i), 1);
  if (Policy::leaves == Leaves::element && &autotune::element(counts, beyond) == nullptr) return;
  for (unsigned j = 0; j < 8; ++j) {
    const float own = x.load(i, j), next = Policy::leaves == Leaves::load && i + 1 < x.extent(0) ? x.load(i, j + 1) : 0;
    y.store(2 * own + (j > 8 ? next : 0) + (j > 8 ? b : 0), i, j);
  }
}
"""


@pytest.fixture
def leaving(tmp_path: Path) -> Path:
    folder = write_family(tmp_path / "doubler", FAMILY, SOURCE)
    (folder / "workloads" / "small.yaml").write_text(WORKLOAD)
    (folder / "family.py").write_text(INPUTS)
    return folder


def swept(leaving: Path, tmp_path: Path, *more: str) -> pd.DataFrame:
    out, policies = tmp_path / "out", tmp_path / "policies"
    assert (
        main(
            ["sweep", str(leaving), "--device", "cpu", "--out", str(out), "--policies", str(policies), *more]
        )
        == 0
    )
    return pd.read_csv(out / "results.csv", keep_default_na=False)


def test_what_leaves_an_array_fails_and_nothing_is_published(leaving: Path, tmp_path: Path) -> None:
    frame = swept(leaving, tmp_path, "--bounds")
    found = {(row.leaves, row.axes, row.storage): (row.state, row.reason) for row in frame.itertuples()}
    right = [key for key, (state, _) in found.items() if state == "measured"]
    assert sorted(right) == [
        ("none", axes, bits) for axes in ("columns", "rows") for bits in ("float16", "float32")
    ]
    for key, said in (
        (("load", "rows", "float32"), "x: index 8 is outside of axis 1, whose extent is 8"),
        (("load", "rows", "float16"), "x: index 8 is outside of axis 1, whose extent is 8"),
        (("field", "rows", "float32"), "pairs: index 1000 is outside of axis 0, whose extent is 1000"),
        (("element", "rows", "float32"), "counts: index 1000 is outside of axis 0, whose extent is 1000"),
    ):
        assert found[key][0] == "launch_failed"
        assert said in found[key][1]
    assert not (tmp_path / "policies").exists() or not list((tmp_path / "policies").rglob("*.yaml"))


def test_without_it_the_results_are_right(leaving: Path, tmp_path: Path) -> None:
    frame = swept(
        leaving, tmp_path, "--set", "leaves=none,load", "--set", "storage=float32", "--set", "axes=rows"
    )
    assert list(frame.state) == ["measured", "measured"]
    assert list((tmp_path / "policies").rglob("*.yaml"))


def test_it_is_refused_where_nothing_is_checked(
    leaving: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", str(leaving), "--bounds", "--static"]) == UsageError.exit_code
    assert "--bounds watches kernels run, and --static runs none" in capsys.readouterr().err
    assert main(["sweep", str(leaving), "--device", "cuda", "--bounds"]) == UsageError.exit_code
    assert "--bounds checks indices on the cpu: add --device cpu" in capsys.readouterr().err
    plain = vector_add().folder
    assert main(["sweep", str(plain), "--device", "cpu", "--bounds"]) == UsageError.exit_code
    assert "--bounds checks accessors, and the kernels of vector_add have none" in capsys.readouterr().err


def test_checked_code_has_an_identity_of_its_own() -> None:
    """So that the record never takes its times for those of the kernels themselves."""
    checked, plain = (
        HostCxx(tuple(shlex.split(make_checking_command()))),
        HostCxx(tuple(shlex.split(make_checking_command())[:-1])),
    )
    assert "-DAUTOTUNE_CHECK_BOUNDS=0x" in checked.identity
    assert checked.identity != plain.identity
