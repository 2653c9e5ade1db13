"""What is read of a kernel's text by its looks."""

import pytest

from autotune.declaration.kernel_text import Parameter, signature

SOURCE = """
extern "C" { __global__ void scale(int n, float* x); }  // a prototype
/* __global__ void scale(float* gone) { gone[0] = 1; } */
template <int tile, typename T>
__global__ void __launch_bounds__(block_size_x) scale(
    const T* __restrict__ in, float out[], float *both, double * touched, int * __restrict__ handed, float factor,
    int n) {
  float* alias = touched + 1;
  const int i = blockIdx.x;
  if (in[i] == 3) out[i * (n + 1)] = in[i];
  both[i] += 2; add(handed, i);
}
"""


def test_each_pointer_has_its_role() -> None:
    assert signature(SOURCE, "scale<4, float>") == (
        Parameter("in", True, "input"),
        Parameter("out", True, "output"),
        Parameter("both", True, "inout"),
        Parameter("touched", True, "input", is_certain=False),
        Parameter("handed", True, "input", is_certain=False),
        Parameter("factor", False),
        Parameter("n", False),
    )
    assert signature(SOURCE, "missing") == ()


@pytest.mark.parametrize(
    ("body", "role"),
    [
        ("x[i] = 1; x[i + 1].y = 2;", "output"),
        ("*x = 1;", "output"),
        ("x[i] = x[i - 1];", "inout"),
        ("x[i]++;", "inout"),
        ("x[i] <<= 1;", "inout"),
        ("y = x[i];", "input"),
        ("if (x[i] == 1) y = 2;", "input"),
        ("y = a * x[i];", "input"),
    ],
)
def test_what_the_body_does_with_a_pointer(body: str, role: str) -> None:
    (found,) = signature(f"__global__ void k(float* x) {{ {body} }}", "k")
    assert (found.role, found.is_certain) == (role, True)


@pytest.mark.parametrize("body", ["atomicAdd(&x[i], 1);", "add(x, i);", "float* p = x + 1; p[0] = 1;"])
def test_what_is_handed_on_is_not_certain(body: str) -> None:
    (found,) = signature(f"__global__ void k(float* x) {{ {body} }}", "k")
    assert not found.is_certain
