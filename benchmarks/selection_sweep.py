"""The times that selection is taught with and judged on: a family's configurations on many inputs, in one session.

    python benchmarks/selection_sweep.py allpairs --each 20 --seconds 90 --out taught
    python benchmarks/selection_sweep.py allpairs --each 6 --seed 60 --best-of taught/allpairs.pickle --out asked

The inputs are those of ``selection_inputs.py``. Without a seed the first ``--whole`` of them are swept on ``--most``
configurations (of the family's presets below, and drawn ones), the others on what came near the best there. With a seed
each is swept on the whole space, or where that has more than 1,000 members on the ``--best`` of those in ``--best-of``,
what was swept before, and on ``--drawn`` others. What takes more than twice the best in its first run is timed once.

Writes OUT/FAMILY.pickle: what made each input, and its study.
"""

import argparse
import lzma
import math
import pickle
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path

from selection_inputs import RANGES, drawn, spread, write

from autotune.declaration import Configuration, Family, Inputs, Workload, load_family, load_workload, prepare
from autotune.engine import Session, SweepRequest, Swept, open_devices, open_session
from autotune.engine.sweep import Sweep
from autotune.errors import AutotuneError
from autotune.files import find_bundled
from autotune.measure import GivenOutputs
from autotune.record import Study, Trial

_LISTED = 1000  # a space of more is not swept whole

# What is known to be worth trying in spaces that are too large to be tried whole.
_PRESETS = {"reaction_diffusion": ("textbook", "fast", "large"), "coulomb": ("paper", "fast"),
            "mummergpu": ("mummergpu-1.0", "mummergpu-2.0"), "allpairs": ("short",)}  # fmt: skip

# Hopeless by more than a hundred times wherever they take a noticeable time.
_NEVER = {"cyclospectrum": ("generation=sequential",), "allpairs": ("memory=constant",)}


class _Quick(Session):
    """With fewer samples than where a winner is looked for, and more finalists: it is about what is worth keeping, and
    what a rule takes should be among those that are timed in turns."""

    def _sweep(self, workload: Workload, inputs: Inputs, answer: GivenOutputs | None) -> Sweep:
        made = super()._sweep(workload, inputs, answer)
        made.protocol = replace(
            made.protocol, race=2.0, seconds=0.02, abandon=1.6, finalists=20, rounds=5, finalist_seconds=0.5,
            target_spread=0.004,
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
    """At most ``most`` configurations, or the whole space where it has at most ``_LISTED``: those ``known``, the
    presets that are, and others drawn."""
    space = family.space
    full = space.configurations("full")
    whole = [c for c in full if not _is_hopeless(family, c)]
    if len(full) <= _LISTED:
        return tuple(whole)
    chosen = dict.fromkeys(known)
    if not known:
        for preset in _PRESETS.get(family.name, ()):
            chosen |= dict.fromkeys(space.configurations(preset))
    rest = [c for c in whole if c not in chosen]
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


def swept(options: argparse.Namespace) -> Iterator[tuple[Mapping[str, int], Study]]:
    """The points of the range with their studies, as far as ``--seconds`` let."""
    range_ = RANGES[options.family]
    family = load_family(range_.family)
    even = options.seed is None
    points = spread(range_, options.each) if even else drawn(range_, options.each, options.seed)
    points = points[options.skip :]
    paths = write(range_, points, options.out / "inputs")
    named = options.pool.read_text(encoding="utf-8").split() if options.pool else []
    known = [family.space.configuration(line) for line in named]
    if options.best_of:
        before = [study for path in options.best_of for _, study in read(path)]
        known = list(near_the_best(before, options.best, math.inf))
    first = pool(family, options.most if even else len(known) + options.drawn, options.seed or 0, known)
    request = SweepRequest(
        family=family, workloads=tuple(map(str, paths)), device=options.device, out=options.out / range_.name,
        trial_seconds=30, chosen=first,
    )  # fmt: skip
    request.check()
    earlier = read(options.after) if options.after else []
    found = [study for _, study in earlier]
    began = time.perf_counter()
    with open_session(request, request.cases(), _unwatched, print) as session:
        open_devices(session.workers, request.compiler)
        chosen = first
        for at, (point, path) in enumerate(zip(points, paths, strict=True)):
            if time.perf_counter() - began > options.seconds:
                print(f"{range_.name}: time is up, {len(points) - at} inputs are left")
                break
            if even and point in [dict(known) for known, _ in earlier]:
                continue
            if even and chosen is first and len(found) >= options.whole:
                chosen = near_the_best(found, options.near)
            try:
                workload = load_workload(family, path)
                asked = {each.name: getattr(session, each.name) for each in fields(Session)}
                case = _Quick(**{**asked, "request": replace(request, chosen=chosen)})
                one = case.sweep(workload, prepare(family, workload, find_bundled("workloads") / "data"))
            except AutotuneError as problem:
                print(f"{range_.name} {path.stem}: {problem}")
                continue
            found.append(one.study)
            _tell(range_.name, len(chosen), one)
            yield point, one.study
            if one.is_over:
                break
        for worker in session.workers:
            worker.dismiss()


def _tell(name: str, count: int, one: Swept) -> None:
    spent = ", ".join(f"{phase} {seconds:.1f}" for phase, seconds in one.phases.items() if seconds > 0.1)
    best = min(one.study.times.values(), default=0.0)
    print(f"{name} {one.study.workload}: {count} configurations, {one.study.states()}, best {1000 * best:.1f} us, "
          f"{one.wall_s:.1f} s ({spent})", flush=True)  # fmt: skip


def slim(study: Study) -> Study:
    """Without what selection never reads."""
    trials = tuple(replace(t, phases_ms={}, notes=(), reason=t.reason[:80]) for t in study.trials)
    return replace(study, trials=trials)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("family", choices=RANGES)
    parser.add_argument("--each", type=int, default=20, help="inputs")
    parser.add_argument("--skip", type=int, default=0, help="the first so many of them")
    parser.add_argument("--seed", type=int, help="draw the inputs; without, they are spread evenly")
    parser.add_argument(
        "--whole", type=int, default=5, help="inputs that the first configurations are tried on"
    )
    parser.add_argument(
        "--most", type=int, default=450, help="configurations of a space that is not tried whole"
    )
    parser.add_argument(
        "--near", type=int, default=160, help="configurations that the other inputs are tried on"
    )
    parser.add_argument("--drawn", type=int, default=100, help="configurations beside those of --best-of")
    parser.add_argument(
        "--best-of", type=Path, nargs="+", help="what was swept before, as this script wrote it"
    )
    parser.add_argument("--after", type=Path, help="go on behind what this file of an earlier run has")
    parser.add_argument("--best", type=int, default=300, help="configurations of that")
    parser.add_argument("--pool", type=Path, help="configurations to begin with, one a line")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no other input after so long")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(words)
    options.out.mkdir(parents=True, exist_ok=True)
    with (options.out / f"{options.family}.pickle").open("wb") as file:
        for point, study in swept(options):
            pickle.dump((dict(point), slim(study)), file)
            file.flush()


def read(path: Path) -> list[tuple[Mapping[str, int], Study]]:
    """What ``main`` wrote. Runs what is in the file: for one's own files only."""
    found = []
    with lzma.open(path, "rb") if path.suffix == ".xz" else path.open("rb") as file:
        while True:
            try:
                found.append(pickle.load(file))
            except EOFError:
                return found


if __name__ == "__main__":
    main()
