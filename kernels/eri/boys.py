"""The Boys function F0(T) = integral over u in [0, 1] of exp(-T u^2) = 1/2 sqrt(pi/T) erf(sqrt T), as a quotient
(Helgaker, Joergensen, Olsen, Molecular Electronic-Structure Theory, section 9.8)."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["FAR", "f0", "quotient"]

FAR = 28.0  # from here erf(sqrt T) is 1 to 7e-14, and F0 is 1/2 sqrt(pi/T)

# The best quotient of two polynomials of degree 10 on [0, 28] in the relative sense: within 3.7e-15. Found in 50
# digits by reweighted least squares; all coefficients are positive, so nothing cancels. Lowest power first.
NUMERATOR = (
    1.0000000000000038, 0.19059990703002794, 0.05699415407646556, 0.005684996225030749, 0.0006864749941430533,
    4.197700187322668e-05, 2.6536473871023296e-06, 9.437106588135566e-08, 2.983475422189279e-09,
    3.054218816120821e-11, 3.021392219798155e-14,
)  # fmt: skip
DENOMINATOR = (
    1.0, 0.5239332403636301, 0.13163856752777942, 0.02098071852281939, 0.002361162374979939,
    0.00019716984650138876, 1.2445248424587656e-05, 5.889726917779794e-07, 1.992016228995648e-08,
    4.211654819960866e-10, 1.6341601901138266e-12,
)  # fmt: skip


def f0(t: NDArray[np.float64]) -> NDArray[np.float64]:
    """F0 of each ``t`` >= 0 by the quotient; beyond 28 by the limit."""
    near = np.minimum(t, FAR)
    quotient = np.polynomial.polynomial.polyval(near, NUMERATOR) / np.polynomial.polynomial.polyval(
        near, DENOMINATOR
    )
    return np.where(t < FAR, quotient, np.sqrt(np.pi / 4 / np.maximum(t, FAR)))


def quotient() -> NDArray[np.float64]:
    """The coefficients but the highest, numerator before denominator (boys.cuh: boys_rational)."""
    return np.array([*NUMERATOR[:-1], *DENOMINATOR[:-1]])
