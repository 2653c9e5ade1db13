"""MkDocs hook: fills ``<!-- generated: NAME -->`` in a page of the reference with what the code says."""

import csv
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from autotune.cli import app

ROOT = Path(__file__).parents[2]
INCLUDE = ROOT / "kernels" / "include" / "autotune"
EXAMPLES = ROOT / "docs" / "reference" / "examples.cu"
COSTS = ROOT / "benchmarks" / "results" / "type-costs.csv"
# What the public types are made of: a program names none of these.
PARTS = frozenset({"CodesOf", "Followed", "Integers", "Split", "UpTo"})
SCHEMAS = {
    "family": "family.yaml",
    "workload": "workloads/NAME.yaml",
    "policy": "policies/FAMILY/DEVICE.yaml",
}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page with its mark replaced. A mark that names no generator is a KeyError, which ends the build."""
    return re.sub(
        r"^<!-- generated: (\w+) -->$", lambda mark: GENERATORS[mark[1]](), markdown, flags=re.MULTILINE
    )


def commands() -> str:
    """The help of every command, as the terminal shows it."""
    top = click.Context(app, info_name="autotune", terminal_width=100)
    sections = ["## autotune", fence(app.get_help(top))]
    for name in sorted(app.list_commands(top)):
        command: Any = app.get_command(top, name)
        context = click.Context(command, info_name=name, parent=top, terminal_width=100)
        sections += [f"## {name}", fence(command.get_help(context))]
    return "\n\n".join(sections)


def fence(text: str) -> str:
    return f"```text\n{text.strip()}\n```"


def schemas() -> str:
    """A table for each schema: key, type, whether it must be there, what it means."""
    parts = []
    for name, file in SCHEMAS.items():
        schema = json.loads((ROOT / "autotune" / "schemas" / f"{name}.json").read_text(encoding="utf-8"))
        rows = [f"| `{key}` | {kind} | {must} | {doc} |" for key, kind, must, doc in keys(schema, schema)]
        table = "\n".join(["| key | type | required | means |", "|---|---|---|---|", *rows])
        parts.append(f"## {name}\n\n`{file}`\n\n{plain(schema['description'])}\n\n{table}")
    return "\n\n".join(parts)


def keys(node: Mapping[str, Any], schema: Mapping[str, Any], path: str = "") -> Iterator[Any]:
    """(key, type, required, description) of everything in ``node``, depth first."""
    node = resolved(node, schema)
    children = {
        key: (value, key in node.get("required", ())) for key, value in node.get("properties", {}).items()
    }
    if isinstance(node.get("additionalProperties"), dict):
        children["<name>"] = (node["additionalProperties"], False)
    for key, (value, must) in children.items():
        here = f"{path}.{key}" if path else key
        full = resolved(value, schema)
        doc = plain(str(value.get("description") or full.get("description", "")))
        yield here, kind_of(full), "yes" if must else "", doc
        yield from keys(value, schema, here)
    items = node.get("items")
    for part in (
        *node.get("oneOf", ()),
        *node.get("anyOf", ()),
        *([items] if isinstance(items, dict) else ()),
    ):
        yield from keys(part, schema, path)


def resolved(node: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a ``$ref`` stands for."""
    if "$ref" not in node:
        return node
    target: Any = schema
    for step in node["$ref"].removeprefix("#/").split("/"):
        target = target[step]
    found: Mapping[str, Any] = target
    return found


def kind_of(node: Mapping[str, Any]) -> str:
    """The type in words: ``one of`` an enumeration, the types of alternatives."""
    if "const" in node:
        return f"`{node['const']}`"
    if "enum" in node:
        return "one of " + ", ".join(f"`{value}`" for value in node["enum"])
    if "type" in node:
        types = node["type"] if isinstance(node["type"], list) else [node["type"]]
        return " or ".join(types)
    alternatives = [kind_of(part) for part in (*node.get("oneOf", ()), *node.get("anyOf", ()))]
    return " or ".join(dict.fromkeys(filter(None, alternatives))) or "any"


def headers() -> str:
    """Each header with the comment at its head; those that kernels include with what they declare."""
    files = [
        path for folder in ("", "interop", "cpu", "trace") for path in sorted((INCLUDE / folder).glob("*.*"))
    ]
    return "\n\n".join(
        f"## {path.relative_to(INCLUDE.parent).as_posix()}\n\n{head_comment(path)}{declared(path)}"
        for path in files
    )


def declared(path: Path) -> str:
    """The public types and functions of a header, each as it is declared and what is said of it."""
    if path.suffix != ".cuh" or path.parent.name == "trace":
        return ""
    found = declarations(path.read_text(encoding="utf-8"))
    return "".join(
        f"\n\n```cpp\n{text}\n```\n\n{said}".rstrip() + example(type_name(text)) for text, said in found
    )


def type_name(declaration: str) -> str:
    """The name of the type that is declared; empty for a function."""
    found = re.match(r"(?:template <.*?>\s+)?(?:struct|enum class|using) (\w+)", declaration, re.DOTALL)
    return found[1] if found else ""


def example(name: str) -> str:
    """The example of a public type and what it costs. Raises KeyError for a type that has none."""
    if not name or name in PARTS:
        return ""
    first, text = examples()[name]
    kernel = re.findall(r"__global__ void (\w+)", text)[0]
    shown = f"\n\n```cpp\n{text}\n```" if name == first else f", with `{first}`"
    return f"\n\nExample: `{kernel}`{shown}\n\n{cost(kernel)}"


def examples() -> dict[str, tuple[str, str]]:
    """By type, the first type of its example and the text of that."""
    found: dict[str, tuple[str, str]] = {}
    for part in EXAMPLES.read_text(encoding="utf-8").split("\n// == ")[1:]:
        names, _, text = part.partition("\n")
        found |= {name: (names.split()[0], text.strip()) for name in names.split()}
    return found


def cost(kernel: str) -> str:
    """What the compiler made of an example: benchmarks/accessor_costs.py --types."""
    with COSTS.open(encoding="utf-8") as file:
        rows = [
            row for row in csv.DictReader(line for line in file if line[0] != "#") if row["kernel"] == kernel
        ]
    return f"`{kernel}`: " + "; ".join(
        f"{row['registers']} registers, {row['instructions']} instructions on {row['arch']}" for row in rows
    )


def declarations(source: str) -> list[tuple[str, str]]:
    """The declarations of namespace autotune without ``detail``, and the comments ahead of them; of a type with its
    public functions. Where a function has one body for the cpu and one for a GPU, or overloads, each text once."""
    found: dict[str, str] = {}
    hidden, comment, lines = False, list[str](), iter(source.splitlines())
    for line in lines:
        if line.startswith(("namespace ", "}  // namespace")):
            hidden, comment = line.startswith("namespace") and "detail" in line, []
        elif line.startswith("//"):
            comment.append(plain(line.removeprefix("//").strip()))
        elif hidden or not re.match(r"template|struct|enum|using|constexpr|AUTOTUNE_\w+ ", line):
            comment = []
        else:
            text = declaration(line, lines)
            if (
                text and "<>" not in text.partition("\n")[0] and not re.search(r"struct \w+<", text)
            ):  # no specialisation
                found.setdefault(re.sub(r"\bAUTOTUNE_(DEVICE|EVERYWHERE) ", "", text), "\n".join(comment))
            comment = []
    return list(found.items())


def declaration(line: str, lines: Iterator[str]) -> str:
    """From its first line on, without bodies; empty where a type is only announced."""
    text = [line]
    while not re.search(r"[{;]", text[-1]):
        text.append(next(lines))
    is_type = any(re.match(r"(struct|enum)\b", part) for part in text)
    if is_type and text[-1].endswith(";") and "{" not in text[-1]:
        return ""
    text[-1] = re.sub(r"\s*\{.*|;$", "", text[-1])
    members: list[str] = []
    if is_type and not re.search(r"\};\s*$|;\s*$", line):
        for inner in lines:
            if inner.startswith("}"):
                break
            if inner.strip() == "private:":
                members.append("")  # nothing after it
            if members and not members[-1]:
                continue
            if re.match(r"  (template|AUTOTUNE_\w+) ?", inner):
                members.append(inner)
                while not re.search(r"[{;]|>$", members[-1]) and not members[-1].endswith(">"):
                    members.append(next(lines))
                members[-1] = re.sub(r"\s*\{.*", ";", members[-1])
    members = [member for member in members if member]
    return "\n".join(
        [*text[:-1], text[-1] + (" {" if members else ";"), *members, *(["};"] if members else [])]
    )


def head_comment(path: Path) -> str:
    """The ``//`` lines a file begins with, as Markdown (a list after an empty line).

    One without is a ValueError: it would say nothing to a reader.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    head: list[str] = []
    for line in lines:
        if not line.startswith("//"):
            break
        if "SPDX-License-Identifier" in line:
            continue
        text = line.removeprefix("//").strip()
        if text.startswith("- "):
            head.append("")
        head.append(plain(text))
    if not head:
        raise ValueError(f"{path.name} begins with no comment: say in its first lines what it is for")
    return "\n".join(head)


def plain(text: str) -> str:
    """What Markdown and HTML would take as marks is taken as letters, but for code between backticks."""
    parts = text.split("`")
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"([*_\[\]|])", r"\\\1", parts[i].replace("&", "&amp;").replace("<", "&lt;"))
    return "`".join(parts)


GENERATORS = {"commands": commands, "schemas": schemas, "headers": headers}
