"""Values of one layout policy that store every array alike, under two names."""

from collections.abc import Iterator, Mapping
from typing import Any

from autotune.cli.lint.findings import Declared, Finding
from autotune.errors import AutotuneError
from autotune.layout import DIMENSIONS, Data, Field


def check_equal_values(declared: Declared) -> Iterator[Finding]:
    for name, policy in declared.policies.items():
        if policy.get("layout") not in DIMENSIONS:
            continue
        first: dict[str, Any] = {}
        for i, value in enumerate(policy["values"]):
            try:
                same = repr([_meant(declared, policy, value, array) for array in policy["data"]])
            except (AutotuneError, KeyError):  # loading says what is wrong
                continue
            if same in first:
                yield declared.found(
                    "no-effect",
                    f"{name}={value} stores {', '.join(policy['data'])} as {name}={first[same]} does: the same "
                    "program, tried again; delete one of them",
                    "policies", name, "values", i,
                    is_error=False,
                )  # fmt: skip
            first.setdefault(same, value)


def _meant(declared: Declared, policy: Mapping[str, Any], value: Any, array: str) -> Any:
    means = {str(key): meaning for key, meaning in policy.get("means", {}).items()}
    data = Data(
        name=array, role="input", fields=(Field("", "int32"),), shape=tuple(declared.data[array]["shape"])
    )
    return DIMENSIONS[policy["layout"]].meaning(means.get(str(value), value), data, array)
