"""Inputs, reference and plan of the reaction-diffusion family."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import Application, Execution, WorkloadError, find_data, on_demand

from .experiment import Experiment
from .outline import EAST, NORTH, SOUTH, WEST, read_outline
from .schedule import Block, Schedule, schedule

Floats = NDArray[np.float64]

_BLOCK = 1 << 16  # points of the reference's field that a thread advances at a time


def inputs(parameters: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """``grid: N`` or ``grid: [rows, columns]``, or ``outline: FILE`` (an image of a cell), with what an `Experiment`
    takes; its ``precision`` goes with the option of that name. Warns of times that are no whole number of steps. Raises
    WorkloadError."""
    given = dict(parameters)
    grid, outline = given.pop("grid", None), given.pop("outline", None)
    if (grid is None) == (outline is None):
        raise WorkloadError("give either grid: N (or [rows, columns]) or outline: FILE")
    inside = whole_lattice(grid) if outline is None else read_outline(find_data(str(outline), root))
    experiment = Experiment.of(given)
    for sentence in experiment.rounded:
        warnings.warn(sentence, stacklevel=2)
    return experiment.inputs(inside)


def ragged(parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of a few steps of the same experiment on small lattices, from a random concentration: one point, one
    row, sizes around those of blocks and time blocks."""
    dt = float(parameters.get("dt", Experiment.dt))
    kept = {name: value for name, value in parameters.items() if name not in ("outline", "detector_radius")}
    for grid, steps, interval in (([1, 1], 1, 1), ([1, 257], 7, 3), ([67, 129], 41, 13), ([131, 31], 23, 23)):
        yield {**kept, "grid": grid, "seconds": steps * dt, "sample_seconds": interval * dt, "seed": steps}


def whole_lattice(grid: Any) -> NDArray[np.bool_]:
    """All of a lattice of N x N or [rows, columns] points. Raises WorkloadError."""
    sizes = grid if isinstance(grid, Sequence) and not isinstance(grid, str) else (grid, grid)
    if len(sizes) != 2 or not all(type(size) is int and 1 <= size <= 65536 for size in sizes):
        raise WorkloadError(f"grid is {grid!r}; N or [rows, columns], whole numbers of 1..65536, is needed")
    return np.ones(tuple(sizes), np.bool_)


def reference(arrays: Mapping[str, NDArray[Any]], options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Explicit Euler in float64, the fluxes through the open faces of each point summed, rows in blocks that threads
    share. What did not change in a step, and whose neighbours did not, is left out of the next one: it cannot change
    there. Shares nothing with the kernels: no factor of a point's own value, no order of neighbours."""
    c = arrays["initial"].astype(np.float64)
    after = np.empty_like(c)
    diffusion, bleaching = float(options["diffusion"]), float(options["bleaching"])
    steps, interval = int(options["steps"]), int(options["interval"])
    beam = _beam(arrays, str(options["beam_shape"]))
    sides = arrays["open_sides"] if options["walls"] == "outline" else None
    south, east = _faces(sides)
    seen = arrays["detector"] != 0
    fluorescence = np.zeros(steps // interval + 1)
    fluorescence[0] = c[seen].sum()
    rows, columns = c.shape
    each = max(1, _BLOCK // columns)
    changed = np.full(-(-rows // each), True)  # which blocks the latest step changed

    def advance(block: int) -> bool:
        top, bottom = block * each, min((block + 1) * each, rows)
        above, below = max(top - 1, 0), min(bottom + 1, rows)
        down, right = np.diff(c[above:below], axis=0), np.diff(c[top:bottom], axis=1)
        if south is not None and east is not None:
            down *= south[above : below - 1]
            right *= east[top:bottom]
        change = beam[top:bottom] * c[top:bottom]
        change *= -bleaching
        down *= diffusion
        right *= diffusion
        change[: below - 1 - top] += down[top - above :]
        change[above + 1 - top :] -= down[: bottom - 1 - above]
        change[:, :-1] += right
        change[:, 1:] -= right
        np.add(c[top:bottom], change, out=after[top:bottom])
        return bool(change.any())

    with ThreadPoolExecutor() as pool:
        for step in range(1, steps + 1):
            due = changed.copy()
            due[1:] |= changed[:-1]
            due[:-1] |= changed[1:]
            changed[due] = list(pool.map(advance, np.flatnonzero(due)))
            c, after = after, c
            if step % interval == 0:
                fluorescence[step // interval] = c[seen].sum()
    return {"concentration": c, "fluorescence": fluorescence}


def _beam(arrays: Mapping[str, NDArray[Any]], shape: str) -> Floats:
    if shape == "any":
        return arrays["beam"].astype(np.float64)
    return np.outer(arrays["beam_rows"].astype(np.float64), arrays["beam_columns"].astype(np.float64))


def _faces(sides: NDArray[Any] | None) -> tuple[NDArray[np.bool_] | None, NDArray[np.bool_] | None]:
    """The open faces between rows and between columns; None when all are. Raises WorkloadError when two neighbours
    disagree about the face between them."""
    if sides is None:
        return None, None
    south, east = (sides[:-1] & SOUTH) != 0, (sides[:, :-1] & EAST) != 0
    if ((sides[1:] & NORTH != 0) != south).any() or ((sides[:, 1:] & WEST != 0) != east).any():
        raise WorkloadError(
            "open_sides: a face is open from one side and closed from the other; make the array with "
            "outline.open_sides"
        )
    if (
        (sides[0] & NORTH).any()
        or (sides[-1] & SOUTH).any()
        or (sides[:, 0] & WEST).any()
        or (sides[:, -1] & EAST).any()
    ):
        raise WorkloadError("open_sides: a side that leads out of the lattice is open; it must be closed")
    return south, east


def plan(execution: Execution) -> None:
    """Survey, prepare, all time blocks, finish: as launches, as graphs of launches, or in one cooperative launch."""
    names = execution.names
    steps, interval, time_block = (int(names[name]) for name in ("steps", "interval", "time_block"))
    made = _schedule(steps, interval, time_block)
    staying = names["launch"] in ("persistent", "neighbours")
    for scratch in ("peak", "sums", "watched", *(("barrier", "shown") if staying else ("cycle",))):
        execution.zero(scratch)
    execution.launch("survey")
    execution.launch("prepare")
    if staying:
        execution.launch_cooperative("advance", step_count=steps)
    else:
        _advance(execution, made, in_graphs=names["launch"] == "graph")
    execution.launch("finish", source=made.source)


_schedule = lru_cache(maxsize=64)(schedule)


def _advance(execution: Execution, made: Schedule, *, in_graphs: bool) -> None:
    def launches(blocks: tuple[Block, ...]) -> Callable[[], None]:
        def run() -> None:
            for block in blocks:
                execution.launch(
                    "advance", step_count=block.steps, sample_index=block.sample, source=block.source
                )
            execution.launch("end_cycle", sample_index=max((block.sample for block in blocks), default=0))

        return run

    for name, blocks, repeats in (("cycle", made.cycle, made.repeats), ("rest", made.rest, 1)):
        for _ in range(repeats if blocks else 0):
            if in_graphs:
                execution.graph(name, launches(blocks))
            else:
                launches(blocks)()


@on_demand
def application() -> Application:
    """A photobleaching experiment."""
    from .app.run import run  # noqa: PLC0415  # a sweep needs none of it

    return run
