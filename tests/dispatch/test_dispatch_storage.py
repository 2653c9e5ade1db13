"""Data that a storage cannot hold: the next configuration runs, or the call says what of them it is."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import FAMILY, write_family
from lending import Array, loaded, make_world

import autotune
from autotune.device import CpuBackend
from autotune.dispatch.tuned_kernel import TunedKernel
from autotune.errors import DeviceError, LayoutRefusal
from autotune.policy.file import PolicyFile, file_name, write

STORED = FAMILY.replace(
    "memory: {layout: memory, data: [x], values: [global, readonly, texture], default: global}",
    "storage: {layout: storage, data: [x], values: [float32, float16, bfloat16, float8_e4m3, scaled_int8], "
    "default: float32}",
).replace("values: [32, 64, 128, 256]", "values: [128]")
OUTLIER = np.ones(600, np.float32)
OUTLIER[5] = 1e6
TINY, USUAL, LARGE = (np.linspace(0, most, 600, dtype=np.float32) for most in (6e-6, 6, 6e6))
REFUSED = (
    ("float16", LARGE, "x: 6e+06 is too large for storage float16, which holds numbers below 65520"),
    ("float16", -LARGE, "x: 6e+06 is too large for storage float16"),
    ("float8_e4m3", LARGE, "which holds numbers below 464"),
    ("bfloat16", np.array([-3.4e38], np.float32), "x: 3.4e+38 is too large for storage bfloat16"),
    ("float16", TINY, "x: the largest number is 6e-06, and storage float16 loses digits below 6.10352e-05"),
    (
        "scaled_int8",
        OUTLIER,
        "x: 599 of 600 numbers that are not 0 would be 0 in storage scaled_int8, whose scale",
    ),
    ("scaled_int8", np.array([1, np.nan], np.float32), "x: storage scaled_int8 holds finite numbers"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_family(tmp_path_factory.mktemp("stored") / "doubler", STORED)


@pytest.fixture(autouse=True)
def _cache(compile_cache: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOTUNE_CACHE", compile_cache)


def kernel(folder: Path, tmp_path: Path, storage: str) -> TunedKernel:
    """What a policy file has so stored by default."""
    with CpuBackend(1) as backend:
        device = backend.device
    default = {"storage": storage, "block_size": 128}
    path = tmp_path / file_name("doubler", device.slug)
    path.parent.mkdir()
    write(path, PolicyFile(family="doubler", device=device, entries={}, default=default))
    return autotune.load(folder, device="cpu", policies=tmp_path)


@pytest.mark.parametrize(("storage", "x", "message"), REFUSED)
def test_the_next_configuration_runs(
    folder: Path, tmp_path: Path, storage: str, x: np.ndarray[Any, Any], message: str
) -> None:
    with kernel(folder, tmp_path, storage) as opened, np.errstate(over="ignore"):
        np.testing.assert_array_equal(opened(x), 2 * x)
        chosen, passed = opened.explain(opened.bind(x))
        assert chosen.configuration is not None
        assert chosen.configuration["storage"] == "float32"
        assert any(one.refusal.startswith(message) or message in one.refusal for one in passed)


@pytest.mark.parametrize(("storage", "x", "message"), [one for one in REFUSED if one[1].size == 600])
def test_so_do_later_calls_and_what_is_prepared(
    folder: Path, tmp_path: Path, storage: str, x: np.ndarray[Any, Any], message: str
) -> None:
    """What was chosen for these sizes is kept for the data that it can hold."""
    with kernel(folder, tmp_path, storage) as opened:
        for data in (USUAL, x, USUAL[::-1], x):
            np.testing.assert_allclose(opened(data), 2 * data, rtol=0 if data is x else 1, atol=0)
        with opened.prepare(x) as handle:
            assert handle.variant.configuration["storage"] == "float32"
            np.testing.assert_array_equal(handle(), 2 * x)
        with opened.prepare(USUAL) as handle:
            assert handle.variant.configuration["storage"] == storage
            with pytest.raises(LayoutRefusal) as caught:
                handle.refill(x=x)
            assert message in str(caught.value)
            np.testing.assert_allclose(handle(), 2 * USUAL, atol=1)


def test_a_declared_range_is_what_the_family_says_is_enough(tmp_path: Path) -> None:
    """No outlier decides its scale."""
    text = STORED.replace(
        "type: float32, shape: [n]}\n  y", "type: float32, shape: [n], range: [0, 1000000]}\n  y"
    )
    with kernel(write_family(tmp_path / "family", text), tmp_path, "scaled_int8") as opened:
        assert opened(OUTLIER).tolist() == [2e6 * (n == 5) for n in range(600)]


def test_what_is_infinite_or_0_is_stored(folder: Path, tmp_path: Path) -> None:
    with kernel(folder, tmp_path, "float16") as opened:
        for x in ([np.inf, 1, -np.inf, np.nan], [0, 0, 0, 0], [65519, 0, 1e-9, -1]):
            found = opened(np.array(x, np.float32))
            np.testing.assert_array_equal(found, 2 * np.float32(np.float16(np.array(x, np.float32))))
            assert opened.prepare(np.array(x, np.float32)).variant.configuration["storage"] == "float16"


def test_a_class_that_was_asked_for_and_cannot_hold_the_data_is_an_error(tmp_path: Path) -> None:
    family = write_family(
        tmp_path / "doubler", f"{STORED}accuracy: [storage]\ntolerance: {{relative: 0.01}}\n"
    )
    with pytest.warns(UserWarning, match="no usable policy file"):
        opened = autotune.load(family, device="cpu", policies=tmp_path, accuracy={"storage": "float16"})
    with (
        opened,
        pytest.raises(DeviceError, match=r"no configuration fits .*is too large for storage float16"),
    ):
        opened(LARGE)


def test_what_a_gpu_would_convert_is_looked_at_on_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes of a host array go there as they are. An array that is there already is not looked at."""
    world = make_world(monkeypatch)
    text = STORED.replace("default: float32", "default: float16")
    with loaded(write_family(tmp_path / "doubler", text)) as opened:
        for _ in range(2):
            np.testing.assert_allclose(opened(USUAL), 2 * USUAL, rtol=1e-3)
        with pytest.raises(DeviceError, match="x: 6e\\+06 is too large for storage float16"):
            opened(LARGE)
        assert np.isinf(opened(Array(LARGE)).memory[1:]).any()
    assert world.opened == ["cuda"]
