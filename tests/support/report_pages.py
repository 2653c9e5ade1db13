"""Studies made up for reports, and what a reader sees of a page."""

import itertools
import json
import math
import random
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from autotune.compile.profile import KernelProfile
from autotune.declaration.space import Configuration
from autotune.measure import Figure
from autotune.record import Provenance
from autotune.record.study import Study
from autotune.record.trial import Measurement, Trial

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"

HOSTILE = (
    "<script>alert('x')</script> \"q\", $x$ & </script><!-- \u2028\nsecond line\r\nthird\x00\x1b[31m \udc80"
)
POLICIES: dict[str, tuple[int | str, ...]] = {
    "axes": ("attribute_major", "instance_major"),
    "packing": ("int32", "int8", "</script><b>planes"),
    "memory": ("global", "texture", "constant"),
    "block_size": (128, 64, 256),
    "state": ("plain", "quoted, \"twice\""),
}  # fmt: skip
CONTROL = Configuration({name: values[0] for name, values in POLICIES.items()})


def fake_study(workload: str = "primer", seed: int = 1, *, kernels: tuple[str, ...] = ("walk",)) -> Study:
    """108 configurations: most measured, some failed, some hostile."""
    chance = random.Random(seed)
    trials = []
    for values in itertools.product(*POLICIES.values()):
        configuration = Configuration(dict(zip(POLICIES, values, strict=True)))
        ms = 40.0 * math.exp(chance.gauss(0, 0.5)) / (1 + 30 * (configuration["packing"] == "int8"))
        profiles = tuple(
            KernelProfile(
                kernel=kernel, block_size=128, registers=chance.randrange(16, 90), blocks_per_sm=8,
                occupancy=chance.choice([0.25, 0.5, 1.0]), limited_by="registers", static_shared_bytes=512,
            )
            for kernel in kernels
        )  # fmt: skip
        trial = Trial(
            family="tree <b>walk</b>", workload=workload, device="gpu-1", configuration=configuration,
            state="measured", profiles=profiles, phases_ms={"compile": 20.0, "verify": 3.5},
            notes=("throttled",) if chance.random() < 0.1 else (),
            measurement=Measurement(
                median_ms=ms, minimum_ms=ms * 0.98, spread=0.004, samples=31,
                kernel_ms={kernel: ms / len(kernels) for kernel in kernels},
                figures={"transform_ms": Figure(2.5), "footprint_bytes": Figure(4096)},
            ),
        )  # fmt: skip
        if configuration != CONTROL and chance.random() < 0.15:
            trial = replace(trial, state="compile_failed", reason=HOSTILE, measurement=None, profiles=())
        trials.append(trial)
    presets = {
        "control": CONTROL,
        "naive": CONTROL,
        "texture": Configuration({**CONTROL, "memory": "texture"}),
    }
    about = {
        "device_name": "GPU <1>", "arch": "sm_90", "operations": 1e9, "operation_unit": "steps", "bytes": 4e6,
        "floor_ms": 0.002, "phases_s": {"compile": 1.5}, "busy_share": 0.75, "date": "2026-01-02",
        "policies": {name: {"values": list(v), "default": v[0]} for name, v in POLICIES.items()},
    }  # fmt: skip
    return Study(
        family="tree <b>walk</b>", workload=workload, device="gpu-1", identity=f"abc{seed}", control=CONTROL,
        presets=presets, about=Provenance.from_dict(about), trials=tuple(trials),
    )  # fmt: skip


def measured(study: Study) -> list[tuple[Trial, Measurement]]:
    return [(trial, trial.measurement) for trial in study.trials if trial.measurement]


@dataclass
class Page(HTMLParser):
    """What a reader sees: text without scripts, table rows by name, cards, and the embedded data."""

    scripts: list[str] = field(default_factory=list)
    tables: dict[str, list[list[str]]] = field(default_factory=dict)
    cards: dict[str, str] = field(default_factory=dict)
    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    text: str = ""
    _open: str = ""
    _rows: list[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.tags.append((tag, values))
        self._open = tag
        if tag == "table":
            self._rows = self.tables.setdefault(str(values["data-name"]), [])
        if tag == "tr":
            self._rows.append([])
        if tag in ("td", "th"):
            self._rows[-1].append(str(values.get("data-v" if tag == "td" else "data-key")))
        if tag == "data":
            self.cards.setdefault(str(values["data-card"]), str(values["value"]))

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open == "script":
            self.scripts.append(data)
        elif self._open != "style":
            self.text += data


def read_page(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    page.close()
    return page


def embedded(page: Page) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(next(s for s in page.scripts if s.startswith("{")))
    return loaded
