"""``values: auto`` of a policy, written out: every way to group the fields of a record."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from autotune.errors import FamilyError
from autotune.layout import every_grouping

AUTO = "auto"


def written_out(content: dict[str, Any], where: str) -> dict[str, Any]:
    """A family's declaration with the values that each policy with ``values: auto`` has. Raises FamilyError for one
    that does not choose how records lie, or for records with other fields or too many of them."""
    policies = content["policies"]
    chosen = {
        name: {**policy, "values": _values(policy, content["data"], f"{where}: policy {name}")}
        for name, policy in policies.items()
        if policy["values"] == AUTO
    }
    return {**content, "policies": {**policies, **chosen}} if chosen else content


def _values(policy: Mapping[str, Any], data: Mapping[str, Any], where: str) -> list[str]:
    if policy.get("layout") != "records":
        raise FamilyError(
            f"{where}: values: auto is for layout: records, every way to group a record's fields; list the values"
        )
    fields = [_fields(data.get(name, {})) for name in policy.get("data", ())]
    if not fields or not fields[0] or any(each != fields[0] for each in fields):
        names = ", ".join(policy.get("data", ())) or "no array"
        raise FamilyError(
            f"{where}: values: auto needs arrays of records with the same fields; data names {names}"
        )
    return every_grouping(fields[0], where)


def _fields(data: Mapping[str, Any]) -> list[tuple[str, int]]:
    return [
        (name, np.dtype(field if isinstance(field, str) else field["type"]).itemsize)
        for name, field in data.get("fields", {}).items()
    ]
