"""The right list, and the right pairs, by numpy."""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import WorkloadError

from .peptide import MOST_RESIDUES

__all__ = ["list_of", "pairs_of"]

_MOST_PAIRS = 1 << 28  # that a result has room for (family.yaml: bins)
_FEW = 1 << 26  # values that numpy sorts in a second or two
_AT_ONCE = 1 << 22  # sums, when they are counted
_LINES = 64  # of a square, transformed at once
_OFF = 0.25  # of a whole number: further off, and rounding proves nothing

Array = NDArray[Any]
Masses = NDArray[np.int64]


def list_of(masses: Masses, order: str) -> Array:
    """n (n - 1) + 2 values as int32: differences of prefix sums, by numpy's sort where ``order`` is sorted. Of longer
    lists the values are counted and repeated."""
    n, total = masses.size, int(masses.sum())
    if n > MOST_RESIDUES:
        raise WorkloadError(
            f"a list of {n:,} residues: at most {MOST_RESIDUES:,}; option output=pairs takes more"
        )
    before = np.concatenate(([0], np.cumsum(np.concatenate((masses, masses)))))
    values = n * (n - 1) + 2
    if order == "sorted" and values > _FEW and total < _FEW:
        return np.repeat(np.arange(total + 1, dtype=np.int32), _counted(before, n, total))
    spectrum = np.empty(values, np.int32)
    for row in range(n - 1):
        spectrum[row * n : (row + 1) * n] = before[row + 1 : row + 1 + n] - before[:n]
    spectrum[-2:] = 0, total
    if order == "sorted":
        spectrum.sort()
    return spectrum


def pairs_of(masses: Masses) -> Array:
    """Mass, count, mass, count, .. as int32, filled up with 0 to 2 (total + 1) numbers, 2^29 at most. Of short lists by
    numpy's sort; of longer ones the counts are a correlation by floating point Fourier transforms, rounded. Raises
    ArithmeticError where that is too far from whole numbers to be right, WorkloadError for a total that is too large
    for it."""
    n, total = masses.size, int(masses.sum())
    if n * (n - 1) + 2 <= _FEW:
        found, counts = np.unique(list_of(masses, "unsorted"), return_counts=True)
    elif total >= _MOST_PAIRS:
        raise WorkloadError(
            f"pairs of {n:,} residues with a total mass of {total:,}: with more than 8,192 residues the total has to "
            f"be below {_MOST_PAIRS:,}; take fewer decimals, or output=list (up to {MOST_RESIDUES:,} residues)"
        )
    else:
        every = _correlated(masses, total)
        found = np.flatnonzero(every)
        counts = every[found]
    pairs = np.zeros((min(total + 1, _MOST_PAIRS), 2), np.int32)
    pairs[: found.size, 0] = found
    pairs[: found.size, 1] = counts
    return pairs.reshape(-1)


def _counted(before: Masses, n: int, total: int) -> Array:
    counts = np.zeros(total + 1, np.int64)
    counts[0] += 1
    counts[total] += 1
    windows = np.lib.stride_tricks.sliding_window_view(before[1 : 2 * n - 1], n - 1)  # [start, length - 1]
    step = max(1, _AT_ONCE // n)
    for start in range(0, n, step):
        stop = min(n, start + step)
        sums = windows[start:stop] - before[start:stop, None]
        counts += np.bincount(sums.reshape(-1), minlength=total + 1)
    return counts


def _correlated(masses: Masses, total: int) -> Array:
    """How often each mass up to the total is in the list: places on the ring, each with each."""
    n = masses.size
    places = np.bincount((np.cumsum(masses) - masses) % max(total, 1))
    apart = _autocorrelation(places, max(6, (2 * total).bit_length()))[: total + 1]
    rounded = np.rint(apart)
    if float(np.abs(apart - rounded).max()) > _OFF:
        raise ArithmeticError(f"a correlation of {n:,} places is too far from whole numbers to be rounded")
    counts = rounded.astype(np.int64)
    counts[1:total] += counts[1:total][::-1]
    counts[[0, total]] = (counts[0] - n) // (1 if total == 0 else 2) + (2 if total == 0 else 1)
    return counts


def _autocorrelation(values: Array, bits: int) -> Array:
    """Of values on a ring of 2^``bits`` places, by transforms of the columns and rows of a square; on all cores."""
    rows, columns = 1 << bits // 2, 1 << bits - bits // 2
    field = np.zeros(rows * columns, np.complex128)
    field[: values.size] = values
    square = field.reshape(rows, columns)
    frequency = np.arange(rows)[:, None]

    def factors(part: slice) -> Array:
        found: Array = np.exp(-2j * np.pi / field.size * frequency * np.arange(columns)[part])
        return found

    def forward(part: slice) -> None:
        square[:, part] = np.fft.fft(square[:, part], axis=0) * factors(part)

    def squared(part: slice) -> None:
        found = np.fft.fft(square[part])
        square[part] = np.fft.ifft(found * found.conj())

    def back(part: slice) -> None:
        square[:, part] = np.fft.ifft(square[:, part] * factors(part).conj(), axis=0)

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for step, length in ((forward, columns), (squared, rows), (back, columns)):
            list(pool.map(step, (slice(first, first + _LINES) for first in range(0, length, _LINES))))
    return field.real
