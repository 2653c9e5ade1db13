"""From what a sweep asks for, as the record keeps it (``SweepRequest.asked``), to a request that joins it elsewhere."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from autotune.compile import is_compiler
from autotune.declaration import families, load_family
from autotune.engine.session import ASKED_PLAINLY, SweepRequest
from autotune.engine.sweep import NotAsked
from autotune.errors import StoreError
from autotune.search import Strategy


def request_of(
    told: Mapping[str, Any], store: str, *, device: str, own: Sequence[str] = (), data: Path | None = None,
    processes: int = 0,
) -> SweepRequest:  # fmt: skip
    """A request to join that sweep, on ``device`` of this host; ``own`` are the families' folders that may be run here,
    beside those that ship with autotune, and ``data`` is where the data are, if not where they are there. Raises
    AutotuneError; NotAsked where the sweep asks for code that nobody here named."""
    try:
        return SweepRequest(
            family=load_family(_trusted(told["family"], own)),
            workloads=(told["workload"],),
            device=device,
            narrowed=told["narrowed"],
            store=store,
            data=data or (Path(told["data"]) if told["data"] else None),
            processes=processes,
            strategy=Strategy(**told["strategy"]),
            joins=True,
            **{name: told[name] for name in ASKED_PLAINLY}
            | {"compiler": _trusted_compiler(told["compiler"])},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise StoreError(
            f"cannot join what another version of autotune asked for ({type(problem).__name__}: {problem}): have one "
            "version on all hosts"
        ) from None


def _trusted(asked: str, own: Sequence[str]) -> str:
    """The family to load: of ``own`` the folder that is called as the one that was asked for, else one that ships with
    autotune. The record's folder is never loaded: whoever may write there would run code here. Raises NotAsked."""
    name = Path(asked).name
    for folder in own:
        if Path(folder).resolve().name == name:
            return folder
    if asked in families():
        return asked
    raise NotAsked(
        f"the sweep asks for the family in {asked}, whose code would run here: read it, then name the folder {name} of "
        "this host with --family; without that a worker runs only families that ship with autotune"
    )


def _trusted_compiler(asked: str) -> str:
    """Raises NotAsked for a command that this host's user did not name."""
    if asked in ("", os.environ.get("CXX")) or is_compiler(asked):
        return asked
    raise NotAsked(
        f"the sweep asks for the compiler {asked!r}, which would run here: set CXX to it if that is what you want; "
        "without that a worker runs only compilers on PATH by their usual names"
    )
