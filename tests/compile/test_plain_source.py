"""A source that is compiled unmodified: the text before it, a unit for each configuration, names of symbols."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import FakeToolchain
from hypothesis import given, settings
from hypothesis import strategies as st
from plain import blur, floats, matrix, outputs, vector_add

from autotune.compile import (
    Cache,
    CompileFailure,
    HostCxx,
    Variant,
    batch,
    compile_batch,
    compile_many,
    default_root,
    find_compiler,
)
from autotune.compile.hostcxx import host_source
from autotune.compile.nvcc import Nvcc, instance_symbol, toolkit_headers, variable_names
from autotune.compile.nvrtc import Nvrtc
from autotune.compile.toolchain import Batch, VariantSource, translation_unit
from autotune.compile.variant import default_header
from autotune.declaration import load_family
from autotune.declaration.plain_kernel import Kernel
from autotune.errors import CompilerError

ECHO = """\
#include "echo.h"
extern "C" __global__ void echo(int* out) {
  out[0] = FIRST;
  out[1] = second();
  out[2] = THIRD;
}
"""
HEADER = """\
#pragma once
#ifndef FIRST
#define FIRST 77
#endif
__device__ inline int second() { return SECOND; }
#define THIRD (FIRST + SECOND)
"""


def units(kernel: Kernel, **chosen: Any) -> str:
    variants = [Variant.make(kernel.family, c, chosen) for c in kernel.family.space.configurations()]
    return "\n".join(translation_unit(unit) for unit in batch(kernel.family, tuple(variants)).units)


def test_choices_are_macros_for_the_source_alone() -> None:
    kernel = blur()
    text = units(kernel, RADIUS=3)
    assert text.count(f'#include "{kernel.folder}/blur.cu"') == 4
    first = text[: text.index("blur.cu")]
    assert "#define RADIUS 3\n" in first
    assert "#define per_thread 1\n" in first
    assert "autotune/" not in text  # no array is an accessor
    assert text.count("#undef per_thread") == 4
    assert "static_assert(sizeof(weights) > 0);" in text


def test_template_arguments_are_no_macros() -> None:
    kernel = matrix()
    (first, second) = (
        Variant.make(kernel.family, c, {}).source for c in kernel.family.space.configurations()
    )
    assert first.instance("dense::times") == "dense::times<1, float>"
    assert second.instance("dense::times") == "dense::times<3, float>"
    assert "#define" not in first.struct
    assert "using matrix = autotune::Array<" in first.struct
    assert first.headers == ("autotune/array.cuh",)


def test_each_configuration_has_a_unit_and_a_key_of_its_own() -> None:
    family = vector_add().family
    found = batch(family, tuple(Variant.make(family, c, {}) for c in family.space.configurations()))
    assert [len(unit.variants) for unit in found.units] == [1, 1, 1]
    assert len({variant.key for variant in found.variants}) == 3
    assert [unit.units for unit in found.units] == [(unit,) for unit in found.units]


def test_units_of_one_configuration_go_out_a_few_at_a_time(tmp_path: Path) -> None:
    family = vector_add(policies={"block_size": [32 * k for k in range(1, 12)]}).family
    found = batch(family, tuple(Variant.make(family, c, {}) for c in family.space.configurations()))
    chunks = list(compile_many(found, FakeToolchain(), Cache(tmp_path), 1, 24))
    assert [len(chunk) for chunk in chunks] == [4, 4, 3]


def test_what_is_compiled_with_other_options_is_another_unit() -> None:
    variants = tuple(
        VariantSource(f"k{i}", f"V{i}", "", ("sum",), options=options)
        for i, options in enumerate([(), ("-O1",), (), ("-O1", "-w")])
    )
    units = Batch(Path("k.cu"), (), variants, ("-lineinfo",)).units
    assert [[variant.name for variant in unit.variants] for unit in units] == [["V0", "V2"], ["V1"], ["V3"]]
    assert [unit.command_options for unit in units] == [
        ("-lineinfo",), ("-lineinfo", "-O1"), ("-lineinfo", "-O1", "-w"),
    ]  # fmt: skip


numbers = st.lists(st.integers(-1000, 1000), min_size=1, max_size=3, unique=True)


@settings(max_examples=4)
@given(numbers, numbers)
def test_configurations_never_share_a_binary(first: list[int], second: list[int]) -> None:
    kernel = Kernel(
        ECHO, "echo", arguments={"out": "output int32[three]"}, grid=1, block=1, headers={"echo.h": HEADER},
        extents={"three": {"value": 3}}, policies={"FIRST": first, "SECOND": second},
    )  # fmt: skip
    for configuration in kernel.family.space.configurations():
        one, two = int(configuration["FIRST"]), int(configuration["SECOND"])
        assert outputs(kernel.family, configuration, {})["out"].tolist() == [one, two, one + two]


NVRTC = pytest.param(Nvrtc("sm_90"), marks=pytest.mark.nvrtc, id="nvrtc")
NVCC = pytest.param(Nvcc("sm_90"), marks=pytest.mark.nvcc, id="nvcc")
HOST = pytest.param(HostCxx(find_compiler()), id="host")


@pytest.mark.parametrize("toolchain", [NVRTC, NVCC])
def test_cuda_compilers_find_kernels_by_their_plain_names(toolchain: Any, tmp_path: Path) -> None:
    for kernel, symbol in (
        (vector_add(), "vector_add"),
        (blur(), "_Z4blur"),
        (matrix(), "_ZN5dense5timesILi"),
    ):
        family = kernel.family
        variants = tuple(
            Variant.make(family, c, family.choose_options({})) for c in family.space.configurations()[:1]
        )
        for compiled in compile_batch(batch(family, variants), toolchain, Cache(tmp_path)):
            assert not isinstance(compiled, CompileFailure), compiled.message
            assert compiled.symbols[kernel.name].startswith(symbol)
            assert compiled.figures[kernel.name]["registers"] > 4
            if kernel.name == "blur":
                assert variable_names("weights", compiled.image.read_bytes())


@pytest.mark.parametrize("toolchain", [NVRTC, HOST])
def test_headers_that_are_included_out_of_habit_have_stand_ins(toolchain: Any, tmp_path: Path) -> None:
    names = [
        "cuda.h",
        "device_launch_parameters.h",
        "cstdio",
        "cstdint",
        "cmath",
        "cfloat",
        "climits",
        "iostream",
    ]
    included = "".join(f"#include <{name}>\n" for name in names)
    source = f"""{included}#include "hip/hip_runtime.h"
    __global__ void habits(float* y) {{ y[0] = FLT_MAX; y[1] = M_PI; y[2] = INT_MAX; y[3] = (uint8_t)300; }}"""
    kernel = Kernel(source, "habits", arguments={"y": "output float32[n]"}, extents={"n": 4}, grid=1, block=1,
                    policies={"unused": [1]})  # fmt: skip
    variant = Variant.make(kernel.family, kernel.family.space.control, {})
    (compiled,) = compile_batch(batch(kernel.family, (variant,)), toolchain, Cache(tmp_path))
    assert not isinstance(compiled, CompileFailure), compiled.message


@pytest.mark.nvrtc
def test_headers_of_the_toolkit_are_found_where_there_is_one(tmp_path: Path) -> None:
    source = """
    #include <cuda_runtime.h>
    #include <cuda_fp16.h>
    #include <math.h>
    #include <stdint.h>
    extern "C" __global__ void halves(float* y) {
      const __half h = __float2half(y[threadIdx.x]);
      y[threadIdx.x] = __half2float(__hmul(h, h)) * static_cast<uint32_t>(M_PI);
    }"""
    kernel = Kernel(
        source, "halves", arguments={"y": "inout float32[n]"}, grid=1, block="n", policies={"unused": [1]}
    )
    variant = Variant.make(kernel.family, kernel.family.space.control, {})
    (compiled,) = compile_batch(batch(kernel.family, (variant,)), Nvrtc("sm_90"), Cache(tmp_path))
    assert toolkit_headers()
    assert not isinstance(compiled, CompileFailure), compiled.message


@pytest.mark.nvrtc
def test_a_choice_of_compile_options_makes_binaries_of_its_own(tmp_path: Path) -> None:
    limit = {"compile_option": True, "values": ["none", "few"], "means": {"few": "-maxrregcount=24"}}
    source = """
    extern "C" __global__ void powers(float* y, const float* x, int n) {
      float v[24], s = 0;
      for (int k = 0; k < 24; ++k) v[k] = x[k * n + threadIdx.x];
      for (int k = 0; k < 24; ++k) for (int j = 0; j < 24; ++j) s += v[k] * v[(k * 5 + j) % 24];
      y[threadIdx.x] = s;
    }"""
    kernel = Kernel(
        source, "powers", arguments={"y": "output float32[n]", "x": "input float32[m]", "n": "int32"},
        extents={"n": {"value": "m // 24"}}, grid=1, block="block_size", policies={"block_size": [64], "limit": limit},
    )  # fmt: skip
    family = kernel.family
    variants = tuple(Variant.make(family, c, {}) for c in family.space.configurations())
    assert "limit" not in variants[1].source.struct
    free, few = compile_batch(batch(family, variants), Nvrtc("sm_90"), Cache(tmp_path))
    assert not isinstance(free, CompileFailure)
    assert not isinstance(few, CompileFailure)
    assert free.figures["powers"]["registers"] > 24 >= few.figures["powers"]["registers"]


def test_what_the_host_compiler_cannot_take_is_said_with_a_way_out(tmp_path: Path) -> None:
    source = '__global__ void wide(float* y) { asm volatile("mov.b32 %0, 0;" : "=f"(y[0])); y[1] = __nosuch(y[0]); }'
    kernel = Kernel(
        source, "wide", arguments={"y": "output float32[n]"}, extents={"n": {"value": 32}}, grid=1, block=32,
        policies={"unused": [1]},
    )  # fmt: skip
    variant = Variant.make(kernel.family, kernel.family.space.control, {})
    (failed,) = compile_batch(batch(kernel.family, (variant,)), HostCxx(find_compiler()), Cache(tmp_path))
    assert isinstance(failed, CompileFailure)
    assert "__nosuch" in failed.message
    assert "(the cpu device has no inline PTX (wide.cu:1): this kernel needs --device cuda" in failed.message


@pytest.mark.parametrize("toolchain", [NVRTC, HOST])
def test_a_header_of_the_host_program_is_said_with_a_way_out(toolchain: Any, tmp_path: Path) -> None:
    kernel = Kernel(
        "#include <chrono>\n__global__ void one(float* y) { y[0] = 1; }", "one", grid=1, block=1,
        arguments={"y": "output float32[n]"}, extents={"n": 1}, policies={"unused": [1]},
    )  # fmt: skip
    variant = Variant.make(kernel.family, kernel.family.space.control, {})
    (failed,) = compile_batch(batch(kernel.family, (variant,)), toolchain, Cache(tmp_path))
    assert isinstance(failed, CompileFailure)
    first, second = failed.message.split("\n  (", 1)
    assert "chrono" in first.splitlines()[-1]
    assert second.startswith("omit what only the host program needs: give only the kernel's part of the file")
    assert "compile the whole file with --compiler nvcc" in second


def test_a_symbol_that_the_source_lacks_does_not_compile(tmp_path: Path) -> None:
    kernel = vector_add(symbols={"nowhere": "float32[n]"})
    variant = Variant.make(kernel.family, kernel.family.space.control, {})
    (failed,) = compile_batch(batch(kernel.family, (variant,)), HostCxx(find_compiler()), Cache(tmp_path))
    assert isinstance(failed, CompileFailure)
    assert "nowhere" in failed.message


@pytest.mark.parametrize(
    ("instance", "symbols", "expected"),
    [
        ("add", ["add", "_Z3addPf"], "add"),
        ("add", ["_Z3addPf", "_Z4add2Pf", "_Z3addILi2EEvPf"], "_Z3addPf"),
        ("add<16>", ["_Z3addPf", "_Z3addILi1EEvPf", "_Z3addILi16EEvPf"], "_Z3addILi16EEvPf"),
        ("add<-2, float>", ["_Z3addILin2EdEvPf", "_Z3addILin2EfEvPf"], "_Z3addILin2EfEvPf"),
        ("a::b::add<true>", ["_ZN1a1b3addILb1EEEvPf", "_ZN1a1c3addILb1EEEvPf"], "_ZN1a1b3addILb1EEEvPf"),
        ("add<Mode::fast>", ["_Z3addIL4Mode1EEvPf"], "_Z3addIL4Mode1EEvPf"),
    ],
)
def test_the_symbol_of_an_instance(instance: str, symbols: list[str], expected: str) -> None:
    assert instance_symbol(instance, symbols) == expected


def test_a_symbol_that_cannot_be_told_apart_is_refused() -> None:
    with pytest.raises(CompilerError, match="2 kernels that may be add<Mode::fast>"):
        instance_symbol("add<Mode::fast>", ["_Z3addIL4Mode0EEvPf", "_Z3addIL4Mode1EEvPf"])
    with pytest.raises(CompilerError, match="no symbol for kernel sub"):
        instance_symbol("sub", ["_Z3addPf"])


def test_dynamic_shared_memory_is_named_for_the_host(tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_text("__global__ void k(float* y) { y[0] = 1; }\n")
    assert host_source(path) == f'#include "{path}"\n'
    path.write_text(
        "// extern __shared__ float no[];\nnamespace n {\nextern __shared__ double outer[];\n}\n"
        "template <class T> __global__ void k(T* y) {\n  extern __shared__ __align__(16) unsigned char inner[];\n}\n"
    )
    text = host_source(path)
    assert "// extern __shared__ float no[];" in text
    assert "#define outer (reinterpret_cast<double*>(::autotune::cpu::setting.dynamic_shared))" in text
    assert "unsigned char* const inner = reinterpret_cast<unsigned char*>(" in text
    assert text.count("extern __shared__") == 1
    path.write_text("__global__ void k() {\n  static __shared__ int a[2];\n  __shared__ static\n int b;\n}\n")
    assert host_source(path).endswith("void k() {\n   __shared__ int a[2];\n  __shared__ \n int b;\n}\n\n")


def test_the_editors_header_defines_what_nothing_else_did() -> None:
    text = default_header(vector_add().family)
    assert "#ifndef block_size\n#define block_size 64\n#endif\n" in text


# -- what they compute, on the cpu device -----------------------------------------------------------------------------


def test_a_stencil_with_its_filter_in_constant_memory() -> None:
    kernel, x = blur(), floats(333)
    for radius in (1, 3):
        weights = floats(2 * radius + 1, seed=radius)
        expected = np.convolve(np.pad(x, radius, "edge"), weights[::-1], "valid")
        for configuration in kernel.family.space.configurations():
            got = outputs(kernel.family, configuration, {"in": x, "weights": weights}, RADIUS=radius)
            np.testing.assert_allclose(got["out"], expected, rtol=1e-5)


STRUCT = """\
schema: 1
family: mixed
source: mixed.cu
extents: {n: {type: uint64}}
data:
  x: {role: input, type: float32, shape: [n]}
  by: {role: input, type: float32, shape: [n], access: pointer}
  y: {role: output, type: float32, shape: [n], access: pointer}
kernels:
  mixed:
    arguments: [y, x, by, n]
    grid: ["ceil_div(n, block_size)"]
    block: [block_size]
    template: [Policy, 3, mode, block_size]
policies:
  block_size: {values: [64, 128], default: 64}
  mode: {values: [plus, times], default: plus}
  memory: {layout: memory, data: [x], values: [global, texture], default: global}
reference: control
"""
STRUCT_SOURCE = """\
#include "autotune/array.cuh"
enum class Mode { plus, times };
template <class P, int factor, Mode mode, int block>
__global__ void mixed(float* y, typename P::x x, const float* by, unsigned long long n) {
  static_assert(block == P::block_size && mode == P::mode, "one configuration");
  const unsigned long long i = blockIdx.x * block + threadIdx.x;
  if (i < n) y[i] = mode == Mode::plus ? factor * x.load(i) + by[i] : factor * x.load(i) * by[i];
}
"""


@pytest.mark.parametrize(
    "compiler",
    ["", pytest.param("nvrtc", marks=pytest.mark.nvrtc), pytest.param("nvcc", marks=pytest.mark.nvcc)],
)
def test_a_family_of_templates_takes_pointers_sizes_and_more_template_arguments(
    compiler: str, tmp_path: Path
) -> None:
    (tmp_path / "family.yaml").write_text(STRUCT)
    (tmp_path / "mixed.cu").write_text(STRUCT_SOURCE)
    family = load_family(tmp_path)
    x, by = floats(150), floats(150, 1)
    if compiler:
        toolchain = Nvcc("sm_90") if compiler == "nvcc" else Nvrtc("sm_90")
        some = (
            family.space.configurations()[::3] if compiler == "nvrtc" else family.space.configurations()[:1]
        )
        variants = tuple(Variant.make(family, configuration, {}) for configuration in some)
        for compiled in compile_batch(batch(family, variants), toolchain, Cache(tmp_path)):
            assert not isinstance(compiled, CompileFailure), compiled.message
        return
    for configuration in family.space.configurations():
        got = outputs(family, configuration, {"x": x, "by": by})["y"]
        expected = 3 * x + by if configuration["mode"] == "plus" else 3 * x * by
        np.testing.assert_allclose(got, expected, rtol=1e-6)


@settings(max_examples=4)
@given(m=st.integers(1, 70), n=st.integers(1, 9), seed=st.integers(0, 99))
def test_layouts_of_the_one_accessor_change_nothing(m: int, n: int, seed: int) -> None:
    columns = {"rows": ["m", "n"], "columns": ["n", "m"]}
    kernel = matrix(
        axes={"layout": "axes", "data": ["matrix"], "values": ["rows", "columns"], "means": columns},
        memory={"layout": "memory", "data": ["matrix"], "values": ["global", "texture"]},
    )
    table, x = floats(m * n, seed).reshape(m, n), floats(n, seed + 1)
    for configuration in kernel.family.space.configurations():
        got = outputs(kernel.family, configuration, {"matrix": table, "x": x})["y"]
        np.testing.assert_allclose(got, table @ x, rtol=1e-5)
    assert Path(default_root(), "kernels").is_dir()


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        ("#include <mma.h>", "tensor cores"),
        ("#include <curand_kernel.h>", "cuRAND"),
        ('asm volatile("bar.sync 0;" : : "l"(y) : "none");', "inline PTX (two.cu:3)"),
        ("y[0] = __fadd_ru(y[0], 1);", "__fadd_ru"),
        ("// asm\n y[0] = __nosuch(1);", "__nosuch"),
    ],
)
def test_what_the_cpu_device_lacks_is_named(lines: str, what: str, tmp_path: Path) -> None:
    """It is the kernel's own part: leaving out the host's would not help."""
    ahead, inside = (lines, "") if lines.startswith("#") else ("", lines)
    kernel = Kernel(
        f"{ahead}\n__global__ void two(float* y) {{\n{inside}\n}}", "two", grid=1, block=1,
        arguments={"y": "output float32[n]"}, extents={"n": 1}, policies={"unused": [1]},
    )  # fmt: skip
    variant = Variant.make(kernel.family, kernel.family.space.control, {})
    toolchain = HostCxx(find_compiler())
    (failed,) = compile_batch(batch(kernel.family, (variant,)), toolchain, Cache(tmp_path))
    assert isinstance(failed, CompileFailure)
    assert f"(the cpu device has no {what}: this kernel needs --device cuda, or --static" in failed.message


@pytest.mark.nvrtc
def test_the_header_with_all_of_cub_is_read_in_parts(tmp_path: Path) -> None:
    """NVRTC takes no functions of a host program, which that header has."""
    source = """#include <cub/cub.cuh>
    __global__ void total(float* y) {
      __shared__ cub::BlockReduce<float, 64>::TempStorage room;
      const float sum = cub::BlockReduce<float, 64>(room).Sum(y[threadIdx.x]);
      if (threadIdx.x == 0) y[0] = sum;
    }"""
    kernel = Kernel(source, "total", arguments={"y": "inout float32[n]"}, extents={"n": 64}, grid=1, block=64,
                    policies={"unused": [1]})  # fmt: skip
    variant = Variant.make(kernel.family, kernel.family.space.control, {})
    (compiled,) = compile_batch(batch(kernel.family, (variant,)), Nvrtc("sm_90"), Cache(tmp_path))
    assert not isinstance(compiled, CompileFailure), compiled.message
