"""Orders in an export: what makes them is Python and stays behind, so a permutation is an input of the caller's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.compile import Variant
from autotune.declaration import Inputs, Policy
from autotune.device import Ordering
from autotune.errors import FamilyError
from autotune.export.choices import Choices, identifier
from autotune.layout import Data


@dataclass(frozen=True)
class OrderInput:
    """The permutation of an index space that a value of an order policy stands for."""

    policy: Policy
    value: Any
    space: str

    @property
    def name(self) -> str:
        several = f"_{self.space}" if len(self.policy.data) > 1 else ""
        return identifier(f"{self.policy.name}_{self.value}{several}")

    @property
    def choice(self) -> str:
        return f"{self.policy.name}={self.value}"


def order_inputs(choices: Choices) -> list[OrderInput]:
    """Those that some winner is in. Raises FamilyError for one whose name an array has."""
    family = choices.family
    inputs: dict[tuple[str, str, str], OrderInput] = {}
    for configuration in (winner.variant.configuration for winner in choices.winners):
        for policy in family.find_reordering(configuration):
            value = configuration[policy.name]
            inputs |= {(policy.name, str(value), one): OrderInput(policy, value, one) for one in policy.data}
    for order in inputs.values():
        if order.name in family.data:
            raise FamilyError(
                f"family {family.name} cannot be exported: the permutation of {order.choice} would "
                f"be an input {order.name}, and an array has that name; give the array another one"
            )
    return [inputs[key] for key in sorted(inputs)]


def permutations(choices: Choices, inputs: Inputs) -> dict[str, NDArray[np.int64]]:
    """Each order input for ``inputs``. Raises FamilyError for one that is no permutation."""
    ordering, by_space = Ordering(), {}
    for order in order_inputs(choices):
        variant = next(winner.variant for winner in choices.winners if _has(winner.variant, order))
        by_space[order.name] = ordering.orders_of(variant, inputs)[order.space].old.astype(np.int64)
    return by_space


def order_parts(choices: Choices) -> dict[str, Any]:
    """Return what the templates need of orders."""
    given = order_inputs(choices)
    spaces = list(dict.fromkeys(order.space for order in given))
    return {
        "orders": given,
        "spaces": spaces,
        "moves": [moves_of(data, spaces) for data in choices.family.data.values()],
        "taken": [_list_taken(winner.variant, given, spaces) for winner in choices.winners],
    }


def _has(variant: Variant, order: OrderInput) -> bool:
    return bool(variant.configuration[order.policy.name] == order.value)


def _list_taken(variant: Variant, given: Sequence[OrderInput], spaces: Sequence[str]) -> list[str]:
    """By index space what ``Taken`` of order.h says: the place of the order input, and whether it has to be given."""
    taken = {}
    for place, order in enumerate(given):
        if _has(variant, order):
            taken[order.space] = f"{{{place}, {'true' if _is_needed(variant, order.policy) else 'false'}}}"
    return [taken.get(space, "{-1, false}") for space in spaces]


def _is_needed(variant: Variant, policy: Policy) -> bool:
    """Whether the configuration may be right in its order alone: the kernel knows of it, or a constraint does not let
    it be as the arrays are given. Any other order is about time."""
    family = variant.family
    if policy.is_constant or (policy.name, policy.default) in family.orders:
        return True
    as_given = {**variant.configuration, policy.name: policy.default}
    return bool(family.space.explain_exclusion(as_given)) or any(
        policy.name in each.require.names and not each.require.names <= as_given.keys()
        for each in family.space.constraints
    )


def moves_of(data: Data, spaces: Sequence[str]) -> Mapping[str, str]:
    """What ``Moves`` of order.h says of an array."""
    places = {space: i for i, space in enumerate(spaces)}
    fields: Mapping[str, Any] = data.dtype.fields or {}
    links = []
    for member in data.fields:
        if member.link in places:
            kind, offset = fields[member.name][:2] if data.record else (data.dtype, 0)
            is_signed = "true" if kind.kind == "i" else "false"
            links.append(f"{{{places[member.link]}, {offset}, {kind.itemsize}, {is_signed}}}")
    return {
        "name": data.name,
        "spaces": ", ".join(str(places.get(extent, -1)) for extent in data.shape),
        "links": ", ".join(links),
    }
