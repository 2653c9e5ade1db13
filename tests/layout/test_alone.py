"""docs/guides/layout-library.md: the library without the tuner by nvcc and clang, with CMake, in C++ with the standard
library; checked accessors; conversions to and from mdspan and CuTe."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import autotune
from autotune.compile.nvcc import find_nvcc, toolkit_headers
from autotune.files import include_dir

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "layout-library.md"
CLANG = "clang++-19"
ISYSTEM = [f"-isystem{folder}" for folder in reversed(toolkit_headers())]  # cccl first
HOST = ["g++", pytest.param(CLANG, marks=pytest.mark.clang)]
WARNINGS = ("-std=c++17", "-Wall", "-Wextra", "-Werror")
# Headers that clang 19 includes ahead of a CUDA source and CUDA 13 no longer has, or a toolkit without curand.
GONE = ("texture_fetch_functions.h", "curand_mtgp32_kernel.h")

# All of the standard library, and what a testing framework includes of the system.
STANDARD = "".join(
    f"#include <{name}>\n"
    for name in ("bits/stdc++.h", "math.h", "stdlib.h", "execinfo.h", "fcntl.h", "pthread.h", "signal.h",
                 "sys/stat.h", "sys/time.h", "sys/wait.h", "unistd.h")
)  # fmt: skip
LIBRARY = "".join(
    f'#include "autotune/{path.name}"\n' for path in sorted((include_dir() / "autotune").glob("*.cuh"))
)


def fenced(language: str, number: int = 0) -> str:
    """A block of the page."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)[number]


def succeed(*command: str | Path, folder: Path | None = None) -> str:
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def built(compiler: str, source: str, folder: Path, *options: str) -> Path:
    """Build a host program over the headers, without warnings of the headers."""
    (folder / "program.cpp").write_text(source)
    command = [compiler, *WARNINGS, "-DAUTOTUNE_CPU", f"-isystem{include_dir()}", *options]
    succeed(*command, "-pthread", "program.cpp", "-o", "program", folder=folder)
    return folder / "program"


def test_the_version_is_the_packages() -> None:
    header = (include_dir() / "autotune" / "layout.cuh").read_text()
    assert f'#define AUTOTUNE_LAYOUT_VERSION "{autotune.__version__}"\n' in header


def test_every_file_names_its_licence() -> None:
    files = [path for path in include_dir().rglob("*") if path.is_file()]
    assert len(files) > 100
    for path in files:
        assert re.match(r"(//|#) SPDX-License-Identifier: Apache-2.0\n", path.read_text()), path


def test_what_is_the_cpus_own_is_in_its_folder() -> None:
    """device.cuh chooses between them; no other header has both, and no header of the cpu includes the library's."""
    shim = [include_dir() / "autotune" / "cpu.hpp", *(include_dir() / "autotune" / "cpu").rglob("*.hpp")]
    assert len(shim) > 15
    for path in shim:
        assert not re.search(r'#include "autotune/\w+\.cuh"', path.read_text()), path
    for path in (include_dir() / "autotune").glob("*.cuh"):
        text = path.read_text()
        assert "#ifdef AUTOTUNE_CPU" not in text or path.name == "device.cuh", path
        for alone in re.findall(r"#ifndef AUTOTUNE_CPU\n(.*?)#endif", text, re.DOTALL):
            assert "#el" not in alone, path


# -- the program ---------------------------------------------------------------------------------------------


@pytest.fixture
def program(tmp_path: Path) -> Path:
    text = fenced("cpp")
    assert len(text.splitlines()) <= 40
    assert re.findall(r'#include "(.*)"', text) == ["autotune/layout.cuh"]
    source = tmp_path / "program.cu"
    source.write_text(text)
    return source


@pytest.mark.nvcc
def test_nvcc_compiles_it(program: Path) -> None:
    command = [find_nvcc(), "-std=c++17", "-arch=sm_90", "-Werror", "all-warnings", f"-I{include_dir()}"]
    succeed(*command, program.name, "-o", "program", folder=program.parent)
    hidden = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([program.with_suffix("")], env=hidden, check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout.strip()  # it says what is missing


@pytest.mark.nvcc
@pytest.mark.gpu
def test_it_runs(program: Path) -> None:
    command = [find_nvcc(), "-std=c++17", "-arch=native", f"-I{include_dir()}"]
    succeed(*command, program.name, "-o", "program", folder=program.parent)
    assert succeed(program.with_suffix("")) == "mass 512, moment 32640\n"  # of the first 256 particles


@pytest.mark.nvcc
@pytest.mark.clang
@pytest.mark.parametrize("is_checked", [False, True])
def test_clang_compiles_it_for_a_gpu(program: Path, is_checked: bool) -> None:
    gone = program.parent / "gone"
    gone.mkdir()
    for name in GONE:
        (gone / name).touch()
    if is_checked:
        text = program.read_text().replace("layout.cuh", "checked.cuh")
        text = text.replace("#include", '#include "autotune/layout.cuh"\n#include', 1)
        program.write_text(re.sub(r"using (\w+) = (autotune.*);", r"AUTOTUNE_ARRAY(\1, \2);", text))
        assert program.read_text().count("AUTOTUNE_ARRAY") == 2
    succeed(
        CLANG, *WARNINGS, "-Wno-unknown-cuda-version", "-O2", "-x", "cuda", "--cuda-device-only", "-S",
        "-DAUTOTUNE_CHECK_BOUNDS", "--cuda-gpu-arch=sm_90", f"--cuda-path={toolkit_headers()[0].parent}",
        "-isystem", str(gone), f"-I{include_dir()}", program.name, "-o", "program.ptx", folder=program.parent,
    )  # fmt: skip
    ptx = (program.parent / "program.ptx").read_text()
    assert ptx.count(".entry") == 2
    assert ("vprintf" in ptx) == is_checked


# -- with the standard library -------------------------------------------------------------------------------


@pytest.mark.parametrize("compiler", HOST)
@pytest.mark.parametrize("standard", ["c++17", "c++20"])
def test_the_headers_and_the_standard_library_do_not_clash(
    compiler: str, standard: str, tmp_path: Path
) -> None:
    """Whichever comes first; and functions that both have are found, by each compiler in one standard."""
    body = """
int main() {
  const double root = sqrt(2.0), half = std::sqrt(0.25);
  const float single = sqrt(2.0f) + abs(-1.5f) + fabs(-2.0f) + pow(2.0f, 2.0f) + std::max(1.0f, 2.0f);
  const auto shared = std::make_shared<long long>(abs(-3ll) + max(1, 2) + min(1u, 2u));
  std::cout << root << half << single << *shared << '\\n';
}
"""
    for order in (STANDARD + LIBRARY, LIBRARY + STANDARD):
        made = built(compiler, order + body, tmp_path, f"-std={standard}", "-fsyntax-only")
        assert not made.exists()
    if (compiler, standard) in (("g++", "c++17"), (CLANG, "c++20")):
        made = built(
            compiler, f"#include <memory>\n{LIBRARY}#include <iostream>\n{body}", tmp_path, f"-std={standard}"
        )
        assert succeed(made) == "1.414210.510.91426\n"


@pytest.mark.zig
def test_the_headers_and_libcxx_do_not_clash(tmp_path: Path) -> None:
    body = "float number = sqrt(2.0f) + std::abs(-1.0f) + min(1, 2);\n"
    (tmp_path / "x.cpp").write_text(
        f"#include <vector>\n{LIBRARY}#include <cmath>\n#include <iostream>\n{body}"
    )
    options = ["-std=c++17", *WARNINGS[1:3], "-DAUTOTUNE_CPU", f"-isystem{include_dir()}", "-c", "x.cpp"]
    succeed(sys.executable, "-m", "ziglang", "c++", *options, folder=tmp_path)


@pytest.mark.nvcc
@pytest.mark.parametrize("compiler", HOST)
def test_headers_of_cuda_may_come_first_or_last(compiler: str, tmp_path: Path) -> None:
    body = "int main() { return min(static_cast<int>(threadIdx.x), 1) + static_cast<int>(make_uint2(0, 0).x); }\n"
    cuda = "#include <cuda_fp16.h>\n#include <cuda_runtime.h>\n"
    for order in (cuda + LIBRARY, LIBRARY + cuda):
        built(compiler, order + body, tmp_path, *ISYSTEM, "-fsyntax-only")


VALUES = """
#include <bit>
#include <complex>
#include "autotune/layout.cuh"
bool operator==(float4 a, float4 b) { return a.x == b.x && a.w == b.w; }
namespace other {
struct Pair {
  float a, b;
  bool operator==(const Pair& pair) const { return a == pair.a && b == pair.b; }
};
template <class To, class From>
To bit_cast(const From&) = delete;
}
template <class Value, class Array>
[[gnu::noinline]] bool stores(Value* memory, Array array, Value one, Value two) {
  memory[1] = one;
  array.store(two, 1);
  return memory[1] == two;
}
template <class Value, class Array>
[[gnu::noinline]] bool loads(Value* memory, Array array, Value one, Value two) {
  array.store(two, 1);
  memory[1] = one;
  return array.load(1) == one;
}
template <class Value>
bool holds(Value one, Value two) {
  Value memory[2] = {};
  const auto array = autotune::dense<autotune::GlobalArray<Value>>(memory, 2);
  return stores(memory, array, one, two) && loads(memory, array, one, two);
}
int main() {
  const bool is_right = holds(1.0f, 2.0f) && holds(1.0, 2.0) && holds<long long>(1, 2) && holds<short>(1, 2) &&
                        holds<std::complex<float>>({1, 2}, {3, 4}) && holds<other::Pair>({1, 2}, {3, 4}) &&
                        holds(float4{1, 2, 3, 4}, float4{5, 6, 7, 8});
  return is_right ? 0 : 1;
}
"""


@pytest.mark.parametrize("compiler", HOST)
def test_a_program_sees_what_an_accessor_stored(compiler: str, tmp_path: Path) -> None:
    """Also where the compiler takes it that a float is no word; and a value's own bit_cast is not called."""
    succeed(built(compiler, VALUES, tmp_path, "-std=c++20", "-O2"))


def test_without_cuda_the_headers_say_what_to_define(tmp_path: Path) -> None:
    (tmp_path / "x.cpp").write_text('#include "autotune/layout.cuh"\n')
    command = ["g++", "-fsyntax-only", f"-I{include_dir()}", str(tmp_path / "x.cpp")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (
        "need a CUDA compiler, or AUTOTUNE_CPU defined for host C++ (CMake: autotune_layout::host)"
        in done.stderr
    )


def test_dense_arrays_lie_as_they_say(tmp_path: Path) -> None:
    """The contiguous index is the fastest, then the others from the last to the first; Aosoa takes whole runs."""
    source = """
#include <cstdio>
#include "autotune/layout.cuh"
struct Two {
  float a, b;
};
template <int CONTIGUOUS>
long place() {
  static float memory[105];
  const auto array = autotune::dense<autotune::GlobalArray<float, 3, CONTIGUOUS>>(memory, 5, 7, 3);
  return &autotune::element(array, 3, 4, 1) - memory;
}
template <class Records>
using Twos = autotune::GlobalArray<Two, 1, 0, Records>;
int main() {
  std::printf("%ld %ld %ld\\n", place<2>(), place<1>(), place<0>());
  std::printf("%llu %llu\\n", autotune::dense_size<Twos<autotune::Soa>>(1000),
              autotune::dense_size<Twos<autotune::Aosoa<32>>>(1000));
  Two memory[64];
  const auto runs = autotune::dense<Twos<autotune::Aosoa<32>>>(memory, 40);
  const auto parts = autotune::dense<Twos<autotune::Soa>>(memory, 40);
  const auto* const base = reinterpret_cast<float*>(memory);
  std::printf("%td %td\\n", &autotune::field<&Two::b>(runs, 33) - base, &autotune::field<&Two::b>(parts, 33) - base);
}
"""
    told = succeed(built("g++", source, tmp_path))
    places = (3 * 7 + 4) * 3 + 1, 3 * 21 + 7 + 4, 3 + 5 + 4 * 15
    assert told == f"{' '.join(map(str, places))}\n1000 1024\n{64 + 32 + 1} {40 + 33}\n"


# -- CMake ---------------------------------------------------------------------------------------------------


@pytest.mark.cmake
@pytest.mark.parametrize("compiler", HOST)
def test_a_project_finds_the_installed_package(compiler: str, tmp_path: Path) -> None:
    prefix, project = tmp_path / "prefix", tmp_path / "project"
    succeed("cmake", "-S", include_dir(), "-B", tmp_path / "made")
    succeed("cmake", "--install", tmp_path / "made", "--prefix", prefix)
    assert (prefix / "include" / "autotune" / "interop" / "mdspan.cuh").is_file()
    assert not list(prefix.rglob("*.cpp"))
    assert all(str(include_dir()) not in path.read_text() for path in prefix.rglob("*.cmake"))
    project.mkdir()
    (project / "CMakeLists.txt").write_text(fenced("cmake"))
    (project / "check.cpp").write_text(fenced("cpp", 1))
    told = (
        f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_CXX_COMPILER={compiler}",
        "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror",
    )
    succeed("cmake", "-S", project, "-B", project, *told)
    succeed("cmake", "--build", project)
    succeed(project / "check")


@pytest.mark.cmake
def test_a_project_that_adds_the_folder_gets_no_warnings_of_it(tmp_path: Path) -> None:
    found = "find_package(autotune_layout 0.1 REQUIRED)"
    assert found in fenced("cmake")
    added = fenced("cmake").replace(found, f"add_subdirectory({include_dir()} headers)")
    (tmp_path / "CMakeLists.txt").write_text(added)
    (tmp_path / "check.cpp").write_text(fenced("cpp", 1))
    succeed("cmake", "-S", tmp_path, "-B", tmp_path, "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror")
    succeed("cmake", "--build", tmp_path)


@pytest.mark.cmake
def test_a_project_that_asks_for_a_later_version_is_refused(tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    succeed("cmake", "-S", include_dir(), "-B", tmp_path / "made")
    succeed("cmake", "--install", tmp_path / "made", "--prefix", prefix)
    (tmp_path / "CMakeLists.txt").write_text(fenced("cmake").replace("layout 0.1", "layout 0.99"))
    command = ["cmake", "-S", tmp_path, "-B", tmp_path / "b", f"-DCMAKE_PREFIX_PATH={prefix}"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert f"autotune_layout-config.cmake, version: {autotune.__version__}" in done.stderr


# -- checked accessors ---------------------------------------------------------------------------------------

CHECKED = """
#include <cstdlib>
#include <vector>
#include "autotune/storage.cuh"
struct Pair { float a, b; };
int main(int, char** words) {
  std::vector<float> memory(100);
  std::vector<Pair> pairs(10);
  const auto array = autotune::dense<points>(memory.data(), 3, 4);
  const auto records = autotune::dense<twos>(pairs.data(), 10);
  array.store(7, 2, 3);
  const int i = std::atoi(words[2]), j = std::atoi(words[3]);
  switch (words[1][0]) {
    case 'l': return array.load(i, j) == 7 ? 0 : 2;
    case 's': return array.store(1, i, j), 0;
    case 'a': return array.add(1, i, j), 0;
    case 'e': return autotune::element(array, i, j) == 7 ? 0 : 2;
    case 'f': return autotune::load_field<&Pair::b>(records, i) == 0 ? 0 : 2;
    case 'w': return autotune::store_field<&Pair::b>(records, 1, i), 0;
    case 'g': return autotune::field<&Pair::b>(records, i) == 0 ? 0 : 2;
  }
  return 3;
}
"""


@pytest.fixture(scope="module", params=HOST)
def checked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    declared = fenced("cpp", 2) + "struct Pair;\n"
    twos = "AUTOTUNE_ARRAY(twos, autotune::GlobalArray<Pair, 1, 0, autotune::Soa>);\n"
    source = declared + CHECKED.replace("int main", twos + "int main")
    folder = tmp_path_factory.mktemp("checked")
    return built(request.param, source, folder, "-DAUTOTUNE_CHECK_BOUNDS")


@pytest.mark.parametrize(
    ("access", "i", "j", "said"),
    [
        *((access, 2, 3, "") for access in "lsae"),
        *((access, 9, 0, "") for access in "fwg"),
        *((access, 1, 4, "points: index 4 is outside of axis 1, whose extent is 4") for access in "lsae"),
        ("l", -1, 0, "points: index -1 is outside of axis 0, whose extent is 3"),
        ("s", 3, 0, "points: index 3 is outside of axis 0, whose extent is 3"),
        *((access, 10, 0, "twos: index 10 is outside of axis 0, whose extent is 10") for access in "fwg"),
    ],
)
def test_an_index_outside_is_named(checked: Path, access: str, i: int, j: int, said: str) -> None:
    done = subprocess.run([checked, access, str(i), str(j)], check=False, capture_output=True, text=True)
    assert done.stderr == (f"{said}\n" if said else "")
    assert (done.returncode == 0) == (not said)


def test_without_the_macro_the_type_is_the_accessor(tmp_path: Path) -> None:
    source = f"""
#include <type_traits>
{fenced("cpp", 2)}
static_assert(std::is_same_v<points, autotune::GlobalArray<float, 2>>);
int main() {{}}
"""
    built("g++", source, tmp_path)


# -- mdspan and CuTe -----------------------------------------------------------------------------------------

# EACH(Accessor) is called with arrays of three extents, each value of which is another.
ARRAYS = """
#include <cstdlib>
#include <vector>
#define CHECK(...) if (!(__VA_ARGS__)) std::abort()
using autotune::GlobalArray;
template <class Value, class Records = autotune::Aos>
void orders() {
  converts<GlobalArray<Value, 3, 2, Records>>();
  converts<GlobalArray<Value, 3, 1, Records>>();
  converts<GlobalArray<Value, 3, 0, Records>>();
}
struct alignas(8) Pair {
  float a, b = 1;
  bool operator==(const Pair& other) const { return a == other.a && b == other.b; }
};
struct Two {
  float a, b = 1;
  bool operator==(const Two& other) const { return a == other.a && b == other.b; }
};
template <class Accessor, class Visit>
void for_each(const Accessor& array, Visit visit) {
  for (unsigned i = 0; i < array.extent(0); ++i)
    for (unsigned j = 0; j < array.extent(1); ++j)
      for (unsigned k = 0; k < array.extent(2); ++k) visit(i, j, k);
}
template <class Accessor>
Accessor filled(std::vector<typename Accessor::value_type>& memory) {
  memory.resize(autotune::dense_size<Accessor>(5, 7, 3));
  const auto array = autotune::dense<Accessor>(memory.data(), 5, 7, 3);
  for_each(array, [&](unsigned i, unsigned j, unsigned k) {
    array.store({static_cast<float>(100 * i + 10 * j + k)}, i, j, k);
  });
  return array;
}
"""
ALL = """
int main() {
  orders<float>();
  orders<float, autotune::Soa>();  // one texel a value, so that there is nothing to split
  orders<Pair>();
  orders<Two>();
}
"""

MDSPAN = """
template <class Accessor>
void converts() {
  using Value = typename Accessor::value_type;
  using Span = NAMES::mdspan<Value, NAMES::dextents<int, 3>, NAMES::layout_stride>;
  std::vector<Value> memory;
  const Accessor array = filled<Accessor>(memory);
  const Span span = autotune::to_mdspan<Span>(array);
  CHECK(autotune::expresses<Accessor>(span));
  const Accessor back = autotune::from_mdspan<Accessor>(span);
  for_each(array, [&](unsigned i, unsigned j, unsigned k) {
    CHECK(&span(i, j, k) == &autotune::element(array, i, j, k) && &span(i, j, k) == &autotune::element(back, i, j, k));
    CHECK(array.load(i, j, k) == span(i, j, k) && back.load(i, j, k) == span(i, j, k));
  });
}
void others() {
  // Padded rows; and a span with another contiguous index, which a row-major array cannot be.
  float memory[64];
  using Span = NAMES::mdspan<float, NAMES::dextents<int, 2>, NAMES::layout_stride>;
  using Strides = decltype(Span::mapping_type().strides());
  using Rows = autotune::GlobalArray<float, 2>;
  const Span padded(memory, Span::mapping_type(NAMES::dextents<int, 2>(3, 5), Strides{8, 1}));
  const Rows rows = autotune::from_mdspan<Rows>(padded);
  CHECK(rows.extent(1) == 5 && &autotune::element(rows, 2, 4) == memory + 20);
  const Span columns(memory, Span::mapping_type(NAMES::dextents<int, 2>(3, 5), Strides{1, 3}));
  CHECK(!autotune::expresses<Rows>(columns));
  CHECK((autotune::expresses<autotune::GlobalArray<float, 2, 0>>(columns)));
}
"""

CUTE = """
template <class Accessor>
void converts() {
  std::vector<typename Accessor::value_type> memory;
  const Accessor array = filled<Accessor>(memory);
  const auto layout = autotune::to_cute(array);
  const Accessor back = autotune::from_cute<Accessor>(memory.data(), layout);
  for_each(array, [&](unsigned i, unsigned j, unsigned k) {
    const auto* const place = autotune::values_of(array) + layout(i, j, k);
    CHECK(place == &autotune::element(array, i, j, k) && place == &autotune::element(back, i, j, k));
  });
}
template <class Tile>
void swizzles() {
  Tile tile = {};
  const auto layout = autotune::to_cute(tile);
  for (int i = 0; i < 32; ++i)
    for (int j = 0; j < 64; ++j) CHECK(&tile(i, j) == tile.values + layout(i, j));
}
void others() {
  swizzles<autotune::SharedTile<float, 32, 64>>();
  swizzles<autotune::SharedTile<float, 32, 64, autotune::Xor<32>>>();
  swizzles<autotune::SharedTile<short, 32, 64, autotune::Xor<8, 8>>>();
}
"""


def converting(include: str, conversions: str, names: str = "") -> str:
    """A program that converts all ARRAYS and compares addresses."""
    head, tail = ARRAYS.split("template <class Value, class Records", 1)
    declared = "template <class Accessor>\nvoid converts();\n"
    order = f"{head}{declared}template <class Value, class Records{tail}"
    main = ALL.replace("main() {\n", "main() {\n  others();\n")
    return f"#include <cuda_runtime.h>\n{include}{order}{conversions.replace('NAMES', names)}{main}"


@pytest.mark.nvcc
@pytest.mark.parametrize("compiler", HOST)
def test_mdspans_have_the_same_addresses(compiler: str, tmp_path: Path) -> None:
    include = '#include <cuda/std/mdspan>\n#include "autotune/element.cuh"\n#include "autotune/interop/mdspan.cuh"\n'
    source = converting(include, MDSPAN, "cuda::std")
    succeed(built(compiler, source, tmp_path, *ISYSTEM))


@pytest.mark.nvcc
def test_the_pages_conversions_compile_for_host_and_device(tmp_path: Path) -> None:
    (tmp_path / "page.cu").write_text(
        fenced("cpp", 3)
        + "__global__ void clear(Field field) {\n  const auto span = autotune::to_mdspan<Span>(field);\n"
        "  span(blockIdx.x, threadIdx.x) = 0;\n  autotune::from_mdspan<Field>(span).store(0, 1, 2);\n}\n"
    )
    command = [find_nvcc(), "-std=c++17", "-arch=sm_90", "-Werror", "all-warnings", f"-I{include_dir()}"]
    succeed(*command, "-c", "page.cu", "-o", "page.o", folder=tmp_path)


@pytest.mark.nvcc
@pytest.mark.cutlass
@pytest.mark.parametrize("compiler", HOST)
def test_cute_layouts_have_the_same_addresses(compiler: str, tmp_path: Path) -> None:
    found = find_spec("cutlass_library")
    assert found is not None and found.origin is not None
    cutlass = Path(found.origin).parent / "source" / "include"
    include = '#include "autotune/element.cuh"\n#include "autotune/interop/cute.cuh"\n'
    succeed(built(compiler, converting(include, CUTE), tmp_path, f"-isystem{cutlass}", *ISYSTEM))


@pytest.mark.nvcc
def test_what_a_stride_cannot_express_is_refused(tmp_path: Path) -> None:
    source = """
#include "autotune/interop/mdspan.cuh"
#include "autotune/tile.cuh"
struct Two { float a, b; };
int main() { return autotune::values_of(autotune::GlobalArray<Two, 1, 0, autotune::Soa>{}) != nullptr; }
"""
    with pytest.raises(AssertionError, match="values_of takes arrays of whole values at strides"):
        built("g++", source, tmp_path)


COMPOSED = """
#include <cstdio>
#include <set>
#include "autotune/layout.cuh"
using namespace autotune;
using Tiles = Strided<Extents<16, 16>, Strides<unsigned, 64, 16>>;
using Rows = Strided<Extents<4, 4>, Strides<unsigned, 4, 1>>;
using Pairs = Tiled<Strided<Extents<2, 2>, Strides<unsigned, 2, 1>>, Strided<Extents<4, 4>, Strides<unsigned, 8, 4>>>;
using OnCurve = Curved<Hilbert, 4, Extents<1, 1>, Strided<Extents<4, 4>, Strides<unsigned, 16, 16>>, 0, 1>;

template <class Mapping>
void show() {
  std::set<unsigned long long> places;
  for (unsigned i = 0; i < 16; ++i)
    for (unsigned j = 0; j < 16; ++j) places.insert(Mapping().offset(i, j));
  const auto at = [](unsigned i, unsigned j) { return static_cast<unsigned>(Mapping().offset(i, j)); };
  std::printf("%zu %u: %u %u %u\\n", places.size(), unsigned(*places.rbegin()), at(0, 1), at(1, 0), at(5, 6));
}

int main() {
  show<Tiled<Rows, Tiles>>();
  show<Tiled<Swizzled<Rows, 0, 1, 4, 1>, Tiles>>();
  show<Tiled<Pairs, Tiles>>();
  show<Tiled<OnCurve, Tiles>>();
}
"""


def test_a_tile_may_have_any_mapping(tmp_path: Path) -> None:
    """By rows, swizzled, of tiles, along a curve: each element has a place of its own."""
    shown = succeed(built("g++", COMPOSED, tmp_path)).splitlines()
    assert shown == ["256 255: 1 4 86", "256 255: 1 5 87", "256 255: 1 2 86", "256 255: 3 1 87"]
