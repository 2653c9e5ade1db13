"""Whether plain values are what a frozen record's fields hold. Anybody can write a line with the right checksum, so a
line is believed as little as any other file."""

import sys
from collections.abc import Mapping
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from autotune.declaration import Configuration

_hints = lru_cache(maxsize=16)(get_type_hints)


def require_types(kind: type, plain: Mapping[str, Any]) -> None:
    """Raise TypeError for the first value that the field of its name cannot hold. A list may stand for a tuple, and a
    mapping for a record."""
    hints = _hints(kind)
    for name, value in plain.items():
        if name in hints and not _fits(value, hints[name]):
            raise TypeError(f"{name} is {str(value)[:40]!r}, a {type(value).__name__}")


def _fits(value: Any, hint: Any) -> bool:
    origin, inner = get_origin(hint), get_args(hint)
    if hint is float:
        return type(value) is float or (type(value) is int and abs(value) <= sys.float_info.max)
    if hint is int:
        return type(value) is int and -(2**63) <= value < 2**63
    if hint in (str, bool, NoneType):
        return type(value) is hint
    if hint is Configuration:
        return _fits(value, Mapping[str, int | str])
    if origin is Mapping:
        return isinstance(value, Mapping) and all(
            _fits(key, inner[0]) and _fits(one, inner[1]) for key, one in value.items()
        )
    if origin is tuple:
        return isinstance(value, list | tuple) and all(_fits(one, inner[0]) for one in value)
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is Literal:
        return value in inner
    if hint is Any:
        return True
    if isinstance(value, Mapping):
        require_types(hint, value)
    return isinstance(value, Mapping)
