"""Another identity begins another study, and the store says what differs."""

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes import PROTOCOL, FakeBackend, FakeToolchain
from store_process import POLICIES

from autotune.declaration import family as families
from autotune.declaration import workload
from autotune.layout import digest as layouts_digest
from autotune.record import identity
from autotune.record.store import Store
from autotune.record.study import Study


def described(folder: Path, tmp_path: Path, backend: FakeBackend | None = None, **changes: Any) -> Study:
    family, backend = families.load_family(folder), backend or FakeBackend()
    load = workload.load_workload(family)
    return identity.header(
        family, load, workload.prepare(family, load, tmp_path), backend.device, backend.tools.identity,
        changes.get("protocol", PROTOCOL),
    )  # fmt: skip


def edit(path: Path, old: str = "", new: str = "") -> None:
    path.write_text(path.read_text().replace(old, new) if old else "// edited\n")


CHANGES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "source": (lambda f: edit(f / "doubler.cu", "2 * x", "x + x"), "kernel source doubler.cu changed"),
    "new header": (lambda f: edit_new(f / "own.cuh"), "header own.cuh added"),
    "python": (lambda f: edit(f / "family.py", "2 *", "2.0 *"), "family's family.py changed"),
    "space": (lambda f: edit(f / "family.yaml", "128, 256]", "128, 256, 512]"), "space changed"),
    "workload": (
        lambda f: edit(f / "workloads" / "small.yaml", "seed: 1", "seed: 2"),
        "workload content changed",
    ),
}


def edit_new(path: Path) -> None:
    path.write_text("// new\n")


@pytest.mark.parametrize("change", CHANGES)
def test_an_edited_file_begins_a_new_study_that_says_why(
    folder: Path, tmp_path: Path, change: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "autotune")
    store = Store(tmp_path / "out")
    before = described(folder, tmp_path)
    assert store.open(before, POLICIES).why_new == ""
    assert store.open(before, POLICIES).why_new == ""
    step, said = CHANGES[change]
    step(folder)
    after = described(folder, tmp_path)
    assert after.identity != before.identity
    new = store.open(after, POLICIES)
    assert new.why_new == f"a new study: {said} since {before.about.date[:10]}"
    assert new.why_new in caplog.text
    assert new.get_known() == {}
    assert store.open(after, POLICIES).why_new == ""


def test_another_header_compiler_device_layout_or_protocol_is_told(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = folder / "own.cuh"
    edit_new(header)
    store = Store(tmp_path / "out")
    store.open(described(folder, tmp_path), POLICIES)

    def why(backend: FakeBackend | None = None, **changes: Any) -> str:
        return store.open(described(folder, tmp_path, backend, **changes), POLICIES).why_new

    assert "measurement protocol changed since" in why(protocol=replace(PROTOCOL, most=9))
    assert "compiler is fake 2, was fake" in why(FakeBackend(tools=FakeToolchain(identity="fake 2")))
    other = FakeBackend()
    other.device = replace(other.device, name="Another", multiprocessors=7)
    assert "device is Another (" in why(other)
    monkeypatch.setattr(identity, "layouts_digest", lambda: "f" * 64)
    assert "layout library changed" in why()
    monkeypatch.setattr(identity, "layouts_digest", layouts_digest.layouts_digest)
    header.write_text("// edited\n")
    assert "a new study: header own.cuh changed since" in why()


def test_every_part_of_an_identity_is_told(folder: Path, tmp_path: Path) -> None:
    """Nothing may change the identity that the parts do not show."""
    before = described(folder, tmp_path)
    for step, _ in CHANGES.values():
        step(folder)
        after = described(folder, tmp_path)
        assert (before.identity != after.identity) and (dict(before.parts) != dict(after.parts))
        before = after
