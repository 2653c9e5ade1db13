"""The whole photobleaching experiment, configuration by configuration: bits, closed forms and times.

    python benchmarks/reaction_diffusion_experiment.py equal --grid 211x333 --steps 97 --count 60
    python benchmarks/reaction_diffusion_experiment.py eigenmode --grid 1024 --steps 100000
    python benchmarks/reaction_diffusion_experiment.py times --grid 1024 --steps 100000 --out experiment.csv
    python benchmarks/reaction_diffusion_experiment.py times --grid 16384 --steps 48 --preset wave --out large.csv

`equal` runs a random part of the space on random concentrations, in float32 and float64, in a rectangle and in an
outline, and compares every bit with one step a launch; the digest of the bits that it prints is the same on every
device. `eigenmode` compares a cosine with its closed form: without bleaching, cos(pi m (i + 1/2) / N) in x and y
shrinks by 1 - 4 D' (sin^2(pi m_x / 2N) + sin^2(pi m_y / 2N)) a step, and the sum stays. `times` times a preset and a
graph of one-step launches, and compares the preset with the graph bit by bit.

A time is that of the whole plan with its launches, measured with the device's events, without the transfers to and
from the device; the median of --samples for what is among the best, one sample for the rest.
"""

import argparse
import gc
import hashlib
import itertools
import math
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from harness import arguments, check, module_of, variants_of
from numpy.typing import NDArray
from result_files import write_rows

from autotune.compile import Cache, CompileFailure, batch, compile_many, default_root
from autotune.declaration import Configuration, Family, Inputs, bind, load_family
from autotune.device import Backend, Execution, LaunchError, Placed, Resident, open_backend

ONE_STEP: dict[str, Any] = {"field_memory": "readonly", "boundary": "clamp", "vector_width": 4, "strip": 1}
MODES = 3, 2  # half waves along x and y
NEARLY = 1.1
# Of a run of 100,000 steps. In float32 a change of less than half a unit in the last place is lost, step after step.
TOLERANCE = {"float32": 1e-3, "float64": 1e-7}


@dataclass(frozen=True)
class Row:
    """``ms`` of the whole run; ``times_one_step`` how many times as fast as a graph of one-step launches it is."""

    grid: str
    steps: int
    configuration: str
    ms: float
    updates_per_second: float
    times_one_step: float


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__)
    parser.add_argument("part", choices=("equal", "eigenmode", "times"))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--grid", default="1024", help="N or ROWSxCOLUMNS")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--interval", type=int, default=100, help="steps from one sample to the next")
    parser.add_argument("--preset", default="fast", help="of times and eigenmode")
    parser.add_argument("--configuration", action="append", help="in place of the preset")
    parser.add_argument(
        "--count", type=int, default=40, help="of equal: configurations of each kind of input"
    )
    parser.add_argument("--precision", default="float32", help="of eigenmode")
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="of times: a CSV file")
    chosen = parser.parse_args(words)
    rows, columns = (int(n) for n in (chosen.grid.split("x") * 2)[:2])
    family = load_family("reaction_diffusion")
    if chosen.check:
        inputs = experiment(family, (rows, columns), chosen, outline=False)
        return check(family, [inputs], configurations_of(family, chosen), device=chosen.device)
    with closing(open_backend(chosen.device)) as backend, backend.current():
        if chosen.part == "equal":
            return equal(backend, family, (rows, columns), chosen)
        if chosen.part == "eigenmode":
            return eigenmode(backend, family, (rows, columns), chosen)
        return times(backend, family, (rows, columns), chosen)


# ---- inputs


def experiment(
    family: Family, shape: tuple[int, int], chosen: argparse.Namespace, outline: bool, **options: str
) -> Inputs:
    """A beam on the middle; random concentrations for small grids, 1 for large ones."""
    inside = np.ones(shape, np.bool_)
    if outline:
        y, x = np.ogrid[: shape[0], : shape[1]]
        inside = ((y / shape[0] - 0.5) ** 2 + (x / shape[1] - 0.5) ** 2 < 0.2) & ((x + 2 * y) % 37 > 1)
    dt = 1e-4
    made = module_of(family).Experiment(
        seconds=chosen.steps * dt,
        sample_seconds=chosen.interval * dt,
        seed=1 if inside.size < 1 << 20 else -1,
    )
    walls = {"walls": "outline" if outline else "rectangle", "beam_shape": "gaussian"}
    return bind(family, made.inputs(inside), {**walls, **options}, {})


def cosine(
    family: Family, shape: tuple[int, int], chosen: argparse.Namespace
) -> tuple[Inputs, NDArray[np.float64]]:
    """1 + half a cosine in x and y, without a beam; and what it is after all steps."""
    given = (
        module_of(family)
        .Experiment(
            seconds=chosen.steps * 1e-4, sample_seconds=chosen.interval * 1e-4, k=0.0, detector_radius=0.0
        )
        .inputs(np.ones(shape, np.bool_))
    )
    waves = [np.cos(np.pi * m * (np.arange(n) + 0.5) / n) for m, n in zip(MODES[::-1], shape, strict=True)]
    wave = np.outer(*waves)
    shrinks = 1 - 4 * given["diffusion"] * sum(
        np.sin(np.pi * m / (2 * n)) ** 2 for m, n in zip(MODES[::-1], shape, strict=True)
    )
    initial = (1 + wave / 2).astype(np.float32)
    inputs = bind(
        family,
        {**given, "initial": initial},
        {"walls": "rectangle", "beam_shape": "gaussian", "precision": chosen.precision},
        {},
    )
    return inputs, 1 + wave / 2 * shrinks**chosen.steps


# ---- running


def executions(
    backend: Backend, family: Family, inputs: Inputs, configurations: Sequence[Configuration]
) -> Iterator[tuple[Configuration, Execution]]:
    """Those that can run here, compiled by all cores and bound; what cannot is printed."""
    variants = variants_of(family, configurations, inputs.options)
    chunks = compile_many(
        batch(family, variants), backend.toolchain(), Cache(default_root()), os.cpu_count() or 1, 4
    )
    resident = Resident(backend, inputs)
    for variant, binary in zip(variants, itertools.chain.from_iterable(chunks), strict=True):
        configuration = variant.configuration
        names = inputs.names(configuration)
        if isinstance(binary, CompileFailure):
            print(f"{configuration.id}: does not compile: {binary.message[:300]}")
        elif reason := variant.explain_exclusion(names, backend.device.limits):
            print(f"{configuration.id}: {reason}")
        else:
            execution = resident.execution(variant, backend.load(binary))
            gc.collect()  # nothing that was dropped may be freed while a graph is recorded
            try:
                execution.run()
                backend.synchronize()
                yield configuration, execution
            except LaunchError as problem:
                print(f"{configuration.id}: {problem}")
    resident.close()


def results(backend: Backend, family: Family, inputs: Inputs, execution: Execution) -> list[NDArray[Any]]:
    """The outputs of a run on poisoned arrays."""
    scratch = [name for name, data in family.data.items() if data.role == "scratch"]
    for name in (*(data.name for data in family.outputs), *scratch):
        backend.fill(execution.placed[name], 0xFF)
    execution.run()
    return [
        execution.restore(data.name, [inputs.sizes[extent] for extent in data.shape])
        for data in family.outputs
    ]


def unequal(found: list[NDArray[Any]], expected: list[NDArray[Any]]) -> int:
    """How many numbers differ in a bit."""
    return sum(
        int(np.count_nonzero(a.view(np.uint64) != b.view(np.uint64)))
        for a, b in zip(found, expected, strict=True)
    )


def configurations_of(family: Family, chosen: argparse.Namespace) -> list[Configuration]:
    """A graph of one-step launches first, then those that were named, or the preset."""
    first = family.space.configuration(",".join(f"{name}={value}" for name, value in ONE_STEP.items()))
    named = [family.space.configuration(text) for text in chosen.configuration or ()]
    return [first, *(c for c in named or family.space.configurations(chosen.preset) if c != first)]


# ---- the parts


def equal(backend: Backend, family: Family, shape: tuple[int, int], chosen: argparse.Namespace) -> int:
    generator, failed = random.Random(chosen.seed), 0
    space = family.space.configurations("full")
    for outline, precision in itertools.product((False, True), ("float32", "float64")):
        inputs = experiment(family, shape, chosen, outline, precision=precision)
        fit = [c for c in space if not outline or c["boundary"] == "mask"]
        # As many of each way to hold the field, or the largest part of the space would be all that is tried.
        kinds = sorted({str(c["field_memory"]) for c in fit})
        picked = [
            c
            for kind in kinds
            for c in generator.sample(
                [c for c in fit if c["field_memory"] == kind], -(-chosen.count // len(kinds))
            )
        ]
        ran, expected = 0, None
        for configuration, execution in executions(backend, family, inputs, [family.space.control, *picked]):
            found = results(backend, family, inputs, execution)
            expected = expected or found
            ran += 1
            if wrong := unequal(found, expected):
                failed += 1
                print(f"{configuration.id}: {wrong} numbers differ")
        bits = hashlib.sha256(b"".join(array.tobytes() for array in expected or ())).hexdigest()[:16]
        kind = f"{'outline' if outline else 'rectangle'} {precision}"
        print(f"{kind}: {ran} configurations ran, {failed} differ so far; bits {bits}", flush=True)
    return 1 if failed else 0


def eigenmode(backend: Backend, family: Family, shape: tuple[int, int], chosen: argparse.Namespace) -> int:
    inputs, exact = cosine(family, shape, chosen)
    expected = None
    print(
        f"{'L2 error':>10} {'mass error':>10} {'smallest':>9} {'largest':>9} (in the beginning 0.5 and 1.5)"
    )
    worst = 0.0
    for configuration, execution in executions(backend, family, inputs, configurations_of(family, chosen)):
        found = results(backend, family, inputs, execution)
        expected = expected or found
        c, fluorescence = found
        error = float(np.linalg.norm(c - exact) / np.linalg.norm(exact))
        mass = float(abs(fluorescence[-1] / fluorescence[0] - 1))
        worst = max(worst, error, mass, 1.0 if unequal(found, expected) else 0.0)
        print(f"{error:10.2e} {mass:10.2e} {c.min():9.6f} {c.max():9.6f} {configuration.id}")
    return 0 if expected is not None and worst <= TOLERANCE[chosen.precision] else 1


def times(backend: Backend, family: Family, shape: tuple[int, int], chosen: argparse.Namespace) -> int:
    inputs = experiment(family, shape, chosen, outline=False)
    rows: list[Row] = []
    expected: dict[str, Placed] = {}
    best, one_step = math.inf, 0.0
    for configuration, execution in executions(backend, family, inputs, configurations_of(family, chosen)):
        outputs = {data.name: execution.placed[data.name] for data in family.outputs}
        for placed in outputs.values():
            backend.fill(placed, 0xFF)
        execution.run()
        if not expected:  # compared on the device: a large field takes seconds to fetch
            for name, placed in outputs.items():
                expected[name] = backend.place(replace(placed.stored, buffer=backend.download(placed)))
        if wrong := sum(backend.count_mismatches(placed, expected[name]) for name, placed in outputs.items()):
            print(f"{configuration.id}: {wrong} words differ")
            continue
        (ms,) = backend.sample(execution.run, 1, False)
        if ms <= NEARLY * best:  # a single sample tells what is far behind
            ms = median(backend.sample(execution.run, chosen.samples, False))
        best, one_step = min(best, ms), one_step or ms
        updates = shape[0] * shape[1] * chosen.steps / ms * 1e3
        rows.append(Row(chosen.grid, chosen.steps, configuration.id, ms, updates, one_step / ms))
        if chosen.out:
            write_rows(chosen.out, [asdict(row) for row in rows])  # a run that is ended leaves what it has
        print(f"{ms:10.3f} ms {updates:.3e} updates/s {one_step / ms:6.2f} x {configuration.id}", flush=True)
    return 0 if rows else 1


if __name__ == "__main__":
    begin = time.perf_counter()
    status = main()
    print(f"{time.perf_counter() - begin:.1f} s", file=sys.stderr)
    sys.exit(status)
