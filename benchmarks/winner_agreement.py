"""Do five sweeps of one space agree on the winner, and how far is it from the best? Kernel Tuner's answer and ours.

    python benchmarks/winner_agreement.py --out benchmarks/results/winner-agreement.csv

The reference is the space timed again, every configuration in turn, 200 rounds of one sample: what is within
``--within`` of the best that any sweep saw. A winner's regret is its median there over the smallest one, minus 1.
Sweeps of one tuner agree when every winner is the same, or in every sweep's tie set (Kernel Tuner has none).
``--device cpu`` leaves Kernel Tuner out, and shows that the script works.
"""

import statistics
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import engine_peers as peers
from harness import bound, inputs_of, variants_of
from result_files import write_rows

from autotune.declaration import Configuration, load_family, load_workload
from autotune.device import Resident, open_backend
from autotune.measure import CUDA, Samples, Timing
from autotune.record import Store


@dataclass(frozen=True)
class Answer:
    """One sweep's winner and what it calls a tie with it, by configuration id."""

    tuner: str
    winner: str
    ties: frozenset[str]
    times_ms: Mapping[str, float]


def ours(asked: peers.Asked, folder: Path) -> Answer:
    run = peers.ours(asked, folder)
    (study,) = Store(folder / "out").studies()
    decision = study.decision
    assert decision, "a sweep that measured nothing"
    ties = frozenset(trial.configuration.id for trial in decision.tie_set)
    return Answer("autotune", decision.winner.configuration.id, ties, run.times_ms)


def kernel_tuner(asked: peers.Asked, backend: str, folder: Path) -> Answer:
    run = peers.kernel_tuner(asked, backend, folder)
    return Answer(f"Kernel Tuner {backend}", run.best, frozenset([run.best]), run.times_ms)


def agree(answers: Sequence[Answer]) -> bool:
    """Whether every winner is the same one, or a member of every sweep's tie set."""
    winners = {answer.winner for answer in answers}
    return len(winners) == 1 or all(winners <= answer.ties for answer in answers)


def contenders(answers: Sequence[Answer], within: float) -> list[str]:
    """What any sweep saw within ``within`` of its best, and every winner and tie."""
    found: dict[str, None] = {}
    for answer in answers:
        best = min(answer.times_ms.values())
        found |= dict.fromkeys(c for c, ms in answer.times_ms.items() if ms <= best * within)
        found |= dict.fromkeys(sorted({answer.winner, *answer.ties}))
    return list(found)


def reference(asked: peers.Asked, ids: Sequence[str], rounds: int) -> dict[str, Samples]:
    """Every configuration timed in turn, forwards and backwards, ``rounds`` times."""
    family = load_family(asked.family)
    workload = load_workload(family, asked.workload)
    inputs = inputs_of(family, asked.workload, asked.data)
    variants = variants_of(family, ids, inputs.options)
    with closing(open_backend(asked.device)) as backend, backend.current():
        resident = Resident(backend, inputs, most=len(variants) + 1)
        executions = {e.variant.configuration: e for e in bound(resident, variants)}
        protocol = replace(CUDA, rounds=rounds, round_samples=1, finalist_seconds=1e9)
        sampling = Timing(backend=backend, protocol=protocol, cold=workload.cold)
        plans = {c: e.run for c, e in executions.items()}
        prepare = {c: e.prepare for c, e in executions.items()}
        timed: dict[Configuration, Samples] = sampling.interleave(plans, prepare, 1.0)
        resident.close()
    return {c.id: samples for c, samples in timed.items()}


def rows(answers: Sequence[Answer], truth: Mapping[str, Samples]) -> list[dict[str, Any]]:
    """A row a sweep. ``regret`` is 0 for the reference's own best."""
    best_ms = min(samples.median_ms for samples in truth.values())
    return [
        {
            "tuner": answer.tuner,
            "winner": answer.winner,
            "ties": len(answer.ties),
            "tuner_says_ms": round(answer.times_ms[answer.winner], 6),
            "reference_ms": round(truth[answer.winner].median_ms, 6),
            "reference_spread": round(truth[answer.winner].spread, 5),
            "regret": round(truth[answer.winner].median_ms / best_ms - 1, 5),
        }
        for answer in answers
    ]


def main(words: Sequence[str] | None = None) -> list[dict[str, Any]]:
    parser = peers.asking(__doc__, "winner-agreement.csv")
    parser.add_argument("--sweeps", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--within", type=float, default=1.5)
    given = parser.parse_args(words)
    full = peers.asked_of(given)
    if given.check:
        peers.check_asked(full)
        return []
    usual = replace(full, samples=7)  # Kernel Tuner's own number
    answers: list[Answer] = []
    with tempfile.TemporaryDirectory(prefix="winner-agreement-") as root:
        for number in range(given.sweeps):  # in turn, so that drift hits all alike
            for name in ("autotune", *peers.peers_of(given)):
                folder = Path(root, f"{name}-{number}")
                folder.mkdir()
                answers.append(
                    ours(full, folder) if name == "autotune" else kernel_tuner(usual, name, folder)
                )
    table = rows(answers, reference(full, contenders(answers, given.within), given.rounds))
    write_rows(given.out, table)
    for tuner in dict.fromkeys(answer.tuner for answer in answers):
        own = [answer for answer in answers if answer.tuner == tuner]
        regrets = [row["regret"] for row in table if row["tuner"] == tuner]
        print(
            f"{tuner}: {len(own)} sweeps, {len({a.winner for a in own})} winners, "
            f"{'one tie set' if agree(own) else 'NO AGREEMENT'}, regret at most {max(regrets):.2%}, "
            f"median {statistics.median(regrets):.2%}"
        )
    return table


if __name__ == "__main__":
    main()
