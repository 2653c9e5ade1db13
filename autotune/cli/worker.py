"""``autotune worker``: joins the sweeps of a record that hosts share, and leaves when nothing of them is left."""

import time
from functools import partial
from typing import Any

from rich.console import Console

from autotune.cli import options
from autotune.engine import NotAsked, open_session, request_of
from autotune.errors import DeviceError, Interrupted, StoreError
from autotune.record import Store
from autotune.report import show_live

_LOOK_S = 1.0  # between looks for a sweep


@options.option("--store URL|DIR", required=True, help="Record of the sweep, as given to its --store.")
@options.sweep_options("device", "data", "processes")
@options.option(
    "--family DIR", multiple=True, help="Folder of a family on this host whose code may run; repeat for more."
)
@options.option("--wait S", default=300.0, least=0, help="Wait S seconds for a sweep to start.")
def worker_command(store: str, family: tuple[str, ...], wait: float, **asked: Any) -> None:
    """Try what the sweeps in the record ask for on this host's device, one after the other, with the families that ship
    with autotune and those in the folders ``family``. Raises AutotuneError: where there is none for it, the reason."""
    out, err = options.out, options.err
    joined, reasons = 0, []
    for told in _await_requests(store, wait, err):
        try:
            request = request_of(told, store, own=family, **asked)
            request.strategy.check(request.configurations)
            with open_session(request, request.cases(), partial(show_live, err=err), err.print) as session:
                (swept,) = session.sweeps()
        except NotAsked as problem:
            reasons.append(str(problem))
            continue
        joined += 1
        study = swept.study
        out.print(
            f"{study.family} on {study.workload}: {len(study.trials)} recorded, {swept.before} of them before this "
            f"worker came; {swept.wall_s:.1f} s"
        )
        if swept.interrupted:
            raise Interrupted(f"interrupted: {swept.interrupted}; other workers continue")
        if study.about.lost:
            raise DeviceError(study.about.lost)
    why = "; ".join(dict.fromkeys(reasons))
    if not joined:
        raise StoreError(why)
    if why:
        err.print(f"not joined: {why}")


def _await_requests(where: str, wait_s: float, err: Console) -> list[dict[str, Any]]:
    """What sweeps ask for, when there is one. Raises StoreError."""
    store, until = Store(where), time.monotonic() + wait_s
    while not (requests := store.list_requests()):
        if time.monotonic() > until:
            raise StoreError(
                f"no sweep began in {store.where} within {wait_s:g} s: start `autotune sweep … --store` with it on one "
                "host, or wait longer (--wait)"
            )
        time.sleep(_LOOK_S)
    err.print(f"{len(requests)} to join in {store.where}")
    return requests
