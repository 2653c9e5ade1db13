"""Images in an export: what is said of their layouts, and on a GPU that the program has them right."""

import subprocess
from pathlib import Path

import edges
import pytest
from exports import exporting

from autotune.cli.commands import main
from autotune.compile.nvcc import find_nvcc
from autotune.declaration import family as families
from autotune.declaration.family import Family
from autotune.export.parts import members
from autotune.hardware import Device
from autotune.layout import Data, Field, Layout, Sampling
from autotune.layout.digest import layouts_digest
from autotune.policy.file import Entry, PolicyFile, file_name, write

CHOSEN = {
    "small": {"memory": "texture", "dims": "image", "solid_dims": "image", "seen_dims": "image"},
    "turned": {"memory": "texture", "dims": "image", "axes": "columns"},
    "pitched": {"memory": "texture", "dims": "image_pitched", "solid_dims": "image"},
    "line": {"memory": "readonly"},
}


def test_what_is_said_of_an_image() -> None:
    sampling = Sampling("wrap", "normalised", "linear")
    data = Data(name="a", role="input", fields=(Field("", "int8"),), shape=("i", "j"), sampling=sampling)
    told = dict(members(Layout(data=data, memory="texture", dims="image_pitched", axes=(1, 0))))
    assert told == {
        "name": '"a"', "memory": "Memory::texture", "dims": "Dims::pitched_image", "element_bytes": "1",
        "texel_bytes": "1", "axes": "{1, 0}", "edge": "Edge::wrap", "texel": "Texel::integer",
        "is_normalised": "true", "is_linear": "true", "is_surface": "false",
    }  # fmt: skip
    told = dict(members(Layout(data=data, memory="global", dims="image")))
    assert "dims" not in told and "edge" not in told  # a line, whose rules are the accessor's
    output = Data(name="b", role="output", fields=(Field("", "float32"),), shape=("i", "j"))
    told = dict(members(Layout(data=output, dims="image")))
    assert told == {
        "name": '"b"', "dims": "Dims::image", "axes": "{0, 1}", "edge": "Edge::clamp", "texel": "Texel::bits",
        "is_normalised": "false", "is_linear": "false", "is_surface": "true",
    }  # fmt: skip


def _policies(family: Family, root: Path) -> None:
    entries = {
        name: Entry(
            name=name, workload=name, features={"height": 19.0 * 2**i, "width": 33, "depth": 5, "points": 2000},
            options={}, configuration={**family.space.control, **chosen}, median_ms=1.0 + i, spread=0.01, samples=9,
            source_digest=family.source_digest, layouts_digest=layouts_digest(), space_digest=family.space_digest,
            date="2026-01-02T03:04:05+00:00",
        )
        for i, (name, chosen) in enumerate(CHOSEN.items())
    }  # fmt: skip
    path = root / file_name(family.name, "fake-gpu")
    path.parent.mkdir(parents=True)
    device = Device(kind="cuda", name="Fake GPU", arch="sm_90")
    write(
        path,
        PolicyFile(family=family.name, device=device, entries=entries, default=dict(family.space.control)),
    )


@pytest.mark.gpu
@pytest.mark.nvcc
def test_an_exported_program_reads_and_writes_images(tmp_path: Path) -> None:
    family = families.load_family(edges.write(tmp_path / "edges"))
    _policies(family, tmp_path / "policies")
    out = tmp_path / "out"
    assert main(exporting(tmp_path / "edges", tmp_path / "policies", out)) == 0
    command = [find_nvcc(), "-std=c++17", "-arch=native", f"-I{out}", f"-I{out / 'kernels'}",
               "-Xcompiler=-Wall,-Wextra,-Werror", "-o", str(tmp_path / "example"),
               *(str(out / name) for name in ("edges_configurations.cpp", "edges_launch.cu", "main.cu"))]  # fmt: skip
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0 and "warning" not in done.stderr, done.stderr
    done = subprocess.run(
        [tmp_path / "example", out / "example"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("as expected") >= len(CHOSEN)
    assert "wrong" not in done.stdout
