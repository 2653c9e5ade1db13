"""Sweeps of many inputs as one CSV: what ``selection_sweep.py`` measured, as studies again.

    python benchmarks/selection_record.py round/taught.csv --out benchmarks/results/selection-taught-h200.csv.xz

joins tables into one.

A row is a configuration on an input: its time in ms (of the finalists, the interleaved one; of the others the first
median, scaled as the finalists' changed), and 1 where it was proved on odd sizes too. What an input is (extents,
scalars, options, and the numbers that made it) is in its first row.
"""

import argparse
import csv
import json
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from result_files import read_rows, write_rows
from selection_inputs import RANGES
from selection_inputs import write as write_inputs

from autotune.compile import KernelProfile, Variant
from autotune.declaration import Configuration, Family, load_family, load_workload, prepare
from autotune.errors import UnknownName
from autotune.files import find_bundled
from autotune.layout import layouts_digest
from autotune.policy import feature_values
from autotune.record import Measurement, Provenance, Study, Trial

COLUMNS = (
    "family",
    "input",
    "about",
    "configuration",
    "time_ms",
    "first_ms",
    "spread",
    "samples",
    "proved",
    "kernel",
    "needs",
)

_SMS = 132  # of an H200


def rows_of(name: str, point: Mapping[str, int], study: Study) -> Iterator[dict[str, object]]:
    """The rows of a study of a family; ``point`` is what made its input."""
    about = {
        "point": dict(point), "features": dict(study.about.features), "scalars": dict(study.about.scalars),
        "options": dict(study.about.options), "compiler": study.about.compiler, "driver": study.about.driver,
        "date": study.about.date, "device": study.about.device_name,
    }  # fmt: skip
    told = json.dumps(about, sort_keys=True)
    for trial in study.trials:
        if trial.measurement is None:
            continue
        measured, ratio = trial.measurement, study.about.retime_ratio or 1.0
        took = measured.retimed_ms or measured.median_ms * ratio
        needs = {
            p.kernel: [p.block_size, p.registers, p.shared_bytes, p.blocks_per_sm] for p in trial.profiles
        }
        yield {
            "family": name, "input": study.workload, "about": told, "configuration": trial.configuration.id,
            "time_ms": f"{took:.6g}", "first_ms": f"{measured.median_ms:.6g}",
            "spread": f"{measured.spread:.3g}", "samples": measured.samples, "proved": int(bool(trial.proved)),
            "kernel": max(needs, key=lambda kernel: trial.kernel_ms.get(kernel, 0.0), default=""),
            "needs": json.dumps(needs) if trial.proved else "",
        }  # fmt: skip
        told = ""


def append(path: Path, name: str, point: Mapping[str, int], study: Study) -> None:
    """Add the rows of a study to a table that is not compressed; it is begun where there is none."""
    if not path.exists():
        write_rows(path, [], COLUMNS)
    with path.open("a", newline="", encoding="utf-8") as file:
        csv.DictWriter(file, COLUMNS, lineterminator="\n").writerows(rows_of(name, point, study))


def read(*paths: Path, only: str = "") -> dict[str, list[tuple[Mapping[str, int], Study]]]:
    """By family (``only`` one, if named), what made each input and its study, as today's sources would have
    it. A policy gone since counts with its best value; what has a value or a kernel that is gone is left out."""
    groups: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in (row for path in paths for row in read_rows(path) if only in ("", row["family"])):
        groups.setdefault((row["family"], row["input"]), []).append(row)
    families = {name: load_family(RANGES[name].family) for name in dict.fromkeys(name for name, _ in groups)}
    found: dict[str, list[tuple[Mapping[str, int], Study]]] = {}
    for (name, workload), rows in groups.items():
        about = json.loads(rows[0]["about"])
        family = families[name]
        if family.features.keys() - feature_values(
            family.features, {**about["scalars"], **about["features"]}
        ):
            about["features"] |= find_sizes(name, about["point"])
        today: dict[Configuration, Mapping[str, str]] = {}
        for row in sorted(rows, key=lambda row: float(row["time_ms"])):
            kernels = {row["kernel"], *json.loads(row["needs"] or "{}")} - {""}
            configuration = _configuration(family, row["configuration"])
            if configuration and kernels <= family.kernels.keys():
                today.setdefault(configuration, row)
        found.setdefault(name, []).append((about["point"], _study(family, workload, about, today)))
    return found


def find_sizes(name: str, point: Mapping[str, int]) -> Mapping[str, int]:
    """The extents of an input, as the family has them today."""
    family = load_family(RANGES[name].family)
    with tempfile.TemporaryDirectory() as folder:
        (path,) = write_inputs(RANGES[name], [point], Path(folder))
        return prepare(family, load_workload(family, path), find_bundled("workloads") / "data").sizes


def _configuration(family: Family, text: str) -> Configuration | None:
    """Policies that came after it was recorded have their defaults; None where a value is gone."""
    words = dict(word.split("=", 1) for word in text.split(","))
    try:
        named = {p.name: p.value(words[p.name]) for p in family.space.policies if p.name in words}
    except UnknownName:
        return None
    return Configuration({**family.space.control, **named})


def _study(
    family: Family,
    workload: str,
    about: Mapping[str, Mapping[str, float]],
    rows: Mapping[Configuration, Mapping[str, str]],
) -> Study:  # fmt: skip
    sizes = {name: int(value) for name, value in about["features"].items()}
    numbers = {**about["scalars"], **sizes}
    told = {
        **about, "features": sizes, "multiprocessors": _SMS,
        "compared": {name: expression.text for name, expression in family.features.items()},
        "device_kind": "cuda", "device_name": about["device"], "compute_capability": "9.0", "protocol": {},
        "accuracy": list(family.accuracy),
        "source_digest": family.source_digest, "space_digest": family.space_digest,
        "layouts_digest": layouts_digest(), "workload_digest": workload,
    }  # fmt: skip
    del told["point"], told["device"]
    return Study(
        family=family.name, workload=workload, device="nvidia-h200", identity=workload, control=family.space.control,
        about=Provenance.from_dict(told),
        trials=tuple(_trial(family, workload, *each, numbers, about["options"]) for each in rows.items()),
    )  # fmt: skip


def _trial(
    family: Family,
    workload: str,
    configuration: Configuration,
    row: Mapping[str, str],
    numbers: Mapping[str, float],
    options: Mapping[str, Any],
) -> Trial:  # fmt: skip
    first, last = float(row["first_ms"]), float(row["time_ms"])
    measured = Measurement(
        median_ms=first, minimum_ms=first, spread=float(row["spread"]), samples=int(row["samples"]),
        retimed_ms=last if last != first else 0.0, kernel_ms={row["kernel"]: last} if row["kernel"] else {},
    )  # fmt: skip
    is_proved = row["proved"] == "1"
    needs = (
        json.loads(row["needs"]) if row["needs"] else {row["kernel"]: (0, 0, 0, 0)} if row["kernel"] else {}
    )
    profiles = (
        KernelProfile(
            kernel=kernel,
            block_size=block,
            registers=registers,
            dynamic_shared_bytes=shared,
            blocks_per_sm=at_once,
            blocks=blocks_of(family, configuration, kernel, numbers, options),
        )
        for kernel, (block, registers, shared, at_once) in needs.items()
        if kernel in family.kernels
    )
    return Trial(
        family=family.name, workload=workload, device="nvidia-h200", configuration=configuration, state="measured",
        measurement=measured, profiles=tuple(profiles), proof=2 * is_proved, proved=({},) if is_proved else (),
    )  # fmt: skip


def blocks_of(
    family: Family, configuration: Configuration, kernel: str, numbers: Mapping[str, float], options: Mapping[str, Any]
) -> int:  # fmt: skip
    """Of the kernel's grid; 0 where it reads numbers of the compiled source or of other arrays, which no record has."""
    known = {**numbers, **options, **configuration}
    if family.kernels[kernel].names - known.keys():
        return 0
    variant = Variant.make(family, configuration, options)
    return math.prod(variant.geometry(family.kernels[kernel], known).grid)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tables", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(words)
    write_rows(options.out, [row for path in options.tables for row in read_rows(path)], COLUMNS)


if __name__ == "__main__":
    main()
