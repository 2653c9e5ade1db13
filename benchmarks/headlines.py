"""The entries behind the rows of README's table: what a program runs that asks for the same."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from queries import ON_32_CORES, OURS, entries, first_page, last_run, one, table
from result_files import RESULTS, read_head


@dataclass(frozen=True)
class Headline:
    """What a program runs for a row of the first page: ``entry`` of the policy file of ``family``. ``source`` is the
    table that the row's times are from. The row has the entry's time: its first figure in ms, or, of a rate, what
    ``work`` takes. A row of a whole command or call has a longer time, that of the row ``whole`` in the last run of
    the table, and the configuration that it ran."""

    family: str
    entry: str
    source: str
    work: float = 0.0
    whole: Mapping[str, str] = field(default_factory=dict)

    @property
    def recorded(self) -> Any:
        return entries(self.family)[self.entry]

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
        """The configuration of the whole command or call."""
        row = one(last_run(table(self.source), self.whole["workload"]), **self.whole)
        return dict(re.findall(r"(\w+)=(\w+)", row["configuration"]))


HEADLINES = (
    Headline("allpairs", "wide", "allpairs-h200-cutlass.csv"),
    Headline("king", "biobank-slice", "king-h200-plink.csv",
             whole={"workload": "biobank-slice", "what": "autotune", "part": "call"}),
    Headline("mummergpu", "cbrigg (with-transform)", ON_32_CORES, whole={"workload": "cbrigg", "tool": OURS}),
    Headline("mummergpu", "hsill (with-transform)", ON_32_CORES, whole={"workload": "hsill", "tool": OURS}),
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
        name = f"{headline.family}, {headline.whole['workload']}" if headline.whole else headline.family
        took = "whole command or call" if headline.whole else f"{headline.ms(figures):.4g} ms"
        recorded = f"{headline.recorded['median_ms']:.4g} ms"
        lines.append(f"| {name} | {headline.measured} | `{headline.entry}` | {recorded} | {took} |")
    return {"entries": "\n".join(lines)}
