"""Orders by declaration: what ``means`` says of an order policy's values, read and held against the data."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.errors import FamilyError, UnknownName
from autotune.layout import Data, Field, Links, named_orders

# The keys of each order; those that end in ! are required.
ORDERS: Mapping[str, tuple[str, ...]] = {
    "random": ("seed",),
    "sorted": ("key!", "descending"),
    "b_tree": ("width!", "key"),
    "breadth_first": ("root", "links"),
    "breadth_first_blocks": ("levels!", "block!", "root", "links"),
    "depth_first": ("root", "links"),
    "van_emde_boas": ("root", "links", "together"),
    "hot_first": ("counts!", "root", "links"),
    "reverse_cuthill_mckee": ("links",),
}
# What each of these has to be: its type, and for a number the least; and the same in words.
_KINDS: Mapping[str, tuple[type, int, str]] = {
    "seed": (int, 0, "a whole number of at least 0"),
    "width": (int, 1, "a whole number of at least 1, the elements of a node"),
    "levels": (int, 0, "a whole number of at least 0, the levels above the blocks"),
    "block": (int, 1, "a whole number of at least 1, the levels of a block"),
    "descending": (bool, 0, "true or false"),
    "together": (bool, 0, "true or false"),
    "key": (str, 0, "an input, or INPUT.FIELD, with a number for each element"),
    "counts": (str, 0, "an input, or INPUT.FIELD, with a number for each element, or a trace: links to them"),
    "links": (list, 0, "a list of inputs, or of INPUT.FIELD"),
}


def _is_whole(value: object, least: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


@dataclass(frozen=True)
class DeclaredOrder:
    """One of ``ORDERS`` with what it takes. ``data`` are the family's inputs by name."""

    order: str
    takes: Mapping[str, Any]
    data: Mapping[str, Data] = field(repr=False)

    def permutation(self, arrays: Mapping[str, NDArray[Any]], space: str, extent: int) -> NDArray[np.int64]:
        """``permutation[new] = old`` of the index space, from the inputs. Raises FamilyError for a root that is not in
        it."""
        takes = self.takes
        if self.order == "random":
            return named_orders.random_order(extent, takes.get("seed", 0))
        if self.order in ("sorted", "b_tree"):
            is_descending = takes.get("descending", False)
            places = named_orders.b_tree(extent, takes["width"]) if "width" in takes else np.arange(extent)
            if "key" not in takes:
                return places
            return named_orders.sort_by(self._numbers(takes["key"], arrays), is_descending)[places]
        more: dict[str, Any] = {key: takes[key] for key in ("together", "levels", "block") if key in takes}
        if "counts" in takes:
            more["counts"] = self._counts(takes["counts"], arrays, space, extent)
            if not list(_find_links(self.data, space, takes)):
                return named_orders.sort_by(more["counts"], descending=True)
        links = self._links(arrays, space, extent)
        if self.order == "reverse_cuthill_mckee":
            return named_orders.reverse_cuthill_mckee(links)
        walk: Callable[..., NDArray[np.int64]] = getattr(named_orders, self.order)
        return walk(links, roots=self._roots(arrays, extent), **more)

    def _numbers(self, place: str, arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        name, _, member = place.partition(".")
        return arrays[name][member] if member else arrays[name]

    def _counts(
        self, place: str, arrays: Mapping[str, NDArray[Any]], space: str, extent: int
    ) -> NDArray[Any]:
        """A number for each element: what is at ``place``, or how often a trace there leads to it."""
        if _field(place, self.data).link != space:
            return self._numbers(place, arrays)
        trace = self._read_links(place, arrays, extent)
        return np.bincount(trace[trace >= 0], minlength=extent)

    def _read_links(self, place: str, arrays: Mapping[str, NDArray[Any]], extent: int) -> NDArray[np.int64]:
        """Where the links at ``place`` lead to; -1 for those that are none."""
        declared = _field(place, self.data)
        links = self._numbers(place, arrays)
        inside = ~declared.is_null(links) & (links >= 0) & (links < extent)
        found = np.full(links.shape, -1, np.int64)
        found[inside] = links[inside]
        return found

    def _roots(self, arrays: Mapping[str, NDArray[Any]], extent: int) -> list[int]:
        root = self.takes.get("root")
        if isinstance(root, int):
            if root >= extent:
                raise FamilyError(f"order {self.order}: root {root} is not among the {extent} elements")
            return [root]
        found = self._read_links(root, arrays, extent).reshape(-1) if root else np.zeros(0, np.int64)
        return [int(each) for each in found if each >= 0]

    def _links(self, arrays: Mapping[str, NDArray[Any]], space: str, extent: int) -> Links:
        """Of an array over the space each element leads to where its links do, field by field; of another one the links
        of one element (an edge, a triangle) lead to each other."""
        by_element: list[NDArray[Any]] = []
        pairs: list[NDArray[Any]] = []
        for name, members in _find_links(self.data, space, self.takes):
            of = [self._read_links(f"{name}.{m}" if m else name, arrays, extent) for m in members]
            ends = np.concatenate([each.reshape(len(each), math.prod(each.shape[1:])) for each in of], axis=1)
            if self.data[name].shape[0] == space:
                by_element.append(ends)
            else:
                several = range(ends.shape[1])
                pairs += [np.stack([ends[:, a], ends[:, b]]) for a in several for b in several if a != b]
        if by_element and not pairs:
            return Links.from_rows(np.concatenate(by_element, axis=1))
        if by_element:
            ends = np.concatenate(by_element, axis=1)
            pairs.insert(0, np.stack([np.repeat(np.arange(extent), ends.shape[1]), ends.reshape(-1)]))
        sources, targets = np.concatenate(pairs, axis=1)
        return Links.from_pairs(sources[sources >= 0], targets[sources >= 0], extent)


def read_orders(
    meanings: Mapping[str, Any], spaces: tuple[str, ...], data: Mapping[str, Data], place: str
) -> dict[str, DeclaredOrder]:
    """The orders that ``means`` of an order policy over ``spaces`` declares, by the text of its values. Raises
    FamilyError for what is no order, and for what it takes and cannot be had."""
    inputs = {name: array for name, array in data.items() if array.role == "input"}
    orders = {}
    for value, meaning in meanings.items():
        told = {"order": meaning} if isinstance(meaning, str) else meaning
        where = f"{place}: means: {value}"
        if not isinstance(told, Mapping) or "order" not in told:
            raise FamilyError(f"{where}: an order is {{order: NAME, ...}}, found {meaning!r}")
        if told["order"] not in ORDERS:
            raise UnknownName("order", told["order"], ORDERS, where)
        takes = {key: each for key, each in told.items() if key != "order"}
        _check(told["order"], takes, where)
        for space in spaces:
            _check_data(told["order"], takes, space, inputs, where)
        orders[value] = DeclaredOrder(told["order"], takes, inputs)
    return orders


def _check(order: str, takes: Mapping[str, Any], where: str) -> None:
    allowed = [key.removesuffix("!") for key in ORDERS[order]]
    for key, value in takes.items():
        if key not in allowed:
            raise UnknownName("key", key, allowed, f"{where}: {order}")
        kind, least, told = _KINDS.get(key, (object, 0, ""))
        if not (_is_whole(value, least) if kind is int else isinstance(value, kind)):
            raise FamilyError(f"{where}: {key} has to be {told}, found {value!r}")
    for key in ORDERS[order]:
        if key.endswith("!") and key.removesuffix("!") not in takes:
            name = key.removesuffix("!")
            raise FamilyError(f"{where}: {order} needs {name}: {_KINDS[name][2]}")


def _check_data(
    order: str, takes: Mapping[str, Any], space: str, inputs: Mapping[str, Data], where: str
) -> None:
    for key in ("key", "counts"):
        if key in takes:
            array = _member(takes[key], inputs, f"{where}: {key}")
            if key == "counts" and _field(takes[key], inputs).link == space:
                continue  # a trace, of any shape
            if array.shape != (space,):
                raise FamilyError(
                    f"{where}: {key}: {takes[key]} has shape [{', '.join(array.shape)}]; a number for each {space} is "
                    f"needed, of shape [{space}]"
                )
    root = takes.get("root")
    if isinstance(root, str):
        array = _member(root, inputs, f"{where}: root")
        member = root.partition(".")[2]
        if not any(each.link == space for each in array.fields if each.name == member):
            raise FamilyError(
                f"{where}: root: {root} is no link to {space}; declare link: {space} there, or give a number"
            )
    elif root is not None and not _is_whole(root):
        raise FamilyError(f"{where}: root is an index, or an input that links to {space}; found {root!r}")
    if "links" not in ORDERS[order] or (order == "hot_first" and "links" not in takes):
        return
    for each in takes.get("links", ()):
        _member(str(each), inputs, f"{where}: links")
    if not list(_find_links(inputs, space, takes)):
        whose = "none of these links is" if "links" in takes else "no input has a link"
        raise FamilyError(
            f"{where}: {order} follows links, and {whose} to {space}: declare link: {space} where they are"
        )


def _member(place: str, inputs: Mapping[str, Data], where: str) -> Data:
    """The input of ``INPUT`` or ``INPUT.FIELD``. Raises UnknownName."""
    known = [
        f"{name}.{each.name}" if array.record else name
        for name, array in inputs.items()
        for each in array.fields
    ]
    if place not in known:
        raise UnknownName("input", place, known, where)
    return inputs[place.partition(".")[0]]


def _field(place: str, inputs: Mapping[str, Data]) -> Field:
    """The field that ``INPUT`` or ``INPUT.FIELD``, which is there, names."""
    name, _, member = place.partition(".")
    (found,) = (each for each in inputs[name].fields if each.name == member)
    return found


def _find_links(
    inputs: Mapping[str, Data], space: str, takes: Mapping[str, Any]
) -> Iterator[tuple[str, list[str]]]:
    """Inputs with fields that link to ``space``, in declared order: the ``links`` that an order takes, else all but a
    trace that it counts. An array over another space counts where each of its elements has several, which it then
    joins."""
    for name, array in inputs.items():
        members = [
            each.name
            for each in array.fields
            if each.link == space and _is_followed(f"{name}.{each.name}" if array.record else name, takes)
        ]
        if members and (array.shape[0] == space or len(members) > 1 or len(array.shape) > 1):
            yield name, members


def _is_followed(place: str, takes: Mapping[str, Any]) -> bool:
    return place in takes["links"] if "links" in takes else place != takes.get("counts")
