"""Every trial in columns for the page's own table, repeated text as codes: 10,000 rows stay small."""

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from autotune.decision import time_ms
from autotune.record import Study
from autotune.report.effects import policy_values
from autotune.report.results import clean
from autotune.trial import Trial

__all__ = ["as_script", "every_trial", "ranked"]

_TEXT_BUDGET = 1_200_000  # characters of reasons and notes in one page; results.csv always has them whole


def ranked(study: Study, most: int) -> list[Trial]:
    """At most ``most`` trials, fastest first and failures last: the rows of the page's table."""
    return sorted(study.trials, key=lambda t: (time_ms(t), t.state, t.configuration.id))[:most]


def every_trial(study: Study, trials: Sequence[Trial], texts: int) -> dict[str, Any]:
    """``trials`` in columns, where the whole page has ``texts`` distinct reasons and notes.

    ``id`` names the policies in the order of a configuration's id; ``total`` counts the trials that the study
    has, ``rows`` those here. Each of ``columns`` has a key, a label and a kind, and
    ``values`` (numbers or null), or ``names`` and ``codes`` into them.
    """
    longest = max(60, min(600, _TEXT_BUDGET // max(1, texts)))
    measured = [trial.measurement for trial in trials]
    ranks = (i + 1 if one else None for i, one in enumerate(measured))
    columns = [
        _numbers("rank", "rank", "count", ranks),
        _numbers("time_ms", "time", "time", (one.time_ms if one else None for one in measured)),
        _numbers("spread_relative", "±", "spread", (one.spread if one else None for one in measured)),
        _names("state", "state", (trial.state for trial in trials)),
    ]
    for name in policy_values(study):
        column = _names(name, name, (trial.configuration[name] for trial in trials))
        columns.append({**column, "kind": "policy", "default": clean(str(study.control[name]))})
    used = [[p for p in trial.profiles if p.registers] for trial in trials]
    if any(used):
        least = [min(profiles, key=lambda p: p.occupancy, default=None) for profiles in used]
        most = [max((p.registers for p in profiles), default=None) for profiles in used]
        spills = [sum(p.spill_store_bytes + p.spill_load_bytes for p in ps) if ps else None for ps in used]
        columns += [
            _numbers("registers", "registers", "count", most),
            _numbers("spill_bytes", "spilled bytes", "count", spills),
            _numbers("occupancy", "occupancy", "share", (p.occupancy if p else None for p in least)),
            _names("limited_by", "limited by", (p.limited_by if p else "" for p in least)),
        ]
    remarks = _names("reason", "reason and notes", (_remarks(trial, longest) for trial in trials))
    columns.append({**remarks, "kind": "remark"})
    return {
        "rows": len(trials),
        "total": len(study.trials),
        "id": list(study.control),
        "columns": columns,
    }


def as_script(value: Any) -> str:
    """JSON that is safe inside ``<script>``: no character of it can end the element or start a comment."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _numbers(key: str, label: str, kind: str, values: Iterable[float | None]) -> dict[str, Any]:
    shown = [float(f"{v:.6g}") if isinstance(v, float) and math.isfinite(v) else v for v in values]
    shown = [None if isinstance(v, float) and not math.isfinite(v) else v for v in shown]
    return {"key": key, "label": label, "kind": kind, "values": shown}


def _names(key: str, label: str, values: Iterable[object]) -> dict[str, Any]:
    codes: dict[str, int] = {}
    taken = [codes.setdefault(clean(str(value)), len(codes)) for value in values]
    return {"key": key, "label": label, "kind": "text", "names": list(codes), "codes": taken}


def _remarks(trial: Trial, longest: int) -> str:
    text = "\n".join([*([trial.reason] if trial.reason else []), *trial.notes])
    return clean(text[:longest]) + (" … (whole in results.csv)" if len(text) > longest else "")
