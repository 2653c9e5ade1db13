"""What the compiler says of an accessor that is used, or made, as none can be; and what a constant extent is."""

import subprocess
from pathlib import Path

import pytest

from autotune.compile import find_compiler
from autotune.files import include_dir

SUPPORT = Path(__file__).parents[1] / "support"
HEAD = """
#include <cmath>
#include <cstring>
#include "cuda_words.hpp"
using cudaTextureObject_t = unsigned long long;
int __popc(unsigned bits);
template <class Texel> Texel __ldg(const Texel* address);
template <class Texel> Texel tex1Dfetch(cudaTextureObject_t object, int index);
template <class Texel> Texel tex2D(cudaTextureObject_t object, float x, float y);
unsigned atomicAdd(unsigned* address, unsigned value) { return *address += value; }
#include "autotune/field_access.cuh"
#include "autotune/fields.cuh"
struct Pair { unsigned a, b; };
using Mapping = autotune::Strided<autotune::Extents<0, 3>, autotune::Strides<unsigned, 3, 1>>;
template <class Value, class Memory, class Records = autotune::Aos, class Dims = autotune::Dims1D,
          class Places = Mapping, class Grouping = autotune::Split>
using Of = autotune::Array<Value, Memory, Places, Dims, Records, Grouping>;
using Input = Of<unsigned, autotune::Global<const unsigned>>;
using Output = Of<unsigned, autotune::Global<unsigned>>;
struct Nothing { using texel_type = unsigned; };
"""
READ = "this array is only read: declare it with role: output or scratch to "
LACKS = "requirements.cuh says of"


def compiled(text: str, tmp_path: Path) -> str:
    """The complaints of the compiler; empty for none."""
    source = tmp_path / "used.cpp"
    source.write_text(HEAD + text)
    command = [
        *find_compiler(""),
        "-std=c++17",
        "-fsyntax-only",
        f"-I{include_dir()}",
        f"-I{SUPPORT}",
        str(source),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == ("error" not in done.stderr)
    return done.stderr if done.returncode else ""


def test_what_is_allowed_compiles(tmp_path: Path) -> None:
    text = """
    void used(Input in, Output out) {
      out.store(in.load(1, 2), 1, 2);
      out.add(1u, 1, 2);
      autotune::element(out, 1, 2) = autotune::element(in, 1, 2);
      constexpr unsigned three = Input{}.extent<1>();
      unsigned all[three] = {};
      out.store(all[0], out.extent(0) - 1, 0);
    }
    static_assert(sizeof(Input) == 16, "the handle and one extent");
    static_assert(sizeof(Of<Pair, autotune::Global<unsigned>>) == 16, "records that lie together need no more");
    static_assert(sizeof(Of<Pair, autotune::Global<unsigned>, autotune::Soa>) == 16, "the run of a part");
    """
    assert not compiled(text, tmp_path)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        ("void used(Input in) { in.store(1u, 0, 0); }", f"{READ}store to it"),
        ("void used(Input in) { in.add(1u, 0, 0); }", f"{READ}add to it"),
        ("void used(Input in) { autotune::element(in, 0, 0) = 1; }", "read-only"),
        ("void used(Output out) { out.store(1u, 0); }", "one index for each axis"),
        ("Of<unsigned, Nothing> it;", f"this Memory lacks what {LACKS} one"),
        ("Of<unsigned, autotune::Global<unsigned>, Nothing> it;", "has_runs"),
        (
            "Of<unsigned, autotune::Global<unsigned>, autotune::Aos, Nothing> it;",
            f"these Dims lack what {LACKS} them",
        ),
        (
            "Of<unsigned, autotune::Global<unsigned>, autotune::Aos, autotune::Dims1D, Mapping, Nothing> it;",
            f"this Grouping lacks what {LACKS} one",
        ),
        (
            """void used(Of<Pair, autotune::Global<unsigned>, autotune::Apart<autotune::Together<0>>> it) {
              autotune::load_field<&Pair::a>(it, 0, 0); }""",
            "each part is in one group",
        ),
    ],
)
def test_what_is_not_is_said(use: str, message: str, tmp_path: Path) -> None:
    assert message in compiled(use, tmp_path)
