"""A policy file as text: keys in a fixed order, names sorted, so that two versions of one differ where they differ."""

import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import yaml

from autotune.features import Leaf, Tree
from autotune.policyfile import SCHEMA, Crossover, Entry, PolicyFile, Rule

__all__ = ["content", "write"]


def content(file: PolicyFile) -> dict[str, Any]:
    """The mapping that is written: keys in a fixed order, names sorted, empty ones left out."""
    plain: dict[str, Any] = {
        "schema": SCHEMA,
        "family": file.family,
        "device": dict(file.device),
        "default": _sorted(file.default),
        "default_regret": file.default_regret,
        "default_over": list(file.default_over),
    }
    if file.rule:
        plain["rule"] = _rule(file.rule)
    if file.crossovers:
        plain["crossovers"] = {name: _crossover(item) for name, item in sorted(file.crossovers.items())}
    plain["entries"] = {name: _plain(item) for name, item in sorted(file.entries.items())}
    return plain


def _plain(item: Entry) -> dict[str, Any]:
    values = asdict(item)
    empty = {f.name: f.default for f in fields(Entry) if not f.name.endswith("digest")}
    plain = {}
    for name, value in values.items():
        if name == "workload" or value == empty.get(name) or (value == {} and name != "options"):
            continue
        plain[name] = _sorted(value) if isinstance(value, dict) else value
    return plain


def _sorted(mapping: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _sorted(value) if isinstance(value, Mapping) else value for key, value in sorted(mapping.items())
    }


def _rule(rule: Rule) -> dict[str, Any]:
    plain: dict[str, Any] = {"options": _sorted(rule.options), "left_out": _sorted(rule.left_out)}
    if rule.accuracy:
        plain["accuracy"] = rule.accuracy
    if rule.tree:
        return {**plain, "tree": _tree(rule.tree)}
    return {**plain, "neighbours": rule.neighbours, "weights": _sorted(rule.weights)}


def _tree(tree: Tree) -> dict[str, Any]:
    if isinstance(tree, Leaf):
        return {"entry": tree.entry}
    return {
        "feature": tree.feature,
        "below": tree.below,
        "then": _tree(tree.then),
        "else": _tree(tree.otherwise),
    }


def _crossover(item: Crossover) -> dict[str, Any]:
    return {"below": item.below, "workloads": list(item.workloads)}


def write(path: Path, file: PolicyFile) -> None:
    text = "# Written by autotune; may be edited. `autotune sweep` merges new measurements into it.\n"
    text += yaml.safe_dump(content(file), sort_keys=False, width=110, allow_unicode=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
