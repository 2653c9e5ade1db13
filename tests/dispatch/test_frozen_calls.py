"""Calls of a frozen program."""

from pathlib import Path

import numpy as np
import pytest
from lending import World, make_world, write_tuned_doubler

import autotune
from autotune.errors import NothingMeasured, UsageError
from autotune.policy import file_name


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    return make_world(monkeypatch, tmp_path / "data")


@pytest.fixture
def folder(tmp_path: Path, world: World) -> Path:
    """A family with a tie: sizes 100 and 400, with another winner each, and calls are made on 200."""
    winners = {400: "global", 100: "readonly"}
    return write_tuned_doubler(tmp_path, world, winners, places=("policies", "others"), refine=4)


def test_a_frozen_program_tries_nothing_and_refuses_what_it_is_asked_to(
    folder: Path, tmp_path: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world.gpu, "mark", lambda: pytest.fail("timed"))
    x = np.arange(200, dtype=np.float32)
    policies = tmp_path / "policies"
    with autotune.load(folder, device="cuda", policies=policies, frozen=True) as kernel:
        for _ in range(6):
            np.testing.assert_array_equal(kernel(x), 2 * x)
    with autotune.load(folder, device="cuda", policies=policies, frozen="exact") as kernel:
        with pytest.raises(NothingMeasured, match="no entry is of this one"):
            kernel(x)
        np.testing.assert_array_equal(kernel(x[:100]), 2 * x[:100])
    path = policies / file_name("doubler", world.gpu.device.slug)
    path.write_text(path.read_text().replace("entries:", "frozen: true\nentries:"))
    with autotune.load(folder, device="cuda", policies=policies) as kernel:
        np.testing.assert_array_equal(kernel(x), 2 * x)
    with pytest.raises(UsageError, match="refine= tries configurations in calls: frozen=True forbids it"):
        autotune.load(folder, device="cuda", policies=policies, frozen=True, refine=True)
    path.unlink()
    with pytest.raises(NothingMeasured, match="doubler is frozen: no usable policy file"):
        autotune.load(folder, device="cuda", policies=policies, frozen=True)
