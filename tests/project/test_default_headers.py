"""default.cuh of every family, next to its source: the control configuration, so that the source compiles alone."""

import subprocess
from pathlib import Path

import pytest

from autotune.compile.nvcc import find_nvcc
from autotune.compile.variant import default_header
from autotune.declaration.family import families
from autotune.declaration.family import load_family as load
from autotune.files import include_dir

EXAMPLES = sorted(path.parent for path in (Path(__file__).parents[2] / "examples").glob("*/family.yaml"))


@pytest.mark.parametrize(
    "family", [*families(), *EXAMPLES], ids=lambda family: getattr(family, "name", family)
)
def test_it_is_what_show_prints(family: str | Path) -> None:
    loaded = load(family)
    assert (loaded.folder / "default.cuh").read_text() == default_header(loaded), (
        f"run: autotune show {family} control --header > {loaded.folder}/default.cuh"
    )


@pytest.mark.nvcc
@pytest.mark.parametrize("family", families())
def test_the_kernel_source_compiles_alone_with_it(family: str, tmp_path: Path) -> None:
    loaded = load(family)
    command = [
        str(find_nvcc()), "-std=c++17", "-arch=sm_90", "-Werror", "all-warnings", "-Xptxas", "-O0",
        *loaded.compile_options, f"-I{include_dir()}", "-cubin", "-o", str(tmp_path / "x.cubin"), str(loaded.source),
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
