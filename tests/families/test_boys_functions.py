"""The Boys functions as kernels compute them, by every method, against the incomplete gamma function: relative errors,
on both sides of where a method ends."""

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from shim_library import AS_A_KERNEL, shim_library

from autotune.family import family_module

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
ORDERS = 5
S, SP = ("erf", "rational", "loaded_rational"), ("erf", "quotient")
OF_S = """
#include "{header}"
struct Quotient {{ const double* all; double load(unsigned n) const {{ return all[n]; }} }};
template <Boys BOYS> struct Policy {{
  static constexpr Boys boys = BOYS;
  using quotient = Quotient;
}};
template <Boys BOYS>
void every(const double* t, int count, const double* quotient, double* f) {{
  for (int n = 0; n < count; ++n) f[n] = boys_function<Policy<BOYS>>(t[n], Quotient{{quotient}});
}}
"""
OF_SP = """
#include "{header}"
struct Rows {{
  const BoysRow* rows;
  BoysRow load(int order, int row) const {{ return rows[order * 160 + row]; }}
}};
template <Boys BOYS> struct Policy {{
  static constexpr Boys boys = BOYS;
  using boys_table = Rows;
}};
template <Boys BOYS, int ORDER>
void of_order(const double* t, int count, const BoysRow* rows, double* f) {{
  for (int n = 0; n < count; ++n) {{
    double made[ORDER + 1];
    boys_functions<Policy<BOYS>, ORDER>(t[n], Rows{{rows}}, made);
    for (int k = 0; k <= ORDER; ++k) f[n * 5 + k] = made[k];
  }}
}}
template <Boys BOYS>
void every(const double* t, int count, int order, const BoysRow* rows, double* f) {{
  if (order == 0) of_order<BOYS, 0>(t, count, rows, f);
  if (order == 1) of_order<BOYS, 1>(t, count, rows, f);
  if (order == 2) of_order<BOYS, 2>(t, count, rows, f);
  if (order == 3) of_order<BOYS, 3>(t, count, rows, f);
  if (order == 4) of_order<BOYS, 4>(t, count, rows, f);
}}
"""


def library(source: str, family: str, methods: tuple[str, ...], given: str, folder: Path) -> ctypes.CDLL:
    cases = "".join(
        f'extern "C" void boys_{method}({given}) {{ every<Boys::{method}>('
        f"{', '.join(word.split()[-1].lstrip('*') for word in given.split(','))}); }}\n"
        for method in methods
    )
    return shim_library(
        source.format(header=KERNELS / family / "boys.cuh") + cases, folder, "-O1", *AS_A_KERNEL
    )


def arguments() -> NDArray[np.float64]:
    """From 0 on, many of them around the ends of series, rows, tables and quotients."""
    ends = np.array([5.0, 12.25, 26.0, 28.0, 30.0, 40.0])
    around = (ends[:, None] * (1 + np.array([-1e-3, -1e-15, 0, 1e-15, 1e-3]))).ravel()
    return np.concatenate([[0.0, 1e-12], np.linspace(1e-3, 60, 2001), around, [1e3, 1e9]])


def exact(order: int, t: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.special import gamma, gammainc

    half = order + 0.5
    small = np.maximum(t, 1e-9)
    return np.where(
        t < 1e-9,
        1 / (2 * order + 1) - t / (2 * order + 3),
        gammainc(half, small) * gamma(half) / (2 * small**half),
    )


def pointer(array: NDArray[Any]) -> Any:
    return array.ctypes.data_as(ctypes.c_void_p)


@pytest.fixture(scope="module")
def of_s(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    given = "const double* t, int count, const double* quotient, double* f"
    return library(OF_S, "eri", S, given, tmp_path_factory.mktemp("s"))


@pytest.fixture(scope="module")
def of_sp(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    given = "const double* t, int count, int order, const BoysRow* rows, double* f"
    return library(OF_SP, "eri_sp", SP, given, tmp_path_factory.mktemp("sp"))


@pytest.mark.parametrize("method", S)
def test_f0_of_family_eri(of_s: ctypes.CDLL, method: str) -> None:
    """Beyond T = 28 it is the limit, which 1 - erf(sqrt 28), 7e-14, is left out of."""
    boys = family_module("eri", "boys")
    t, quotient = arguments(), boys.quotient()
    found = np.zeros(t.size)
    of_s[f"boys_{method}"](pointer(t), t.size, pointer(quotient), pointer(found))
    np.testing.assert_allclose(found, exact(0, t), rtol=8e-14)


@pytest.mark.parametrize("order", range(ORDERS))
@pytest.mark.parametrize("method", SP)
def test_all_orders_of_family_eri_sp(of_sp: ctypes.CDLL, method: str, order: int) -> None:
    """Beyond T = 40 exp(-T) is left out, which is 1.6e-13 of F4 there."""
    t, rows = arguments(), family_module("eri_sp", "boys").table()
    found = np.zeros((t.size, ORDERS))
    of_sp[f"boys_{method}"](pointer(t), t.size, order, pointer(rows), pointer(found))
    for n in range(order + 1):
        np.testing.assert_allclose(found[:, n], exact(n, t), rtol=2e-13)
