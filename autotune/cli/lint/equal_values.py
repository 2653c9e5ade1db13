"""Values of one layout policy that store every array alike, under two names."""

from collections.abc import Iterator, Mapping
from typing import Any

from autotune.cli.lint.findings import Declared, Finding
from autotune.errors import AutotuneError
from autotune.layout import MAPPING_KINDS, mapping_choice


def check_equal_values(declared: Declared) -> Iterator[Finding]:
    for name, policy in declared.policies.items():
        if policy.get("layout") not in MAPPING_KINDS:
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
    shape = declared.data[array]["shape"]
    return mapping_choice(policy["layout"], means.get(str(value), value), shape, array)
