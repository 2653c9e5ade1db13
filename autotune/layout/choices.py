"""The values of the layout dimensions that have names, and the header that each of them needs."""

import re
from types import MappingProxyType
from typing import Any

from autotune.errors import UnknownName
from autotune.layout import fields, stored_links
from autotune.layout.bit_packing import PACKINGS
from autotune.layout.mapping import HEADERS as MAPPING_HEADERS
from autotune.layout.storage import AS_DECLARED, STORAGES
from autotune.layout.storage import HEADER as STORAGE_HEADER

MEMORIES = ("global", "readonly", "texture", "constant")
HEADERS = MappingProxyType(
    {**MAPPING_HEADERS, "storage": STORAGE_HEADER, "links": stored_links.HEADER}
)  # by the layout that needs one
PLANES = ("2d", "2d_pitched")  # the line, folded
IMAGES = ("image", "image_pitched")  # the array's own rows
DIMS = ("1d", *PLANES, *IMAGES)
GROUPINGS = ("split", "merged")
_VALUES = {
    "memory": MEMORIES, "dims": DIMS, "grouping": GROUPINGS, "packing": tuple(PACKINGS),
    "storage": tuple(dict.fromkeys((*AS_DECLARED, *STORAGES))),
}  # fmt: skip


def check_value(kind: str, value: Any, where: str) -> None:
    """Raise UnknownName for what is no value of a layout dimension whose values have names."""
    allowed = _VALUES.get(kind)
    if allowed and value not in allowed:
        raise UnknownName(f"{kind} layout", value, allowed, where)
    is_known = re.fullmatch(r"aos|soa|aosoa[1-9][0-9]*", str(value)) or fields.names_of(str(value))
    if kind == "records" and not is_known:
        known = ("aos", "soa", "aosoa<lanes>", "<field>+<field>-<field>")
        raise UnknownName("records layout", value, known, where)
