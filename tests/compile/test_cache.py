"""The cache on real files: torn, foreign, missing, and not writable."""

import functools
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from fake_toolchain import Fake, batch_of, run_script

from autotune.compile import cache as cache_module
from autotune.compile.batches import compile_batch, compile_many
from autotune.compile.cache import Cache, default_root


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    return Fake(tmp_path / "calls")


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def entry_of(cache, key):
    entries = [path for path in cache.root.rglob("*.json") if json.loads(path.read_text())["key"] == key]
    (entry,) = entries
    return entry


def test_the_cache_belongs_to_a_toolchain(fake, cache):
    compile_batch(batch_of(1), fake, cache)
    assert cache.get("key000", fake) is not None
    assert cache.get("key000", replace(fake, identity="fake 2")) is None
    assert cache.get("key001", fake) is None


@pytest.mark.parametrize("content", [b"", b"{", b"null", b"[]", b"{}", b"\xff\xfe", b'{"schema": 1}'])
def test_a_torn_entry_is_a_miss(fake, cache, content):
    compile_batch(batch_of(1), fake, cache)
    entry_of(cache, "key000").write_bytes(content)
    assert cache.get("key000", fake) is None
    compile_batch(batch_of(1), fake, cache)
    assert cache.get("key000", fake) is not None


def test_an_entry_of_another_schema_or_key_is_a_miss(fake, cache):
    compile_batch(batch_of(1), fake, cache)
    entry = entry_of(cache, "key000")
    written = json.loads(entry.read_text())
    for changed in (
        {"schema": 1},
        {"key": "other"},
        {"toolchain": "other"},
        {"image": "../../x"},
        {"image": 3},
    ):
        content = {name: value for name, value in {**written, **changed}.items() if name != "checksum"}
        whole = {**content, "checksum": cache_module._checksum(content)}
        entry.write_text(json.dumps(whole))
        assert cache.get("key000", fake) is None
        entry.write_text(json.dumps({**written, **changed}))
        assert cache.get("key000", fake) is None
    entry.write_text(json.dumps(written))
    assert cache.get("key000", fake) is not None


def test_a_flipped_letter_in_an_entry_is_a_miss(fake, cache):
    compile_batch(batch_of(1), fake, cache)
    entry = entry_of(cache, "key000")
    whole = entry.read_text()
    assert "_key000" in whole
    for damaged in (whole.replace("_key000", "_kez000"), whole.replace('"registers": 8', '"registers": 9')):
        assert damaged != whole
        entry.write_text(damaged)
        assert cache.get("key000", fake) is None
    entry.write_text(whole)
    assert cache.get("key000", fake) is not None


@pytest.fixture
def no_private_folder(monkeypatch):
    monkeypatch.setattr(
        cache_module, "_private_root", functools.cache(cache_module._private_root.__wrapped__)
    )
    monkeypatch.setattr(cache_module, "_warned", set())


@pytest.mark.usefixtures("no_private_folder")
@pytest.mark.parametrize("place", ["root", "folder", "entry", "image"])
def test_what_others_may_write_is_a_miss_that_says_how_to_mend_it(fake, cache, monkeypatch, place):
    (compiled,) = compile_batch(batch_of(1), fake, cache)
    entry = entry_of(cache, "key000")
    path = {"root": cache.root, "folder": entry.parent, "entry": entry, "image": compiled.image}[place]
    path.chmod(path.stat().st_mode | 0o022)
    with pytest.warns(UserWarning, match=rf"may be written by others.*chmod -R go-w {cache.root}") as warned:
        assert cache.get("key000", fake) is None
        assert cache.get("key000", fake) is None
        (again,) = compile_batch(batch_of(1), fake, cache)
    assert len(warned) == 1
    assert not again.cached
    if place in ("root", "folder"):  # nothing is loaded from where it could be replaced in between
        assert not again.image.is_relative_to(path) or place == "folder"
    monkeypatch.setenv("AUTOTUNE_CACHE_SHARED", "1")
    assert cache.get("key000", fake) is not None


@pytest.mark.usefixtures("no_private_folder")
@pytest.mark.root
@pytest.mark.parametrize("place", ["root", "entry", "image"])
def test_another_users_file_is_a_miss(fake, cache, monkeypatch, place):
    (compiled,) = compile_batch(batch_of(1), fake, cache)
    path = {"root": cache.root, "entry": entry_of(cache, "key000"), "image": compiled.image}[place]
    os.chown(path, 12345, 12345)
    with pytest.warns(UserWarning, match="belongs to another user .*AUTOTUNE_CACHE"):
        assert cache.get("key000", fake) is None
    monkeypatch.setenv("AUTOTUNE_CACHE_SHARED", "1")
    assert cache.get("key000", fake) is not None


def test_a_cache_is_its_owners_alone_unless_it_is_shared(fake, tmp_path, monkeypatch):
    before = os.umask(0o002)
    try:
        compile_batch(batch_of(1), fake, Cache(tmp_path / "own"))
        monkeypatch.setenv("AUTOTUNE_CACHE_SHARED", "1")
        compile_batch(batch_of(1), fake, Cache(tmp_path / "shared"))
    finally:
        os.umask(before)
    for root, folders, files in (("own", 0o700, 0o600), ("shared", 0o775, 0o644)):
        found = [tmp_path / root, *(tmp_path / root).rglob("*")]
        assert {p.stat().st_mode & 0o777 for p in found if p.is_dir()} == {folders}
        assert {p.stat().st_mode & 0o777 for p in found if p.is_file()} == {files}


def test_a_torn_or_missing_image_is_a_miss_and_is_mended(fake, cache):
    (compiled,) = compile_batch(batch_of(1), fake, cache)
    image = compiled.image.read_bytes()
    for damage in (lambda: compiled.image.write_bytes(image[:-1]), compiled.image.unlink):
        damage()
        assert cache.get("key000", fake) is None
        compile_batch(batch_of(1), fake, cache)
        assert cache.get("key000", fake).image.read_bytes() == image


def test_no_temporary_file_is_left(fake, cache):
    compile_batch(batch_of(3), fake, cache)
    assert sorted(path.suffix for path in cache.root.rglob("*") if path.is_file()) == [".bin", *[".json"] * 3]
    assert not list(cache.root.rglob("*.tmp"))


@pytest.mark.usefixtures("no_private_folder")
def test_a_cache_that_cannot_be_written_loses_nothing(fake, tmp_path):
    # A file where the folder should be stops root as well, which permissions do not.
    (tmp_path / "file").write_text("")
    cache = Cache(tmp_path / "file" / "cache")
    with pytest.warns(UserWarning, match="cannot be written") as warned:
        (first,) = compile_batch(batch_of(1), fake, cache)
        list(compile_many(batch_of(4), fake, cache, 2, 1))
    assert len(warned) == 1
    assert "AUTOTUNE_CACHE" in str(warned[0].message)
    assert first.image.read_bytes() == b"V000"
    calls = len(fake.calls)
    assert all(result.cached for result in compile_batch(batch_of(4), fake, cache))
    assert len(fake.calls) == calls


def test_the_private_folder_ends_with_the_process(tmp_path):
    (tmp_path / "cache").write_text("")
    done = run_script(tmp_path, "print([chunk[0].image for chunk in chunks][-1])")
    image = Path(done.stdout.partition("PosixPath")[0].strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr
    assert "cannot be written" in done.stderr
    assert image.suffix == ".bin"
    assert not image.parent.parent.exists()


def test_the_default_root(monkeypatch, tmp_path):
    monkeypatch.setenv("AUTOTUNE_CACHE", str(tmp_path))
    assert default_root() == tmp_path
    monkeypatch.delenv("AUTOTUNE_CACHE")
    assert default_root().name == "autotune"


def test_importing_is_light():
    modules = ", ".join(f"autotune.compile.{name}" for name in ("cache", "nvcc", "nvrtc", "occupancy_model"))
    code = f"import sys, {modules}; print(*sys.modules)"
    root = str(Path(__file__).parents[2])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True)
    assert not {"pandas", "optuna", "cuda", "cuda.bindings", "platformdirs", "numpy"} & set(
        done.stdout.split()
    )
