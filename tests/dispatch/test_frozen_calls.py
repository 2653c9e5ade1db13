"""Calls of a frozen program."""

from pathlib import Path

import numpy as np
import pytest
from fakes import write_family
from lending import World, make_world

import autotune
from autotune.declaration import load_family
from autotune.errors import NothingMeasured, UsageError
from autotune.layout import layouts_digest
from autotune.policy import Entry, PolicyFile, file_name
from autotune.policy.file import write


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return make_world(monkeypatch)


@pytest.fixture
def folder(tmp_path: Path, world: World) -> Path:
    """A family with a tie: sizes 100 and 400, with another winner each, and calls are made on 200."""
    made = write_family(tmp_path / "doubler")
    family = load_family(made)
    entries = {
        f"n{size}": Entry(
            name=f"n{size}", workload=f"n{size}", features={"n": size}, options={},
            configuration={"memory": memory, "block_size": 64}, median_ms=size / 1000, spread=0.01, samples=9,
            source_digest=family.source_digest, layouts_digest=layouts_digest(), space_digest=family.space_digest,
        )
        for size, memory in ((400, "global"), (100, "readonly"))
    }  # fmt: skip
    for place in ("policies", "others"):
        path = tmp_path / place / file_name("doubler", world.gpu.device.slug)
        path.parent.mkdir(parents=True)
        write(path, PolicyFile(family="doubler", device=world.gpu.device, entries=entries, refine=4,
                               default=entries["n100"].configuration))  # fmt: skip
    return made


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
