"""Coulomb and exchange matrices of one density: ours beside gpu4pyscf, JoltQC and PySCF on the host, in one run.

    python benchmarks/eri_matrices.py --workload water27-jk --configuration C ... --out eri-matrices.csv

A peer that is not installed is left out and said so. On the device each is called three times first, then ``--rounds``
times: the medians by device events and by the host's clock, the device idle before and after each call; PySCF once.
What a program keeps for a molecule (pairs of shells and their bounds) is made before, as our arrays are. All peers
leave out what Schwarz's inequality puts below 1e-13, by default. ``coulomb`` and ``exchange`` are the largest
differences to PySCF's matrices.
"""

import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from statistics import median
from typing import Any

import numpy as np
from eri_libcint import mole
from harness import arguments, bound, check, inputs_of, variants_of
from numpy.typing import NDArray
from result_files import write_rows

from autotune.declaration import Inputs, load_family
from autotune.device import Resident, open_backend

FAMILY = load_family("eri")
PEERS = {"gpu4pyscf": "gpu4pyscf", "joltqc": "jqc"}  # and what each is to Python
WARM = 3

Matrices = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True)
class Timed:
    """One program's matrices, with milliseconds by device events (NaN on the host) and by the host's clock."""

    program: str
    found: Matrices
    device_ms: float
    host_ms: float


def libcint(inputs: Inputs) -> Timed:
    """Once, since it takes seconds: on all cores, without what Schwarz's inequality puts below 1e-13."""
    hf = import_module("pyscf.scf.hf")
    molecule, density = mole(inputs.arrays), inputs.arrays["density"]
    kept = hf.SCF(molecule).init_direct_scf(molecule)
    begin = time.perf_counter()
    found = hf.get_jk(molecule, density, hermi=1, vhfopt=kept)
    took = (time.perf_counter() - begin) * 1e3
    return Timed(f"libcint, {len(os.sched_getaffinity(0))} cores", found, float("nan"), took)


def gpu4pyscf(inputs: Inputs, rounds: int) -> Timed:
    jk = import_module("gpu4pyscf.scf.jk")
    molecule = mole(inputs.arrays)
    kept = jk._VHFOpt(molecule).build()  # noqa: SLF001  # as its own mean field keeps it
    return on_device("gpu4pyscf", inputs, rounds, lambda d: jk.get_jk(molecule, d, hermi=1, vhfopt=kept))


def joltqc(inputs: Inputs, rounds: int) -> Timed:
    molecule = mole(inputs.arrays)
    layout = import_module("jqc.pyscf.basis").BasisLayout.from_mol(
        molecule, alignment=import_module("jqc.constants").TILE
    )
    made = import_module("jqc.pyscf.jk").generate_jk_kernel(layout)
    return on_device("joltqc", inputs, rounds, lambda density: made(molecule, density, hermi=1))


def on_device(program: str, inputs: Inputs, rounds: int, call: Callable[[Any], tuple[Any, Any]]) -> Timed:
    """A program on CuPy's arrays."""
    cupy = import_module("cupy")
    density = cupy.asarray(inputs.arrays["density"])
    device, host = [], []
    for _ in range(WARM + rounds):
        cupy.cuda.Device().synchronize()
        begin, end, clock = cupy.cuda.Event(), cupy.cuda.Event(), time.perf_counter()
        begin.record()
        found = call(density)
        end.record()
        end.synchronize()
        host.append((time.perf_counter() - clock) * 1e3)
        device.append(cupy.cuda.get_elapsed_time(begin, end))
    coulomb, exchange = (cupy.asnumpy(matrix).reshape(density.shape) for matrix in found)
    return Timed(program, (coulomb, exchange), median(device[WARM:]), median(host[WARM:]))


def ours(inputs: Inputs, configurations: Sequence[str], rounds: int, device: str) -> Iterator[Timed]:
    shape = inputs.arrays["density"].shape
    with closing(open_backend(device)) as backend, backend.current():
        resident = Resident(backend, inputs)
        variants = variants_of(FAMILY, configurations, inputs.options)
        for text, execution in zip(configurations, bound(resident, variants), strict=True):
            host = []
            for _ in range(WARM + rounds):
                backend.synchronize()
                clock = time.perf_counter()
                execution.run()
                backend.synchronize()
                host.append((time.perf_counter() - clock) * 1e3)
            found = (execution.restore("coulomb", shape), execution.restore("exchange", shape))
            yield Timed(
                f"autotune, {text}",
                found,
                median(backend.sample(execution.run, rounds, False)),
                median(host[WARM:]),
            )
        resident.close()


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__, "eri-matrices.csv")
    parser.add_argument("--workload", default="water27-jk")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--configuration", action="append", required=True, help="again for more")
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args(words)
    inputs = inputs_of(FAMILY, given.workload)
    if given.check:
        return check(
            FAMILY, [inputs], given.configuration, peers=("pyscf", *PEERS.values()), device=given.device
        )
    host = libcint(inputs)
    rows: list[dict[str, Any]] = []
    made = ours(inputs, given.configuration, given.rounds, given.device)
    for one in itertools.chain([host], made, others(inputs, given.rounds)):
        differences = (float(np.abs(a - b).max()) for a, b in zip(one.found, host.found, strict=True))
        row = {
            "workload": given.workload, "program": one.program, "device_ms": one.device_ms, "host_ms": one.host_ms
        }  # fmt: skip
        rows.append({**row, **dict(zip(("coulomb", "exchange"), differences, strict=True))})
        print("  ".join(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
        write_rows(given.out, rows)  # what was measured is there whatever happens next
    return 0


def others(inputs: Inputs, rounds: int) -> Iterator[Timed]:
    for name, module in PEERS.items():
        if find_spec(module) is None:
            print(f"{name} is not installed")
            continue
        yield {"gpu4pyscf": gpu4pyscf, "joltqc": joltqc}[name](inputs, rounds)


if __name__ == "__main__":
    sys.exit(main())
