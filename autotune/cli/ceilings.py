"""The command ``limits``: a GPU's measured ceilings, kept in the user's data folder."""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from autotune.compile import Cache, default_root
from autotune.device import Backend
from autotune.errors import DeviceError, StoreError
from autotune.figures import share, si, spread
from autotune.files import write_text
from autotune.measure import CEILINGS, measured_ceilings
from autotune.record import read_ceilings


def device_ceilings(backend: Backend, cache: Cache, *, again: bool = False) -> dict[str, Any]:
    """The ceilings of ``backend``'s device, in the form of ``limits.json``: from the user's cache folder, or measured
    (a few seconds) and kept there. Raises DeviceError on a cpu, CompilerError, LaunchError."""
    if backend.device.kind != "cuda":
        raise DeviceError("ceilings are measured on a GPU: name one with --device cuda")
    place = default_root() / "limits" / f"{backend.device.slug}.json"
    if not again:
        with suppress(StoreError):  # what cannot be read is measured anew
            if kept := read_ceilings(place):
                return kept
    found = measured_ceilings(backend, cache)
    write_ceilings(found, place)
    return found


def write_ceilings(found: Mapping[str, Any], path: Path) -> Path:
    """Write ``limits.json``, whole or not at all. Raises StoreError."""
    return write_text(path, json.dumps(found, indent=1) + "\n")


def print_ceilings(found: Mapping[str, Any], out: Console) -> None:
    """The ceilings with what they count, and the arithmetic limit where it is known."""
    ceilings, arithmetic, spreads = (
        found.get(name) or {} for name in ("ceilings", "arithmetic_limits", "spread_relative")
    )
    clock = f", {found['clock_mhz']} MHz" if found.get("clock_mhz") else ""
    out.print(f"{found['device_name']}{clock}, measured {found.get('date', 'at an unknown time')}")
    table = Table("ceiling", "per s", "±", "of the arithmetic limit", "what", box=None)
    for name, value in ceilings.items():
        of = share(value / arithmetic[name]) if name in arithmetic else ""
        noise = spread(spreads[name]) if name in spreads else ""
        what = CEILINGS[name].what if name in CEILINGS else ""
        table.add_row(name, si(value).strip(), noise, of, what)
    out.print(table)
