"""Searches against recorded exhaustive studies, with no GPU: which share of a space each visits until it is within
2 % of the optimum, compared with Kernel Tuner's strategies in its simulation mode on the same figures.

    python benchmarks/search_replay.py benchmarks/results/allpairs-h200.csv.xz \
        benchmarks/results/mummergpu-h200.csv.xz \
        --kernel-tuner ../kernel-tuner/bin/python --out benchmarks/results/search-replay.csv

Kernel Tuner (pip install kernel-tuner==1.5.0) may have an environment of its own: --kernel-tuner names its python.
The gp sampler needs torch and scipy, the cmaes sampler cmaes; what is missing is reported and left out.

A space is the configurations that the device could run (those excluded beforehand cost no visit). Every method gets
the same members, seeds 0..N-1 and at most --budget of the space; ours begin with the family's presets, and their
visits count. "auto + winners" also begins with the winners of the other workloads in the same file. With --ahead 8
eight configurations are asked for before the first has a time, as a sweep does that compiles ahead. Kernel Tuner's
strategies have their default options. A run ends when it is there, when the budget is used up, or after ten seconds
of computing (a visit that repeats costs Kernel Tuner's strategies no budget, and some go round for ever); what did
not get there counts as infinite. A strategy that uses up --seconds for a study gets fewer seeds: the column seeds
says how many.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

from replay import replay, space
from result_files import write_rows

from autotune.declaration import Configuration
from autotune.errors import UsageError
from autotune.record import Study, read_record
from autotune.search import SAMPLERS

WITHIN, TARGET = 0.02, 0.15
STRATEGIES = (
    "random_sample", "genetic_algorithm", "simulated_annealing", "dual_annealing", "diff_evo", "pso",
    "firefly_algorithm", "greedy_ils", "greedy_mls", "ordered_greedy_mls", "mls", "basinhopping", "hybrid_vndx",
    "adaptive_tabu_greywolf", "bayes_opt",
)  # fmt: skip


_RUN_SECONDS = 10  # visits that repeat cost a strategy no budget, and some then never end


@dataclass(frozen=True)
class Row:
    """Shares of the space, 0..1; ``reached`` counts the runs that were there within ``TARGET``. ``remark`` says
    why there are no figures, or fewer seeds."""

    study: str
    members: int
    good: int
    tool: str
    method: str
    ahead: int
    seeds: int
    median_share: float = math.nan
    worst_share: float = math.nan
    reached: int = 0
    ms_per_visit: float = math.nan
    remark: str = ""


def row(
    study: Study,
    tool: str,
    method: str,
    ahead: int,
    visits: Sequence[float],
    ms_per_visit: float,
    remark: str,
) -> Row:
    times = [t.time_ms for t in study.trials if t.state != "excluded"]
    good = sum(t <= min(times) * (1 + WITHIN) for t in times)
    head = (f"{study.family} {study.workload}", len(times), good, tool, method, ahead, len(visits))
    if not visits:
        return Row(*head, remark=remark)
    shares = [v / len(times) for v in visits]
    reached = sum(s <= TARGET for s in shares)
    return Row(*head, median(shares), max(shares), reached, ms_per_visit, remark)


# -- ours -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    study: Study
    method: str
    ahead: int
    seeds: int
    budget: float
    winners: tuple[Configuration, ...] = ()


def ours(job: Job) -> Row:
    members = sum(t.state != "excluded" for t in job.study.trials)
    computed, visited = 0.0, 0
    visits: list[float] = []
    name = job.method + (" + winners" if job.winners else "")
    try:
        for seed in range(job.seeds):
            run = replay(
                job.study, job.method, seed,
                trials=math.ceil(job.budget * members), within=WITHIN, ahead=job.ahead, seeds=job.winners,
            )  # fmt: skip
            visits.append(run.visits_until(WITHIN) or math.inf)
            computed, visited = computed + run.seconds, visited + len(run.visited)
    except UsageError as problem:  # a sampler whose package is not there
        return row(job.study, "autotune", name, job.ahead, (), 0.0, str(problem))
    took = computed / max(1, visited) * 1e3
    return row(job.study, "autotune", name, job.ahead, visits, took, "")


def jobs(studies: Sequence[Study], methods: Sequence[str], seeds: int, budget: float) -> Iterator[Job]:
    for study in studies:
        for method in methods:
            yield Job(study, method, 1, seeds, budget)
        if "auto" in methods:
            yield Job(study, "auto", 8, seeds, budget)
            others = tuple(
                s.decision.winner.configuration
                for s in studies
                if s.family == study.family and s.workload != study.workload and s.decision
            )
            if others:
                yield Job(study, "auto", 1, seeds, budget, others)


# -- Kernel Tuner's, in its own python --------------------------------------------------------------------

_SIMULATION = Path(__file__).with_name("search_replay_kernel_tuner.py")


def kernel_tuner(python: str, study: Study, strategy: str, seeds: int, budget: float, seconds: float) -> Row:
    """One strategy on one study, in a process that is ended when it takes four times the ``seconds``."""
    recorded = {t.configuration: t for t in study.trials if t.state != "excluded"}
    parameters = {p.name: list(p.values) for p in space(study).policies}
    optimum = min(t.time_ms for t in recorded.values())
    lines = {
        ",".join(str(c[name]) for name in parameters): {
            **{name: c[name] for name in parameters},
            "time": t.time_ms if t.measurement else "RuntimeFailedConfig",
        }
        for c, t in recorded.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache.json"
        header = {
            "device_name": "recorded",
            "kernel_name": "recorded",
            "problem_size": 1,
            "tune_params_keys": list(parameters),
            "tune_params": parameters,
            "objective": "time",
        }
        cache.write_text(json.dumps({**header, "cache": lines}))
        task = {
            "keys": [[c[name] for name in parameters] for c in recorded],
            "tune_params": parameters,
            "strategy": strategy,
            "seeds": seeds,
            "seconds": seconds,
            "run_seconds": _RUN_SECONDS,
            "budget": math.ceil(budget * len(recorded)),
            "bound": optimum * (1 + WITHIN),
            "cache": str(cache),
        }
        output, remark = _simulate(python, task, folder)
    visits: list[float] = []
    errors, stopped = [], 0
    computed, different = 0.0, 0
    for end, visited, seconds_of_it in map(json.loads, output.splitlines()):
        if end not in ("found", "budget", "stopped"):
            errors.append(end)
            continue
        visits.append(visited if end == "found" else math.inf)
        stopped += end == "stopped"
        computed, different = computed + seconds_of_it, different + visited
    remarks = [remark] if remark else []
    if errors:
        remarks.append(f"{len(errors)} runs raised {errors[0][:120]}")
    if stopped:
        remarks.append(f"{stopped} runs stopped after {_RUN_SECONDS} s of computing")
    if len(visits) + len(errors) < seeds and not remark:
        remarks.append(f"{seconds:.0f} s were over")
    return row(
        study, "kernel_tuner", strategy, 1, visits, computed / max(1, different) * 1e3, "; ".join(remarks)
    )


def _simulate(python: str, task: dict[str, object], folder: str) -> tuple[str, str]:
    """What the simulation printed, and why it ended early."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", "PYTHONPATH": ""}
    process = subprocess.Popen(
        [python, str(_SIMULATION)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, cwd=folder, env=environment,
    )  # fmt: skip
    limit = 4 * float(str(task["seconds"]))
    try:
        output, trouble = process.communicate(json.dumps(task), timeout=limit)
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
        return output, f"ended after {limit:.0f} s"
    return output, trouble.strip().splitlines()[-1] if process.returncode and trouble.strip() else ""


def kernel_tuner_version(python: str) -> str:
    """Empty when that python has no Kernel Tuner."""
    task: dict[str, object] = {"keys": [], "tune_params": {}, "strategy": "version", "seconds": 60}
    try:
        return _simulate(python, task, "/")[0].strip()
    except OSError:
        return ""


# -- the table --------------------------------------------------------------------------------------------


def studies_of(paths: Sequence[Path]) -> list[Study]:
    """Those of each file; one in the T4 format is named by its folder and file, as the benchmark hub keeps them."""
    found = []
    for path in paths:
        for study in read_record(str(path)):
            name = path.name.split(".")[0].removesuffix("_T4")
            is_named = study.family != study.workload  # T4 has neither
            named = study if is_named else replace(study, family=path.parent.name, workload=name)
            found.append(named)
    return found


def share(value: float) -> str:
    return "-" if math.isnan(value) else "never" if math.isinf(value) else f"{100 * value:.1f} %"


def show(rows: Sequence[Row], study: str) -> None:
    mine = [r for r in rows if r.study == study]
    print(f"\n{study}: {mine[0].members} configurations, {mine[0].good} within {WITHIN:.0%} of the best")
    print(f"{'':40} {'median':>8} {'worst':>8} {'in 15 %':>8}  ms a visit")
    for r in sorted(mine, key=lambda r: (r.median_share if r.seeds else math.inf, r.worst_share)):
        name = f"{r.tool} {r.method}" + (f", {r.ahead} ahead" if r.ahead > 1 else "")
        took = "" if math.isnan(r.ms_per_visit) else f"{r.ms_per_visit:.1f}"
        there = f"{r.reached}/{r.seeds}"
        print(
            f"{name:40} {share(r.median_share):>8} {share(r.worst_share):>8} {there:>8}  {took:6} {r.remark}"
        )


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", nargs="+", type=Path, help="results.csv of whole sweeps, or T4 files")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--budget", type=float, default=0.5, help="share of the space a run may visit")
    parser.add_argument("--methods", default=",".join(SAMPLERS), help="ours; '' for none")
    parser.add_argument("--strategies", default=",".join(STRATEGIES), help="Kernel Tuner's; '' for none")
    parser.add_argument("--kernel-tuner", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--seconds", type=float, default=60, help="a strategy of Kernel Tuner on a study")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(words)
    studies = studies_of(options.results)
    methods = [name for name in options.methods.split(",") if name]
    work = list(jobs(studies, methods, options.seeds, options.budget))
    strategies = [name for name in options.strategies.split(",") if name]
    version = kernel_tuner_version(options.kernel_tuner) if strategies else ""
    if strategies and not version:
        print(
            f"no kernel_tuner in {options.kernel_tuner}; pip install kernel-tuner==1.5.0, or --kernel-tuner"
        )
        strategies = []
    elif version:
        print(f"Kernel Tuner {version}")
    with ProcessPoolExecutor(options.processes) as pool:
        theirs = [
            pool.submit(
                kernel_tuner, options.kernel_tuner, study, strategy, options.seeds, options.budget,
                options.seconds,
            )
            for study in studies
            for strategy in strategies
        ]  # fmt: skip
        rows = [*pool.map(ours, work), *(future.result() for future in theirs)]
    for study in dict.fromkeys(r.study for r in rows):
        show(rows, study)
    if options.out:
        write_rows(options.out, [asdict(r) for r in rows])
        print(f"\nwritten to {options.out}")


if __name__ == "__main__":
    main()
