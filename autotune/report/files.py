"""All files of a report, in one folder: what a sweep, or ``autotune report``, leaves behind."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from autotune.compile import Variant
from autotune.declaration import Configuration, Family, families, load_family
from autotune.errors import AutotuneError, PolicyFileError
from autotune.extensions import blocks_of
from autotune.files import csv_text, policy_folders, write_text
from autotune.policy import file_name, read_policy_file
from autotune.record import Study, read_ceilings, write_results
from autotune.report.page import write_report
from autotune.report.result_section import Use
from autotune.report.static_pass import read_static
from autotune.report.tables import effects_csv_frame, summary_frame
from autotune.report.trials import Code

CEILINGS = "limits.json"  # the device's measured ceilings, optional, next to the record
STATIC = "static.csv"  # a static pass of the family, optional, in the same folder


def write_all(
    studies: Sequence[Study],
    folder: Path,
    known: Mapping[str, Family] | None = None,
    record: Path | None = None,
    policies: Sequence[Path] = (),
) -> dict[str, Path]:
    """Write ``results.csv``, ``summary.csv``, ``effects.csv`` and ``report.html`` to ``folder``: name -> path.

    ``known`` are families that do not ship with autotune, by name. ``record`` is the record's folder, if it is another
    one: ceilings and a static pass may be in either. ``policies`` are the folders where a program would look for the
    winners. Raises StoreError.
    """
    ceilings = read_ceilings(_find_in_either(folder, record, CEILINGS))
    static = read_static(_find_in_either(folder, record, STATIC), studies)
    code = make_generator(known or {})
    return {
        "results": write_results(studies, folder / "results.csv"),
        "summary": write_text(folder / "summary.csv", csv_text(summary_frame(studies))),
        "effects": write_text(folder / "effects.csv", csv_text(effects_csv_frame(studies))),
        "report": write_report(
            studies,
            folder / "report.html",
            ceilings=ceilings,
            code=code,
            static=static,
            use=lambda study: find_use(study, policies, known or {}),
            more=lambda study: blocks_of(study, (known or {}).get(study.family), record or folder),
        ),
    }


def find_use(study: Study, policies: Sequence[Path], known: Mapping[str, Family]) -> Use:
    """The policy file in ``policies`` that has the study's winner as its own for this workload, and the call that takes
    it."""
    decision = study.decision
    for folder in policies if decision else ():
        path = folder / file_name(study.family, study.device)
        try:
            entries = read_policy_file(path).entries if path.is_file() else {}
        except PolicyFileError:
            continue  # the command that reads it says so
        entry = entries.get(study.workload)
        if decision and entry and Configuration(entry.configuration) == decision.winner.configuration:
            return Use(str(path), _call(study, folder, known))
    return Use()


def _call(study: Study, folder: Path, known: Mapping[str, Family]) -> str:
    """What a program writes; empty where nobody knows the folder of the family."""
    name = study.family if study.family in families() else ""
    if not name and study.family in known:
        name = str(known[study.family].folder)
    if not name:
        return ""
    told = [json.dumps(name, ensure_ascii=False)]
    if study.about.device_kind == "cpu" or study.device.startswith("cpu-"):
        told.append('device="cpu"')
    if folder not in policy_folders():
        told.append(f"policies={json.dumps(str(folder), ensure_ascii=False)}")
    return f"autotune.load({', '.join(told)})"


def _find_in_either(folder: Path, record: Path | None, name: str) -> Path:
    return folder / name if record is None or (folder / name).exists() else record / name


def write_static_report(folder: Path, studies: Sequence[Study], known: Mapping[str, Family]) -> Path:
    """Write ``report.html`` to ``folder``: the ``studies`` of the record there, if any, then the static pass there.
    Raises StoreError."""
    ceilings, static = read_ceilings(folder / CEILINGS), read_static(folder / STATIC)
    return write_report(
        studies, folder / "report.html", ceilings=ceilings, code=make_generator(known), static=static
    )


def make_generator(known: Mapping[str, Family]) -> Code:
    """What gives the policy struct that a family generates for a configuration; empty where the family is not there,
    was declared otherwise when it was measured, or knows no such configuration."""

    @cache
    def family_of(name: str) -> Family | None:
        if name in known:
            return known[name]
        try:
            return load_family(name) if name in families() else None
        except AutotuneError:
            return None

    def struct(study: Study, configuration: Configuration) -> str:
        family = family_of(study.family)
        if family is None or study.about.space_digest not in ("", family.space_digest):
            return ""
        try:
            asked = family.space.configuration(configuration.id)
            options = family.choose_options(study.about.options)
            made = Variant.make(family, asked, options).source.struct
        except AutotuneError:
            return ""
        made = re.sub(r"^struct \w+", "struct Policy", made)  # the name is a hash of the rest
        return made.replace(">, autotune::", ">,\n      autotune::")

    return struct
