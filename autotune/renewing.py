"""An entry whose sources changed, timed again and not swept: whether what it claims still holds, and the entry anew.

An edit of a comment makes every entry stale, and the configurations that mattered are few: the winner, its tie set,
the runner-up, control. They are verified and timed side by side; where their order and the margin are what was
recorded, nothing suggests that the rest of the space would come out differently.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from autotune.acceptance import known_configuration, stale
from autotune.decision import BreakEven, break_even, cost_ms, noise
from autotune.errors import AutotuneError, PolicyFileError
from autotune.family import Family
from autotune.policyfile import Entry, read
from autotune.policyfile_text import write
from autotune.policyfile_write import entries
from autotune.record import Study
from autotune.regret import percent
from autotune.space import Configuration
from autotune.summary import duration
from autotune.trial import Trial

__all__ = ["needed", "record", "renewable", "renewed", "unlike"]

_LOCK_SECONDS = 60
_DIGESTS = ("source_digest", "layouts_digest", "space_digest")


def renewable(family: Family, item: Entry, refusal: str) -> bool:
    """Whether ``item`` is refused only since its kernel source, headers, layouts or declaration changed."""
    configuration, wrong = known_configuration(family, item.configuration)
    return bool(refusal) and refusal == stale(family, item) and configuration is not None and not wrong


def needed(family: Family, item: Entry) -> list[Configuration]:
    """What is to be timed, the winner first: it, control, the runner-up, the tie set, the other end of the break-even;
    without those that are no more."""
    winner, _ = known_configuration(family, item.configuration)
    assert winner is not None
    found = [winner, family.space.control]
    for name in (item.runner_up, *item.tie_set, item.break_even_with):
        with suppress(AutotuneError):
            found.append(family.space.configuration(name))
    return list(dict.fromkeys(found))


def unlike(
    item: Entry,
    trials: Mapping[Configuration, Trial],
    winner: Configuration,
    control: Configuration,
    tolerance: float,
) -> str:
    """Why the new ``trials`` do not bear out the entry, empty when they do: its winner has to be right and, in what its
    objective counts, within noise of the best of them; its margin over control the recorded one within ``tolerance``
    and noise, either way: a margin that moved says that more changed than was timed. Times themselves may change."""
    now = trials.get(winner)
    if now is None or now.measurement is None:
        return f"the winner is {now.state}: {now.reason}" if now else "the winner was not tried"
    took = cost_ms(now, item.objective)
    best = min(trials.values(), key=lambda t: cost_ms(t, item.objective))
    if took > cost_ms(best, item.objective) * (1 + noise(best, now, item.objective)):
        return (
            f"{best.configuration.id} is faster than the winner now: {duration(cost_ms(best, item.objective))}, "
            f"winner {duration(took)}"
        )
    against = trials.get(control)
    if item.margin_over_control:
        if against is None or against.measurement is None:
            return f"control is {against.state}: {against.reason}" if against else "control was not tried"
        margin = cost_ms(against, item.objective) / took
        allowed = (1 + tolerance) * (1 + noise(now, against, item.objective))
        if not item.margin_over_control / allowed <= margin <= item.margin_over_control * allowed:
            return (
                f"is {margin:.3g} x as fast as control, recorded {item.margin_over_control:.3g} x, and at most "
                f"{percent(tolerance)} apart is allowed"
            )
    return ""


def renewed(item: Entry, study: Study, winner: Configuration) -> Entry:
    """``item`` with the figures and hashes of ``study``, in which ``needed`` was timed. The winner stays; regrets over
    other entries' winners stay as they were."""
    trials = {t.configuration: t for t in study.trials if t.measurement}
    own = trials[winner]
    (found,) = entries(replace(study, trials=(own,)), item.objective)
    ties = [t for t in trials.values() if cost_ms(t, item.objective)
            <= cost_ms(own, item.objective) * (1 + noise(own, t, item.objective))]  # fmt: skip
    slower = [t for t in trials.values() if t not in ties and t.configuration != study.control]
    runner_up = min(slower, key=lambda t: cost_ms(t, item.objective), default=None)
    control = trials.get(study.control)
    margin = cost_ms(control, item.objective) / cost_ms(own, item.objective) if control else 0.0
    pair = _break_even(item, trials, own)
    return replace(
        found,
        workload=item.workload,
        tie_set=sorted((t.configuration.id for t in ties), key=lambda name: (name != winner.id, name)),
        runner_up=runner_up.configuration.id if runner_up else "",
        runner_up_ms=round(cost_ms(runner_up, item.objective), 7) if runner_up else 0.0,
        margin_over_control=round(margin, 3),
        break_even=pair.launches if pair else 0,
        break_even_with=item.break_even_with if pair else "",
        regret_with=item.regret_with,
        renewed=found.date,
        renewed_from=item.renewed_from or {"date": item.date, **{name: getattr(item, name) for name in _DIGESTS}},
    )  # fmt: skip


def _break_even(item: Entry, trials: Mapping[Configuration, Trial], own: Trial) -> BreakEven | None:
    other = next((t for c, t in trials.items() if c.id == item.break_even_with), None)
    if other is None:
        return None
    return break_even(own, other) if item.objective == "kernel" else break_even(other, own)


def record(path: Path, before: Mapping[str, Entry], after: Mapping[str, Entry]) -> None:
    """Put the entries ``after`` into the policy file at ``path`` where it still has those of ``before``: what a sweep
    has written in the meantime stays. Raises PolicyFileError when it cannot be written."""
    import filelock

    real = Path(os.path.realpath(path))
    try:
        with filelock.FileLock(f"{real}.lock", timeout=_LOCK_SECONDS):
            now = read(real)
            kept = {name: item for name, item in after.items() if now.entries.get(name) == before[name]}
            write(real, replace(now, entries={**now.entries, **kept}))
    except filelock.Timeout:
        raise PolicyFileError(
            f"{path} has been locked for {_LOCK_SECONDS} s by another process; try again"
        ) from None
    except OSError as problem:
        raise PolicyFileError(f"cannot write {path}: {problem.strerror or problem}") from None
