"""The host program of one call: lists sent where the policies say so, tables made, work-units computed.

A call is prepared once for an execution: its steps and lists do not change from call to call.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import Execution, Latest

from . import expansion, tiles

__all__ = [
    "Launch",
    "Step",
    "after",
    "before",
    "blocks_of",
    "compute",
    "launches",
    "ordered_pairs",
    "plan",
    "sends",
]


@dataclass(frozen=True)
class Step:
    """One thing a call does: ``clear``, ``send`` or ``launch``."""

    what: str
    do: Callable[[], None]


@dataclass(frozen=True, kw_only=True)
class Launch:
    """One launch of ``integrate``: ``threads`` threads for ``units`` work-units (or listed components) of ``each``
    components, from ``first_unit`` of the list or those of a run. Of tiles, those with number ``first_unit`` and the
    ``share - 1`` behind it of every ``parts``."""

    threads: int
    units: int
    each: int = 1
    first_unit: int = 0
    first_bra: int = 0
    first_ket: int = 0
    kets: int = 0
    parts: int = 1
    share: int = 1


Buffer = NDArray[np.uint8]

_lists = Latest[list[tuple[Buffer, Any]]]()  # the latest only: it may be 2 GB


def plan(execution: Execution) -> None:
    """One call. Asynchronous where the backend is."""
    for step in execution.make_once("steps", lambda: list(_steps(execution))):
        step.do()


def sends(execution: Execution) -> list[Callable[[], None]]:
    """What a call sends, to be timed by itself."""
    return [step.do for step in _steps(execution) if step.what == "send"]


def launches(
    counts: NDArray[Any], granularity: str, block_size: int, split: int = 1, bras: int = 8
) -> list[Launch]:
    """The launches of ``integrate`` for work-units found by their index; ``counts`` are the primitive pairs of the
    pairs as they lie on the device."""
    pairs = len(counts)
    units = pairs * (pairs + 1) // 2
    if granularity == "component":
        return [
            Launch(
                threads=run.units * run.each, units=run.units, each=run.each, first_bra=run.first_bra,
                first_ket=run.first_ket, kets=run.kets,
            )
            for run in expansion.runs_of(counts)
        ]  # fmt: skip
    if granularity == "tile":
        shape = tiles.Shape(block_size, split, bras)
        return [Launch(threads=sum(map(shape.tiles, expansion.runs_of(counts))) * block_size, units=units)]
    if granularity == "block":
        blocks = blocks_of(pairs, 0, block_size // split)
        return [Launch(threads=blocks * block_size, units=units)]
    return [Launch(threads=units, units=units)]


def blocks_of(rows: int, columns: int, width: int) -> int:
    """Blocks for a run with granularity block, each with ``width`` columns of a row; a triangle when ``columns`` is 0
    (autotune/runs.cuh: chunk)."""
    if columns:
        return rows * -(-columns // width)
    groups, rest = divmod(rows, width)
    return width * (groups * (groups + 1) // 2) + rest * (groups + 1)


def _steps(execution: Execution) -> Iterator[Step]:
    names = execution.names
    if names["output"] == "coulomb_exchange":
        yield from (_clear(execution, name) for name in ("coulomb", "exchange"))
    yield from before(execution)
    if names["expansion"] == "index":
        for launch in launches(
            ordered_pairs(execution)["count"],
            *(names[policy] for policy in ("granularity", "block_size", "split", "bras")),
        ):
            yield compute(execution, launch)
    elif names["expansion"] == "work_units":
        yield from _with_units(execution)
    else:
        yield from _with_components(execution)
    yield from after(execution)


def before(execution: Execution) -> Iterator[Step]:
    """What has to be done before work-units are computed, all or some of them."""
    names = execution.names
    if names["output"] == "coulomb_exchange":
        yield from (_clear(execution, name) for name in ("coulomb_sum", "exchange_sum"))
    elif names["granularity"] == "component":
        yield _clear(execution, "integrals")
    if names["pair_table"] == "device":
        yield _launch(execution, "tabulate_pairs")


def compute(execution: Execution, launch: Launch) -> Step:
    """One launch of ``integrate``."""
    return _launch(execution, "integrate", **vars(launch))


def after(execution: Execution) -> Iterator[Step]:
    """What has to be done behind them: what they gave is added to the matrices."""
    if execution.names["output"] == "coulomb_exchange":
        yield _launch(execution, "symmetrise")


def _with_units(execution: Execution) -> Iterator[Step]:
    granularity = execution.names["granularity"]
    for part, each in _listed(execution, "unit_list"):
        yield _upload(execution, "unit_list", part)
        if granularity != "component":
            yield compute(execution, Launch(threads=len(each), units=len(each)))
            continue
        starts = [0, *(np.flatnonzero(np.diff(each)) + 1).tolist(), len(each)]
        for begin, end in itertools.pairwise(starts):
            count = int(each[begin])
            units = end - begin
            yield compute(execution, Launch(threads=units * count, units=units, each=count, first_unit=begin))


def _with_components(execution: Execution) -> Iterator[Step]:
    for part, count in _listed(execution, "component_list"):
        yield _upload(execution, "component_list", part)
        yield compute(execution, Launch(threads=count, units=count))


def _listed(execution: Execution, name: str) -> list[tuple[Buffer, Any]]:
    """The list in parts as they are sent, each with what is in it; the latest list is kept for the next
    configuration that needs it."""
    order = execution.names["order"]
    return _lists.get(execution.placed["shells"], (name, order), lambda: _made_list(execution, name, order))


def _made_list(execution: Execution, name: str, order: str) -> list[tuple[Buffer, Any]]:
    units = expansion.work_units_of(ordered_pairs(execution), order)
    if name == "component_list":
        shells = execution.restore("shells", (execution.names["shell"],))
        parts = expansion.components_of(units, shells, execution.names["listed_component"])
        return [(_buffer(execution, name, part), len(part)) for part in parts]
    at_once = execution.names["listed_unit"]
    parts = (units[begin : begin + at_once] for begin in range(0, len(units), at_once))
    return [(_buffer(execution, name, part), part["components"].copy()) for part in parts]


def ordered_pairs(execution: Execution) -> NDArray[Any]:
    """The pairs as they lie on the device."""
    pairs = execution.restore("pairs", (execution.names["pair"],))
    order = execution.orders.get("pair")
    return pairs if order is None else pairs[order.old]


def _buffer(execution: Execution, name: str, part: NDArray[Any]) -> Buffer:
    """``part`` as the device holds it; its last rows are empty where it does not fill the array."""
    layout = execution.variant.layouts[name]
    room = layout.room(tuple(execution.names[extent] for extent in layout.data.shape))
    buffer = np.zeros(room.nbytes, np.uint8)
    buffer[: part.nbytes] = part.view(np.uint8)
    return buffer


def _clear(execution: Execution, name: str) -> Step:
    return Step("clear", lambda: execution.zero(name))


def _upload(execution: Execution, name: str, content: Buffer) -> Step:
    return Step("send", lambda: execution.refill(name, content))


def _launch(execution: Execution, kernel: str, **scalars: int) -> Step:
    return Step("launch", lambda: execution.launch(kernel, **scalars))
