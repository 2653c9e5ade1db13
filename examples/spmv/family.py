"""Matrices and reference of the spmv example."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import io, sparse, spatial

from autotune.family import UnknownName, WorkloadError, find_data

from .formats import arrays_of

__all__ = ["inputs", "reference"]

_LONGEST = 1000  # entries of a power_law row


def matrix_market(parameters: Mapping[str, Any], root: Path) -> Any:
    """``file``: a Matrix Market file, .mtx or .mtx.gz, as the SuiteSparse collection has them."""
    path = find_data(str(parameters["file"]), root)
    try:
        return sparse.csr_array(io.mmread(path, spmatrix=False))
    except ValueError as problem:
        raise WorkloadError(f"{path} is not a Matrix Market file: {problem}") from None


def stencil(parameters: Mapping[str, Any], _root: Path) -> Any:
    """``side``: the 7-point Laplacian on a grid of side x side x side points: rows of 4 to 7 entries."""
    side = int(parameters["side"])
    line = sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(side, side))
    one = sparse.eye_array(side)
    plane = sparse.kron(line, one) + sparse.kron(one, line)
    return sparse.csr_array(sparse.kron(plane, one) + sparse.kron(sparse.eye_array(side**2), line))


def contacts(parameters: Mapping[str, Any], root: Path) -> Any:
    """``pqr``, ``cutoff`` (angstrom): the Kirchhoff matrix of a protein's atoms, -1 for a pair nearer than the cutoff,
    the number of neighbours on the diagonal (Gaussian network model: Bahar, Atilgan, Erman 1997)."""
    lines = find_data(str(parameters["pqr"]), root).read_text().splitlines()
    atoms = np.array([line.split()[-5:-2] for line in lines if line.startswith(("ATOM", "HETATM"))], float)
    pairs = spatial.KDTree(atoms).query_pairs(float(parameters["cutoff"]), output_type="ndarray")
    near = sparse.coo_array((np.ones(len(pairs)), pairs.T), shape=(len(atoms), len(atoms)))
    near = near + near.T
    return sparse.csr_array(sparse.diags_array(near.sum(axis=1)) - near)


def power_law(parameters: Mapping[str, Any], _root: Path) -> Any:
    """``rows``, ``mean``, ``matrix_seed``: a square matrix whose row lengths follow a power law, as links of a graph
    do, some columns far more frequent than others."""
    rows, mean = int(parameters["rows"]), float(parameters["mean"])
    generator = np.random.default_rng(int(parameters.get("matrix_seed", 0)))
    drawn = generator.pareto(2, rows)
    lengths = np.clip(drawn * (mean / drawn.mean()), 0, min(rows, _LONGEST)).astype(np.int64)
    row = np.repeat(np.arange(rows), lengths)
    column = (rows * generator.random(len(row)) ** 3).astype(np.int64)
    return sparse.csr_array((generator.normal(size=len(row)), (row, column)), shape=(rows, rows))


MATRICES = {
    "matrix_market": (matrix_market, {"file"}),
    "stencil": (stencil, {"side"}),
    "contacts": (contacts, {"pqr", "cutoff"}),
    "power_law": (power_law, {"rows", "mean"}),
}


def inputs(parameters: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """``matrix`` (one of those above) with what it needs; ``seed`` of x, uniform in 0.5 .. 1.5."""
    kind = str(parameters.get("matrix", ""))
    if kind not in MATRICES:
        raise UnknownName("matrix", kind, MATRICES, "family spmv")
    make, needed = MATRICES[kind]
    found = parameters.keys() - {"matrix", "seed", "matrix_seed"}
    if found != needed:
        raise WorkloadError(f"matrix {kind} needs {sorted(needed)}, found {sorted(found)}")
    matrix = make(parameters, root)
    generator = np.random.default_rng(int(parameters.get("seed", 0)))
    return arrays_of(matrix, generator.uniform(0.5, 1.5, matrix.shape[1]))


def ragged(_parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of small matrices: one entry, rows of like lengths, some empty and some long rows."""
    yield {"matrix": "stencil", "side": 1, "seed": 1}
    yield {"matrix": "stencil", "side": 5, "seed": 5}
    for rows in (33, 257):
        yield {"matrix": "power_law", "rows": rows, "mean": 7, "matrix_seed": rows, "seed": rows}


def csr_of(arrays: Mapping[str, NDArray[Any]]) -> Any:
    """The matrix again, as scipy has it, in float64."""
    entries, offsets = arrays["csr_entries"], arrays["csr_offsets"]
    parts = (
        entries["value"].astype(np.float64),
        entries["column"].astype(np.int64),
        offsets.astype(np.int64),
    )
    return sparse.csr_array(parts, shape=(len(offsets) - 1, len(arrays["x"])))


def reference(arrays: Mapping[str, NDArray[Any]], _options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """By scipy in float64; shares nothing with the kernel."""
    return {"y": (csr_of(arrays) @ arrays["x"].astype(np.float64)).astype(np.float32)}
