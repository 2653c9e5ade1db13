"""The real compilers, on a tiny family of kernels: what they need is a toolkit or a wheel, not a GPU."""

import sys
import tempfile
from pathlib import Path

import pytest
from waiting import eventually

from autotune.compile import nvcc, nvrtc
from autotune.compile.batches import compile_batch, compile_many
from autotune.compile.cache import Cache
from autotune.compile.nvcc import Nvcc
from autotune.compile.nvrtc import Nvrtc
from autotune.compile.toolchain import Batch, BuildError, Compiled, CompileFailure, VariantSource
from autotune.errors import CompilerError

SOURCE = r"""
#include "scale.h"

template <class V>
__global__ void __launch_bounds__(V::block, V::blocks) scale(const float* in, float* out, int n) {
  __shared__ float tile[V::block];
  tile[threadIdx.x] = factor(in[threadIdx.x]);
  __syncthreads();
  float values[V::values], sum = 0;
#pragma unroll
  for (int i = 0; i < V::values; ++i) values[i] = in[threadIdx.x + i * n];
#pragma unroll
  for (int j = 0; j < V::values; ++j) {
    sum = 0;
#pragma unroll
    for (int i = 0; i < V::values; ++i) sum += values[i] * values[(i * 7 + j) % V::values];
    out[threadIdx.x + j * n] = sum * tile[threadIdx.x ^ 1];
  }
}

namespace second {
template <class V, int step = V::values>
__global__ void scale(float* out, const V* = nullptr) {
  out[threadIdx.x * step] = 1;
}
}  // namespace second

#ifndef AUTOTUNE_VARIANTS
#error "AUTOTUNE_VARIANTS must be defined"
#endif
"""

HEADER = """
__device__ inline float factor(float x) { return 2 * x; }
"""

KERNELS = ("scale", "second::scale")


@pytest.fixture(
    params=[pytest.param(Nvrtc, marks=pytest.mark.nvrtc), pytest.param(Nvcc, marks=pytest.mark.nvcc)]
)
def toolchain(request):
    return request.param("sm_90")


@pytest.fixture
def family(tmp_path: Path) -> Batch:
    include = tmp_path / "include folder"
    include.mkdir()
    (include / "scale.h").write_text(HEADER)
    (tmp_path / "scale.cu").write_text(SOURCE)
    return Batch(tmp_path / "scale.cu", (include,), ())


def variant(
    number: int, *, block: int = 64, blocks: int = 1, values: int = 2, extra: str = ""
) -> VariantSource:
    constants = {"block": block, "blocks": blocks, "values": values}
    body = " ".join(f"static constexpr int {name} = {value};" for name, value in constants.items())
    return VariantSource(f"key{number}", f"V{number}", f"struct V{number} {{ {body} {extra} }};", KERNELS)


def test_symbols_and_figures(toolchain, family):
    # V1 is the beginning of V12, and one kernel's name is the end of the other's.
    built = toolchain.build(family.select([variant(1, block=64), variant(12, block=128)]))
    assert built.image.startswith(b"\x7fELF")
    assert set(built.symbols) == set(built.figures) == {"key1", "key12"}
    assert built.symbols["key1"]["scale"].startswith("_Z5scaleI2V1E")
    assert built.symbols["key12"]["scale"].startswith("_Z5scaleI3V12E")
    assert built.symbols["key1"]["second::scale"].startswith("_ZN6second5scaleI2V1L")
    for named in built.symbols.values():
        assert set(named) == set(KERNELS)
        for symbol in named.values():
            assert b"\0" + symbol.encode() + b"\0" in built.image
    for key, block in (("key1", 64), ("key12", 128)):
        figures = built.figures[key]["scale"]
        assert 0 < figures["registers"] <= 255
        assert figures["static_shared_bytes"] == block * 4
        assert figures["spill_store_bytes"] == figures["spill_load_bytes"] == figures["local_bytes"] == 0
        assert built.figures[key]["second::scale"]["static_shared_bytes"] == 0


def test_spills(toolchain, family):
    # 2 blocks of 1024 threads leave 32 registers a thread.
    built = toolchain.build(family.select([variant(1, block=1024, blocks=2, values=48)]))
    figures = built.figures["key1"]["scale"]
    assert figures["registers"] == 32
    assert figures["spill_store_bytes"] > 0
    assert figures["spill_load_bytes"] > 0
    assert figures["local_bytes"] > 0


def test_options_are_passed_on(toolchain, family):
    options = ("-maxrregcount=24",) if isinstance(toolchain, Nvcc) else ("--maxrregcount=24",)
    batch = Batch(family.source, family.include_dirs, (variant(1, values=40, block=32),), options)
    batch = batch.select([VariantSource("key1", "V1", batch.variants[0].struct, ("second::scale",))])
    assert toolchain.build(batch).figures["key1"]["second::scale"]["registers"] <= 24


def test_an_unknown_option_is_not_a_variants_fault(toolchain, family):
    batch = Batch(family.source, family.include_dirs, (variant(1), variant(2)), ("--no-such-option",))
    with pytest.raises(CompilerError, match="no-such-option"):
        toolchain.build(batch)


@pytest.mark.parametrize(
    ("struct", "expected"),
    [
        ("struct V1 { static constexpr int block = 64, blocks = 1; };", 'class "V1" has no member "values"'),
        (
            "struct V1 { static constexpr int block = 32000, blocks = 1, values = 2; };",
            "too much shared data",
        ),
        ('struct V1 { static_assert(sizeof(int) == 3, "an odd int"); };', "an odd int"),
    ],
)
def test_messages_are_kept(toolchain, family, struct, expected):
    with pytest.raises(BuildError) as error:
        toolchain.build(family.select([VariantSource("key1", "V1", struct, ("scale",))]))
    assert expected in str(error.value)
    assert "ptxas info" not in str(error.value)


def test_an_unknown_kernel_is_named(toolchain, family):
    source = VariantSource("key1", "V1", variant(1).struct, ("scaled",))
    with pytest.raises(BuildError, match="scaled"):
        toolchain.build(family.select([source]))


def test_failures_among_twenty_are_separated(toolchain, family, tmp_path):
    # One is stopped by the front end and one, later, by the assembler.
    variants = [variant(number, values=1 + number % 3) for number in range(100, 120)]
    variants[7] = VariantSource(
        "key107", "V107", "struct V107 { static constexpr int block = 64; };", KERNELS
    )
    variants[13] = variant(113, block=32000)
    results = compile_batch(family.select(variants), toolchain, Cache(tmp_path / "cache"))
    assert [result.key for result in results] == [f"key{number}" for number in range(100, 120)]
    failures = {result.key: result.message for result in results if isinstance(result, CompileFailure)}
    assert set(failures) == {"key107", "key113"}
    assert 'class "V107" has no member' in failures["key107"]
    assert "shared data" in failures["key113"]
    compiled = [result for result in results if isinstance(result, Compiled)]
    assert len({result.image for result in compiled}) == 1
    assert all(result.figures["scale"]["registers"] > 0 for result in compiled)


def test_in_processes(toolchain, family, tmp_path):
    variants = [variant(number) for number in range(6)]
    cache = Cache(tmp_path / "cache")
    results = [r for chunk in compile_many(family.select(variants), toolchain, cache, 2, 3) for r in chunk]
    assert [result.key for result in results] == [f"key{number}" for number in range(6)]
    assert 2 <= len({result.image for result in results}) <= 6
    again = compile_batch(family.select(variants), toolchain, cache)
    assert all(result.cached for result in again)
    assert [result.symbols for result in again] == [result.symbols for result in results]
    assert [result.figures for result in again] == [result.figures for result in results]


def test_an_unknown_target_is_named_with_the_known_ones(toolchain, family):
    with pytest.raises(CompilerError, match=r"no target 'sm_91'; did you mean 'sm_90'\? \(allowed: sm_75, "):
        type(toolchain)("sm_91").build(family.select([variant(1)]))


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_120"])
def test_other_targets(toolchain, family, arch):
    built = type(toolchain)(arch).build(family.select([variant(1)]))
    assert built.figures["key1"]["scale"]["registers"] > 0


def test_identities_differ_in_compiler_and_target(toolchain):
    other = type(toolchain)("sm_80")
    assert toolchain.identity != other.identity
    assert type(toolchain).__name__.lower() in toolchain.identity
    assert toolchain.identity == type(toolchain)("sm_90").identity


@pytest.mark.nvcc
@pytest.mark.nvrtc
def test_both_find_the_same_symbols(family):
    batch = family.select([variant(1), variant(2, values=5)])
    assert Nvcc("sm_90").build(batch).symbols == Nvrtc("sm_90").build(batch).symbols


@pytest.mark.nvcc
def test_flags_from_the_environment_are_part_of_nvccs_identity(monkeypatch):
    plain = Nvcc("sm_90").identity
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "--use_fast_math")
    assert Nvcc("sm_90").identity != plain


@pytest.mark.nvcc
def test_closing_ends_nvcc_and_removes_its_files(family, tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    # The second one takes many seconds.
    variants = [variant(1), variant(2, block=1024, values=128)]
    chunks = compile_many(family.select(variants), Nvcc("sm_90"), Cache(tmp_path / "cache"), 2, 1)
    next(chunks)
    assert eventually(lambda: mentioning(folder))
    chunks.close()
    # A process that was killed is there until it has given its memory back.
    assert eventually(lambda: not mentioning(folder))
    assert not list(folder.iterdir())


def mentioning(folder: Path) -> list[bytes]:
    """The command lines of processes that were given a path in the folder."""
    lines = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            lines.append((process / "cmdline").read_bytes())
        except OSError:  # it has ended
            continue
    return [line for line in lines if bytes(folder) in line]


def test_nvrtc_that_is_not_installed(family, monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.bindings.nvrtc", None)
    nvrtc._version.cache_clear()
    with pytest.raises(CompilerError, match=r"pip install .*\[static\]'.*--compiler nvcc"):
        Nvrtc("sm_90").build(family.select([variant(1)]))
    with pytest.raises(CompilerError):
        _ = Nvrtc("sm_90").identity


def test_nvcc_that_is_not_installed(family, monkeypatch, tmp_path):
    for name in ("PATH", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setattr(nvcc, "_TOOLKIT", str(tmp_path))
    nvcc._version.cache_clear()
    with pytest.raises(CompilerError, match=r"nvcc was not found on PATH, .* --compiler nvrtc"):
        Nvcc("sm_90").build(family.select([variant(1)]))
    program = tmp_path / "bin" / "nvcc"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert nvcc.find_nvcc() == str(program)
