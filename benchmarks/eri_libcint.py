"""Repulsion integrals by libcint (through PySCF): the oracle and the peer of the eri and eri_sp families.

    python benchmarks/eri_libcint.py --workload water8 --out eri-libcint.csv
    python benchmarks/eri_libcint.py --family eri_sp --workload water8 --out eri-sp-libcint.csv

Needs PySCF; ours are timed in the same run, on the first GPU or on --device. ``int2e`` with eightfold
symmetry on all cores: the functions that the kernels have are given to it alone, with their very exponents and
coefficients. What is counted is components (quartets of primitives) of eri, and integrals of eri_sp.
"""

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from harness import arguments, bound, check, entry, inputs_of, variants_of
from numpy.typing import NDArray
from result_files import write_rows

from autotune.declaration import Family, Inputs, load_family
from autotune.device import Resident, open_backend

# What is counted: the family's scalar, and its name in columns.
COUNTED = {"eri": ("components", "components"), "eri_sp": ("different", "integrals")}


def mole(arrays: Mapping[str, NDArray[Any]]) -> Any:
    """A PySCF molecule whose functions are the ``shells`` of family eri's arrays, or eri_sp's, in their order, in
    bohr."""
    from pyscf import gto

    shells, primitives = arrays["shells"], arrays["primitives"]
    atoms, basis = [], {}
    for number, shell in enumerate(shells):
        rows = primitives[shell["first"] : shell["first"] + shell["count"]]
        momentum = int(shell["momentum"]) if "momentum" in (shells.dtype.names or ()) else 0
        # PySCF takes coefficients of normalised primitives, (2a/pi)^0.75 exp(-a r^2), times 2 sqrt(a) x for p.
        norms = (2 * rows["exponent"] / np.pi) ** 0.75 * (2 * np.sqrt(rows["exponent"])) ** momentum
        pairs = [
            [float(a), float(c)] for a, c in zip(rows["exponent"], rows["coefficient"] / norms, strict=True)
        ]
        atoms.append((f"H@{number}", [float(shell[axis]) for axis in "xyz"]))
        basis[f"H@{number}"] = [[momentum, *pairs]]
    return gto.M(atom=atoms, basis=basis, unit="Bohr", spin=len(atoms) % 2, verbose=0)


def integrals(molecule: Any) -> NDArray[np.float64]:
    """(ij|kl) by canonical index."""
    return np.asarray(molecule.intor("int2e_sph", aosym="s8"))


def matrices(molecule: Any, density: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The Coulomb and exchange matrices of a symmetric density."""
    from pyscf import scf

    coulomb, exchange = scf.hf.get_jk(molecule, density, hermi=1)
    return np.asarray(coulomb), np.asarray(exchange)


def seconds(molecule: Any, rounds: int) -> tuple[float, NDArray[np.float64]]:
    """(the shortest of ``rounds`` times, the integrals). The first run, which starts the threads, is not counted."""
    result = integrals(molecule)
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        result = integrals(molecule)
        times.append(time.perf_counter() - begin)
    return min(times), result


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__, "eri-libcint.csv")
    parser.add_argument("--family", choices=COUNTED, default="eri")
    parser.add_argument("--workload", action="append")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--policies", type=Path, default=Path("policies"))
    parser.add_argument(
        "--configuration", action="append", help="in place of the policy file's choice; again for more"
    )
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args(words)
    workloads = given.workload or ("water8",)
    family = load_family(given.family)
    scalar, unit = COUNTED[given.family]
    if given.check:
        every = [inputs_of(family, name) for name in workloads]
        return check(family, every, given.configuration or ["control"], peers=("pyscf",), device=given.device)
    rows = []
    for name in workloads:
        inputs = inputs_of(family, name)
        took, expected = seconds(mole(inputs.arrays), given.rounds)
        count = int(inputs.scalars[scalar])
        cores = len(os.sched_getaffinity(0))
        row: dict[str, Any] = {"workload": name, unit: count, "cores": cores}
        row |= {"libcint_ms": took * 1e3, f"libcint_{unit}_per_s": count / took}
        for found in ours(family, name, inputs, expected, given):
            rows.append({**row, f"gpu_{unit}_per_s": count / found["gpu_ms"] * 1e3, **found})
            print("  ".join(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
    write_rows(given.out, rows)
    return 0


def ours(
    family: Family, workload: str, inputs: Inputs, expected: NDArray[np.float64], given: Any
) -> Iterator[dict[str, Any]]:
    """Configurations on the device: median time, that of each kernel in one call more, and the largest difference to
    libcint."""
    with closing(open_backend(given.device)) as backend, backend.current():
        chosen = given.configuration or [entry(family, given.policies, backend.device.slug, workload)]
        resident = Resident(backend, inputs)
        for variant in variants_of(family, chosen, inputs.options):
            (execution,) = bound(resident, (variant,))
            execution.run()
            got = execution.restore("integrals", expected.shape)
            ms = median(backend.sample(execution.run, 20, False))
            times = backend.kernel_times(execution.run)
            yield {
                "gpu_ms": ms,
                "kernels_ms": " ".join(f"{name}={took:.4g}" for name, took in times.items()),
                "largest_difference": float(np.abs(got - expected).max()),
                "device": backend.device.name,
                "configuration": variant.configuration.id,
            }
        resident.close()


if __name__ == "__main__":
    sys.exit(main())
