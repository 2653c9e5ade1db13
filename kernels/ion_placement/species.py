"""Ions by their names in CHARMM force fields."""

from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from autotune.family import UnknownName, UsageError

__all__ = ["CHARGES", "charges_of", "parse_ions"]

CHARGES = MappingProxyType(
    {
        "SOD": 1,
        "POT": 1,
        "LIT": 1,
        "RUB": 1,
        "CES": 1,
        "MG": 2,
        "CAL": 2,
        "ZN2": 2,
        "BAR": 2,
        "CD2": 2,
        "CLA": -1,
    }
)
_MOST = 99_999  # a PDB file numbers no more atoms


def parse_ions(text: str) -> list[str]:
    """``SOD:2,CLA:1`` -> ["SOD", "SOD", "CLA"], in the order they are placed in. Raises UsageError, UnknownName."""
    names: list[str] = []
    for item in text.split(","):
        name, separator, count = item.strip().partition(":")
        if not (separator and count.isascii() and count.isdigit() and 1 <= int(count) <= _MOST):
            raise UsageError(f"ions={text}: {item!r} is not NAME:COUNT with a count from 1 to {_MOST:,}")
        if name not in CHARGES:
            raise UnknownName("ion", name, CHARGES)
        names += [name] * int(count)
    if len(names) > _MOST:
        raise UsageError(f"ions={text}: {len(names):,} ions; a PDB file holds at most {_MOST:,}")
    return names


def charges_of(text: str) -> NDArray[np.float64]:
    """(ions,) in elementary charges, in order."""
    return np.array([CHARGES[name] for name in parse_ions(text)], np.float64)
