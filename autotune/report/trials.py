"""Section 6: every trial in columns for the page's own table and for comparing two of them; repeated values as codes,
so that 10,000 rows stay small."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from autotune.declaration import Configuration
from autotune.files import clean
from autotune.record import Decision, Study, Trial, rank_trials
from autotune.report.blocks import ERROR, FOOTPRINT, OCCUPANCY, ONCE, REGISTERS, SENT, SPREAD, TIME, Column
from autotune.report.policy_effects import policy_values
from autotune.report.result_section import Roles
from autotune.report.why import compute_ceiling_shares

# What is generated for a configuration; empty when it is not known.
Code = Callable[[Study, Configuration], str]

MOST_CODE = 300  # configurations of a study whose generated code is in the page, those with a name first

# Trials of a study with more kernels than one whose kernels have figures of their own in the page.
MOST_DETAILED = 4000

_PROFILE = (
    ("registers", "registers", "count"),
    ("blocks_per_sm", "blocks/SM", "count"),
    ("occupancy", "occupancy", "share"),
)

_TEXT_BUDGET = 1_200_000  # characters of reasons and notes in one page; results.csv always has them whole


def rows(study: Study, decision: Decision | None, most: int) -> list[Trial]:
    """At most ``most`` trials, best first (see ``decision.rank_trials``) and failures last: the rows of the page's
    table."""
    failed = sorted(
        (t for t in study.trials if not t.measurement), key=lambda t: (t.state, t.configuration.id)
    )
    return [*rank_trials(study.trials, decision), *failed][:most]


def every_trial(
    study: Study,
    trials: Sequence[Trial],
    texts: int,
    roles: Roles,
    code: Code | None = None,
    ceilings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """``trials`` in columns, where the whole page has ``texts`` distinct reasons and notes.

    ``id`` names the policies in the order of a configuration's id; ``total`` counts the trials that the study
    has, ``rows`` those here. Each of ``columns`` has a key, a label and a kind, and
    ``values`` (numbers or null), or ``names`` and ``codes`` into them; one that is ``detail`` shows only where two
    trials are compared. ``roles`` are [name, row] of what can be chosen by name there, ``code`` the generated code by
    row, as numbers of ``lines``.
    """
    columns = [
        _numbers("rank", "rank", "count", (i + 1 if t.measurement else None for i, t in enumerate(trials))),
        *(_fill_column(column, trials) for column in (TIME, SPREAD)),
        *([_fill_column(ERROR, trials)] if any(trial.error is not None for trial in trials) else []),
        _names("state", "state", (trial.state for trial in trials)),
        *_policies(study, trials),
        *_list_compiled(trials),
        *(_fill_column(column, trials) for column in (FOOTPRINT, ONCE, SENT)),
        *_ceilings(study, trials, ceilings),
        *_details(trials),
        _remarks(trials, max(60, min(600, _TEXT_BUDGET // max(1, texts)))),
    ]
    named = [
        [clean(", ".join(names)), row]
        for row, trial in enumerate(trials)
        if (names := [name for name in roles.get(trial.configuration, ()) if name != "tied"])
    ]
    return {
        "rows": len(trials),
        "total": len(study.trials),
        "id": list(study.control),
        "columns": columns,
        "roles": named,
        **_code(study, trials, roles, code),
    }


def _policies(study: Study, trials: Sequence[Trial]) -> list[dict[str, Any]]:
    columns = []
    for name in policy_values(study):
        column = _names(name, name, (trial.configuration[name] for trial in trials))
        columns.append({**column, "kind": "policy", "default": clean(str(study.control[name]))})
    return columns


def _list_compiled(trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """Return columns of the compiler's figures, of the kernel that uses most or fits least; none without figures."""
    used = [[p for p in trial.profiles if p.registers] for trial in trials]
    if not any(used):
        return []
    least = [min(profiles, key=lambda p: p.occupancy, default=None) for profiles in used]
    spills = [sum(p.spilled_bytes for p in profiles) if profiles else None for profiles in used]
    return [
        _fill_column(REGISTERS, trials),
        _numbers("spill_bytes", "spilled bytes", "count", spills),
        _fill_column(OCCUPANCY, trials),
        _names("limited_by", "limited by", (p.limited_by if p else "" for p in least)),
    ]


def as_script(value: Any) -> str:
    """JSON that is safe inside ``<script>``: no character of it can end the element or start a comment."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _details(trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """Each kernel's time and profile, where a plan has more than one; of the fastest only when there are many."""
    kernels = list(dict.fromkeys(p.kernel for trial in trials for p in trial.profiles))
    if len(kernels) < 2:
        return []
    few = trials[:MOST_DETAILED]
    columns = []
    for kernel in kernels:
        of = [next((p for p in t.profiles if p.kernel == kernel and p.registers), None) for t in few]
        times = (trial.kernel_ms.get(kernel) for trial in few)
        columns.append(_numbers(f"kernel_{kernel}_ms", f"{kernel}: time", "time", times))
        for name, label, kind in _PROFILE:
            values = (getattr(p, name) if p else None for p in of)
            columns.append(_numbers(f"{name}_{kernel}", f"{kernel}: {label}", kind, values))
        limiting = (p.limited_by if p else "" for p in of)
        columns.append(_names(f"limited_by_{kernel}", f"{kernel}: limited by", limiting))
    return [{**column, "detail": True} for column in columns]


def _ceilings(
    study: Study, trials: Sequence[Trial], ceilings: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    """The share of the ceiling that each came nearest to, and which one that is."""
    reached = [compute_ceiling_shares(study, trial, ceilings) for trial in trials] if ceilings else []
    if not any(reached):
        return []
    nearest = [max(of, key=lambda name: of[name]) if of else "" for of in reached]
    shares = [of[name] if name else None for of, name in zip(reached, nearest, strict=True)]
    return [
        _numbers("share_of_ceiling", "of ceiling", "share", shares),
        _names("binding_unit", "nearest ceiling", nearest),
    ]


def _code(study: Study, trials: Sequence[Trial], roles: Roles, code: Code | None) -> dict[str, Any]:
    if code is None:
        return {"code": {}, "lines": []}
    first = [row for row, trial in enumerate(trials) if trial.configuration in roles]
    chosen = dict.fromkeys([*first, *range(len(trials))])
    lines: dict[str, int] = {}
    texts = {}
    for row in list(chosen)[:MOST_CODE]:
        if text := code(study, trials[row].configuration):
            texts[row] = [lines.setdefault(clean(line), len(lines)) for line in text.splitlines()]
    return {"code": texts, "lines": list(lines)}


def _fill_column(column: Column, trials: Sequence[Trial]) -> dict[str, Any]:
    return _numbers(column.key, column.label, column.kind, map(column.of, trials))


def _numbers(key: str, label: str, kind: str, values: Iterable[float | None]) -> dict[str, Any]:
    shown = [(float(f"{v:.6g}") if math.isfinite(v) else None) if isinstance(v, float) else v for v in values]
    return {"key": key, "label": label, "kind": kind, "values": shown}


def _names(key: str, label: str, values: Iterable[object]) -> dict[str, Any]:
    codes: dict[str, int] = {}
    taken = [codes.setdefault(clean(str(value)), len(codes)) for value in values]
    return {"key": key, "label": label, "kind": "text", "names": list(codes), "codes": taken}


def _remarks(trials: Sequence[Trial], longest: int) -> dict[str, Any]:
    """Reasons and notes, cut at ``longest`` characters."""

    def remark(trial: Trial) -> str:
        text = "\n".join([*([trial.reason] if trial.reason else []), *trial.remarks])
        return clean(text[:longest]) + (" … (whole in results.csv)" if len(text) > longest else "")

    return {**_names("reason", "reason and notes", map(remark, trials)), "kind": "remark"}
