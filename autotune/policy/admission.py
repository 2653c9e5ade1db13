"""Which accuracy classes a caller's bound admits: those whose entries were off by no more than it in their sweeps. How
far a call on other data is off is not known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autotune.declaration import Family, PolicyValue
from autotune.errors import UsageError
from autotune.policy.acceptance import stale
from autotune.policy.selection import Candidate, Policies, candidates
from autotune.record import accuracy_class


@dataclass(frozen=True)
class MaxError:
    """The most that any output was off in sweeps, relative to the reference's largest magnitude
    (``measure.deviation``)."""

    bound: float

    def __post_init__(self) -> None:
        if not self.bound > 0:
            raise UsageError(
                f"max_error={self.bound}: it is a relative error above 0, such as 1e-3; leave it out for the "
                "family's own accuracy"
            )


def admitted(family: Family, policies: Policies | None, most: MaxError) -> list[Mapping[str, PolicyValue]]:
    """The classes as values of the family's accuracy policies: each that ``most`` admits on every workload; the
    family's own where no entry tells an error at all. Raises UsageError where none is left."""
    if not family.accuracy:
        raise UsageError(
            f"family {family.name} names no accuracy policies, so all of its configurations keep to one tolerance: "
            "leave max_error out"
        )
    worst = errors_by_class(family, policies)
    own = {name: family.space.policy(name).default for name in family.accuracy}
    if not worst:
        return [own]
    found = [values for values, error in worst.values() if error <= most.bound]
    if not found:
        told = ", ".join(f"{name} {error:.2g}" for name, (_, error) in sorted(worst.items()))
        raise UsageError(
            f"{family.name}: max_error={most.bound:g} admits nothing that was measured ({told}); ask for one of "
            "these, or sweep more exact configurations"
        )
    return sorted(found, key=lambda values: values != own)


def errors_by_class(
    family: Family, policies: Policies | None
) -> dict[str, tuple[Mapping[str, PolicyValue], float]]:
    """By accuracy class: its values, and the largest error of its entries that are not stale; nothing of a class in
    which one tells none."""
    found: dict[str, tuple[Mapping[str, PolicyValue], float]] = {}
    unknown = set()
    for file in policies.files if policies else ():
        for item in file.entries.values():
            if stale(family, item) or not {*family.accuracy} <= item.configuration.keys():
                continue
            values = {name: item.configuration[name] for name in family.accuracy}
            name = accuracy_class(values, family.accuracy)
            if not item.errors:
                unknown.add(name)
            worst = max(item.errors.values(), default=0.0)
            found[name] = values, max(worst, found[name][1] if name in found else 0.0)
    return {name: told for name, told in found.items() if name not in unknown}


def fastest_admitted(
    family: Family, policies: Policies | None, most: MaxError, sizes: Mapping[str, int], options: Mapping[str, Any],
    kind: str, **more: Any,
) -> list[Candidate]:  # fmt: skip
    """``candidates`` of the admitted classes. The class that is expected to be fastest for this input is first; its
    storage may be unable to hold the data."""
    lists = [
        candidates(family, policies, sizes, options, kind, accuracy=values, **more)
        for values in admitted(family, policies, most)
    ]
    return [candidate for listed in sorted(lists, key=_expected) for candidate in listed]


def _expected(listed: Sequence[Candidate]) -> float:
    """The time of the first candidate that stands: what is expected for this input, else what its entry took; of one
    that is not known, without end."""
    first = next((c for c in listed if not c.refusal and c.configuration is not None), None)
    if first is None:
        return float("inf")
    return first.expected_ms or (first.entry.median_ms if first.entry else float("inf"))
