"""``ranking.csv``: what a static pass expects of each configuration; a search begins with the first few of it."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from autotune.declaration import Family
from autotune.files import clean, write_text
from autotune.ranking.forecasts import Forecast, by_cycles
from autotune.ranking.warp_requests import Requests

_DIGESTS = ("source_digest", "space_digest")
_COLUMNS = (
    "family", "workload", "arch", "rank", "configuration", "cycles", "bound", *Requests().figures(), "reason", *_DIGESTS
)  # fmt: skip


def write_ranking(
    family: Family, workload: str, forecasts: Sequence[tuple[str, Sequence[Forecast]]], path: Path
) -> Path:
    """A row for each architecture and configuration, the fastest first; those that were not traced come last, with the
    reason. The figures of requests are a warp's, all launches together. Raises StoreError."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for arch, found in forecasts:
        head = {
            "family": family.name, "workload": workload, "arch": arch,
            "source_digest": family.source_digest, "space_digest": family.space_digest,
        }  # fmt: skip
        for rank, one in enumerate(by_cycles(found), 1):
            figures = [launched.requests.figures() for launched in one.launches]
            sums = {name: f"{sum(f[name] for f in figures):.6g}" for name in figures[0]}
            told = {"rank": rank, "configuration": one.configuration.id, "cycles": f"{one.cycles:.6g}"}
            writer.writerow({**head, **told, "bound": one.bound, **sums})
        for one in found:
            if not one.launches:
                writer.writerow(
                    {
                        **head,
                        "configuration": one.configuration.id,
                        "reason": clean(" ".join(one.message.split())),
                    }
                )
    return write_text(path, text.getvalue())
