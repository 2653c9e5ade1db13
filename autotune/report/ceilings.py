"""How near a configuration comes to what the device was measured to do, and which unit is nearest to its ceiling.

The ceilings come from a ``limits.json`` beside the record, where there is one::

    {"device_name": "NVIDIA H200", "ceilings": {"bytes_per_s": 4.26e12}}

``bytes_per_s`` is the ceiling for the bytes that the workload declares, ``<unit>_per_s`` for the operations of a family
whose ``operations.unit`` is so called or which declares that it ``needs`` that unit, and ``<counter>_per_s`` for a
hardware counter that was recorded.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from autotune import figures as units
from autotune.declaration import Configuration
from autotune.record import Decision, Study, Trial, fastest_first
from autotune.report.blocks import CONFIGURATION, TIME, Block, Column, Table
from autotune.report.charts import Bar, shares

FASTEST = 20


def of_ceiling(study: Study, trial: Trial, ceilings: Mapping[str, Any] | None) -> dict[str, float]:
    """Ceiling -> the share of it that the trial reached (0..1), for each that is known of this device and for which
    the record says how much of it a call needs. Empty when there is none."""
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
    found = [(t, of_ceiling(study, t, ceilings)) for t in chosen]
    units_known = list(dict.fromkeys(name for _, of in found for name in of))
    if not units_known or ceilings is None:
        return []
    columns = (
        Column("role", "role"), TIME, *(Column(f"share_of_{n}_ceiling", f"of {n}/s", "share") for n in units_known),
        Column("binding_unit", "nearest to its ceiling"), CONFIGURATION,
    )  # fmt: skip
    rows = [
        (named.get(t.configuration), t.time_ms, *(of.get(n) for n in units_known),
         max(of, key=lambda n: of[n]) if of else None, t.configuration)
        for t, of in found
    ]  # fmt: skip
    caption = "Share of the measured ceilings that each configuration reaches"
    entries = _bars(found, named)
    known = ", ".join(f"{units.si(ceilings['ceilings'][f'{n}_per_s'])}{n}/s" for n in units_known)
    text = (
        f"Measured ceilings of this device: {known}. Bytes and operations are those that the workload declares, "
        "not those that the hardware moved."
    )
    chart = shares("ceilings", f"{caption}: of the unit nearest to its ceiling", entries)
    return [
        Block(
            title="Ceilings", text=text, table=Table("ceilings", caption, columns, tuple(rows)), chart=chart
        )
    ]


def _bars(
    found: Sequence[tuple[Trial, Mapping[str, float]]], named: Mapping[Configuration, str]
) -> list[Bar]:
    bars = []
    for trial, of in found:
        name = named.get(trial.configuration)
        if of and name:
            unit = max(of, key=lambda n: of[n])
            role = name if name in ("winner", "control") else "preset"
            bars.append(Bar(name, name, of[unit], role, f"{units.share(of[unit])} of {unit}/s"))
    return bars
