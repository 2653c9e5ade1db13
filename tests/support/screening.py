"""What Schwarz's inequality allows J and K to miss, of the families eri and eri_sp."""

from collections.abc import Mapping
from typing import Any

import eri_libcint as libcint
import numpy as np
from numpy.typing import NDArray


def check_screened(
    arrays: Mapping[str, NDArray[Any]],
    bounds: NDArray[Any],
    found: Mapping[str, NDArray[Any]],
    threshold: float,
) -> None:
    """|J_ij| misses at most the sum of bound_ij bound_kl |D_kl| over the kets below the threshold, K_ik the same with
    |D_jl|; and each misses something."""
    density = arrays["density"]
    products = bounds[:, :, None, None] * bounds
    missed = np.where(products < threshold, products, 0)
    most = {
        "coulomb": np.einsum("ijkl,kl->ij", missed, abs(density)),
        "exchange": np.einsum("ijkl,jl->ik", missed, abs(density)),
    }
    expected = dict(zip(most, libcint.matrices(libcint.mole(arrays), density), strict=True))
    for name, bound in most.items():
        difference = np.abs(found[name] - expected[name])
        assert (difference <= bound + 1e-11).all(), name
        assert difference.max() > 1e-6, name  # something was left out
