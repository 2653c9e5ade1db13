"""Which configurations are compared with control: each has one other layout, and what that layout needs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, product

from autotune.declaration import Configuration, Family, Inputs, Policy, PolicyValue

_MOST_OTHERS = 2  # policies that change as well, where a layout is possible with them alone
_MOST_WAYS = 3  # to make one layout possible
_SAME = "it changes the instruction that loads and no sector: only a measurement tells"
_SAME_BYTES = {"global", "readonly"}  # memories that differ in the instruction that loads, and in no sector


@dataclass(frozen=True)
class LayoutChange:
    """The layout ``policy=value`` of ``arrays``, and control with it and as few other changes as make it possible."""

    policy: Policy
    value: PolicyValue
    configuration: Configuration
    arrays: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.policy.name}={self.value}"


@dataclass(frozen=True)
class LayoutChanges:
    """What is ``traced``, and of each other layout why it is not (``left_out``, by ``policy=value``)."""

    traced: tuple[LayoutChange, ...]
    left_out: Mapping[str, str]


def find_changes(family: Family, inputs: Inputs) -> LayoutChanges:
    """Every value of every layout policy, each with as few other changes of control as make it possible."""
    traced, left_out = list[LayoutChange](), dict[str, str]()
    for policy in (policy for policy in family.space.policies if policy.layout):
        for value in (value for value in policy.values if value != policy.default):
            name = f"{policy.name}={value}"
            if policy.layout == "memory" and {value, policy.default} <= _SAME_BYTES:
                left_out[name] = _SAME
                continue
            ways = _find_ways(family, inputs, {policy.name: value})
            traced += [LayoutChange(policy, value, way, find_arrays(family, policy)) for way in ways]
            if not ways:
                left_out[name] = _explain(family, inputs, change(family, {policy.name: value}), policy.name)
    return LayoutChanges(tuple(traced), left_out)


def find_arrays(family: Family, policy: Policy) -> tuple[str, ...]:
    """The arrays whose layout a policy chooses: of an order, all that have the extent."""
    if policy.layout != "order":
        return policy.data
    return tuple(name for name, data in family.data.items() if {*data.shape} & {*policy.data})


def _find_ways(family: Family, inputs: Inputs, wanted: Mapping[str, PolicyValue]) -> list[Configuration]:
    """The possible configurations with ``wanted`` and the fewest other changes, the first ones as they are declared."""
    for count in range(_MOST_OTHERS + 1):
        found = (change(family, {**others, **wanted}) for others in _find_others(family, wanted, count))
        ways = [one for one in found if not any(_explain(family, inputs, one, name) for name in wanted)]
        if ways:
            return ways[:_MOST_WAYS]
    return []


def _find_others(
    family: Family, wanted: Mapping[str, PolicyValue], count: int
) -> Iterator[dict[str, PolicyValue]]:
    """Changes of ``count`` other policies."""
    others = [policy for policy in family.space.policies if policy.name not in wanted]
    for some in combinations(others, count):
        values = [[value for value in policy.values if value != policy.default] for policy in some]
        yield from (dict(zip((p.name for p in some), each, strict=True)) for each in product(*values))


def change(family: Family, values: Mapping[str, PolicyValue]) -> Configuration:
    """Control with other values."""
    return Configuration({**family.space.control, **values})


def _explain(family: Family, inputs: Inputs, configuration: Configuration, name: str) -> str:
    """Why a configuration is not possible, or why the policy ``name`` does nothing in it; empty where neither is so."""
    names = inputs.names(configuration)
    if name in family.space.find_inert(names):
        when = family.space.policy(name).when
        return f"it has an effect only where {when.text if when else name}"
    return family.space.explain_exclusion(names)
