"""Does every configuration of declarations that combine all layouts give what control gives?

    python benchmarks/generated_declarations.py --count 500 --device cpu
    python benchmarks/generated_declarations.py --count 50 --device cuda

A declaration is drawn from a seed: arrays of one to three extents, of numbers, records, packed numbers, images or
trees, a kernel that copies, scales, shifts, sums or walks them, and layout policies of all kinds. Several share a
family, so that one compiler call builds many. Each configuration of each declaration is run once and compared with its
control, and control with numpy. Writes a row a declaration; the exit code is 1 when one is not equal.
"""

import argparse
import itertools
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from drawn_declaration import Declaration, declaration
from numpy.typing import NDArray
from result_files import write_rows

from autotune.compile import Cache, Compiled, Toolchain, Variant, batch, compile_many, default_root
from autotune.declaration import Configuration, Family, Inputs, bind, load_family
from autotune.device import Backend, Resident, open_backend
from autotune.layout import STORAGES

TOGETHER = 10  # declarations of a family


# -- families -------------------------------------------------------------------------------------------------------


def family_of(folder: Path, members: Sequence[Declaration]) -> Family:
    """All of them in one."""
    extents = {
        extent: {"value": size} for m in members for extent, size in zip(m.extents, m.shape, strict=True)
    }
    content = {
        "schema": 1, "family": folder.name, "source": "kernels.cu", "reference": "control", "extents": extents,
        "data": {name: data for m in members for name, data in m.data.items()},
        "kernels": {
            f"k{m.number}": {"arguments": [*m.data], "grid": [f"ceil_div({m.threads}, 64)"], "block": [64]}
            for m in members
        },
        "policies": {name: policy for m in members for name, policy in m.policies.items()},
    }  # fmt: skip
    folder.mkdir(parents=True)
    (folder / "family.yaml").write_text(json.dumps(content, indent=1))
    texts = [f'#include "autotune/{name}.cuh"' for name in ("field_access", "image")]
    (folder / "kernels.cu").write_text("\n".join([*texts, *(member.kernel for member in members)]))
    return load_family(folder)


def inputs_of(family: Family, members: Sequence[Declaration]) -> Inputs:
    return bind(family, {m.name(of): array for m in members for of, array in m.arrays.items()}, {}, {})


def configurations(members: Sequence[Declaration]) -> list[Configuration]:
    """As many as the one with the most needs, so that each declaration is in all of its own; the first is control."""
    most = max(m.count for m in members)
    return [
        Configuration({name: value for m in members for name, value in m.values(number).items()})
        for number in range(most)
    ]


def outputs(
    backend: Backend, family: Family, inputs: Inputs, made: Sequence[tuple[Variant, Compiled]]
) -> list[Any]:
    """Of each variant, by name; None where this device rules it out."""
    resident = Resident(backend, inputs)
    found: list[Any] = []
    for variant, compiled in made:
        if reason := variant.explain_exclusion(inputs.names(variant.configuration), backend.device.limits):
            print(reason)
            found.append(None)
            continue
        execution = resident.execution(variant, backend.load(compiled))
        for data in family.outputs:
            execution.backend.fill(execution.placed[data.name], 0xA5)
        execution.run()
        found.append(
            {data.name: execution.restore(data.name, data.shape_for(inputs.sizes)) for data in family.outputs}
        )
    resident.close()
    return found


def rounding(made: Declaration, values: Mapping[str, Any]) -> float:
    """How far apart results may be in a configuration: its storages' rounding, of numbers up to the largest."""
    largest = (
        float(np.abs(made.arrays["x"].astype("float64")).max())
        if made.arrays["x"].dtype.names is None
        else 0.0
    )
    chosen = [
        STORAGES[str(v)] for name, v in values.items() if name.startswith("storage_") and str(v) in STORAGES
    ]
    relative = sum(1 / s.largest if s.is_scaled else 2.0 ** -(s.mantissa + 1) for s in chosen)
    return relative * 4 * (largest + 1) * max(1, made.arrays["x"].size // made.threads) if chosen else 0.0


def compared(members: Sequence[Declaration], found: Sequence[Any]) -> list[dict[str, Any]]:
    """A row a declaration."""
    rows = []
    for made in members:
        name, control = made.name("y"), found[0]
        wrong = "" if control is not None and np.array_equal(control[name], made.expected) else "control"
        excluded = sum(found[number] is None for number in range(made.count))
        for number in range(1, made.count):
            values = made.values(number)
            if wrong or found[number] is None:
                continue
            if not _are_equal(found[number][name], made.expected, rounding(made, values)):
                wrong = ",".join(f"{key}={value}" for key, value in values.items())
        rows.append(
            {
                "declaration": made.number, "kind": made.kind, "operation": made.operation,
                "shape": "x".join(map(str, made.shape)), "policies": " ".join(sorted(made.policies)),
                "configurations": made.count, "excluded": excluded, "unequal": wrong,
            }
        )  # fmt: skip
    return rows


def _are_equal(found: NDArray[Any], expected: NDArray[Any], bound: float) -> bool:
    if bound:
        return bool(np.allclose(found.astype("float64"), expected.astype("float64"), rtol=0, atol=bound))
    return found.tobytes() == np.ascontiguousarray(expected).tobytes()


def toolchain_of(backend: Backend, optimize: str) -> Toolchain:
    toolchain: Any = backend.toolchain()
    is_cpu = backend.device.kind == "cpu"
    found: Toolchain = replace(toolchain, last=(*toolchain.last, optimize)) if is_cpu else toolchain
    return found


def tried(
    backend: Backend, toolchain: Toolchain, folder: Path, members: Sequence[Declaration], processes: int
) -> list[Any]:
    """A row a declaration. Raises AssertionError for what does not compile."""
    family = family_of(folder, members)
    variants = tuple(Variant.make(family, configuration, {}) for configuration in configurations(members))
    at_once = max(1, -(-len(variants) // processes))
    chunks = compile_many(
        batch(family, variants), toolchain, Cache(default_root()), processes, at_once, early=False
    )
    made = []
    for variant, binary in zip(variants, itertools.chain(*chunks), strict=True):
        assert isinstance(binary, Compiled), f"{variant.configuration.id}: {binary}"
        made.append((variant, binary))
    return compared(members, outputs(backend, family, inputs_of(family, members), made))


def told(rows: Sequence[Mapping[str, Any]], device: str, seconds: float) -> int:
    """The exit code; says what was found."""
    wrong = [row for row in rows if row["unequal"]]
    excluded = sum(row["excluded"] for row in rows)
    print(
        f"{len(rows)} declarations, {sum(row['configurations'] for row in rows) - excluded} configurations on "
        f"{device}, {excluded} excluded, {len(wrong)} declarations with an unequal one; {seconds:.0f} s"
    )
    for row in wrong:
        print(f"  {row['declaration']} ({row['kind']}, {row['operation']}, {row['shape']}): {row['unequal']}")
    return 1 if wrong else 0


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first declaration")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--optimize", default="-O0", help="of the cpu device's compiler")
    parser.add_argument("--out", type=Path, default=Path("generated-declarations.csv"))
    parser.add_argument("--keep", type=Path, help="a folder for the families, to look at")
    given = parser.parse_args(words)
    begin, rows = time.perf_counter(), []
    place = given.keep or Path(tempfile.mkdtemp(prefix="autotune-generated-"))
    backend = open_backend(given.device)
    try:
        toolchain = toolchain_of(backend, given.optimize)
        for first in range(given.first, given.first + given.count, TOGETHER):
            numbers = range(first, min(first + TOGETHER, given.first + given.count))
            members = [declaration(n, np.random.default_rng([given.seed, n])) for n in numbers]
            with backend.current():
                rows += tried(backend, toolchain, place / f"generated{first}", members, given.processes)
            write_rows(given.out, rows)
    finally:
        backend.close()
        if not given.keep:
            shutil.rmtree(place, ignore_errors=True)
    return told(rows, given.device, time.perf_counter() - begin)


if __name__ == "__main__":
    sys.exit(main())
