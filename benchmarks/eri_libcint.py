"""Repulsion integrals by libcint (through PySCF): the oracle and the peer of the eri family.

    python benchmarks/eri_libcint.py --workload water8 --out eri-libcint.csv

Needs PySCF; with a CUDA device, ours are timed beside it in the same run. ``int2e`` with eightfold symmetry on all
cores: the s functions are given to it alone, with the very exponents and coefficients that the kernels get.
"""

import argparse
import csv
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def mole(arrays: Mapping[str, NDArray[Any]]) -> Any:
    """A PySCF molecule whose functions are the ``shells`` of the family's arrays, in their order, in bohr."""
    from pyscf import gto

    shells, primitives = arrays["shells"], arrays["primitives"]
    atoms, basis = [], {}
    for number, shell in enumerate(shells):
        rows = primitives[shell["first"] : shell["first"] + shell["count"]]
        # PySCF takes coefficients of normalised primitives, (2a/pi)^0.75 exp(-a r^2).
        norms = (2 * rows["exponent"] / np.pi) ** 0.75
        pairs = [
            [float(a), float(c)] for a, c in zip(rows["exponent"], rows["coefficient"] / norms, strict=True)
        ]
        atoms.append((f"H@{number}", [float(shell[axis]) for axis in "xyz"]))
        basis[f"H@{number}"] = [[0, *pairs]]
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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workload", action="append")
    parser.add_argument("--policies", type=Path, default=Path("policies"))
    parser.add_argument(
        "--configuration", action="append", help="in place of the policy file's choice; again for more"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("eri-libcint.csv"))
    arguments = parser.parse_args()
    from autotune.declaration import load_family, load_workload, prepare

    family = load_family("eri")
    rows = []
    for name in arguments.workload or ("water8",):
        inputs = prepare(family, load_workload(family, name), Path())
        took, expected = seconds(mole(inputs.arrays), arguments.rounds)
        components = int(inputs.scalars["components"])
        cores = len(os.sched_getaffinity(0))
        row: dict[str, Any] = {"workload": name, "components": components, "cores": cores}
        row |= {"libcint_ms": took * 1e3, "libcint_components_per_s": components / took}
        for found in ours(family, name, inputs, expected, arguments):
            rows.append({**row, **found})
            print("  ".join(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
    with arguments.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def ours(
    family: Any, workload: str, inputs: Any, expected: NDArray[np.float64], arguments: Any
) -> Iterator[dict[str, Any]]:
    """Configurations on the first GPU: median device time, and the largest difference to libcint."""
    from autotune.compile import Cache, Compiled, Variant, batch, compile_batch, default_root
    from autotune.device import CudaBackend, Resident
    from autotune.measure import median
    from autotune.policy import file_name
    from autotune.policy import read_policy_file as read

    with CudaBackend(0) as backend:
        texts = arguments.configuration
        if not texts:
            entries = read(arguments.policies / file_name(family.name, backend.device.slug)).entries
            chosen = entries[workload].configuration.items()
            texts = [",".join(f"{key}={value}" for key, value in chosen)]
        resident = Resident(backend, inputs)
        for text in texts:
            variant = Variant.of(family, family.space.configuration(text), inputs.options)
            (compiled,) = compile_batch(batch(family, (variant,)), backend.toolchain(), Cache(default_root()))
            assert isinstance(compiled, Compiled), compiled
            execution = resident.execution(variant, backend.load(compiled))
            execution.run()
            got = execution.restore("integrals", expected.shape)
            ms = median(backend.sample(execution.run, 20, False))
            yield {
                "gpu_ms": ms,
                "gpu_components_per_s": int(inputs.scalars["components"]) / ms * 1e3,
                "largest_difference": float(np.abs(got - expected).max()),
                "device": backend.device.name,
                "configuration": variant.configuration.id,
            }
        resident.close()


if __name__ == "__main__":
    main()
