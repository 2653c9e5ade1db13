"""What rules of selection lose on inputs that they did not know, from recorded sweeps.

    python benchmarks/selection_rules.py --taught benchmarks/results/selection-taught-h200.csv.xz \\
        --asked benchmarks/results/selection-asked-h200.csv.xz --out benchmarks/results/selection-rules.csv

Each rule knows the taught inputs of a family and is asked for one of the others: with ``--asked`` for those, which
were drawn with a seed and swept after the rule was fixed; else for each taught one in turn, which is then left out.
Regret is the time of what it takes over the best that was found for that input, minus 1; what was not measured there
gives way to the next one of the rule. With ``--policies`` the family's policy file is known before --taught, and only
rules that need no sweeps are compared. What programs get (``autotune``) is compared with:

    nearest          selection without a prediction
    volume           the input whose extents have the nearest product (Kernel Launcher 0.2, src/wisdom.cpp)
    vote             the configuration within 3 % of the best on most inputs (Kernel Tuner 1.5.0, integration.py)
    line             a straight line for each configuration's logarithmic time
    shepard          times between the four nearest entries, by one over the square of the distance
    waves            autotune's process, and the share of a last wave of blocks that is idle as one more coordinate
    five             the best of autotune's first five
    refined          what refinement ends with, every call taking the recorded time
"""

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean, quantiles

import numpy as np
import selection_record
import selection_regret
from numpy.typing import NDArray
from result_files import write_rows
from selection_inputs import RANGES

from autotune.compile import Variant
from autotune.declaration import Configuration, Family, load_family
from autotune.dispatch.refinement import CALLS, TRIED, Refinement
from autotune.hardware import Device
from autotune.policy import (
    Candidate,
    Policies,
    PolicyFile,
    candidates,
    feature_values,
    file_name,
    merge_winners,
    rank_challengers,
    read_policy_file,
)
from autotune.policy.prediction import process
from autotune.record import Study

Floats = NDArray[np.float64]
Order = list[Configuration]
RULES = (
    "autotune", "nearest", "volume", "vote", "line", "shepard", "waves",
    "five", "refined",
)  # fmt: skip
OF_FILES = ("autotune", "nearest", "five", "refined")  # that need no sweeps
_SMS = 132
_FIVE = 5


def listed(family: Family, file: PolicyFile, asked: Study) -> list[Candidate]:
    """What selection would try, best first."""
    numbers = {**{name: int(value) for name, value in asked.about.features.items()}, **asked.about.scalars}
    known = Policies(Device(kind="cuda", name=file.device.name, arch="sm_90"), file)
    found = candidates(family, known, numbers, asked.about.options, "cuda")
    return [c for c in found if c.configuration and not c.refusal]


def refined(order: Sequence[Candidate], times: Mapping[Configuration, float]) -> Order:
    """What refinement stays with when each call takes the recorded time."""
    known = [c for c in order if c.configuration in times and c.match == order[0].match]
    if order[0].match not in ("predicted", "nearest") or not known:
        return configurations(order)
    tried = [known[0], *rank_challengers(known[0], known)][:TRIED]
    is_known = known[0].match == "predicted"
    plan = Refinement([(c.expected_ms if is_known else 0.0, c.spread) for c in tried], CALLS)
    while not plan.is_over:
        at, is_timed = plan.take()
        if is_timed:
            plan.note(at, times[configurations(tried)[at]])
    return configurations(tried)[plan.best : plan.best + 1]


def configurations(order: Sequence[Candidate]) -> Order:
    return [c.configuration for c in order if c.configuration]


def nearest_volume(family: Family, others: Sequence[Study], asked: Study) -> Order:
    def size(study: Study) -> float:
        return float(math.prod(n for name, n in study.about.features.items() if name in family.extents))

    ranked = sorted(others, key=lambda s: (abs(size(s) - size(asked)), s.workload))
    return [min(times, key=lambda c: (times[c], c.id)) for times in (study.times for study in ranked)]


# -- other predictors, on the same kept configurations --------------------------------------------------------


def basis(family: Family, file: PolicyFile, asked: Study) -> tuple[Order, Floats, Floats, Floats]:
    """Kept configurations, the entries' features, their times over their best, the features asked for: logarithms."""
    assert file.prediction is not None
    kept = {name: Configuration(one.configuration) for name, one in file.prediction.kept.items()}
    entries = [e for e in file.entries.values() if e.times_ms]
    names = sorted(family.features)
    known = np.log([[feature_values(family.features, e.features)[n] for n in names] for e in entries])
    times = np.log([[e.times_ms.get(n, np.nan) for n in kept] for e in entries])
    numbers = {**asked.about.features, **asked.about.scalars}
    point = np.log([feature_values(family.features, numbers)[n] for n in names])
    return list(kept.values()), known, times - np.nanmin(times, axis=1)[:, None], point


def line(family: Family, file: PolicyFile, asked: Study) -> Order:
    kept, known, ratios, point = basis(family, file, asked)
    design = np.column_stack([np.ones(len(known)), known - point])
    found = []
    for column in ratios.T:
        there = ~np.isnan(column)
        rows = design[there]
        found.append(
            np.linalg.lstsq(rows.T @ rows + 1e-6 * np.eye(rows.shape[1]), rows.T @ column[there])[0][0]
        )
    return [kept[i] for i in np.argsort(found)]


def shepard(family: Family, file: PolicyFile, asked: Study) -> Order:
    kept, known, ratios, point = basis(family, file, asked)
    away = np.sqrt(((known - point) ** 2).sum(axis=1))
    near = np.argsort(away)[:4]
    shares = 1 / np.maximum(away[near], 1e-9) ** 2
    return [kept[i] for i in np.argsort(shares @ np.nan_to_num(ratios[near], nan=1.0))]


def waves(family: Family, file: PolicyFile, asked: Study, studies: Sequence[Study]) -> Order:
    """The idle share of the last wave is that of the family's kernel that takes the most time, with as many blocks at a
    time as fit the device."""
    kept, known, ratios, point = basis(family, file, asked)
    assert file.prediction is not None
    entries = [name for name, e in file.entries.items() if e.times_ms]
    by_name = {study.workload: study for study in studies}
    resident = blocks_at_once(studies)
    found = []
    for column, configuration in enumerate(kept):
        idle = [idle_share(family, configuration, study, resident)
                for study in (*(by_name[name] for name in entries), asked)]  # fmt: skip
        rows = np.column_stack([known, 2 * np.array(idle[:-1])])
        mean_, _ = process(rows, ratios[:, [column]], np.append(point, 2 * idle[-1]), file.prediction.reach)
        found.append(mean_[0])
    return [kept[i] for i in np.argsort(found)]


def blocks_at_once(studies: Sequence[Study]) -> Mapping[Configuration, Mapping[str, int]]:
    """Of a multiprocessor, by configuration and kernel."""
    return {
        t.configuration: {p.kernel: p.blocks_per_sm for p in t.profiles}
        for study in studies for t in study.trials if t.profiles
    }  # fmt: skip


def idle_share(
    family: Family,
    configuration: Configuration,
    study: Study,
    resident: Mapping[Configuration, Mapping[str, int]],
) -> float:
    """log of (whole waves over waves) of the last kernel of the family."""
    names = {**study.about.features, **study.about.options, **study.about.scalars, **configuration}
    variant = Variant.make(family, configuration, study.about.options)
    worst = 0.0
    for kernel in family.kernels.values():
        blocks = math.prod(variant.geometry(kernel, names).grid)
        slots = _SMS * max(1, resident.get(configuration, {}).get(kernel.name, 1))
        worst = max(worst, math.log(max(1.0, math.ceil(blocks / slots) * slots / max(1, blocks))))
    return min(worst, math.log(8))


# -- the comparison -------------------------------------------------------------------------------------------


def taken(
    family: Family, base: PolicyFile | None, others: Sequence[Study], asked: Study, rules: Sequence[str]
) -> dict[str, Order]:
    """By rule, what it would try, best first."""
    file = merge_winners(base, others) if others or base is None else base
    order = listed(family, file, asked)
    ours = configurations(order)
    times = asked.times
    makers: dict[str, Callable[[], Order]] = {
        "autotune": lambda: ours,
        "nearest": lambda: configurations(listed(family, replace(file, prediction=None), asked)),
        "volume": lambda: nearest_volume(family, others, asked),
        "vote": lambda: selection_regret.majority_vote(others),
        "line": lambda: line(family, file, asked),
        "shepard": lambda: shepard(family, file, asked),
        "waves": lambda: waves(family, file, asked, [*others, asked]),
        "five": lambda: sorted(
            [c for c in dict.fromkeys(ours) if c in times][:_FIVE], key=lambda c: times[c]
        ),
        "refined": lambda: refined(order, times),
    }
    return {rule: makers[rule]() for rule in rules}


def compared(
    name: str,
    taught: Sequence[Study],
    asked: Sequence[Study] | None,
    rules: Sequence[str] = RULES,
    base: PolicyFile | None = None,
) -> list[dict[str, object]]:
    """A row for each input and rule."""
    family = load_family(RANGES[name].family)
    rows: list[dict[str, object]] = []
    for one in asked if asked is not None else taught:
        others = [study for study in taught if study.workload != one.workload]
        times = one.times
        best = min(times.values())
        for rule, order in taken(family, base, others, one, rules).items():
            fitting = next((c for c in order if c in times), None)
            rows.append({
                "family": name, "known": len(others) + (len(base.entries) if base else 0),
                "asked": "drawn" if asked is not None else "left out",
                "input": one.workload, "tried": len(times), "rule": rule,
                "regret": times[fitting] / best - 1 if fitting else math.inf,
                "configuration": fitting.id if fitting else "",
            })  # fmt: skip
    return rows


def figures(regrets: Sequence[float]) -> tuple[float, float, float, float]:
    """Median, mean, 95th percentile (linear between ranks) and the worst."""
    ordered = sorted(regrets)
    cuts = quantiles(ordered, n=100, method="inclusive") if len(ordered) > 1 else ordered * 99
    return cuts[49], math.expm1(mean(math.log1p(r) for r in ordered)), cuts[94], ordered[-1]


def show(title: str, rows: Sequence[Mapping[str, object]]) -> None:
    print(f"\n{title}")
    print(f"{'rule':16} {'median':>8} {'mean':>8} {'95 %':>8} {'worst':>8}  worst on")
    for rule in dict.fromkeys(str(row["rule"]) for row in rows):
        mine = [(float(str(r["regret"])), f"{r['family']} {r['input']}") for r in rows if r["rule"] == rule]
        told = " ".join(f"{100 * figure:7.1f}%" for figure in figures([regret for regret, _ in mine]))
        print(f"{rule:16} {told}  {max(mine)[1]}")


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--taught", type=Path, nargs="+", default=[])
    parser.add_argument("--policies", type=Path, help="folder of policy files that are known before --taught")
    parser.add_argument("--asked", type=Path, nargs="+", default=[])
    parser.add_argument("--family", action="append", help="again for more; default: all there are")
    parser.add_argument("--rule", action="append", choices=RULES)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(words)
    taught = selection_record.read(*options.taught)
    drawn = selection_record.read(*options.asked)
    rows: list[dict[str, object]] = []
    for name in options.family or dict.fromkeys([*taught, *drawn]):
        path = (options.policies or Path()) / file_name(name, "nvidia-h200")
        base = read_policy_file(path) if options.policies and path.is_file() else None
        known = [study for _, study in taught.get(name, [])]
        asked = [study for _, study in drawn[name]] if name in drawn else None
        found = compared(name, known, asked, options.rule or (OF_FILES if base else RULES), base)
        show(f"{name}: {found[0]['known']} known", found)
        rows += found
    show(f"all {len({(r['family'], r['input']) for r in rows})}", rows)
    if options.out:
        write_rows(options.out, [{**row, "regret": f"{float(str(row['regret'])):.6f}"} for row in rows])


if __name__ == "__main__":
    main()
