"""For each array of a tuned program: which form each step wanted, which it got, who gave way, and what that cost."""

from collections.abc import Mapping

from autotune.figures import duration
from autotune.layout import Data
from autotune.program.costs import Choice, Problem, cost


def stories(problem: Problem, picks: Mapping[str, Choice], data: Mapping[str, Data]) -> dict[str, list[str]]:
    """What became of each array under ``picks``, in lines: the forms that it comes in; for each step the form that its
    fastest candidate asks for, the one that it has, and how much more a run of it takes where these differ; the
    conversions that are made."""
    fastest = {step: min(many, key=lambda one: one.ms) for step, many in problem.options.items()}
    made = cost(problem, picks).conversions
    found = {}
    for array, kind in data.items():
        steps, forms = [], dict[str, None]()
        for step, choice in picks.items():
            has, wanted = (_forms(one, array, kind) for one in (choice, fastest[step]))
            forms |= dict.fromkeys(has)
            lost = choice.ms - fastest[step].ms
            if has and has == wanted:
                steps.append(f"  {step} wanted {' and '.join(wanted)} and has it")
            elif has:
                price = f"{duration(lost)} more a run" if lost > 0 else "at no cost"
                wish = " and ".join(wanted) or "nothing of it"
                steps.append(f"  {step} wanted {wish} and gave way to {' and '.join(has)}: {price}")
        copies = [
            f"  copied from {one.before.text(kind)} to {one.after.text(kind)} for {', '.join(one.readers)}: "
            f"{one.count:,} times, {duration(one.ms)} each"
            for one in made
            if one.array == array
        ]
        element = f"{kind.record or kind.fields[0].type} [{', '.join(kind.shape)}]"
        found[array] = [f"{array} ({element}): {' and '.join(forms)}", *steps, *copies]
    return found


def _forms(choice: Choice, array: str, kind: Data) -> list[str]:
    """The forms in which a choice has the array, in words."""
    arrays = choice.of.call.arrays
    return list(
        dict.fromkeys(choice.of.forms[data].text(kind) for data, name in arrays.items() if name == array)
    )


def explained(told: Mapping[str, list[str]]) -> str:
    """All of it as text."""
    return "\n".join(line for lines in told.values() for line in lines)
