"""One cache under several processes at once: never torn, nothing lost, whichever process is killed."""

import functools
import hashlib
import multiprocessing
import os
import random
import signal
import time
from multiprocessing.context import SpawnProcess
from pathlib import Path

import pytest
from fake_toolchain import Fake, batch_of
from waiting import PATIENCE_S, wait_for

from autotune.compile import cache as cache_module
from autotune.compile.batches import compile_many
from autotune.compile.cache import Cache
from autotune.compile.toolchain import Batch, Built, Compiled
from autotune.errors import CompilerError

PROCESSES = 4
VARIANTS = 12
ROUNDS = 40
_spawn = multiprocessing.get_context("spawn")


def content(names: list[str]) -> bytes:
    """An image that tells whether it is whole: a hash ahead of 200 KB that name its variants."""
    text = " ".join(names).encode() * (200_000 // (5 * len(names)))
    return hashlib.sha256(text).digest() + text


def is_whole(image: bytes) -> bool:
    return hashlib.sha256(image[32:]).digest() == image[:32] and len(image) > 1000


def built(batch: Batch) -> Built:
    return Built(
        content([v.name for v in batch.variants]), {v.key: {"sum": f"_{v.key}"} for v in batch.variants}, {}
    )


def store_and_read(root: str, seed: int, rounds: int, problems: str) -> None:
    """What a sweep does to a cache, over and over: overlapping batches written, everybody's variants read."""
    chance, cache, toolchain = random.Random(seed), Cache(Path(root)), Fake(Path(root) / "calls")
    all_variants = batch_of(VARIANTS)
    for _ in range(rounds):
        chosen = chance.sample(all_variants.variants, chance.randrange(1, 5))
        for compiled in cache.put(built(all_variants.select(chosen)), all_variants.select(chosen), toolchain):
            check(cache, toolchain, compiled.key, problems, must=True)
        for variant in all_variants.variants:
            check(cache, toolchain, variant.key, problems, must=False)


def check(cache: Cache, toolchain: Fake, key: str, problems: str, *, must: bool) -> None:
    found = cache.get(key, toolchain)
    if found is None:
        # An entry that others replace meanwhile is old or new, never gone; an image is never replaced by another.
        complain(problems, f"{key} is missing") if must else None
    elif found.key != key or found.symbols != {"sum": f"_{key}"}:
        complain(problems, f"{key} got {found}")
    elif not is_whole(image := found.image.read_bytes()) or f"V{key[3:]}".encode() not in image:
        complain(problems, f"{key}: {found.image} is torn or another's")


def complain(problems: str, text: str) -> None:
    with Path(problems).open("a") as file:
        file.write(text + "\n")


def start(tmp_path: Path, rounds: int) -> list[SpawnProcess]:
    processes = [
        _spawn.Process(
            target=store_and_read, args=(str(tmp_path / "cache"), seed, rounds, str(tmp_path / "bad"))
        )
        for seed in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    return processes


def test_four_processes_share_a_cache(tmp_path):
    processes = start(tmp_path, ROUNDS)
    for process in processes:
        process.join(PATIENCE_S)
    assert [p.exitcode for p in processes] == [0] * PROCESSES
    assert not (tmp_path / "bad").exists(), (tmp_path / "bad").read_text()
    assert all_whole(tmp_path) == VARIANTS
    assert not list((tmp_path / "cache").rglob("*.tmp"))


@pytest.mark.parametrize("seed", range(4))
def test_killed_writers_leave_whole_entries_or_none(tmp_path, seed):
    processes = start(tmp_path, 10_000)
    wait_for(lambda: len(list((tmp_path / "cache").rglob("*.json"))) >= 4)
    chance = random.Random(seed)
    for process in processes:
        time.sleep(chance.random() / 20)
        os.kill(process.pid, signal.SIGKILL)
    for process in processes:
        process.join()
    assert not (tmp_path / "bad").exists(), (tmp_path / "bad").read_text()
    assert all_whole(tmp_path) > 0
    # And the next sweep goes on with that cache as it is.
    store_and_read(str(tmp_path / "cache"), 9, 3, str(tmp_path / "bad"))
    assert not (tmp_path / "bad").exists(), (tmp_path / "bad").read_text()


def all_whole(tmp_path: Path) -> int:
    """How many variants the cache has; each is checked."""
    cache, toolchain = Cache(tmp_path / "cache"), Fake(tmp_path / "cache" / "calls")
    known = [v.key for v in batch_of(VARIANTS).variants if cache.get(v.key, toolchain)]
    for key in known:
        check(cache, toolchain, key, str(tmp_path / "bad"), must=True)
    assert not (tmp_path / "bad").exists(), (tmp_path / "bad").read_text()
    return len(known)


def sweep(root: str, calls: str) -> None:
    """Compile everything, as a sweep of its own."""
    chunks = compile_many(batch_of(30), Fake(Path(calls)), Cache(Path(root)), 2, 4)
    results = [result for chunk in chunks for result in chunk]
    assert all(isinstance(result, Compiled) and result.image.exists() for result in results)


def test_four_sweeps_at_once_end_with_one_whole_cache(tmp_path):
    processes = [
        _spawn.Process(target=sweep, args=(str(tmp_path / "cache"), str(tmp_path / "calls")))
        for _ in range(4)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(PATIENCE_S)
    assert [p.exitcode for p in processes] == [0] * 4
    before = len(Fake(tmp_path / "calls").calls)
    sweep(str(tmp_path / "cache"), str(tmp_path / "calls"))
    assert len(Fake(tmp_path / "calls").calls) == before  # the next one compiles nothing


def test_a_disk_that_is_full_everywhere_is_one_clear_error(tmp_path, monkeypatch):
    monkeypatch.setattr(
        cache_module, "_private_root", functools.cache(cache_module._private_root.__wrapped__)
    )
    monkeypatch.setattr(cache_module, "replace_file", full_disk)
    cache, batch = Cache(tmp_path / "cache"), batch_of(1)
    with pytest.raises(CompilerError, match=r"No space left.*free some space.*AUTOTUNE_CACHE") as caught:
        cache.put(built(batch), batch, Fake(tmp_path / "calls"))
    assert str(tmp_path / "cache") in str(caught.value)


def full_disk(path: Path, mode: int) -> None:
    raise OSError(28, "No space left on device")
