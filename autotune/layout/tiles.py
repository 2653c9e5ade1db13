"""tiles: elements that lie together in blocks, tile behind tile (host side of ``tile.cuh``)."""

import re
from collections.abc import Sequence

from autotune.errors import FamilyError, UnknownName

HEADER = "autotune/tile.cuh"
_KNOWN = ("none", "8x8 (a size for each extent)", "{extent: size}")


def tiles_of(value: object, shape: Sequence[str], where: str) -> tuple[int, ...]:
    """What a layout policy's value says for an array of the extents ``shape``: the elements of a tile along each, or
    nothing for ``none``. An extent that a mapping leaves out is not cut. Raises FamilyError, UnknownName."""
    if value == "none":
        return ()
    sizes: list[object]
    if isinstance(value, dict):
        if not value.keys() <= set(shape):
            raise UnknownName("extents of a tile", ", ".join(map(str, value)), shape, where)
        if len(set(shape)) < len(shape):
            raise FamilyError(
                f"{where}: the extents {', '.join(shape)} repeat, so write the tile as 8x8 is written"
            )
        sizes = [value.get(name, 1) for name in shape]
    elif re.fullmatch(r"[0-9]+(x[0-9]+)*", str(value)):
        sizes = [int(size) for size in str(value).split("x")]
    else:
        raise UnknownName("tiles layout", value, _KNOWN, where)
    if len(sizes) != len(shape):
        raise FamilyError(
            f"{where}: tiles {value} is {len(sizes)} long, and there are {len(shape)} extents ({', '.join(shape)}); "
            f"give a size for each (1: not cut), or name those that are cut in means, as in {{{shape[-1]}: 8}}"
        )
    found = tuple(size for size in sizes if isinstance(size, int) and size >= 1)
    if len(found) < len(sizes):
        raise FamilyError(f"{where}: tiles {value}: a size is a whole number of at least 1")
    return () if set(found) == {1} else found
