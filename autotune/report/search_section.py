"""Section 5: how the sweep came to its winner, in the order of the record."""

import math
from collections.abc import Sequence
from itertools import accumulate

from autotune import figures as units
from autotune.record import STATES, Study, Trial
from autotune.report.blocks import CONFIGURATION, TIME, Block, Column, Table
from autotune.report.charts import LOG_ABOVE, Line, lines, stacked

MOST_GROUPS = 40  # of the chart of states

_SPENT = ("place", "verify", "measure")  # by a measuring process on a trial; compilers work at the same time


def sum_spent(trial: Trial) -> float:
    return sum(trial.phases_ms.get(phase, 0.0) for phase in _SPENT) / 1000


def improvements(trials: Sequence[Trial]) -> list[tuple[int, float, Trial]]:
    """(number of trials, their seconds so far, the trial) for each that was better than all before it. Times are those
    of the first measurement, as they were known then."""
    best, improved = math.inf, []
    seconds = list(accumulate(map(sum_spent, trials)))
    for i, trial in enumerate(trials):
        if trial.measurement and trial.measurement.median_ms < best:
            best = trial.measurement.median_ms
            improved.append((i + 1, seconds[i], trial))
    return improved


def search_blocks(study: Study) -> list[Block]:
    trials = study.trials
    improved = improvements(trials)
    blocks = []
    if improved:
        rows = [(n, s, t.measurement.median_ms, t.configuration) for n, s, t in improved if t.measurement]
        total = len(trials), sum(map(sum_spent, trials))
        columns = (
            Column("trial", "trial", "count"), Column("seconds", "after", "seconds"), TIME, CONFIGURATION
        )  # fmt: skip
        text = f"{units.count(rows[-1][0])} of {total[0]:,} trials until the best first measurement"
        charts: dict[str, tuple[str, list[float]]] = {
            "trials": ("trials", [*(row[0] for row in rows), total[0]])
        }
        if total[1]:
            text += f", {units.seconds(rows[-1][1])} of {units.seconds(total[1])}"
            label = "seconds of placing, verifying and measuring"
            charts["seconds"] = label, [*(row[1] for row in rows), total[1]]
        wide = rows[0][2] / rows[-1][2] > LOG_ABOVE
        blocks.append(Block(title="Best so far", text=f"{text}."))
        y = [row[2] for row in rows]
        for key, (label, x) in charts.items():
            line = Line("best so far", x, [*y, y[-1]], steps=True)
            alt = f"Best time so far over {key}"
            chart = lines(f"best_over_{key}", alt, [line], label, "best so far", logarithmic=(False, wide))
            blocks.append(Block(chart=chart, half=len(charts) > 1))
        caption = "Each trial that was better than all before it"
        blocks.append(Block(table=Table("best_so_far", caption, columns, tuple(rows)), folded_table=True))
    return [*blocks, _states(study), *_show_busy(study)]


def _states(study: Study) -> Block:
    width = math.ceil(max(1, len(study.trials)) / MOST_GROUPS)
    places = range(0, len(study.trials), width)
    known = [state for state in STATES if state in study.states()]
    groups = [study.trials[at : at + width] for at in places]
    counts: dict[str, list[int]] = {
        state: [sum(t.state == state for t in group) for group in groups] for state in known
    }
    columns = (
        Column("state", "state"), Column("trials", "trials", "count"), Column("share", "share", "share"),
        Column("seconds", "time spent", "seconds"),
    )  # fmt: skip
    rows = []
    for state in known:
        of = [t for t in study.trials if t.state == state]
        rows.append((state, len(of), len(of) / len(study.trials), sum(map(sum_spent, of))))
    alt = "States of the trials, in the order in which they were recorded"
    table = Table("states", "Trials by state", columns, tuple(rows))
    chart = stacked("states", alt, counts, list(places), width) if known else None
    return Block(title="States over time", chart=chart, table=table)


def _show_busy(study: Study) -> list[Block]:
    """The seconds of the sweep and how much of them the device ran kernels."""
    spent = {p: sum(t.phases_ms.get(p, 0.0) for t in study.trials) / 1000 for p in ("compile", *_SPENT)}
    known = study.about.phases_s or {phase: seconds for phase, seconds in spent.items() if seconds}
    rows = [(name, float(value)) for name, value in known.items()]
    if not rows:
        return []
    columns = (Column("phase", "phase"), Column("seconds", "wall time", "seconds"))
    text = "Compilation overlaps with measuring, so the phases do not add up to the total."
    if study.about.busy_share is not None:
        share = units.share(study.about.busy_share)
        text = f"The device ran kernels {share} of the seconds of verify and measure. {text}"
    else:
        samples = sum(m.samples * m.median_ms for t in study.trials if (m := t.measurement)) / 1000
        busy = sum(seconds for name, seconds in rows if name in ("verify", "measure"))
        if busy:
            text = (
                f"GPU busy share: the samples alone took {units.share(min(1.0, samples / busy))} of the seconds of "
                f"verify and measure; this table has no data on other launches. {text}"
            )
    table = Table("phases", "Seconds by phase", columns, tuple(rows))
    return [Block(title="Busy share", text=text, table=table)]
