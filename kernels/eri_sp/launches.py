"""Orders of the pairs, and the launches of one call: a run of quartets of shells for each class."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import Execution, family_module

__all__ = ["CLASSES", "Launch", "Teams", "launches", "orders", "plan"]

CLASSES = {(0, 0): "ssss", (1, 0): "spss", (1, 1): "spsp", (2, 0): "ppss", (2, 1): "ppsp", (2, 2): "pppp"}

Arrays = dict[str, NDArray[Any]]
Positions = NDArray[np.int64]


def _by_class(arrays: Arrays) -> Positions:
    return np.argsort(arrays["pairs"]["momenta"], kind="stable")


def _by_subclass(arrays: Arrays) -> Positions:
    """By class, then by primitive pairs, the fewest first."""
    return np.lexsort((arrays["pairs"]["count"], arrays["pairs"]["momenta"]))


def _by_class_and(order: str) -> Callable[[Arrays], Positions]:
    """By class, and in each in an order of family eri."""

    def positions(arrays: Arrays) -> Positions:
        placed = family_module("eri", "expansion").orders[order](arrays)
        return np.asarray(placed[np.argsort(arrays["pairs"]["momenta"][placed], kind="stable")])

    return positions


orders: dict[str, Callable[[Arrays], Positions]] = {
    "class": _by_class,
    "subclass": _by_subclass,
    **{name: _by_class_and(name) for name in ("place", "schwarz", "decade")},
}


@dataclass(frozen=True, kw_only=True)
class Launch:
    """One launch of ``integrate_NAME``: ``threads`` threads for ``units`` quartets, ``columns`` of them to a row, or a
    triangle when that is 0 (autotune/runs.cuh)."""

    name: str
    threads: int
    units: int
    first_row: int = 0
    first_column: int = 0
    columns: int = 0


def plan(execution: Execution) -> None:
    """One call. Asynchronous where the backend is."""
    for step in execution.make_once("steps", lambda: list(_steps(execution))):
        step()


@dataclass(frozen=True)
class Teams:
    """Threads that have a quartet together, as quartet.cuh has them: ``parts`` of (pp|pp) and the like, and how many
    share the bra's primitive pairs."""

    parts: int
    split: int
    split_heavy: int

    def of_a_warp(self, bra: int, ket: int) -> int:
        """Quartets of that class."""
        split = self.split_heavy if bra + ket > 2 else self.split
        return 32 // (split * (self.parts if ket == 2 else 1))


def launches(momenta: NDArray[Any], granularity: str, block_size: int, teams: Teams) -> list[Launch]:
    """Those of a kernel for each class; ``momenta`` are those of the pairs as they lie on the device, ascending. The
    heaviest class is first."""
    blocks_of = family_module("eri", "launches").blocks_of
    starts = np.searchsorted(momenta, (0, 1, 2, 3)).tolist()
    made = []
    for (bra, ket), name in reversed(CLASSES.items()):
        bras, kets = starts[bra + 1] - starts[bra], starts[ket + 1] - starts[ket]
        if not bras or not kets:
            continue
        width = block_size // 32 * teams.of_a_warp(bra, ket)
        units = bras * (bras + 1) // 2 if bra == ket else bras * kets
        columns = 0 if bra == ket else bras
        blocks = blocks_of(kets, columns, width) if granularity == "block" else -(-units // width)
        made.append(
            Launch(
                name=name, threads=blocks * block_size, units=units, first_row=starts[ket],
                first_column=starts[bra], columns=columns,
            )
        )  # fmt: skip
    return made


def _steps(execution: Execution) -> Iterator[Callable[[], None]]:
    names = execution.names
    digested = names["output"] == "coulomb_exchange"
    if digested:
        for name in ("coulomb_sum", "exchange_sum"):
            yield _clear(execution, name)
    elif names["screening"] == "schwarz":
        yield _clear(execution, "integrals")
    yield _launch(execution, "tabulate")
    for launch in _all(execution):
        scalars = dict(vars(launch))
        yield _launch(execution, f"integrate_{scalars.pop('name')}", **scalars)
    if digested:
        yield _launch(execution, "symmetrise")


def _all(execution: Execution) -> list[Launch]:
    names = execution.names
    if names["classes"] == "together":
        units = names["pair"] * (names["pair"] + 1) // 2
        return [Launch(name="any", threads=units, units=units)]
    momenta = execution.restore("pairs", (names["pair"],))["momenta"]
    order = execution.orders.get("pair")
    sorted_ = momenta if order is None else momenta[order.old]
    teams = Teams(names["parts"], names["split"], names["split_heavy"])
    return launches(sorted_, names["granularity"], names["block_size"], teams)


def _clear(execution: Execution, name: str) -> Callable[[], None]:
    return lambda: execution.zero(name)


def _launch(execution: Execution, kernel: str, **scalars: int) -> Callable[[], None]:
    return lambda: execution.launch(kernel, **scalars)
