"""Why one configuration is faster than another: the way from one to the other, policy by policy, and for each step its
time, the hardware counters that moved, and a sentence. Without counters, what the compiler and traces tell."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as Printed

from autotune.advise.advice import Costs
from autotune.declaration import Configuration, Family
from autotune.errors import UsageError
from autotune.figures import duration, format_plain, share
from autotune.ranking import SECTOR, SHARED
from autotune.record import Study, Trial, noise
from autotune.report import Block, Column, Table, drop_empty_columns

_NEAR = 0.6  # of its peak: what is below it, in memory and in compute, is limited by waiting
_MOVED = 0.2  # of the logarithm: less is no reason
_MOST_REASONS = 3
_PASSES = 0.05  # two shares of one throughput differ by less: ncu counts them in different passes


@dataclass(frozen=True)
class Evidence:
    """A figure of a configuration that may tell why it is fast. ``faster`` is the direction in which it makes a kernel
    faster: -1 for less, 1 for more, 0 where it only describes; ``least`` is so small that it does not matter."""

    column: Column
    faster: int = 0
    least: float = 0.0

    def compute_gain(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> float:
        """The logarithm of its ratio, above 0 where it moved to make the kernel faster; 0 where it only describes, or
        one of the two does not have it."""
        a, b = (figures.get(self.column.key) for figures in (before, after))
        if not self.faster or a is None or b is None:
            return 0.0
        return self.faster * math.log((b + self.least) / (a + self.least))


EVIDENCE = (
    Evidence(Column("global_loads", "global loads", "rate"), -1, 1e4),
    Evidence(Column("global_sectors_per_request", "sectors a load", "number"), -1, 0.5),
    Evidence(Column("global_stores", "global stores", "rate"), -1, 1e4),
    Evidence(Column("global_store_sectors_per_request", "sectors a store", "number"), -1, 0.5),
    Evidence(Column("dram_bytes", "device memory traffic", "bytes"), -1, 1e6),
    Evidence(Column("l2_read_bytes", "read from L2", "bytes"), -1, 1e6),
    Evidence(Column("texture_bytes", "read as texture", "bytes"), 0, 1e6),
    Evidence(Column("instructions", "warp instructions", "rate"), -1, 1e5),
    Evidence(Column("bank_conflicts", "bank conflicts", "rate"), -1, 1e5),
    Evidence(Column("l1_hit_share", "found in L1", "share"), 1, 0.1),
    Evidence(Column("l2_hit_share", "found in L2", "share"), 1, 0.1),
    Evidence(Column("warp_execution_efficiency", "threads that work", "share"), 1, 0.1),
    Evidence(Column("achieved_occupancy", "occupancy", "share"), 1, 0.1),
    Evidence(Column("issue_busy_share", "issue slots used", "share"), 1, 0.1),
    Evidence(Column("dram_busy_share", "of device memory's peak", "share")),
    Evidence(Column("l2_busy_share", "of L2's peak", "share")),
    Evidence(Column("memory_busy_share", "of the memory peak", "share")),
    Evidence(Column("sm_busy_share", "of the compute peak", "share")),
    Evidence(Column("traced_sectors_per_request", "sectors a request, traced", "number"), -1, 0.5),
    Evidence(Column("traced_bytes", "moved, traced", "bytes"), -1, 1e4),
    Evidence(Column("traced_conflicts", "bank conflicts, traced", "rate"), -1, 1e3),
    Evidence(Column("occupancy", "occupancy that fits", "share"), 1, 0.1),
    Evidence(Column("registers", "registers", "count")),
    Evidence(Column("shared_bytes", "shared memory of a block", "bytes")),
)
_TEXTS = (Column("limited_by", "occupancy limited by"), Column("waits", "waits most for (warps)"))
# Over kernels; others are means over time.
_ADDED = ("_bytes", "launches", "instructions", "bank_conflicts", "global_loads", "global_stores", "_ms")

REASONS: Mapping[str, str] = {
    "barrier": "a barrier", "branch_resolving": "a branch", "dispatch_stall": "dispatch",
    "drain": "stores before its end", "imc_miss": "constant memory",
    "lg_throttle": "the full queue of global accesses", "long_scoreboard": "global or texture memory",
    "math_pipe_throttle": "a busy arithmetic unit", "no_instruction": "the next instruction's code",
    "mio_throttle": "the full queue of shared memory and special functions", "not_selected": "its turn to issue",
    "short_scoreboard": "shared memory or special functions", "tex_throttle": "the full queue of textures",
    "wait": "an instruction's latency",
}  # fmt: skip
# Reasons where nothing in EVIDENCE moved; a warp's turn to issue is none, it shows that others have work.
WAITS = tuple(
    Evidence(Column(f"stall_{name}_warps", f"warps that wait for {text}", "number"), -1, 0.5)
    for name, text in REASONS.items()
    if name != "not_selected"
)


@dataclass(frozen=True)
class Explanation:
    """``trials`` are the way from the first to the last, each a step from the one before; ``figures`` what is known of
    each, by the keys of EVIDENCE. ``notes`` say what is missing and what to do."""

    study: Study
    trials: tuple[Trial, ...]
    figures: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """The whole difference in a sentence."""
        first, last = self.trials[0], self.trials[-1]
        names, decision = {self.study.control: "the control"}, self.study.decision
        if decision:
            names.setdefault(decision.winner.configuration, "the winner")
        both = (first.configuration, last.configuration)
        a, b = (names.get(one, one.changes(self.study.control)) for one in both)
        many = len(self.trials) - 1
        steps = f"{many} steps" if many > 1 else "1 step"
        return (
            f"{b} ({duration(last.time_ms)}) compared with {a} ({duration(first.time_ms)}): "
            f"{_describe_speed(first, last)}, in {steps}"
        )

    @property
    def steps(self) -> Iterator[tuple[Trial, Trial, Mapping[str, Any], Mapping[str, Any]]]:
        """Two trials with the figures of both, for each step."""
        return zip(self.trials, self.trials[1:], self.figures, self.figures[1:], strict=False)

    @property
    def sentences(self) -> tuple[str, ...]:
        """A sentence for each step."""
        return tuple(_describe_step(*step) for step in self.steps)


def find_way(trials: Sequence[Trial], first: Configuration, last: Configuration) -> tuple[Trial, ...]:
    """The measured trials that lead from ``first`` to ``last``: each has the last's value in more policies than the one
    before it. Of all such ways one whose steps change as few policies together as the record allows; of these the one
    that gets fast first. Raises UsageError where one of the two was not measured, or both are the same."""
    if first == last:
        raise UsageError(f"both are {first.id}: name another configuration with --of or --than")
    found: dict[frozenset[str], Trial] = {}
    for trial in trials:
        one = trial.configuration
        if trial.measurement and set(one) == set(first) and all(one[n] in (first[n], last[n]) for n in one):
            found[frozenset(name for name in one if one[name] != first[name])] = trial
    end = frozenset(name for name in first if first[name] != last[name])
    for place, one in ((frozenset[str](), first), (end, last)):
        if place not in found:
            raise UsageError(f"{one.id} has no time in the record: sweep it first, or name another one")
    best: dict[frozenset[str], tuple[int, tuple[float, ...], tuple[frozenset[str], ...]]] = {
        end: (0, (), (end,))
    }
    for place in sorted(found, key=len, reverse=True):
        ways = [
            (len(then - place) - 1 + extra, (found[then].time_ms, *times), (place, *way))
            for then, (extra, times, way) in best.items()
            if place < then
        ]
        if ways:
            best[place] = min(ways, key=lambda way: way[:2])
    return tuple(found[place] for place in best[frozenset()][2])


def collect_figures(study: Study, trial: Trial, costs: Costs | None = None) -> dict[str, Any]:
    """What the record knows of a trial: its counters over all kernels, and the registers and the occupancy of the
    kernel that takes longest; and ``costs``, which were traced."""
    counted = merge_kernels(study.about.counters.get(trial.configuration.id, {}))
    figures: dict[str, Any] = dict(counted)
    stalls = {text: counted.get(f"stall_{name}_warps", 0.0) for name, text in REASONS.items()}
    waits = sorted(filter(stalls.get, stalls), key=lambda text: -stalls[text])[:2]
    figures["waits"] = ", ".join(f"{text} {format_plain(stalls[text])}" for text in waits) or None
    profiles = [profile for profile in trial.profiles if profile.registers]
    if profiles:
        one = max(profiles, key=lambda profile: trial.kernel_ms.get(profile.kernel, 0.0))
        shared = one.static_shared_bytes + one.dynamic_shared_bytes
        figures |= {"registers": one.registers, "shared_bytes": shared, "occupancy": one.occupancy}
        figures["limited_by"] = one.limited_by or None
    if costs:
        arrays = [array for array in costs.arrays if array.name != SHARED]
        requests = sum(array.requests for array in arrays)
        figures["traced_bytes"] = SECTOR * sum(array.missed for array in arrays)
        figures["traced_conflicts"] = sum(a.wavefronts - a.requests for a in costs.arrays if a.name == SHARED)
        if requests:
            figures["traced_sectors_per_request"] = sum(array.sectors for array in arrays) / requests
    return figures


def merge_kernels(counters: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The counters of all kernels of a call together: sums, and means over the time under the profiler."""
    kernels = list(counters.values())
    names = [name for name in (kernels[0] if kernels else {}) if all(name in one for one in kernels)]
    weights = [one.get("profiled_ms", 1.0) for one in kernels]
    weighted, whole = list(zip(kernels, weights, strict=True)), sum(weights) or 1.0
    merged = {name: sum(one[name] * weight for one, weight in weighted) / whole for name in names}
    added = [name for name in names if name.endswith(_ADDED) and not name.startswith("stall_")]
    return merged | {name: sum(one[name] for one in kernels) for name in added}


def _is_noise(before: Trial, after: Trial) -> bool:
    faster, slower = sorted((before, after), key=lambda trial: trial.time_ms)
    return slower.time_ms <= faster.time_ms * (1 + noise(faster, slower))


def _describe_speed(before: Trial, after: Trial) -> str:
    ratio = before.time_ms / after.time_ms
    if _is_noise(before, after):
        return "no difference beyond noise"
    return f"{format_plain(max(ratio, 1 / ratio))} x {'faster' if ratio > 1 else 'slower'}"


def find_reasons(before: Mapping[str, Any], after: Mapping[str, Any], *, faster: bool) -> list[Evidence]:
    """The figures of EVIDENCE that moved most in the direction of the time, in its order; if none did, of WAITS."""
    for known in (EVIDENCE, WAITS):
        gains = {one: one.compute_gain(before, after) * (1 if faster else -1) for one in known}
        most = sorted(known, key=lambda one: -gains[one])[:_MOST_REASONS]
        if found := [one for one in known if one in most and gains[one] >= _MOVED]:
            return found
    return []


def _describe_step(before: Trial, after: Trial, then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    changed = after.configuration.changes(before.configuration)
    together = " together" if ", " in changed else ""
    times = f"{duration(before.time_ms)} → {duration(after.time_ms)}"
    text = f"{changed}{together}: {_describe_speed(before, after)} ({times})"
    if _is_noise(before, after):
        return text
    reasons = [
        f"{one.column.label} {one.column.show(then[one.column.key])} → {one.column.show(now[one.column.key])}"
        for one in find_reasons(then, now, faster=after.time_ms < before.time_ms)
    ]
    text += f": {'; '.join(reasons)}" if reasons else "; no figure that was read explains it"
    return "; ".join(filter(None, (text, _describe_limit(now))))


def _describe_limit(figures: Mapping[str, Any]) -> str:
    """Where it is below the roof: what it is nearest to, or what it waits for."""
    peaks = (("memory_busy_share", _name_busiest(figures)), ("sm_busy_share", "the compute peak"))
    known = {text: figures[key] for key, text in peaks if figures.get(key) is not None}
    if not known:
        return f"occupancy limited by {figures['limited_by']}" if figures.get("limited_by") else ""
    name = max(known, key=lambda one: known[one])
    text = f"now at {share(known[name])} of {name}"
    if known[name] < _NEAR and figures.get("waits"):
        text += f", and waiting for {figures['waits'].partition(',')[0].rpartition(' ')[0]}"
    return text


def _name_busiest(figures: Mapping[str, Any]) -> str:
    """The peak of all memories that is nearest: that of L1 and shared memory if it is neither of the other two."""
    dram, l2, whole = (figures.get(f"{name}_busy_share") or 0.0 for name in ("dram", "l2", "memory"))
    if not dram or not l2:
        return "the memory peak"
    if max(dram, l2) < whole - _PASSES:
        return "the peak of L1 and shared memory"
    return "device memory's peak" if dram > l2 else "L2's peak"


def make_columns() -> tuple[Column, ...]:
    """The columns of all figures, in the order of the table."""
    return (*(one.column for one in EVIDENCE), *_TEXTS)


def make_table(found: Explanation) -> Table:
    """A row for the first configuration and for each step; without the columns that are empty."""
    columns = (
        Column("change", "change"), Column("time_ms", "time", "time"), Column("speedup", "× faster", "ratio"),
        *make_columns(),
    )  # fmt: skip
    rows, last = [], found.trials[0]
    for i, (trial, figures) in enumerate(zip(found.trials, found.figures, strict=True)):
        change = trial.configuration.changes(last.configuration if i else found.study.control)
        speedup = last.time_ms / trial.time_ms if i else None
        rows.append((change, trial.time_ms, speedup, *(figures.get(column.key) for column in columns[3:])))
        last = trial
    return drop_empty_columns(Table("why", "All figures of these steps", columns, tuple(rows)))


def print_explanation(found: Explanation, out: Console) -> None:
    """The sentences, then the figures: a row for each figure, a column for each step."""
    out.print(f"{found.study.family} on {found.study.workload}, {found.study.device}: {found.headline}")
    for i, sentence in enumerate(found.sentences, 1):
        out.print(f"{i}. {sentence}")
    table = make_table(found)
    printed = Printed("", *("from", *map(str, range(1, len(table.rows)))), box=None, padding=(0, 1, 0, 0))
    for i, column in enumerate(table.columns[1:], 1):
        printed.add_row(column.label, *(column.show(row[i]) for row in table.rows))
    out.print(printed)
    for note in found.notes:
        out.print(note)


def as_json(found: Explanation) -> str:
    """All figures, unrounded."""
    study = found.study
    steps = [
        {
            "set": {n: v for n, v in after.configuration.items() if v != before.configuration[n]},
            "configuration": after.configuration.id, "time_ms": after.time_ms,
            "speedup": before.time_ms / after.time_ms, "is_noise": _is_noise(before, after), "sentence": sentence,
            "figures": dict(now),
        }
        for (before, after, _, now), sentence in zip(found.steps, found.sentences, strict=True)
    ]  # fmt: skip
    first = found.trials[0]
    content = {
        "schema": 1, "family": study.family, "workload": study.workload, "device": study.device,
        "device_name": study.about.device_name, "clock_mhz": study.about.clock_mhz,
        "headline": found.headline, "steps": steps, "notes": list(found.notes),
        "from": {"configuration": first.configuration.id, "time_ms": first.time_ms, "figures": dict(found.figures[0])},
    }  # fmt: skip
    return json.dumps(content, indent=1) + "\n"


def make_blocks(study: Study, _family: Family | None, _folder: Path) -> list[Block]:
    """For a report: the way from the control to the winner over the configurations that have counters; nothing where
    one of the two has none."""
    decision, counters = study.decision, study.about.counters
    if decision is None:
        return []
    winner, control = decision.winner.configuration, study.control
    counted = [trial for trial in study.trials if trial.measurement and trial.configuration.id in counters]
    if winner == control or not {winner, control} <= {trial.configuration for trial in counted}:
        return []
    trials = find_way(counted, control, winner)
    found = Explanation(study, trials, tuple(collect_figures(study, one) for one in trials))
    columns = (Column("step", "step", "count"), Column("sentence", "what it changes"))
    rows = tuple(enumerate(found.sentences, 1))
    steps = Table("why_steps", "Each step, compared with the one before it", columns, rows)
    text = f"{found.headline[0].upper()}{found.headline[1:]}."
    return [
        Block(title="Why the winner is faster", text=text, table=steps),
        Block(table=make_table(found), folded_table=True),
    ]
