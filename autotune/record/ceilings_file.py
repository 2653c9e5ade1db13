"""The ceilings of a device as they were written by ``autotune limits``."""

import json
import math
from pathlib import Path
from typing import Any

from autotune.errors import StoreError

__all__ = ["read_ceilings"]


def read_ceilings(path: Path) -> dict[str, Any] | None:
    """The ceilings in ``path``, None where there is no such file. Raises StoreError for another form."""
    try:
        limits = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as problem:
        raise StoreError(f"cannot read the device's ceilings in {path}: {problem}") from None
    found = limits.get("ceilings") if isinstance(limits, dict) else None
    fit = isinstance(found, dict) and all(
        type(v) in (int, float) and math.isfinite(v) and v > 0 for v in found.values()
    )
    if not fit or not isinstance(limits.get("device_name"), str):
        raise StoreError(
            f'{path} is not of the form {{"device_name": "...", "ceilings": {{"bytes_per_s": 4.26e12}}}} with '
            "ceilings above zero"
        )
    return dict(limits)
