"""What is said of an advice: as text, as JSON, and as a page that is one file."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from autotune.advise.advice import Advice, Suggestion
from autotune.figures import count, format_plain, share, si
from autotune.files import write_text
from autotune.ranking import SHARED, ArrayTraffic

_COLUMNS = (
    "array", "memory", "asked for", "sectors", "at least", "moved", "of all moved",
    "passes of the first cache",
)  # fmt: skip
_MOST_SHOWN = 8  # of the layouts that help less; JSON has all


@dataclass(frozen=True)
class Said:
    """An ``advice`` on ``title`` and what belongs to it: the ``proof`` that a plain kernel and its family give the same
    results, the ``pointers`` for which no layout can be tried, the ``arithmetic`` of the kernel, and the ``presets`` in
    the family folder that was written."""

    title: str
    advice: Advice
    proof: str = ""
    pointers: Mapping[str, str] = field(default_factory=dict)
    arithmetic: str = ""
    presets: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """The answer in a sentence or two."""
        advised, arrays = self.advice.advised, self.advice.arrays
        if not advised:
            return f"No other layout that was traced should be faster. {self._largest()}"
        first, verb = advised[0], "matters" if len(arrays) == 1 else "matter"
        return (
            f"{' and '.join(arrays)} {verb} most: {first.name} saves at most {share(first.most)} of the time, where "
            f"the kernel does nothing but move data; {format_plain(first.ratio)} of the time is left by an estimate."
        )

    def _largest(self) -> str:
        arrays = [one for one in self.advice.control.arrays if one.missed]
        if not arrays:
            return "No access of an array was traced."
        whole = self.advice.control.add_up("missed")
        return f"{arrays[0].name} has {share(arrays[0].missed / whole)} of what is moved."

    @property
    def certainty(self) -> tuple[str, ...]:
        """How sure it is, in lines."""
        given = "inputs: made by the workload"
        if self.advice.is_real:
            given = "inputs: read from the workload's files"
        elif self.proof:
            given = (
                "inputs: random, so what indices in arrays lead to is, too, and real ones may be more local"
            )
        return (*filter(None, (self.proof, given, *self.advice.notes, self.arithmetic)),)

    @property
    def unread(self) -> Iterator[tuple[str, str]]:
        """What could not be tried, and why."""
        yield from ((f"{name} stays as it is", why) for name, why in self.pointers.items())
        yield from ((name, f"cannot be traced: {why}") for name, why in self.advice.failed.items())
        yield from self.advice.left_out.items()


def array_row(one: ArrayTraffic, moved: float) -> tuple[str, ...]:
    """The cells of an array, of a kernel in which ``moved`` sectors leave the second cache."""
    if one.name == SHARED:
        conflicts = one.wavefronts - one.requests
        told = f"{count(one.wavefronts)} ({share(conflicts / max(1.0, one.wavefronts))} by bank conflicts)"
        return (one.name, one.memory, "", "", "", "", "", told)
    figures = (one.sectors, one.ideal, one.missed)
    part = share(one.missed / moved) if moved else ""
    asked = f"{si(one.asked_bytes)}B"
    return (one.name, one.memory, asked, *map(count, figures), part, count(one.wavefronts))


def suggestion_row(one: Suggestion) -> tuple[str, ...]:
    """The cells of a suggestion."""
    saved = (share(one.save("missed")), share(one.save("wavefronts")))
    return (one.name, ", ".join(one.arrays), share(one.most), *saved, format_plain(one.ratio))


SUGGESTED = ("layout", "arrays", "saves at most", "of moved sectors", "of passes", "estimate / control's")


def print_advice(said: Said, out: Console) -> None:
    """The answer first, then the figures behind it."""
    advice = said.advice
    out.print(f"{said.title} on {advice.workload}\n{said.verdict}\n", markup=False, highlight=False)
    for kernel in advice.control.kernels:
        table = Table(*_COLUMNS, title=f"kernel {kernel.kernel}, as it is", title_justify="left", box=None)
        moved = sum(one.missed for one in kernel.arrays)
        for one in kernel.arrays:
            table.add_row(*array_row(one, moved))
        out.print(table)
    if advice.suggestions:
        title = "other layouts, applied and traced again; the best estimate first"
        table = Table(*SUGGESTED, title=title, title_justify="left", box=None)
        for suggestion in advice.suggestions[:_MOST_SHOWN]:
            table.add_row(*suggestion_row(suggestion))
        out.print(table)
    unread = [f"{name}: {why}" for name, why in said.unread]
    for head, lines in (("how sure", said.certainty), ("not tried", unread)):
        if lines:
            text = "\n  ".join([head, *lines])
            out.print(text, markup=False, highlight=False, soft_wrap=True)


def as_json(said: Said) -> str:
    """All figures, unrounded."""
    advice = said.advice
    content: dict[str, Any] = {
        "schema": 1,
        "title": said.title,
        "family": advice.family.name,
        "workload": advice.workload,
        "verdict": said.verdict,
        "arrays": list(advice.arrays),
        "kernels": [asdict(kernel) for kernel in advice.control.kernels],
        "suggestions": [
            {
                "set": one.values, "arrays": list(one.arrays), "saves_at_most": one.most, "helps": one.helps,
                "saves_moved": one.save("missed"), "saves_sectors": one.save("sectors"),
                "saves_passes": one.save("wavefronts"), "estimate_over_control": one.ratio,
                "costs": [asdict(array) for array in one.costs.arrays],
            }
            for one in advice.suggestions
        ],
        "presets": list(said.presets),
        "how_sure": list(said.certainty),
        "not_tried": dict(said.unread),
    }  # fmt: skip
    return json.dumps(content, indent=1) + "\n"


def write_page(said: Said, path: Path) -> Path:
    """Write the page, whole or not at all. Raises StoreError."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    template = environment.from_string(Path(__file__).with_name("page.html.j2").read_text(encoding="utf-8"))
    kernels = []
    for kernel in said.advice.control.kernels:
        moved = sum(one.missed for one in kernel.arrays)
        kernels.append((kernel, [(one, array_row(one, moved)) for one in kernel.arrays]))
    suggestions = [(one, suggestion_row(one)) for one in said.advice.suggestions]
    page = template.render(
        said=said, advice=said.advice, kernels=kernels, suggestions=suggestions, columns=_COLUMNS,
        suggested=SUGGESTED,
    )  # fmt: skip
    return write_text(path, page)
