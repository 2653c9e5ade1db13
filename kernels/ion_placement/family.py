"""Inputs, launches and reference of the ion placement family."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from autotune.family import Application, Execution, WorkloadError, family_module, on_demand

from . import exact
from .solute import excluded_near
from .species import charges_of, parse_ions

__all__ = ["application", "inputs", "plan", "ragged", "reference"]

_OWN = {"ions", "from_solute", "between"}


def inputs(parameters: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """A structure and a lattice as the coulomb family takes them, ``ions: NAME:COUNT,...``, and in angstrom how far
    they stay ``from_solute`` and ``between`` each other (5 and 5). The potential is the float64 reference's."""
    given = {name: value for name, value in parameters.items() if name not in _OWN}
    made = family_module("coulomb", "inputs").inputs_of(given, root)
    if "ions" not in parameters:
        raise WorkloadError("parameters have no ions: give NAME:COUNT, joined by commas")
    counts = made["nx"], made["ny"], made["nz"]
    potential = family_module("coulomb", "exact").potential(made["atoms"], counts, made["spacing"])
    from_solute = float(parameters.get("from_solute", 5.0))
    return {
        "potential": excluded_near(potential, made["atoms"], made["spacing"], from_solute),
        "charges": charges_of(str(parameters["ions"])),
        "spacing": made["spacing"],
        "exclusion": float(parameters.get("between", 5.0)),
    }


def ragged(parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of small maps with the same ions, at most seven of them: a map without any place, sizes that end
    behind a tile."""
    named = {name: parameters[name] for name in ("spacing", "from_solute", "between") if name in parameters}
    names = parse_ions(str(parameters.get("ions", "SOD:4,CLA:3")))
    chosen = names[:: max(1, len(names) // 7)][:7]
    for atoms, lattice in ((1, [1, 1, 1]), (3, [65, 7, 5]), (5, [17, 33, 31])):
        ions = ",".join(f"{name}:1" for name in chosen)
        yield {**named, "cloud": atoms, "box": 16, "seed": atoms, "lattice": lattice, "ions": ions}


# ---- launches


def plan(execution: Execution) -> None:
    """Three ways to the same places; see ion_placement.cu."""
    ions = int(execution.names["ion"])
    update = execution.names["update"]
    if update == "lazy":
        _place_lazily(execution, ions)
        return
    _launcher(execution, "copy")()
    search = _launcher(execution, "search")
    search(first_ion=0)
    if update == "fused":
        advance = _launcher(execution, "advance")
        for ion in range(1, ions):
            advance(first_ion=ion)
    else:
        add = _launcher(execution, "update")
        for ion in range(1, ions):
            add(first_ion=ion - 1)
            search(first_ion=ion)
    _launcher(execution, "finish")(first_ion=ions - 1)


def _place_lazily(execution: Execution, ions: int) -> None:
    """A step for each ion and one more, which is where the last ion's place is found."""
    launch = execution.names["launch"]
    execution.zero("updates")
    if launch == "persistent":
        execution.zero("barrier")
        execution.launch_cooperative("place_all")
        return
    place = _launcher(execution, "place")

    def steps() -> None:
        for ion in range(ions + 1):
            place(first_ion=ion)

    if launch == "graph":
        execution.graph("ions", steps)
    else:
        steps()


def _launcher(execution: Execution, kernel: str) -> Callable[..., None]:
    """Launches of a kernel that differ in scalars only. An ion takes a few microseconds: what is the same for all ions
    is made once."""
    names = execution.variant.family.kernels[kernel].arguments
    geometry, arguments = execution.bind(kernel)

    def launch(**changed: int) -> None:
        for name, value in changed.items():
            arguments[names.index(name)] = value.to_bytes(4, "little")
        execution.backend.launch(execution.module, kernel, geometry, arguments)

    return launch


# ---- reference and application

reference = exact.reference


@on_demand
def application() -> Application:
    """Ions around a structure."""
    from .app.run import run  # noqa: PLC0415  # a sweep needs none of it

    return run
