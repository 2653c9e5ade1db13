"""What compilers say of a family's mistakes: a record that differs from its declaration, the family's own line."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes import SOURCE, write_family

from autotune.compile.batches import compile_batch
from autotune.compile.cache import Cache
from autotune.compile.hostcxx import HostCxx, find_compiler
from autotune.compile.nvcc import Nvcc
from autotune.compile.nvrtc import Nvrtc
from autotune.compile.toolchain import CompileFailure, Toolchain
from autotune.compile.variant import Variant, batch
from autotune.declaration import family as families

RECORD = """\
schema: 1
family: doubler
source: doubler.cu
data:
  x: {role: input, record: Test, fields: {feature: int32, threshold: float32}, shape: [n]}
  y: {role: output, type: float32, shape: [n]}
kernels:
  doubler: {arguments: [x, y], grid: ["ceil_div(n, block_size)"], block: [block_size]}
policies:
  records: {layout: records, data: [x], values: [aos, soa], default: aos}
  block_size: {values: [32], default: 32}
reference: control
"""
STRUCT = "struct Test { int feature; float threshold; };\n"


def _toolchains() -> list[object]:
    return [
        pytest.param(lambda: HostCxx(find_compiler()), id="g++"),
        pytest.param(lambda: Nvrtc("sm_90"), id="nvrtc", marks=pytest.mark.nvrtc),
        pytest.param(lambda: Nvcc("sm_90"), id="nvcc", marks=pytest.mark.nvcc),
    ]


@pytest.mark.parametrize("toolchain", _toolchains())
def test_a_record_is_held_against_the_declaration(tmp_path: Path, toolchain: Callable[[], Toolchain]) -> None:
    field = r"record Test: family\.yaml has its field (feature|threshold) \((int|float)32\) at byte [04]"
    size = r"record Test: family\.yaml declares 8 bytes \(int32 feature, float32 threshold\)"
    for struct, said in (
        (STRUCT, ""),
        ("struct Test { float threshold; int feature; };\n", field),
        ("struct Test { int feature; float threshold; int more; };\n", size),
        ("struct Test { short feature; float threshold; };\n", field),
    ):
        folder = write_family(
            tmp_path / "doubler", RECORD, struct + SOURCE.replace("x.load(i)", "x.load(i).threshold")
        )
        family = families.load_family(folder)
        made = compile_batch(
            batch(family, (Variant(family, family.space.control),)), toolchain(), Cache(tmp_path / "c")
        )
        message = getattr(made[0], "message", "")
        assert bool(message) == bool(said), message
        assert re.search(said, message)


@pytest.mark.parametrize("toolchain", _toolchains())
def test_an_error_in_a_template_names_the_familys_own_line(
    tmp_path: Path, toolchain: Callable[[], Toolchain]
) -> None:
    folder = write_family(tmp_path / "doubler", source=SOURCE.replace("x.load(i)", "x.load(i, i)"))
    family = families.load_family(folder)
    asked = batch(family, (Variant(family, family.space.control),))
    (made,) = compile_batch(asked, toolchain(), Cache(tmp_path / "cache"))
    assert isinstance(made, CompileFailure)
    lines = made.message.splitlines()
    error = next(i for i, line in enumerate(lines) if re.search(r"\berror\b", line))
    assert "mapping.cuh" in lines[error]
    assert lines[error + 1] == f"  used in {folder}/doubler.cu:5"
