"""A small family with every kind of declaration, and changes to it: one mistake at a time."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from autotune.declaration import family
from autotune.errors import AutotuneError

Change = Callable[[dict[str, Any]], object]

DECLARATION: dict[str, Any] = {
    "schema": 1,
    "family": "demo",
    "source": "demo.cu",
    "extents": {"half": {"value": "n // 2"}},
    "scalars": {"limit": {"type": "int32", "default": 3}, "double": {"type": "int32", "value": "2 * limit"}},
    "options": {"mode": {"values": ["fast", "exact"], "default": "fast"}},
    "data": {
        "x": {"role": "input", "type": "int32", "shape": ["n", "m"], "packed": "m", "range": [0, 3]},
        "tree": {
            "role": "input",
            "record": "Node",
            "fields": {"next": {"type": "int32", "link": "n"}, "score": "float32"},
            "shape": ["n"],
        },
        "y": {"role": "output", "type": "float32", "shape": ["half"]},
    },
    "kernels": {
        "demo": {"arguments": ["x", "tree", "y", "limit"], "grid": ["ceil_div(n, block)"], "block": ["block"]}
    },
    "policies": {
        "memory": {"layout": "memory", "data": ["x"], "values": ["global", "texture"], "default": "global"},
        "block": {"values": [64, 128], "default": 128},
    },
    "constraints": [{"require": "memory == 'global' or block == 64", "reason": "textures want small blocks"}],
    "presets": {"tex": {"set": {"memory": "texture", "block": 64}}, "wide": {"all": ["block"]}},
}


def load(folder: Path, change: Change = dict, check: bool = True) -> family.Family:
    """The declaration above with ``change`` made to it, written down and read."""
    content = copy.deepcopy(DECLARATION)
    change(content)
    (folder / "demo.cu").touch()
    (folder / "family.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    return family.load_family(folder, check)


def refusal(folder: Path, change: Change) -> str:
    """Return the message with which autotune rejects the changed declaration."""
    with pytest.raises(AutotuneError) as caught:
        load(folder, change)
    assert caught.value.exit_code in (2, 3)
    return str(caught.value)


def at(*path: str, value: Any) -> Change:
    """The change that puts ``value`` at ``path``."""

    def change(content: dict[str, Any]) -> None:
        for key in path[:-1]:
            content = content.setdefault(key, {})
        content[path[-1]] = copy.deepcopy(value)

    return change
