"""``autotune lint``: is a family folder one that can be swept, and is the sweep worth its time?

Reads text only: no GPU, no compiler, and none of the family's Python is run.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import jsonschema
from rich.console import Console

from autotune.cli.lint.declaration import check_declaration
from autotune.cli.lint.equal_values import check_equal_values
from autotune.cli.lint.findings import Declared, Finding, Lines, lines_of
from autotune.cli.lint.sources import check_sources
from autotune.cli.lint.storage import check_storage
from autotune.cli.lint.workloads import check_workloads
from autotune.compile import default_header
from autotune.declaration import Family, families, load_family, written_out, yamlfile
from autotune.errors import AutotuneError, FamilyError, UnknownName

_PLACES = {"kernel": "kernels", "policy": "policies", "extent": "extents", "option": "options", "scalar": "scalars",
           "feature": "features", "constraint": "constraints", "preset": "presets", "data": "data",
           "tolerance": "tolerance", "bytes": "bytes", "operations": "operations", "needs": "needs"}  # fmt: skip


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
        content = written_out(content, f"family {content['family']}")
    except FamilyError as problem:
        yield Finding("declaration", file, lines.get(_place(str(problem)), 1), str(problem))
        return
    declared = Declared(folder, content, lines)
    try:
        declared.defined  # noqa: B018 - parses family.py
    except (SyntaxError, ValueError) as problem:
        at = getattr(problem, "lineno", None) or 1
        yield Finding("declaration", folder / "family.py", at, f"{problem}: correct it")
        return
    source = folder / content["source"]
    if not source.is_file():
        message = f"source {content['source']!r} is not there: write it, or correct the name"
        yield declared.found("declaration", message, "source")
        return
    ruled = [
        *check_declaration(declared),
        *check_equal_values(declared),
        *check_sources(declared),
        *check_storage(declared),
    ]
    yield from ruled
    try:
        family = load_family(folder.resolve())  # a path: a name would mean one that ships
    except AutotuneError as problem:
        # What a rule has said with more, loading need not say again.
        if not any(finding.is_error and finding.path == file for finding in ruled):
            yield declared.found("declaration", str(problem), *_place(str(problem)))
        return
    yield from check_workloads(declared, family)
    yield from _header(declared, family)


def _header(declared: Declared, family: Family) -> Iterator[Finding]:
    header = declared.folder / "default.cuh"
    if not header.is_file():
        return
    try:
        made = default_header(family)
    except AutotuneError as problem:  # a layout that the control asks for and that cannot be
        yield declared.found("declaration", str(problem), *_place(str(problem)))
        return
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
        while place and place not in lines:
            place = place[:-1]
        yield Finding("declaration", file, lines.get(place, 1), f"{where}: {yamlfile.explained(best)}")


def _place(message: str) -> tuple[str, ...]:
    """The key of family.yaml that loading speaks of: ``family f: policy axes: …`` is policies, axes."""
    match = re.search(r": (\w+)(?: (\w+))?(?=[:;]| \(|$)", message)
    return (_PLACES[match[1]], match[2] or "") if match and match[1] in _PLACES else ()
