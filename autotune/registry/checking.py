"""What a policy file must be to enter a registry, or to come from one: checked before anything of it is compiled."""

from collections.abc import Iterator, Mapping
from typing import Any

from autotune.declaration import Configuration, Family
from autotune.errors import PolicyFileError
from autotune.policy import Entry, PolicyFile, acceptance
from autotune.record import accuracy_class

_SHOWN = 3  # faults of a file


def check_file(family: Family, file: PolicyFile, where: str) -> None:
    """Check that ``file``, which came from ``where``, may be used for ``family``.

    Raises:
        PolicyFileError: It is another family's, has no entry, or has entries that are stale, unproven, of another
            origin than a sweep, or outside of the family's space; with the first few of its faults.
    """
    if file.family != family.name:
        raise PolicyFileError(f"{where}: it is for family {file.family}, not for {family.name}")
    if not file.entries:
        raise PolicyFileError(
            f"{where}: it has no entry, so nothing says where its default was measured; sweep first"
        )
    found = {name: _find_faults(family, item) for name, item in file.entries.items()}
    faults = [f"entry {name}: {why}" for name, many in found.items() for why in many]
    for name, values in other_configurations(file).items():
        if reason := acceptance.find_configuration(family, values)[1]:
            faults.append(f"{name}: {reason}")
    if faults:
        more = f"; and {len(faults) - _SHOWN} faults more" if len(faults) > _SHOWN else ""
        raise PolicyFileError(f"{where}: {'; '.join(faults[:_SHOWN])}{more}")


def _find_faults(family: Family, item: Entry) -> Iterator[str]:
    if reason := acceptance.describe_staleness(family, item):
        yield reason
    if not item.proved:
        yield "unproven: no sweep compared its results on other sizes than the workload's; sweep again"
    if item.refined:
        yield "a program's own calls found it, not a sweep; sweep a workload of that size"
    if item.pulled:
        yield f"it was pulled from {item.pulled['from']} and not measured here; leave it to who published it"
    configuration, reason = acceptance.find_configuration(family, item.configuration)
    if reason or configuration is None:
        yield reason
    elif item.accuracy != (own := accuracy_class(configuration, family.accuracy)):
        yield f"it says accuracy class {item.accuracy!r}, and its configuration is of {own!r}"
    for name, value in item.options.items():
        allowed = [str(one) for one in family.options[name].values] if name in family.options else []
        if str(value) not in allowed:
            yield f"family {family.name} has no option {name}={value} (allowed: {', '.join(allowed) or 'none'})"


def other_configurations(file: PolicyFile) -> dict[str, Mapping[str, Any]]:
    """Return the configurations that are not an entry's winner, by their names in messages."""
    kept = file.prediction.kept if file.prediction else {}
    predicted = {f"prediction {name}": one.configuration for name, one in kept.items()}
    return {"default": file.default, **predicted}


def complete(family: Family, values: Mapping[str, Any]) -> Configuration:
    """The configuration that a program runs for ``values`` of a file that was checked."""
    configuration, reason = acceptance.find_configuration(family, values)
    assert configuration is not None and not reason, "a file is checked before anything of it is used"
    return configuration
