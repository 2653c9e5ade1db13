"""What a program's own calls found (``load(refine=True)``), kept in the user's own policy folder, apart from sweeps."""

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from autotune import __version__
from autotune.declaration import Family
from autotune.errors import AutotuneError, PolicyFileError
from autotune.files import own_policies
from autotune.hardware import Device
from autotune.layout import layouts_digest
from autotune.policy.file import Entry, PolicyFile, locked, read_policy_file, write
from autotune.policy.prediction import operations
from autotune.record import accuracy_class

_log = logging.getLogger("autotune")
_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True)
class Refined:
    """Calls on inputs of ``sizes``, ``options`` and ``scalars`` on ``device``: ``taken`` (a ``Candidate``) was the
    fastest of those in ``told`` (by configuration id, ms); its ``times`` in ms, and how many ``calls`` were timed."""

    family: Family
    device: Device
    compiler: str
    sizes: Mapping[str, int]
    options: Mapping[str, Any]
    scalars: Mapping[str, float]
    taken: Any
    told: Mapping[str, float]
    times: Sequence[float]
    calls: int

    @property
    def entry(self) -> Entry:
        """As an entry of a policy file."""
        family = self.family
        read = {name for expression in family.features.values() for name in expression.names}
        features = {n: v for n, v in sorted({**self.sizes, **self.scalars}.items()) if n in read}
        name = "-".join(f"{value:g}" for value in features.values())
        from statistics import median  # with fractions and decimals

        took = median(self.times[1:] or self.times)
        spread = (max(self.times) - min(self.times)) / 2 / took
        return Entry(
            name=f"refined {name}", workload=f"refined {name}", features=features, options=dict(self.options),
            accuracy=accuracy_class(self.taken.configuration, family.accuracy),
            configuration=dict(self.taken.configuration), median_ms=round(took, 7), spread=round(spread, 5),
            samples=len(self.times), operations=operations(family, self.sizes, self.options, self.scalars),
            source_digest=family.source_digest, layouts_digest=layouts_digest(), space_digest=family.space_digest,
            compiler=self.compiler, driver=self.device.driver, autotune=__version__,
            date=datetime.now(UTC).isoformat(timespec="seconds"),
            refined={
                "calls": self.calls, "from": self.taken.origin,
                "times_ms": {name: round(ms, 7) for name, ms in sorted(self.told.items())},
            },
        )  # fmt: skip

    def write(self) -> None:
        """Put it into the user's own folder. What goes wrong there is logged: the program has what it needs."""
        path = refined_path(own_policies(), self.family.name, self.device)
        entry = self.entry
        try:
            with _ONE_AT_A_TIME, locked(path) as real:
                before = _read(real)
                made = PolicyFile(
                    family=self.family.name, device=self.device, default=entry.configuration,
                    entries={**(before.entries if before else {}), entry.name: entry},
                )  # fmt: skip
                write(real, made)
        except (AutotuneError, OSError) as problem:
            _log.warning("%s: what calls found is not kept: %s", self.family.name, problem)


def refined_path(folder: Path, family: str, device: Device) -> Path:
    """Where such entries lie below a folder of policy files: beside nothing that is looked through for devices."""
    return folder / family / "refined" / f"{device.slug}.yaml"


def _read(path: Path) -> PolicyFile | None:
    if not path.is_file():
        return None
    try:
        return read_policy_file(path)
    except PolicyFileError as problem:
        _log.warning("%s is written anew: %s", path, problem)
        return None


def with_refined(own: PolicyFile, family: Family, device: Device, folders: Sequence[Path]) -> PolicyFile:
    """``own`` with what calls found on inputs that it has no entry for, from the first of ``folders`` that has any."""
    for folder in folders:
        if (found := _read(refined_path(folder, family.name, device))) is not None:
            known = [(dict(e.features), dict(e.options), e.accuracy) for e in own.entries.values()]
            more = {
                name: e
                for name, e in found.entries.items()
                if e.refined and (dict(e.features), dict(e.options), e.accuracy) not in known
            }
            return replace(own, entries={**own.entries, **more})
    return own
