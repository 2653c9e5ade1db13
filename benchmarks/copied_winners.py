"""What another GPU's winner loses here: bounded sweeps that begin from its policy file, with its winners in them.

    python benchmarks/copied_winners.py --of nvidia-h200 --seconds 120 --out copied-h100.csv
    python benchmarks/copied_winners.py --device cpu --workload allpairs:primer:ladder --policies POLICIES --of cpu

For each workload, FAMILY:NAME:PRESET, the preset is swept with ``--from`` the policy file of the GPU ``--of``, within
its share of ``--seconds``. A row has the best that was found and the copied winner, both timed in turns where that is
among the finalists. ``regret`` is its time over the best, minus 1: what a program loses that runs the other GPU's
entry, as programs do on a GPU of the same compute capability. Records and policy files are left in --sweeps.
"""

import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from harness import arguments, entry, is_there
from result_files import write_rows

import autotune
from autotune.declaration import Configuration, load_family
from autotune.errors import AutotuneError
from autotune.files import find_bundled
from autotune.policy import file_name
from autotune.record import Measurement

WORKLOADS = (
    "allpairs:wide:tensor",
    "coulomb:mache-half:fast-cubics",
    "eri:water8-jk:common",
    "cyclospectrum:n16384:short-transform",  # its control sorts on the host: what takes longest comes last
)


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__, "copied-winners.csv")
    parser.add_argument("--of", default="nvidia-h200", help="the other GPU, as its policy file is named")
    parser.add_argument(
        "--workload", action="append", help=f"again for more; default: {', '.join(WORKLOADS)}"
    )
    parser.add_argument("--policies", type=Path, default=find_bundled("policies"))
    parser.add_argument("--data", type=Path, help="folder with mache.pqr; default: what ships")
    parser.add_argument(
        "--sweeps", type=Path, default=Path("copied-winners"), help="folder of records and policies"
    )
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--device", default="cuda")
    asked = parser.parse_args(words)
    workloads = [text.split(":") for text in asked.workload or WORKLOADS]
    if asked.check:
        for family, workload, preset in workloads:
            copied = _copied(asked.policies, asked.of, family, workload)
            count = len(load_family(family).space.configurations(preset))
            print(f"{family} {workload}: {count} configurations of {preset}, and {copied.id}")
        print(f"{asked.device}: {is_there(asked.device)}")
        return 0
    ends = time.monotonic() + asked.seconds
    rows: list[dict[str, object]] = []
    for at, (family, workload, preset) in enumerate(workloads):
        share = (ends - time.monotonic()) / (len(workloads) - at)
        try:
            rows.append(_row(asked, family, workload, preset, share))
        except AutotuneError as problem:
            print(f"{family} {workload}: {problem}", flush=True)
            continue
        print(rows[-1], flush=True)
        write_rows(asked.out, rows)
    return 0 if rows else 1


def _copied(policies: Path, device: str, family: str, workload: str) -> Configuration:
    """The other GPU's winner: of the workload, else what its file has for any input."""
    try:
        return entry(load_family(family), policies, device, workload)
    except SystemExit:
        return Configuration(autotune.policy.read_policy_file(policies / file_name(family, device)).default)


def _row(asked: Namespace, family: str, workload: str, preset: str, seconds: float) -> dict[str, object]:
    copied = _copied(asked.policies, asked.of, family, workload)
    began = time.monotonic()
    swept = autotune.sweep(
        family, workload=workload, preset=preset, prior=asked.policies / file_name(family, asked.of),
        device=asked.device, budget=max(2.0, 0.7 * seconds), search="exhaustive", trial_seconds=20, data=asked.data,
        out=asked.sweeps / f"{family}-{workload}", progress=False,
    )  # fmt: skip
    swept.save_policy(asked.sweeps / "policies")
    measured = {t.configuration: t.measurement for t in swept.trials if t.measurement}
    times = {c: _time(m, swept.record.about.retime_ratio or 1.0) for c, m in measured.items()}
    best = min(times, key=lambda c: times[c])
    there = times.get(copied)
    return {
        "device": swept.record.about.device_name, "of": asked.of, "family": family, "workload": workload,
        "preset": preset, "measured": len(times), "best_ms": f"{times[best]:.6g}",
        "copied_ms": f"{there:.6g}" if there else "", "regret": f"{there / times[best] - 1:.5f}" if there else "",
        "timed_in_turns": int(bool(there and measured[copied].retimed_ms and measured[best].retimed_ms)),
        "seconds": f"{time.monotonic() - began:.1f}", "best": best.id, "copied": copied.id,
    }  # fmt: skip


def _time(measured: Measurement, ratio: float) -> float:
    """In turns where it was, else as it would have been there."""
    return measured.retimed_ms or measured.median_ms * ratio


if __name__ == "__main__":
    sys.exit(main())
