"""A family's CUDA as a library: made once by nvcc, for which the host's compiler stands in here, and kept."""

import shlex
from pathlib import Path

import pytest

from autotune.compile import nvcc
from autotune.compile.host_library import cuda_library
from autotune.compile.hostcxx import find_compiler
from autotune.errors import CompilerError

STAND_IN = """#!/bin/sh
echo called >> {log}
for word; do last="$word"; [ "$before" = -o ] && out="$word"; before="$word"; done
{compiler} -shared -fPIC -x c++ "$last" -o "$out"
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program, log = tmp_path / "nvcc", tmp_path / "log"
    program.write_text(STAND_IN.format(log=log, compiler=shlex.join(find_compiler())))
    program.chmod(0o755)
    monkeypatch.setattr(nvcc, "find_nvcc", lambda: str(program))
    monkeypatch.setenv("AUTOTUNE_CACHE", str(tmp_path / "cache"))
    cuda_library.cache_clear()
    return log


def test_a_library_is_made_once_for_an_architecture_and_then_needs_no_nvcc(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "answer.cu"
    source.write_text('extern "C" int answer() { return 42; }\n')
    assert cuda_library(source, "sm_90").answer() == 42
    assert cuda_library(source, "sm_100").answer() == 42
    assert log.read_text() == "called\n" * 2

    def none() -> str:
        raise CompilerError("no nvcc")

    monkeypatch.setattr(nvcc, "find_nvcc", none)
    cuda_library.cache_clear()
    assert cuda_library(source, "sm_90").answer() == 42
    source.write_text('extern "C" int answer() { return 43; }\n')
    cuda_library.cache_clear()
    with pytest.raises(CompilerError, match="no nvcc"):
        cuda_library(source, "sm_90")


def test_what_does_not_compile_is_said(log: Path, tmp_path: Path) -> None:
    source = tmp_path / "broken.cu"
    source.write_text("#error no words today\n")
    with pytest.raises(CompilerError, match=r"(?s)nvcc does not compile broken\.cu: .*no words today"):
        cuda_library(source, "sm_90")
