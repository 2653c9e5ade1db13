"""What a reference may give, and what tolerances may be: nothing that would let a wrong result pass."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import FAMILY, write_family
from lending import Gpu
from plain import floats

from autotune.compile import default_root
from autotune.declaration import bind
from autotune.declaration import family as families
from autotune.declaration import workload as workloads
from autotune.declaration.plain_kernel import Kernel
from autotune.declaration.space import Configuration
from autotune.errors import FamilyError
from autotune.measure.reference import SweptDevice, compute_expected


def refusal(folder: Path, gives: str, kind: str = "float32") -> str:
    family = FAMILY.replace("y: {role: output, type: float32", f"y: {{role: output, type: {kind}")
    write_family(folder, family.replace("reference: control\n", ""))
    (folder / "family.py").write_text(
        f"import numpy as np\ndef reference(arrays, options):\n    x = arrays['x']\n    return {{'y': {gives}}}\n"
    )
    loaded = families.load_family(folder)
    inputs = workloads.prepare(loaded, workloads.load_workload(loaded), folder)
    with pytest.raises(FamilyError) as caught:
        compute_expected(loaded, inputs, folder / "cache")
    return str(caught.value)


@pytest.mark.parametrize(
    ("gives", "kind", "said"),
    [
        ("x * np.nan", "float32", "the reference's y has no finite value (the first is nan)"),
        ("x + np.inf", "float64", "the reference's y has no finite value (the first is inf)"),
        ("x + 0.5", "int32", "y: fractional or NaN values given, int32 needed"),
        ("np.full(1000, 2**32 + 1)", "int32", "y: value 4294967297 is outside the range of int32"),
        ("np.full(1000, -1)", "uint8", "y: value -1 is outside the range of uint8"),
        ("x[1:]", "float32", "has shape (999,), declared is (1000,)"),
        ("np.zeros(1000, [('a', 'f4')])", "float32", "has elements of [('a', '<f4')], not of float32"),
    ],
)
def test_a_reference_that_proves_nothing_or_does_not_fit_is_refused(
    tmp_path: Path, gives: str, kind: str, said: str
) -> None:
    assert said in refusal(tmp_path / "doubler", gives, kind)


@pytest.mark.parametrize(
    ("body", "is_refused"),
    [
        ("if (i < 0) y[i] = x[i]; if (i == 0) z[0] = 5;", True),
        ("if (i < n) y[i] = x[i];", False),  # a single number may be a flag that is 0
        ("if (i < 0) y[i] = x[i];", True),
    ],
)
def test_a_reference_that_writes_no_element_of_an_output_is_refused(
    body: str, is_refused: bool, tmp_path: Path
) -> None:
    kernel = Kernel(
        f"__global__ void k(const float* x, float* y, int* z, int n) {{ const int i = threadIdx.x; {body} }}", "k",
        arguments={
            "x": "input float32[n]",
            "y": {"role": "output", "type": "float32", "shape": ["n"], "zero": "1"},
            "z": {"role": "output", "type": "int32", "shape": ["one"], "zero": "1"},
            "n": "int32",
        },
        extents={"one": 1}, grid="1", block="64", policies={"bug": [0]},
    )  # fmt: skip
    inputs = bind(kernel.family, {"x": floats((9,), 1)}, {}, {})
    if not is_refused:
        compute_expected(kernel.family, inputs, tmp_path)
        return
    with pytest.raises(FamilyError, match="wrote no element of y: it is 0 throughout"):
        compute_expected(kernel.family, inputs, tmp_path)


def test_a_reference_with_some_nan_is_taken(tmp_path: Path) -> None:
    folder = write_family(tmp_path / "doubler", FAMILY.replace("reference: control\n", ""))
    (folder / "family.py").write_text(
        "import numpy as np\ndef reference(arrays, options):\n    return {'y': np.sqrt(arrays['x'] - 0.5)}\n"
    )
    family = families.load_family(folder)
    inputs = workloads.prepare(family, workloads.load_workload(family), folder)
    with pytest.warns(RuntimeWarning, match="invalid value"):
        outputs, _ = compute_expected(family, inputs, tmp_path)
    assert outputs["y"].shape == (1000,)


@pytest.mark.parametrize("value", ['"1e400"', '"1e400 - 1e400"', '"0 - 1"', '"0 - n"'])
def test_a_tolerance_that_is_infinite_negative_or_nan_is_refused(tmp_path: Path, value: str) -> None:
    folder = write_family(tmp_path / "doubler", f"{FAMILY}tolerance: {{absolute: {value}}}\n")
    family = families.load_family(folder)
    chosen: Configuration = family.space.control
    with pytest.raises(FamilyError, match=r"the absolute tolerance is .* finite and not negative"):
        family.tolerances({**chosen, "n": 1000})


# -- a configuration that is the reference ------------------------------------------------------------------


def told(kernel: Kernel, **arrays: Any) -> str:
    """Why control cannot be the reference."""
    with pytest.raises(FamilyError) as caught:
        compute_expected(kernel.family, bind(kernel.family, arrays, {}, {}), default_root())
    return str(caught.value)


def plain(source: str, **changes: Any) -> Kernel:
    data = {"y": "output float32[n]", "x": "input float32[n]", "n": "int32"}
    return Kernel(
        f"__global__ void k(float* y, float* x, int n) {{ const int i = blockIdx.x * 32 + threadIdx.x; {source} }}",
        "k", **{"arguments": data, "grid": "ceil_div(n, 32)", "block": 32, "policies": {"a": [1]}, **changes},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("if (i < n / 2) y[i] = x[i];", "declare zero: '1' for y"),
        ("if (i < n) y[i] += x[i];", "declare zero: '1' for y"),
        ("y[i] = i < n ? x[i] : 0;", "its reference, control, writes outside of y"),
        ("if (i < n) y[i] = x[i] = 2 * x[i];", "its reference, control, writes its input x"),
        ("if (i < n) y[i] = i ? y[i - 1] + x[i] : x[i];", "or when its blocks run in another order"),
    ],
)
def test_control_is_no_reference_where_it_is_wrong_by_itself(source: str, said: str) -> None:
    assert said in told(plain(source), x=floats(70))


def test_what_is_cleared_before_may_be_left_out() -> None:
    cleared = {"role": "output", "type": "float32", "shape": ["n"], "zero": "1"}
    data = {"y": cleared, "x": "input float32[n]", "n": "int32"}
    kernel, x = plain("if (i < n / 2) y[i] = x[i];", arguments=data), floats(70)
    outputs, _ = compute_expected(kernel.family, bind(kernel.family, {"x": x}, {}, {}), default_root())
    np.testing.assert_array_equal(outputs["y"], np.where(np.arange(70) < 35, x, 0))


def test_a_kernel_as_it_stands_is_its_own_reference_on_the_device_that_is_swept(tmp_path: Path) -> None:
    x = floats(70)
    doubler = families.load_family(write_family(tmp_path / "doubler"))
    for family, is_there in ((plain("if (i < n) y[i] = 2 * x[i];").family, True), (doubler, False)):
        gpu, inputs = Gpu(), bind(family, {"x": x}, {}, {})
        outputs, _ = compute_expected(family, inputs, tmp_path / "cache", SweptDevice(gpu, gpu.toolchain()))
        np.testing.assert_array_equal(outputs["y"], 2 * x)
        assert ("place" in gpu.seen) == is_there
