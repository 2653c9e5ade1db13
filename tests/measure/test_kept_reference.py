"""The kept reference: what decides it is in its name, and a damaged one is computed again."""

from pathlib import Path

import numpy as np
import pytest
from fakes import FAMILY, write_family

from autotune.declaration import family as families
from autotune.declaration import workload
from autotune.measure import reference
from autotune.measure.reference import compute_expected


def named(folder: Path, tmp_path: Path) -> str:
    family = families.load_family(folder)
    return reference._key(family, workload.prepare(family, workload.load_workload(family), tmp_path))


PRESET = "presets:\n  plain: {set: {block_size: 64}}\n"
DECLARED = FAMILY.replace("reference: control", f"reference: plain\n{PRESET}")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("default: 128", "default: 64"),  # what the configuration is, where it is control
        ("ceil_div(n, block_size)", "ceil_div(n, block_size) + 1"),
        ("type: float32, shape: [n]}\n  y", "type: float64, shape: [n]}\n  y"),
        ("{block_size: 64}", "{block_size: 32}"),  # a preset, which decides nothing else
    ],
)
def test_a_corrected_declaration_is_another_reference(tmp_path: Path, old: str, new: str) -> None:
    folder = write_family(tmp_path / "doubler", DECLARED)
    before = named(folder, tmp_path)
    assert named(folder, tmp_path) == before
    assert old in DECLARED
    (folder / "family.yaml").write_text(DECLARED.replace(old, new))
    assert named(folder, tmp_path) != before


def test_another_compiler_is_another_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_family(tmp_path / "doubler")
    before = named(folder, tmp_path)
    monkeypatch.setattr("autotune.compile.hostcxx.HostCxx.identity", property(lambda self: "another"))
    assert named(folder, tmp_path) != before


def kept(folder: Path, tmp_path: Path) -> tuple[Path, np.ndarray, float]:
    """Return the kept file, the output and the reported time."""
    family = families.load_family(folder)
    inputs = workload.prepare(family, workload.load_workload(family), tmp_path)
    outputs, elapsed_ms = compute_expected(family, inputs, tmp_path / "cache")
    (path,) = (tmp_path / "cache" / "references").iterdir()
    return path, outputs["y"], elapsed_ms


def test_a_kept_reference_is_read_back(folder: Path, tmp_path: Path) -> None:
    _, first, elapsed_ms = kept(folder, tmp_path)
    path, second, again_ms = kept(folder, tmp_path)
    np.testing.assert_array_equal(first, second)
    assert again_ms == elapsed_ms
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("place", range(0, 400, 7))
def test_a_flipped_bit_is_never_a_lasting_error(folder: Path, tmp_path: Path, place: int) -> None:
    path, right, _ = kept(folder, tmp_path)
    whole = path.read_bytes()
    damaged = bytearray(whole)
    damaged[-place if place > 200 else place] ^= 0x04  # the zip file's beginning and its directory
    path.write_bytes(bytes(damaged))
    _, outputs, _ = kept(folder, tmp_path)
    np.testing.assert_array_equal(outputs, right)


@pytest.mark.parametrize("array", [np.zeros(3, np.float32), np.zeros(1000, np.float64), np.array("text")])
def test_an_array_of_another_kind_is_computed_again(folder: Path, tmp_path: Path, array: np.ndarray) -> None:
    path, right, _ = kept(folder, tmp_path)
    np.savez(path, y=array, milliseconds=np.float64(1))
    _, outputs, _ = kept(folder, tmp_path)
    np.testing.assert_array_equal(outputs, right)


def test_what_another_user_could_have_written_is_computed_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autotune.compile.cache._warned", set())
    path, right, _ = kept(folder, tmp_path)
    np.savez(path, y=np.zeros_like(right), milliseconds=np.float64(1))
    path.chmod(0o666)
    with pytest.warns(UserWarning, match="may be written by others"):
        _, outputs, _ = kept(folder, tmp_path)
    np.testing.assert_array_equal(outputs, right)
