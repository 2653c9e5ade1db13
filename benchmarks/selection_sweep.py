"""The times that selection is taught with and judged on: a family's configurations on many inputs, in one session.

    python benchmarks/selection_sweep.py allpairs lookup --spread 20 --out round
    python benchmarks/selection_sweep.py allpairs lookup --drawn 6 --seed 61 --known round/taught.csv --out round

The inputs are those of ``selection_inputs.py``: ``--drawn`` ones, which a rule is asked for, and then ``--spread``
ones that are not ``--known``, which it is taught with, and ``--points`` of one family, named as their workloads are.
Each is swept on the ``--best`` configurations of earlier sweeps (the tables ``--known``), what the family's file in
``--policies`` names, and ``--others``. Without these two the first ``--whole`` inputs are swept on ``--most``
configurations (of the family's presets below, and others; the whole space where it has at most 1,000), the rest on
what came near the best there. What takes more than twice the best in its first run is timed once.

When an input is done, its rows are appended to OUT/asked.csv or OUT/taught.csv (``selection_record.py``); with
``--into`` what a rule is taught with also enters the policy file in that folder. An input that a table has is not swept
again.
"""

import argparse
import math
import random
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path

import selection_record
from selection_inputs import RANGES, drawn, spread, write

from autotune.declaration import Configuration, Family, Inputs, Workload, load_family, load_workload, prepare
from autotune.engine import Session, SweepRequest, Swept, open_devices, open_session
from autotune.engine.sweep import Sweep
from autotune.errors import AutotuneError
from autotune.files import find_bundled
from autotune.measure import GivenOutputs
from autotune.policy import file_name, read_policy_file, update
from autotune.record import Study, Trial

_LISTED = 1000  # a space of more is not swept whole

# What is known to be worth trying in spaces that are too large to be tried whole.
_PRESETS = {
    "allpairs": ("fast",),
    "coulomb": ("fast",),
    "cyclospectrum": (
        "short-passes",
        "short-looking-back",
        "short-listing",
        "short-transform",
        "short-transform-listing",
    ),
    "mummergpu": ("beyond",),
    "reaction_diffusion": ("fast", "small", "sizes", "large"),
}

# Hopeless by more than a hundred times wherever they take a noticeable time.
_NEVER = {"cyclospectrum": ("generation=sequential",), "allpairs": ("memory=constant",)}


@dataclass(frozen=True, kw_only=True)
class _Quick(Session):
    """With fewer samples than where a winner is looked for, and more finalists: it is about what is worth keeping, and
    what a rule takes should be among those that are timed in turns."""

    finalists: int

    def _sweep(self, workload: Workload, inputs: Inputs, answer: GivenOutputs | None) -> Sweep:
        made = super()._sweep(workload, inputs, answer)
        made.protocol = replace(
            made.protocol, race=2.0, seconds=0.02, abandon=1.6, finalists=self.finalists, rounds=5,
            finalist_seconds=0.5, target_spread=0.004,
        )  # fmt: skip
        return made


class _Silent:
    unfinished = ""

    def report_compiled(self, done: int, total: int) -> None: ...

    def update(self, trial: Trial, done: int, best_ms: float, busy_share: float) -> None: ...


@contextmanager
def _unwatched(_title: str, _total: int | None) -> Iterator[_Silent]:
    yield _Silent()


def pool(
    family: Family, most: int, seed: int, known: Sequence[Configuration] = ()
) -> tuple[Configuration, ...]:
    """At most ``most`` configurations: those ``known``, and others of the family's presets, or of the whole space where
    it has none. Without known ones the whole space, where that has at most ``_LISTED``; else the presets and others."""
    space = family.space
    full = space.configurations("full")
    whole = [c for c in full if not _is_hopeless(family, c)]
    if len(full) <= _LISTED and not known:
        return tuple(whole)
    chosen = dict.fromkeys(known)
    promising = [c for preset in _PRESETS.get(family.name, ()) for c in space.configurations(preset)]
    if not known:
        chosen |= dict.fromkeys(promising)
    rest = [c for c in dict.fromkeys((known and promising) or whole) if c not in chosen]
    chosen |= dict.fromkeys(random.Random(seed).sample(rest, max(0, min(len(rest), most - len(chosen)))))
    return tuple(chosen)


def _is_hopeless(family: Family, configuration: Configuration) -> bool:
    return any(text in configuration.id for text in _NEVER.get(family.name, ()))


def near_the_best(studies: Sequence[Study], most: int, within: float = 1.3) -> tuple[Configuration, ...]:
    """The configurations that came so near the best on any of ``studies``, the nearest first, at most ``most``."""
    away: dict[Configuration, float] = {}
    for study in studies:
        times = study.times
        best = min(times.values(), default=0.0)
        for configuration, took in times.items():
            away[configuration] = min(away.get(configuration, math.inf), took / best)
    ranked = sorted((c for c in away if away[c] < within), key=lambda c: (away[c], c.id))
    return tuple(ranked[:most])


def first_pool(
    options: argparse.Namespace, family: Family, known: Sequence[Study]
) -> tuple[Configuration, ...]:
    """The configurations that the inputs of a family are swept on at first."""
    listed = options.pool.read_text(encoding="utf-8").split() if options.pool else []
    chosen = [family.space.configuration(line) for line in listed]
    if options.policies:
        chosen += named_in(options.policies / file_name(family.name, "nvidia-h200"), family)
    chosen += near_the_best(known, options.best, math.inf)
    chosen = list(dict.fromkeys(chosen))
    is_known = bool(known or options.policies)
    return pool(family, len(chosen) + options.others if is_known else options.most, options.seed, chosen)


def named_in(path: Path, family: Family) -> list[Configuration]:
    """The winners and runners-up of a policy file, and what it keeps for prediction; nothing where there is no file."""
    if not path.is_file():
        return []
    file = read_policy_file(path)
    entries = file.entries.values()
    texts = [entry.runner_up for entry in entries if entry.runner_up]
    kept = file.prediction.kept.values() if file.prediction else ()
    named = [
        *(Configuration(one.configuration) for one in (*entries, *kept)),
        *map(family.space.configuration, texts),
    ]
    return list(dict.fromkeys(named))


def swept(options: argparse.Namespace, name: str) -> Iterator[tuple[str, Mapping[str, int], Study]]:
    """The points of the family's range with their studies and what they are for, as far as ``--seconds`` let."""
    began = time.perf_counter()
    range_ = RANGES[name]
    family = load_family(range_.family)
    before = [each for path in options.known for each in selection_record.read(path, only=name).get(name, [])]
    points = find_points(options, name, [dict(point) for point, _ in before])
    if not points:
        return
    first = first_pool(options, family, [study for _, study in before])
    with tempfile.TemporaryDirectory() as folder:
        paths = write(range_, [point for _, point in points], Path(folder))
        request = SweepRequest(
            family=family, workloads=tuple(map(str, paths)), device=options.device, out=Path(folder) / "record",
            trial_seconds=30, chosen=first,
        )  # fmt: skip
        request.check()
        found: list[Study] = []
        with open_session(request, request.cases(), _unwatched, print) as session:
            open_devices(session.workers, request.compiler)
            asked = {each.name: getattr(session, each.name) for each in fields(Session)}
            for at, ((kind, point), path) in enumerate(zip(points, paths, strict=True)):
                if time.perf_counter() - began > options.seconds:
                    print(f"{name}: time is up, {len(points) - at} inputs are left", flush=True)
                    break
                is_narrowed = not before and not options.policies and len(found) >= options.whole
                chosen = near_the_best(found, options.near) if is_narrowed else first
                try:
                    workload = load_workload(family, path)
                    narrowed = {**asked, "request": replace(request, chosen=chosen)}
                    case = _Quick(**narrowed, finalists=options.finalists)
                    one = case.sweep(workload, prepare(family, workload, find_bundled("workloads") / "data"))
                except AutotuneError as problem:
                    print(f"{name} {path.stem}: {problem}", flush=True)
                    continue
                found.append(one.study)
                _tell(name, len(chosen), one)
                yield kind, point, one.study
                if one.is_over:
                    break
            for worker in session.workers:
                worker.dismiss()


def find_points(
    options: argparse.Namespace, name: str, known: Sequence[Mapping[str, int]]
) -> list[tuple[str, dict[str, int]]]:
    """What is to be swept, asked for or taught: no point of earlier sweeps, nor one that a table of --out has."""
    tables = {kind: table_of(options, kind) for kind in ("asked", "taught")}
    done = {
        k: [p for p, _ in selection_record.read(t, only=name).get(name, [])]
        for k, t in tables.items()
        if t.exists()
    }
    range_ = RANGES[name]
    even = [p for p in spread(range_, len(known) + options.spread) if p not in known][: options.spread]
    even += [dict(zip(range_.numbers, map(int, text.split("-")), strict=True)) for text in options.points]
    points = [("asked", point) for point in drawn(range_, options.drawn, options.seed)]
    points += [("taught", point) for point in even]
    return [(kind, point) for kind, point in points if point not in done.get(kind, [])]


def table_of(options: argparse.Namespace, kind: str) -> Path:
    path: Path = options.out / f"{kind}.csv"
    return path


def _tell(name: str, count: int, one: Swept) -> None:
    spent = ", ".join(f"{phase} {seconds:.1f}" for phase, seconds in one.phases.items() if seconds > 0.1)
    best = min(one.study.times.values(), default=0.0)
    print(f"{name} {one.study.workload}: {count} configurations, {one.study.states()}, best {1000 * best:.1f} us, "
          f"{one.wall_s:.1f} s ({spent})", flush=True)  # fmt: skip


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("families", choices=RANGES, nargs="+", metavar="FAMILY")
    parser.add_argument("--drawn", type=int, default=0, help="inputs that a rule is asked for")
    parser.add_argument("--seed", type=int, default=0, help="of those, and of --others")
    parser.add_argument("--spread", type=int, default=0, help="inputs that a rule is taught with")
    parser.add_argument("--points", nargs="+", default=[], help="these are taught too, as 110-7000")
    parser.add_argument("--known", type=Path, nargs="+", default=[], help="tables of earlier sweeps")
    parser.add_argument("--policies", type=Path, help="folder of policy files that name configurations, too")
    parser.add_argument(
        "--into", type=Path, help="folder of policy files that get what a rule is taught with"
    )
    parser.add_argument("--best", type=int, default=300, help="configurations of those tables")
    parser.add_argument("--others", type=int, default=100, help="configurations beside them")
    parser.add_argument(
        "--whole", type=int, default=5, help="inputs that the first configurations are tried on"
    )
    parser.add_argument(
        "--most", type=int, default=450, help="configurations of a space that is not tried whole"
    )
    parser.add_argument(
        "--near", type=int, default=160, help="configurations that the other inputs are tried on"
    )
    parser.add_argument("--pool", type=Path, help="configurations to begin with, one a line")
    parser.add_argument("--finalists", type=int, default=20, help="configurations that are timed in turns")
    parser.add_argument("--seconds", type=float, default=1e9, help="of a family; begin no other input then")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(words)
    for name in options.families:
        taught: list[Study] = []
        for kind, point, study in swept(options, name):
            selection_record.append(table_of(options, kind), name, point, study)
            if options.into and kind == "taught" and study.times:
                taught.append(study)
                update(options.into, taught)


if __name__ == "__main__":
    main()
