"""links: where an element of a tree leads to, stored by how far that is, or not at all (host side of ``links.cuh``).

A link of ``relative16`` is the distance to it in 16 bits; one of ``next`` is not stored: each element leads to the one
behind it, and the last to none. Only what the data allow: ``LayoutRefusal`` says what of them does not fit.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.errors import FamilyError, LayoutRefusal, UnknownName
from autotune.layout.arrays import SCALAR_TYPES, Data, Field

HEADER = "autotune/links.cuh"
KINDS = ("absolute", "relative16", "next")
_NO_LINK = -(1 << 15)  # the distance that stands for none
_FARTHEST = (1 << 15) - 1


@dataclass(frozen=True)
class StoredLinks:
    """``kinds`` has the fields that are stored otherwise than as they are declared, with how; "" is a plain element."""

    kinds: tuple[tuple[str, str], ...]

    def dtype(self, data: Data) -> np.dtype[Any]:
        """What is stored of an element."""
        kinds = dict(self.kinds)
        stored = [
            (each.name or "link", "i2" if kinds.get(each.name) == "relative16" else each.type)
            for each in data.fields
            if kinds.get(each.name) != "next"
        ]
        return np.dtype(stored)

    def narrow(self, data: Data, array: NDArray[Any]) -> NDArray[np.uint8]:
        """The bytes of each element of a canonical array, (elements, bytes). Raises LayoutRefusal."""
        made = np.zeros(array.shape, self.dtype(data))
        for each in data.fields:
            kind, links = (
                dict(self.kinds).get(each.name, "absolute"),
                array[each.name] if data.record else array,
            )
            if kind == "absolute":
                made[each.name] = links
                continue
            apart = self._distances(data, each, links)
            if kind == "relative16":
                made[each.name or "link"] = apart
            else:
                _check_next(data, each, apart)
        return made.view(np.uint8).reshape(*array.shape, made.dtype.itemsize)

    def widen(self, data: Data, raw: NDArray[np.uint8]) -> NDArray[Any]:
        """The canonical array back: the inverse of ``narrow``."""
        stored = np.ascontiguousarray(raw).view(self.dtype(data)).reshape(raw.shape[:-1])
        made = np.zeros(stored.shape, data.dtype)
        numbers = np.arange(len(stored))
        for each in data.fields:
            kind, to = dict(self.kinds).get(each.name, "absolute"), made[each.name] if data.record else made
            if kind == "absolute":
                to[...] = stored[each.name]
            elif kind == "next":
                to[...] = np.where(numbers + 1 < len(stored), numbers + 1, none_of(each))
            else:
                apart = stored[each.name or "link"].astype(np.int64)
                to[...] = np.where(apart == _NO_LINK, none_of(each), numbers + apart)
        return made

    def _distances(self, data: Data, field: Field, links: NDArray[Any]) -> NDArray[np.int64]:
        none = field.is_null(links)
        name = f"{data.name}.{field.name}" if field.name else data.name
        if (links[none] != none_of(field)).any():
            other = links[none & (links != none_of(field))][0]
            raise LayoutRefusal(
                f"{name}: {other} stands for no link, and a link that is not stored as it is is {none_of(field)} where "
                "it is none: write that, or keep links: absolute"
            )
        apart = np.where(none, _NO_LINK, links.astype(np.int64) - np.arange(len(links)))
        far = np.flatnonzero(~none & (np.abs(apart) > _FARTHEST))
        if far.size:
            raise LayoutRefusal(
                f"{name}: the link of element {int(far[0])} leads {int(apart[far[0]]):,} further, and relative16 holds "
                f"-{_FARTHEST:,} to {_FARTHEST:,}: keep links: absolute, or take an order in which they are near"
            )
        return np.asarray(apart, np.int64)

    def cpp(self, data: Data, stored: str) -> str:
        """The accessor over ``stored``, an Array of the bytes."""
        kinds, kept = dict(self.kinds), dict(self.dtype(data).fields or {})
        value = data.record or SCALAR_TYPES[data.fields[0].type]
        pieces, begin = [], 0
        for each in data.fields:
            size, kind = np.dtype(each.type).itemsize, kinds.get(each.name, "absolute")
            link = f"{SCALAR_TYPES[each.type]}, {none_of(each)}" if each.link else ""
            at = kept[each.name or "link"][1] if kind != "next" else 0
            if kind == "absolute":
                pieces.append(f"autotune::AsItIs<{at}, {begin}, {size}>")
            elif kind == "relative16":
                pieces.append(f"autotune::Relative16<{at}, {begin}, {link}>")
            else:
                pieces.append(f"autotune::Next<{begin}, {link}>")
            begin += size
        return f"autotune::Linked<{value}, {stored}, {', '.join(pieces)}>"


def none_of(field: Field) -> int:
    """The number that stands for no link where links are not stored as they are."""
    if field.none is not None:
        return field.none
    return -1 if np.dtype(field.type).kind == "i" else int(np.iinfo(field.type).max)


def _check_next(data: Data, field: Field, apart: NDArray[np.int64]) -> None:
    wanted = np.full(len(apart), 1)
    wanted[-1:] = _NO_LINK
    astray = np.flatnonzero(apart != wanted)
    if astray.size:
        name = f"{data.name}.{field.name}" if field.name else data.name
        place = int(astray[0])
        told = "nowhere" if apart[place] == _NO_LINK else f"to {place + int(apart[place])}"
        raise LayoutRefusal(
            f"{name}: element {place} leads {told}, and links: next is for arrays in which each leads to the one "
            "behind it and the last to none: keep links: absolute, or take an order in which they do"
        )


def links_of(value: object, data: Data, where: str) -> StoredLinks | None:
    """What a value of the layout dimension says: a kind for all links of the array into its own extent, or a kind by
    field. None for all as they are. Raises FamilyError, UnknownName."""
    own = [each.name for each in data.fields if each.link and (each.link,) == data.shape]
    if not own or data.role != "input":
        raise FamilyError(
            f"{where}: {data.name} is no input of one extent with a link into that extent, so it has no links to "
            "store otherwise"
        )
    told = dict(value) if isinstance(value, dict) else dict.fromkeys(own, value)
    for name, kind in told.items():
        if name not in own:
            raise UnknownName("link", name, own, f"{where}: links")
        if kind not in KINDS:
            raise UnknownName("links layout", kind, KINDS, where)
    kinds = tuple((name, str(kind)) for name, kind in told.items() if kind != "absolute")
    if len(data.fields) == sum(kind == "next" for _, kind in kinds):
        raise FamilyError(
            f"{where}: {data.name} has nothing but links, and with links: next nothing is left to store"
        )
    return StoredLinks(kinds) if kinds else None
