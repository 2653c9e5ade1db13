"""Inputs that nobody tuned, drawn with a seed: what selection is judged on, and what it is taught with.

    python benchmarks/selection_inputs.py --seed 60 --each 6 --out inputs

Each family has a range: a low and a high for each number that makes an input, and a limit for their product, so that
an input takes milliseconds. ``drawn`` takes numbers uniformly on a logarithmic scale, with numpy's generator;
``spread`` takes the middle and corners of the range and then points that leave no large gap (``prediction.Range``):
what policy files are made from. A workload file is written for each; its name tells its numbers.
"""

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from autotune import policy

_EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@dataclass(frozen=True, kw_only=True)
class Range:
    """The inputs of a family (a name, or an example's folder): ``numbers`` by name from low to high, whose product is
    at most ``most``, ``made`` into the content of a workload file."""

    family: str
    numbers: Mapping[str, tuple[float, float]]
    made: Callable[[Mapping[str, int]], Mapping[str, Any]]
    most: float = math.inf

    @property
    def name(self) -> str:
        return Path(self.family).name

    def holds(self, point: Mapping[str, int]) -> bool:
        return sum(math.log(value) for value in point.values()) <= math.log(self.most)

    def workload(self, point: Mapping[str, int]) -> dict[str, Any]:
        """The content of a workload file."""
        name = "-".join(str(value) for value in point.values())
        return {"schema": 1, "workload": name, "family": self.name, **self.made(point)}


def _allpairs(at: Mapping[str, int]) -> Mapping[str, Any]:
    return {"parameters": {**at, "seed": 1}}


def _coulomb(at: Mapping[str, int]) -> Mapping[str, Any]:
    lattice = [at["column"], at["row"], at["slice"]]
    return {"parameters": {"cloud": at["atom"], "box": 32, "seed": 1, "spacing": 0.5, "lattice": lattice}}


def _cyclospectrum(at: Mapping[str, int]) -> Mapping[str, Any]:
    return {"parameters": {"residues": at["n"], "seed": 1}}


def _ion_placement(at: Mapping[str, int]) -> Mapping[str, Any]:
    side, ions = at["side"], at["ion"]
    made = {"structure": "1a63.pqr", "first": at["atom"], "spacing": 0.75, "lattice": [side, side, side]}
    return {"parameters": {**made, "ions": f"SOD:{ions - ions * 2 // 5},CLA:{ions * 2 // 5}"}}


def _mummergpu(at: Mapping[str, int]) -> Mapping[str, Any]:
    length = at["read_length"]
    made = {"reference": "lambda_NC_001416.1.fa.gz", "bases": at["bases"], "reads": at["reads"]}
    return {
        "parameters": {
            **made, "read_length": [length, length], "min_match_length": at["min_match_length"],
            "substitutions": 0.02, "seed": 1,
        }
    }  # fmt: skip


def _reaction_diffusion(at: Mapping[str, int]) -> Mapping[str, Any]:
    made = {"grid": [at["row"], at["column"]], "D": 10, "k": 20}
    seconds = {"seconds": at["steps"] / 10000, "sample_seconds": at["steps"] / 10000}
    return {
        "cache": "warm", "parameters": {**made, **seconds},
        "options": {"walls": "rectangle", "beam_shape": "gaussian"},
    }  # fmt: skip


def _nbody(at: Mapping[str, int]) -> Mapping[str, Any]:
    return {"parameters": {"bodies": at["body"], "seed": 1}}


def _stencil(at: Mapping[str, int]) -> Mapping[str, Any]:
    shape = [at["plane"], at["row"], at["column"]]
    return {"arrays": {"field": {"random": "normal", "shape": shape, "seed": 1}}}


def _lookup(at: Mapping[str, int]) -> Mapping[str, Any]:
    return {"parameters": {"entries": at["entries"], "queries": at["queries"], "seed": 1}}


def _spmv(at: Mapping[str, int]) -> Mapping[str, Any]:
    return {
        "parameters": {
            "matrix": "power_law",
            "rows": at["rows"],
            "mean": at["mean"],
            "matrix_seed": 2,
            "seed": 1,
        }
    }


RANGES = {
    each.name: each
    for each in (
        Range(family="allpairs", numbers={"instances": (32, 3072), "attributes": (128, 16384)}, made=_allpairs,
              most=8e6),
        Range(
            family="coulomb", made=_coulomb, most=4e9,
            numbers={"atom": (64, 8192), "column": (24, 192), "row": (24, 192), "slice": (8, 128)},
        ),
        Range(family="cyclospectrum", numbers={"n": (24, 4096)}, made=_cyclospectrum),
        Range(family="ion_placement", numbers={"atom": (200, 1500), "side": (24, 128), "ion": (5, 320)},
              made=_ion_placement),
        Range(
            family="mummergpu", made=_mummergpu,
            numbers={"bases": (3000, 48502), "reads": (200, 30000), "read_length": (30, 150),
                     "min_match_length": (12, 24)},
        ),
        Range(family="reaction_diffusion", numbers={"row": (128, 2048), "column": (128, 2048), "steps": (20, 200)},
              made=_reaction_diffusion, most=1.5e8),
        Range(family=str(_EXAMPLES / "nbody"), numbers={"body": (256, 20000)}, made=_nbody),
        Range(family=str(_EXAMPLES / "stencil"), numbers={"plane": (16, 384), "row": (16, 384), "column": (16, 384)},
              made=_stencil, most=1.6e7),
        Range(family=str(_EXAMPLES / "lookup"), numbers={"entries": (512, 4000000), "queries": (2000, 2000000)},
              made=_lookup),
        Range(family=str(_EXAMPLES / "spmv"), numbers={"rows": (1000, 150000), "mean": (3, 60)}, made=_spmv, most=3e6),
    )
}  # fmt: skip


def spread(range_: Range, count: int) -> list[dict[str, int]]:
    """``count`` points: the middle and corners, half of them at the most, and then those of ``Range.draw_points``."""
    found: list[dict[str, int]] = []
    over = policy.prediction.Range(
        {name: (int(low), int(high)) for name, (low, high) in range_.numbers.items()}, range_.holds
    )
    for points, most in ((over.corners(), (count + 1) // 2), (over.draw_points(), count)):
        for point in points:
            if len(found) >= most:
                break
            if point not in found:
                found.append(point)
    return found


def drawn(range_: Range, count: int, seed: int) -> list[dict[str, int]]:
    """``count`` points, each number drawn uniformly on a logarithmic scale."""
    generator = np.random.default_rng([seed, *range_.name.encode()])
    found: list[dict[str, int]] = []
    while len(found) < count:
        shares = generator.random(len(range_.numbers))
        ends = zip(range_.numbers.items(), shares, strict=True)
        point = {name: round(float(low * (high / low) ** share)) for (name, (low, high)), share in ends}
        if range_.holds(point) and point not in found:
            found.append(point)
    return found


def write(range_: Range, points: Sequence[Mapping[str, int]], folder: Path) -> list[Path]:
    """A workload file for each of ``points``."""
    written = []
    for point in points:
        content = range_.workload(point)
        path = folder / range_.name / f"{content['workload']}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
        written.append(path)
    return written


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--family", action="append", choices=RANGES, help="again for more; default: all")
    parser.add_argument("--each", type=int, default=6, help="inputs of a family")
    parser.add_argument("--seed", type=int, help="draw them; without, they are spread evenly")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(words)
    for name in options.family or RANGES:
        range_ = RANGES[name]
        even = options.seed is None
        points = spread(range_, options.each) if even else drawn(range_, options.each, options.seed)
        for path in write(range_, points, options.out):
            print(path)


if __name__ == "__main__":
    main()
