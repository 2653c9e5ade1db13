"""What a policy file keeps beside winners: configurations that can win anywhere, and how well they are predicted."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Kept:
    """One configuration, under the name that the entries' ``times_ms`` have it by; ``needs`` as an entry has them,
    ``kernel`` the one that takes the most time."""

    name: str
    configuration: Mapping[str, Any]
    needs: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    kernel: str = ""


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What decides for inputs that no entry matches, where it loses no more than the nearest entry when each entry is
    left out in turn (``prediction.predictions_left_out``). ``options`` and ``accuracy`` are those of the entries it is
    made from, ``left_out`` the mean regret of either, empty where there are too few entries to say. The best of
    ``kept`` loses at most ``kept_regret`` on any entry. ``covered`` is what a plan of sweeps was made for: by parameter
    the lowest and the highest value; ``covered_regret`` what 95 % of the inputs there should keep to.
    ``multiprocessors`` are the device's, 0 where they are not known; ``reach`` and ``load_counts`` as in
    ``prediction.Taught``."""

    options: Mapping[str, Any]
    accuracy: str = ""
    left_out: Mapping[str, float] = field(default_factory=dict)
    kept: Mapping[str, Kept] = field(default_factory=dict)
    kept_regret: float = 0.0
    covered: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    covered_regret: float = 0.0
    multiprocessors: int = 0
    reach: float = 8.0
    load_counts: float = 0.0

    @property
    def is_better(self) -> bool:
        """Whether it is known to lose less than the nearest entry, or as little."""
        return self.left_out.get("prediction", math.inf) <= self.left_out.get("nearest", -math.inf)


def prediction_of(content: Mapping[str, Any]) -> Prediction:
    """The section ``prediction`` of a policy file, of what the schema accepts."""
    told = {key: value for key, value in content.items() if key != "kept"}
    if not content["kept"]:
        raise ValueError("prediction.kept is empty")
    kept = {str(name): Kept(name=str(name), **value) for name, value in content["kept"].items()}
    return Prediction(kept=kept, **told)


def prediction_content(rule: Prediction) -> dict[str, Any]:
    """The mapping that is written: names sorted, empty ones left out."""
    plain: dict[str, Any] = {
        "options": dict(rule.options),
        "accuracy": rule.accuracy,
        "left_out": dict(rule.left_out),
        "kept_regret": rule.kept_regret,
        "covered": {name: dict(ends) for name, ends in rule.covered.items()},
        "covered_regret": rule.covered_regret,
        "multiprocessors": rule.multiprocessors,
        "reach": rule.reach,
        "load_counts": rule.load_counts,
    }
    plain = {name: value for name, value in plain.items() if value or name == "options"}
    kept = {
        name: {
            "configuration": dict(one.configuration),
            **({"kernel": one.kernel} if one.kernel else {}),
            **({"needs": {kernel: dict(needs) for kernel, needs in one.needs.items()}} if one.needs else {}),
        }
        for name, one in sorted(rule.kept.items(), key=lambda item: (len(item[0]), item[0]))
    }
    return {**plain, "kept": kept}
