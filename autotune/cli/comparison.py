"""Two records, or two policy files, side by side: what moved beyond noise, between versions or between devices."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Literal

from autotune.declaration import Configuration
from autotune.errors import StoreError
from autotune.measure import Figure
from autotune.policy import read_policy_file
from autotune.record import MOST, TIE, Study, minimax, read_record, times_of

_ONE_SAMPLE = 1.0  # what ``measure.spread`` says of a single one
Outcome = Literal["faster", "slower", "same", "only A", "only B"]


@dataclass(frozen=True, kw_only=True)
class Side:
    """One family on one workload and device, as a record or a policy file has it. ``times`` in ms by configuration id;
    ``roles`` are the ids that have a name (winner, runner-up, control, presets), whether they were timed or not."""

    family: str
    workload: str
    device: str
    times: Mapping[str, Figure]
    roles: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Change:
    """``role`` (or a configuration's id) in A and in B. ``change`` is B's time over A's, minus 1; ``noise`` what two
    such times differ by without a reason. Times are None where there are none."""

    role: str
    a: str
    b: str
    a_ms: float | None
    b_ms: float | None
    change: float | None
    noise: float | None
    outcome: Outcome


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One family and workload. ``named`` are the roles of both sides, the winner first; ``every`` each configuration
    that both timed, the largest change first. ``transfer`` is what A's winner takes on B over B's best, minus 1
    (None: not timed there), and the other way round ``back``; ``typical`` the median of B's time over A's, minus 1."""

    family: str
    workload: str
    a: str
    b: str
    named: tuple[Change, ...]
    every: tuple[Change, ...]
    transfer: float | None
    back: float | None
    typical: float | None
    only_a: int = 0
    only_b: int = 0

    @property
    def winner(self) -> Change:
        return self.named[0]

    @property
    def moved(self) -> tuple[Change, ...]:
        """Of ``every``, what changed beyond noise."""
        return tuple(row for row in self.every if row.outcome != "same")

    def regressions(self, threshold: float, *, every: bool = False) -> tuple[Change, ...]:
        """What became slower by more than ``threshold`` (0.05: 5 %) and beyond noise: the winner, or with ``every``
        any configuration; a winner that B does not have at all is one too."""
        rows = (self.winner, *(self.every if every else ()))
        return tuple(
            row
            for row in rows
            if (row.outcome == "slower" and row.change is not None and row.change > threshold)
            or (row is self.winner and row.outcome == "only A")
        )


def read_side(where: str) -> list[Side]:
    """The sides in a policy file (``.yaml``) or in whatever ``records.read_record`` reads. Raises StoreError,
    PolicyFileError."""
    if where.endswith((".yaml", ".yml")):
        return _read_policy_file(Path(where))
    return sides_of(read_record(where))


def sides_of(studies: Sequence[Study]) -> list[Side]:
    """Each study as a side; where several workloads share a family and device, with the choice for all of them."""
    sides = []
    for study in studies:
        group = [s for s in studies if (s.family, s.device) == (study.family, study.device)]
        times = times_of(group)
        common = minimax(times) if len(times) > 1 else None
        roles = study.roles(study.decision, common.configuration if common else None)
        sides.append(
            Side(
                family=study.family, workload=study.workload, device=study.device,
                times={
                    t.configuration.id: Figure(t.measurement.time_ms, t.measurement.spread)
                    for t in study.trials if t.measurement
                },
                roles={name: one.id for name, one in roles.items()},
            )
        )  # fmt: skip
    return sides


def comparisons(a: Sequence[Side], b: Sequence[Side]) -> list[Comparison]:
    """Workload by workload, what both have. Where either has several devices for one, only equal devices are
    compared, and a cpu never with a GPU. Raises StoreError when they have nothing in common."""
    pairs = []
    for one in a:
        like = [
            s for s in b if (s.family, s.workload, _is_cpu(s)) == (one.family, one.workload, _is_cpu(one))
        ]
        same = [s for s in like if s.device == one.device]
        alone = len([s for s in a if (s.family, s.workload) == (one.family, one.workload)]) == 1
        pairs += [(one, other) for other in (same or (like if alone and len(like) == 1 else []))]
    if not pairs:
        raise StoreError(
            "the two have no family and workload in common on devices that can be compared: A has "
            f"{_format_sides(a)}, B has {_format_sides(b)}"
        )
    return [_compare(one, other) for one, other in pairs]


def _is_cpu(side: Side) -> bool:
    return side.device.startswith("cpu-")  # as ``Device.slug`` has it


def _format_sides(sides: Sequence[Side]) -> str:
    return ", ".join(f"{s.family} on {s.workload} ({s.device})" for s in sides) or "nothing"


def _read_policy_file(path: Path) -> list[Side]:
    read = read_policy_file(path)
    sides = []
    for name, entry in read.entries.items():
        winner = Configuration(entry.configuration).id
        times = {winner: Figure(entry.median_ms, entry.spread)}
        roles = {"winner": winner}
        if entry.runner_up:
            times.setdefault(entry.runner_up, Figure(entry.runner_up_ms, None))
            roles["runner-up"] = entry.runner_up
        roles["minimax"] = Configuration(read.default).id
        sides.append(
            Side(family=read.family, workload=name, device=read.device.slug, times=times, roles=roles)
        )
    if not sides:
        raise StoreError(f"{path} has no entries to compare")
    return sides


def _compare(a: Side, b: Side) -> Comparison:
    roles = dict.fromkeys(["winner", *a.roles, *b.roles])
    named = [_change(role, a, b, a.roles.get(role, ""), b.roles.get(role, "")) for role in roles]
    common = [one for one in a.times if one in b.times]
    every = sorted((_change(one, a, b, one, one) for one in common), key=lambda m: (-_size(m), m.role))
    ratios = [b.times[one].value / a.times[one].value for one in common if a.times[one].value > 0]
    return Comparison(
        family=a.family, workload=a.workload, a=a.device, b=b.device, named=tuple(named), every=tuple(every),
        transfer=_compute_ratio_to_best(a.roles.get("winner", ""), b),
        back=_compute_ratio_to_best(b.roles.get("winner", ""), a),
        typical=median(ratios) - 1 if ratios else None,
        only_a=len(a.times) - len(common), only_b=len(b.times) - len(common),
    )  # fmt: skip


def _size(moved: Change) -> float:
    """How far it moved, the same for half and double the time."""
    return abs(math.log1p(moved.change)) if moved.change is not None and moved.change > -1 else 0.0


def _change(role: str, a: Side, b: Side, in_a: str, in_b: str) -> Change:
    first, second = a.times.get(in_a), b.times.get(in_b)
    if first is None or second is None or not first.value > 0:
        outcome: Outcome = "same" if first is second is None else "only A" if second is None else "only B"
        change = noise = None
    else:
        change, noise = second.value / first.value - 1, _noise(first, second)
        slower, faster = change > noise, second.value < first.value / (1 + noise)
        outcome = "slower" if slower else "faster" if faster else "same"
    return Change(
        role=role, a=in_a, b=in_b, a_ms=first.value if first else None, b_ms=second.value if second else None,
        change=change, noise=noise, outcome=outcome,
    )  # fmt: skip


def _noise(a: Figure, b: Figure) -> float:
    """Both half-widths together, at least what makes a tie in one sweep; without the bound above that a tie has, since
    two runs that were noisy prove no change. Where one is not known (a single sample too), the most that a tie may
    be."""
    known = [t.spread for t in (a, b) if t.spread is not None and t.spread < _ONE_SAMPLE]
    return max(TIE, math.hypot(*known)) if len(known) == 2 else MOST


def _compute_ratio_to_best(one: str, side: Side) -> float | None:
    if one not in side.times:
        return None
    best = min(timing.value for timing in side.times.values())
    return side.times[one].value / best - 1 if best else None
