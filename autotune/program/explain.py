"""For each array of a tuned program: which form each step wanted, which it got, who gave way, and what that cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autotune.figures import duration
from autotune.program.costs import Choice, Port, Problem, cost


@dataclass(frozen=True, kw_only=True)
class Wish:
    """One step on one array: the form that its fastest candidate asks for, the one that it has, and how many
    milliseconds a run of the step takes more than at its fastest."""

    step: str
    wanted: str
    has: str
    lost_ms: float

    @property
    def gave_way(self) -> bool:
        return self.wanted != self.has


@dataclass(frozen=True, kw_only=True)
class Copied:
    """A conversion that is made: how often in the whole program, how long each takes, and for which steps."""

    before: str
    after: str
    count: int
    ms: float
    steps: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Story:
    """What became of one array."""

    array: str
    element: str
    forms: tuple[str, ...]
    wishes: tuple[Wish, ...]
    copied: tuple[Copied, ...]

    def lines(self) -> list[str]:
        """It as text."""
        told = [f"{self.array} ({self.element}): {' and '.join(self.forms)}"]
        for wish in self.wishes:
            if not wish.gave_way:
                told.append(f"  {wish.step} wanted {wish.wanted} and has it")
            else:
                cost_ = f"{duration(wish.lost_ms)} more a run" if wish.lost_ms > 0 else "at no cost"
                told.append(f"  {wish.step} wanted {wish.wanted} and gave way to {wish.has}: {cost_}")
        for one in self.copied:
            told.append(
                f"  copied from {one.before} to {one.after} for {', '.join(one.steps)}: {one.count:,} times, "
                f"{duration(one.ms)} each"
            )
        return told

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> "Story":
        return cls(
            array=told["array"], element=told["element"], forms=tuple(told["forms"]),
            wishes=tuple(Wish(**one) for one in told["wishes"]),
            copied=tuple(Copied(**{**one, "steps": tuple(one["steps"])}) for one in told["copied"]),
        )  # fmt: skip


def stories(problem: Problem, picks: Mapping[str, Choice], data: Mapping[str, Any]) -> tuple[Story, ...]:
    """What became of each array under ``picks``."""
    fastest = {step: min(many, key=lambda one: one.ms) for step, many in problem.options.items()}
    made = cost(problem, picks)
    found = []
    for array, kind in data.items():
        wishes: list[Wish] = []
        forms: dict[str, None] = {}
        for step, option in picks.items():
            has, wanted = (_forms(one, array, kind) for one in (option, fastest[step]))
            forms |= dict.fromkeys(has)
            if has:
                lost = max(0.0, option.ms - fastest[step].ms)
                wishes.append(
                    Wish(
                        step=step,
                        wanted=" and ".join(wanted) or "nothing of it",
                        has=" and ".join(has),
                        lost_ms=lost,
                    )
                )
        copied = tuple(
            Copied(
                before=one.before.text(kind),
                after=one.after.text(kind),
                count=one.count,
                ms=one.ms,
                steps=one.readers,
            )
            for one in made.conversions
            if one.array == array
        )
        element = f"{kind.record or kind.fields[0].type} [{', '.join(kind.shape)}]"
        found.append(
            Story(array=array, element=element, forms=tuple(forms), wishes=tuple(wishes), copied=copied)
        )
    return tuple(found)


def _forms(option: Choice, array: str, kind: Any) -> list[str]:
    """The forms in which an option has the array, in words."""
    call = option.of.call
    asked: dict[Port, Any] = dict(option.forms)
    found = {
        asked[Port(call.step, call.place, data)].text(kind): None
        for data, name in call.arrays.items()
        if name == array
    }
    return list(found)


def explained(told: Sequence[Story]) -> str:
    """All of them as text."""
    return "\n".join(line for story in told for line in story.lines())
