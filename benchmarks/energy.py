"""Joules a call, and how much they vary: the control and the tuned configuration of a workload, in turn, run after run.

    python benchmarks/energy.py FAMILY -w WORKLOAD --policies policies --out energy.csv

Each run is a new queue of calls of each (``EnergyMeter``), and before it the median of ``--samples``
samples without a flush: of such calls the queue is made. A row is one configuration in one run, and one for the runs
together: the median with half of its range over it, and the ratio to the tuned one's. ``idle_w`` is what the device
takes before the first run, with nothing to do. Both results are verified first.
"""

import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import harness
from harness import bound, check, entry, inputs_of, variants_of
from result_files import write_rows

from autotune.compile import default_root
from autotune.declaration import load_family
from autotune.device import Resident, open_backend
from autotune.measure import GUARD_BYTES, Verifier, compute_expected
from autotune.measure.energy import EnergyMeter

COLUMNS = (
    "family", "workload", "device", "role", "configuration", "run", "time_ms", "energy_j", "power_w", "idle_w",
    "time_spread", "energy_spread", "power_spread", "time_over_tuned", "energy_over_tuned",
)  # fmt: skip
FIGURES = ("time", "energy", "power")
Figures = tuple[float, float, float]  # milliseconds, joules, watts


def main(words: Sequence[str] | None = None) -> int:
    asked = arguments(words)
    family = load_family(asked.family)
    inputs = inputs_of(family, asked.workload, asked.data)
    if asked.check:
        return check(family, [inputs], ["control"], device=asked.device)
    with closing(open_backend(asked.device)) as backend, backend.current():
        meter = EnergyMeter.open(backend, asked.seconds)
        tuned = entry(
            family, asked.policies, asked.slug or backend.device.slug, asked.entry or asked.workload
        )
        resident = Resident(backend, inputs, guard=GUARD_BYTES)
        chosen = {"tuned": tuned, "control": family.space.control}
        executions = dict(
            zip(chosen, bound(resident, variants_of(family, chosen.values(), inputs.options)), strict=True)
        )
        verifier = Verifier(backend, family, compute_expected(family, inputs, default_root())[0])
        for role, execution in executions.items():
            reason, _ = verifier.run(execution, cold=False)
            assert not reason, f"{role}: {reason}"
        found: dict[str, list[Figures]] = {role: [] for role in chosen}
        for run in range(asked.runs):
            for role in chosen if run % 2 == 0 else reversed(chosen):
                execution = executions[role]
                execution.prepare()
                backend.sample(execution.run, 3, False)
                time_ms = median(backend.sample(execution.run, asked.samples, False))
                sample = meter(execution, time_ms)
                found[role].append((time_ms, sample["energy_j"], sample["power_w"]))
        about = {
            "family": family.name,
            "workload": asked.workload,
            "device": backend.device.name,
            "idle_w": f"{meter.idle_w:.1f}",
        }
        verifier.close()
        resident.close()
    write_rows(asked.out, [*rows(about, found, {role: one.id for role, one in chosen.items()})], COLUMNS)
    return 0


def rows(
    about: Mapping[str, str], found: Mapping[str, Sequence[Figures]], named: Mapping[str, str]
) -> list[dict[str, Any]]:
    """A row for each run, then one for all of a role's."""
    told: list[dict[str, Any]] = []
    best = _medians(found["tuned"])
    for role, runs in found.items():
        head = {**about, "role": role, "configuration": named[role]}
        told += [{**head, "run": number, **_figures(one)} for number, one in enumerate(runs)]
        middle = _medians(runs)
        spreads = [(max(c) - min(c)) / 2 / median(c) for c in zip(*runs, strict=True)]
        whole = {f"{name}_spread": f"{value:.4f}" for name, value in zip(FIGURES, spreads, strict=True)}
        whole |= {f"{name}_over_tuned": f"{middle[n] / best[n]:.3f}" for n, name in enumerate(FIGURES[:2])}
        told.append({**head, "run": "all", **_figures(middle), **whole})
        print(
            f"{about['family']} {role}: {middle[0]:.4g} ms +- {spreads[0]:.2%}, {middle[1]:.4g} J +- "
            f"{spreads[1]:.2%}, {middle[2]:.0f} W +- {spreads[2]:.2%} (idle {about['idle_w']} W)",
            flush=True,
        )
    return told


def _medians(runs: Sequence[Figures]) -> Figures:
    time_ms, joules, watts = (median(column) for column in zip(*runs, strict=True))
    return time_ms, joules, watts


def _figures(one: Figures) -> dict[str, str]:
    return {"time_ms": f"{one[0]:.6g}", "energy_j": f"{one[1]:.6g}", "power_w": f"{one[2]:.1f}"}


def arguments(words: Sequence[str] | None) -> Any:
    parser = harness.arguments(__doc__, "energy.csv")
    parser.add_argument("family")
    parser.add_argument("--workload", "-w", required=True)
    parser.add_argument("--entry", default="", help="of the policy file; default: the workload's")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--slug", default="", help="of the policy file, where that is another device's")
    parser.add_argument("--policies", type=Path, default=Path("policies"))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--samples", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=0.0)
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main())
