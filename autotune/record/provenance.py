"""Where a study's figures come from and what was said of the sweep: all that a reader needs to trust or repeat them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from autotune.record.typed import require_types


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """The first fields, down to ``policies``, are known when a sweep begins; what is empty or None was not told.

    ``features`` are the extents by name, ``constants`` those that never vary, ``compared`` the expressions of the
    family's features, ``accuracy`` the policies that decide how exact a result is; ``operations`` and ``bytes`` those
    of one call, ``needs`` the least that a call needs of a unit; ``policies`` hold name -> {values, default, layout,
    doc}. ``floor_ms`` is the time of an empty kernel, ``timer_floor_ms`` that of nothing at all. ``throttle_reasons``
    is NVML's bit mask. ``searched`` says how much was tried (tried, of, space, by, seed, budget), ``beside`` what was
    tried with the selection and is part of none that the record holds, ``finalists`` which were chosen
    (``finalists.fingerprint``), ``retime_ratio`` the median of their second time over their first, ``proof`` what
    winners were proved on (version, ragged sizes, why there are none, against which configuration), ``baseline`` what
    the family is held against (see ``baseline.Baseline``), ``sanitized`` what compute-sanitizer saw (by,
    configurations), ``counters`` hardware counters by configuration's id and kernel, ``phases_s`` wall seconds by
    phase, ``lost`` why a sweep ended early. ``more`` is what the device, or another version of autotune, said
    besides."""

    title: str = ""
    device_name: str = ""
    device_kind: str = ""
    arch: str = ""
    compute_capability: str = ""
    driver: str = ""
    compiler: str = ""
    autotune: str = ""
    date: str = ""
    protocol: Mapping[str, Any] = field(default_factory=dict)
    source_digest: str = ""
    space_digest: str = ""
    layouts_digest: str = ""
    workload_digest: str = ""
    features: Mapping[str, Any] = field(default_factory=dict)
    constants: tuple[str, ...] = ()
    scalars: Mapping[str, Any] = field(default_factory=dict)
    compared: Mapping[str, str] = field(default_factory=dict)
    accuracy: tuple[str, ...] = ()
    libraries: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str | int] = field(default_factory=dict)
    operations: float | None = None
    operation_unit: str = ""
    bytes: float | None = None
    needs: Mapping[str, float] = field(default_factory=dict)
    policies: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    clock_mhz: int | None = None
    throttle_reasons: int | None = None
    timer_floor_ms: float | None = None
    floor_ms: float | None = None
    reference_ms: float | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    finalists: str = ""
    retime_ratio: float | None = None
    proof: Mapping[str, Any] = field(default_factory=dict)
    baseline: Mapping[str, Any] = field(default_factory=dict)
    searched: Mapping[str, Any] = field(default_factory=dict)
    beside: tuple[str, ...] | None = None
    idle_policies: tuple[str, ...] | None = None
    phases_s: Mapping[str, float] = field(default_factory=dict)
    busy_share: float | None = None
    visited: int = 0
    interrupted: bool = False
    lost: str = ""
    warning: str = ""
    sanitized: Mapping[str, Any] = field(default_factory=dict)
    counters: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready dict; ``from_dict`` gives the same back. What became known during a sweep is in it when it was
        told."""
        plain: dict[str, Any] = {}
        for name, unknown in _UNKNOWN.items():
            value = getattr(self, name)
            if name == "more":
                plain |= value
            elif name in _AT_FIRST or value != unknown:
                plain[name] = list(value) if isinstance(value, tuple) else value
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Provenance":
        """Raises TypeError or ValueError for a dict that is none."""
        known = {
            name: _typed(plain[name], _UNKNOWN[name]) for name in plain if name in _UNKNOWN and name != "more"
        }
        require_types(cls, known)
        return cls(**known, more={name: value for name, value in plain.items() if name not in known})

    def told(self, said: Mapping[str, Any]) -> "Provenance":
        """This with what is said besides, or anew."""
        return Provenance.from_dict({**self.to_dict(), **said})


def _typed(value: Any, unknown: Any) -> Any:
    """A recorded value as its field holds it."""
    if value is None:
        return unknown
    if isinstance(value, list):
        return tuple(value)
    if isinstance(unknown, str):
        return str(value)
    return dict(value) if isinstance(unknown, dict) else value


_UNKNOWN: Mapping[str, Any] = {one.name: getattr(Provenance(), one.name) for one in fields(Provenance)}
_AT_FIRST = tuple(_UNKNOWN)[: tuple(_UNKNOWN).index("policies") + 1]  # told of every study, be it as empty
