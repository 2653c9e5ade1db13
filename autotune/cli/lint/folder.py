"""``autotune lint``: is a family folder one that can be swept, and is the sweep worth its time?

It loads the declaration, whose first mistake comes alone, and reads the rest as text: no GPU, no compiler, and none of
the family's Python is run.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
from rich.console import Console

from autotune.cli.lint.declaration import check_declaration, check_extents
from autotune.cli.lint.findings import Declared, Finding, Lines, line_of, lines_of
from autotune.cli.lint.sources import check_sources
from autotune.cli.lint.workloads import check_workloads
from autotune.compile import default_header
from autotune.declaration import families, load_family, yamlfile
from autotune.errors import AutotuneError, FamilyError, UnknownName

_PLACES = {
    **{key: f"{key}s" for key in ("kernel", "extent", "option", "scalar", "feature", "constraint", "preset")},
    **{
        key: key
        for key in ("source", "data", "explore", "launch", "tolerance", "bytes", "operations", "needs")
    },
    "policy": "policies",
}


def lint(name_or_folder: str) -> list[Finding]:
    """Every mistake that text shows, errors first, then by file and line. Raises UnknownName when there is no such
    family or folder."""
    known = families()
    folder = known.get(name_or_folder) or Path(name_or_folder)
    if not folder.is_dir():
        raise UnknownName("family or folder", name_or_folder, known)
    found = list(dict.fromkeys(_mistakes(folder)))
    return sorted(found, key=lambda finding: (not finding.is_error, finding.path, finding.line))


def print_findings(
    found: list[Finding], name: str, strict: bool, out: Console, as_json: bool = False
) -> None:
    """A line for each finding, and the count; or the findings as one JSON array and nothing else. Raises FamilyError
    when there are errors, or with ``strict`` any."""
    if as_json:
        print(json.dumps([finding.to_dict() for finding in found], indent=1))
    else:
        for finding in found:
            out.print(str(finding))
    errors = sum(finding.is_error for finding in found)
    counts = {"error": errors, "warning": len(found) - errors}
    counted = ", ".join(f"{count} {what}{'' if count == 1 else 's'}" for what, count in counts.items())
    if errors or (strict and found):
        raise FamilyError(f"{name}: {counted}; mend what is listed above and lint again")
    if not as_json:
        out.print(f"{name}: {counted}")


def _mistakes(folder: Path) -> Iterator[Finding]:
    """The rules need a declaration of the right shape, so what is malformed comes first and alone."""
    file = folder / "family.yaml"
    if not file.is_file():
        yield Finding(
            "declaration", file, 1, "is not there: a family is a folder with one; autotune new NAME writes it"
        )
        return
    try:
        content = yamlfile.read(file, FamilyError)
    except FamilyError as problem:
        line = re.search(r" line (\d+) column", str(problem))
        yield Finding(
            "declaration", file, int(line[1]) if line else 1, str(problem).removeprefix(f"{file}: ")
        )
        return
    lines = lines_of(file)
    malformed = list(_schema(content, file, lines))
    yield from malformed
    if malformed:
        return
    try:
        family = load_family(folder.resolve())  # a path: a name would mean one that ships
        declared = Declared(folder, family, lines)
        yield from _of_text(declared, content.get("extents", {}))
    except AutotuneError as problem:
        yield Finding("declaration", file, line_of(lines, _place(str(problem), content)), str(problem))
    except (SyntaxError, ValueError) as problem:
        at = getattr(problem, "lineno", None) or 1
        yield Finding("declaration", folder / "family.py", at, f"{problem}: correct it")


def _of_text(declared: Declared, extents: Mapping[str, Any]) -> Iterator[Finding]:
    """What is found in a family that can be loaded. Raises AutotuneError, and SyntaxError of family.py."""
    yield from check_declaration(declared)
    yield from check_extents(declared, extents)
    yield from check_sources(declared)
    yield from check_workloads(declared)
    header = declared.folder / "default.cuh"
    if not header.is_file():
        return
    made = default_header(declared.family)
    if header.read_text(encoding="utf-8", errors="replace") != made:
        how = f"autotune show {declared.folder} control --header > {header}"
        yield Finding("stale-header", header, 1, f"is not what family.yaml makes now: {how}", is_error=False)


def _schema(content: dict[str, object], file: Path, lines: Lines) -> Iterator[Finding]:
    for problem in jsonschema.Draft202012Validator(yamlfile.schema("family")).iter_errors(content):
        if unknown := yamlfile.unknown_keys(problem):
            around, messages = unknown
            for key, message in sorted(messages.items()):
                yield Finding("declaration", file, lines.get((*around, key), 1), message)
            continue
        best = jsonschema.exceptions.best_match([problem])
        place = tuple(best.absolute_path)
        where = ".".join(map(str, place)) or "top level"
        yield Finding("declaration", file, line_of(lines, place), f"{where}: {yamlfile.explained(best)}")


def _place(message: str, content: Mapping[str, Any]) -> tuple[str | int, ...]:
    """The key of family.yaml that loading speaks of: ``family f: policy axes: …`` is policies, axes."""
    for section in ("constraints", "explore"):
        for i, rule in enumerate(content.get(section, ())):
            if f"break a constraint: {rule['reason']};" in message:
                return (section, i)
    for match in re.finditer(r": (\w+)(?: (\w+))?(?=[:;]| \(|$)", message):
        if match[1] in _PLACES:
            return (_PLACES[match[1]], match[2] or "")
    return ()
