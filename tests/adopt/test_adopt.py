"""autotune adopt: what a kernel's pointers become, what is left and why, and the proof that both do the same."""

import os
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import autotune
from autotune.adopt.accesses import Uses
from autotune.adopt.adoption import Adopter, Adoption, write
from autotune.adopt.arrays import Arrays
from autotune.adopt.function import Function
from autotune.adopt.launch import KernelLaunch, LaunchShape
from autotune.adopt.proof import Budget
from autotune.adopt.rewriting import Text, index_texts
from autotune.adopt.source import CudaSource, read_source
from autotune.adopt.trial import Outcome
from autotune.authoring.lint import lint
from autotune.cli.commands import main
from autotune.compile import Cache, default_root
from autotune.declaration import bind, load_family
from autotune.device import open_backend
from autotune.device.resident import run_once
from autotune.errors import AutotuneError, FamilyError, UnknownName, UsageError

HEAD = "__global__ void k"
I = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;"  # noqa: E741


def source(tmp_path: Path, text: str) -> CudaSource:
    (tmp_path / "k.cu").write_text(text, encoding="utf-8")
    return read_source(tmp_path / "k.cu")


def adopted(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch, name: str = "") -> Adoption:
    """Without the runs."""
    monkeypatch.setattr("autotune.adopt.adoption.Proof.run", lambda *_: Outcome(True))
    found = source(tmp_path, text)
    return Adopter(found.find_source_of(name), found.kernel(name).spelling, "mine").adopt()


def kernel_text(adoption: Adoption) -> str:
    return adoption.files["mine.cu"]


# -- what is rewritten ------------------------------------------------------------------------------------

REWRITTEN = {
    "a line": ("(const float* x, float* y, int n)", "y[i] = 2 * x[i];", ["y.store(2 * x.load(i), i);"]),
    "rows": (
        "(const float* x, float* y, int n, int m)",
        "for (int j = 0; j < m; ++j) y[i * m + j] = x[j * n + i];",
        ["y.store(x.load(j, i), i, j);"],
    ),
    "operators that a sum binds closer than": (
        "(const float* x, float* y, int n)",
        "y[i] = x[i * 8 + (1 + ((i + 1) & 1))] + x[i * 8 + (i > 2 ? 1 : 2) + (i ^ 1)];",
        ["x.load(i, 1 + ((i + 1) & 1))", "x.load(i, (i > 2 ? 1 : 2) + (i ^ 1))"],
    ),
    "three extents": (
        "(const float* x, float* y, int n, int m, int l)",
        "for (int j = 0; j < m; ++j) for (int k = 0; k < l; ++k) y[(i * m + j) * l + k] = x[i * m * l + j * l + k];",
        ["y.store(x.load(i, j, k), i, j, k);"],
    ),
    "an index that a loop leaves as it is": (
        "(const float* x, float* y, int n, int m)",
        "float sum = 0; for (int j = 0; j < m; ++j) sum += x[min(max(i - 1, 0), n - 1) * m + j]; y[i] = sum;",
        ["for (int j = 0, x_index = min(max(i - 1, 0), n - 1); j < m; ++j) sum += x.load(x_index, j);"],
    ),
    "two of them, beside a name that is taken": (
        "(const float* x, float* y, int n, int m)",
        "int x_index{3}; for (int k = 0; k < m; ++k) y[i * m + k] = x[max(i, 0) * m + k] * x[min(i, x_index) * m + k];",
        [
            "for (int k = 0, x_index1 = max(i, 0), x_index2 = min(i, x_index); k < m; ++k)",
            "y.store(x.load(x_index1, k) * x.load(x_index2, k), i, k);",
        ],
    ),
    "an index that changes in the loop": (
        "(const float* x, float* y, int n, int m)",
        "int at = i; float sum = 0; for (int j = 0; j < m; ++j) { sum += x[min(at, n - 1) * m + j]; ++at; }",
        ["for (int j = 0; j < m; ++j) { sum += x.load(min(at, n - 1), j); ++at; }"],
    ),
    "an index beside a loop's variable of another type": (
        "(const float* x, float* y, int n, int m)",
        "float sum = 0; for (unsigned j = 0; j < m; ++j) sum += x[min(i, n - 1) * m + j]; y[i] = sum;",
        ["for (unsigned j = 0; j < m; ++j) sum += x.load(min(i, n - 1), j);"],
    ),
    "an index of another type": (
        "(const float* x, float* y, int n, unsigned m)",
        "unsigned u = i; float sum = 0; for (int j = 0; j < m; ++j) sum += x[min(u, m) * m + j]; y[i] = sum;",
        ["for (int j = 0; j < m; ++j) sum += x.load(min(u, m), j);"],
    ),
    "an index by name": (
        "(const float* x, float* y, int n, int m)",
        "int at = i * m + 3; y[i] = x[at] + x[at - 1];",
        ["int at = i * m + 3;", "y.store(x.load(i, 3) + x.load(i, 3 - 1), i);"],
    ),
    "through another": (
        "(const float* x, const int* index, float* y, int n)",
        "y[i] = x[index[i]]; int j = index[i]; y[i] += x[j];",
        ["y.store(x.load(index.load(i)), i);", "autotune::element(y, i) += x.load(j);"],
    ),
    "a scatter": (
        "(const float* x, const int* index, float* y, int n)",
        "y[index[i]] = x[i];",
        ["autotune::element(y, index.load(i)) = x.load(i);"],
    ),
    "records": (
        "(const P* p, P* q, int n)",
        "q[i].v = p[i].v * 2; P one = p[i]; q[i] = one; q[i].at[1] = (p + i)->at[0];",
        ["autotune::field<&P::v>(q, i) = p.load(i).v * 2;", "P one = p.load(i); q.store(one, i);",
         "autotune::field<&P::at>(q, i)[1] = p.load(i).at[0];"],
    ),
    "vectors": ("(const float4* p, float* y, int n)", "y[i] = p[i].x + p[i].w;", ["p.load(i).x + p.load(i).w"]),
    "atomics": (
        "(const int* x, int* y, int* z, int n)",
        "atomicAdd(&y[x[i]], 1); int old = atomicAdd(z + i, 2); atomicMax(&z[0], old); ++z[i];",
        ["y.add(1, x.load(i));", "int old = atomicAdd(&autotune::element(z, i), 2);",
         "atomicMax(&autotune::element(z, 0), old);", "++autotune::element(z, i);"],
    ),
    "the read only cache": (
        "(const float* __restrict__ x, float* y, int n)", "y[i] = __ldg(&x[i]) + __ldg(x + i);",
        ["y.store(x.load(i) + x.load(i), i);"],
    ),
    "a row's begin": (
        "(const float* x, float* y, int n, int m)",
        "const float* row = x + i * m; y[i] = row[2] + *row;",
        ["/* const float* row = x + i * m; */ y.store(x.load(i, 2) + x.load(i, 0), i);"],
    ),
    "macros": (
        "(const float* x, float* y, int n, int m)",
        "y[i] = x[AT(i, 2)] + LOAD(x + 1) + CELL(i, 1) + TWICE(x[i * m]);",
        ["x.load(i, 2) + x.load(0, 1) + x.load(i, 1) + TWICE(x.load(i, 0))"],
    ),
}  # fmt: skip
BEFORE = """
struct P { float v; float at[2]; int k; };
#define AT(i, j) ((i) * m + (j))
#define CELL(i, j) x[(i) * m + (j)]
#define LOAD(p) __ldg(p)
#define TWICE(a) ((a) + (a))
"""


KNOWN = {
    "of a sign": "y[i] = signbit(x[i]) ? 0 : copysignf(x[i], -1.0f);",
    "of whole numbers": "y[i] = lrintf(x[i]) + llround((double)x[i]) + ilogbf(x[i]);",
    "special ones": "y[i] = normcdff(x[i]) + erfcxf(x[i]) + j0f(x[i]) + norm3df(x[i], 1.0f, 2.0f) + ldexpf(x[i], 2);",
    "conversions": "y[i] = __uint2float_rn(__float2uint_rz(x[i])) + __ll2float_rd(__double2ll_rn(x[i]));",
    "roundings": "y[i] = __fadd_rz(x[i], __fdiv_ru(1.0f, __fsqrt_rd(x[i]))) + __dmul_rn(x[i], __drcp_rn(3.0));",
    "bits": "y[i] = __byte_perm(n, i, 0x4321) + __funnelshift_l(n, i, 3) + __vadd4(n, i) + __brevll(n);",
    "a warp's": "y[i] = x[i] + __reduce_add_sync(0xffffffffu, n) + __match_any_sync(0xffffffffu, n);",
}


@pytest.mark.parametrize("what", KNOWN)
def test_what_cuda_has_without_a_header_is_known(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = kernel_text(
        adopted(tmp_path, f"{HEAD}(const float* x, float* y, int n) {{ {I} {KNOWN[what]} }}", monkeypatch)
    )
    assert "y.store(" in text and ("x.load(i)" in text or what == "bits")


@pytest.mark.parametrize(
    ("index", "bits"), [("int", 31), ("unsigned", 0), ("long long", 31)], ids=["int", "unsigned", "long long"]
)
def test_offsets_have_a_sign_where_every_index_has_one(
    index: str, bits: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = f"for ({index} j = 0; j < m; ++j) y[i * m + j] = x[i * m + j];"
    told = adopted(tmp_path, f"{HEAD}(const float* x, float* y, int n, int m) {{ {I} {body} }}", monkeypatch)
    said = f", index_bits: {bits}" if bits else ""
    for name, role in (("x", "input"), ("y", "output")):
        assert f"  {name}: {{role: {role}, type: float32, shape: [n, m]{said}}}" in told.files["family.yaml"]


@pytest.mark.parametrize("what", REWRITTEN)
def test_a_pointer_becomes_an_accessor(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parameters, body, wanted = REWRITTEN[what]
    adoption = adopted(tmp_path, f"{BEFORE}{HEAD}{parameters} {{ {I} {body} }}", monkeypatch)
    text = kernel_text(adoption)
    for line in wanted:
        assert line in text
    assert [array.name for array in adoption.arrays if not array.is_accessor] == []
    for array in adoption.arrays:
        assert f"typename Policy::{adoption.declaration.name_array(array)} {array.name}" in text


LEFT = {
    "moved": ("x += 2; y[i] = *x;", "x is moved (+=), so where it points to is not known here"),
    "another type": ("y[i] = ((const float2*)x)[i].x;", "x is read as another type (const float2 *)"),
    "an alias that changes": ("const float* p = x; ++p; y[i] = *p;", "x becomes p, which changes in line 9"),
    "compared": ("if (x) y[i] = x[i];", "x is compared or tested as a pointer"),
    "passed as a place": ("y[i] = outside(x + i);", "a place in x is passed to outside"),
    "passed to others": ("y[i] = outside(x);", "x is passed to outside"),
    "called with a tile": ("__shared__ float t[4]; y[i] = inside(x, i) + inside(t, 0);",
                           "it is passed to inside, which is called with other pointers, too"),
    "half a macro": ("y[i] = SUM(i);", "x is one part of what the macro SUM stands for"),
    "an address kept": ("const float* p = &x[i]; y[i] = p[0];", "the address of an element of x is kept"),
}  # fmt: skip


@pytest.mark.parametrize("what", LEFT)
def test_what_cannot_be_followed_stays_a_pointer_and_says_why(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, why = LEFT[what]
    before = f"{BEFORE}#define SUM(i) (x[i] + 1)\n__device__ float outside(const float* a);\n"
    before += "__device__ float inside(const float* a, int i) { return a[i]; }"
    adoption = adopted(
        tmp_path, f"{before}{HEAD}(const float* x, float* y, int n) {{ {I} {body} }}", monkeypatch
    )
    x, y = adoption.arrays
    assert (x.pointer.reason, x.pointer.line) == (why, 9)
    assert y.is_accessor
    text = kernel_text(adoption)
    assert f"{HEAD}(const float* x, typename Policy::y y, int n)" in text
    assert (
        f"x: {{role: input, type: float32, shape: [x_size], access: pointer}}  # stays a pointer: {why}"
        in (adoption.files["family.yaml"])
    )


def test_a_function_that_gets_accessors_becomes_a_template(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"""struct P {{ float x, y; }};
__device__ float apart(const P* p, int i, int j);
static __device__ void put(float* out, int i, float v) {{ out[i] += v; }}
{HEAD}(const P* p, float* y, int n) {{ {I} put(y, i, apart(p, i, 0)); }}
__device__ float apart(const P* p, int i, int j) {{ return p[i].x - (p + j)->x; }}
"""
    made = kernel_text(adopted(tmp_path, text, monkeypatch))
    assert "template <class Accessor0>\n__device__ float apart(Accessor0 p, int i, int j);" in made
    assert "out, int i, float v) { autotune::element(out, i) += v; }" in made
    assert "{ return p.load(i).x - p.load(j).x; }" in made


def test_all_other_text_stays_byte_for_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"""// A kernel.\t\n#include <stdio.h>
#define SCALE 2  /* odd   spacing */

/* what it does */
{HEAD}(const float  *x , float* y,
  int n)   // sizes
{{
\t{I}
  /* here */ y[ i ]  =  SCALE*x[i];   // done é
#ifdef NOTHING
  y[0] = 1;
#endif
}}

// the host's
constexpr int SIZE = 64;  // how many
constexpr int ROWS = SIZE / 8;
int main() {{ k<<<1, 2>>>(0, 0, ROWS); printf("%d", 1); return 0; }}
"""
    made = kernel_text(adopted(tmp_path, text, monkeypatch))
    wanted = text.replace("#include <stdio.h>\n", "").split("\n// the host's")[0]
    wanted = wanted.replace(HEAD, f"template <class Policy>\n{HEAD}")
    wanted = wanted.replace("const float  *x", "typename Policy::x x").replace(
        "float* y", "typename Policy::y y"
    )
    wanted = wanted.replace("y[ i ]  =  SCALE*x[i]", "y.store(SCALE*x.load(i), i)")
    assert wanted.strip() in made
    assert "main" not in made and "SIZE" not in made and "ROWS" not in made
    assert (tmp_path / "k.cu").read_text() == text


# -- what is declared -------------------------------------------------------------------------------------


def test_the_declaration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"""struct P {{ double x; int k; }};
{HEAD}(const P* p, const float* __restrict__ a, const int* link, float* y, float* sum, float alpha, int n, int m) {{
  {I}
  float s = 0;
  for (int j = 0; j < m; ++j) s += a[i * m + j] * p[link[i]].x * alpha;
  y[i] = s;
  sum[i] += s;
}}
"""
    adoption = adopted(tmp_path, text, monkeypatch)
    folder = tmp_path / "mine"
    write(folder, adoption.files)
    family = load_family(folder)
    shapes = {name: data.shape for name, data in family.data.items()}
    assert shapes == {
        "p": ("p_size",),
        "a": ("n", "m"),
        "link": ("n",),
        "y": ("n",),
        "sum": ("n",),
        "sum_after": ("n",),
    }
    assert family.data["link"].fields[0].link == "p_size"
    assert family.data["p"].dtype.itemsize == 16  # what the compiler leaves free is filled
    assert family.kernels["k"].arguments == ("p", "a", "link", "y", "sum_after", "alpha", "n", "m")
    assert {p.name: p.default for p in family.space.policies}["memory"] == "global"
    assert {p.layout for p in family.space.policies} >= {"records", "axes", "memory", "padding"}
    assert not [finding for finding in lint(str(folder)) if finding.is_error]


def geometry(tmp_path: Path, parameters: str, body: str, name: str = "k") -> LaunchShape:
    found = source(tmp_path, f"{HEAD}{parameters} {{ {body} }}")
    return KernelLaunch(Arrays(Uses(Function(found, found.kernel(name))))).geometry


IN_LINE = "blockIdx.x * blockDim.x + threadIdx.x"
BOUNDED = {
    "a line": ("n", f"{I} y[i] = 0;", ["ceil_div(n, block_size)"], ["block_size"]),
    "a number": ("n", "int i = blockIdx.x * 64 + threadIdx.x; if (i < n) y[i] = 0;", ["ceil_div(n, 64)"], ["64"]),
    "one block": ("n", "for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = 0;", ["1"], ["block_size"]),
    "a plane": (
        "h, int w",
        f"int c = {IN_LINE}, r = blockIdx.y * blockDim.y + threadIdx.y; if (r < h && c < w) y[r * w + c] = 0;",
        ["ceil_div(w, block_x)", "ceil_div(h, block_y)"], ["block_x", "block_y"],
    ),
    "no variable": ("n", f"if ({IN_LINE} >= n) return; y[{IN_LINE}] = 0;", ["ceil_div(n, block_size)"], ["block_size"]),
    "several a row": (
        "n", "int i = (blockIdx.x * 64 + threadIdx.x) / 32; if (i < n) y[i] = 0;", ["ceil_div(n * 32, 64)"], ["64"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BOUNDED)
def test_a_launch_follows_from_what_bounds_the_threads(what: str, tmp_path: Path) -> None:
    sizes, body, grid, block = BOUNDED[what]
    found = geometry(tmp_path, f"(float* y, int {sizes})", body)
    assert (found.grid, found.block) == (grid, block)


# -- index arithmetic -------------------------------------------------------------------------------------

NAMES = {"i": 5, "j": 3, "k": 2, "n": 11, "m": 7}


def products(depth: int) -> st.SearchStrategy[str]:
    leaf = st.one_of(st.sampled_from(sorted(NAMES)), st.integers(0, 9).map(str))
    if depth == 0:
        return leaf
    inner = products(depth - 1)
    return st.one_of(
        leaf,
        st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(inner, inner).map(
            lambda t: f"{t[0]} * {t[1]}" if "+" not in t[0] + t[1] else f"({t[0]}) * ({t[1]})"
        ),
        inner.map(lambda t: f"-{t}" if t[0] != "-" else t),
    )


@settings(max_examples=8, deadline=None)
@given(st.lists(products(3), min_size=12, max_size=12))
def test_an_address_is_the_same_whatever_its_expression(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    """Two accesses of an array share its strides; i, j and k vary, n and m are the kernel's."""
    parameters = ", ".join(f"const float* x{number}" for number in range(0, len(texts), 2))
    uses = " ".join(f"s += x{number // 2 * 2}[{text}];" for number, text in enumerate(texts))
    loops = " ".join(f"for (int {name} = 0; {name} < 9; ++{name})" for name in "ijk")
    body = f"float s = 0; {loops} {{ {uses} }} y[0] = s;"
    kernel = f"{HEAD}({parameters}, float* y, int n, int m) {{ {body} }}"
    found = source(tmp_path_factory.mktemp("x"), kernel)
    arrays = Arrays(Uses(Function(found, found.kernel())))
    text = Text(found)
    for number, array in enumerate(list(arrays.all.values())[:-1]):
        steps = [1]
        for stride in array.by:
            steps.append(steps[-1] * value(text.factor(stride)))
        for expression, access in zip(texts[2 * number :], array.pointer.accesses, strict=False):
            indices = index_texts(text, array.pointer, access, array.by)
            assert sum(value(i) * s for i, s in zip(indices, reversed(steps), strict=True)) == value(
                expression
            )


def value(text: str) -> int:
    """Of C++ arithmetic that is Python's, too."""
    assert re.fullmatch(r"[\w\s()+*-]+", text)
    return int(eval(text, {}, dict(NAMES)))


# -- what the host program says -----------------------------------------------------------------------------

PLANE = (
    "__global__ void k(const float* x, float* y, int w, int h) { int c = blockIdx.x * blockDim.x + threadIdx.x, "
    "r = blockIdx.y * blockDim.y + threadIdx.y; y[r * w + c] = x[r * w + c]; }\n"
)
LAUNCHED = {
    "numbers by name": (
        """#define SIDE 16
        int main() { int W = atoi(a), H = atoi(b); dim3 grid((W + SIDE - 1) / SIDE, 1 + (H - 1) / 16);
        dim3 block(SIDE, 16, 1); k<<<grid, block>>>(dx, dy, W, H); }""",
        ["ceil_div(w, block_x)", "ceil_div(h, block_y)"], ["block_x", "block_y"],
    ),
    "a function rounds up": (
        """int div_up(int a, int b) { return (a + b - 1) / b; }
        void go(int w, int h) { k<<<dim3(div_up(w, 32), div_up(h, 4)), dim3(32, 4)>>>(x, y, w, h); }""",
        ["ceil_div(w, block_x)", "ceil_div(h, block_y)"], ["block_x", "block_y"],
    ),
    "floor": (
        "void go(int w, int h) { dim3 grid; grid.x = w >> 4; grid.y = h / 8; k<<<grid, dim3(16, 8)>>>(x, y, w, h); }",
        ["w // 16", "h // 8"], ["16", "8"],
    ),
    "open blocks": (
        """void go(int w, int h, int side) { unsigned t[2] = {side, side};
        dim3 grid(w / t[0], h / t[1]), block(t[0], t[1]); k<<<grid, block>>>(x, y, w, h); }""",
        ["w // block_x", "h // block_x"], ["block_x", "block_x"],
    ),
    "rounded by ceil": (
        "void go(int w, int h) { k<<<dim3(ceil((float)w / 16), ceil(h / 16.0)), dim3(16, 16)>>>(x, y, w, h); }",
        ["ceil_div(w, block_x)", "ceil_div(h, block_y)"], ["block_x", "block_y"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", LAUNCHED)
def test_the_launch_is_read_where_the_program_has_it(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, grid, block = LAUNCHED[what]
    found = adopted(tmp_path, PLANE + program, monkeypatch).declaration.geometry
    assert (found.grid, found.block) == (grid, block)
    assert found.where.startswith("as in k.cu:")
    assert all("//" in text for text in grid) == (len(found.divided) == 2 and "//" in grid[0])


def test_a_launch_that_nothing_tells_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        UsageError, match="bounds its blocks in x, and no launch of it is in its file: say how"
    ):
        adopted(tmp_path, PLANE, monkeypatch)
    row = f"{HEAD}(float* y, int n, int m) {{ int r = blockIdx.x; if (r < n) y[r * m + threadIdx.x] = 1; }}"
    with pytest.raises(UsageError, match="nothing in kernel k bounds its threads in x"):
        adopted(tmp_path, row, monkeypatch)
    with pytest.raises(
        UsageError, match=r"k\.cu:2 is not understood \(blocks is none of the kernel's numbers\)"
    ):
        adopted(tmp_path, PLANE + "void go(int blocks) { k<<<blocks, 64>>>(x, y, w, h); }", monkeypatch)
    found = source(tmp_path, PLANE)
    adoption = Adopter(found, "k", "mine", grid="(w + 15) / 16, h", block="16, 1").adopt()
    assert adoption.declaration.geometry.grid == ["ceil_div(w, block_size)", "h"]
    with pytest.raises(AutotuneError, match=r"--grid 'm / 16': m; the kernel's numbers are h, w"):
        Adopter(found, "k", "mine", grid="m / 16", block="16").adopt()


@pytest.mark.filterwarnings("ignore:no usable policy file")
def test_the_same_index_is_the_same_extent_and_no_size_has_a_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An output that nothing says the size of has that of an array with the same index; else the caller says it."""
    body = (
        "int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y; "
        "y[r * n + c] = x[r * n + c]; z[c * c] = 1;"
    )
    grid = "void go(int n, int m, float* x, float* y, float* z) { dim3 t(8, 8); k<<<dim3(n / 8, 4), t>>>(x, y, z, n); }"
    text = f"{HEAD}(float* x, float* y, float* z, int n) {{ {body} }}\n{grid}"
    adoption = adopted(tmp_path, text, monkeypatch)
    declaration = adoption.declaration
    shapes = {array.name: array.shape for array in adoption.arrays}
    assert shapes["y"] == shapes["x"]
    assert list(declaration.unnamed) == ["z_size"]
    assert "default" not in adoption.files["family.yaml"].split("policies:")[0].replace(
        "default_workload", ""
    )
    write(tmp_path / "mine", adoption.files)
    with pytest.raises(AutotuneError, match="'z_size' of family mine is not given"):
        autotune.load(str(tmp_path / "mine"), device="cpu")(x=np.zeros((32, 16), np.float32))


def test_sizes_are_those_that_the_program_gives_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"""{HEAD}(const float* x, float* y, int n, int m) {{ {I} y[i * m] = x[i + 1]; }}
int main() {{ size_t bytes = (N + 1) * sizeof(float); cudaMalloc((void**)&d_x, bytes);
  CHECK(cudaMalloc(&d_y, sizeof(float) * N * M)); k<<<(N + 63) / 64, 64>>>(d_x, d_y, N, M); }}
"""
    shapes = {array.name: array.shape for array in adopted(tmp_path, text, monkeypatch).arrays}
    assert shapes == {"x": ("x_size",), "y": ("n", "m")}
    assert 'x_size: {value: "n + 1"}' in (adopted(tmp_path, text, monkeypatch).files["family.yaml"])


def test_an_extent_that_nothing_says_keeps_a_name_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where an inner extent was given that name first."""
    body = "x[i * (2 * m) + i % 2 * m + i % m] = y[i % m];"
    text = f"{HEAD}(float* x, const float* y, int n, int m) {{ int i = {IN_LINE}; {body} }}\n"
    found = source(tmp_path, text + "void go(int n) { k<<<n, 32>>>(x, y, n, m); }")
    monkeypatch.setattr("autotune.adopt.adoption.Proof.run", lambda *_: Outcome(True))
    arrays = Adopter(found, "k", "mine").adopt().declaration.arrays
    assert all(
        e.is_given or set(re.findall(r"[A-Za-z_]\w*", e.text)) <= {"n", "m"} for e in arrays.extents.values()
    )


def test_an_index_that_was_taken_apart_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = f"int i = {IN_LINE}; if (i < b * t) {{ int r = i / t, c = i % t; y[r * t + c] = x[r]; }}"
    adoption = adopted(tmp_path, f"{HEAD}(const float* x, float* y, int b, int t) {{ {body} }}", monkeypatch)
    assert {array.name: array.shape for array in adoption.arrays} == {"x": ("b",), "y": ("b", "t")}


def test_a_block_is_chosen_where_any_of_them_comes_to_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A number of blocks covers what it covers with the block it was made for."""
    monkeypatch.setattr("autotune.adopt.adoption.Proof.run", lambda *_: Outcome(True))
    loop = f"for (int i = {IN_LINE}; i < n; i += blockDim.x * gridDim.x) y[i] = x[i];"
    for body, block in ((f"int i = {IN_LINE}; y[i] = x[i];", ["128"]), (loop, ["block_size"])):
        kernel = f"{HEAD}(const float* x, float* y, int n) {{ {body} }}\n"
        asked = Adopter(source(tmp_path, kernel), "k", "mine", grid="4", block="128").adopt()
        found = adopted(tmp_path, f"{kernel}void go() {{ k<<<4, 128>>>(x, y, n); }}", monkeypatch)
        assert asked.declaration.geometry.block == found.declaration.geometry.block == block


def test_an_extent_follows_the_number_that_bounds_its_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"""{HEAD}(const float* x, float* y, int n) {{ {I} y[i] = x[i]; }}
int main() {{ cudaMalloc(&d_x, 4096 * 4); cudaMalloc(&d_y, 4096 * 4); k<<<16, 256>>>(d_x, d_y, 4096); }}
"""
    shapes = {array.name: array.shape for array in adopted(tmp_path, text, monkeypatch).arrays}
    assert shapes == {"x": ("n",), "y": ("n",)}


@pytest.mark.parametrize("number", ["((unsigned int)-1) / 3", "-7 / 2"])
def test_a_division_that_c_rounds_otherwise_is_not_read(
    number: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"{HEAD}(const float* x, float* y, int n, unsigned far) {{ {I} y[i] = x[i] * far; }}\n"
    text += f"void go(int n) {{ unsigned d = {number}; k<<<(n + 63) / 64, 64>>>(x, y, n, d); }}"
    adoption = adopted(tmp_path, text, monkeypatch)
    assert adoption.declaration.small[0]["far"] == 1


def test_a_workload_has_room_and_is_no_larger_than_can_be_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loops = "for (int j = 0; j < m; ++j) y[i * m + j] = x[i * m + j];"
    text = f"{HEAD}(const float* x, float* y, int n, int m) {{ {I} {loops} }}"
    workload = adopted(tmp_path, text, monkeypatch).files["workloads/adopted.yaml"]
    assert "n: 1024, m: 1024" in workload
    body = f"int i = {IN_LINE}; if (i < n * m * l) y[i] = x[i];"
    text = f"{HEAD}(const float* x, float* y, int n, int m, int l) {{ {body} }}"
    assert "n: 128, m: 128, l: 128" in adopted(tmp_path, text, monkeypatch).files["workloads/adopted.yaml"]
    found = source(tmp_path, f"{HEAD}(const float* x, float* y, int n) {{ {I} y[i] = x[3 * i + 500]; }}")
    monkeypatch.undo()
    adoption = Adopter(found, "k", "mine").adopt()
    assert adoption.outcome.is_proved
    sizes = re.search(r"x_size: (\d+), ?|x_size: (\d+)", adoption.files["workloads/adopted.yaml"])
    assert "n: 37" in adoption.files["workloads/adopted.yaml"] and sizes


# -- what is written out ------------------------------------------------------------------------------------


def test_a_struct_by_value_is_its_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"""struct P {{ float dt; int n; float3 g; float w[2]; }};
__device__ float apply(P p) {{ return p.dt * p.g.y + p.w[1]; }}
{HEAD}(float* x, const P p, float3 at) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= p.n) return;
  x[i] = p.dt * at.z + apply(p) + p.g.x; }}
"""
    adoption = adopted(tmp_path, text, monkeypatch)
    made = kernel_text(adoption)
    assert (
        "float p_dt, int p_n, float p_g_x, float p_g_y, float p_g_z, float p_w_0, float p_w_1, float at_x"
        in made
    )
    assert "p.w[1] = p_w_1;" in made and "p_dt * at_z + apply(p) + p_g_x" in made
    assert [array.shape for array in adoption.arrays] == [("p_n",)]
    assert adoption.declaration.scalars["at_z"] == "float32"


def test_a_template_is_taken_with_the_values_of_its_launch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"""constexpr int ROWS = 4 * 2;
template <typename T, int N> {HEAD}(const T* x, T* y, int n) {{ {I}
  T s = 0; for (int j = 0; j < N; ++j) s += x[i * N + j]; y[i] = s; }}
void go() {{ k<double, ROWS><<<n / 64, 64>>>(x, y, n); }}
"""
    adoption = adopted(tmp_path, text, monkeypatch)
    assert [(a.element.type, a.shape) for a in adoption.arrays] == [
        ("float64", ("n", "x_columns")),
        ("float64", ("n",)),
    ]
    named = Adopter(source(tmp_path, text), "k", "mine", values=("float", "2")).adopt()
    assert [a.element.type for a in named.arrays] == ["float32", "float32"]


def test_types_of_16_bits_are_known(tmp_path: Path) -> None:
    text = f"""#include <cuda_fp16.h>
typedef __half real;
{HEAD}(const real* x, __nv_bfloat16* y, int n) {{ {I} y[i] = __half2float(x[i]) * 2; }}"""
    adoption = Adopter(source(tmp_path, text), "k", "mine").adopt()
    assert [array.element.type for array in adoption.arrays] == ["float16", "bfloat16"]
    assert "#include <cuda_fp16.h>\n#include <cuda_bf16.h>" in adoption.files["mine.cu"]
    assert "y.store(__half2float(__half(x.load(i))) * 2, i);" in adoption.files["mine.cu"]
    assert adoption.outcome.is_proved, adoption.outcome.why


def test_half_arithmetic_stays_what_it_was(tmp_path: Path) -> None:
    """An accessor hands 16 bits over as a float: what the kernel adds are halves, as before."""
    text = f"""#include <cuda_fp16.h>
{HEAD}(__half* y, const __half* x, __half* z, int n) {{ {I}
  __half v = x[i]; y[i] = (v + y[i]) * x[i] + (__half)((float)y[i] / 3); z[i] += v; }}"""
    adoption = Adopter(source(tmp_path, text), "k", "mine").adopt()
    y, x, z = adoption.arrays
    assert y.is_accessor
    assert x.is_accessor
    assert z.pointer.reason == "a number of 16 bits is read and written as a whole only"
    assert adoption.outcome.is_proved, adoption.outcome.why


def test_where_no_layout_can_be_chosen_registers_are(tmp_path: Path) -> None:
    """Four floats at once, in a block that the launch fixes: it runs, and has one choice."""
    text = f"""{HEAD}(const float* x, float* y, int n) {{
  const int i = (blockIdx.x * 64 + threadIdx.x) * 4;
  if (i < n) *reinterpret_cast<float4*>(y + i) = __ldcs(reinterpret_cast<const float4*>(x + i));
}}
void go(float* x, float* y, int n) {{ k<<<n / 256, 64>>>(x, y, n); }}"""
    adoption = Adopter(source(tmp_path, text), "k", "mine").adopt()
    assert not any(array.is_accessor for array in adoption.arrays)
    assert adoption.outcome.is_proved, adoption.outcome.why
    write(tmp_path / "mine", adoption.files)
    family = load_family(tmp_path / "mine")
    assert [c["registers"] for c in family.space.configurations()] == ["all", "most_64", "most_32"]


GROUPS = f"""#include <cub/cub.cuh>
#include "own.h"
using namespace cooperative_groups;
__device__ float whole(const thread_block_tile<32>& warp, float v) {{ return reduce(warp, v, plus<float>()); }}
{HEAD}(const float* x, float* y, int n, int m) {{
  auto warp = tiled_partition<32>(this_thread_block());
  using Sum = cub::BlockReduce<float, 64>;
  __shared__ typename Sum::TempStorage room;
  float s = 0;
  for (int j = threadIdx.x; j < m; j += 64) s += x[blockIdx.x * m + j];
  s = whole(warp, s);
  s = Sum(room).Sum(warp.thread_rank() == 0 ? s : 0);
  if (threadIdx.x == 0) y[blockIdx.x] = s;
}}
int main() {{ float *x, *y; int n = 100, m = 70; k<<<n, 64>>>(x, y, n, m); }}
"""


def test_groups_and_cub_are_proved_and_their_headers_come_along(tmp_path: Path) -> None:
    """Those that the kernel uses, however they were reached, and no other."""
    (tmp_path / "own.h").write_text(
        "#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>\n#include <cuda_fp16.h>\n"
    )
    adoption = Adopter(source(tmp_path, GROUPS), "k", "mine").adopt()
    text = kernel_text(adoption)
    included = [line for line in text.splitlines() if line.startswith("#include <")]
    assert sorted(included) == [
        "#include <cooperative_groups.h>",
        "#include <cooperative_groups/reduce.h>",
        "#include <cub/cub.cuh>",
    ]
    assert "using namespace cooperative_groups;" in text
    assert adoption.outcome.is_proved, adoption.outcome.why
    alone = f"#include <cub/cub.cuh>\n{HEAD}(float* x, int n) {{ {I} x[i] = 1; }}"
    assert "cub" not in kernel_text(Adopter(source(tmp_path, alone), "k", "mine").adopt())


def test_a_word_is_no_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = "int half = n / 2; y[i] = x[half];  // the lower half"
    adoption = adopted(tmp_path, f"{HEAD}(const float* x, float* y, int n) {{ {I} {body}\n}}", monkeypatch)
    assert "#include <cuda_fp16.h>" not in adoption.files["mine.cu"]


def test_names_that_the_kernel_has_are_not_used_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"{HEAD}(const float* memory, float* y, int n, int block_size) {{ {I} y[i] = memory[i] + block_size; }}"
    adoption = adopted(tmp_path, text, monkeypatch)
    write(tmp_path / "mine", adoption.files)
    assert {policy.name for policy in load_family(tmp_path / "mine").space.policies} == {
        "memory_",
        "block_size_",
    }


def test_a_number_named_seed_is_given_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"{HEAD}(const float* x, float* y, int n, int seed) {{ {I} y[i] = x[i] * seed; }}"
    workload = adopted(tmp_path, text, monkeypatch).files["workloads/adopted.yaml"]
    assert re.findall("^parameters: .*seed: 1.*seed:", workload, re.MULTILINE) == []


WALKS = {
    "arrays": "(const int* left, const int* right, const float* v, int* y, int n)",
    "records": "(const N* t, int* y, int n)",
}


@pytest.mark.parametrize("what", WALKS)
def test_links_that_are_walked_lead_to_an_end(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {
        "arrays": "int j = i; while (j != -1) { if (v[j] < 1) j = left[j]; else { int r = right[j]; j = r; } ++y[i]; }",
        "records": "int j = i; while (t[j].stop == 0 && j > 0) { ++y[i]; j = t[j].next; }",
    }[what]
    text = f"struct N {{ int next; float v; int stop; }};\n{HEAD}{WALKS[what]} {{ {I} {body} }}"
    adoption = adopted(tmp_path, text, monkeypatch)
    write(tmp_path / "mine", adoption.files)
    module = load_family(tmp_path / "mine").module
    assert module is not None
    names = {f"{a.shape[0]}": 50 for a in adoption.arrays}
    made = module.inputs({**names, "n": 50, "seed": 3}, tmp_path)
    links = [made["left"], made["right"]] if what == "arrays" else [made["t"]["next"]]
    for link in links:
        assert (link < np.arange(50) + (np.arange(50) == 0)).all()
        assert link[0] == (-1 if what == "arrays" else 0)


# -- the proof --------------------------------------------------------------------------------------------

WHOLE = """
struct P { float x, y; };
__device__ float half_of(const float* a, int i) { return a[i] * 0.5f; }
__global__ void sums(const P* p, const float* w, const int* link, float* out, float* total, int n, int m) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float s = half_of(w, i);
  for (int j = 0; j < m; ++j) s += out[i * m + j] * p[link[i]].y;
  out[i * m] += s;
  atomicAdd(&total[0], s);
}
"""


def test_both_are_run_and_touch_the_same_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sums.cu").write_text(WHOLE)
    assert main(["adopt", str(tmp_path / "sums.cu"), "-o", str(tmp_path / "sums")]) == 0
    told = capsys.readouterr().out
    assert "proved: 3 runs with random inputs on the cpu device" in told
    assert "out: accessor, read and written, float32 [n, m], 2 accesses" in told
    assert {path.name for path in (tmp_path / "sums").iterdir()} == {
        "family.yaml", "family.py", "sums.cu", "before.cu", "default.cuh", "workloads", "adopted.txt"
    }  # fmt: skip
    assert not [finding for finding in lint(str(tmp_path / "sums")) if finding.is_error]


def test_the_kernel_as_it_was_is_the_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"""__constant__ float factors[3];
template <int PLACE> {HEAD}(const float* x, float* y, int n) {{ {I} y[i] = x[i] * factors[PLACE]; }}
void launch() {{ k<2><<<1, 2>>>(0, 0, 0); }}
"""
    adoption = adopted(tmp_path, text, monkeypatch)
    write(tmp_path / "mine", adoption.files)
    family = load_family(tmp_path / "mine")
    assert family.baseline is not None
    assert family.symbols == {"factors": "factors"}
    assert "template <class Policy>\n__global__ void k(typename Policy::x x," in kernel_text(adoption)
    assert "x.load(i) * factors[2]" in kernel_text(adoption)
    inputs = bind(family, family.module.inputs({"n": 37, "seed": 3}, tmp_path), {}, {})  # type: ignore[union-attr]
    wanted = inputs.arrays["x"] * inputs.arrays["factors"][2]
    with open_backend("cpu") as backend:
        for one in (family, family.baseline):
            found = run_once(one, one.space.control, inputs, backend, Cache(default_root()))["y"]
            np.testing.assert_array_equal(found, wanted)


FIELDS = f"""struct P {{ float x, y, z; int hits; }};
{HEAD}(P* p, float step, int n) {{ {I}
  p[i].x += step * p[i].y;
  p[i].z = p[i].x;
  ++p[i].hits;
  P one = p[i];
  one.y = -one.y;
  if (i % 2) p[i].y = one.y;
}}
"""


def test_other_layouts_give_what_control_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fields are written where the layout has them."""
    adoption = adopted(tmp_path, FIELDS, monkeypatch)
    folder = tmp_path / "mine"
    write(folder, adoption.files)
    family = load_family(folder)
    assert family.module is not None
    inputs = bind(family, family.module.inputs({"n": 37, "seed": 3}, tmp_path), {}, {"step": 1.5})
    before = inputs.arrays["p"]
    wanted = before.copy()
    wanted["x"] = before["x"] + np.float32(1.5) * before["y"]
    wanted["z"] = wanted["x"]
    wanted["hits"] += 1
    wanted["y"][1::2] *= -1
    assert family.baseline is not None
    ways = [(family, f"p_records={records}") for records in ("aos", "soa", "aosoa32")]
    with open_backend("cpu") as backend:
        for one, way in (*ways, (family.baseline, "control")):
            configuration = one.space.configuration(way)
            found = run_once(one, configuration, inputs, backend, Cache(default_root()))["p_after"]
            for name in before.dtype.names:
                np.testing.assert_allclose(found[name], wanted[name], rtol=1e-6)


@pytest.mark.nvrtc
def test_what_is_made_compiles_for_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    adoption = adopted(tmp_path, FIELDS, monkeypatch)
    write(tmp_path / "mine", adoption.files)
    out = tmp_path / "out"
    words = ["--static", "--arch", "sm_90", "--set", "block_size=256", "--out", str(out)]
    assert main(["sweep", str(tmp_path / "mine"), *words]) == 0
    assert len((out / "static.csv").read_text().splitlines()) > 3


def test_a_rewriting_that_is_wrong_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof is no formality: an index that is off by one is other addresses."""
    whole = Adopter._files

    def wrong(self: Adopter, *given: object) -> dict[str, str]:
        files = whole(self, *given)  # type: ignore[arg-type]
        files["mine.cu"] = files["mine.cu"].replace("x.load(i)", "x.load(i > 0 ? i - 1 : 0)")
        return files

    monkeypatch.setattr(Adopter, "_files", wrong)
    found = source(tmp_path, f"{HEAD}(const float* x, float* y, int n) {{ {I} y[i] = x[i]; }}")
    outcome = Adopter(found, "k", "mine").adopt().outcome
    assert not outcome.is_proved
    assert (
        "other addresses: access 2: reads 4 bytes at byte 4 of x in the kernel as it was, reads 4 bytes at byte 0"
        in (outcome.why)
    )


def test_what_the_runs_left_out_is_no_proof(tmp_path: Path) -> None:
    """A launch of one block, and a kernel that writes where it likes; but threads that come to all may leave some."""
    text = f"{HEAD}(const float* x, float* y, int n) {{ {I} y[i] = x[i]; }}"
    found = source(tmp_path, text)
    outcome = Adopter(found, "k", "mine", grid="1", block="8").adopt().outcome
    assert not outcome.is_proved
    assert "of y, and less than 90% proves little: where the launch is another" in outcome.why
    adoption = Adopter(source(tmp_path, text.replace("y[i] =", "if (x[i] > 1) y[i] =")), "k", "mine").adopt()
    assert adoption.outcome.is_proved
    assert adoption.outcome.written["y"] < 0.9
    assert adoption.notes == ["y: some elements are not written, so they keep what the caller gives"]
    assert "zero" not in adoption.files["family.yaml"]
    border = text.replace("i >= n", "i < 1 || i >= n - 1")
    assert Adopter(source(tmp_path, border), "k", "mine").adopt().outcome.is_proved


def test_a_number_of_a_loop_leaves_the_row_that_it_may_leave(tmp_path: Path) -> None:
    """A window that is wider than the distance between two is no row of that many elements."""
    body = "float s = 0; for (int j = 0; j < w; ++j) s += x[i * 8 + j]; y[i] = s;"
    text = f"{HEAD}(const float* x, float* y, int n, int w) {{ {I} {body} }}"
    adoption = Adopter(source(tmp_path, text), "k", "mine").adopt()
    assert adoption.outcome.is_proved
    assert adoption.notes == ["x: an index left its row, so it is taken as one line"]


def test_a_result_that_hangs_on_what_nobody_wrote_is_no_proof(tmp_path: Path) -> None:
    text = f"{HEAD}(const float* x, float* y, int n) {{ {I} float t[4]; t[0] = x[i]; y[i] = t[0] + t[3]; }}"
    outcome = Adopter(source(tmp_path, text), "k", "mine").adopt().outcome
    assert not outcome.is_proved
    assert "where the kernel reads a variable that nothing wrote" in outcome.why


def test_dynamic_shared_memory_runs_on_the_cpu_device(tmp_path: Path) -> None:
    body = f"extern __shared__ float t[]; {I} t[threadIdx.x] = x[i]; y[i] = t[threadIdx.x];"
    text = f"{HEAD}(const float* x, float* y, int n) {{ {body} }}"
    outcome = Adopter(source(tmp_path, text), "k", "mine").adopt().outcome
    assert (outcome.is_proved, outcome.why) == (True, "")


def test_runs_that_take_too_long_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autotune.adopt.adoption.Budget", lambda: Budget(0.0))
    text = f"{HEAD}(const float* x, float* y, int n) {{ {I} while (n > 0) y[i] = x[i]; }}"
    outcome = Adopter(source(tmp_path, text), "k", "mine").adopt().outcome
    assert "the runs took more than 60 s" in outcome.why


def test_where_the_cpu_device_cannot_take_it_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = 'asm volatile("membar.gl;" : : "l"(x)); unknown y[i] = x[i];'.replace("unknown ", "")
    (tmp_path / "k.cu").write_text(f"{HEAD}(const float* x, float* y, int n) {{ {I} {body} }}")
    assert main(["adopt", str(tmp_path / "k.cu"), "-o", str(tmp_path / "mine")]) == 0
    told = capsys.readouterr().out
    assert "unproved: the cpu device cannot run it: the kernel as it was does not compile there" in told
    assert "unproved" in (tmp_path / "mine" / "adopted.txt").read_text()


def test_a_compiler_that_cannot_trace_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autotune.adopt.proof.find_compiler", lambda: ("python", "-m", "ziglang", "c++"))
    found = source(tmp_path, f"{HEAD}(const float* x, float* y, int n) {{ {I} y[i] = x[i]; }}")
    outcome = Adopter(found, "k", "mine").adopt().outcome
    assert not outcome.is_proved
    assert "name g++ or clang++ in CXX" in outcome.why


# -- what is rejected -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("void host() {}", "no __global__ function is defined here"),
        (
            f"#include <none.h>\n{HEAD}(Wide<float, 2> r, float* x) {{ x[0] = r[0]; }} void k(int) {{}}",
            "kernel k cannot be read; name the folders",
        ),
        (f"#ifdef NONE\n{HEAD}(float* x) {{}}\n#endif", "k.cu:2: the preprocessor excludes it: a kernel"),
        (
            f"{HEAD}(__half v, float* x, int n) {{ {I} x[i] = v; }}",
            "takes __half v, and a number of a family has no 16-bit",
        ),
        (f"{HEAD}(int n) {{}}", "kernel k takes no pointer (int n)"),
        (f"{HEAD}(unknown* x) {{ x[0] = 1; }}", "unknown type name 'unknown'"),
        (f"template <class T> {HEAD}(T* x) {{ x[0] = 1; }}", "no launch in its file gives a value of T"),
        (
            f"struct S {{ float* a; }}; {HEAD}(float* x, S s) {{ x[0] = s.a[0]; }}",
            "S s is a struct by value whose member a (float *) is no number",
        ),
        (f"typedef half_t* P; typedef half_t F; {HEAD}(F* x) {{ x[0] = 1; }}", "unknown type name 'half_t'"),
        (
            f"{HEAD}({', '.join(f'float* x{n}' for n in range(300))}) {{}}",
            "takes 300 parameters: at most 256",
        ),
        (
            f"#include <mma.h>\nusing namespace nvcuda;\n{HEAD}(float* x) {{ wmma::fill_fragment(x, 0.f); }}",
            "the cpu device has no tensor cores (k.cu:1): this kernel needs --device cuda",
        ),
    ],
)
def test_what_no_family_can_hold_is_refused(
    text: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FamilyError, match=re.escape(told)):
        adopted(tmp_path, text, monkeypatch)


HOSTILE = {
    "a pipe that nobody writes to": ('#include "pipe.h"\n', "x[i]", "reading the file took more than 2 s"),
    "memory without end": ('#include "/dev/zero"\n', "x[i]", "libclang cannot read it"),
    "nested deep": ("", "x[(int)" * 250 + "x[i]" + "]" * 250, "nested"),
    "long": ("", " + ".join(["x[i]"] * 100000), "ended"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_source_that_harms_its_reader_is_refused(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ahead, value, why = HOSTILE[what]
    os.mkfifo(tmp_path / "pipe.h")
    if "pipe" in ahead:
        monkeypatch.setattr("autotune.adopt.process._READ_SECONDS", 2.0)
    (tmp_path / "k.cu").write_text(
        f"{ahead}{HEAD}(const float* x, float* y, int n) {{ {I} y[i] = {value}; }}"
    )
    own = tmp_path / "temporary"
    own.mkdir()
    monkeypatch.setenv("TMPDIR", str(own))
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert main(["adopt", str(tmp_path / "k.cu"), "-o", str(tmp_path / "mine")]) == 3
    assert why in capsys.readouterr().err
    assert not [*own.glob("autotune-*")]


def test_the_kernel_has_to_be_named_where_there_are_several(tmp_path: Path) -> None:
    found = source(tmp_path, "__global__ void a(float* x) {} __global__ void b(float* x) {}")
    with pytest.raises(UsageError, match=r"has 2 kernels: add --kernel a\|b"):
        found.kernel()
    with pytest.raises(UnknownName, match="unknown kernel 'c'"):
        found.kernel("c")


def test_nothing_is_overwritten_and_a_file_has_to_be_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "k.cu").write_text(f"{HEAD}(float* x) {{}}")
    assert main(["adopt", str(tmp_path / "k.cu"), "-o", str(tmp_path)]) == 2
    assert "already exists, and nothing is overwritten" in capsys.readouterr().err
    assert main(["adopt", str(tmp_path / "none.cu")]) == 2
    assert "none.cu does not exist: name a CUDA source" in capsys.readouterr().err
