"""``autotune new`` and ``autotune lint`` with their options."""

import json
import shlex
from dataclasses import asdict
from pathlib import Path

import click

from autotune.authoring.lint import lint
from autotune.authoring.new import new_family
from autotune.cli import options
from autotune.errors import FamilyError


@click.argument(
    "name", metavar="NAME", help="Lower-case letters, digits and _; the folder is created as ./NAME."
)
@options.place("Create the folder in DIR.", default=Path())
def new_command(name: str, out_: Path) -> None:
    """Print what was written, and the commands that come next."""
    folder, made = new_family(name, out_)
    shown = shlex.quote(str(folder if folder.is_absolute() else f"./{folder}"))
    print(f"made         {shown}: {', '.join(path.relative_to(folder).as_posix() for path in made)}")
    for what, command in {
        "check it": f"autotune lint {shown}",
        "compile it": f"autotune sweep {shown} --static",
        "tune it": f"autotune sweep {shown}",
        "run it": f"autotune run {shown} --explain",
    }.items():
        print(f"{what:12} {command}")


@click.argument("folder", metavar="FOLDER", help="Folder with a family.yaml, or a family's name.")
@options.option("--strict", help="Treat warnings as errors.")
@options.option("--json", "as_json", help="Print one JSON array of path, line, severity, rule and message.")
def lint_command(folder: str, strict: bool, as_json: bool) -> None:
    """Print a line for each finding, and the count; or the findings as one JSON array and nothing else. Raises
    FamilyError when there are errors, or with ``strict`` any."""
    findings = lint(folder)
    if as_json:
        print(json.dumps([asdict(finding) for finding in findings], indent=1, default=str))
    else:
        for finding in findings:
            print(finding)
    errors = sum(finding.is_error for finding in findings)
    counts = {"error": errors, "warning": len(findings) - errors}
    counted = ", ".join(f"{count} {what}{'' if count == 1 else 's'}" for what, count in counts.items())
    if errors or (strict and findings):
        raise FamilyError(f"{folder}: {counted}; fix what is listed above and lint again")
    if not as_json:
        print(f"{folder}: {counted}")
