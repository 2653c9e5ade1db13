"""The layout receipt: of each array in each kernel, the bytes that are asked for and moved, and the policies that set
its layout. Traced for the winner and the control of a record, kept in ``receipt.json`` there, shown in its report."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from autotune.advise.advice import Costs, trace_configurations
from autotune.advise.changes import find_arrays
from autotune.declaration import Configuration, Family, families, load_family
from autotune.errors import AutotuneError, StoreError
from autotune.files import plain_file, policy_folders, write_text
from autotune.ranking import SECTOR, SHARED
from autotune.record import Study, read_record
from autotune.report import Block, Column, Table, drop_empty_columns, write_all

RECEIPT = "receipt.json"
_SCHEMA = 1
_COUNTED = ("l2_read_bytes", "dram_bytes")  # of autotune profile
_COLUMNS = (
    Column("role", "role"),
    Column("kernel", "kernel"),
    Column("array", "array"),
    Column("set_by", "set by"),
    Column("asked_bytes", "asked for", "bytes"),
    Column("moved_bytes", "moved, traced", "bytes"),
    Column("moved_over_asked", "× asked for", "ratio"),
    Column("passes", "passes of L1", "count"),
    Column("conflicts", "bank conflicts", "count"),
    Column("l2_read_bytes", "read from L2, counted", "bytes"),
    Column("dram_bytes", "device memory, counted", "bytes"),
)
_ABOUT = (
    "Asked for are the different bytes of each request of a warp; moved, traced, are the 32-byte sectors that a "
    "modelled first cache does not have: of the first blocks of a launch on the cpu device, which stand for all. "
    "Counted is what autotune profile counted, of a kernel and not of an array."
)


@dataclass(frozen=True)
class ReceiptLine:
    """One array in one kernel of a configuration. ``set_by`` are the layout policies of it, with their values."""

    kernel: str
    array: str
    set_by: str
    asked_bytes: float | None = None
    moved_bytes: float | None = None
    passes: float | None = None
    conflicts: float | None = None


def write_receipts(family: Family, record: Path, data: Path) -> list[str]:
    """Trace the winner and the control of each study of ``family`` in a record's folder, write ``receipt.json`` there
    and the reports again. Returns what was written, and what could not be traced, each with the reason. Raises
    StoreError, where there is no such record or a file cannot be written, and CompilerError."""
    known, lost = read_record(str(record)), list[str]()
    studies = [study for study in known if study.family == family.name]
    if not studies:
        raise StoreError(f"{record} has no study of family {family.name}: name the folder of a sweep of it")
    receipts = []
    for study in studies:
        control, decision = family.space.control, study.decision
        wanted = (control, *([decision.winner.configuration] if decision else ()))
        try:
            costs = trace_configurations(family, study.workload, data, wanted)
        except AutotuneError as problem:
            lost.append(f"warning: no receipt of {study.workload}: {problem}")
            continue
        lines = {one.id: [asdict(line) for line in _make_lines(family, each)] for one, each in costs.items()}
        counted = {one.id: dict(study.about.counters.get(one.id, {})) for one in costs}
        receipts.append({"workload": study.workload, "configurations": lines, "counted": counted})
    content = {
        "schema": _SCHEMA, "family": family.name, "source_digest": family.source_digest,
        "space_digest": family.space_digest, "receipts": receipts,
    }  # fmt: skip
    path = write_text(record / RECEIPT, json.dumps(content, indent=1) + "\n")
    made = write_all(known, record, {family.name: family}, record, policy_folders())
    return [*lost, *(f"made {one}" for one in (path, made["report"]))]


def _make_lines(family: Family, costs: Costs) -> Iterator[ReceiptLine]:
    for kernel in costs.kernels:
        for one in kernel.arrays:
            set_by = describe_policies(family, costs.configuration, one.name.split("+"))
            if one.name == SHARED:
                figures = {"passes": one.wavefronts, "conflicts": one.wavefronts - one.requests}
                yield ReceiptLine(kernel.kernel, SHARED, "the kernel", **figures)
            else:
                moved = one.missed * SECTOR
                yield ReceiptLine(kernel.kernel, one.name, set_by, one.asked_bytes, moved, one.wavefronts)


def describe_policies(family: Family, configuration: Mapping[str, Any], arrays: Sequence[str]) -> str:
    """The layout policies of arrays that are stored together, with their values; says where there is none."""
    found = [
        f"{policy.name}={configuration[policy.name]}"
        for policy in family.space.policies
        if policy.layout and policy.name in configuration and {*find_arrays(family, policy)} & {*arrays}
    ]
    return ", ".join(found) or "its declaration"


def make_blocks(study: Study, family: Family | None, folder: Path) -> list[Block]:
    """The receipt of a study's winner and control, as ``receipt.json`` in ``folder`` has it; without one, the arrays of
    the family with the policies that set them; and the hardware counters that the study has."""
    decision = study.decision
    if decision is None:
        return []
    kept, note = _read(study, folder)
    if family is None and study.family in families():
        family = load_family(study.family)
    rows = []
    roles = {"winner": decision.winner.configuration, "control": study.control}
    if roles["winner"] == study.control:
        del roles["control"]
    for role, configuration in roles.items():
        lines = kept.get(configuration.id) or (_declared(family, configuration) if family else [])
        rows += [_row(role, line) for line in lines]
        for kernel, counters in study.about.counters.get(configuration.id, {}).items():
            counted = [counters.get(name) for name in _COUNTED]
            if any(value is not None for value in counted):
                rows.append((role, kernel, "all", None, *(None,) * 5, *counted))
    advice = f"{note} `autotune advise {study.family} --record {folder}` traces them, without a GPU."
    table = Table("layout_receipt", "What each array costs, and which policies set it", _COLUMNS, tuple(rows))
    shown = drop_empty_columns(table) if rows else None
    return [Block(title="Layout receipt", text=_ABOUT if kept else advice, table=shown, stacked=True)]


def _row(role: str, line: ReceiptLine) -> tuple[Any, ...]:
    ratio = line.moved_bytes / line.asked_bytes if line.moved_bytes is not None and line.asked_bytes else None
    return (role, line.kernel, line.array, line.set_by, line.asked_bytes, line.moved_bytes, ratio, line.passes,
            line.conflicts, None, None)  # fmt: skip


def _declared(family: Family, configuration: Configuration) -> list[ReceiptLine]:
    taken = [(kernel.name, name) for kernel in family.kernels.values() for name in kernel.arguments]
    arrays = [(kernel, name) for kernel, name in taken if name in family.data]
    return [ReceiptLine(*one, describe_policies(family, configuration, one[1:])) for one in arrays]


def _read(study: Study, folder: Path) -> tuple[dict[str, list[ReceiptLine]], str]:
    """The lines of each configuration, and why there are none."""
    try:
        content = json.loads(plain_file(folder / RECEIPT).read_text(encoding="utf-8"))
        about = study.about
        wanted = {"source_digest": about.source_digest, "space_digest": about.space_digest}
        if content["family"] != study.family or any(content[n] != d for n, d in wanted.items() if d):
            return {}, f"{RECEIPT} was made from other sources than those that were measured."
        found = [one for one in content["receipts"] if one["workload"] == study.workload]
        kept = [pair for one in found for pair in one["configurations"].items()]
        lines = {name: [ReceiptLine(**line) for line in many] for name, many in kept}
    except FileNotFoundError:
        return {}, "Bytes were not traced."
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        return {}, f"{RECEIPT} cannot be read ({type(problem).__name__})."
    return lines, "" if lines else "Bytes were not traced on this workload."
