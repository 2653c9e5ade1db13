"""Coulomb and exchange matrices of one density: ours, gpu4pyscf's, JoltQC's and PySCF's on the host, in one run.

    python benchmarks/eri_matrices.py --workload water27-jk --configuration C ... --out eri-matrices.csv
    python benchmarks/eri_matrices.py --family eri_sp --configuration C --generate 60 --out eri-sp-matrices.csv

A peer that is not installed is left out and said so. On the device each is called three times first, then ``--rounds``
times: the medians by device events and by the host's clock, the device idle before and after each call; PySCF once.
What a program keeps for a molecule (pairs of shells and their bounds) is made before, as our arrays are. All peers
leave out what Schwarz's inequality puts below 1e-13, by default; of ours, configurations with ``screening=schwarz`` do.
``coulomb`` and ``exchange`` are the largest differences to PySCF's matrices.

JoltQC has a file for some GPUs that says how each class of quartets is split over threads, and takes the A100's on
others. ``--generate SECONDS`` lets its own generator (``jqc/backend/data/generate_fragment.py``) choose on this device,
class by class, and times JoltQC with that too; a class that the time does not suffice for stays the A100's.
``problem`` is the error of a program that failed.
"""

import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from eri_libcint import mole
from harness import arguments, bound, check, inputs_of, variants_of
from numpy.typing import NDArray
from result_files import write_rows

from autotune.declaration import Family, Inputs, load_family
from autotune.device import Resident, open_backend

PEERS = {"gpu4pyscf": "gpu4pyscf", "joltqc": "jqc"}  # and what each is to Python
COLUMNS = ("workload", "program", "device_ms", "host_ms", "coulomb", "exchange", "problem")
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


def joltqc(inputs: Inputs, rounds: int, program: str = "joltqc") -> Timed:
    molecule = mole(inputs.arrays)
    layout = import_module("jqc.pyscf.basis").BasisLayout.from_mol(
        molecule, alignment=import_module("jqc.constants").TILE
    )
    made = import_module("jqc.pyscf.jk").generate_jk_kernel(layout)
    return on_device(program, inputs, rounds, lambda density: made(molecule, density, hermi=1))


def joltqc_generated(inputs: Inputs, rounds: int, seconds: float) -> Timed:
    """With what its generator chose here."""
    shells = inputs.arrays["shells"]
    highest = int(shells["momentum"].max()) if "momentum" in (shells.dtype.names or ()) else 0
    chosen, classes = generated(highest, seconds)
    kernels = import_module("jqc.backend.jk")
    differ = {name: split for name, split in chosen.items() if kernels.frags_fp64[name] != split}
    kernels.frags_fp64.update(chosen)
    kernels.gen_jk_kernel.cache_clear()
    text = ", ".join(f"{name.zfill(4)} {split}" for name, split in differ.items()) or "the A100's"
    return joltqc(inputs, rounds, f"joltqc, {len(chosen)} of {classes} classes generated: {text}")


def generated(highest: int, seconds: float) -> tuple[dict[str, list[int]], int]:
    """What JoltQC's generator chose for each class up to a momentum within some seconds, and how many classes there
    are. A class is a number with a momentum for each digit."""
    momenta = range(highest + 1)
    every = [(i, j, k, m) for i in momenta for j in range(i + 1) for k in range(i + 1) for m in range(k + 1)]
    spec, end = find_spec("jqc"), time.monotonic() + seconds
    assert spec is not None and spec.origin is not None  # others() has looked
    data = Path(spec.origin).parent / "backend" / "data"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    found: dict[str, list[int]] = {}
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(data / "gly30.xyz", folder)
        for momentum in every:
            command = [sys.executable, str(data / "generate_fragment.py"), *map(str, momentum), "fp64"]
            left = end - time.monotonic()
            if left <= 0:
                break
            try:
                subprocess.run(command, cwd=folder, env=environment, timeout=left, check=True)
            except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as problem:
                print(f"joltqc's generator, {momentum}: {problem}")
        for path in Path(folder).glob("optimal_scheme_*_fp64.json"):
            found = json.loads(path.read_text(encoding="utf-8"))
    return found, len(every)


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


def ours(
    family: Family, inputs: Inputs, configurations: Sequence[str], rounds: int, device: str
) -> Iterator[Timed]:
    shape = inputs.arrays["density"].shape
    with closing(open_backend(device)) as backend, backend.current():
        resident = Resident(backend, inputs)
        variants = variants_of(family, configurations, inputs.options)
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
    parser.add_argument("--family", choices=("eri", "eri_sp"), default="eri")
    parser.add_argument("--workload", default="water27-jk")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--configuration", action="append", required=True, help="again for more")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--generate", type=float, default=0, metavar="SECONDS", help="of JoltQC's generator")
    given = parser.parse_args(words)
    family = load_family(given.family)
    inputs = inputs_of(family, given.workload)
    if given.check:
        return check(
            family, [inputs], given.configuration, peers=("pyscf", *PEERS.values()), device=given.device
        )
    host = libcint(inputs)
    rows: list[dict[str, Any]] = []
    made = ours(family, inputs, given.configuration, given.rounds, given.device)
    for one in itertools.chain([host], made, others(inputs, given.rounds, given.generate)):
        row: dict[str, Any] = {"workload": given.workload, "program": one.program}
        if isinstance(one, Timed):
            row |= {"device_ms": one.device_ms, "host_ms": one.host_ms}
            differences = (float(np.abs(a - b).max()) for a, b in zip(one.found, host.found, strict=True))
            row |= dict(zip(("coulomb", "exchange"), differences, strict=True))
        else:
            row["problem"] = one.text
        rows.append(row)
        print("  ".join(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
        write_rows(given.out, rows, COLUMNS)  # what was measured is there whatever happens next
    return 0


@dataclass(frozen=True)
class Failed:
    """A program that raised, with what it said."""

    program: str
    text: str


def others(inputs: Inputs, rounds: int, generate: float) -> Iterator[Timed | Failed]:
    calls: list[tuple[str, Callable[[], Timed]]] = [
        ("gpu4pyscf", lambda: gpu4pyscf(inputs, rounds)),
        ("joltqc", lambda: joltqc(inputs, rounds)),
    ]
    if generate > 0:
        calls.append(("joltqc", lambda: joltqc_generated(inputs, rounds, generate)))
    for name, call in calls:
        if find_spec(PEERS[name]) is None:
            print(f"{name} is not installed")
            continue
        try:
            yield call()
        except Exception as problem:  # noqa: BLE001  # whatever a peer raises
            yield Failed(name, " ".join(f"{type(problem).__name__}: {problem}".split())[:300])


if __name__ == "__main__":
    sys.exit(main())
