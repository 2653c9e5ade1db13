"""Where a study's figures come from and what was said of the sweep: all that a reader needs to trust or repeat them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from autotune.record.trial import require_types


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """What a family is held against: the kernel that there was before, as it was timed in turn with the control.

    ``source`` and ``kernel`` say which; ``digest`` is of its source and declaration. ``control_ms`` and
    ``winner_ms`` are what those took in turn with it, ``winner`` which configuration that was. Without a time,
    ``reason`` says why."""

    source: str
    kernel: str
    digest: str
    median_ms: float = 0.0
    spread: float = 0.0
    samples: int = 0
    registers: int | None = None
    control_ms: float = 0.0
    winner_ms: float = 0.0
    winner: str = ""
    reason: str = ""

    @property
    def cause(self) -> str:
        """The first line of the reason."""
        return next(iter(self.reason.splitlines()), "")

    @property
    def over_winner(self) -> float:
        """Its time over the winner's, taken in turn; 0 where one of them has none."""
        return self.median_ms / self.winner_ms if self.winner_ms else 0.0

    def beside_ms(self, winner_ms: float) -> float:
        """Return ``winner_ms`` times the ratio to the winner, measured in turn; the median if there is none. Times of
        two occasions cannot be compared, and so the shown times agree with the shown ratio."""
        return self.over_winner * winner_ms or self.median_ms


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where and how a study was made. The fields down to ``policies`` are known when a sweep begins; a field that is
    empty or None is unknown.

    ``features`` are the extents by name, ``constants`` those that never vary, ``compared`` the expressions of the
    family's features, ``accuracy`` the policies that decide how exact a result is; ``operations`` and ``bytes`` those
    of one call, ``needs`` the least that a call needs of a unit; ``policies`` hold name -> {values, default, layout,
    doc}. ``floor_ms`` is the time of an empty kernel, ``timer_floor_ms`` that of nothing at all. ``throttle_reasons``
    is NVML's bit mask. ``searched`` says how much was tried (tried, of, space, by, seed, budget), ``beside`` lists what
    was tried outside of every selection in the record, ``finalists`` identifies the finalists
    (``finalists.fingerprint``), ``retime_ratio`` is the median of their second time over their first, ``proof`` says on
    what winners were proved (version, odd sizes, why there are none, against which configuration), ``baseline`` is what
    the family is compared with, ``sanitized`` says what compute-sanitizer checked (by, configurations), ``counters``
    are hardware counters by configuration's id and kernel, ``phases_s`` wall seconds by phase, ``lost`` says why a
    sweep ended early. ``more`` has other keys, from the device or another version of autotune."""

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
    baseline: Baseline | None = None
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
        """A JSON-ready dict of what is known; ``from_dict`` gives the same back."""
        plain = {name: value for name, value in asdict(self).items() if value != getattr(_UNKNOWN, name)}
        return {**plain.pop("more", {}), **plain}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Provenance":
        """Raises TypeError or ValueError for a dict that is none."""
        own = {name: plain[name] for name in _FIELDS if plain.get(name) is not None}
        known: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in own.items()}
        require_types(cls, known)
        if baseline := known.get("baseline"):
            known["baseline"] = Baseline(**baseline)
        return cls(**known, more={name: value for name, value in plain.items() if name not in _FIELDS})

    def update(self, said: Mapping[str, Any]) -> "Provenance":
        """This with what is said besides, or in place of what was."""
        return Provenance.from_dict({**self.to_dict(), **said})


_UNKNOWN = Provenance()
_FIELDS = tuple(name for name in asdict(_UNKNOWN) if name != "more")
