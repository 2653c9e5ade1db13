"""Inputs and reference of the Lennard-Jones forces."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

POSITION = np.dtype([("x", np.float32), ("y", np.float32), ("z", np.float32), ("kind", np.int32)])
FORCE = np.dtype([(name, np.float32) for name in ("x", "y", "z", "energy")])
EPSILON, SIGMA = np.array([1, 1.5, 0.5]), np.array([1, 0.8, 0.88])  # of pairs, by the sum of their kinds
DENSITY = 1.2
_PART = 20_000  # atoms at a time


def inputs(parameters: Mapping[str, Any], _root: Path) -> dict[str, Any]:
    """A face-centred cubic crystal of ``edge`` x ``edge`` x ``edge`` cells of 4 atoms, shaken by ``seed``, a fifth of
    them of the second kind, with lists of ``slots``; ``shuffled`` atoms are numbered at random."""
    generator = np.random.default_rng(int(parameters.get("seed", 0)))
    edge, slots = int(parameters["edge"]), int(parameters["slots"])
    cell = (4 / DENSITY) ** (1 / 3)
    corners = np.stack(np.meshgrid(*[np.arange(edge)] * 3, indexing="ij"), axis=-1).reshape(-1, 1, 3)
    places = (corners + np.array([[0, 0, 0], [0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]])).reshape(-1, 3)
    places = (places * cell + generator.normal(scale=0.03, size=places.shape)) % (edge * cell)
    if parameters.get("shuffled", False):
        places = generator.permutation(places)
    positions = np.zeros(len(places), POSITION)
    for column, axis in enumerate("xyz"):
        positions[axis] = places[:, column]
    positions["kind"] = generator.random(len(places)) < 0.2
    box = float(np.float32(edge * cell))
    counts, lists = neighbours_of(positions, box, 2.75, slots)
    return {"positions": positions, "counts": counts, "neighbours": lists, "box": box}


def neighbours_of(positions: NDArray[Any], box: float, reach: float, slots: int) -> tuple[Any, Any]:
    """(counts, lists of ``slots``) of the atoms nearer than ``reach``, by scipy's tree; none has itself."""
    places = np.stack([positions[axis].astype(np.float64) for axis in "xyz"], axis=1) % box
    tree = cKDTree(places, boxsize=box)
    counts, lists = np.zeros(len(places), np.uint32), np.zeros((len(places), slots), np.uint32)
    for i, near in enumerate(tree.query_ball_point(places, reach, return_sorted=True)):
        found = [j for j in near if j != i][:slots]
        counts[i] = len(found)
        lists[i, : len(found)] = found
    return counts, lists


def ragged(_parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of few atoms: a box must be as wide as two cutoffs."""
    for edge, slots in ((4, 130), (5, 97)):
        yield {"edge": edge, "slots": slots, "seed": edge}


def forces(positions: NDArray[Any], counts: Any, lists: Any, box: float, cutoff: float) -> NDArray[Any]:
    """Records ``FORCE`` in float64 arithmetic, (atoms,)."""
    places = np.stack([positions[axis].astype(np.float64) for axis in "xyz"], axis=1)
    found = np.empty(len(places), FORCE)
    for first in range(0, len(places), _PART):
        part = slice(first, first + _PART)
        apart = places[part, None, :] - places[lists[part]]
        apart -= box * np.round(apart / box)
        square = (apart**2).sum(axis=2)
        is_near = (np.arange(lists.shape[1]) < counts[part, None]) & (square < cutoff**2)
        kinds = positions["kind"][part, None] + positions["kind"][lists[part]]
        square[~is_near] = 1
        near = (SIGMA[kinds] ** 2 / square) ** 3 * is_near
        pull = 24 * EPSILON[kinds] * near * (2 * near - 1) / square
        for column, axis in enumerate("xyz"):
            found[axis][part] = (pull * apart[:, :, column]).sum(axis=1)
        found["energy"][part] = (2 * EPSILON[kinds] * near * (near - 1)).sum(axis=1)
    return found


def reference(arrays: Mapping[str, NDArray[Any]], options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """By numpy in float64; shares nothing with the kernel."""
    box, cutoff = float(np.float32(options["box"])), float(np.float32(options["cutoff"]))
    return {"force": forces(arrays["positions"], arrays["counts"], arrays["neighbours"], box, cutoff)}
