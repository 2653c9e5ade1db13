"""All files of a report, in one folder: what a sweep, or ``autotune report``, leaves behind."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from autotune.errors import AutotuneError
from autotune.family import Family, families, load
from autotune.record import Study
from autotune.report.conclusions import write_effects, write_summary
from autotune.report.limits import read_limits
from autotune.report.page import write_report
from autotune.report.results import write_results
from autotune.report.trials import Code
from autotune.space import Configuration
from autotune.variant import Variant

__all__ = ["LIMITS", "generated", "write_all"]

LIMITS = "limits.json"  # the device's measured ceilings, where they lie beside the record


def write_all(
    studies: Sequence[Study], folder: Path, known: Mapping[str, Family] | None = None
) -> dict[str, Path]:
    """Write ``results.csv``, ``summary.csv``, ``effects.csv`` and ``report.html`` to ``folder``: name -> path.

    ``known`` are families that do not ship with autotune, by name. Raises StoreError.
    """
    limits = read_limits(folder / LIMITS)
    code = generated(known or {})
    return {
        "results": write_results(studies, folder / "results.csv"),
        "summary": write_summary(studies, folder / "summary.csv"),
        "effects": write_effects(studies, folder / "effects.csv"),
        "report": write_report(studies, folder / "report.html", limits=limits, code=code),
    }


def generated(known: Mapping[str, Family]) -> Code:
    """What gives the policy struct that a family generates for a configuration; empty where the family is not there,
    was declared otherwise when it was measured, or knows no such configuration."""

    @cache
    def family_of(name: str) -> Family | None:
        if name in known:
            return known[name]
        try:
            return load(name) if name in families() else None
        except AutotuneError:
            return None

    def struct(study: Study, configuration: Configuration) -> str:
        family = family_of(study.family)
        if family is None or study.about.get("space_digest", family.space_digest) != family.space_digest:
            return ""
        try:
            asked = family.space.configuration(configuration.id)
            options = family.chosen_options(study.about.get("options", {}))
            made = Variant(family, asked, tuple(options.items())).source.struct
        except AutotuneError:
            return ""
        made = re.sub(r"^struct \w+", "struct Policy", made)  # the name is a hash of the rest
        return made.replace(">, autotune::", ">,\n      autotune::")

    return struct
