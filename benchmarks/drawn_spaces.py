"""Spaces of millions that are searched without a list: how many draws are members, what one costs, and a visit of auto.

    python benchmarks/hub_t1.py CHECKOUT --corrected hub-t1
    python benchmarks/drawn_spaces.py hub-t1/*.json --out benchmarks/results/drawn-spaces.csv

CHECKOUT is a checkout of https://github.com/AutoTuningAssociation/benchmark_hub. The space of Kernel Tuner's example
convolution (examples/cuda/convolution.py, 3,145,728 combinations) comes without a file. For the search a made-up time
stands for the measured one, 1 ms where each policy has its middle value and a tenth more for each that differs: what is
shown is what the search costs and how near it comes, not how good it is.
"""

import argparse
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from result_files import write_rows

from autotune.declaration import (
    Configuration,
    Constraint,
    Expression,
    Policy,
    Space,
    load_family,
)
from autotune.search import Search, Strategy
from autotune.search.completions import Completions

_EXAMPLE: dict[str, Sequence[int]] = {
    "filter_height": range(3, 35, 2), "filter_width": range(3, 35, 2), "block_size_x": range(16, 129, 16),
    "block_size_y": (1, 2, 4, 8, 16, 32), "tile_size_x": range(1, 9), "tile_size_y": range(1, 9),
    "use_padding": (0, 1), "read_only": (0, 1),
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """The shares of draws that are members, 0..1: with random values, and with completions. Microseconds for each
    member that is drawn, with and without them. ``visit_ms`` is what auto computes a visit of ``trials``, ``found`` the
    made-up time that it found (1 is the least there is), ``by_chance`` what as many random draws found."""

    space: str
    combinations: int
    plain_share: float
    share: float
    plain_us: float
    us: float
    tables_ms: float
    trials: int
    visit_ms: float
    found: float
    by_chance: float


def example() -> Space:
    policies = tuple(Policy(name, tuple(values), values[0]) for name, values in _EXAMPLE.items())
    padding = Expression("use_padding == 0 or block_size_x % 32 != 0")
    return Space(policies, (Constraint(padding, "padding helps where banks meet"),))


def made_up(space: Space, configuration: Configuration) -> float:
    middle = {p.name: p.values[len(p.values) // 2] for p in space.policies}
    return math.prod(1.1 for name, value in configuration.items() if value != middle[name])


def plain_draws(space: Space, count: int, rng: np.random.Generator) -> int:
    numbers = rng.integers(0, [len(p.values) for p in space.policies], (count, len(space.policies)))
    drawn = [
        {p.name: p.values[i] for p, i in zip(space.policies, row, strict=True)} for row in numbers.tolist()
    ]
    return sum(not space.explain_exclusion(one) for one in drawn)


def searched(space: Space, sampler: str, trials: int) -> tuple[float, float]:
    """(the least made-up time, milliseconds of computing a visit)."""
    search, least, began = (
        Search(space, None, Strategy(sampler=sampler, trials=trials)),
        math.inf,
        time.process_time(),
    )
    while (configuration := search.ask()) is not None:
        least = min(least, made_up(space, configuration))
        search.tell(configuration, made_up(space, configuration))
    return least, (time.process_time() - began) * 1e3 / trials


def row(name: str, space: Space, draws: int, trials: int) -> Row:
    rng = np.random.default_rng(0)
    began = time.process_time()
    completions = Completions(space)
    list(completions.draw(1, rng))
    tables = time.process_time()
    narrowed = len(list(completions.draw(draws, rng)))
    drawn = time.process_time()
    plain = plain_draws(space, draws, rng)
    ended = time.process_time()
    found, visit_ms = searched(space, "auto", trials)
    return Row(
        name, math.prod(len(p.values) for p in space.policies), plain / draws, narrowed / draws,
        (ended - drawn) * 1e6 / max(1, plain), (drawn - tables) * 1e6 / max(1, narrowed), (tables - began) * 1e3,
        trials, visit_ms, found, searched(space, "random", trials)[0],
    )  # fmt: skip


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path, help="T1 files")
    parser.add_argument("--draws", type=int, default=5000)
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(words)
    spaces = {path.stem: load_family(path).space for path in options.files}
    rows = [
        row(name, space, options.draws, options.trials)
        for name, space in {**spaces, "example convolution": example()}.items()
    ]
    for one in rows:
        print(
            "  ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in asdict(one).items())
        )
    if options.out:
        write_rows(options.out, [asdict(one) for one in rows])


if __name__ == "__main__":
    main()
