"""What selection costs on inputs that were never tuned: each workload of a recorded sweep left out in turn.

    python benchmarks/selection_regret.py benchmarks/results/allpairs-h200.csv.xz \\
        benchmarks/results/mummergpu-h200.csv.xz \\
        benchmarks/results/allpairs-h200-sizes.csv.xz --unseen benchmarks/results/allpairs-h200.csv.xz \\
        --out benchmarks/results/selection-regret.csv

For each workload a policy file is made from all the others, by the code that sweeps use, and selection is asked for the
workload that was left out, by the code that programs use; what it takes is looked up in the record. Its regret is the
time of that configuration over the best one's, minus 1. It is compared with rules on the same record:

    nearest volume   the workload whose extents have the nearest product (Kernel Launcher 0.2, src/wisdom.cpp)
    majority vote    the configuration within 3 % of the best on most workloads, the smaller sum of times where two have
                     as many (Kernel Tuner 1.5.0, integration.py: store_results, _select_best_common_config)
    nearest entry    selection without a prediction
    minimax          the policy file's default for every input

Kernel Launcher's and Kernel Tuner's rules are restated here, not run: they choose from tables of the same shape. A
configuration that does not fit the workload gives way to the next one of its rule, and to control in the end.

Extents and scalars of a workload are read from columns of the CSV with their names, else from --policies.
"""

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import median

from result_files import read_rows, write_rows

from autotune.declaration import Configuration, Family, load_family
from autotune.files import find_bundled
from autotune.hardware import Device
from autotune.layout import layouts_digest
from autotune.policy import (
    Entry,
    Policies,
    PolicyFile,
    candidates,
    choose,
    file_name,
    merge_winners,
    read_policy_file,
)
from autotune.record import Measurement, Provenance, Study, Trial

RULES = (
    "autotune",
    "nearest entry",
    "nearest volume",
    "majority vote",
    "minimax",
)
_TOP = 1.03


def studies_of(path: Path, policies: Path) -> list[Study]:
    """The studies of a results.csv as a sweep of today's sources would record them."""
    rows: dict[tuple[str, str, str], list[dict[str, str]]] = {}
    for row in read_rows(path):
        rows.setdefault((row["family"], row["device"], row["workload"]), []).append(row)
    return [_study(*key, group, policies) for key, group in rows.items()]


_family = cache(load_family)  # many studies are of one


@cache
def _entries(known: Path) -> Mapping[str, Entry]:
    return read_policy_file(known).entries if known.is_file() else {}


def _study(
    family_name: str, device: str, workload: str, rows: Sequence[Mapping[str, str]], policies: Path
) -> Study:
    family = _family(family_name)
    known = policies / file_name(family_name, device)
    entries = _entries(known)
    first = rows[0]
    named = [n for n in (*family.extents, *family.scalars) if first.get(n)]
    features = {n: float(first[n]) if "." in first[n] else int(first[n]) for n in named}
    if not features:
        if workload not in entries:
            raise SystemExit(
                f"no extents of {family_name} {workload}: neither columns of the CSV nor in {known}"
            )
        features = dict(entries[workload].features)
    options = entries[workload].options if workload in entries else family.choose_options({})
    about = {
        "features": features,
        "options": dict(options),
        "compared": {name: expression.text for name, expression in family.features.items()},
        "device_kind": "cuda", "device_name": first.get("device_name") or device, "compute_capability": "9.0",
        "driver": first.get("driver", ""), "date": first.get("date", ""), "protocol": {},
        "source_digest": family.source_digest, "space_digest": family.space_digest,
        "layouts_digest": layouts_digest(), "workload_digest": workload,
    }  # fmt: skip
    trials = tuple(_trial(family, row) for row in rows if row["state"] == "measured")
    return Study(
        family=family_name, workload=workload, device=device, identity=workload,
        control=family.space.control, about=Provenance.from_dict(about), trials=trials,
    )  # fmt: skip


def _trial(family: Family, row: Mapping[str, str]) -> Trial:
    pairs = (pair.partition("=") for pair in row["configuration"].split(","))
    named = {name: family.space.policy(name).value(value) for name, _, value in pairs}
    # A policy that came after these rows had its default's way.
    configuration = Configuration({**family.space.control, **named})
    measured = Measurement(
        median_ms=float(row["median_ms"]), minimum_ms=float(row["minimum_ms"]), spread=float(row["spread_relative"]),
        samples=int(row["samples"]), retimed_ms=float(row["retimed_ms"] or 0),
    )  # fmt: skip
    return Trial(
        family=row["family"], workload=row["workload"], device=row["device"], configuration=configuration,
        state="measured", measurement=measured,
    )  # fmt: skip


# -- the rules ----------------------------------------------------------------------------------------------


def times_of(study: Study) -> dict[Configuration, float]:
    return {t.configuration: t.measurement.time_ms for t in study.trials if t.measurement}


def ours(family: Family, policies: PolicyFile, asked: Study) -> list[Configuration]:
    """What selection would try, best first."""
    features = dict(asked.about.features)
    numbers = {n: int(value) if n in family.extents else value for n, value in features.items()}
    known = Policies(Device(kind="cuda", name=policies.device.name, arch="sm_90"), policies)
    listed = candidates(family, known, numbers, asked.about.options, "cuda")
    times = times_of(asked)
    _, passed = choose(
        [*listed, replace(listed[-1], configuration=next(iter(times)))],  # for a record without control
        lambda configuration: "" if configuration in times else "does not fit there",
    )
    return [c.configuration for c in listed[len(passed) :] if c.configuration]


def nearest_volume(others: Sequence[Study], asked: Study) -> list[Configuration]:
    def size(study: Study) -> float:
        extents = _family(study.family).extents
        return float(math.prod(n for name, n in study.about.features.items() if name in extents))

    target = size(asked)
    ranked = sorted(others, key=lambda s: (abs(size(s) - target), s.workload))
    return [min(times, key=lambda c: (times[c], c.id)) for times in map(times_of, ranked)]


def majority_vote(others: Sequence[Study]) -> list[Configuration]:
    votes: dict[Configuration, list[float]] = {}
    for times in map(times_of, others):
        best = min(times.values())
        for configuration, took in times.items():
            if took < best * _TOP or took == best:
                votes.setdefault(configuration, []).append(took)
    return sorted(votes, key=lambda c: (-len(votes[c]), sum(votes[c]), c.id))


def inside(studies: Sequence[Study], asked: Study) -> bool:
    """Whether the record surrounds ``asked``: in each extent there are a smaller and a larger workload that are like it
    in all the others. An input on the rim is extrapolated when it is left out."""
    own = asked.about.features
    for name in own:
        alike = [
            s.about.features[name]
            for s in studies
            if all(s.about.features.get(n) == v for n, v in own.items() if n != name)
        ]
        if not min(alike) < own[name] < max(alike):
            return False
    return True


def left_out(studies: Sequence[Study], unseen: Sequence[Study] = ()) -> list[dict[str, object]]:
    """A row for each workload of ``studies`` (or of ``unseen``): what each rule takes when it knows all the others."""
    family = load_family(studies[0].family)
    rows: list[dict[str, object]] = []
    for asked in unseen or studies:
        others = [s for s in studies if s is not asked]
        file = merge_winners(None, others)
        plain = replace(file, prediction=None)
        taken = {
            "autotune": ours(family, file, asked),
            "nearest entry": ours(family, plain, asked),
            "nearest volume": nearest_volume(others, asked),
            "majority vote": majority_vote(others),
            "minimax": [Configuration(file.default)],
        }
        times = times_of(asked)
        best = min(times.values())
        for rule, chosen in taken.items():
            fitting = next((c for c in chosen if c in times), None)
            rows.append({
                "family": asked.family, "device": asked.device, "workloads": len(studies), "left_out": asked.workload,
                "inside": inside([*others, asked], asked),
                "rule": rule, "regret": times[fitting] / best - 1 if fitting else math.inf,
                "configuration": fitting.id if fitting else "",
            })  # fmt: skip
    return rows


def show(title: str, rows: Sequence[Mapping[str, object]]) -> None:
    print(f"\n{title}")
    print(f"{'rule':16} {'median':>8} {'mean':>8} {'worst':>8}  {'worst on':16} worst inside")
    for rule in RULES:
        mine = {str(r["left_out"]): float(str(r["regret"])) for r in rows if r["rule"] == rule}
        worst = max(mine, key=lambda name: mine[name])
        mean = sum(mine.values()) / len(mine)
        figures = (f"{100 * value:.1f} %" for value in (median(mine.values()), mean, mine[worst]))
        within = [float(str(r["regret"])) for r in rows if r["rule"] == rule and r["inside"]]
        surrounded = f"{100 * max(within):.1f} % of {len(within)}" if within else "-"
        print(f"{rule:16} {' '.join(f'{figure:>8}' for figure in figures)}  {worst:16} {surrounded}")


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", nargs="+", type=Path, help="results.csv of sweeps of several workloads")
    parser.add_argument(
        "--policies", type=Path, default=find_bundled("policies"), help="where extents are told"
    )
    parser.add_argument(
        "--unseen", type=Path, help="a results.csv whose workloads are asked for with all the others known"
    )
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(words)
    rows: list[dict[str, object]] = []
    for path in options.results:
        groups: dict[tuple[str, str], list[Study]] = {}
        for study in studies_of(path, options.policies):
            groups.setdefault((study.family, study.device), []).append(study)
        for (family, device), studies in groups.items():
            found = left_out(studies)
            show(f"{family} on {device}: {len(studies)} workloads ({path.name})", found)
            rows += [{"record": path.name, **row} for row in found]
            unseen = (
                [s for s in studies_of(options.unseen, options.policies) if s.family == family]
                if options.unseen
                else []
            )
            if unseen and options.unseen != path:
                found = left_out(studies, unseen)
                show(
                    f"{family}: {len(studies)} workloads ({path.name}) asked for those of {options.unseen.name}",
                    found,
                )
                rows += [{"record": f"{path.name} for {options.unseen.name}", **row} for row in found]
    if options.out:
        write_rows(options.out, [{**row, "regret": f"{row['regret']:.6f}"} for row in rows])
        print(f"\nwritten to {options.out}")


if __name__ == "__main__":
    main()
