"""What can be told of numbers that are, or may be, stored in fewer bits than declared."""

import re
from collections.abc import Iterator

from autotune.cli.lint.findings import Declared, Finding
from autotune.layout import STORAGES

_ATOMICS = (r"\b{name}\s*\.\s*add\s*\(", r"\belement\s*\(\s*{name}\b", r"\bfield\s*<[^;]*>\s*\(\s*{name}\b")


def check_storage(declared: Declared) -> Iterator[Finding]:
    drivers = _drivers(declared)
    for name, place in drivers.items():
        yield from _atomics(declared, name, place)
    if drivers and not declared.content.get("tolerance"):
        name, place = next(iter(drivers.items()))
        yield declared.found(
            "storage-without-tolerance",
            f"{name} can be stored in fewer bits, and no tolerance is declared: whatever differs in its last bit is "
            "wrong then. Say what a result may be off, by policy where it depends on it: tolerance: {absolute: ...}",
            *place,
            is_error=False,
        )


def _drivers(declared: Declared) -> dict[str, tuple[str, str]]:
    """The arrays that are rounded in some configuration, with where that is said."""
    found = {name: ("data", name) for name, value in declared.data.items() if value.get("type") in STORAGES}
    found = {name: place for name, place in found.items() if declared.data[name]["type"] != "float32"}
    found |= {n: ("data", n) for n, value in declared.data.items() if "storage" in value.get("layout", {})}
    for policy, value in declared.policies.items():
        if value.get("layout") == "storage":
            found |= dict.fromkeys(value.get("data", ()), ("policies", policy))
    return found


def _atomics(declared: Declared, name: str, place: tuple[str, str]) -> Iterator[Finding]:
    """What works on memory itself finds codes there."""
    for source in declared.sources:
        for pattern in _ATOMICS:
            if found := re.search(pattern.format(name=re.escape(name)), source.code):
                yield declared.found(
                    "storage-of-atomics",
                    f"{name} can be stored in fewer bits, and {source.path.name} has `{found[0]}` in line "
                    f"{source.line(found.start())}: what works on memory itself would find codes there; load and "
                    "store it, or leave the storage out",
                    *place,
                )
                return
