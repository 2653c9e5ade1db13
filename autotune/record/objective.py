"""What is to be small: the kernels' time, or with what a layout costs once."""

from collections.abc import Mapping, Sequence

from autotune.errors import UnknownName

OBJECTIVES = ("kernel", "with-transfer", "with-transform")


def objective_ms(objective: str, kernel_ms: float, transfer_ms: float, transform_ms: float) -> float:
    """As ``cost_ms``, of its parts. Raises UnknownName."""
    if objective not in OBJECTIVES:
        raise UnknownName("objective", objective, OBJECTIVES)
    with_transfer = kernel_ms if objective == "kernel" else kernel_ms + transfer_ms
    return with_transfer + transform_ms if objective == "with-transform" else with_transfer


def accuracy_class(configuration: Mapping[str, object], names: Sequence[str]) -> str:
    """The accuracy class of ``configuration`` when the policies ``names`` decide how exact a result is: their values
    as in a configuration's id, empty for a family that declares none."""
    return ",".join(f"{name}={configuration[name]}" for name in sorted(names))
