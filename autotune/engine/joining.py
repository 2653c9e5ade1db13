"""From what a sweep asks for, as the record keeps it (``SweepRequest.asked``), to a request that joins it elsewhere."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autotune.declaration import load_family
from autotune.engine.session import ASKED_PLAINLY, SweepRequest
from autotune.errors import StoreError
from autotune.search import Strategy


def request_of(
    told: Mapping[str, Any], store: str, *, device: str, family: str = "", data: Path | None = None, processes: int = 0
) -> SweepRequest:  # fmt: skip
    """A request to join that sweep, on ``device`` of this host; ``family`` and ``data`` name where they are here, if
    not where they are there. Raises AutotuneError."""
    try:
        return SweepRequest(
            family=load_family(family or told["family"]),
            workloads=(told["workload"],),
            device=device,
            narrowed=told["narrowed"],
            store=store,
            data=data or (Path(told["data"]) if told["data"] else None),
            processes=processes,
            strategy=Strategy(**told["strategy"]),
            joins=True,
            **{name: told[name] for name in ASKED_PLAINLY},
        )
    except (KeyError, TypeError) as problem:
        raise StoreError(
            f"cannot join what another version of autotune asked for ({type(problem).__name__}: {problem}): have one "
            "version on all hosts"
        ) from None
