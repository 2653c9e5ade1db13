"""A family's tuned kernel on several devices, called as ``dispatch.Kernel`` is on one."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from autotune.errors import UsageError
from autotune.family import Family
from autotune.spread import Spread
from autotune.spread_report import Report
from autotune.workload import Inputs, bind

__all__ = ["SpreadKernel"]


class SpreadKernel:
    """``run`` starts the workers, runs once and ends them. ``told`` gets the report of each run. Raises UsageError for
    a family that has no units."""

    def __init__(
        self,
        family: Family,
        devices: Sequence[str],
        policies: Path | None,
        allocation: str = "auto",
        told: Callable[[Spread, Report], None] | None = None,
    ) -> None:
        Spread.check(family, devices)
        self.family, self._devices, self._policies = family, tuple(devices), policies
        self._allocation, self._told = allocation, told

    @property
    def device(self) -> str:
        """What it runs on."""
        return ", ".join(self._devices)

    @property
    def kind(self) -> str:
        """cpu or cuda."""
        return self._devices[0].partition(":")[0]

    def __enter__(self) -> "SpreadKernel":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is held between calls."""

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """See ``dispatch.Kernel``."""
        outputs = self.run(self.bind(*arrays, **named))
        return next(iter(outputs.values())) if len(outputs) == 1 else outputs

    def bind(self, *arrays: Any, **named: Any) -> Inputs:
        """The arguments of a call, checked."""
        given = dict(zip((data.name for data in self.family.inputs), arrays, strict=False))
        options = {name: value for name, value in named.items() if name in self.family.options}
        others = {name: value for name, value in named.items() if name not in options}
        if len(given) < len(arrays) or given.keys() & others.keys():
            raise UsageError(f"{self.family.name}: more arrays than inputs, or one of them twice")
        return bind(self.family, {**given, **others}, options, {})

    def prepare(self, *_arrays: Any, **_named: Any) -> Any:
        """Raises UsageError: what stays on one device cannot be spread."""
        raise UsageError(
            f"this use of {self.family.name} keeps data on one device: name one, not {self.device}"
        )

    def run(self, inputs: Inputs) -> dict[str, NDArray[Any]]:
        """The outputs by name, canonical. Raises AutotuneError."""
        with Spread(self.family, inputs, self._devices, policies=self._policies) as spread:
            spread.calibrate()
            report = spread.run(self._allocation)
            if self._told:
                self._told(spread, report)
            return spread.outputs()
