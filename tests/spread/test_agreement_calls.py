"""Calls of ranks that choose alike."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import write_family
from lending import World, make_world, write_tuned_doubler
from ranks import run_ranks

import autotune
from autotune import Agreement
from autotune.errors import DeviceError, UsageError
from autotune.policy import file_name, read_policy_file
from autotune.policy.file import write

Gather = Callable[[Any], Sequence[Any]]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    return make_world(monkeypatch, tmp_path / "data")


@pytest.fixture
def folder(tmp_path: Path, world: World) -> Path:
    """A family with a tie: sizes 100 and 400, with another winner each, and calls are made on 200."""
    winners = {400: "global", 100: "readonly"}
    return write_tuned_doubler(tmp_path, world, winners, places=("policies", "others"), refine=4)


def taken(kernel: autotune.TunedKernel, n: int = 200) -> str:
    found, _ = kernel.explain(kernel.bind(np.zeros(n, np.float32)))
    assert found.configuration is not None
    return str(found.configuration["memory"])


def test_ranks_take_what_the_first_one_s_files_say(folder: Path, tmp_path: Path, world: World) -> None:
    path = tmp_path / "others" / file_name("doubler", world.gpu.device.slug)
    file = read_policy_file(path)
    others = {name: replace(item, configuration={"memory": "texture", "block_size": 32})
              for name, item in file.entries.items()}  # fmt: skip
    write(path, replace(file, entries=others))

    def body(rank: int, gather: Gather | None) -> str:
        policies = tmp_path / ("others" if rank else "policies")
        with autotune.load(
            folder, device="cuda", policies=policies, agreement=Agreement(gather) if gather else None
        ) as kernel:
            return taken(kernel)

    assert [body(rank, None) for rank in (0, 1)] == ["readonly", "texture"]
    assert run_ranks(3, body) == ["readonly"] * 3


def test_ranks_with_other_code_or_another_device_are_refused(
    folder: Path, tmp_path: Path, world: World
) -> None:
    edited = write_family(tmp_path / "edited" / "doubler")
    (edited / "doubler.cu").write_text((folder / "doubler.cu").read_text() + "// edited\n")

    def body(rank: int, gather: Gather) -> Any:
        with autotune.load(edited if rank == 1 else folder, device="cuda", agreement=Agreement(gather)):
            return "loaded"

    for problem in run_ranks(2, body):
        assert isinstance(problem, UsageError)
        assert "doubler is not the same on all ranks: kernel source" in str(problem)

    def elsewhere(rank: int, gather: Gather) -> Any:
        with autotune.load(folder, device="cpu" if rank else "cuda", agreement=Agreement(gather)):
            return "loaded"

    for problem in run_ranks(2, elsewhere):
        assert "device: host-gpu on rank 0; cpu" in str(problem)
    with pytest.raises(UsageError, match="ranks would find other winners"):
        autotune.load(folder, device="cuda", agreement=Agreement(lambda value: [value]), refine=True)


def test_a_rank_does_not_leave_its_gpu_alone(folder: Path, tmp_path: Path, world: World) -> None:
    """The others would wait for it, and have another device."""
    kernel = autotune.load(folder, policies=tmp_path / "policies", agreement=Agreement(lambda value: [value]))
    world.gpu.failing = "the device is gone"
    with kernel, pytest.raises(DeviceError, match="the device is gone"):
        kernel(np.zeros(100, np.float32))
    assert world.opened == ["auto"]
