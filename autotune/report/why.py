"""Section 3: why a configuration takes the time it takes: registers and the blocks they cost, spills, footprint,
hardware counters, and how near it comes to what the device can do."""

import math
from collections.abc import Mapping, Sequence
from statistics import median, mode
from typing import Any

from autotune import figures as units
from autotune.compile import KernelProfile, occupancy_model
from autotune.declaration import Configuration
from autotune.record import Decision, Study, Trial, fastest_first
from autotune.report.blocks import CONFIGURATION, OCCUPANCY, TIME, Block, Column, Table
from autotune.report.charts import Bar, Point, scatter, shares
from autotune.report.result_section import Roles

MOST_POINTS = 3000  # of a scatter chart; more SVG marks make a browser stutter
MINOR = 0.05  # a kernel with less of the winner's time than this is folded away
MOST_FOOTPRINTS = 12

# Rows of a table next to a chart; a longer one is folded away, and the chart is as wide as the page.
MOST_BESIDE = 4

_TIMES = (
    Column("configurations", "how many", "count"), Column("best_ms", "best time", "time"),
    Column("median_ms", "median time", "time"),
)  # fmt: skip


def make_blocks(
    study: Study,
    decision: Decision,
    trials: Sequence[Trial],
    roles: Roles,
    ceilings: Mapping[str, Any] | None,
) -> list[Block]:
    """``trials`` are the rows of the page's table; ``ceilings`` what the device was measured to do, where it was."""
    timed = [trial for trial in trials if trial.measurement]
    kernels = dict.fromkeys(p.kernel for trial in timed for p in trial.profiles if p.registers)
    blocks = []
    for kernel in sorted(kernels, key=lambda name: -_share(decision, name)):
        blocks += _kernel(study, decision, trials, kernel, roles, alone=len(kernels) == 1)
    blocks += [block for block in (_spills(timed), _footprints(timed)) if block]
    if study.about.counters:
        blocks.append(_counters(study, timed, roles))
    return [*blocks, *ceiling_blocks(study, decision, ceilings)]


def _share(decision: Decision, kernel: str) -> float:
    times = decision.winner.kernel_ms
    total = sum(times.values())
    return times.get(kernel, 0.0) / total if total else 1.0


def _kernel(
    study: Study, decision: Decision, trials: Sequence[Trial], kernel: str, roles: Roles, *, alone: bool
) -> list[Block]:
    """Time of one kernel against its registers, and the steps at which a register more costs a block."""
    points: list[Point] = []
    rows: list[tuple[Trial, KernelProfile, float]] = []
    for row, trial in enumerate(trials):
        profile = next((p for p in trial.profiles if p.kernel == kernel and p.registers), None)
        if not (trial.measurement and profile):
            continue
        ms = trial.kernel_ms.get(kernel) if trial.kernel_ms else trial.time_ms
        if ms is None:  # the plan did not launch it
            continue
        named = ", ".join(r for r in roles.get(trial.configuration, ()) if r != "tied")
        points.append(Point(row, profile.registers, ms, named, profile.occupancy))
        rows.append((trial, profile, ms))
    if not points:
        return []
    drawn = sorted(points, key=lambda p: (not p.role, p.ms))[:MOST_POINTS]
    steps = _steps(study, [profile for _, profile, _ in rows])
    alt = f"Kernel {kernel}: time against registers, occupancy as colour and shape"
    if steps:
        alt += "; at a dashed line one register more costs blocks of a multiprocessor (number before → after)"
    if len(drawn) < len(points):
        alt += f"; the {len(drawn):,} fastest of {len(points):,}"
    chart = scatter(f"registers_{kernel}", alt, drawn, f"time of {kernel}", steps)
    minor = not alone and _share(decision, kernel) < MINOR
    constant = len({p.x for p in points}) == 1
    share = "" if alone else f"{units.share(_share(decision, kernel))} of the winner's time. "
    text = share + (f"Every configuration uses {points[0].x} registers." if constant else "")
    table = _group_by_blocks(kernel, rows)
    long = len(table.rows) > MOST_BESIDE
    shown = None if constant and minor else chart
    return [
        Block(title=f"Kernel {kernel}", text=text, table=table, chart=shown, folded=minor, folded_table=long)
    ]


def _steps(study: Study, profiles: Sequence[KernelProfile]) -> list[tuple[int, str]]:
    """Return where the number of blocks drops: (most registers before it, "8 → 7") within the range of registers, for
    the block size and shared memory that most configurations have."""
    arch = study.about.arch
    known = {one.replace(".", "") for one in occupancy_model.LIMITS}
    if not profiles or arch.removeprefix("sm_") not in known:
        return []
    kinds = sorted((p.block_size, p.shared_bytes) for p in profiles)
    block_size, shared = mode(kinds)
    low, high = min(p.registers for p in profiles), max(p.registers for p in profiles)
    if not block_size or low == high:
        return []

    def blocks(registers: int) -> int:
        return occupancy_model.occupancy(arch, block_size, registers, shared).blocks_per_sm

    return [
        (r, f"{blocks(r)} → {blocks(r + 1)}") for r in range(low, high) if blocks(r + 1) < blocks(r)
    ]  # fmt: skip


def _group_by_blocks(kernel: str, found: Sequence[tuple[Trial, KernelProfile, float]]) -> Table:
    """Times of the kernel by block size and blocks that fit, with the registers that would still fit."""
    groups: dict[tuple[int, int, str], list[tuple[KernelProfile, float]]] = {}
    for _, p, ms in found:
        groups.setdefault((p.block_size, p.blocks_per_sm, p.limited_by), []).append((p, ms))
    columns = (
        Column("block_size", "threads", "count"), Column("blocks_per_sm", "blocks/SM", "count"), OCCUPANCY,
        Column("limited_by", "limited by"), Column("registers_minimum", "registers", "count"),
        Column("registers_maximum", "to", "count"), *_TIMES,
    )  # fmt: skip
    rows = []
    for (block_size, blocks, limit), members in sorted(groups.items(), key=lambda item: item[0]):
        registers = [p.registers for p, _ in members]
        figures = (min(registers), max(registers), *_times([ms for _, ms in members]))
        rows.append((block_size, blocks, members[0][0].occupancy, limit, *figures))
    caption = (
        f"Kernel {kernel}: times by block size, by the blocks that fit a multiprocessor and what limits them"
    )
    return Table(f"occupancy_{kernel}", caption, columns, tuple(rows))


def _group(groups: Mapping[Any, Sequence[Trial]]) -> list[tuple[Any, ...]]:
    return [(*key, *_times([trial.time_ms for trial in members])) for key, members in groups.items()]


def _times(ms: Sequence[float]) -> tuple[int, float, float]:
    return len(ms), min(ms), median(ms)


def _spills(timed: Sequence[Trial]) -> Block | None:
    groups: dict[tuple[str, int], list[Trial]] = {}
    for trial in timed:
        if spilled := [(p.kernel, p.spilled_bytes) for p in trial.profiles if p.registers]:
            kernel, size = max(spilled, key=lambda one: one[1])
            groups.setdefault((kernel if size else "none", size), []).append(trial)
    if not groups:
        return None
    if not any(size for _, size in groups):
        text = "No kernel of any timed configuration spills registers to memory."
        return Block(title="Spills", half=True, text=text)
    columns = (Column("kernel", "most in"), Column("spill_bytes", "bytes", "count"), *_TIMES)
    rows = _group(dict(sorted(groups.items(), key=lambda item: item[0][1])))
    caption = "Times by the bytes of registers that a thread writes to memory and reads back"
    return Block(title="Spills", table=Table("spills", caption, columns, tuple(rows)), half=True)


def _footprints(timed: Sequence[Trial]) -> Block | None:
    sizes = sorted({t.footprint_bytes for t in timed})
    if len(sizes) < 2:
        return None
    per = math.ceil(len(sizes) / MOST_FOOTPRINTS)
    ranges = [sizes[i : i + per] for i in range(0, len(sizes), per)]
    groups = {(of[0], of[-1]): [t for t in timed if of[0] <= t.footprint_bytes <= of[-1]] for of in ranges}
    columns = (
        Column("footprint_minimum_bytes", "bytes from", "count"), Column("footprint_maximum_bytes", "to", "count"),
        *_TIMES,
    )  # fmt: skip
    caption = "Times by the device memory that the data takes"
    table = Table("footprint", caption, columns, tuple(_group(groups)))
    return Block(title="Footprint", table=table, half=True)


def _counters(study: Study, timed: Sequence[Trial], roles: Roles) -> Block:
    """The hardware counters of those configurations that were profiled, a row for each kernel."""
    counters = study.about.counters
    names = list(dict.fromkeys(n for of in counters.values() for some in of.values() for n in some))
    columns = (
        Column("role", "role"), Column("kernel", "kernel"), TIME,
        *(Column(n, n.replace("_", " "), "number") for n in names),
        Column("configuration", "configuration", "configuration"),
    )  # fmt: skip
    rows = []
    for trial in timed:
        for kernel, some in counters.get(trial.configuration.id, {}).items():
            role = ", ".join(roles.get(trial.configuration, ()))
            ms = trial.measurement.kernel_ms.get(kernel) if trial.measurement else None
            rows.append((role, kernel, ms, *(some.get(name) for name in names), trial.configuration))
    text = f"{len(counters):,} of {len(timed):,} timed configurations were profiled."
    table = Table("counters", "Hardware counters", columns, tuple(rows))
    return Block(title="Hardware counters", text=text, table=table)


FASTEST = 20


def compute_ceiling_shares(
    study: Study, trial: Trial, ceilings: Mapping[str, Any] | None
) -> dict[str, float]:
    """Return ceiling -> the share of it that the trial reached (0..1), for each ceiling of this device that is known
    and of which the record says how much a call needs. Empty if there is none.

    The ceilings come from a ``limits.json`` next to the record, if there is one::

        {"device_name": "NVIDIA H200", "ceilings": {"bytes_per_s": 4.26e12}}

    ``bytes_per_s`` is the ceiling for the bytes that the workload declares, ``<unit>_per_s`` for the operations of a
    family whose ``operations.unit`` is so called or which declares that it ``needs`` that unit, and
    ``<counter>_per_s`` for a hardware counter that was recorded."""
    if not ceilings or ceilings["device_name"] != study.about.device_name or not trial.measurement:
        return {}
    needs: dict[str, float] = {}
    if amount := study.about.bytes:
        needs["bytes"] = float(amount)
    if (amount := study.about.operations) and (unit := study.about.operation_unit):
        needs[unit] = float(amount)
    needs |= {unit: float(amount) for unit, amount in study.about.needs.items()}
    for counters in study.about.counters.get(trial.configuration.id, {}).values():
        for name, value in counters.items():
            needs[name] = needs.get(name, 0.0) + value
    seconds = trial.time_ms / 1000
    return {
        name: need / seconds / ceiling
        for name, need in needs.items()
        if (ceiling := ceilings["ceilings"].get(f"{name}_per_s")) and seconds > 0
    }


def ceiling_blocks(study: Study, decision: Decision, ceilings: Mapping[str, Any] | None) -> list[Block]:
    """The named and the fastest configurations with their share of each ceiling and the unit that binds."""
    named: dict[Configuration, str] = {}
    for name, one in study.roles(decision).items():
        if name != "runner-up":
            named.setdefault(one, name)
    ranked = fastest_first(study.trials)
    chosen = [t for t in ranked if t.configuration in named or t in ranked[:FASTEST]]
    reached = [(t, compute_ceiling_shares(study, t, ceilings)) for t in chosen]
    units_known = list(dict.fromkeys(name for _, of in reached for name in of))
    if not units_known or ceilings is None:
        return []
    columns = (
        Column("role", "role"), TIME, *(Column(f"share_of_{n}_ceiling", f"of {n}/s", "share") for n in units_known),
        Column("binding_unit", "nearest to its ceiling"), CONFIGURATION,
    )  # fmt: skip
    rows = [
        (named.get(t.configuration), t.time_ms, *(of.get(n) for n in units_known),
         max(of, key=lambda n: of[n]) if of else None, t.configuration)
        for t, of in reached
    ]  # fmt: skip
    caption = "Share of the measured ceilings that each configuration reaches"
    entries = []
    for trial, of in reached:
        if of and (part := named.get(trial.configuration)):
            unit = max(of, key=lambda n: of[n])
            role = part if part in ("winner", "control") else "preset"
            entries.append(Bar(part, part, of[unit], role, f"{units.share(of[unit])} of {unit}/s"))
    known = ", ".join(f"{units.si(ceilings['ceilings'][f'{n}_per_s'])}{n}/s" for n in units_known)
    text = (
        f"Measured ceilings of this device: {known}. Bytes and operations are those that the workload declares, "
        "not those that the hardware moved."
    )
    chart = shares("ceilings", f"{caption}: of the unit nearest to its ceiling", entries)
    table = Table("ceilings", caption, columns, tuple(rows))
    return [Block(title="Ceilings", text=text, table=table, chart=chart)]
