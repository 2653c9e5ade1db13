"""What a shell completes behind a command: families, and a family's workloads, presets and policies.

A shell asks while a line is typed, so nothing here raises, and a family is read no further than its declaration.
"""

from collections.abc import Iterable

import typer

from autotune.declaration import Family, families, load_family, workloads
from autotune.errors import AutotuneError


def family_names(incomplete: str) -> list[str]:
    """Folders are completed by the shell itself."""
    return _beginning(families(), incomplete)


def workload_names(context: typer.Context, incomplete: str) -> list[str]:
    family = _family(context)
    return _beginning(workloads(family) if family else (), incomplete)


def preset_names(context: typer.Context, incomplete: str) -> list[str]:
    family = _family(context)
    return _beginning(family.space.preset_names if family else (), incomplete)


def policy_values(context: typer.Context, incomplete: str) -> list[str]:
    """``name=`` for each policy, then its values, one behind the other."""
    if (family := _family(context)) is None:
        return []
    name, given, value = incomplete.partition("=")
    policies = {policy.name: policy for policy in family.space.policies}
    if not given or name not in policies:
        return _beginning((f"{each}=" for each in policies), incomplete)
    before, comma, last = value.rpartition(",")
    taken = before.split(",")
    left = (str(each) for each in policies[name].values if str(each) not in taken)
    return [f"{name}={before}{comma}{each}" for each in _beginning(left, last)]


def _family(context: typer.Context) -> Family | None:
    """The one whose name stands on the line already; an option that waits for its value leaves it unassigned."""
    for name in (context.params.get("family"), *context.args):
        try:
            return load_family(str(name or ""), check=False)
        except AutotuneError:
            continue
    return None


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
