"""padding: how far apart rows begin, in elements or in bytes."""

import math
import re
from dataclasses import dataclass

from autotune.errors import FamilyError, UnknownName


@dataclass(frozen=True)
class Padding:
    """A row takes a multiple of ``multiple``, and ``plus`` more; each in elements, or in bytes."""

    multiple: int = 1
    plus: int = 0
    is_multiple_in_bytes: bool = False
    is_plus_in_bytes: bool = False

    def elements(self, element_bytes: int) -> tuple[int, int]:
        """Both in elements of so many bytes: the fewest whose bytes are a multiple, and as many as reach ``plus``."""
        multiple = self.multiple
        if self.is_multiple_in_bytes:
            multiple //= math.gcd(multiple, element_bytes)
        return multiple, -(-self.plus // element_bytes) if self.is_plus_in_bytes else self.plus


def padding_of(value: object, where: str) -> Padding:
    """What a layout policy's value says: ``32`` (elements), ``128B``, ``32+1``, ``128B+16B``. Raises FamilyError,
    UnknownName."""
    matched = re.fullmatch(r"([0-9]+)(B?)(?:\+([0-9]+)(B?))?", str(value))
    if isinstance(value, bool) or not matched:
        raise UnknownName("padding layout", value, ("32", "128B", "32+1", "128B+16B"), where)
    multiple, plus = int(matched[1]), int(matched[3] or 0)
    if multiple < 1:
        raise FamilyError(f"{where}: padding {value!r} is not a whole number of at least 1")
    return Padding(multiple, plus, bool(matched[2]), bool(matched[4]))
