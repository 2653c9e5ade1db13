"""What a program's own calls found (``load(refine=True)``), kept in the user's own policy folder, apart from sweeps."""

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from autotune import __version__
from autotune.declaration import Configuration, Family, Inputs
from autotune.errors import AutotuneError, PolicyFileError
from autotune.files import own_policies
from autotune.hardware import Device
from autotune.layout import layouts_digest
from autotune.policy.acceptance import find_change
from autotune.policy.file import Entry, PolicyFile, lock, read_policy_file, write
from autotune.record import TIE, accuracy_class

_log = logging.getLogger("autotune")
_ONE_AT_A_TIME = threading.Lock()


def keep_refined(
    family: Family, device: Device, compiler: str, inputs: Inputs, taken: Any,
    times: Mapping[Configuration, Sequence[float]],
) -> None:  # fmt: skip
    """Put what calls on ``inputs`` found into the user's own folder, with what other processes found there: ``taken``
    (a ``Candidate``) was the fastest of those in ``times`` (ms). What goes wrong is logged: the program has what it
    needs."""
    entry = _entry(family, device, compiler, inputs, taken, times)
    try:
        with _ONE_AT_A_TIME, lock(refined_path(own_policies(), family.name, device)) as real:
            before = _read(real)
            known = dict(before.entries) if before else {}
            known[entry.name] = _merge(family, known.get(entry.name), entry)
            whole = PolicyFile(family=family.name, device=device, default=entry.configuration, entries=known)
            write(real, whole)
    except (AutotuneError, OSError) as problem:
        _log.warning("%s: what calls found is not kept: %s", family.name, problem)


def _entry(
    family: Family, device: Device, compiler: str, inputs: Inputs, taken: Any,
    times: Mapping[Configuration, Sequence[float]],
) -> Entry:  # fmt: skip
    from statistics import median  # with fractions and decimals

    read = {name for expression in family.features.values() for name in expression.names}
    features = {n: v for n, v in sorted({**inputs.sizes, **inputs.scalars}.items()) if n in read}
    accuracy = accuracy_class(taken.configuration, family.accuracy)
    asked = [f"{option}={value}" for option, value in sorted(inputs.options.items())]
    sizes = "-".join(f"{value:g}" for value in features.values())
    name = " ".join(["refined", sizes, *asked, *([accuracy] if accuracy else [])])
    own = times[taken.configuration]
    took = median(own[1:] or own)
    return Entry(
        name=name, workload=name, features=features, options=dict(inputs.options),
        accuracy=accuracy, configuration=dict(taken.configuration),
        median_ms=round(took, 7), spread=round((max(own) - min(own)) / 2 / took, 5), samples=len(own),
        source_digest=family.source_digest, layouts_digest=layouts_digest(), space_digest=family.space_digest,
        compiler=compiler, driver=device.driver, autotune=__version__,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        refined={
            "calls": sum(map(len, times.values())), "from": taken.origin,
            "times_ms": {c.id: round(min(each), 7) for c, each in sorted(times.items(), key=lambda one: one[0].id)},
        },
    )  # fmt: skip


def _merge(family: Family, old: Entry | None, new: Entry) -> Entry:
    """Both entries of one input as one, the same in whichever order they came: calls are added up, of each
    configuration the least time counts, and of the two winners the faster one stays (by its id where they are less
    than 1 % apart). An entry of other sources, compiler or driver gives way."""
    alike = ("compiler", "driver", "options", "features", "accuracy")
    if old is None or find_change(family, old):
        return new
    if any(getattr(old, key) != getattr(new, key) for key in alike):
        return new
    times = dict(old.refined["times_ms"])
    for name, ms in new.refined["times_ms"].items():
        times[name] = min(ms, times.get(name, ms))
    found = {Configuration(one.configuration).id: one for one in sorted((old, new), key=lambda e: e.samples)}
    least = min(times[name] for name in found)
    winner = found[min(name for name in found if times[name] <= least * (1 + TIE))]
    calls = old.refined["calls"] + new.refined["calls"]
    return replace(
        winner, refined={**winner.refined, "calls": calls, "times_ms": dict(sorted(times.items()))}
    )


def refined_path(folder: Path, family: str, device: Device) -> Path:
    """Return the path of such entries below a folder of policy files; no search for devices looks there."""
    return folder / family / "refined" / f"{device.slug}.yaml"


def _read(path: Path) -> PolicyFile | None:
    if not path.is_file():
        return None
    try:
        return read_policy_file(path)
    except PolicyFileError as problem:
        _log.warning("%s is replaced: %s", path, problem)
        return None


def add_refined(own: PolicyFile, family: Family, device: Device, folders: Sequence[Path]) -> PolicyFile:
    """``own`` with what calls found on inputs that it has no entry for, from the first of ``folders`` that has any."""
    for folder in folders:
        if (refined := _read(refined_path(folder, family.name, device))) is not None:
            known = [(dict(e.features), dict(e.options), e.accuracy) for e in own.entries.values()]
            more = {
                name: e
                for name, e in refined.entries.items()
                if e.refined and (dict(e.features), dict(e.options), e.accuracy) not in known
            }
            return replace(own, entries={**own.entries, **more})
    return own
