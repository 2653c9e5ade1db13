"""The orders that policies ask for, made once of an input's arrays for many variants, and arrays moved into them."""

import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from numpy.typing import NDArray

from autotune.compile import Variant
from autotune.declaration import DeclaredOrder, Inputs
from autotune.errors import AutotuneError, FamilyError
from autotune.layout import Order, reorder

_MOVED_KEPT = 2  # of each array


class Ordering:
    """For inputs of the same content at every call; ``parent`` has the orders of the same arrays. Times are in
    milliseconds, of the host."""

    def __init__(self, parent: "Ordering | None" = None) -> None:
        self._parent = parent
        self._orders: dict[str, Order] = {}
        self._moved: dict[str, NDArray[Any]] = {}
        self._cost_ms: dict[str, float] = {}  # of making an order, of moving an array

    def orders_of(self, variant: Variant, inputs: Inputs) -> dict[str, Order]:
        """Each index space that an order policy moves: by ``means``, or ``orders`` in family.py; asked once."""
        orders: dict[str, Order] = {}
        makers = variant.family.orders
        for chosen, space, key in _list_ordered_spaces(variant):
            if key not in self._orders:
                begin = time.perf_counter()
                known = self._parent._orders.get(key) if self._parent else None  # noqa: SLF001 - one class
                place = f"order {chosen[1]} of {space}"
                self._orders[key] = known or Order.make(
                    _make_permutation(makers[chosen], inputs, space, place), inputs.sizes[space], place
                )
                self._cost_ms[key] = (time.perf_counter() - begin) * 1e3
            orders[space] = self._orders[key]
        return orders

    def has_orders_of(self, variant: Variant) -> bool:
        """Whether each order that ``orders_of`` gives is made by now."""
        return all(key in self._orders for _, _, key in _list_ordered_spaces(variant))

    def move(self, variant: Variant, inputs: Inputs, name: str, orders: Mapping[str, Order]) -> NDArray[Any]:
        """The array in the order asked for; the latest are kept, as the next layout may differ in something else."""
        data, array = variant.family.data[name], inputs.arrays[name]
        order = order_key(variant, name)
        if not order:
            return array
        key = f"{name} {order}"
        if key not in self._moved:
            others = [other for other in self._moved if other.startswith(f"{name} ")]
            if len(others) >= _MOVED_KEPT:
                del self._moved[others[0]]
            begin = time.perf_counter()
            self._moved[key] = reorder(data, array, orders)
            self._cost_ms[key] = (time.perf_counter() - begin) * 1e3
        return self._moved[key]

    def saved_ms(self, variant: Variant, name: str) -> float:
        """What moving the array took when it was moved for another layout; 0 when it is still to be moved."""
        key = f"{name} {order_key(variant, name)}"
        return self._cost_ms.get(key, 0.0) if key in self._moved else 0.0

    def ordering_ms(self, variant: Variant) -> float:
        """What making the orders took that the variant's arrays are in."""
        return sum(self._cost_ms.get(key, 0.0) for _, _, key in _list_ordered_spaces(variant))

    def clear(self) -> None:
        """Forget the moved arrays."""
        self._moved.clear()


def _make_permutation(
    maker: DeclaredOrder | Callable[..., Any], inputs: Inputs, space: str, place: str
) -> Any:
    """What a declared order, or a family's function, gives. Raises FamilyError with the line where one failed."""
    if isinstance(maker, DeclaredOrder):
        return maker.permutation(inputs.arrays, space, inputs.sizes[space])
    try:
        return maker(inputs.arrays)
    except (AutotuneError, MemoryError):
        raise
    except Exception as problem:
        last = traceback.extract_tb(problem.__traceback__)[-1]
        raise FamilyError(
            f"{place}: {type(problem).__name__}: {problem} ({last.filename}:{last.lineno})"
        ) from problem


def order_key(variant: Variant, name: str) -> str:
    """The values of the order policies that ``Variant.order_policies`` gives for the array; "" where there are none."""
    chosen = variant.configuration
    return " ".join(f"{policy.name}={chosen[policy.name]}" for policy in variant.order_policies(name))


def _list_ordered_spaces(variant: Variant) -> Iterator[tuple[tuple[str, Any], str, str]]:
    """(policy and value, index space, key of that order) of each order that something makes."""
    for policy in variant.order_policies():
        value = variant.configuration[policy.name]
        if (policy.name, value) in variant.family.orders:
            yield from (
                ((policy.name, value), space, f"{policy.name}={value} {space}") for space in policy.data
            )
