"""The spmv example on the cpu device against scipy, its formats, its plain kernel and its README."""

import importlib
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cpu_results import compiled, results
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import io, sparse

from autotune.compile.variant import Variant
from autotune.declaration import family as families
from autotune.declaration import workload as workloads
from autotune.declaration.workload import bind
from autotune.device.cpu.backend import CpuBackend
from autotune.errors import AutotuneError, UnknownName, WorkloadError

FOLDER = Path(__file__).parents[2] / "examples" / "spmv"
FAMILY = families.load_family(str(FOLDER))
MODULE: Any = FAMILY.module
FORMATS: Any = importlib.import_module(f"{FAMILY.module.__name__}.formats")  # type: ignore[union-attr]
SAMPLE = FAMILY.space.configurations()[::7]


def x_for(matrix: Any, seed: int = 1) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=matrix.shape[1]).astype(np.float32)


def random_matrix(rows: int, columns: int, density: float, seed: int) -> Any:
    generator = np.random.default_rng(seed)
    return sparse.random_array((rows, columns), density=density, rng=generator, format="csr")


def check(backend: CpuBackend, matrix: Any, configurations: Any) -> None:
    """Every row within what rounding may do: |error| <= gamma |A| |x|, gamma for its length (Higham 2002, 3.1)."""
    x = x_for(matrix)
    arrays = FORMATS.arrays_of(matrix, x)
    inputs = bind(FAMILY, arrays, {}, {})
    rounded = sparse.csr_array(matrix).astype(np.float32).astype(np.float64)
    expected = rounded @ x.astype(np.float64)
    lengths = np.diff(rounded.indptr)
    bound = (lengths + 2) * 2.0**-24 * (abs(rounded) @ np.abs(x.astype(np.float64)))
    binaries = compiled(backend, [Variant(FAMILY, configuration, ()) for configuration in configurations])
    for variant, found in results(backend, binaries, inputs):
        assert (np.abs(found["y"] - expected) <= bound).all(), variant.configuration.id


def test_the_sample_has_every_value_of_every_policy() -> None:
    for policy in FAMILY.space.policies:
        assert {c[policy.name] for c in SAMPLE} == set(policy.values), policy.name
    for name in ("ell", "sell"):
        assert {c["records"] for c in SAMPLE if c["format"] == name} == {"soa", "aos"}


def test_the_sample_agrees_with_scipy(backend: CpuBackend) -> None:
    matrix = random_matrix(203, 150, 0.08, 1).tolil()
    matrix[17], matrix[202] = 0, 0  # rows without entries, the last among them
    check(backend, sparse.csr_array(matrix), SAMPLE)


def test_real_contacts_agree_with_scipy(backend: CpuBackend) -> None:
    made = MODULE.contacts({"pqr": "1a63.pqr", "cutoff": 4}, Path())
    check(backend, made, FAMILY.space.configurations("formats"))


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 40), (40, 1), (32, 32), (33, 5)])
def test_small_matrices(backend: CpuBackend, rows: int, columns: int) -> None:
    check(backend, sparse.csr_array(np.ones((rows, columns)) / 3), FAMILY.space.configurations("formats"))


# ---- formats


def test_a_matrix_in_every_format_by_hand() -> None:
    matrix = sparse.csr_array(np.array([[0, 5, 6], [0, 0, 0], [7, 0, 0]], float))
    arrays = FORMATS.arrays_of(matrix, np.ones(3))
    assert arrays["csr_offsets"].tolist() == [0, 2, 2, 3]
    assert arrays["csr_entries"].tolist() == [(1, 5), (2, 6), (0, 7)]
    assert arrays["ell_entries"].tolist() == [[(1, 5), (2, 6)], [(0, 0), (0, 0)], [(0, 7), (0, 0)]]
    assert arrays["sell_offsets"].tolist() == [0, 64]
    first, second = arrays["sell_entries"][:32].tolist(), arrays["sell_entries"][32:].tolist()
    assert first == [(1, 5), (0, 0), (0, 7), *[(0, 0)] * 29]
    assert second == [(2, 6), *[(0, 0)] * 31]
    assert (arrays["longest"], arrays["magnitude"]) == (2, 11)


@settings(max_examples=30, deadline=None)
@given(
    rows=st.integers(1, 100), columns=st.integers(1, 60), density=st.floats(0.01, 1), seed=st.integers(0, 99)
)
def test_every_format_holds_the_same_matrix(rows: int, columns: int, density: float, seed: int) -> None:
    matrix = random_matrix(rows, columns, density, seed)
    if matrix.nnz == 0:
        return
    arrays = FORMATS.arrays_of(matrix, np.ones(columns))
    dense = matrix.toarray().astype(np.float32)
    assert (MODULE.csr_of(arrays).toarray() == dense).all()
    entries, begins = arrays["sell_entries"], arrays["sell_offsets"]
    back = np.zeros_like(dense)
    for row in range(rows):
        mine = entries[begins[row // 32] + row % 32 : begins[row // 32 + 1] : 32]
        np.add.at(back[row], mine["column"], mine["value"])
    assert (back == dense).all()
    if arrays["ell_entries"].shape[1] == arrays["longest"]:
        back = np.zeros_like(dense)
        for row, mine in enumerate(arrays["ell_entries"]):
            np.add.at(back[row], mine["column"], mine["value"])
        assert (back == dense).all()
    else:
        assert arrays["longest"] * rows > 8 * matrix.nnz


def test_a_matrix_too_uneven_for_ell_excludes_it() -> None:
    matrix = sparse.lil_array((100, 100))
    matrix[3], matrix[:, 0] = 1, 1
    inputs = bind(FAMILY, FORMATS.arrays_of(matrix, np.ones(100)), {}, {})
    assert inputs.sizes["width"] == 1
    names = {c["format"]: inputs.names(c) for c in SAMPLE}
    reasons = {name: FAMILY.space.explain_exclusion(found) for name, found in names.items()}
    assert "8 times" in reasons.pop("ell")
    assert reasons == {"csr": "", "sell": ""}


@pytest.mark.parametrize(
    ("matrix", "x", "message"),
    [
        (sparse.csr_array((3, 3)), np.ones(3), "0 entries"),
        (sparse.eye_array(3), np.ones(4), "x has shape"),
    ],
)
def test_what_is_no_product(matrix: Any, x: Any, message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        FORMATS.arrays_of(matrix, x)


# ---- matrices


def test_the_stencil_is_the_laplacian() -> None:
    matrix = MODULE.stencil({"side": 4}, Path()).toarray()
    assert (matrix == matrix.T).all()
    assert (np.diag(matrix) == 6).all()
    assert set(np.count_nonzero(matrix, axis=1)) == {4, 5, 6, 7}
    assert matrix.sum(axis=1).reshape(4, 4, 4)[1:-1, 1:-1, 1:-1].tolist() == [[[0, 0], [0, 0]]] * 2


def test_contacts_sum_to_none() -> None:
    matrix = MODULE.contacts({"pqr": "1a63.pqr", "cutoff": 4}, Path())
    assert matrix.shape == (2065, 2065)
    assert np.abs(matrix.sum(axis=1)).max() == 0
    assert (matrix != matrix.T).nnz == 0


def test_power_law_rows_are_uneven() -> None:
    matrix = MODULE.power_law({"rows": 3000, "mean": 10}, Path())
    lengths = np.diff(matrix.indptr)
    assert 5 < lengths.mean() < 12
    assert lengths.max() > 10 * lengths.mean()


def test_a_matrix_market_file(tmp_path: Path) -> None:
    matrix = random_matrix(20, 30, 0.2, 4)
    io.mmwrite(tmp_path / "some.mtx", matrix)
    made = MODULE.inputs({"matrix": "matrix_market", "file": "some.mtx"}, tmp_path)
    assert np.allclose(MODULE.csr_of(made).toarray(), matrix.toarray())
    assert MODULE.inputs({"matrix": "matrix_market", "file": "some.mtx"}, tmp_path)["x"].min() >= 0.5


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({}, UnknownName, "matrix"),
        ({"matrix": "stencl", "side": 3}, UnknownName, "stencil"),
        ({"matrix": "stencil"}, WorkloadError, "needs .'side'."),
        ({"matrix": "matrix_market", "file": "torn.mtx"}, WorkloadError, "not a Matrix Market file"),
        ({"matrix": "matrix_market", "file": "none.mtx"}, WorkloadError, "none.mtx"),
    ],
)
def test_parameters_that_make_no_matrix(
    tmp_path: Path, parameters: dict[str, Any], error: type[AutotuneError], message: str
) -> None:
    (tmp_path / "torn.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 2")
    with pytest.raises(error, match=message):
        MODULE.inputs(parameters, tmp_path)


def test_the_workloads_name_matrices_that_can_be_made() -> None:
    for name in workloads.workloads(FAMILY):
        parameters = workloads.load_workload(FAMILY, name).parameters
        assert (
            parameters.keys() - {"matrix", "seed", "matrix_seed"} == MODULE.MATRICES[parameters["matrix"]][1]
        )
    contacts = workloads.prepare(FAMILY, workloads.load_workload(FAMILY), Path())
    assert contacts.sizes["row"] == 2065


# ---- what the folder has besides the kernel


@pytest.mark.filterwarnings("ignore::UserWarning")  # that nothing was tuned here
def test_the_readmes_program_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER.parents[1])
    monkeypatch.setattr(sys, "path", [*sys.path])  # the program adds to it
    (program,) = re.findall(r"```python\n(.*?)```", (FOLDER / "README.md").read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(program, names)
    assert np.allclose(names["y"], names["matrix"] @ names["x"], rtol=1e-5)


def test_the_readmes_workload_is_one(tmp_path: Path) -> None:
    matrix = sparse.csr_array(np.diag([1.0, 2, 3]))
    io.mmwrite(tmp_path / "cant.mtx", matrix)
    (text,) = re.findall(r"```yaml\n(.*?)```", (FOLDER / "README.md").read_text(), re.DOTALL)
    (tmp_path / "cant.yaml").write_text(text)
    inputs = workloads.prepare(FAMILY, workloads.load_workload(FAMILY, tmp_path / "cant.yaml"), tmp_path)
    assert (MODULE.csr_of(inputs.arrays).toarray() == matrix.toarray()).all()
