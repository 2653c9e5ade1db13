"""The command ``limits``: a GPU's measured ceilings, kept in the user's data folder."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from autotune.compile import Cache, default_root
from autotune.device import Backend
from autotune.errors import DeviceError, StoreError
from autotune.hardware import Device
from autotune.measure import CEILINGS, measured

__all__ = ["cached", "device_limits", "print_limits", "write"]


def device_limits(backend: Backend, cache: Cache, *, again: bool = False) -> dict[str, Any]:
    """The ceilings of ``backend``'s device, in the form of ``limits.json``: from the user's cache folder, or measured
    (a few seconds) and kept there. Raises DeviceError on a cpu, CompilerError, LaunchError."""
    if backend.device.kind != "cuda":
        raise DeviceError("ceilings are measured on a GPU: name one with --device cuda")
    if not again and (kept := cached(backend.device)):
        return kept
    found = measured(backend, cache)
    write(found, _place(backend.device))
    return found


def cached(device: Device) -> dict[str, Any] | None:
    """What was measured before on a device of this name; None where nothing was, or it cannot be read."""
    from autotune.record import read_ceilings

    try:
        return read_ceilings(_place(device))
    except StoreError:
        return None


def write(found: Mapping[str, Any], path: Path) -> Path:
    """Write ``limits.json``, whole or not at all. Raises StoreError."""
    from autotune.files import write_text

    return write_text(path, json.dumps(found, indent=1) + "\n")


def _place(device: Device) -> Path:
    return default_root() / "limits" / f"{device.slug}.json"


def print_limits(found: Mapping[str, Any], out: Console) -> None:
    """The ceilings with what they count, and the arithmetic limit where it is known."""
    from autotune.figures import share, si, spread

    ceilings, limits, spreads = (
        found.get(name) or {} for name in ("ceilings", "arithmetic_limits", "spread_relative")
    )
    clock = f", {found['clock_mhz']} MHz" if found.get("clock_mhz") else ""
    out.print(f"{found['device_name']}{clock}, measured {found.get('date', 'at an unknown time')}")
    table = Table("ceiling", "per s", "±", "of the arithmetic limit", "what", box=None)
    for name, value in ceilings.items():
        of = share(value / limits[name]) if name in limits else ""
        noise = spread(spreads[name]) if name in spreads else ""
        what = CEILINGS[name].what if name in CEILINGS else ""
        table.add_row(name, si(value).strip(), noise, of, what)
    out.print(table)
