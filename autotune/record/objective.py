"""What the winner is to be best in: a time, with or without what the layout costs once, or the energy of a call."""

from collections.abc import Mapping, Sequence

from autotune.errors import UnknownName

ENERGY = "energy"
OBJECTIVES = ("kernel", "with-transfer", "with-transform", ENERGY)


def checked_objective(objective: str) -> str:
    """``objective`` where it is one. Raises UnknownName."""
    if objective not in OBJECTIVES:
        raise UnknownName("objective", objective, OBJECTIVES)
    return objective


def time_of(objective: str, kernel_ms: float, transfer_ms: float, transform_ms: float) -> float:
    """What ``objective`` counts, where that is a time, of its parts."""
    with_transfer = kernel_ms if objective == "kernel" else kernel_ms + transfer_ms
    return with_transfer + transform_ms if objective == "with-transform" else with_transfer


def accuracy_class(configuration: Mapping[str, object], names: Sequence[str]) -> str:
    """The accuracy class of ``configuration`` when the policies ``names`` decide how exact a result is: their values
    as in a configuration's id, empty for a family that declares none."""
    return ",".join(f"{name}={configuration[name]}" for name in sorted(names))
