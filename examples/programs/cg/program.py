"""Matrices in the formats that conjugate gradients take, and the same iteration by numpy."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import io, sparse, spatial

from autotune.family import WorkloadError, find_data

ENTRY = np.dtype([("column", np.uint32), ("value", np.float32)])
SLICE_ROWS = 32  # as in the kernel
WINDOW = 8 * SLICE_ROWS  # sigma: rows are sorted by length within a window


def elastic(parameters: Mapping[str, Any], root: Path) -> Any:
    """``pqr``, ``cutoff`` (angstrom), ``atoms`` (0: all): the Hessian of a protein's elastic network, springs between
    atoms that are nearer than the cutoff (anisotropic network model: Atilgan et al. 2001), and a weak spring that holds
    each atom where it is. ``copies`` along each axis lie side by side, as molecules in a crystal do."""
    lines = find_data(str(parameters["pqr"]), root).read_text().splitlines()
    places = np.array([line.split()[-5:-2] for line in lines if line.startswith(("ATOM", "HETATM"))], float)
    places = places[: int(parameters.get("atoms", 0)) or None]
    copies = np.indices((int(parameters.get("copies", 1)),) * 3).reshape(3, -1).T
    places = (places + copies[:, None, :] * np.ptp(places, axis=0)).reshape(-1, 3)
    pairs = spatial.KDTree(places).query_pairs(float(parameters["cutoff"]), output_type="ndarray")
    apart = places[pairs[:, 1]] - places[pairs[:, 0]]
    springs = apart[:, :, None] * apart[:, None, :] / (apart**2).sum(axis=1)[:, None, None]
    size = 3 * len(places)
    rows = (3 * pairs[:, 0])[:, None, None] + np.arange(3)[:, None] + np.zeros(3, int)
    columns = (3 * pairs[:, 1])[:, None, None] + np.zeros((3, 1), int) + np.arange(3)
    upper = sparse.coo_array((-springs.ravel(), (rows.ravel(), columns.ravel())), shape=(size, size)).tocsr()
    own = np.zeros((len(places), 3, 3))
    for end in (0, 1):
        np.add.at(own, pairs[:, end], springs)
    blocks = sparse.block_diag([sparse.coo_array(block) for block in own + 0.1 * np.eye(3)])
    return sparse.csr_array(upper + upper.T + blocks)


def laplacian(parameters: Mapping[str, Any], _root: Path) -> Any:
    """``side``: the 7-point Laplacian on a grid of side x side x side points."""
    side = int(parameters["side"])
    line = sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(side, side))
    one = sparse.eye_array(side)
    plane = sparse.kron(line, one) + sparse.kron(one, line)
    return sparse.csr_array(sparse.kron(plane, one) + sparse.kron(sparse.eye_array(side**2), line))


def matrix_market(parameters: Mapping[str, Any], root: Path) -> Any:
    """``file``: a symmetric positive definite matrix of the SuiteSparse collection, .mtx or .mtx.gz."""
    return sparse.csr_array(io.mmread(find_data(str(parameters["file"]), root), spmatrix=False))


MATRICES = {"elastic": elastic, "laplacian": laplacian, "matrix_market": matrix_market}


def inputs(parameters: Mapping[str, Any], root: Path) -> dict[str, NDArray[Any]]:
    """``matrix`` (one of those above) with what it needs; ``sides`` right-hand sides by ``seed``; ``width`` of the
    preconditioner's blocks. Raises WorkloadError."""
    kind = str(parameters.get("matrix", ""))
    if kind not in MATRICES:
        raise WorkloadError(f"matrix {kind!r} cannot be made: give one of {', '.join(MATRICES)}")
    matrix = MATRICES[kind](parameters, root).astype(np.float32)
    matrix.sum_duplicates()
    generator = np.random.default_rng(int(parameters.get("seed", 0)))
    shape = matrix.shape[0], int(parameters["sides"])
    nothing, sums = np.zeros(shape, np.float32), np.zeros(shape[1], np.float32)
    return {
        **formats(matrix),
        "inverse": inverses(matrix, int(parameters["width"])),
        "x": nothing,
        "residual": generator.normal(size=shape).astype(np.float32),
        "direction": nothing,
        "gradient": sums,
        "gradient_before": sums,
    }


def formats(matrix: Any) -> dict[str, NDArray[Any]]:
    """The matrix in CSR and in SELL-C-sigma. What pads a row has the value 0 and column 0."""
    entries = np.empty(matrix.nnz, ENTRY)
    entries["column"], entries["value"] = matrix.indices, matrix.data
    offsets = matrix.indptr.astype(np.int64)
    rows, lengths = len(offsets) - 1, np.diff(offsets)
    row_of = np.full(-(-rows // SLICE_ROWS) * SLICE_ROWS, rows)
    row_of[:rows] = np.lexsort((-lengths, np.arange(rows) // WINDOW))
    length_of = np.append(lengths, 0)[row_of]
    widths = length_of.reshape(-1, SLICE_ROWS).max(axis=1)
    slices = np.concatenate([[0], np.cumsum(widths * SLICE_ROWS)])
    slots = np.zeros(slices[-1], ENTRY)
    place = np.repeat(np.arange(len(row_of)), length_of)
    turn = np.arange(len(place)) - np.repeat(np.cumsum(length_of) - length_of, length_of)
    slots[slices[place // SLICE_ROWS] + turn * SLICE_ROWS + place % SLICE_ROWS] = entries[
        np.append(offsets[:-1], 0)[row_of[place]] + turn
    ]
    whole = {"offsets": offsets, "slices": slices, "row_of": row_of}
    return {
        **{name: array.astype(np.uint32) for name, array in whole.items()},
        "entries": entries,
        "slots": slots,
    }


def inverses(matrix: Any, width: int) -> NDArray[np.float32]:
    """The inverse of each diagonal block of ``width`` rows; what is behind the last row is that of 1."""
    rows = matrix.shape[0]
    blocks = np.zeros((-(-rows // width), width, width))
    entries = matrix.tocoo()
    is_own = entries.row // width == entries.col // width
    row, column = entries.row[is_own], entries.col[is_own]
    blocks[row // width, row % width, column % width] = entries.data[is_own]
    behind = np.arange(rows, len(blocks) * width)
    blocks[behind // width, behind % width, behind % width] = 1
    found = np.linalg.inv(blocks)
    return ((found + found.swapaxes(1, 2)) / 2).astype(np.float32)


def run(arrays: Mapping[str, NDArray[Any]], scalars: Mapping[str, float]) -> dict[str, NDArray[np.float64]]:
    """The solutions ``x`` and residuals in float64 after the program's iterations, by scipy."""
    entries, offsets = arrays["entries"], arrays["offsets"].astype(np.int64)
    parts = entries["value"].astype(np.float64), entries["column"].astype(np.int64), offsets
    residual = arrays["residual"].astype(np.float64)
    matrix = sparse.csr_array(parts, shape=(len(residual),) * 2)
    inverse = sparse.block_diag(
        [sparse.coo_array(block) for block in arrays["inverse"].astype(np.float64)]
    ).tocsr()[: len(residual), : len(residual)]
    x, direction = np.zeros_like(residual), np.zeros_like(residual)
    gradient = np.ones(residual.shape[1])
    for _ in range(int(scalars["iterations"])):
        preconditioned = inverse @ residual
        gradient, before = (residual * preconditioned).sum(axis=0), gradient
        direction = preconditioned + gradient / before * direction
        product = matrix @ direction
        alpha = gradient / (direction * product).sum(axis=0)
        x, residual = x + alpha * direction, residual - alpha * product
    return {"x": x, "residual": residual}
