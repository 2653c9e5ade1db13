"""The entries behind the rows of README's table: what a program runs that asks for the same."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from queries import ON_32_CORES, OURS, entries, first_page, last_run, one, table
from result_files import RESULTS, read_head


@dataclass(frozen=True)
class Headline:
    """What a program runs for a row of the first page: ``entry`` of the policy file of ``family``; ``missing`` says why
    there is none. ``source`` is the table that the row's times are from. The row has the entry's time: its first figure
    in ms, or, of a rate, what ``work`` takes. A row of a whole ``command`` (its workload) has a longer time, and the
    configuration that the command ran."""

    family: str
    entry: str
    source: str
    work: float = 0.0
    command: str = ""
    missing: str = ""

    @property
    def recorded(self) -> Any:
        """The entry, or None."""
        return entries(self.family).get(self.entry)

    @property
    def measured(self) -> str:
        """The day of the last run in the table."""
        *_, last = re.findall(r"\d{4}-\d\d-\d\d", read_head(RESULTS / self.source)["date"])
        return str(last)

    def ms(self, figures: Sequence[float]) -> float:
        """The row's time."""
        return 1e3 * self.work / figures[0] if self.work else figures[0]

    @property
    def ran(self) -> dict[str, str]:
        """The configuration of the last run of the command."""
        row = one(last_run(table(self.source), self.command), tool=OURS)
        return dict(word.split("=") for word in row["configuration"].partition(" ")[0].split(","))


HEADLINES = (
    Headline("allpairs", "wide", "allpairs-h200-cutlass.csv"),
    Headline("mummergpu", "cbrigg (with-transform)", ON_32_CORES, command="cbrigg"),
    Headline("mummergpu", "hsill (with-transform)", ON_32_CORES, command="hsill"),
    Headline("mummergpu", "", "mummergpu-h200-large-turns.csv", missing="no workload has this size"),
    Headline("coulomb", "mache-half", "coulomb-h200-peers.csv", work=8279 * 189 * 169 * 152),
    Headline("coulomb_map", "million-coarse", "coulomb_map-h200-equal-errors.csv"),
    Headline("coulomb_map", "million-bounds", "coulomb_map-h200-equal-errors.csv"),
    Headline("cyclospectrum", "n16384", "cyclospectrum-h200.csv.xz"),
    Headline("eri", "water27-jk", "eri-h200-matrices.csv"),
    Headline("eri_sp", "water27-jk", "eri-sp-h200-winner.csv"),
    Headline("reaction_diffusion", "huge", "reaction_diffusion-h200-an5d.csv", work=240 * 16384**2),
)  # fmt: skip


def tables() -> dict[str, str]:
    """What docs/results/performance.md has (pages.py)."""
    lines = ["| row | measured | entry | its time | time of the row |", "|---|---|---|---|---|"]
    for headline, figures in zip(HEADLINES, first_page(), strict=True):
        name = f"{headline.family}, {headline.command.upper()}" if headline.command else headline.family
        name += f" | {headline.measured}"
        if (entry := headline.recorded) is None:
            lines.append(f"| {name} | none: {headline.missing} | | |")
            continue
        row = "whole command" if headline.command else f"{headline.ms(figures):.4g} ms"
        lines.append(f"| {name} | `{headline.entry}` | {entry['median_ms']:.4g} ms | {row} |")
    return {"entries": "\n".join(lines)}
