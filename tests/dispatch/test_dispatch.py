"""The run time on the cpu device: right answers, honest warnings, nothing left behind."""

import logging
from pathlib import Path

import numpy as np
import pytest
from fakes import FAMILY, write_family
from scipy.spatial.distance import cdist

import autotune
from autotune.cli.commands import main
from autotune.compile.variant import Variant
from autotune.declaration import family as families
from autotune.declaration.workload import bind
from autotune.device.orders import Ordering
from autotune.errors import FamilyError, UsageError, WorkloadError


def hamming(x: np.ndarray) -> np.ndarray:
    return np.rint(cdist(x, x, "hamming") * x.shape[1]).astype(np.int32)


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("policies")
    arguments = ["sweep", "allpairs", "--device", "cpu", "--preset", "ladder", "-w", "ragged", "-w", "primer"]
    assert main([*arguments, "--out", str(folder / "out"), "--policies", str(folder)]) == 0
    return folder


def test_load_and_call(policies: Path) -> None:
    x = np.random.default_rng(1).integers(0, 3, (61, 97))
    with autotune.load("allpairs", device="cpu", policies=policies) as kernel:
        distance = kernel(x)
        assert isinstance(distance, np.ndarray)
        assert distance.dtype == np.int32
        np.testing.assert_array_equal(distance, hamming(x))
        np.testing.assert_array_equal(kernel(genotypes=x.astype(np.uint8)), distance)
        np.testing.assert_array_equal(kernel(np.asfortranarray(x)[::2]), hamming(x[::2]))


def test_the_choice_is_explained(policies: Path) -> None:
    with autotune.load("allpairs", device="cpu", policies=policies) as kernel:
        exact, _ = kernel.explain(kernel.bind(np.zeros((112, 512))))
        assert (exact.match, exact.origin.split(": ")[1]) == ("exact", "primer")
        near, passed = kernel.explain(kernel.bind(np.zeros((100, 600)), missing="masked"))
        assert near.match in ("nearest", "default")
        assert any("measured with missing=category" in c.refusal for c in passed)


def test_above_the_sizes_that_were_proved_it_warns_once_a_magnitude(
    policies: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with autotune.load("allpairs", device="cpu", policies=policies) as kernel:
        for shape in ((112, 512), (37, 131), (129, 257)):
            kernel(np.zeros(shape))
        warnings = lambda: [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]  # noqa: E731
        assert not warnings()
        for instances in (130, 131, 300):
            kernel(np.zeros((instances, 512)))
    first, second = warnings()
    assert "on instances=130 (proved up to 129): no sweep compared its results there" in first
    assert "instances=300" in second


def test_options_change_the_result_and_never_silently(policies: Path) -> None:
    x = np.array([[0, 1, 3], [0, 3, 2]])
    with autotune.load("allpairs", device="cpu", policies=policies) as kernel:
        assert kernel(x)[0, 1] == 2
        assert kernel(x, missing="masked")[0, 1] == 0


def test_runs_of_elements_that_are_not_full(tmp_path: Path) -> None:
    recs = "{layout: records, data: [x, y], values: [aos, aosoa4], default: aosoa4}"
    folder = write_family(tmp_path / "doubler", FAMILY.replace("policies:", f"policies:\n  runs: {recs}"))
    with pytest.warns(UserWarning, match="no usable policy file"):
        kernel = autotune.load(folder, device="cpu", policies="/nowhere")
    with kernel:
        for count in (15, 16, 15):  # made, and filled again
            x = np.arange(count, dtype=np.float32)
            np.testing.assert_array_equal(kernel(x), 2 * x)


def test_no_policy_file_warns_and_still_answers() -> None:
    with pytest.warns(UserWarning, match="no usable policy file.*autotune sweep allpairs"):
        kernel = autotune.load("allpairs", device="cpu", policies="/nowhere")
    with kernel:
        assert kernel(np.zeros((3, 4), int)).sum() == 0


def test_no_gpu_runs_on_the_cpu_and_says_so(policies: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pycuda", None)
    monkeypatch.setattr("autotune.device.open.has_driver", lambda: True)
    with pytest.warns(
        UserWarning, match=r"^running on the cpu: PyCUDA is not usable here .* pip install .*\[cuda\]'"
    ):
        autotune.load("allpairs", policies=policies).close()
    monkeypatch.setattr("autotune.device.open.has_driver", lambda: False)  # nothing that a user could fix
    with pytest.warns(UserWarning, match=r"^running on the cpu: no GPU found$") as warned:
        kernel = autotune.load("allpairs", policies=policies)
    assert [warning.filename for warning in warned] == [__file__]
    with kernel:
        assert kernel(np.eye(3, dtype=int))[0, 1] == 2


def test_bad_calls_are_refused(policies: Path) -> None:
    with autotune.load("allpairs", device="cpu", policies=policies) as kernel:
        with pytest.raises(
            UsageError,
            match=r"takes 1 array \(genotypes\), 2 given: pass numbers and options by name \(missing=…\)",
        ):
            kernel(np.zeros((2, 2)), np.zeros((2, 2)))
        with pytest.raises(UsageError, match="given twice"):
            kernel(np.zeros((2, 2)), genotypes=np.zeros((2, 2)))
        with pytest.raises(WorkloadError, match="value 7 is outside"):
            kernel(np.full((2, 2), 7))
        with pytest.raises(WorkloadError, match="not given"):
            kernel()


def test_one_row_and_one_column() -> None:
    with pytest.warns(UserWarning, match="no usable policy file"):
        kernel = autotune.load("allpairs", device="cpu", policies="/nowhere")
    with kernel:
        assert kernel(np.array([[2]])).tolist() == [[0]]
        assert kernel(np.array([[0], [1], [1]])).tolist() == [[0, 1, 1], [1, 0, 0], [1, 0, 0]]


# -- odd arguments ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [None, "genotypes.npy", b"x"])
def test_what_is_no_array_is_called_so(policies: Path, given: object) -> None:
    with (
        autotune.load("allpairs", device="cpu", policies=policies) as kernel,
        pytest.raises(WorkloadError, match=r"genotypes: .* is no array; 2 dimensions of int32 are needed"),
    ):
        kernel(given)


def test_what_is_too_large_is_refused_before_it_is_copied(policies: Path) -> None:
    huge = np.broadcast_to(np.uint8(1), (1 << 20, 1 << 20))  # a terabyte that takes one byte
    with autotune.load("allpairs", device="cpu", policies=policies) as kernel:
        with pytest.raises(WorkloadError, match="1099511627776 elements pass the range of 32-bit addresses"):
            kernel(huge)
        with pytest.raises(WorkloadError, match="genotypes: this host has no memory for it as int32"):
            kernel(NoMemory())


class NoMemory:
    def __array__(self, *_: object, **__: object) -> None:
        raise MemoryError


def test_a_kernel_says_what_it_is(policies: Path) -> None:
    kernel = autotune.load("allpairs", device="cpu", policies=policies)
    assert repr(kernel) == f"<TunedKernel allpairs on {kernel.device}, 2 entries in its policy file>"
    kernel.close()
    assert repr(kernel) == "<TunedKernel allpairs closed>"


def test_the_warning_names_the_folder_and_where_was_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_family(tmp_path / "project" / "doubler")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.warns(UserWarning, match="no usable policy file") as told:
        autotune.load(folder, device="cpu").close()
    said = str(told[0].message)
    assert f"`autotune sweep {folder}` makes one in ./policies" in said
    for place in (tmp_path / "elsewhere" / "policies", tmp_path / "project" / "policies"):
        assert str(place) in said


def test_policies_beside_the_family_are_found_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_family(tmp_path / "project" / "doubler")
    arguments = ["sweep", str(folder / "family.yaml"), "--device", "cpu", "--preset", "control"]
    arguments += ["--out", str(tmp_path / "out"), "--policies", str(tmp_path / "project" / "policies")]
    assert main(arguments) == 0
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with autotune.load(folder, device="cpu") as kernel:
        assert "1 entries in its policy file" in repr(kernel)
        x = np.arange(1000, dtype=np.float32)
        np.testing.assert_array_equal(kernel(x), 2 * x)
    with pytest.warns(
        UserWarning, match="policies folder mistyped does not exist: .* is used instead"
    ) as warned:
        autotune.load(folder, device="cpu", policies="mistyped").close()
    assert warned[0].filename == __file__
    monkeypatch.setenv("AUTOTUNE_POLICIES", "mistyped")
    autotune.load(folder, device="cpu").close()  # names no folder in the call, so there is no warning


SUM = """\
schema: 1
family: weighted
title: a weight for each row
source: weighted.cu
data:
  x: {role: input, type: float32, shape: [rows]}
  weights: {role: input, type: float32, shape: [taps]}
  y: {role: output, type: float32, shape: [rows]}
kernels:
  weighted: {arguments: [x, weights, y], grid: ["ceil_div(rows, 64)"], block: ["64"]}
policies:
  memory: {layout: memory, data: [x], values: [global, readonly], default: global}
reference: control
"""
SUM_SOURCE = """\
#include "autotune/array.cuh"
template <class Policy>
__global__ void weighted(typename Policy::x x, typename Policy::weights weights, typename Policy::y y) {
  const unsigned i = blockIdx.x * 64 + threadIdx.x;
  if (i >= x.extent(0)) return;
  float sum = 0;
  for (unsigned k = 0; k < weights.extent(0); ++k) sum += x.load(i) * weights.load(k);
  y.store(sum, i);
}
"""


@pytest.mark.filterwarnings("ignore:no usable policy file")
def test_what_was_prepared_is_refilled_while_others_come_with_the_call(tmp_path: Path) -> None:
    folder = write_family(tmp_path / "weighted", SUM)
    (folder / "weighted.cu").write_text(SUM_SOURCE)
    with (
        autotune.load(folder, device="cpu") as kernel,
        kernel.prepare(weights=np.ones(3, np.float32)) as handle,
    ):
        x = np.arange(100, dtype=np.float32)
        np.testing.assert_array_equal(handle(x), 3 * x)
        for factor in (2, 5):
            handle.refill(weights=np.full(3, factor, np.float32))
            np.testing.assert_array_equal(handle(x), 3 * factor * x)
            np.testing.assert_array_equal(handle(x[:50]), 3 * factor * x[:50])
        with pytest.raises(WorkloadError, match=r"weights: shape \(2,\) given, prepared for \(3,\)"):
            handle.refill(weights=np.ones(2, np.float32))
        with pytest.raises(UsageError, match="'x' was not prepared"):
            handle.refill(x=x)


RAMP = """\
schema: 1
family: ramp
source: ramp.cu
default_workload: small
scalars: {n: {type: int32}, v: {type: float32}}
extents: {n_extent: {value: n}}
data:
  y: {role: output, type: float32, shape: [n_extent]}
kernels:
  ramp: {arguments: [y, n, v], grid: ["ceil_div(n, block)"], block: [block]}
policies:
  block: {values: [32, 64], default: 32}
reference: control
"""


@pytest.mark.filterwarnings("ignore:no usable policy file")
def test_a_family_without_an_input_takes_its_numbers_with_the_call(tmp_path: Path) -> None:
    folder = write_family(tmp_path / "ramp", RAMP)
    (folder / "ramp.cu").write_text(
        '#include "autotune/array.cuh"\ntemplate <class Policy>\n'
        "__global__ void ramp(typename Policy::y y, int n, float v) {\n"
        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) y.store(v * i, i);\n}\n"
    )
    with autotune.load(folder, device="cpu") as kernel:
        for n, v in ((5, 2.0), (70, 3.0)):
            np.testing.assert_array_equal(kernel(n=n, v=v), v * np.arange(n, dtype=np.float32))
        with pytest.raises(WorkloadError, match="'n' of family ramp is not given"):
            kernel(v=1.0)


def test_a_mistake_in_an_order_is_told_with_its_line(tmp_path: Path) -> None:
    ordered = "  order: {layout: order, data: [rows], values: [given, broken], default: given}\n"
    folder = write_family(tmp_path / "weighted", SUM.replace("reference:", ordered + "reference:"))
    (folder / "family.py").write_text(
        "def broken(arrays):\n    return arrays['x'] + None\n\n\norders = {'broken': broken}\n"
    )
    (folder / "weighted.cu").write_text(SUM_SOURCE)
    family = families.load_family(folder)
    chosen = family.space.configuration("order=broken")
    inputs = bind(family, {"x": np.ones(8), "weights": np.ones(2)}, {}, {})
    with pytest.raises(FamilyError, match=r"order broken of rows: TypeError: .*family\.py:2\)"):
        Ordering().orders_of(Variant(family, chosen, ()), inputs)
