"""What another GPU's winner loses here: bounded sweeps that begin from its policy file, with its winners in them.

    python benchmarks/copied_winners.py --of nvidia-h200 --seconds 120 --out copied-h100.csv
    python benchmarks/copied_winners.py --device cpu --workload allpairs:primer:ladder --policies POLICIES --of cpu

For each workload, FAMILY:NAME:PRESET, the preset and the copied winner are swept with ``--from`` the policy file of the
GPU ``--of``, within its share of ``--seconds``. What that file has of the workload comes first, so that the copied
winner is among what is tried, also where the preset does not have it. A row has the best that was found and the copied
winner, both timed in turns where that is among the finalists. ``regret`` is its time over the best, minus 1: what a
program loses that runs the other GPU's entry, as programs do on a GPU of the same compute capability. Records and
policy files are left in --sweeps.
"""

import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from harness import arguments, entry, is_there
from result_files import write_rows

from autotune.api import read_prior, save_winners
from autotune.declaration import Configuration, Family, load_family
from autotune.engine import SweepRequest, Swept, open_session, raise_unless_measured
from autotune.errors import AutotuneError
from autotune.files import find_bundled
from autotune.policy import file_name, read_policy_file
from autotune.record import Measurement
from autotune.report import make_console, show_live

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
            loaded = load_family(family)
            chosen = _chosen(loaded, preset, _copied(asked.policies, asked.of, loaded, workload))
            print(f"{family} {workload}: {len(chosen)} configurations of {preset}, and {chosen[0].id}")
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


def _copied(policies: Path, device: str, family: Family, workload: str) -> Configuration:
    """The other GPU's winner: of the workload, else what its file has for any input."""
    try:
        return entry(family, policies, device, workload)
    except SystemExit:
        return Configuration(read_policy_file(policies / file_name(family.name, device)).default)


def _chosen(family: Family, preset: str, copied: Configuration) -> tuple[Configuration, ...]:
    """What is swept: the copied winner, which may be outside the preset, and the preset."""
    copied = family.space.configuration(copied.id)  # of today's space
    return tuple(dict.fromkeys((copied, *family.space.configurations(preset))))


def _row(asked: Namespace, name: str, workload: str, preset: str, seconds: float) -> dict[str, object]:
    family, began = load_family(name), time.monotonic()
    copied, *_ = chosen = _chosen(family, preset, _copied(asked.policies, asked.of, family, workload))
    study = _sweep(asked, family, workload, chosen, max(2.0, 0.7 * seconds)).study
    save_winners(asked.sweeps / "policies", [study], study, "kernel")
    measured = {t.configuration: t.measurement for t in study.trials if t.measurement}
    times = {c: _time(m, study.about.retime_ratio or 1.0) for c, m in measured.items()}
    best = min(times, key=lambda c: times[c])
    there = times.get(copied)
    return {
        "device": study.about.device_name, "of": asked.of, "family": name, "workload": workload,
        "preset": preset, "measured": len(times), "best_ms": f"{times[best]:.6g}",
        "copied_ms": f"{there:.6g}" if there else "", "regret": f"{there / times[best] - 1:.5f}" if there else "",
        "timed_in_turns": int(bool(there and measured[copied].retimed_ms and measured[best].retimed_ms)),
        "seconds": f"{time.monotonic() - began:.1f}", "best": best.id, "copied": copied.id,
    }  # fmt: skip


def _sweep(
    asked: Namespace, family: Family, workload: str, chosen: Sequence[Configuration], seconds: float
) -> Swept:
    request = SweepRequest(
        family=family, workloads=(workload,), chosen=tuple(chosen), device=asked.device, data=asked.data,
        prior=(str(asked.policies / file_name(family.name, asked.of)),), budget=f"{seconds:.1f}s",
        search="exhaustive", trial_seconds=20, out=asked.sweeps / f"{family.name}-{workload}",
    )  # fmt: skip
    request.check()
    watch = partial(show_live, err=make_console(False))
    with open_session(request, request.cases(), watch, elsewhere=read_prior(request)) as session:
        (swept,) = session.sweeps()
    raise_unless_measured([swept.study], f"the record ({request.folder})")
    return swept


def _time(measured: Measurement, ratio: float) -> float:
    """In turns where it was, else as it would have been there."""
    return measured.retimed_ms or measured.median_ms * ratio


if __name__ == "__main__":
    sys.exit(main())
