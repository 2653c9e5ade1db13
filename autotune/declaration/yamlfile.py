"""Reading YAML that a person wrote: safe, bounded, no repeated keys, checked against a schema.

Families, workloads and policy files all come through here, so their errors look alike: file, place,
what is wrong, what is allowed.
"""

import json
import math
import re
from collections.abc import Hashable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import count, takewhile
from pathlib import Path
from typing import Any

import yaml

from autotune.errors import AutotuneError, explained, suggestion
from autotune.files import plain_file

_LARGEST = 4 << 20  # bytes; a hundred times any real file, small enough to parse in seconds
_DEEPEST = 20
_MOST_NODES = 200_000
_TOO_MUCH = f"nested deeper than {_DEEPEST} levels, or more than {_MOST_NODES} items"


_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's where it is there
_WORDS: Any = yaml.SafeLoader("")


def read(path: Path, error: type[AutotuneError]) -> dict[str, Any]:
    """The mapping in the YAML file at ``path``. Raises ``error`` for anything else: missing, unreadable, not
    UTF-8, larger than 4 MiB, malformed (with line and column), nested deeper than 20, not a mapping."""
    with explained(error, f"cannot read {path}:"), plain_file(path).open("rb") as file:
        raw = file.read(_LARGEST + 1)
    if len(raw) > _LARGEST:
        raise error(
            f"{path} is larger than {_LARGEST} bytes: not a file that autotune wrote; delete it or name another"
        )
    try:
        content = parse(raw.decode())
    except UnicodeDecodeError:
        raise error(f"{path} is not UTF-8 text") from None
    except (yaml.YAMLError, RecursionError, ValueError) as problem:
        mark = getattr(problem, "problem_mark", None)
        place = f" line {mark.line + 1} column {mark.column + 1}" if mark else ""
        what = getattr(problem, "problem", None) or problem
        if "maximum nesting depth" in str(what):  # libyaml's own limit, reached while it looks ahead
            what = _TOO_MUCH
        raise error(f"{path}{place}: malformed YAML: {what}") from None
    if not isinstance(content, dict):
        raise error(f"{path}: a mapping of key: value is needed, found {type(content).__name__}")
    return content


def schema_file(name: str) -> Path:
    """The JSON schema of a kind of file: family, workload or policy."""
    return Path(__file__).parents[1] / "schemas" / f"{name}.json"


def editor_line(name: str) -> str:
    """The comment by which editors with a YAML language server know the schema: keys are completed and explained."""
    return f"# yaml-language-server: $schema={schema_file(name).as_uri()}"


def nodes(path: Path) -> yaml.Node:
    """The YAML nodes, with their places, of a file that ``read`` has accepted: by the same parser, since PyYAML's own
    refuses a tab behind a key and libyaml takes it."""
    root: yaml.Node | None = yaml.compose(path.read_text(encoding="utf-8"), Loader=_Base)
    assert root is not None  # a mapping was read from it
    return root


def parse(text: str) -> Any:
    """Make what ``text`` says. Raises YAMLError, ValueError; for a repeated key too (PyYAML keeps the last one)."""
    made: list[Any] = []
    for event in (events := yaml.parse(text, Loader=_Base)):
        if made and isinstance(event, yaml.DocumentStartEvent):
            raise yaml.composer.ComposerError(None, None, "another document", event.start_mark)  # type: ignore[arg-type]
        if isinstance(event, yaml.NodeEvent):
            made.append(_make(event, events, count(1), 0))
    return made[0] if made else None


def _make(begin: Any, events: Iterator[Any], nodes: Iterator[int], depth: int) -> Any:
    """What begins there; its rest is taken from ``events``. Refuse what must not be built: deep nesting, aliases (a few
    nested ones expand to billions of items), tags (each has a constructor with failures of its own)."""
    problem, is_word = "", isinstance(begin, yaml.ScalarEvent)
    if isinstance(begin, yaml.AliasEvent):
        problem = "aliases (*name) are not allowed"
    elif begin.tag is not None:
        problem = f"tags ({begin.tag}) are not allowed"
    elif next(nodes) > _MOST_NODES or depth + (not is_word) > _DEEPEST:
        problem = _TOO_MUCH
    if problem:
        raise yaml.constructor.ConstructorError(None, None, problem, begin.start_mark)
    if is_word:
        return _resolve(begin.value) if begin.implicit[0] else begin.value
    inner = takewhile(lambda event: not isinstance(event, yaml.CollectionEndEvent), events)
    if isinstance(begin, yaml.SequenceStartEvent):
        return [_make(event, events, nodes, depth + 1) for event in inner]
    made: dict[Any, Any] = {}
    for event in inner:
        key = _make(event, events, nodes, depth + 1)
        if not isinstance(event, yaml.ScalarEvent) or key in made:
            what = f"key {key!r} appears twice" if isinstance(key, Hashable) else "a key must be a plain word"
            raise yaml.constructor.ConstructorError(None, None, what, event.start_mark)
        made[key] = _make(next(events), events, nodes, depth + 1)
    return made


@lru_cache(maxsize=4096)  # keys, and most values, come again and again
def _resolve(word: str) -> Any:
    """What a word without quotes is: itself, a number, a truth, a date, nothing."""
    tag = _WORDS.resolve(yaml.ScalarNode, word, (True, False))
    if tag not in _WORDS.yaml_constructors:  # << and = are words
        return word
    return _WORDS.yaml_constructors[tag](_WORDS, yaml.ScalarNode(tag, word))


@cache
def schema(name: str) -> dict[str, Any]:
    """The published JSON schema ``name`` (family, workload, policy)."""
    loaded: dict[str, Any] = json.loads(schema_file(name).read_text())
    return loaded


_KINDS: Mapping[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "integer": (int,), "number": (int, float),
    "boolean": (bool,), "null": (type(None),),
}  # fmt: skip

# Sizes of a number that is not 0: what is computed from several then has a value.
SMALLEST, LARGEST = 1e-30, 1e30


def fault(value: Any, name: str) -> str:
    """What of ``value`` breaks schema ``name``, or is a number beyond all reason; empty where nothing does. It knows
    the words that schemas of run-time files use, and spares a dispatcher jsonschema, whose texts (``check``) say
    more."""
    return _fault(value, schema(name), schema(name).get("$defs", {}), "")


def _fault(value: Any, rules: Mapping[str, Any], shared: Mapping[str, Any], place: str) -> str:
    if "$ref" in rules:
        rules = shared[rules["$ref"].rpartition("/")[2]]
    where = place or "top level"
    kinds = rules.get("type", ())
    kinds = [kinds] if isinstance(kinds, str) else kinds
    is_boolean = isinstance(value, bool)  # which is a number to Python
    if kinds and not any(
        is_boolean is (kind == "boolean") and isinstance(value, _KINDS[kind]) for kind in kinds
    ):
        return f"{where} is {value!r:.40}, not of type {' or '.join(kinds)}"
    if "enum" in rules and (is_boolean or value not in rules["enum"]):
        return f"{where} is {value!r:.40}, not one of {rules['enum']}"
    if "oneOf" in rules and sum(not _fault(value, each, shared, place) for each in rules["oneOf"]) != 1:
        return f"{where} has none, or more than one, of the forms that it may have"
    if isinstance(value, str) and "pattern" in rules and not re.search(rules["pattern"], value):
        return f"{where} is {value!r:.40}, not of the form {rules['pattern']}"
    if kinds and isinstance(value, (int, float)) and not is_boolean:
        least, above = rules.get("minimum", -LARGEST), rules.get("exclusiveMinimum", -math.inf)
        if not (value == 0 or SMALLEST <= abs(value) <= LARGEST) or value < least or value <= above:
            allowed = f"between {SMALLEST:g} and {LARGEST:g}, or 0, and at least {least:g}"
            return f"{where} is {value!r:.40}, not a number {allowed}"
    if isinstance(value, list):
        inner = ((f"{where}: {i}", each, rules.get("items", {})) for i, each in enumerate(value))
        return next(filter(None, (_fault(each, of, shared, at) for at, each, of in inner)), "")
    return _fault_of_keys(value, rules, shared, place) if isinstance(value, dict) else ""


def _fault_of_keys(
    value: Mapping[Any, Any], rules: Mapping[str, Any], shared: Mapping[str, Any], place: str
) -> str:
    if missing := [key for key in rules.get("required", ()) if key not in value]:
        return f"{place or 'top level'} has no {missing[0]}"
    for key, each in value.items():
        at = f"{place} {key}".lstrip()
        of = rules.get("properties", {}).get(key, rules.get("additionalProperties", {}))
        if of is False:
            return f"{at} is an unknown key"
        if found := _fault(each, of, shared, at):
            return found
    return ""


def check(content: dict[str, Any], name: str, path: Path, error: type[AutotuneError]) -> None:
    """Raise ``error`` at the first place where ``content`` breaks schema ``name``, with a spelling suggestion for
    an unknown key. jsonschema is imported here because run-time dispatch never needs it for valid files."""
    import jsonschema

    problems = list(jsonschema.Draft202012Validator(schema(name)).iter_errors(content))
    # A misspelt key is also a missing one: the spelling is what helps.
    unknown = next(filter(None, map(unknown_keys, problems)), None)
    if unknown:
        place, messages = unknown
        told = next(iter(messages.values()))
    elif problems:
        problem = jsonschema.exceptions.best_match(problems)
        place, told = tuple(problem.absolute_path), explain(problem)
    else:
        return
    raise error(f"{path}: {'.'.join(map(str, place)) or 'top level'}: {told}")


def unknown_keys(problem: Any) -> tuple[tuple[str | int, ...], dict[str, str]] | None:
    """Where a jsonschema error is about keys that are not declared, and the message for each of them; None when it is
    about something else."""
    import jsonschema

    # Of several forms that a value may have, the one that was meant.
    cause = jsonschema.exceptions.best_match([problem])
    if cause.validator != "additionalProperties" or not isinstance(cause.instance, dict):
        return None
    allowed = sorted(cause.schema.get("properties", {}))
    messages = {}
    for key in (key for key in cause.instance if key not in allowed):
        hint = suggestion(str(key), allowed)
        if cause.instance[key] is None and not hint:  # {doc: one, two}: what follows the comma is a key
            hint = "; a text with a comma needs quotes"
        messages[str(key)] = f"unknown key {str(key)!r}{hint} (allowed: {', '.join(allowed)})"
    return tuple(cause.absolute_path), messages


def explain(problem: Any) -> str:
    """The message of a jsonschema error, with the ``hint`` that the schema has for this place, or the word that was
    meant."""
    meant = suggestion(str(problem.instance), map(str, problem.schema.get("enum", ())))
    hint = problem.schema.get("hint", "")
    return f"{problem.message}; {hint}" if hint else f"{problem.message}{meant}"
