"""One sparse matrix in every format that the kernel reads."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from autotune.family import WorkloadError

ENTRY = np.dtype([("column", np.uint32), ("value", np.float32)])
SLICE_ROWS = 32  # spmv.cu has the same
_MOST_PADDING = 8  # ELL with more entries than so many times the matrix's is left out

Offsets = NDArray[np.int64]


def arrays_of(matrix: Any, x: NDArray[Any]) -> dict[str, Any]:
    """What the kernel takes, by name, for y = ``matrix`` x.

    ``matrix`` is anything that ``scipy.sparse.csr_array`` takes, (rows, columns), with at least one entry; ``x`` is
    (columns,). Both are rounded to float32. What pads a row has the value 0 and the row's last column, which the row
    reads anyway. Raises WorkloadError."""
    csr = sparse.csr_array(matrix).astype(np.float32)
    csr.sum_duplicates()
    if csr.nnz == 0 or csr.nnz >= 2**32:
        raise WorkloadError(f"a matrix of {csr.nnz} entries: the kernel takes 1 to {2**32 - 1}")
    x = np.asarray(x, np.float32)
    if x.shape != csr.shape[1:]:
        raise WorkloadError(f"x has shape {x.shape}, and the matrix {csr.shape}: give one number a column")
    entries = np.empty(csr.nnz, ENTRY)
    entries["column"], entries["value"] = csr.indices, csr.data
    offsets = csr.indptr.astype(np.int64)
    lengths = np.diff(offsets)
    longest = int(lengths.max())
    # Where it is left out its width is 1, so rows of one entry, which need no more, always have it.
    has_ell = longest == 1 or longest * len(lengths) <= _MOST_PADDING * csr.nnz
    sell_offsets, sell_entries = sliced(offsets, entries)
    return {
        "csr_offsets": offsets.astype(np.uint32),
        "csr_entries": entries,
        "ell_entries": padded(offsets, entries) if has_ell else np.zeros((len(lengths), 1), ENTRY),
        "sell_offsets": sell_offsets,
        "sell_entries": sell_entries,
        "x": x,
        "longest": longest,
        "magnitude": float((abs(csr) @ np.abs(x)).max()),
    }


def padded(offsets: Offsets, entries: NDArray[Any]) -> NDArray[Any]:
    """ELL: every row as long as the longest, (rows, longest) records ``ENTRY``."""
    rows, lengths = len(offsets) - 1, np.diff(offsets)
    row, place = _rows_and_places(offsets)
    made = np.zeros((rows, lengths.max()), ENTRY)
    made["column"] = _last_columns(offsets, entries)[:, None]
    made[row, place] = entries
    return made


def sliced(offsets: Offsets, entries: NDArray[Any]) -> tuple[NDArray[np.uint32], NDArray[Any]]:
    """Sliced ELL: (where each slice of SLICE_ROWS rows begins and the end, its records ``ENTRY``). Entry k of row r of
    a slice lies at the slice's beginning + k * SLICE_ROWS + r; rows behind the last are empty. Raises WorkloadError."""
    rows = len(offsets) - 1
    full = -(-rows // SLICE_ROWS) * SLICE_ROWS
    ends = np.concatenate([offsets, np.full(full - rows, offsets[-1])])
    widths = np.diff(ends).reshape(-1, SLICE_ROWS).max(axis=1)
    begins = np.concatenate([[0], np.cumsum(widths * SLICE_ROWS)])
    if begins[-1] >= 2**32:
        raise WorkloadError(f"sliced ELL would have {begins[-1]} entries: the kernel takes up to {2**32 - 1}")
    made = np.zeros(begins[-1], ENTRY)
    slice_of_slot = np.repeat(np.arange(len(widths)), widths * SLICE_ROWS)
    row_of_slot = slice_of_slot * SLICE_ROWS + np.arange(len(made)) % SLICE_ROWS  # slices begin at multiples
    made["column"] = _last_columns(ends, entries)[row_of_slot]
    row, place = _rows_and_places(offsets)
    made[begins[row // SLICE_ROWS] + place * SLICE_ROWS + row % SLICE_ROWS] = entries
    return begins.astype(np.uint32), made


def _rows_and_places(offsets: Offsets) -> tuple[Offsets, Offsets]:
    """For each entry its row, and which of the row's it is."""
    lengths = np.diff(offsets)
    row = np.repeat(np.arange(len(lengths)), lengths)
    return row, np.arange(offsets[-1]) - offsets[row]


def _last_columns(offsets: Offsets, entries: NDArray[Any]) -> NDArray[np.uint32]:
    """The last column of each row; 0 for a row without entries."""
    return np.where(np.diff(offsets) > 0, entries["column"][np.maximum(offsets[1:], 1) - 1], np.uint32(0))
