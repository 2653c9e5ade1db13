"""The static pass on the page: registers and occupancy by architecture, occupancy over block sizes, the next block."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from autotune.compile import KernelProfile, StaticProfile, occupancy_model, static_pass
from autotune.declaration import Family
from autotune.errors import DeviceError, StoreError
from autotune.files import cell_text, clean, csv_text, plain_file, write_text
from autotune.record import Study, find_newest
from autotune.report.blocks import Block, Column, Table
from autotune.report.charts import Chart, Line, line_traces

_FIGURES = tuple(name for name in KernelProfile.__dataclass_fields__ if name not in ("blocks", "numbers"))
_DIGESTS = ("source_digest", "space_digest")


def write_static(family: Family, rows: Sequence[StaticProfile], path: Path) -> None:
    """``static.csv``: a row per architecture, configuration and kernel, with what the figures suggest. Raises
    StoreError."""
    table = list(_list_rows(family, rows))
    frame = pd.DataFrame(table, columns=list(dict.fromkeys(name for line in table for name in line)))
    for name in (*_FIGURES, "registers_to_next_block"):
        if name in frame and name not in ("kernel", "occupancy", "limited_by"):
            # A configuration that does not compile must not make 32 32.0.
            frame[name] = frame[name].astype("Int64")
    write_text(path, csv_text(frame))


def _list_rows(family: Family, rows: Sequence[StaticProfile]) -> Iterator[dict[str, object]]:
    digests = {name: getattr(family, name) for name in _DIGESTS}
    taken = _NEEDED | set(_FIGURES) | {"reason"}
    for row in rows:
        line: dict[str, object] = {
            "family": family.name, "arch": row.arch, "configuration": row.configuration.id, **digests,
            **{f"policy_{n}" if n in taken else n: value for n, value in row.configuration.items()},
        }  # fmt: skip
        if row.message:
            yield {**line, "state": "compile_failed", "reason": clean(row.message)}
        for kernel in row.kernels:
            of_block = (kernel.block_size, kernel.registers, kernel.shared_bytes)
            registers = occupancy_model.next_step(row.arch, *of_block) if kernel.limited_by else None
            figures = asdict(kernel)
            del figures["numbers"]
            if not kernel.limited_by:  # what depends on a block that is not known is blank
                figures |= dict.fromkeys(static_pass.OF_THE_BLOCK)
            yield {**line, "state": "compiled", "reason": "", **figures, "registers_to_next_block": registers}


MOST_ROWS = 20  # of a table; static.csv has all

_NUMBERS = (
    "block_size", "registers", "spill_store_bytes", "spill_load_bytes", "static_shared_bytes", "dynamic_shared_bytes",
    "blocks_per_sm", "occupancy", "registers_to_next_block",
)  # fmt: skip

_NEEDED = {
    "family", "arch", "configuration", "state", "kernel", "limited_by",
    *_NUMBERS, *_DIGESTS,
}  # fmt: skip


@dataclass(frozen=True)
class Static:
    """A static pass as the page shows it; ``note`` says why there is nothing to show."""

    family: str
    archs: tuple[str, ...]
    blocks: tuple[Block, ...] = ()
    note: str = ""


def read_static(path: Path, studies: Sequence[Study] = ()) -> Static | None:
    """The static pass in ``path`` (``static.csv``); None where there is no such file, or one of an older version. One
    of other sources or another declaration than the newest of ``studies`` of its family is a note and no more. Raises
    StoreError for a file that is no table."""
    try:
        frame = pd.read_csv(plain_file(path), keep_default_na=False, na_values=[""])
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as problem:
        raise StoreError(f"cannot read the static pass in {path}: {problem}") from None
    if frame.empty or not set(frame.columns) >= _NEEDED:
        return None
    try:
        return _static(_convert_types(frame), path, studies)
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError) as problem:
        raise StoreError(
            f"cannot read the static pass in {path}: {type(problem).__name__}: {problem}; autotune sweep --static "
            "writes it again"
        ) from None


def _convert_types(frame: pd.DataFrame) -> pd.DataFrame:
    """``frame`` with numbers where numbers belong, and texts as they were before they became cells. Raises
    ValueError."""
    columns = {name: pd.to_numeric(frame[name]) for name in _NUMBERS}
    for name in set(frame.columns) - columns.keys():
        columns[name] = frame[name].map(lambda value: cell_text(value) if isinstance(value, str) else value)
    return frame.assign(**columns)


def _static(frame: pd.DataFrame, path: Path, studies: Sequence[Study]) -> Static:
    numbers = frame["arch"].astype(str).map(lambda arch: int(re.sub(r"\D", "", arch) or 0))
    frame = frame.iloc[numbers.argsort(kind="stable")]
    archs = tuple(str(arch) for arch in frame["arch"].unique())
    family = str(frame["family"].iloc[0])
    if changed := _describe_changes(frame, [study for study in studies if study.family == family]):
        note = (
            f"The static pass in {path.name} is left out: the {changed} changed between it and what was measured. "
            f"autotune sweep {family} --static writes it again."
        )
        return Static(clean(family), archs, note=clean(note))
    return Static(clean(family), archs, tuple(static_blocks(frame)))


def _describe_changes(frame: pd.DataFrame, studies: Sequence[Study]) -> str:
    """What differs between the pass and the newest of ``studies``; empty where nothing is known to."""
    if not studies:
        return ""
    about = find_newest(studies).about
    told = {"source_digest": "sources", "space_digest": "declared space"}
    known = {name: getattr(about, name) for name in told}
    return " and the ".join(told[name] for name, one in known.items() if one and set(frame[name]) != {one})


def static_blocks(frame: pd.DataFrame) -> list[Block]:
    """``frame`` has the columns of ``static.csv``."""
    compiled = frame[frame["state"] == "compiled"]
    blocks = []
    for kernel, rows in compiled.groupby("kernel", sort=False):
        blocks += [_group_by_arch(str(kernel), rows), *_curve(str(kernel), rows)]
    found = [_next_block(compiled), _list_failed(frame)]
    return [*blocks, *(block for block in found if block)]


def _group_by_arch(kernel: str, rows: pd.DataFrame) -> Block:
    columns = (
        Column("arch", "architecture"), Column("configurations", "how many", "count"),
        Column("registers_minimum", "fewest registers", "count"), Column("registers_median", "median", "count"),
        Column("registers_maximum", "most", "count"), Column("spilling", "that spill", "count"),
        Column("spill_bytes_maximum", "most spilled", "bytes"),
        Column("occupancy_minimum", "lowest occupancy", "share"),
        Column("occupancy_median", "median", "share"), Column("occupancy_maximum", "best", "share"),
        Column("limited_by", "limited mostly by"),
    )  # fmt: skip
    table = []
    for arch, some in rows.groupby("arch", sort=False):
        registers, occupied = some["registers"], some["occupancy"]
        spilled = some["spill_store_bytes"] + some["spill_load_bytes"]
        limits = some["limited_by"].dropna().mode()  # blank where sizes that a block depends on are not known
        table.append(
            (str(arch), len(some), int(registers.min()), float(registers.median()), int(registers.max()),
             int((spilled > 0).sum()), int(spilled.max()),
             *((float(occupied.min()), float(occupied.median()), float(occupied.max()), str(limits.iloc[0]))
               if len(limits) else (None, None, None, None)))
        )  # fmt: skip
    caption = f"Kernel {clean(kernel)}: registers, spills and theoretical occupancy over the configurations"
    shown = Table(f"static_{kernel}", caption, columns, tuple(table))
    return Block(title=f"Kernel {clean(kernel)}", table=shown)


def _curve(kernel: str, rows: pd.DataFrame) -> list[Block]:
    """Occupancy against block size, a line an architecture, for what most configurations use there."""
    curves: dict[str, list[float]] = {}
    for arch, some in rows.groupby("arch", sort=False):
        used = (some["static_shared_bytes"] + some["dynamic_shared_bytes"]).dropna().mode()
        if used.empty:
            continue
        registers, shared = int(some["registers"].median()), int(used.iloc[0])
        try:
            of = static_pass.occupancy_curve(str(arch), registers, shared)
        except DeviceError:  # an architecture whose limits are not known
            continue
        curves[f"{arch}: {registers} registers, {shared:,} B shared"] = of
    if not curves:
        return []
    columns = (
        Column("block_size", "threads", "count"),
        *(Column(f"occupancy_{name.split(':')[0]}", name, "share") for name in curves),
    )
    table = tuple(
        (size, *(of[i] for of in curves.values())) for i, size in enumerate(static_pass.BLOCK_SIZES)
    )
    caption = f"Kernel {clean(kernel)}: theoretical occupancy against threads of a block"
    text = (
        "For the median of the registers and the most frequent shared memory of a block, as if both were the same at "
        "every block size."
    )
    name = f"occupancy_curve_{kernel}"
    shown, chart = Table(name, caption, columns, table), _chart(name, caption, curves)
    return [Block(text=text, table=shown, chart=chart, folded_table=True)]


def _chart(name: str, alt: str, curves: dict[str, list[float]]) -> Chart:
    given = [
        Line(label, static_pass.BLOCK_SIZES, [100 * share for share in of], steps=True)
        for label, of in curves.items()
    ]
    across = {"title": {"text": "threads of a block"}, "rangemode": "tozero", "zeroline": False, "dtick": 128}
    up = {"title": {"text": "occupancy"}, "ticksuffix": " %", "range": [0, 105]}
    layout = {"xaxis": across, "yaxis": up, "height": 340, "showlegend": True}
    return Chart(name, alt, {"data": line_traces(given), "layout": layout})


def _next_block(rows: pd.DataFrame) -> Block | None:
    near = rows[rows["registers_to_next_block"].notna()].sort_values(
        ["registers_to_next_block", "occupancy"], kind="stable"
    )
    if near.empty:
        return None
    columns = (
        Column("registers_to_next_block", "registers too many", "count"), Column("arch", "architecture"),
        Column("kernel", "kernel"), Column("registers", "registers", "count"),
        Column("block_size", "threads", "count"), Column("blocks_per_sm", "blocks/SM", "count"),
        Column("occupancy", "occupancy", "share"), Column("configuration", "configuration"),
    )  # fmt: skip
    limit = _describe_limit(near)
    caption = f"Registers that stand between a kernel and one more block of a multiprocessor{limit}"
    text = (
        "Launch bounds, a smaller tile or a narrower type may free them; a spill may cost more than it gains."
    )
    table = Table("next_block", caption, columns, _rows(near, columns))
    return Block(title="One more block", text=text, table=table)


def _list_failed(frame: pd.DataFrame) -> Block | None:
    failed = frame[frame["state"] == "compile_failed"]
    if failed.empty:
        return None
    columns = (
        Column("arch", "architecture"),
        Column("reason", "message"),
        Column("configuration", "configuration"),
    )
    caption = f"{len(failed):,} configurations that do not compile{_describe_limit(failed)}"
    table = Table("static_failed", caption, columns, _rows(failed, columns))
    return Block(title="Does not compile", table=table)


def _describe_limit(rows: pd.DataFrame) -> str:
    return f"; the first {MOST_ROWS} of {len(rows):,}, static.csv has all" if len(rows) > MOST_ROWS else ""


def _rows(rows: pd.DataFrame, columns: Sequence[Column]) -> tuple[tuple[Any, ...], ...]:
    shown = []
    for column in columns:
        values = rows[column.key].head(MOST_ROWS)
        shown.append([(v if column.numeric else clean(str(v))) if pd.notna(v) else None for v in values])
    return tuple(zip(*shown, strict=True))
