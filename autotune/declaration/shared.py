"""A family and its inputs as another process of this machine gets them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from autotune.declaration.family import Family, load_family
from autotune.declaration.workload import Inputs
from autotune.errors import FamilyError
from autotune.processes import mapped

__all__ = ["SharedInputs"]


@dataclass(frozen=True, kw_only=True)
class SharedInputs:
    """A family is not sent but loaded from its folder, and arrays are not sent but mapped from files: ``family`` is
    that folder, ``arrays`` one with an ``input-NAME.npy`` for each array. ``space_digest`` says which declaration the
    sender read, ``host_digest`` which Python."""

    family: Path
    space_digest: str
    host_digest: str
    arrays: Path
    sizes: Mapping[str, int]
    options: Mapping[str, str | int]
    scalars: Mapping[str, float]

    @classmethod
    def of(cls, family: Family, inputs: Inputs, arrays: Path, **more: Any) -> Self:
        """Of ``inputs`` whose arrays were written to ``arrays`` (see ``processes.shared_arrays``)."""
        return cls(
            family=family.folder, space_digest=family.space_digest, host_digest=family.host_digest, arrays=arrays,
            sizes=dict(inputs.sizes), options=dict(inputs.options), scalars=dict(inputs.scalars), **more,
        )  # fmt: skip

    def load(self, during: str) -> tuple[Family, Inputs]:
        """In the other process. Raises FamilyError where the family was edited ``during`` what goes on."""
        family = load_family(self.family, check=False)
        for edited, is_same, new in (
            (f"{self.family}/family.yaml", family.space_digest == self.space_digest, "declaration"),
            (
                f"the Python of {self.family}, or what it imports,",
                family.host_digest == self.host_digest,
                "text",
            ),
        ):
            if not is_same:
                raise FamilyError(
                    f"{edited} was edited during {during}, run the same command again for the new {new}"
                )
        arrays = {data.name: mapped(self.arrays / f"input-{data.name}.npy") for data in family.inputs}
        return family, Inputs(arrays=arrays, sizes=self.sizes, options=self.options, scalars=self.scalars)
