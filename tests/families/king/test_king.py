"""The kinship family: configurations on the cpu device against the reference, and the reference against PLINK 2."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cpu_results import compiled, covering
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from autotune.compile.variant import Variant
from autotune.declaration import family as families
from autotune.declaration import workload as workloads
from autotune.declaration.workload import Inputs
from autotune.device.cpu.backend import CpuBackend
from autotune.device.resident import Resident
from autotune.family import family_module
from autotune.measure.verify import PATTERNS, Verifier

FAMILY = families.load_family("king")
MODULE: Any = FAMILY.module
KINSHIP, COUNTS = (("output", "kinship"),), (("output", "counts"),)


def inputs(name: str) -> Inputs:
    return workloads.prepare(FAMILY, workloads.load_workload(FAMILY, name), Path())


def reference(genotypes: np.ndarray) -> dict[str, np.ndarray]:
    result: dict[str, np.ndarray] = MODULE.reference({"genotypes": genotypes}, dict(COUNTS))
    return result


def check(backend: CpuBackend, prepared: Inputs, options: tuple[tuple[str, str], ...], count: int) -> None:
    """Compare configurations with the reference: every value of any ``count`` policies together is in one of them."""
    expected = MODULE.reference(prepared.arrays, dict(options))
    chosen = covering(FAMILY.space.configurations("full"), count)
    binaries = compiled(backend, [Variant(FAMILY, c, options) for c in chosen], 48, "-Og")
    resident, verifier = Resident(backend, prepared), Verifier(backend, FAMILY, expected)
    for variant, binary in binaries:
        reason, _ = verifier.run(resident.execution(variant, backend.load(binary)), False, PATTERNS[:1], 0.0)
        assert not reason, f"{variant.configuration.id}: {reason}"
    resident.close()
    verifier.close()


def test_configurations_equal_the_reference(backend: CpuBackend) -> None:
    check(backend, inputs("odd"), KINSHIP, 2)


def test_counts_equal_the_reference(backend: CpuBackend) -> None:
    check(backend, inputs("odd-counts"), COUNTS, 3)


def count_by_loops(genotypes: np.ndarray, i: int, j: int) -> tuple[int, ...]:
    """Counts of one pair, variant by variant."""
    counts = dict.fromkeys(("ibs0", "het_het", "het_hom", "hom_het", "missing"), 0)
    for a, b in zip(genotypes[i], genotypes[j], strict=True):
        if 3 in (a, b):
            counts["missing"] += 1
        elif abs(int(a) - int(b)) == 2:
            counts["ibs0"] += 1
        elif a == 1 and b == 1:
            counts["het_het"] += 1
        elif a == 1:
            counts["het_hom"] += 1
        elif b == 1:
            counts["hom_het"] += 1
    return tuple(counts.values())


@given(arrays(np.int32, st.tuples(st.integers(1, 6), st.integers(1, 40)), elements=st.integers(0, 3)))
def test_the_reference_counts_what_a_loop_counts(genotypes: np.ndarray) -> None:
    result = reference(genotypes)
    people = range(len(genotypes))
    assert [tuple(result["counts"][i, j]) for i in people for j in people] == [
        count_by_loops(genotypes, i, j) for i in people for j in people
    ]
    np.testing.assert_array_equal(result["kinship"], result["kinship"].T)


def test_a_child_is_related_to_its_parents_and_not_they_to_each_other() -> None:
    kinship = reference(MODULE.inputs({"instances": 30, "attributes": 4000, "seed": 1}, Path())["genotypes"])
    for child in range(2, 30, 3):
        assert abs(kinship["kinship"][child, child - 1] - 0.25) < 0.03
        assert abs(kinship["kinship"][child - 1, child - 2]) < 0.06
    np.testing.assert_array_equal(kinship["kinship"].diagonal(), 0.5)


@pytest.mark.plink2
@pytest.mark.parametrize("name", ["odd", "hapmap3-slice"])
def test_the_reference_equals_plink(name: str, tmp_path: Path) -> None:
    """Every count and every coefficient of ``--make-king-table``. PLINK leaves out sex chromosomes, so all variants
    are on chromosome 1. PLINK 2.00a3.5 calls the person with the later row IID1, and the other one 1 in HET1_HOM2."""
    genotypes = inputs(name).arrays["genotypes"]
    people, variants = genotypes.shape
    ids = [f"p{i}" for i in range(people)]
    rows = [f"1 v{v} 0 {v + 1} A C" for v in range(variants)]
    family_module("allpairs", "plink").write_bed(tmp_path / "data.bed", genotypes, ids, rows)
    columns = "cols=id,nsnp,hethet,ibs0,ibs1,kinship"
    subprocess.run(
        [
            "plink2", "--bfile", tmp_path / "data", "--make-king-table", "counts", columns, "--make-king", "square",
            "bin", "--out", tmp_path / "king",
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    expected = reference(genotypes)
    matrix = np.fromfile(tmp_path / "king.king.bin").reshape(people, people)
    np.testing.assert_array_equal(matrix.astype(np.float32), expected["kinship"])
    header, *table = [line.split() for line in (tmp_path / "king.kin0").read_text().splitlines()]
    assert header == ["#IID1", "IID2", "NSNP", "HETHET", "IBS0", "HET1_HOM2", "HET2_HOM1", "KINSHIP"]
    assert len(table) == people * (people - 1) // 2
    for first, second, *counted, _ in table:
        pair = expected["counts"][ids.index(first), ids.index(second)]
        assert [int(value) for value in counted] == [
            variants - pair["missing"], pair["het_het"], pair["ibs0"], pair["hom_het"], pair["het_hom"],
        ]  # fmt: skip


def test_a_bed_file_is_read_by_its_magic_bytes(tmp_path: Path) -> None:
    shipped = Path(workloads.find_data("hapmap3-slice.bed", Path()))
    for suffix in (".bed", ".bim", ".fam"):
        shutil.copy(shipped.with_suffix(suffix), tmp_path / f"people{suffix}")
    read = MODULE.read("genotypes", str(tmp_path / "people.bed"))
    np.testing.assert_array_equal(read, inputs("hapmap3-slice").arrays["genotypes"])
    assert MODULE.read("genotypes", str(tmp_path / "people.npy")) is None
