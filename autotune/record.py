"""What a sweep leaves behind, as values: the studies that reports and policy files are made from.

A study is one family on one workload and one device, with everything that must match for its trials to be
comparable. Reports read studies and nothing else: no device, no kernel source.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from autotune.decision import Decision, decide
from autotune.space import Configuration
from autotune.trial import Trial

__all__ = ["Study"]


@dataclass(frozen=True, kw_only=True)
class Study:
    """``identity`` is a hash over kernel source with headers, space, workload content, compiler and device.

    ``about`` holds what a reader needs to trust the figures: ``title`` and ``device_name``, ``device_kind``,
    ``arch``, ``driver``, ``versions``, ``protocol``, ``date``, ``source_digest``, ``space_digest``,
    ``workload_digest``, ``features`` (extent -> size), ``options``, ``operations`` and ``operation_unit``,
    ``bytes``, ``reference_ms``, ``floor_ms`` (empty-kernel time), ``clock_mhz``, ``phases_s`` (wall seconds by
    phase), ``busy_share``, ``policies`` (name -> {values, default, layout}).
    ``presets`` maps the names of one-configuration presets to configurations, in declared order.
    """

    family: str
    workload: str
    device: str
    identity: str
    control: Configuration
    presets: Mapping[str, Configuration] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    trials: tuple[Trial, ...] = ()

    @property
    def decision(self) -> Decision | None:
        return decide(self.trials, self.control)

    def states(self) -> dict[str, int]:
        """How many trials ended in each state."""
        counts: dict[str, int] = {}
        for trial in self.trials:
            counts[trial.state] = counts.get(trial.state, 0) + 1
        return counts
