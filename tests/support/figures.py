"""Which figures in README and the documents come from which file in ``benchmarks/results``, and how they are computed from it.

A ``Figure`` quotes its page word for word (line breaks are blanks) with each number that is computed in braces.
``{2,000~1}`` is a number that the page gives to one digit; any other is taken at the precision it is printed with.
"""
# ruff: noqa: E501 - what is quoted is not broken

import json
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

__all__ = ["FIGURES", "RESULTS", "Figure", "printed", "quoted"]

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")


@dataclass(frozen=True)
class Figure:
    """``files`` are those that ``values`` reads, whose results stand for the numbers in braces, in order."""

    page: str
    text: str
    files: tuple[str, ...]
    values: Callable[..., Sequence[float]]

    def computed(self) -> list[float]:
        return [float(value) for value in self.values(*map(read, self.files))]


@cache
def read(name: str) -> Any:
    """A table; the ceilings of limits.json as a mapping."""
    if name.endswith(".json"):
        return json.loads((RESULTS / name).read_text(encoding="utf-8"))["ceilings"]
    return pd.read_csv(RESULTS / name, low_memory=False)


def quoted(text: str) -> tuple[str, list[str]]:
    """``text`` as the page has it, and the numbers in its braces."""
    return re.sub(r"\{([^{}~]+)(?:~\d+)?\}", r"\1", text), re.findall(r"\{([^{}]+)\}", text)


def printed(number: str) -> tuple[float, float]:
    """A number as a page prints it, and how far off the one behind it may be."""
    number, _, digits = number.partition("~")
    plain = number.replace(",", "")
    if match := re.fullmatch(r"([\d.]+)·10([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)", plain):
        plain = f"{match[1]}e{match[2].translate(_SUPERSCRIPTS)}"
    value = float(plain)
    mantissa, _, exponent = plain.partition("e")
    places = int(exponent or 0) - len(mantissa.partition(".")[2])
    if digits:
        places = math.floor(math.log10(abs(value))) - int(digits) + 1
    return value, 0.501 * 10.0**places


def row(frame: pd.DataFrame, column: str, **wanted: Any) -> float:
    """The only value of ``column`` in the rows that have what is wanted."""
    for name, value in wanted.items():
        frame = frame[frame[name] == value]
    (value,) = frame[column]
    return float(value)


def best(frame: pd.DataFrame, **wanted: Any) -> float:
    """The shortest time of the measured rows that have what is wanted; a list stands for any of its members."""
    for name, value in wanted.items():
        frame = frame[frame[name].isin(value if isinstance(value, list) else [value])]
    return float(frame["time_ms"].min())


def winner(frame: pd.DataFrame, family: str, workload: str) -> float:
    """The time of the configuration that the shipped policy file has: of the tie set, not always the shortest."""
    file = RESULTS.parents[1] / "policies" / family / "nvidia-h200.yaml"
    configuration = yaml.safe_load(file.read_text(encoding="utf-8"))["entries"][workload]["configuration"]
    identity = ",".join(f"{name}={value}" for name, value in sorted(configuration.items()))
    return row(frame, "time_ms", workload=workload, configuration=identity)


FIGURES: list[Figure] = []


def figure(page: str, text: str, *files: str) -> Callable[[Callable[..., Sequence[float]]], None]:
    def declare(values: Callable[..., Sequence[float]]) -> None:
        FIGURES.append(Figure("README.md" if page == "README" else f"docs/{page}.md", text, files, values))

    return declare


# -- layouts ----------------------------------------------------------------------------------------------


@figure("layout-pictures", "| numbers | columns | `axes=columns` {0.21},", "layout-costs-h200.csv")
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [row(frame, "of_control", array="numbers", read="columns", layout="axes=columns")]


@figure("layout-pictures", "| records | one | `records=soa` {0.28},", "layout-costs-h200.csv")
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [row(frame, "of_control", array="records", read="one", layout="records=soa")]


# -- allpairs ---------------------------------------------------------------------------------------------

SWEEP, SHORT, PEERS = "allpairs-h200.csv.xz", "allpairs-h200-short.csv.xz", "allpairs-h200-peers.csv"
SIZES = ("primer", "hapmap3", "wide")


@figure("allpairs", "({1,220} timed, {100} excluded because they do not fit in constant memory)", SHORT)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return (frame["state"] == "measured").sum(), (frame["state"] == "excluded").sum()


@figure("README", "{390} of 1,304 tried, {50} excluded ({440} selected): {390} measured;", SHORT)
def _(frame: pd.DataFrame) -> Sequence[float]:
    some = frame[frame["workload"] == "wide"]
    measured = (some["state"] == "measured").sum()
    return measured, (some["state"] == "excluded").sum(), len(some), measured


for _preset, _text in {
    "control naive": "control {1.23} s {3,237} x the winner", "coalesced": "coalesced {215} ms {565} x the winner",
    "shared": "shared {161} ms {425} x the winner",
}.items():  # fmt: skip

    def _above(frame: pd.DataFrame, preset: str = _preset) -> Sequence[float]:
        some = frame[frame["workload"] == "wide"]
        milliseconds = row(some, "time_ms", preset=preset)
        shown = milliseconds / 1e3 if milliseconds > 1e3 else milliseconds
        return shown, milliseconds / winner(frame, "allpairs", "wide")

    figure("README", _text, SHORT)(_above)


def _of_kind(frame: pd.DataFrame, workload: str, **wanted: Any) -> float:
    return 1e3 * best(frame, packing="planes2", workload=workload, **wanted)


for _text, _wanted in (
    (
        "| `all` | `adder=popc` | {6.56} µs | {154} µs | {1,167} µs |",
        ("register_tile", "all", "direct", "popc"),
    ),
    (
        "`adder=carry_save` | {8.83} µs | {166} µs | {1,249} µs |",
        ("register_tile", "all", "direct", "carry_save"),
    ),
    ("`adder=popc` | {6.78} µs | {129} µs | {764} µs |", ("register_tile", "triangle", "direct", "popc")),
    (
        "`adder=carry_save` | {10.5} µs | {116} µs | {821} µs |",
        ("register_tile", "triangle", "direct", "carry_save"),
    ),
    ("`staging=direct` | {6.53} µs | {45.9} µs | {467} µs |", ("tensor_tile", "all", "direct", "popc")),
    ("`staging=shared` | {6.64} µs | {48.6} µs | {564} µs |", ("tensor_tile", "all", "shared", "popc")),
    ("`staging=direct` | {6.91} µs | {41.2} µs | {380} µs |", ("tensor_tile", "triangle", "direct", "popc")),
    ("`staging=shared` | {7.04} µs | {44.9} µs | {447} µs |", ("tensor_tile", "triangle", "shared", "popc")),
):

    def _kinds(frame: pd.DataFrame, wanted: tuple[str, ...] = _wanted) -> Sequence[float]:
        names = dict(zip(("accumulate", "pairs", "staging", "adder"), wanted, strict=True))
        return [_of_kind(frame, size, **names) for size in SIZES]

    figure("allpairs", _text, SHORT)(_kinds)


@figure(
    "allpairs",
    "makes the best of it {2.0} times as fast as the best register tile on `wide` and {2.8} times on `hapmap3`",
    SHORT,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [
        _of_kind(frame, size, accumulate="register_tile") / _of_kind(frame, size, accumulate="tensor_tile")
        for size in ("wide", "hapmap3")
    ]


def _peer(what: str, scales: Sequence[float]) -> Callable[[pd.DataFrame], Sequence[float]]:
    there = zip(SIZES, scales, strict=True)
    wanted = [(size, scale) for size, scale in there if scale]
    return lambda frame: [row(frame, "median_ms", workload=s, what=what) * scale for s, scale in wanted]


for _what, _text, _scales in (
    ("autotune: naive", "| naive | {40.3} µs | {186} ms | {1,203} ms |", (1e3, 1, 1)),
    ("autotune: coalesced", "| coalesced | {17.6} µs | {28.2} ms | {215} ms |", (1e3, 1, 1)),
    ("autotune: char", "| char | {15.3} µs | {20.5} ms | {162.0} ms |", (1e3, 1, 1)),
    ("autotune: register", "| register | {14.9} µs | {2.21} ms | {161.7} ms |", (1e3, 1, 1)),
    ("autotune: shared", "| shared | {13.3} µs | {2.37} ms | {161.5} ms |", (1e3, 1, 1)),
    ("autotune: tuned", "| **tuned** | **{6.40} µs** | **{0.0413} ms** | **{0.380} ms** |", (1e3, 1, 1)),
    ("torch.cdist(p=0)", "| torch.cdist(p=0) | {25.3} µs | {19.8} ms | {420} ms |", (1e3, 1, 1)),
    ("torch._int_mm rank-2 + epilogue", "with epilogue | {15.0} µs | - | {2.40} ms |", (1e3, 0, 1)),
    ("torch._int_mm rank-2, product alone", "(not yet D) | {8.3} µs | - | {0.879} ms |", (1e3, 0, 1)),
):
    figure("allpairs", _text, PEERS)(_peer(_what, _scales))


@figure("allpairs", "| tuned over shared | {2.1} x | {57.4} x | {425} x |", PEERS)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [row(frame, "times_the_tuned", workload=size, what="autotune: shared") for size in SIZES]


@figure("allpairs", "| tuned, compares a second | {1.0e12} | {3.19e14} | {3.62e14} |", PEERS)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [row(frame, "compares_per_s", workload=size, what="autotune: tuned") for size in SIZES]


@figure(
    "allpairs",
    "Storing the {1.07e9} bytes of `wide` takes {0.250} ms by a kernel that does nothing else, {66} % of this one's time; the "
    "bits of half of its pairs would take the tensor cores {0.054} ms at the {5.13e15} a second that they reach alone, those of "
    "`hapmap3` {5.1} µs, {12} % of the kernel's time",
    PEERS, "allpairs-h200-limits.csv",
)  # fmt: skip
def _(frame: pd.DataFrame, limits: pd.DataFrame) -> Sequence[float]:
    wide, hapmap3 = (row(frame, "median_ms", workload=w, what="autotune: tuned") for w in ("wide", "hapmap3"))
    stored = 4 * 16384**2 / row(limits, "per_second", what="bytes stored")
    bits = row(limits, "per_second", what="bits of products")
    of_wide, of_hapmap3 = (4 * a * n * (n + 1) / 2 / bits for n, a in ((16384, 512), (957, 14389)))
    return [
        4 * 16384**2, 1e3 * stored, 1e5 * stored / wide, 1e3 * of_wide, bits, 1e6 * of_hapmap3, 1e5 * of_hapmap3 / hapmap3
    ]  # fmt: skip


@figure("allpairs", "465 squares are {0.22} of the warps that fit", SHORT)
def _(frame: pd.DataFrame) -> Sequence[float]:
    seen = frame[(frame["workload"] == "hapmap3") & (frame["accumulate"] == "tensor_tile")]
    return [seen["counter_achieved_occupancy_allpairs"].dropna().iloc[0]]


@figure(
    "allpairs",
    "{3.62e14} compares a second, counted as N x N x A, are {2.7} times what the measured rate of POPC would allow for all "
    "pairs ({4.14e12} x 32 = {1.33e14}",
    PEERS, "limits.json",
)  # fmt: skip
def _(frame: pd.DataFrame, limits: dict[str, float]) -> Sequence[float]:
    rate, popc = row(frame, "compares_per_s", workload="wide", what="autotune: tuned"), limits["popc_per_s"]
    return rate, rate / (32 * popc), popc, 32 * popc


@figure("allpairs", "The factors do not: {3.0} x from naive to shared", PEERS)
def _(frame: pd.DataFrame) -> Sequence[float]:
    naive, shared = (
        row(frame, "median_ms", workload="primer", what=f"autotune: {w}") for w in ("naive", "shared")
    )
    return [naive / shared]


@figure("allpairs", "On `hapmap3` `register` is {7} % ahead of `shared`", PEERS)
def _(frame: pd.DataFrame) -> Sequence[float]:
    one, two = (
        row(frame, "median_ms", workload="hapmap3", what=f"autotune: {w}") for w in ("register", "shared")
    )
    return [100 * (two / one - 1)]


@figure("allpairs", "thread a pair (`appendix`), takes {297} ms there", SHORT)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [row(frame, "time_ms", workload="wide", preset="appendix")]


@figure(
    "allpairs",
    "On `wide` its winner read a 1D texture: {1.17} ms, where global and read-only memory reached {1.22} ms with their own "
    "best tile ({4.6} %). On `hapmap3` it was the other way round: read-only and global {0.152} ms, texture {0.161} ms.",
    SWEEP,
)  # fmt: skip
def _(frame: pd.DataFrame) -> Sequence[float]:
    texture, other = (best(frame, workload="wide", memory=m) for m in ("texture", ["global", "readonly"]))
    plain, third = (best(frame, workload="hapmap3", memory=m) for m in (["global", "readonly"], "texture"))
    return texture, other, 100 * (other / texture - 1), plain, third


PROGRAMS = "allpairs-h200-programs.csv"
for _what, _part, _text in (
    ("autotune", "kernel", "| kernel of autotune | {0.032} | {0.384} |"),
    ("hammingdist", "kernel", "| kernel of hammingdist | {1.045} | {80.7} |"),
    ("autotune", "call", "| call of autotune, numpy to numpy | {17.9} | {367} |"),
    ("hammingdist", "call", "| call of hammingdist, FASTA to numpy | {185} | {774} |"),
    ("plink --distance, 16 threads", "calculation", "calculation, as below | {58} | {1,469} |"),
    ("plink --distance, 16 threads", "command", "`plink --distance`: command | {103} | {11,660} |"),
):

    def _program(frame: pd.DataFrame, what: str = _what, part: str = _part) -> Sequence[float]:
        return [row(frame, "median_ms", workload=size, what=what, part=part) for size in ("hapmap3", "wide")]

    figure("allpairs", _text, PROGRAMS)(_program)


@figure("allpairs", "The kernel is {33} and {210} times as fast as hammingdist's", PROGRAMS)
def _(frame: pd.DataFrame) -> Sequence[float]:
    there = [
        [
            row(frame, "median_ms", workload=size, what=what, part="kernel")
            for what in ("hammingdist", "autotune")
        ]
        for size in ("hapmap3", "wide")
    ]
    return [theirs / ours for theirs, ours in there]


PLINK = "allpairs-plink-cpu.csv"


def _beside_plink(what: str, part: str) -> Callable[[pd.DataFrame], Sequence[float]]:
    return lambda frame: [
        row(frame, f"{which}_ms", workload=size, missing="masked", what=what, part=part)
        for size in ("hapmap3", "hapmap3-slice")
        for which in ("median", "minimum", "maximum")
    ]


for _what, _part, _text in (
    ("plink --distance", "calculation", '"complete" | {105} ({92} to {129}) | {0.91} ({0.63} to {8.5}) |'),
    (
        "autotune: cpu",
        "kernel",
        "kernel, not tuned (`cpu`) | {40.6} ({35} to {50}) | {0.36} ({0.27} to {0.59}) |",
    ),
    ("autotune: tuned", "kernel", "kernel, tuned | {45.1} ({40} to {69}) | {0.36} ({0.34} to {0.72}) |"),
    (
        "autotune: appendix",
        "kernel",
        "loop (`appendix`) | {652} ({611} to {1,037}) | {1.72} ({1.5} to {2.2}) |",
    ),
    ("autotune: cpu", "call", "numpy, not tuned | {75.1} ({64} to {133}) | {1.22} ({1.1} to {1.7}) |"),
    ("autotune: tuned", "call", "numpy, tuned | {86.0} ({70} to {133}) | {1.26} ({1.1} to {1.8}) |"),
    (
        "autotune: appendix",
        "call",
        "numpy, the primer's loop | {719} ({621} to {1,188}) | {2.78} ({2.1} to {6.9}) |",
    ),
    ("plink --distance", "command", "bin flat-missing` | {152} ({133} to {172}) | {8.5} ({7.1} to {17}) |"),
    ("plink --genome", "command", "`plink --genome full` | {251} ({217} to {266}) | {8.8} ({7.8} to {17}) |"),
    ("autotune: cpu", "command", "run`, not tuned | {723} ({653} to {955}) | {573} ({538} to {834}) |"),
    ("autotune: tuned", "command", "run`, tuned | {758} ({687} to {1,127}) | {606} ({552} to {777}) |"),
    (
        "autotune: appendix",
        "command",
        "run`, the primer's loop | {1,421} ({1,321} to {1,745}) | {586} ({541} to {776}) |",
    ),
):
    figure("allpairs", _text, PLINK)(_beside_plink(_what, _part))


def _median_beside_plink(frame: pd.DataFrame, what: str, part: str, **wanted: Any) -> float:
    return row(
        frame, "median_ms", what=what, part=part, **{"workload": "hapmap3", "missing": "masked", **wanted}
    )


@figure(
    "allpairs",
    "the kernel is {2.6} times as fast as PLINK on `hapmap3`, whose figure has the reading of the .bed in it; a call with the "
    "storing of 32-bit numbers as bit planes is {1.4} times as fast. - The command takes {4.7} times as long as PLINK's "
    "(tuned {5.0}): {573} of its {723} ms are there on the slice too.",
    PLINK,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    counting = _median_beside_plink(frame, "plink --distance", "calculation")
    kernel, call, command = (
        _median_beside_plink(frame, "autotune: cpu", p) for p in ("kernel", "call", "command")
    )
    start = _median_beside_plink(frame, "autotune: cpu", "command", workload="hapmap3-slice")
    whole = _median_beside_plink(frame, "plink --distance", "command")
    tuned = _median_beside_plink(frame, "autotune: tuned", "command")
    return counting / kernel, counting / call, command / whole, tuned / whole, start, command


@figure(
    "allpairs",
    "takes {6.2} times as long as PLINK between the messages, and {9.3} times as a command",
    PLINK,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [
        _median_beside_plink(frame, "autotune: appendix", ours)
        / _median_beside_plink(frame, "plink --distance", theirs)
        for ours, theirs in (("kernel", "calculation"), ("command", "command"))
    ]


@figure("allpairs", "the kernel takes {40.7} ms on `hapmap3`, and a call {82.8} ms", PLINK)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [
        _median_beside_plink(frame, "autotune: cpu", part, missing="category") for part in ("kernel", "call")
    ]


# -- engine -----------------------------------------------------------------------------------------------

ENGINE, ENGINE_2 = "engine-peers-h200-first.csv", "engine-peers-h200-second.csv"
TUNERS = {
    "Kernel Tuner 1.5.0 nvcuda": "| Kernel Tuner, nvcuda | {11.7} s | {11.01} s | {8.3} s | {25} ms | {24.1} us |",
    "Kernel Tuner 1.5.0 cupy": "| Kernel Tuner, cupy | {13.0} s | {12.28} s | {9.4} s | {18} ms | {14.8} us |",
    "autotune, 7 samples": "| autotune, 7 samples | {2.6} s | {1.04} s | {0.67} s | {13} ms | {6.7} us |",
    "autotune, full protocol":
        "| autotune, full protocol ({118} samples on average) | {3.0} s | {1.51} s | {0.19} s | {152} ms | {6.4} us |",
}  # fmt: skip


def _tuner(tuner: str) -> Callable[[pd.DataFrame], Sequence[float]]:
    def values(frame: pd.DataFrame) -> Sequence[float]:
        columns = {"wall_s": 1, "sweep_s": 1, "compile_s": 1, "kernel_s": 1e3, "best_ms": 1e3}
        found = [row(frame, column, tuner=tuner) * scale for column, scale in columns.items()]
        return [row(frame, "samples", tuner=tuner), *found] if "full" in tuner else found

    return values


for _name, _text in TUNERS.items():
    figure("engine", _text, ENGINE)(_tuner(_name))


@figure(
    "engine",
    "So the sweep is {10.6} times as fast as that of the better backend, and {7.3} times with the full protocol; the whole "
    "process {4.5} and {3.8} times. On another host of the kind, with slower cores (`engine-peers-h200-second.csv`), it was "
    "{10.0} and {7.7}, and {4.0} and {3.7}.",
    ENGINE, ENGINE_2,
)  # fmt: skip
def _(*frames: pd.DataFrame) -> Sequence[float]:
    return [
        row(frame, column, tuner=tuner)
        for frame in frames
        for column in ("sweep_times_faster", "wall_times_faster")
        for tuner in ("autotune, 7 samples", "autotune, full protocol")
    ]


# -- from Kernel Tuner ------------------------------------------------------------------------------------

KERNEL_TUNER = "Kernel Tuner 1.5.0 nvcuda"


RACED, SAMPLED = "autotune, 7 samples, race 1.005", "autotune, 7 samples"


def _hub(frame: pd.DataFrame, tuner: str) -> list[float]:
    """Configurations, seconds of both, how many times that is, and of the tuning alone."""
    both = [
        [row(frame, column, tuner=one) for one in (KERNEL_TUNER, tuner)] for column in ("wall_s", "sweep_s")
    ]
    (theirs, own), (their_sweep, own_sweep) = both
    return [
        row(frame, "configurations", tuner=KERNEL_TUNER),
        theirs,
        own,
        theirs / own,
        their_sweep / own_sweep,
    ]


def _bests(times: pd.DataFrame, tuner: str) -> tuple[float, float]:
    """Kernel Tuner's own best and its figure for what is ours, of the configurations that both have a time for."""
    both = times.dropna().set_index("configuration")
    theirs = both[f"{KERNEL_TUNER} ms"]
    return theirs.min(), theirs[both[f"{tuner} ms"].idxmin()]


HUB = "hub-peers-h200-"


@figure(
    "from-kernel-tuner",
    "| convolution | {60} | {170.7} s | {23.4} s | {7.3} | {8.2} | the same, of those that run |",
    f"{HUB}convolution.csv", f"{HUB}convolution-times.csv",
)  # fmt: skip
def _(frame: pd.DataFrame, times: pd.DataFrame) -> Sequence[float]:
    best, ours = _bests(times, SAMPLED)
    assert best == ours
    return _hub(frame, SAMPLED)


@figure(
    "from-kernel-tuner",
    "| dedispersion, `--race 1.005` | {560} | {179.0} s | {24.6} s | {7.3} | {8.1} | another one, {0.3} % slower by Kernel "
    "Tuner's figures |",
    f"{HUB}dedispersion.csv", f"{HUB}dedispersion-times.csv",
)  # fmt: skip
def _(frame: pd.DataFrame, times: pd.DataFrame) -> Sequence[float]:
    best, ours = _bests(times, RACED)
    return [*_hub(frame, RACED), 100 * (ours / best - 1)]


@figure(
    "from-kernel-tuner",
    "| dedispersion, 7 samples of all | {181} | {64.4} s | {64.6} s | {1.0} | {1.1} | the same: {28.76} and {28.75} ms |",
    f"{HUB}dedispersion-samples.csv", f"{HUB}dedispersion-samples-times.csv",
)  # fmt: skip
def _(frame: pd.DataFrame, times: pd.DataFrame) -> Sequence[float]:
    best, ours = _bests(times, SAMPLED)
    assert best == ours
    return [*_hub(frame, SAMPLED), *(row(frame, "best_ms", tuner=tuner) for tuner in (KERNEL_TUNER, SAMPLED))]


@figure(
    "from-kernel-tuner",
    "convolution takes Kernel Tuner {2.85} s and autotune {0.39} s, one of dedispersion {0.32} s and {0.044} s. By that pace "
    "(computed, not measured) 2,000 of them would take {95} and {13} minutes, and {10.7} and {1.5}.",
    f"{HUB}convolution.csv", f"{HUB}dedispersion.csv",
)  # fmt: skip
def _(convolution: pd.DataFrame, dedispersion: pd.DataFrame) -> Sequence[float]:
    each = [
        row(frame, "wall_s_each", tuner=tuner)
        for frame, own in ((convolution, SAMPLED), (dedispersion, RACED))
        for tuner in (KERNEL_TUNER, own)
    ]
    return [*each, *(2000 * seconds / 60 for seconds in each)]


@figure(
    "from-kernel-tuner",
    "of the {24.6} s the device ran these kernels for {20.1} s, {1.1} samples of each",
    f"{HUB}dedispersion.csv",
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [row(frame, column, tuner=RACED) for column in ("wall_s", "kernel_s", "samples")]


@figure("from-kernel-tuner", "{20.1} s of its {23.4}.", f"{HUB}convolution.csv")
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [row(frame, column, tuner=SAMPLED) for column in ("compile_s", "wall_s")]


@figure(
    "from-kernel-tuner",
    "Of Kernel Tuner's {60} convolutions, {16} have a time and cannot run on the device",
    f"{HUB}convolution-times.csv",
)
def _(times: pd.DataFrame) -> Sequence[float]:
    theirs = times[f"{KERNEL_TUNER} ms"]
    refused = theirs[times[f"{SAMPLED} ms"].isna()]
    assert theirs.min() == refused.min() and sum(refused < 0.0215) == 13
    return [theirs.count(), refused.count()]


@figure(
    "from-kernel-tuner",
    "convolution {16} s, best {0.31} ms; dedispersion, corrected, {18} s, best {28.9} ms; hotspot, corrected, {7.5} s, best "
    "{0.127} ms; gemm, corrected, {7.7} s, best {3.52} ms.",
    "hub-t1-h200.csv",
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    found: list[float] = []
    for kernel, file in (
        ("convolution_milo", "as it is"),
        ("dedispersion_milo", "corrected"),
        ("hotspot_milo", "corrected"),
        ("gemm_milo", "corrected"),
    ):
        one = frame[(frame["kernel"] == kernel) & (frame["file"] == file)].iloc[0]
        number, unit = re.search(r"winner ([\d.]+) (ms|µs)", one["result"]).groups()  # type: ignore[union-attr]
        found += [one["seconds"], float(number) * (1 if unit == "ms" else 1e-3)]
    return found


@figure(
    "from-kernel-tuner",
    "([those tried on an H200](../benchmarks/results/kernel-tuner-examples-h200.csv), the rest on the cpu)",
    "kernel-tuner-examples-h200.csv",
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    assert set(frame["state"]) == {"runs", "failed", "too long"}
    return []


AGREEMENT = "winner-agreement-h200.csv"


@figure("engine", "| autotune | one, the same each time | {0.0} % | {0.0} % |", AGREEMENT)
def _(frame: pd.DataFrame) -> Sequence[float]:
    some = frame[frame["tuner"] == "autotune"]
    assert some["winner"].nunique() == 1 and len(some) == 5
    return 100 * some["regret"].max(), 100 * some["regret"].median()


@figure("engine", "| Kernel Tuner, cupy | four | {49.5} % | {8.4} % |", AGREEMENT)
def _(frame: pd.DataFrame) -> Sequence[float]:
    some = frame[frame["tuner"] == "Kernel Tuner cupy"]
    assert some["winner"].nunique() == 4 and len(some) == 5
    return 100 * some["regret"].max(), 100 * some["regret"].median()


AUTO_REPLAY, HUB_REPLAY = "search-replay-auto.csv", "search-replay-hub.csv"
_SHARES = ("median_share", "worst_share")


def _found_shares(frame: pd.DataFrame, study: str, **known: object) -> list[float]:
    """In percent, without those that were not found."""
    found = (100 * row(frame, column, study=study, **known) for column in _SHARES)
    return [share for share in found if math.isfinite(share)]


HUB_ROWS = {  # by study: Kernel Tuner's best strategy there, and the row
    "convolution_milo A100": (
        "adaptive_tabu_greywolf",
        "| convolution A100 | {2.1} % ({8.1} %) | {2.5} % ({4.2} %) | adaptive_tabu_greywolf {4.3} % (-) [20] |",
    ),
    "convolution_milo A4000": (
        "adaptive_tabu_greywolf",
        "| convolution A4000 | {2.0} % ({6.8} %) | {1.9} % ({8.2} %) | adaptive_tabu_greywolf {3.3} % ({8.7} %) [20] |",
    ),
    "convolution_milo A6000": (
        "adaptive_tabu_greywolf",
        "| convolution A6000 | {3.3} % ({10.6} %) | {2.1} % ({4.2} %) | adaptive_tabu_greywolf {4.7} % ({8.1} %) [11] |",
    ),
    "convolution_milo MI250X": (
        "adaptive_tabu_greywolf",
        "| convolution MI250X | {1.5} % ({3.0} %) | {1.4} % ({5.0} %) | adaptive_tabu_greywolf {2.4} % ({7.5} %) [8] |",
    ),
    "convolution_milo W6600": (
        "dual_annealing",
        "| convolution W6600 | {4.3} % ({6.0} %) | {3.1} % ({7.2} %) | dual_annealing {3.3} % (-) [20] |",
    ),
    "convolution_milo W7800": (
        "adaptive_tabu_greywolf",
        "| convolution W7800 | {1.9} % ({3.7} %) | {2.0} % ({6.6} %) | adaptive_tabu_greywolf {2.4} % ({9.0} %) [20] |",
    ),
    "dedispersion_milo A100": (
        "adaptive_tabu_greywolf",
        "| dedispersion A100 | {0.04} % ({0.10} %) | {0.09} % ({0.3} %) | adaptive_tabu_greywolf {0.05} % ({0.2} %) [20] |",
    ),
    "dedispersion_milo A4000": (
        "diff_evo",
        "| dedispersion A4000 | {0.09} % ({0.1} %) | {0.2} % ({0.3} %) | diff_evo {0.1} % ({0.5} %) [9] |",
    ),
    "dedispersion_milo A6000": (
        "diff_evo",
        "| dedispersion A6000 | {0.09} % ({0.2} %) | {0.2} % ({0.3} %) | diff_evo {0.1} % ({0.3} %) [9] |",
    ),
    "dedispersion_milo MI250X": (
        "adaptive_tabu_greywolf",
        "| dedispersion MI250X | {0.3} % ({0.9} %) | {0.2} % ({0.6} %) | adaptive_tabu_greywolf {0.6} % ({1.7} %) [9] |",
    ),
    "dedispersion_milo W6600": (
        "diff_evo",
        "| dedispersion W6600 | {0.1} % ({2.0} %) | {0.2} % ({2.2} %) | diff_evo {8.3} % (-) [6] |",
    ),
    "dedispersion_milo W7800": (
        "pso",
        "| dedispersion W7800 | {0.1} % ({0.8} %) | {0.3} % ({0.9} %) | pso {0.8} % ({3.0} %) [20] |",
    ),
}

for _study, (_best, _text) in HUB_ROWS.items():

    def _searched_hub(
        auto: pd.DataFrame, hub: pd.DataFrame, study: str = _study, best: str = _best
    ) -> Sequence[float]:
        ours = [share for ahead in (1, 8) for share in _found_shares(auto, study, ahead=ahead)]
        return [*ours, *_found_shares(hub, study, method=best)]

    figure("search", _text, AUTO_REPLAY, HUB_REPLAY)(_searched_hub)

OWN_ROWS = {
    "allpairs primer": "| allpairs primer | 976 | {2.5} % ({5.1} %) | {20} of 20 | {4.9} % ({11.5} %) | {20} of 20 |",
    "allpairs hapmap3": "| allpairs hapmap3 | 816 | {4.0} % ({7.8} %) | {20} of 20 | {3.7} % ({7.6} %) | {20} of 20 |",
    "allpairs wide": "| allpairs wide | 816 | {2.5} % ({8.5} %) | {20} of 20 | {4.2} % ({5.6} %) | {20} of 20 |",
    "cyclospectrum n16384": "| cyclospectrum n16384 | 64 | {9.4} % ({25.0} %) | {15} of 20 | {18.8} % ({26.6} %) | {7} of 20 |",
    "cyclospectrum n4096": "| cyclospectrum n4096 | 156 | {8.3} % ({38.5} %) | {14} of 20 | {12.8} % (-) | {12} of 20 |",
    "cyclospectrum n1024": "| cyclospectrum n1024 | 156 | {7.1} % ({12.2} %) | {20} of 20 | {13.5} % ({17.9} %) | {13} of 20 |",
    "ion_placement 1a63-ions": "| ion_placement 1a63-ions | 76 | {36.8} % (-) | {0} of 20 | {36.8} % (-) | {0} of 20 |",
    "ion_placement mache-ions": "| ion_placement mache-ions | 76 | {17.1} % ({19.7} %) | {8} of 20 | {22.4} % ({30.3} %) | {4} of 20 |",
    "lookup cached": "| lookup cached | 126 | {12.3} % ({16.7} %) | {19} of 20 | {4.8} % ({16.7} %) | {19} of 20 |",
    "lookup large": "| lookup large | 126 | {6.3} % ({8.7} %) | {20} of 20 | {11.1} % ({13.5} %) | {20} of 20 |",
    "mummergpu lmono": "| mummergpu lmono | 128 | {6.6} % ({10.2} %) | {20} of 20 | {10.9} % ({17.2} %) | {17} of 20 |",
    "mummergpu ssuis": "| mummergpu ssuis | 128 | {3.9} % ({7.8} %) | {20} of 20 | {3.9} % ({7.8} %) | {20} of 20 |",
    "mummergpu hsill": "| mummergpu hsill | 128 | {8.6} % ({13.3} %) | {20} of 20 | {11.7} % ({19.5} %) | {19} of 20 |",
    "mummergpu cbrigg": "| mummergpu cbrigg | 128 | {12.1} % ({14.8} %) | {20} of 20 | {18.0} % ({25.0} %) | {7} of 20 |",
    "nbody plummer-2k": "| nbody plummer-2k | 432 | {3.5} % ({4.6} %) | {20} of 20 | {5.6} % ({7.4} %) | {20} of 20 |",
    "nbody plummer-16k": "| nbody plummer-16k | 432 | {3.9} % ({10.0} %) | {20} of 20 | {4.9} % ({12.3} %) | {20} of 20 |",
    "nbody plummer-64k": "| nbody plummer-64k | 432 | {3.9} % ({8.3} %) | {20} of 20 | {4.4} % ({9.3} %) | {20} of 20 |",
    "reaction_diffusion cell": "| reaction_diffusion cell | 66 | {10.6} % ({13.6} %) | {20} of 20 | {18.9} % (-) | {1} of 20 |",
    "reaction_diffusion experiment": "| reaction_diffusion experiment | 92 | {8.7} % ({9.8} %) | {20} of 20 | {21.7} % ({29.3} %) | {0} of 20 |",
    "spmv contacts": "| spmv contacts | 240 | {3.5} % ({7.5} %) | {20} of 20 | {5.8} % ({10.8} %) | {20} of 20 |",
    "spmv stencil-96": "| spmv stencil-96 | 240 | {3.1} % ({14.2} %) | {20} of 20 | {5.8} % ({6.2} %) | {20} of 20 |",
    "spmv power-law": "| spmv power-law | 120 | {7.5} % ({12.5} %) | {20} of 20 | {12.9} % ({17.5} %) | {19} of 20 |",
    "stencil cube-256": "| stencil cube-256 | 76 | {6.6} % ({11.8} %) | {20} of 20 | {16.4} % ({22.4} %) | {1} of 20 |",
    "coulomb 1a63-slice": "| coulomb 1a63-slice | 4,747 | {0.7} % ({1.4} %) | {20} of 20 | {1.1} % ({1.7} %) | {20} of 20 |",
}

for _study, _text in OWN_ROWS.items():

    def _searched_own(auto: pd.DataFrame, study: str = _study) -> Sequence[float]:
        return [
            value
            for ahead in (1, 8)
            for value in (
                *_found_shares(auto, study, ahead=ahead),
                row(auto, "reached", study=study, ahead=ahead),
            )
        ]

    figure("search", _text, AUTO_REPLAY)(_searched_own)


@figure(
    "search",
    "One at a time {436} of {480} runs were within 15 % of the space, eight at a time {339}",
    AUTO_REPLAY,
)
def _(auto: pd.DataFrame) -> Sequence[float]:
    own = auto[~auto["study"].str.contains("_milo")]
    one, eight = (own[own["ahead"] == ahead] for ahead in (1, 8))
    return one["reached"].sum(), one["seeds"].sum(), eight["reached"].sum()


@figure("search", "All {480} runs of `auto` were within 15 % of the space", AUTO_REPLAY)
def _(auto: pd.DataFrame) -> Sequence[float]:
    return [auto[auto["study"].str.contains("_milo")]["reached"].sum()]


@figure(
    "search",
    "{1.4} to {2.0} ms among the 4,362 configurations of the convolution, and {3.5} to {8.6} ms",
    AUTO_REPLAY,
)
def _(auto: pd.DataFrame) -> Sequence[float]:
    found: list[float] = []
    for name in ("convolution", "dedispersion"):
        took = auto[auto["study"].str.startswith(name)]["ms_per_visit"]
        found += [took.min(), took.max()]
    return found


TIMES = "engine-peers-h200-first-times.csv"


def _slower(frame: pd.DataFrame, backend: str) -> tuple[float, float, float]:
    """Microseconds that a configuration takes longer, and how many times as long the shortest and longest quarters."""
    theirs, ours = frame[f"Kernel Tuner 1.5.0 {backend} ms"], frame["autotune, full protocol ms"]
    rank, ratio = ours.rank(pct=True), theirs / ours
    return float(1e3 * (theirs - ours).median()), ratio[rank <= 0.25].median(), ratio[rank > 0.75].median()


@figure(
    "engine",
    "about {19} us a configuration with its nvcuda backend and {8} us with cupy, so the quarter of the shortest kernels is "
    "{3.5} times too long with nvcuda and {2.1} times with cupy, that of the longest {1.5} and {1.2} times",
    TIMES,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    (a, b, c), (d, e, f) = _slower(frame, "nvcuda"), _slower(frame, "cupy")
    return a, d, b, e, c, f


# -- selection --------------------------------------------------------------------------------------------

for _text, _name, _scales in (
    ("| prediction | {1.5} % | {2.5} % | {9.7} % | {13} % |", "autotune", (100,) * 4),
    ("replayed with the recorded times | {0.3} % | {1.5} % | {8.9} % | {11.5} % |", "refined", (100,) * 4),
    ("| nearest entry | {2.0} % | {6.2} % | {31} % | {69} % |", "nearest", (100,) * 4),
    ("(Kernel Launcher's rule) | {4.5} % | {50} % | {10} x | {283} x |", "volume", (100, 100, 0, 0)),
    ("(Kernel Tuner's rule) | {3.0} % | {34} % | {4.7} x | {8.9} x |", "vote", (100, 100, 0, 0)),
    ("(a rule that was left) | {0.9} % | {2.5} % | {11.5} % | {12} % |", "neighbours", (100,) * 4),
    ("| a straight line alone | {2.0} % | {4.1} % | {12.5} % | {43} % |", "line", (100,) * 4),
    ("| the four nearest, by distance | {2.5} % | {4.4} % | {13} % | {37} % |", "shepard", (100,) * 4),
    ("the last wave's idle share | {2.4} % | {5.9} % | {29} % | {70} % |", "waves", (100,) * 4),
):  # fmt: skip

    def _lost(
        frame: pd.DataFrame, rule: str = _name, scales: Sequence[int] = _scales
    ) -> Sequence[float]:  # fmt: skip
        regret = frame[frame["rule"] == rule]["regret"]
        mean = math.expm1(sum(map(math.log1p, regret)) / len(regret))
        found = (regret.median(), mean, regret.quantile(0.95), regret.max())
        return [value * scale if scale else value + 1 for value, scale in zip(found, scales, strict=True)]

    figure("selection", _text, "selection-rules.csv")(_lost)

for _text, _name, _scales in (
    ("| prediction | {1.0} % | {2.1} % | {11.8} % | {14} % |", "autotune", (100,) * 4),
    ("replayed with the recorded times | {0.0} % | {0.8} % | {3.1} % | {12} % |", "refined", (100,) * 4),
    ("| nearest entry | {1.8} % | {4.8} % | {23} % | {48} % |", "nearest", (100,) * 4),
    ("(Kernel Launcher's rule) | {2.0} % | {10.6} % | {47} % | {10.7} x |", "volume", (100, 100, 100, 0)),
    ("(Kernel Tuner's rule) | {2.3} % | {18} % | {2.7} x | {6.5} x |", "vote", (100, 100, 0, 0)),
    ("(a rule that was left) | {1.2} % | {3.8} % | {15} % | {35} % |", "neighbours", (100,) * 4),
    ("| the four nearest, by distance | {1.1} % | {2.4} % | {9.5} % | {13} % |", "shepard", (100,) * 4),
    ("| a straight line alone | {1.2} % | {5.3} % | {21} % | {2.7} x |", "line", (100, 100, 100, 0)),
):  # fmt: skip

    def _lost_drawn(
        frame: pd.DataFrame, rule: str = _name, scales: Sequence[int] = _scales
    ) -> Sequence[float]:  # fmt: skip
        return _lost(frame, rule, scales)

    figure("selection", _text, "selection-asked-rules.csv.xz")(_lost_drawn)

for _text, _name in (
    ("| allpairs | {8} | {15} | {1.2} % | {2.9} % | {1.7} % | {8.0} % |", "allpairs"),
    ("| coulomb | {6} | {13} | {0.0} % | {14} % | {5.4} % | {23} % |", "coulomb"),
    ("| cyclospectrum | {3} | {8} | {0.6} % | {3.6} % | {1.5} % | {3.6} % |", "cyclospectrum"),
    ("| ion_placement | {7} | {11} | {0.0} % | {0.0} % | {0.0} % | {0.0} % |", "ion_placement"),
    ("| lookup | {8} | {8} | {3.1} % | {13} % | {3.3} % | {13} % |", "lookup"),
    ("| mummergpu | {4} | {8} | {0.7} % | {4.0} % | {0.7} % | {4.0} % |", "mummergpu"),
    ("| nbody | {8} | {12} | {0.0} % | {13} % | {0.4} % | {5.6} % |", "nbody"),
    ("| reaction_diffusion | {3} | {10} | {6.8} % | {12} % | {41} % | {48} % |", "reaction_diffusion"),
    ("| spmv | {8} | {16} | {1.2} % | {3.5} % | {0.7} % | {3.1} % |", "spmv"),
    ("| stencil | {8} | {10} | {2.0} % | {3.9} % | {8.4} % | {28} % |", "stencil"),
):  # fmt: skip

    def _lost_by_family(frame: pd.DataFrame, family: str = _name) -> Sequence[float]:
        mine = frame[frame["family"] == family]
        found: list[float] = [mine["input"].nunique(), mine["known"].max()]
        for rule in ("autotune", "nearest"):
            regret = mine[mine["rule"] == rule]["regret"]
            found += [100 * regret.median(), 100 * regret.max()]
        return found

    figure("selection", _text, "selection-asked-rules.csv.xz")(_lost_by_family)


@figure(
    "selection",
    "{32} of the drawn inputs (allpairs, nbody, lookup, stencil; kernels of 5 to 90 us), with other work queued before "
    "each call: what was taken first loses {1.2} % in the median, {2.4} % in the mean and {13} % at worst, what stays {0.8}, "
    "{1.1} and {9.2} %",
    "selection-refined-h200.csv",
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    busy = frame[frame["gpu"] == "busy"]
    found: list[float] = [len(busy)]
    for column in ("taken_regret", "stays_regret"):
        found += [100 * busy[column].median(), 100 * busy[column].mean(), 100 * busy[column].max()]
    return found


@figure(
    "selection",
    "{4} of 32 inputs got nothing and what stayed of the others was worse than what was taken: {2.5} % in the median and "
    "{30} % at worst",
    "selection-refined-h200.csv",
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    before = frame[frame["gpu"] == "idle before"]
    stays = before["stays_regret"]
    return (before["calls"] == 0).sum(), 100 * stays.median(), 100 * stays.max()


@figure(
    "selection",
    "lose {0.9}, {6.2}, {31} and {78} % when left out (median, mean, 95 %, worst), with the nearest entry {1.5}, {8.5}, "
    "{49} and {137} %, with the four nearest {1.0}, {6.7}, {46} and {78} %",
    "selection-rules-later.csv",
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    rules = ("autotune", "nearest", "shepard")
    return [value for rule in rules for value in _lost(frame, rule, (100,) * 4)]


@figure("selection", "On an H200, {63} inputs that a script drew with a seed", "selection-asked-h200.csv.xz")
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [len(frame.groupby(["family", "input"]))]


@figure(
    "selection",
    "each of {51} sizes left out in turn while the others of its family decide: {15} of allpairs, and of the examples "
    "{12} of nbody, {16} of spmv, {8} of lookup",
    "selection-taught-h200.csv.xz",
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    counts = [frame[frame["family"] == f]["input"].nunique() for f in ("allpairs", "nbody", "spmv", "lookup")]
    return [sum(counts), *counts]


@figure(
    "selection",
    "selection loses {0.0} % in the median, {1.4} % in the mean and {10} % at worst, the weighted neighbours of before "
    "{0.0}, {2.4} and {45} %, the nearest entry {1.6}, {9.3} and {83} %",
    "selection-regret.csv",
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    grid = frame[frame["record"] == "allpairs-h200-sizes.csv.xz"]
    found: list[float] = []
    for rule in ("autotune", "neighbours", "nearest entry"):
        regret = grid[grid["rule"] == rule]["regret"]
        found += [regret.median(), sum(regret) / len(regret), regret.max()]
    return [100 * value for value in found]


# -- static-ranking ----------------------------------------------------------------------------------------

RANKED_ROWS = {
    (
        "allpairs",
        "primer",
    ): "| allpairs primer | 128 | {117.7} % | {0.0} % | {0.75} | {73.5} %, {73.5} % | {424.0} %, {92.8} % |",
    (
        "allpairs",
        "wide",
    ): "| allpairs wide | 128 | {0.0} % | {0.0} % | {0.94} | {17.1} %, {0.0} % | {3231.1} %, {690.5} % |",
    (
        "allpairs",
        "hapmap3",
    ): "| allpairs hapmap3 | 128 | {0.0} % | {0.0} % | {0.88} | {114.6} %, {0.0} % | {2065.3} %, {381.5} % |",
    (
        "coulomb",
        "1a63-slice",
    ): "| coulomb 1a63-slice | 128 | {169.9} % | {112.8} % | {0.59} | {746.2} %, {746.2} % | {951.4} %, {147.5} % |",
    (
        "lookup",
        "cached",
    ): "| lookup cached | 126 | {0.1} % | {0.1} % | {0.89} | {0.1} %, {0.1} % | {177.6} %, {50.1} % |",
    (
        "lookup",
        "large",
    ): "| lookup large | 126 | {16.3} % | {14.1} % | {0.73} | {16.3} %, {0.1} % | {85.6} %, {15.3} % |",
    (
        "mummergpu",
        "ssuis",
    ): "| mummergpu ssuis | 32 | {1.1} % | {1.1} % | {0.71} | {1.1} %, {0.0} % | {23.4} %, {4.4} % |",
    (
        "mummergpu",
        "lmono",
    ): "| mummergpu lmono | 32 | {11.4} % | {5.1} % | {0.25} | {0.0} %, {0.0} % | {71.5} %, {6.0} % |",
    (
        "mummergpu",
        "cbrigg",
    ): "| mummergpu cbrigg | 32 | {5.3} % | {5.3} % | {0.30} | {2.9} %, {0.0} % | {72.2} %, {4.0} % |",
    (
        "mummergpu",
        "hsill",
    ): "| mummergpu hsill | 32 | {27.8} % | {0.0} % | {0.48} | {0.0} %, {0.0} % | {31.9} %, {3.1} % |",
    (
        "spmv",
        "contacts",
    ): "| spmv contacts | 128 | {18.6} % | {14.4} % | {0.92} | {200.0} %, {18.6} % | {64.1} %, {18.6} % |",
    (
        "spmv",
        "power-law",
    ): "| spmv power-law | 120 | {0.1} % | {0.1} % | {0.82} | {8.2} %, {8.2} % | {60.3} %, {8.9} % |",
    (
        "spmv",
        "stencil-96",
    ): "| spmv stencil-96 | 128 | {10.5} % | {10.5} % | {0.90} | {12.7} %, {10.5} % | {48.3} %, {12.7} % |",
}

for _place, _text in RANKED_ROWS.items():

    def _ranked(frame: pd.DataFrame, place: tuple[str, str] = _place) -> Sequence[float]:
        mine = frame[(frame["family"] == place[0]) & (frame["workload"] == place[1])].set_index("model")
        of = {model: mine.loc[model] for model in ("static ranking", "PORPLE", "chance")}
        own = of["static ranking"]
        found = [100 * own["first"], 100 * own["best_of_five"], own["correlation"]]
        rest = [100 * of[m][column] for m in ("PORPLE", "chance") for column in ("first", "best_of_five")]
        return [*found, *rest]

    figure("static-ranking", _text, "static-ranking.csv")(_ranked)


@figure(
    "static-ranking",
    "| median of {13} | | {10.5} % | {1.1} % | | {12.7} %, {0.1} % | {72.2} %, {15.3} % |",
    "static-ranking.csv",
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    middle = frame.groupby("model")[["first", "best_of_five"]].median()
    found = [
        100 * middle.loc[m, c]
        for m in ("static ranking", "PORPLE", "chance")
        for c in ("first", "best_of_five")
    ]
    return [len(frame.groupby(["family", "workload"])), *found]


# -- policy-files -----------------------------------------------------------------------------------------

REGRET = "selection-regret.csv"
LOST = ("autotune", "nearest volume", "majority vote")


def _regret(frame: pd.DataFrame, record: str, kind: str, inside: bool | None = None) -> list[float]:
    some = frame[frame["record"] == record]
    some = some if inside is None else some[some["inside"] == inside]
    return [float(getattr(some[some["rule"] == rule]["regret"], kind)()) for rule in LOST]


for _text, _record, _kind, _scales, _inside in (
    ("each left out in turn: median | {0.0} % | {209} % | {208} % |", "allpairs-h200-sizes.csv.xz", "median", (100,) * 3, None),
    ("that other sizes surround | {9.3} % | {85} x | {85} x |", "allpairs-h200-sizes.csv.xz", "max", (100, 0, 0), True),
    ("on the rim) | {10} % | {109} x | {258} x |", "allpairs-h200-sizes.csv.xz", "max", (100, 0, 0), None),
    ("with the 51 sizes tuned: median | {0.1} % | {6.8} % | {272} % |",
     "allpairs-h200-sizes.csv.xz for allpairs-h200.csv.xz", "median", (100,) * 3, None),
    ("| worst | {2.2} % | {30} % | {138} x |",
     "allpairs-h200-sizes.csv.xz for allpairs-h200.csv.xz", "max", (100, 100, 0), None),
    ("four workloads, each left out in turn: median | {2.9} % | {6.3} % | {6.0} % |",
     "mummergpu-h200.csv.xz", "median", (100,) * 3, None),
    ("| worst | {4.6} % | {73} % | {18} % |", "mummergpu-h200.csv.xz", "max", (100,) * 3, None),
    ("allpairs, these three alone, each left out in turn: median | {57} % | {17} % | {237} % |",
     "allpairs-h200.csv.xz", "median", (100,) * 3, None),
    ("| worst | {237} % | {98} % | {8} x |", "allpairs-h200.csv.xz", "max", (100, 100, 0), None),
):  # fmt: skip

    def _rule(
        frame: pd.DataFrame, record: str = _record, kind: str = _kind, scales: Sequence[int] = _scales,
        inside: bool | None = _inside,
    ) -> Sequence[float]:  # fmt: skip
        """In percent; as how many times the best where the scale is 0."""
        found = zip(_regret(frame, record, kind, inside), scales, strict=True)
        return [regret * scale if scale else regret + 1 for regret, scale in found]

    figure("policy-files", _text, REGRET)(_rule)


@figure(
    "policy-files",
    "({84} configurations: bit planes in two words, in all but constant memory)",
    "allpairs-h200-sizes.csv.xz",
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [frame["configuration"].nunique()]


# -- records, run-time ------------------------------------------------------------------------------------

COUNTERS = "allpairs-h200-counters.csv.xz"
for _counter, _cell, _scale in (
    ("l2_read_bytes", "{0.78} MB", 1e-6), ("global_sectors_per_request", "{9}", 1), ("l1_hit_share", "{0.77}", 1),
    ("achieved_occupancy", "{0.09}", 1), ("stall_long_scoreboard_warps", "{16}", 1),
):  # fmt: skip

    def _counted(frame: pd.DataFrame, counter: str = _counter, scale: float = _scale) -> Sequence[float]:
        some = frame[frame[f"counter_{counter}_allpairs"].notna() & (frame["memory"] == "global")]
        return [scale * float(some.sort_values("time_ms").iloc[0][f"counter_{counter}_allpairs"])]

    figure("records", f"| `{_counter}` | {_cell} |", COUNTERS)(_counted)

for _ceiling, _rate in {
    "bytes_per_s": "{3.94e12}", "dram_read_bytes_per_s": "{4.31e12}", "random_64_byte_fetches_per_s": "{3.81e10}",
    "l2_read_bytes_per_s": "{1.08e13}", "shared_read_bytes_per_s": "{3.32e13}", "fp32_fma_per_s": "{3.12e13}",
    "fp64_fma_per_s": "{1.50e13}", "mufu_per_s": "{4.14e12}", "popc_per_s": "{4.14e12}", "integer_add_per_s": "{3.14e13}",
    "launches_per_s": "{6.95e5}",
}.items():  # fmt: skip

    def _limit(limits: dict[str, float], name: str = _ceiling) -> Sequence[float]:
        return [limits[name]]

    figure("records", f"| `{_ceiling}` | {_rate} |", "limits.json")(_limit)


@figure(
    "run-time",
    "from 14 x 512 ({0.19} ms, and {0.32} ms on 16 cores of its host) to 448 x 512 ({0.37} and {0.94} ms), the primer's "
    "112 x 512 ({0.24} and {0.50} ms) among them",
    "allpairs-h200-crossover.csv",
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    assert set(frame["faster"]) == {"cuda"}
    return [
        row(frame, column, parameters=f"instances={n} attributes=512")
        for n in (14, 448, 112)
        for column in ("cuda_ms", "cpu_ms")
    ]


# -- coulomb_map ------------------------------------------------------------------------------------------

SORTING = ("find_box_ms", "lay_grid_ms", "count_atoms_ms", "begin_cells_ms", "sort_atoms_ms")
MAPS: list[tuple[str, str, str, str]] = [
    ("coulomb_map-h200-million.csv",
     "method=expansions,cell=12,order=14,separation=24",
     "| `million`, 12³ points, order 14, 2.4 radii | {77.2} ms | {0.22} | {54.8} | {2.8} | {19.4} | {2.6·10¹⁵} |",
     "| `million`, 12³ points, order 14, 2.4 radii | {101,000} | {1.8·10⁻⁹} | {4.0·10⁻⁷} | {5.2·10⁻³} | {0} | {77.4} ms |"),
    ("coulomb_map-h200-million.csv",
     "method=expansions,cell=12,order=14,separation=27",
     "| `million`, 12³ points, order 14, 2.7 radii | {101} ms | {0.22} | {71.0} | {2.8} | {26.3} | {2.0·10¹⁵} |",
     "| `million`, 12³ points, order 14, 2.7 radii | {101,000} | {8.8·10⁻¹⁰} | {7.9·10⁻⁸} | {1.3·10⁻²} | {0} | {101} ms |"),
    ("coulomb_map-h200-1a63-million.csv",
     "method=expansions,cell=12,order=14,separation=24",
     "| `1a63-million`, 12³ points, order 14, 2.4 radii | {77.6} ms | {0.19} | {53.3} | {2.8} | {21.4} | {2.6·10¹⁵} |",
     "| `1a63-million`, 12³ points, order 14, 2.4 radii | {100,200} | {7.4·10⁻¹⁰} | {4.1·10⁻⁷} | {2.4·10⁻³} | {0} | {78.1} ms |"),
    ("coulomb_map-h200-1a63-million.csv",
     "method=expansions,cell=12,order=14,separation=27",
     "| `1a63-million`, 12³ points, order 14, 2.7 radii | {102} ms | {0.19} | {69.4} | {2.8} | {29.4} | {2.0·10¹⁵} |",
     "| `1a63-million`, 12³ points, order 14, 2.7 radii | {100,200} | {4.8·10⁻¹⁰} | {8.5·10⁻⁸} | {6.7·10⁻³} | {0} | {103} ms |"),
]  # fmt: skip


def _map_times(configuration: str) -> Callable[..., Sequence[float]]:
    def values(frame: pd.DataFrame) -> Sequence[float]:
        (found,) = frame[frame["configuration"] == configuration].to_dict("records")
        sorting = sum(found[name] for name in SORTING)
        return [
            found["ms"],
            sorting,
            found["expand_ms"],
            found["shift_ms"],
            found["sum_points_ms"],
            found["evaluations_per_s"],
        ]

    return values


def _map_errors(configuration: str) -> Callable[..., Sequence[float]]:
    names = ["checked", "error_of_sum", "bound_of_sum", "error_of_bound", "above_bound", "ms_with_bounds"]
    return lambda frame: [row(frame, name, configuration=configuration) for name in names]


for _file, _configuration, _times, _errors in MAPS:
    figure("coulomb_map", _times, _file)(_map_times(_configuration))
    figure("coulomb_map", _errors, _file)(_map_errors(_configuration))


SMALL_MAPS = "coulomb_map-h200.csv.xz"
CLOUD: list[tuple[str, dict[str, Any]]] = [
    ("| order 14, `point_blocks=4` | {5.10} ms | {3.21} | {1.67} |", {"point_blocks": 4}),
    ("| order 14, `point_blocks=4`, `records=soa` | {5.14} ms | {3.19} | {1.67} |", {"point_blocks": 4, "records": "soa"}),
    ("| order 14 | {5.25} ms | {3.14} | {1.82} |", {}),
    ("| order 14, cubes of 8³ | {5.29} ms | {4.08} | {0.62} |", {"cell": 8}),
    ("| order 14, cubes of 16³, `point_blocks=2` | {5.96} ms | {2.44} | {3.32} |", {"cell": 16, "point_blocks": 2}),
    ("| order 14, tiles of 128, `expand_blocks=3` | {5.46} ms | {3.35} | {1.83} |", {"tile": 128, "expand_blocks": 3}),
    ("| order 14, tiles of 64, `point_blocks=2` | {6.80} ms | {4.30} | {2.19} |", {"tile": 64, "point_blocks": 2}),
    ("| order 16 | {6.60} ms | {4.39} | {1.85} |", {"order": 16}),
    ("| order 14, 2.7 radii (`always`) | {6.87} ms | {3.89} | {2.70} |", {"separation": 27}),
    ("| order 14, 2.0 radii: all cubes go back | {392} ms | {2.27} | {389} |", {"separation": 20}),
]  # fmt: skip
_PLAIN = {
    "workload": "cloud", "state": "measured", "method": "expansions", "cell": 12, "order": 14, "separation": 24, "tile": 256,
    "expand_blocks": 2, "point_blocks": 3, "records": "aos", "terms": "cube_major",
}  # fmt: skip


def _cloud(wanted: dict[str, Any]) -> Callable[..., Sequence[float]]:
    names = ["time_ms", "kernel_expand_ms", "kernel_sum_points_ms"]
    return lambda frame: [row(frame, name, **{**_PLAIN, **wanted}) for name in names]


for _text, _wanted in CLOUD:
    figure("coulomb_map", _text, SMALL_MAPS)(_cloud(_wanted))


@figure("coulomb_map", "| `direct`, the best: cubes of 16³ | {256} ms | | {256} |", SMALL_MAPS)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [best(frame, workload="cloud", method="direct", cell=16)] * 2


@figure("coulomb_map", "Expansions are {50} times as fast as single atoms here", SMALL_MAPS)
def _(frame: pd.DataFrame) -> Sequence[float]:
    times = [best(frame, workload="cloud", method=method) for method in ("direct", "expansions")]
    return [times[0] / times[1]]


@figure(
    "coulomb_map",
    "single atoms are faster, {129} µs beside {233} µs. All {90} configurations ran",
    SMALL_MAPS,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    small = frame[frame["workload"] == "1a63-map"]
    times = [1000 * best(small, state="measured", method=method) for method in ("direct", "expansions")]
    return [*times, (small["state"] == "measured").sum()]


@figure("coulomb_map", "All {90} configurations ran, each within the bound beside float64", SMALL_MAPS)
def _(frame: pd.DataFrame) -> Sequence[float]:
    cloud = frame[frame["workload"] == "cloud"]
    return [(cloud["state"] == "measured").sum()]


# -- coulomb ----------------------------------------------------------------------------------------------

CUBICS = "coulomb-h200-cubics.csv"
CUBIC_ROWS: list[tuple[str, dict[str, Any]]] = [
    ("two atoms a turn, `cubic3`** | **{7.971} ms** | **{5.04}** | {121.8} % |", {"points_x": 3, "block_y": 4, "unroll": 2}),
    ("| the same, four atoms a turn | {8.182} ms | {4.91} | {118.6} % |", {"points_x": 3, "block_y": 4, "unroll": 4}),
    ("| the same, one atom a turn | {8.520} ms | {4.72} | {113.9} % |", {"points_x": 3, "block_y": 4, "unroll": 1}),
    ("| 2 in 8, spread | {8.380} ms | {4.80} | {115.8} % |", {"points_x": 2, "points": "spread"}),
    ("| 3 in 8, spread, blocks of 64 | {8.535} ms | {4.71} | {113.7} % |", {"points_x": 3, "points": "spread", "block_y": 8}),
    ("| 3 in 8, a block's width apart, 8 x 8 | {8.600} ms | {4.67} | {112.9} % |", {"points_x": 3, "points": "strided"}),
    ("| 4 in 8, spread | {9.095} ms | {4.42} | {106.7} % |", {"points_x": 4, "points": "spread"}),
    ("the best without cubics | {9.736} ms | {4.13} | {99.7} % |", {"rsqrt": "mixed3"}),
    ("| the same with the unit alone (`fast`) | {10.65} ms | {3.77} | {91.1} % |", {"rsqrt": "fast"}),
]  # fmt: skip
MAP = "coulomb-h200.csv"
ROWS: list[tuple[str, dict[str, Any]]] = [
    ("`mixed3`** | **{9.755} ms** | **{4.12}** | {99.5} % |",
     {"points_x": 4, "points_z": 4, "staging": "shared", "block_x": 8, "rsqrt": "mixed3"}),
    ("16 x 8, `mixed3` | {10.24} ms | {3.92} | {94.7} % |",
     {"points_x": 4, "points_z": 8, "staging": "shared", "block_x": 16, "rsqrt": "mixed3"}),
    ("constant memory, 8 x 8, `mixed3` | {10.30} ms | {3.90} | {94.3} % |",
     {"points_x": 8, "points_z": 8, "memory": "constant", "block_x": 8, "rsqrt": "mixed3"}),
    ("16 x 8, `mixed4` | {10.38} ms | {3.87} | {93.5} % |",
     {"points_x": 4, "points_z": 8, "staging": "shared", "block_x": 16, "rsqrt": "mixed4"}),
    ("with the unit alone (`fast`) | {10.65} ms | {3.77} | {91.1} % |",
     {"points_x": 4, "points_z": 4, "staging": "shared", "block_x": 8, "rsqrt": "fast"}),
    ("constant memory, 8 x 8, `fast` | {11.53} ms | {3.49} | {84.2} % |",
     {"points_x": 4, "points_z": 8, "memory": "constant", "block_x": 8, "rsqrt": "fast"}),
]  # fmt: skip
PRESETS = {
    "simple": "| `simple` | {45.99} ms | {0.874} | {21.1} % |", "v1": "| `v1` | {92.1} ms | {0.436} | {10.5} % |",
    "v2": "| `v2` | {129.2} ms | {0.311} | {7.5} % |", "v3": "| `v3` | {163.1} ms | {0.246} | {5.9} % |",
    "v4": "| `v4` | {143.5} ms | {0.280} | {6.8} % |",
}  # fmt: skip


def _shape(wanted: dict[str, Any]) -> Callable[..., Sequence[float]]:
    """The best of that shape: milliseconds, 10¹² evaluations a second, percent of the unit's rate."""

    def values(frame: pd.DataFrame, limits: dict[str, float]) -> Sequence[float]:
        for name, value in wanted.items():
            frame = frame[frame[name] == value]
        fastest = frame.sort_values("time_ms").iloc[0]
        rate = float(fastest["operations_per_s"])
        return float(fastest["time_ms"]), rate / 1e12, 100 * rate / limits["mufu_per_s"]

    return values


for _text, _wanted in CUBIC_ROWS:
    figure("coulomb", _text, CUBICS, "limits.json")(_shape(_wanted))
for _text, _wanted in ROWS:
    figure("coulomb", _text, MAP, "limits.json")(_shape(_wanted))
for _preset, _text in PRESETS.items():
    figure("coulomb", _text, MAP, "limits.json")(_shape({"preset": _preset}))


@figure("coulomb", "{13} of the {30} rows are at more than 4.5·10¹² evaluations a second", CUBICS)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return (frame["operations_per_s"] > 4.5e12).sum(), len(frame)


def _instead(frame: pd.DataFrame, policy: str, before: int | str, after: int | str) -> pd.Series:
    """How many percent more time one value of a policy takes in place of another, in each pair of cubics."""
    frame = frame[frame["rsqrt"] == "cubic3"]
    kept = [name for name in ("points_x", "block_y", "unroll", "points") if name != policy]
    times = {value: frame[frame[policy] == value].set_index(kept)["time_ms"] for value in (before, after)}
    return (times[after] / times[before] - 1).dropna() * 100


@figure(
    "coulomb", "{2.4} % less time than blocks of 64 in the mean of nine pairs, between {7.0} % less and {1.1} % more. "
    "With blocks of 64 spreading is worth {0.4} %, from {3.7} % less to {2.1} % more.", CUBICS,
)  # fmt: skip
def _(frame: pd.DataFrame) -> Sequence[float]:
    blocks, points = _instead(frame, "block_y", 8, 4), _instead(frame, "points", "strided", "spread")
    assert len(blocks) == len(points) == 9
    return -blocks.mean(), -blocks.min(), blocks.max(), -points.mean(), -points.min(), points.max()


@figure(
    "coulomb", "in each of {9} pairs less time than one, by {1.4} to {6.4} %. Four take {1.2} % more than two in the mean.",
    CUBICS,
)  # fmt: skip
def _(frame: pd.DataFrame) -> Sequence[float]:
    two, four = _instead(frame, "unroll", 1, 2), _instead(frame, "unroll", 2, 4)
    return len(two), -two.max(), -two.min(), four.mean()


@figure("coulomb", "{2.5} % less time than two in the mean; four take {7.5} % more", CUBICS)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return -_instead(frame, "points_x", 2, 3).mean(), _instead(frame, "points_x", 3, 4).mean()


ACCURACY = "coulomb-h200-accuracy.csv"
for _number, _text in {
    2: "| the best row above | {5.04} | {5.4·10⁻⁸} | {1.9·10⁻⁶} |",
    1: "| the same, `cubic4` | {4.92} | {4.5·10⁻⁸} | {1.9·10⁻⁶} |",
    0: "| the same, `fast` | {3.78} | {5.4·10⁻⁸} | {1.8·10⁻⁶} |",
    4: "| 4 in 4, `mixed3` | {4.13} | {5.5·10⁻⁸} | {2.0·10⁻⁶} |",
    3: "| 4 in 4, `fast` | {3.77} | {5.5·10⁻⁸} | {1.8·10⁻⁶} |",
    5: "| `simple` | {0.875} | {5.1·10⁻⁸} | {1.8·10⁻⁶} |",
}.items():

    def _accurate(frame: pd.DataFrame, number: int = _number) -> Sequence[float]:
        one = frame.iloc[number]
        return one["evaluations_per_s"] / 1e12, one["backward"], one["norm"]

    figure("coulomb", _text, ACCURACY)(_accurate)

for _what, _text in {
    "autotune": "**{7.964} ms** | **{5.05}** | {1} | {5.3·10⁻⁸} |",
    "cupy": "| a CUDA C++ kernel by cupy, a thread a point | {20.42} ms | {1.97} | {2.56} | {5.5·10⁻⁸} |",
    "Triton": "| a Triton kernel, a lane a point | {20.68} ms | {1.94} | {2.60} | {5.5·10⁻⁸} |",
    "torch": "| PyTorch, eager, a slice at a time | {807.4} ms | {0.0498} | {101.4} | {5.0·10⁻⁹} |",
}.items():

    def _peer(frame: pd.DataFrame, what: str = _what) -> Sequence[float]:
        (one,) = (row for _, row in frame.iterrows() if row["what"] == what)
        return one["ms"], one["evaluations_per_s"] / 1e12, one["times_ours"], one["backward_error"]

    figure("coulomb", _text, "coulomb-h200-peers.csv")(_peer)


@figure(
    "coulomb",
    "So were on 22 November the {216} of `cubics`, which came later",
    "coulomb-h200-slice-cubics.csv.xz",
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [((frame["state"] == "measured") & (frame["preset"] != "control")).sum()]


@figure("coulomb", "measured {4.14·10¹²} reciprocal square roots a second", "limits.json")
def _(limits: dict[str, float]) -> Sequence[float]:
    return [limits["mufu_per_s"]]


for _block, _text in {
    "8x8": "| 8 x 8 | {1.38·10¹²} | {4.22·10¹¹} | {9.8} times as fast |",
    "16x8": "| 16 x 8 | {1.37·10¹²} | {4.15·10¹¹} | {9.9} |",
    "16x16": "| 16 x 16 | {1.99·10¹²} | {3.04·10¹¹} | {13.5} |",
}.items():

    def _published(frame: pd.DataFrame, ours: pd.DataFrame, block: str = _block) -> Sequence[float]:
        there = row(frame, "map_evaluations_per_s", block=block)
        return (
            row(frame, "plane_evaluations_per_s", block=block),
            there,
            ours["operations_per_s"].max() / there,
        )

    figure("coulomb", _text, "coulomb-h200-published.csv", MAP)(_published)

CPU = "coulomb-h200-cpu.csv"
for _number, _text in enumerate([
    "| numpy, a row at a time | {1.393} | {3.9·10⁸} | {0.08} | {4.5·10⁻⁷} |",
    "| numba, parallel, fastmath | {0.115} | {4.74·10⁹} | {1} | {2.5·10⁻⁸} |",
    "| `simple` | {0.128} | {4.26·10⁹} | {0.90} | {1.1·10⁻⁶} |",
    "| all slices a launch, `fast` | {0.112} | {4.86·10⁹} | {1.03} | {1.1·10⁻⁶} |",
    "| 8 points of a row | {0.114} | {4.75·10⁹} | {1.00} | {1.1·10⁻⁶} |",
    "| deep, 4 points in 2 slices | {0.118} | {4.59·10⁹} | {0.97} | {1.1·10⁻⁶} |",
    "| **deep, 4 points in 8 slices** | **{0.0335}** | **{1.62·10¹⁰}** | **{3.4}** | {1.1·10⁻⁶} |",
    "| deep, 8 points in 8 slices | {0.0417} | {1.30·10¹⁰} | {2.7} | {1.1·10⁻⁶} |",
]):  # fmt: skip

    def _on_cpu(frame: pd.DataFrame, number: int = _number) -> Sequence[float]:
        one = frame.iloc[number]
        numba = row(frame, "seconds", what="numba")
        return one["seconds"], one["evaluations_per_s"], numba / one["seconds"], one["norm_of_error"]

    figure("coulomb", _text, CPU)(_on_cpu)


@figure("coulomb", "all {4,747} configurations on `1a63-slice`", "coulomb-h200-slice.csv.xz")
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [(frame["state"] == "measured").sum()]


@figure(
    "coulomb", "So were the {3,407} with `float64` and the {3,407} with `compensated`",
    "coulomb-h200-slice-float64.csv.xz", "coulomb-h200-slice-compensated.csv.xz",
)  # fmt: skip
def _(*frames: pd.DataFrame) -> Sequence[float]:
    return [(frame["state"] == "measured").sum() for frame in frames]


IONS = "ion_placement-h200.csv"
for _number, _text in {
    0: "| `eager`, 256 threads | {70.7} ms | {1} | {6.79·10⁹} | {1} |",
    1: "| `fused`, 256 threads | {49.9} ms | {1.42} | {6.79·10⁹} | {1} |",
    2: "| `lazy`, tiles of 6³, `graph` | {13.5} ms | {5.23} | {7.01·10⁷} | {97} |",
    3: "| `lazy`, tiles of 6³, `persistent` | {13.1} ms | {5.38} | {7.01·10⁷} | {97} |",
    4: "| the same, tiles of 8³ | {14.7} ms | {4.81} | {8.78·10⁷} | {77} |",
    7: "| the same, 6³, 264 blocks of 128 threads | {15.6} ms | {4.52} | {1.22·10⁸} | {56} |",
}.items():

    def _ions(frame: pd.DataFrame, number: int = _number) -> Sequence[float]:
        eager, one = frame.iloc[0], frame.iloc[number]
        ratio = eager["milliseconds"] / one["milliseconds"]
        return one["milliseconds"], ratio, one["updated"], eager["updated"] / one["updated"]

    figure("coulomb", _text, IONS)(_ions)


@figure(
    "coulomb", "There `fused` is the best on an H200 ({125} µs; the best `lazy` {163}, `eager` {207})",
    "ion_placement-h200-sweep.csv.xz",
)  # fmt: skip
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [1e3 * best(frame, workload="1a63-ions", update=update) for update in ("fused", "lazy", "eager")]


# -- cyclospectrum ----------------------------------------------------------------------------------------

EXACT, RING = "cyclospectrum-h200-exact.csv", "cyclospectrum-h200.csv.xz"
SHORT_EXACT = "cyclospectrum-h200-short-exact.csv"


@figure("cyclospectrum", "| sorted | {327} | all | {326} | {194} | not run |", EXACT)
def _(frame: pd.DataFrame) -> Sequence[float]:
    some = frame[frame["order"] == "sorted"]
    return some["configurations"].max(), row(some, "exact", residues=1024), row(some, "exact", residues=4096)


@figure("cyclospectrum", "| unsorted | {122} | all | {121} | {120} | all |", EXACT)
def _(frame: pd.DataFrame) -> Sequence[float]:
    some = frame[frame["order"] == "unsorted"]
    return some["configurations"].max(), row(some, "exact", residues=1024), row(some, "exact", residues=4096)


@figure("cyclospectrum", "{3,577} comparisons, none of them wrong", EXACT)
def _(frame: pd.DataFrame) -> Sequence[float]:
    assert not frame["wrong"].any()
    return [frame["exact"].sum()]


@figure(
    "cyclospectrum",
    "the {39} configurations of `short` were compared for sorted lists of 1 to 4,096 residues and the {8} of",
    SHORT_EXACT,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    assert not frame["wrong"].any()
    assert set(frame["residues"]) == {1, 2, 3, 5, 10, 37, 255, 1024, 4096}
    return [frame[frame["order"] == order]["configurations"].max() for order in ("sorted", "pairs")]


@figure("cyclospectrum", "{423} comparisons, none of them wrong. compute-sanitizer", SHORT_EXACT)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [frame["exact"].sum()]


@figure("cyclospectrum", "| **tuned** | **{0.0278}** | **{0.0509}** | **{0.343}** |", RING)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [winner(frame, "cyclospectrum", f"n{n}") for n in (1024, 4096, 16384)]


RINGS: dict[str, dict[str, str]] = {
    "| differences counted, positions by three launches, a search for each thread | {0.0383} | {0.0777} | {0.445} |":
        {"finish": "counting", "count_by": "differences", "count_in": "shared", "scan": "passes"},
    "| differences counted, blocks that look back | {0.0296} | {0.0509} | {0.441} |":
        {"count_by": "differences", "scan": "look_back"},
    "| differences counted, blocks that list | {0.0278} | {0.0581} | {0.502} |":
        {"count_by": "differences", "scan": "listing"},
    "| counted by the transform, blocks that look back | {0.0381} | {0.0691} | {0.343} |":
        {"count_by": "transform", "scan": "look_back"},
    "| counted by the transform, blocks that list | {0.0366} | {0.0817} | {0.419} |":
        {"count_by": "transform", "scan": "listing"},
    "| differences counted in global memory | {0.118} | {0.186} | {1.72} |": {"count_in": "global"},
    "CUB radix sort of the needed bits | {0.0696} | {0.374} | {4.85} |":
        {"generation": "prefix", "finish": "radix_sort", "key_bits": "needed"},
    "CUB radix sort of 32 bits | {0.0808} | {0.449} | {5.91} |":
        {"generation": "prefix", "finish": "radix_sort", "key_bits": "all"},
}  # fmt: skip
for _text, _wanted in RINGS.items():

    def _ring(frame: pd.DataFrame, wanted: dict[str, str] = _wanted) -> Sequence[float]:
        return [best(frame, workload=f"n{n}", **wanted) for n in (1024, 4096, 16384)]

    figure("cyclospectrum", _text, RING)(_ring)


@figure("cyclospectrum", "| **tuned** | **{0.449}** | **{8.25}** |", RING)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [winner(frame, "cyclospectrum", f"n{n}-pairs") for n in (65536, 1000000)]


@figure("cyclospectrum", "| the wide prime | {0.538} | {8.24} |", RING)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [best(frame, workload=f"n{n}-pairs", prime_size="wide") for n in (65536, 1000000)]


@figure(
    "cyclospectrum", "the list of 16,384 takes {0.343} ms, with the wide one {0.420} ms at the least", RING
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    transform = {"workload": "n16384", "count_by": "transform"}
    return [best(frame, prime_size=size, **transform) for size in ("narrow", "wide")]


@figure("cyclospectrum", "the list of 16,384 takes {0.343} ms with them and {0.353} ms without", RING)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [best(frame, workload="n16384", eviction=eviction) for eviction in ("hinted", "normal")]


@figure(
    "cyclospectrum",
    "| torch: an autocorrelation by Fourier transforms in float64, rounded | {1.49} | {21.5} |",
    "cyclospectrum-h200-peers.csv",
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [
        row(frame, "ms", residues=n, what="torch transforms in float64, rounded") for n in (65536, 1000000)
    ]


@figure("cyclospectrum", "in which ours took {0.337} ms at n = 16,384", "cyclospectrum-h200-peers.csv")
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [row(frame, "ms", residues=16384, what="autotune")]


for _what, _text in {
    "torch prefix differences + torch.sort": "`torch.sort` | | {0.885} | {11.6} |",
    "torch prefix differences + cupy sort in place": "cupy's sort in place | | {0.549} | {5.70} |",
}.items():

    def _sorted(frame: pd.DataFrame, what: str = _what) -> Sequence[float]:
        return [row(frame, "ms", residues=n, what=what) for n in (4096, 16384)]

    figure("cyclospectrum", _text, "cyclospectrum-h200-peers.csv")(_sorted)


@figure(
    "cyclospectrum",
    "{34} x faster than `torch.sort` and {17} x faster than cupy's sort",
    "cyclospectrum-h200-peers.csv",
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    some = frame[frame["residues"] == 16384]
    return [row(some, "times_ours", what=what) for what in some["what"].iloc[1:]]


@figure(
    "cyclospectrum",
    "the write: {0.247} ms for the {1.07} GB list, {4.4} TB/s, {110} % of the measured copy bandwidth of {3.94} TB/s",
    RING, "limits.json",
)  # fmt: skip
def _(frame: pd.DataFrame, limits: dict[str, float]) -> Sequence[float]:
    nbytes = 4 * (16384 * 16383 + 2)
    some = frame[(frame["workload"] == "n16384") & (frame["finish"] == "counting")].sort_values("time_ms")
    milliseconds = float(some.iloc[0]["kernel_expand_ms"])
    rate, copy = nbytes / milliseconds * 1e3, limits["bytes_per_s"]
    return milliseconds, nbytes / 1e9, rate / 1e12, 100 * rate / copy, copy / 1e12


CHARTS = ("cyclospectrum-host-charts.csv", "cyclospectrum-h200-charts.csv")
CHARTED = ("sequential brute", "sequential optimized", "CUDA brute", "CUDA optimized")
for _n, _text in {
    5: "| 5 | {0.021} | {0.017} | {0.040} | {0.063} |", 64: "| 64 | {0.096} | {0.032} | {0.052} | {0.57} |",
    256: "| 256 | {4.4} | {0.31} | {0.32} | {2.6} |", 512: "| 512 | {30} | {1.4} | {1.3} | {5.9} |",
    1024: "| 1,024 | {235} | {6.2} | {5.5} | {15.3} |",
}.items():  # fmt: skip

    def _list(host: pd.DataFrame, gpu: pd.DataFrame, n: int = _n) -> Sequence[float]:
        both = pd.concat([host, gpu])
        return [row(both, "ms", program=program, what="list", residues=n) for program in CHARTED]

    figure("cyclospectrum", _text, *CHARTS)(_list)

SUMS = (
    "CUDA brute", "CUDA optimized", "optimized, one graph", "optimized, one cooperative launch", "running sum",
    "prefix differences",
)  # fmt: skip
for _n, _text in {
    64: "| 64 | 0.018 | {0.0049} | {0.57} | {0.061} | {0.025} | {0.0048} | {0.0059} |",
    256: "| 256 | 0.14 | {0.012} | {2.2} | {0.24} | {0.039} | {0.011} | {0.0064} |",
    1024: "| 1,024 | 2.2 | {0.20} | {9.1} | {1.00} | {1.44} | {0.046} | {0.0078} |",
    4096: "| 4,096 | 31 | {11.8} | {36.8} | {4.1} | {5.5} | {0.19} | {0.031} |",
    8192: "| 8,192 | 133 | {93.6} | {74.6} | {8.6} | {11.2} | {0.47} | {0.099} |",
    16384: "| 16,384 | | {748} | {152} | {17.2} | {23.2} | {1.03} | {0.36} |",
}.items():

    def _sums(frame: pd.DataFrame, n: int = _n) -> Sequence[float]:
        return [row(frame, "ms", program=program, what="sums", residues=n) for program in SUMS]

    figure("cyclospectrum", _text, CHARTS[1])(_sums)


# -- eri --------------------------------------------------------------------------------------------------

ERI, LIBCINT = "eri-h200.csv", "eri-h200-libcint.csv"


@figure("eri", "{15} of the {71} measured ones began so slowly that they were sampled briefly", ERI)
def _(frame: pd.DataFrame) -> Sequence[float]:
    some = frame[(frame["workload"] == "water8") & (frame["state"] == "measured")]
    return (some["abandoned"] == True).sum(), len(some)  # noqa: E712 - a column of objects


@figure("eri", "the first {800} in declared order ran on `water2`", "eri-h200-water2.csv.xz")
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [(frame["state"] == "measured").sum()]


@figure("eri", "`split` 4 with screening took {0.131} ms", ERI)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [best(frame, workload="water8", screening="schwarz", split=4)]


@figure("eri", "without screening the best was {0.195} ms ({2.91e11} components/s;", ERI)
def _(frame: pd.DataFrame) -> Sequence[float]:
    some = frame[(frame["workload"] == "water8") & (frame["screening"] == "none")]
    return some["time_ms"].min(), some["operations_per_s"].max()


@figure(
    "eri",
    "Matrices of the same molecule took {0.299} ms ({1.89e11}), STO-3G's one subclass of 81 components {0.059} ms ({1.91e11})",
    ERI,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    some = [frame[frame["workload"] == name] for name in ("water8-jk", "water8-sto3g")]
    return [value for one in some for value in (one["time_ms"].min(), one["operations_per_s"].max())]


LISTS: dict[str, tuple[str, dict[str, str]]] = {
    "| place, computed, 2 | {0.193} ms | {2.93e11} | {24.0} ms | **{124} x** |":
        ("water8", {"order": "place", "roots": "computed", "split": "2", "screening": "none"}),
    "| | place, deferred, 2 | {0.209} ms | {2.71e11} | | {115} x |":
        ("water8", {"order": "place", "roots": "deferred", "split": "2", "screening": "none"}),
    "| | subclass, deferred, 2 | {0.225} ms | {2.52e11} | | {107} x |":
        ("water8", {"order": "subclass", "roots": "deferred", "split": "2", "block_size": "128"}),
    "| | place, computed, 4 | {0.228} ms | {2.49e11} | | {105} x |":
        ("water8", {"order": "place", "roots": "computed", "split": "4"}),
    "| | place, deferred, 1 | {0.345} ms | {1.64e11} | | {69} x |":
        ("water8", {"order": "place", "roots": "deferred", "split": "1"}),
    "| | screened, schwarz, deferred, 2 | {0.190} ms | ({2.98e11}) | | {126} x |":
        ("water8", {"order": "schwarz", "roots": "deferred", "split": "2"}),
    "| place, deferred, 1 | {16.8} ms | **{4.21e11}** | {780} ms | {46} x |":
        ("water27", {"roots": "deferred", "split": "1"}),
    "| | place, deferred, 2 | {18.8} ms | {3.77e11} | | {42} x |": ("water27", {"roots": "deferred", "split": "2"}),
    "| | place, deferred, 4 | {23.4} ms | {3.02e11} | | {33} x |": ("water27", {"roots": "deferred", "split": "4"}),
}  # fmt: skip
for _text, (_workload, _wanted) in LISTS.items():

    def _beside(
        frame: pd.DataFrame, workload: str = _workload, wanted: dict[str, Any] = _wanted, text: str = _text
    ) -> Sequence[float]:
        some = frame[frame["workload"] == workload]
        for name, value in wanted.items():
            some = some[("," + some["configuration"] + ",").str.contains(f",{name}={value},", regex=False)]
        (one,) = some.to_dict("records")
        rates = [one["gpu_ms"], one["gpu_components_per_s"]]
        ratio = one["libcint_ms"] / one["gpu_ms"]
        return [*rates, one["libcint_ms"], ratio] if text.count("{") == 4 else [*rates, ratio]

    figure("eri", _text, LIBCINT)(_beside)

ERI_TILES, MATRICES = "eri-h200-tiles.csv.xz", "eri-h200-matrices.csv"
MATRIX_PROGRAMS: dict[str, tuple[str, bool]] = {
    "| libcint, 16 cores | | {2,183} ms | |": ("libcint", False),
    "| gpu4pyscf `scf.jk.get_jk` | {55.1} ms | {55.2} ms | {1.5e-12}, {2.1e-12} |": ("gpu4pyscf", True),
    "| JoltQC | {7.99} ms | {8.00} ms | {1.4e-12}, {2.9e-12} |": ("joltqc", True),
    "the best before | {43.8} ms | {44.0} ms | {1.2e-12}, {1.1e-12} |": ("granularity=block", True),
    "| {15.4} ms ({4.61e11} components/s) | {15.6} ms | {1.2e-12}, {1.1e-12} |": (
        "order=place,roots=inverse",
        True,
    ),
    "| tiles, screened | **{2.26} ms** | {2.42} ms | {1.2e-12}, {9.7e-13} |": ("screening=schwarz", True),
}


def program(frame: pd.DataFrame, part: str) -> dict[str, Any]:
    (one,) = frame[frame["program"].str.contains(part, regex=False)].to_dict("records")
    return dict(one)


for _text, (_part, _on_device) in MATRIX_PROGRAMS.items():

    def _matrices(
        frame: pd.DataFrame, part: str = _part, on_device: bool = _on_device, text: str = _text
    ) -> Sequence[float]:
        one = program(frame, part)
        if not on_device:
            return [one["host_ms"]]
        rate = [7_079_995_350 / one["device_ms"] * 1e3] if "components/s" in text else []
        return [one["device_ms"], *rate, one["host_ms"], one["coulomb"], one["exchange"]]

    figure("eri", _text, MATRICES)(_matrices)


@figure(
    "eri",
    "tiles take {2.8} times less than a block with one bra, and with screening {3.5} times less than JoltQC and {24} times less than gpu4pyscf",
    MATRICES,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    block, tile, screened, joltqc, gpu4pyscf = (
        program(frame, part)["device_ms"]
        for part in (
            "granularity=block",
            "order=place,roots=inverse",
            "screening=schwarz",
            "joltqc",
            "gpu4pyscf",
        )
    )
    return block / tile, joltqc / screened, gpu4pyscf / screened


@figure("eri", "Outside of the device's own time a call has {0.2} ms", MATRICES)
def _(frame: pd.DataFrame) -> Sequence[float]:
    one = program(frame, "screening=schwarz")
    return [one["host_ms"] - one["device_ms"]]


@figure(
    "eri",
    "have {74} configurations on `water8-jk`, {36} on `water8`, {36} on `water8-sto3g` and {32} on `water27-jk`",
    ERI_TILES,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    swept = frame[frame["granularity"] != "thread"].groupby("workload").size()  # but for the control
    return [swept[name] for name in ("water8-jk", "water8", "water8-sto3g", "water27-jk")]


@figure(
    "eri",
    "{1.81} times the best of `water8-sto3g` and {1.27} to {1.45} times that of the others",
    ERI_TILES,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    default: dict[str, Any] = {
        "granularity": "tile", "order": "decade", "split": 2, "bras": 8, "screening": "schwarz",
    }  # fmt: skip
    slower = {
        name: best(frame, workload=name, **default) / best(frame, workload=name)
        for name in ("water8-sto3g", "water8-jk", "water8", "water27-jk")
    }
    others = [one for name, one in slower.items() if name != "water8-sto3g"]
    return slower["water8-sto3g"], min(others), max(others)


@figure("eri", "| `water27-jk` | {15.3} ms: tile, order place | {2.24} ms: tile, order decade |", ERI_TILES)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [
        best(frame, workload="water27-jk", order="place", screening="none"),
        best(frame, workload="water27-jk", order="decade", screening="schwarz"),
    ]


@figure(
    "eri",
    "| `water8-jk` | {0.231} ms: tile, order place, `split` 2 (block: {0.279} ms) | {0.159} ms: tile, order decade, `split` 4 |",
    ERI_TILES,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [
        best(frame, workload="water8-jk", granularity="tile", split=2, screening="none"),
        best(frame, workload="water8-jk", granularity="block", screening="none"),
        best(frame, workload="water8-jk", order="decade", split=4),
    ]


@figure(
    "eri",
    "| `water8` | {0.196} ms: block, order place, roots computed, `split` 2 | {0.129} ms: block, order schwarz, roots inverse, `split` 4 |",
    ERI_TILES,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [
        best(frame, workload="water8", roots="computed", split=2, screening="none"),
        best(frame, workload="water8", roots="inverse", split=4, screening="schwarz"),
    ]


@figure(
    "eri",
    "| `water8-sto3g` | {0.061} ms: block, order place, roots computed, `split` 2 | {0.059} ms: block, order schwarz, roots inverse, `split` 2 |",
    ERI_TILES,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [
        best(frame, workload="water8-sto3g", roots="computed", split=2),
        best(frame, workload="water8-sto3g", order="schwarz", roots="inverse", split=2),
    ]


def _ratios(frame: pd.DataFrame, policy: str, value: Any, other: Any, **wanted: Any) -> list[float]:
    """The times with ``other`` over those with ``value``, of configurations that differ in that policy alone."""
    some = frame
    for name, held in wanted.items():
        some = some[some[name] == held]
    rest = [
        "workload", *(p for p in ("order", "granularity", "roots", "screening", "block_size", "split", "unroll", "bras") if p != policy)
    ]  # fmt: skip
    left, right = (some[some[policy] == v].set_index(rest)["time_ms"] for v in (value, other))
    return sorted((right / left).dropna())


@figure(
    "eri",
    "makes `water8-jk` {1.06} to {1.48} times as fast ({9} pairs), and the work-units of `water27-jk` {2.0} to {2.8} times ({3} pairs)",
    ERI_TILES,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    small = _ratios(frame, "granularity", "tile", "block", workload="water8-jk")
    large = _ratios(frame, "granularity", "tile", "block", workload="water27-jk", screening="none")
    return small[0], small[-1], len(small), large[0], large[-1], len(large)


@figure(
    "eri",
    "on `water8` tiles gain {1} to {3} % in order place ({3} pairs), and STO-3G, with one subclass of few work-units, takes {1.5} to "
    "{2.6} times as long with them",
    ERI_TILES,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    gained, lost = (
        _ratios(frame, "granularity", "tile", "block", workload=name, order="place")
        for name in ("water8", "water8-sto3g")
    )
    return 100 * (gained[0] - 1), 100 * (gained[-1] - 1), len(gained), 1 / lost[-1], 1 / lost[0]


@figure("eri", "in all {16} pairs, by {3} to {13} %, and on lists in all {18}, by {1} to {6} %", ERI_TILES)
def _(frame: pd.DataFrame) -> Sequence[float]:
    tiles = _ratios(frame, "roots", "inverse", "deferred", granularity="tile")
    are_lists = frame["workload"].isin(["water8", "water8-sto3g"])
    lists = _ratios(frame[are_lists], "roots", "inverse", "deferred", granularity="block")
    share = [100 * (found - 1) for found in (tiles[0], tiles[-1], lists[0], lists[-1])]
    return len(tiles), share[0], share[1], len(lists), share[2], share[3]


@figure(
    "eri",
    "with `split` 1, 16 takes {1} to {3} % less than 8 on `water27-jk`, and 4 takes {12} to {16} % more than 8; on `water8-jk` 4 takes "
    "{2} to {7} % more",
    ERI_TILES,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    less = _ratios(frame, "bras", 8, 16, workload="water27-jk", split=1)
    more, small = (_ratios(frame, "bras", 8, 4, workload=name) for name in ("water27-jk", "water8-jk"))
    return (
        100 * (1 - less[-1]),
        100 * (1 - less[0]),
        *(100 * (found - 1) for found in (more[0], more[-1], small[0], small[-1])),
    )


# -- eri_sp -----------------------------------------------------------------------------------------------

SP, SP_LIBCINT = "eri-sp-h200.csv.xz", "eri-sp-h200-libcint.csv"
SP_BASE: dict[str, Any] = {
    "workload": "water8", "order": "place", "classes": "apart", "granularity": "block", "parts": 3, "split": 1,
    "split_heavy": 1, "bra_transform": "once", "pair_table": "device", "table_records": "aos", "boys": "table",
    "boys_memory": "global", "block_size": 64,
}  # fmt: skip


def sp(frame: pd.DataFrame, column: str = "time_ms", **other: Any) -> float:
    """Of the configuration that differs from the one beside which policies are judged."""
    return row(frame, column, **(SP_BASE | other))


@figure(
    "eri_sp", "All {51} configurations of `short` on `water8` and {28} of `teams` on the other three ran", SP
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    swept = frame[frame["state"] == "measured"].groupby("workload").size()
    return swept["water8"] - 1, swept["water8-jk"] - 1  # control is one more


@figure(
    "eri_sp",
    "{0.265} ms on `water8` ({4.81e9} integrals/s; control {15.1} ms), {0.306} ms on `water8-jk` and {0.0951} ms on `water2`",
    SP,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    teams: dict[str, Any] = {"split": 3, "split_heavy": 9, "boys": "quotient"}
    control = frame[frame["classes"] == "together"].query("workload == 'water8'")["time_ms"].max()
    return [
        sp(frame, **teams), sp(frame, "operations_per_s", **teams), control,
        sp(frame, workload="water8-jk", **teams), sp(frame, workload="water2", **teams),
    ]  # fmt: skip


@figure("eri_sp", "takes {1.002} ms, and the best, the same with `split_heavy` 3, {0.972} ms", SP)
def _(frame: pd.DataFrame) -> Sequence[float]:
    teams: dict[str, Any] = {"workload": "water12", "split": 3, "boys": "quotient"}
    return [sp(frame, split_heavy=heavy, **teams) for heavy in (9, 3)]


SP_LISTS: dict[str, tuple[str, str]] = {
    "| quotient, 3, 9 | {0.263} ms | {4.84e9} | {69.8} ms | **{265} x** |": ("water8", "boys=quotient,split=3,split_heavy=9"),
    "| | table, 1, 3 | {0.309} ms | {4.12e9} | | {226} x |": ("water8", "boys=table,split=1,split_heavy=3"),
    "| | quotient, 1, 1 | {0.363} ms | {3.51e9} | | {192} x |": ("water8", "boys=quotient,split=1,split_heavy=1"),
    "| table, 1, 3 | {2.71} ms | {7.40e9} | {487} ms | **{180} x** |": ("water16", "boys=table,split=1,split_heavy=3"),
    "| | quotient, 1, 1 | {2.71} ms | {7.38e9} | | {179} x |": ("water16", "boys=quotient,split=1,split_heavy=1"),
    "| | quotient, 3, 9 | {2.95} ms | {6.79e9} | | {165} x |": ("water16", "boys=quotient,split=3,split_heavy=9"),
    "| quotient, 1, 1 | {18.2} ms | {8.88e9} | {2,077} ms | **{114} x** |": ("water27", "boys=quotient,split=1,split_heavy=1"),
    "| | table, 1, 3 | {18.8} ms | {8.58e9} | | {111} x |": ("water27", "boys=table,split=1,split_heavy=3"),
    "| | quotient, 3, 9 | {21.7} ms | {7.43e9} | | {96} x |": ("water27", "boys=quotient,split=3,split_heavy=9"),
}  # fmt: skip
for _text, (_workload, _words) in SP_LISTS.items():

    def _sp_beside(
        frame: pd.DataFrame, workload: str = _workload, words: str = _words, text: str = _text
    ) -> Sequence[float]:
        some = frame[frame["workload"] == workload]
        for word in words.split(","):
            some = some[("," + some["configuration"] + ",").str.contains(f",{word},", regex=False)]
        (one,) = some.to_dict("records")
        first = [one["gpu_ms"], one["gpu_integrals_per_s"]]
        ratio = one["libcint_ms"] / one["gpu_ms"]
        return [*first, one["libcint_ms"], ratio] if text.count("{") == 4 else [*first, ratio]

    figure("eri_sp", _text, SP_LIBCINT)(_sp_beside)


@figure("eri_sp", "was {1.8e-14} in every row of `water16` and `water27`, {9.3e-15} of `water8`", SP_LIBCINT)
def _(frame: pd.DataFrame) -> Sequence[float]:
    large, small = (
        frame[frame["workload"].isin(names)]["largest_difference"].max()
        for names in (("water16", "water27"), ("water8",))
    )
    return [large, small]


@figure(
    "eri_sp",
    "the best list of (H2O)16 is {28} % of the measured {1.50e13} a second (`benchmarks/results/limits.json`), that of "
    "(H2O)8 {18} %",
    SP, SP_LIBCINT, "limits.json",
)  # fmt: skip
def _(frame: pd.DataFrame, beside: pd.DataFrame, ceilings: Any) -> Sequence[float]:
    ceiling = ceilings["fp64_fma_per_s"]
    least = 11_376_388_116  # multiply_adds of water16
    large = least / beside[beside["workload"] == "water16"]["gpu_ms"].min() * 1e3
    small = frame[frame["workload"] == "water8"]["fp64_fma_per_s"].max()
    return large / ceiling * 100, ceiling, small / ceiling * 100


@figure("eri_sp", "of the 0.265 ms (ss|ss) and (sp|ss) take {0.149}", SP)
def _(frame: pd.DataFrame) -> Sequence[float]:
    teams: dict[str, Any] = {"split": 3, "split_heavy": 9, "boys": "quotient"}
    return [sum(sp(frame, f"kernel_integrate_{name}_ms", **teams) for name in ("ssss", "spss"))]


@figure("eri_sp", "and no split, {0.371} ms", SP)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [sp(frame)]


@figure("eri_sp", "takes {0.625} ms with sorted pairs and {1.12} ms with pairs as generated", SP)
def _(frame: pd.DataFrame) -> Sequence[float]:
    some = frame[(frame["classes"] == "together") & (frame["boys"] == "table")]
    return [row(some, "time_ms", workload="water8", order=order) for order in ("place", "none")]


@figure("eri_sp", "{2.5} times as slow ({0.146} ms in place of {0.059})", SP)
def _(frame: pd.DataFrame) -> Sequence[float]:
    one, three = (sp(frame, "kernel_integrate_pppp_ms", parts=parts) for parts in (1, 3))
    return one / three, one, three


SP_LONGER: dict[str, Sequence[Mapping[str, Any]]] = {
    "`bra_transform: each` costs {8} %": [{"bra_transform": "each"}],
    "`two_orders` takes {19} % longer and `every_order` {28} %": [
        {"boys": "two_orders"},
        {"boys": "every_order"},
    ],
    "`block_size` 128 costs {2} % and 256 {23} %": [{"block_size": 128}, {"block_size": 256}],
    "has no such rows, costs {4} %": [{"granularity": "thread"}],
}
for _text, _changes in SP_LONGER.items():

    def _sp_longer(frame: pd.DataFrame, changes: Sequence[Mapping[str, Any]] = _changes) -> Sequence[float]:
        return [(sp(frame, **change) / sp(frame) - 1) * 100 for change in changes]

    figure("eri_sp", _text, SP)(_sp_longer)


@figure("eri_sp", "a table of pairs saves {2} % (at `block_size` 128)", SP)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [(1 - sp(frame, block_size=128) / sp(frame, block_size=128, pair_table="none")) * 100]


@figure("eri_sp", "`split_heavy` 3 saves {16} % and `split` 3 with it {10} % more", SP)
def _(frame: pd.DataFrame) -> Sequence[float]:
    heavy, both = (sp(frame, split=split, split_heavy=3) / sp(frame) for split in (1, 3))
    return (1 - heavy) * 100, (heavy - both) * 100


@figure("eri_sp", "On (H2O)16 `split_heavy` 3 saves {2} %, and 3 and 9 cost {9} %", SP_LIBCINT)
def _(frame: pd.DataFrame) -> Sequence[float]:
    def took(words: str) -> float:
        some = frame[frame["workload"] == "water16"]
        for word in words.split(","):
            some = some[("," + some["configuration"] + ",").str.contains(f",{word},", regex=False)]
        (value,) = some["gpu_ms"]
        return float(value)

    table = [took(f"boys=table,split=1,split_heavy={heavy}") for heavy in (1, 3)]
    quotient = [
        took(f"boys=quotient,{teams}") for teams in ("split=1,split_heavy=1", "split=3,split_heavy=9")
    ]
    return (1 - table[1] / table[0]) * 100, (quotient[1] / quotient[0] - 1) * 100


@figure("eri_sp", "where the quotient saves {14} % with `split` 3 and {4} % without", SP)
def _(frame: pd.DataFrame) -> Sequence[float]:
    def of_ssss(**other: Any) -> float:
        return sp(frame, "kernel_integrate_ssss_ms", **other)

    teams = {"split": 3, "split_heavy": 9}
    return [
        (1 - of_ssss(boys="quotient", **teams) / of_ssss(**teams)) * 100,
        (1 - of_ssss(boys="quotient") / of_ssss()) * 100,
    ]


@figure("eri_sp", "Shared memory is level, and {18} % slower in (ss|ss)", SP)
def _(frame: pd.DataFrame) -> Sequence[float]:
    kernel = "kernel_integrate_ssss_ms"
    return [(sp(frame, kernel, boys="shared_table") / sp(frame, kernel) - 1) * 100]


SPLITS = {2: "eri-h200-subclasses.csv", 1: "eri-h200-subclasses-split1.csv"}
for _split, _text in {
    2: "| `split` 2 | {7.4e9} | {4.7e10} | {4.4e10} | {1.2e11} | {3.4e11} | {3.9e11} | {5.2e11} | {5.5e11} | {3.0e11} |",
    1: "| `split` 1 | {8.1e9} | {5.3e10} | {5.0e10} | {1.4e11} | {4.0e11} | {4.3e11} | {5.1e11} | {5.2e11} | {2.1e11} |",
}.items():

    def _subclasses(frame: pd.DataFrame) -> Sequence[float]:
        counts = (1, 9, 18, 36, 81, 162, 324, 648, 1296)
        return [row(frame, "components_per_s", components=count) for count in counts]

    figure("eri", _text, SPLITS[_split])(_subclasses)


@figure(
    "eri",
    "{5} of {15} are ({3} with `split` 1), the others lie between {55} % too short (6 components) and {34} % too long (216), "
    "and the sum is {19} % short",
    *SPLITS.values(),
)
def _(frame: pd.DataFrame, other: pd.DataFrame) -> Sequence[float]:
    off, off_1 = (f["modelled_ms"] / f["measured_ms"] - 1 for f in (frame, other))
    assert frame["components"][off.idxmin()] == 6 and frame["components"][off.idxmax()] == 216
    short = 1 - frame["modelled_ms"].sum() / frame["measured_ms"].sum()
    close = [(one.abs() < 0.1).sum() for one in (off, off_1)]
    return close[0], len(off), close[1], -100 * off.min(), 100 * off.max(), 100 * short


@figure(
    "eri", "{2.93e11} components/s are {35} % of the measured {1.50e13} multiply-adds a second",
    LIBCINT, "limits.json",
)  # fmt: skip
def _(frame: pd.DataFrame, limits: dict[str, float]) -> Sequence[float]:
    some = frame[(frame["workload"] == "water8") & ~frame["configuration"].str.contains("screening=schwarz")]
    rate, most = some["gpu_components_per_s"].max(), limits["fp64_fma_per_s"]
    return rate, 100 * 18 * rate / most, most


TRANSFER = "eri-h200-transfer.csv"
for _scheme, _text in {
    "scheme-2": "| 2, work-units | {40.8} MB | {2.39} ms | {3.70} ms | {0.65} ms | {6.75} ms |",
    "scheme-3": "| 3, components | {2,037} MB | {209} ms | {2.42} ms | {0.66} ms | {212} ms |",
    "scheme-4": "| 4 | {0.0436} MB | {0.03} ms | {1.60} ms | {0.70} ms | {2.32} ms |",
    "scheme-4-pairs": "| 4, and with pairs on the device | {0.0436} MB | {0.03} ms | {1.03} ms | {0.69} ms | {1.75} ms |",
}.items():

    def _sent(frame: pd.DataFrame, scheme: str = _scheme) -> Sequence[float]:
        columns = ("send_ms", "kernels_ms", "back_ms", "send_kernels_back_ms")
        sent = row(frame, "sent_bytes", scheme=scheme) / 1e6
        return [sent, *(row(frame, column, scheme=scheme) for column in columns)]

    figure("eri", _text, TRANSFER)(_sent)

# -- mummergpu --------------------------------------------------------------------------------------------

GENOMES, TRAFFIC = "mummergpu-h200.csv.xz", "mummergpu-h200-traffic.csv"
for _workload, _text in {
    "hsill": "| HSILL, 500,000 x 29 | {0.715} ms |", "ssuis": "| SSUIS, 1,000,000 x 36 | {1.43} ms |",
    "lmono": "| LMONO, 1,000,000 x 116 | {6.82} ms |", "cbrigg": "| CBRIGG, 500,000 x 612 | {23.0} ms |",
}.items():  # fmt: skip

    def _match(frame: pd.DataFrame, workload: str = _workload) -> Sequence[float]:
        return [frame[frame["workload"] == workload]["kernel_match_ms"].min()]

    figure("mummergpu", _text, GENOMES)(_match)


@figure("mummergpu", "with ten times its reads match takes {7.09} ms", "mummergpu-h200-hsill-x10.csv")
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [frame["kernel_match_ms"].min()]


for (_workload, _layouts), _text in {
    ("hsill", "merged, reordered"): "| HSILL | merged | {30.5} M, {42.9} G/s | {75} % | {23.2} M, {32.6} G/s | {85} % / {48} % |",
    ("hsill", "control"): "| | split | {54.1} M, {40.4} G/s | {74} % | {44.4} M, {33.1} G/s | {87} % / {49} % |",
    ("ssuis", "merged, reordered"): "| SSUIS | merged | {110.8} M, {77.2} G/s | {84} % | {47.5} M, {33.1} G/s | {87} % / {49} % |",
    ("ssuis", "control"): "| | split | {189.3} M, {61.9} G/s | {83} % | {106.3} M, {34.7} G/s | {91} % / {52} % |",
    ("lmono", "merged, reordered"): "| LMONO | merged | {398.1} M, {58.3} G/s | {80} % | {228.2} M, {33.4} G/s | {88} % / {50} % |",
    ("lmono", "control"): "| | split | {669.3} M, {50.5} G/s | {78} % | {448.1} M, {33.8} G/s | {89} % / {50} % |",
    ("cbrigg", "merged, construction"): "| CBRIGG | merged | {903.8} M, {37.9} G/s | {68} % | {685.8} M, {28.8} G/s | {76} % / {43} % |",
    ("cbrigg", "control"): "| | split | {1,559.4} M, {37.4} G/s | {71} % | {1,302.3} M, {31.2} G/s | {82} % / {46} % |",
}.items():  # fmt: skip

    def _fetches(
        frame: pd.DataFrame, limits: dict[str, float], workload: str = _workload, layouts: str = _layouts
    ) -> Sequence[float]:
        (one,) = frame[(frame["workload"] == workload) & (frame["layouts"] == layouts)].to_dict("records")
        seconds, fetches = one["match_ms"] / 1e3, one["dram_read_sectors"] / 2
        rate = fetches / seconds
        return [
            one["l2_requests"] / 1e6, one["l2_requests"] / seconds / 1e9, one["l2_busy_percent"], fetches / 1e6, rate / 1e9,
            100 * rate / limits["random_64_byte_fetches_per_s"], 100 * 64 * rate / limits["dram_read_bytes_per_s"],
        ]  # fmt: skip

    figure("mummergpu", _text, TRAFFIC, "limits.json")(_fetches)


@figure(
    "mummergpu",
    "Records of 64 bytes at random places, with nothing else to do, come at {38.1} G/s on this chip, and {67} G/s would be all",
    "limits.json",
)
def _(limits: dict[str, float]) -> Sequence[float]:
    return limits["random_64_byte_fetches_per_s"] / 1e9, limits["dram_read_bytes_per_s"] / 64e9


WHOLE = "mummergpu-h200-end-to-end.csv"


# whole commands
_COMMANDS = {
    "lmono": "| LMONO | {2.19} |  | {5.52} | {3.54} | **{0.68}** ({0.62} to {0.77}) | {3.2} x | {0.01} |",
    "ssuis": "| SSUIS | {2.59} |  |  | {2.93} | **{1.06}** ({1.06} to {1.06}) | {2.4} x | {0.69} |",
    "hsill": "| HSILL | {4.58} |  |  | {3.62} | **{1.08}** ({1.06} to {1.10}) | {4.2} x | {0.56} |",
    "cbrigg": "| CBRIGG | {9.02} | {2.86} | {5.19} | {2.65} | **{0.74}** ({0.66} to {1.21}) | {3.9} x | {0.00} |",
    "celeg": "| C. elegans, 1,000,000 x 150, l = 50 | {6.23} | {2.93} |  | {4.30} | **{0.84}** ({0.84} to {0.84}) | {3.5} x | {0.02} |",
}
_PARTS = {
    "lmono": "| LMONO | {0.35} | {0.08} | {0.06} | {0.07} | {0.03} | {0.09} | {0.67} | {0.68} |",
    "ssuis": "| SSUIS | {0.32} | {0.04} | {0.05} | {0.10} | {0.48} | {0.07} | {1.05} | {1.06} |",
    "hsill": "| HSILL | {0.34} | {0.12} | {0.06} | {0.13} | {0.40} | {0.05} | {1.10} | {1.08} |",
    "cbrigg": "| CBRIGG | {0.40} | {0.12} | {0.07} | {0.09} | {0.01} | {0.06} | {0.74} | {0.74} |",
    "celeg": "| C. elegans | {0.41} | {0.14} | {0.08} | {0.09} | {0.02} | {0.10} | {0.84} | {0.84} |",
}
# end of whole commands

_OURS = "autotune, warm cache"


def _last(frame: pd.DataFrame, workload: str) -> pd.DataFrame:
    """The rows of the last run that had this workload."""
    some = frame[frame["workload"] == workload]
    return some[some["run"] == some[some["tool"] == _OURS]["run"].max()]


def _of(frame: pd.DataFrame, workload: str, tool: str, column: str = "seconds_median") -> float:
    some = _last(frame, workload)
    return float(some[some["tool"] == tool][column].iloc[0])


for _workload, _text in _COMMANDS.items():

    def _whole(frame: pd.DataFrame, workload: str = _workload) -> Sequence[float]:
        some = _last(frame, workload)
        some = some[some["seconds_median"].notna()]
        peers = [tool for tool in ("MUMmer4", "copMEM2", "E-MEM") if tool in set(some["tool"])]
        theirs = [_of(frame, workload, tool) for tool in peers]
        ours = [_of(frame, workload, _OURS, f"seconds_{which}") for which in ("median", "min", "max")]
        cold, copy = (_of(frame, workload, tool) for tool in ("autotune, cold cache", "copy of the output"))
        return [*theirs, cold, *ours, min(theirs) / ours[0], copy]

    figure("mummergpu", _text, WHOLE)(_whole)

for _workload, _text in _PARTS.items():

    def _seconds(frame: pd.DataFrame, workload: str = _workload) -> Sequence[float]:
        of_run = _last(frame, workload)
        of_run = of_run[of_run["tool"] == _OURS]
        parts = [float(part.split()[1]) for part in of_run["phases"].iloc[0].partition(";")[0].split(", ")]
        return [*parts, sum(parts), _of(frame, workload, _OURS)]

    figure("mummergpu", _text, WHOLE)(_seconds)


@figure("mummergpu", "So sixteen cores take {2.4} to {4.2} times as long as the command on the GPU", WHOLE)
def _(frame: pd.DataFrame) -> Sequence[float]:
    times = []
    for workload in _COMMANDS:
        some = _last(frame, workload)
        some = some[some["threads"] == 16]
        theirs = some[some["tool"].isin(["MUMmer4", "copMEM2", "E-MEM"])]["seconds_median"].min()
        times.append(theirs / _of(frame, workload, _OURS))
    return min(times), max(times)


@figure(
    "mummergpu",
    "{2.03} and {3.06} s beside MUMmer4's {1.96}: `start` alone was {1.89} s in one of them",
    WHOLE,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    some = frame[(frame["workload"] == "lmono") & (frame["run"] == 9)].set_index("tool")
    ours = some.loc[_OURS]
    start = float(ours["phases"].split(",")[0].split()[1])
    return ours["seconds_min"], ours["seconds_max"], some.loc["MUMmer4", "seconds_median"], start


@figure("mummergpu", "but that of MUMmer {4.0}.1 on HSILL, which has as many and not all the same", WHOLE)
def _(frame: pd.DataFrame) -> Sequence[float]:
    # A row says whether it agrees with the first of its run; here they are compared with each other.
    sums = frame.dropna(subset=["checksum"]).groupby("workload")["checksum"].agg(set)
    assert {workload for workload, found in sums.items() if len(found) > 1} <= {"hsill"}
    hsill = frame[frame["workload"] == "hsill"]
    (right,) = set(hsill[hsill["tool"] == "mummer 3"]["checksum"].dropna())
    odd = hsill[hsill["checksum"].notna() & (hsill["checksum"] != right)]
    assert set(odd["tool"]) - {"copy of the output"} == {"MUMmer4"} and "4.0.1" in set(odd["version"])
    assert hsill["matches"].dropna().nunique() == 1
    return [4.0]


@figure(
    "mummergpu",
    "takes {42.5} to {56.5} s for LMONO, {48.7} for SSUIS, {44.5} to {44.9} for HSILL, more than {40} for CBRIGG",
    WHOLE,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    alone = frame[frame["tool"] == "mummer 3"]
    seconds = alone.groupby("workload")["seconds_median"].agg(["min", "max"])
    stopped = alone[alone["workload"] == "cbrigg"]["problem"].str.extract(r"not done in (\d+) s")[0].iloc[0]
    return [*seconds.loc["lmono"], seconds.loc["ssuis", "max"], *seconds.loc["hsill"], float(stopped)]


LARGE = "mummergpu-h200-large.csv"


@figure("mummergpu", "{3,100,000,000} letters in {24} records", LARGE)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return frame["letters"].iloc[0], frame["records"].iloc[0]


@figure("mummergpu", "and {200,064} reads of 150 letters of it", LARGE)
def _(frame: pd.DataFrame) -> Sequence[float]:
    assert (frame["found"] == frame["reads"]).all()
    return [frame["reads"].iloc[0]]


@figure("mummergpu", "an empty compile cache, took {18.0} s", LARGE)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [frame["seconds"].iloc[0]]


@figure(
    "mummergpu",
    "which {5.5} were reading {3.1} GB of text, {4.7} the index in one page, {6.4} the search of {517,360} matches",
    LARGE,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    (row,) = frame.to_dict("records")
    parts = dict(part.split() for part in row["phases"].partition(";")[0].split(", "))
    seconds = [float(parts[name]) for name in ("reading", "index", "search")]
    return seconds[0], row["letters"] / 1e9, *seconds[1:], row["matches"]


@figure("mummergpu", "the host's memory held {6,179} MiB", LARGE)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [frame["host_mib"].iloc[0]]


INDEX = "mummergpu-h200-index.csv"
_REFERENCES = {
    "generated 4600000": "| generated, 4.6 Mbp | {14.4} | {14.7} | {11.4} | {297} |",
    "hs_GRCh37_chr20_60001-16060000.fa.gz": "| 16 Mbp of chr20 (HSILL) | {29.6} | {29.9} | {18.6} | {1,475} |",
    "generated 48000000": "| generated, 48 Mbp | {78.3} | | | {1,921} |",
}

for _reference, _text in _REFERENCES.items():

    def _made(frame: pd.DataFrame, reference: str = _reference) -> Sequence[float]:
        some = frame[frame["reference"] == reference]
        assert set(some["right"]) == {"yes"}
        return [*(some["seconds"] * 1e3), some["host_seconds"].iloc[0] * 1e3]

    figure("mummergpu", _text, INDEX)(_made)


@figure("mummergpu", "| `search=tree`, `emit=walk` | {109} | {81} |", INDEX)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return _bytes(frame, "tree")


@figure("mummergpu", "| `search=tree`, `emit=ranges` | {131} | {102} |", INDEX)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return _bytes(frame, "ranges")


def _bytes(frame: pd.DataFrame, kind: str) -> list[float]:
    row = frame[frame["reference"].str.startswith("hs_") & (frame["kind"] == kind)].iloc[0]
    return [row["peak"], row["kept"]]


BEYOND = "mummergpu-h200-beyond.csv.xz"


def _beyond(frame: pd.DataFrame, workload: str, search: str = "") -> pd.DataFrame:
    """Rows by what their kernels take, with ``print`` and, all that a single call takes, ``call``."""
    some = frame[(frame["workload"] == workload) & (frame["emit"] == "ranges")]
    some = some[some["search"] == search] if search else some
    printing = [name for name in some if str(name).startswith(("kernel_print", "kernel_scan"))]
    call = some["time_ms"] + some["transfer_ms"] + some["transform_ms"]
    return some.assign(print=some[printing].sum(axis=1), call=call).sort_values("time_ms")


@figure(
    "mummergpu",
    "On CBRIGG the whole of it takes {0.64} ms where the best layout of the tree takes {25.6}",
    BEYOND,
    GENOMES,
)
def _(frame: pd.DataFrame, paper: pd.DataFrame) -> Sequence[float]:
    return _beyond(frame, "cbrigg")["time_ms"].min(), paper[paper["workload"] == "cbrigg"]["median_ms"].min()


@figure("mummergpu", "LMONO's reads are searched in {1.07} ms, of which {0.23} are the table", BEYOND)
def _(frame: pd.DataFrame) -> Sequence[float]:
    best = _beyond(frame, "lmono").iloc[0]
    return best["time_ms"], best["kernel_match_ms"]


@figure("mummergpu", "are a matter of printing: {2.85} and {2.81} ms", BEYOND)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [_beyond(frame, workload).iloc[0]["print"] for workload in ("hsill", "ssuis")]


@figure("mummergpu", "most on HSILL ({144} ms for {970})", BEYOND)
def _(frame: pd.DataFrame) -> Sequence[float]:
    control = frame[(frame["workload"] == "hsill") & (frame["emit"] == "walk")].iloc[0]
    whole = control["time_ms"] + control["transfer_ms"] + control["transform_ms"]
    return _beyond(frame, "hsill")["call"].min(), whole


@figure(
    "mummergpu",
    "which takes {1.9} s more and saves {0.05} s of kernels (`mummergpu-h200-transform.csv.xz`)",
    "mummergpu-h200-transform.csv.xz",
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    some = frame[(frame["workload"] == "hsill") & (frame["state"] == "measured")]
    some = some.assign(whole=some["time_ms"] + some["transform_ms"] + some["transfer_ms"])
    moved, kept = some.sort_values("time_ms").iloc[0], some.sort_values("whole").iloc[0]
    return (moved["transform_ms"] - kept["transform_ms"]) / 1e3, (kept["time_ms"] - moved["time_ms"]) / 1e3


# -- reaction_diffusion -----------------------------------------------------------------------------------

EXPERIMENT, LARGE = "reaction_diffusion-h200-experiment.csv", "reaction_diffusion-h200-large.csv"


def _lattice(**wanted: Any) -> Callable[[pd.DataFrame], Sequence[float]]:
    """Milliseconds and updates a second of the only configuration with these values."""

    def values(frame: pd.DataFrame) -> Sequence[float]:
        for name, value in wanted.items():
            frame = frame[("," + frame["configuration"] + ",").str.contains(f",{name}={value},", regex=False)]
        ((milliseconds, rate),) = frame[["ms", "updates_per_second"]].itertuples(index=False)
        return milliseconds, rate

    return values


for _text, _wanted in {
    "| 384 threads x 9 rows x 4 columns in registers, separable, 12 steps, `neighbours` | {54.3} ms | {1.93e12} |": {
        "field_memory": "register_tile",
        "vector_width": 4,
        "strip": 9,
        "block_size": 384,
        "time_block": 12,
        "launch": "neighbours",
        "coefficient": "separable",
        "block_rows": 1024,
        "min_blocks": 1,
        "tiles_ahead": 0,
    },
    "| 384 threads x 9 rows, 12 steps, `neighbours`, `own` stored | {54.4} ms | {1.93e12} |": {
        "field_memory": "register_tile",
        "vector_width": 4,
        "strip": 9,
        "block_size": 384,
        "time_block": 12,
        "launch": "neighbours",
        "coefficient": "stored",
        "block_rows": 1024,
        "min_blocks": 1,
        "tiles_ahead": 0,
    },
    "| 384 threads x 10 rows, 16 steps, `neighbours` | {54.6} ms | {1.92e12} |": {
        "field_memory": "register_tile",
        "vector_width": 4,
        "strip": 10,
        "block_size": 384,
        "time_block": 16,
        "launch": "neighbours",
        "coefficient": "separable",
        "block_rows": 1024,
        "min_blocks": 1,
        "tiles_ahead": 0,
    },
    "| 512 threads x 6 rows, 8 steps, `neighbours` | {55.2} ms | {1.90e12} |": {
        "field_memory": "register_tile",
        "vector_width": 4,
        "strip": 6,
        "block_size": 512,
        "time_block": 8,
        "launch": "neighbours",
        "coefficient": "separable",
        "block_rows": 1024,
        "min_blocks": 1,
        "tiles_ahead": 0,
    },
    "| 384 threads x 8 rows, 8 steps, `neighbours` | {57.2} ms | {1.83e12} |": {
        "field_memory": "register_tile",
        "vector_width": 4,
        "strip": 8,
        "block_size": 384,
        "time_block": 8,
        "launch": "neighbours",
        "coefficient": "separable",
        "block_rows": 1024,
        "min_blocks": 1,
        "tiles_ahead": 0,
    },
    "| 256 threads x 16 rows, 16 steps, `neighbours` | {60.4} ms | {1.74e12} |": {
        "field_memory": "register_tile",
        "vector_width": 4,
        "strip": 16,
        "block_size": 256,
        "time_block": 16,
        "launch": "neighbours",
        "coefficient": "separable",
        "block_rows": 1024,
        "min_blocks": 1,
        "tiles_ahead": 0,
    },
    "| 512 threads x 8 rows, 16 steps, `neighbours` | {61.1} ms | {1.72e12} |": {
        "field_memory": "register_tile",
        "vector_width": 4,
        "strip": 8,
        "block_size": 512,
        "time_block": 16,
        "launch": "neighbours",
        "coefficient": "separable",
        "block_rows": 1024,
        "min_blocks": 1,
        "tiles_ahead": 0,
    },
    "| 640 threads x 6 rows, 16 steps, `neighbours` | {61.2} ms | {1.71e12} |": {
        "field_memory": "register_tile",
        "vector_width": 4,
        "strip": 6,
        "block_size": 640,
        "time_block": 16,
        "launch": "neighbours",
        "coefficient": "separable",
        "block_rows": 1024,
        "min_blocks": 1,
        "tiles_ahead": 0,
    },
    "| 384 threads x 10 rows, 16 steps, `persistent` | {61.6} ms | {1.70e12} |": {
        "field_memory": "register_tile",
        "vector_width": 4,
        "strip": 10,
        "block_size": 384,
        "time_block": 16,
        "launch": "persistent",
        "coefficient": "separable",
        "block_rows": 1024,
        "min_blocks": 1,
        "tiles_ahead": 0,
    },
    "| 384 threads x 9 rows, 12 steps, `persistent` | {62.3} ms | {1.68e12} |": {
        "field_memory": "register_tile",
        "vector_width": 4,
        "strip": 9,
        "block_size": 384,
        "time_block": 12,
        "launch": "persistent",
        "coefficient": "separable",
        "block_rows": 1024,
        "min_blocks": 1,
        "tiles_ahead": 0,
    },
    "| 384 threads x 10 rows, 16 steps, `graph` | {76.3} ms | {1.38e12} |": {
        "field_memory": "register_tile",
        "vector_width": 4,
        "strip": 10,
        "block_size": 384,
        "time_block": 16,
        "launch": "graph",
        "coefficient": "separable",
        "block_rows": 1024,
        "min_blocks": 1,
        "tiles_ahead": 0,
    },
    "| 640 threads x 6 rows, 16 steps, `graph` | {84.2} ms | {1.25e12} |": {
        "field_memory": "register_tile",
        "vector_width": 4,
        "strip": 6,
        "block_size": 640,
        "time_block": 16,
        "launch": "graph",
        "coefficient": "separable",
        "block_rows": 1024,
        "min_blocks": 1,
        "tiles_ahead": 0,
    },
    "| a graph of one-step launches (`readonly`, `clamp`, four columns a thread) | {347.3} ms | {3.02e11} |": {
        "field_memory": "readonly"
    },
}.items():
    figure("reaction_diffusion", _text, EXPERIMENT)(_lattice(**_wanted))
for _text, _wanted in {
    "| a wave, two blocks of 256 threads x 8 rows x 8 columns a multiprocessor, 20 steps, 1,640 rows a block | {23.7} ms | {2.71e12} |": {
        "field_memory": "register_wave",
        "vector_width": 8,
        "strip": 8,
        "block_size": 256,
        "time_block": 20,
        "launch": "graph",
        "coefficient": "separable",
        "block_rows": 1640,
        "min_blocks": 2,
        "tiles_ahead": 0,
    },
    "| a wave, two blocks of 256 threads x 8 rows x 8 columns a multiprocessor, 16 steps, 2,342 rows a block | {23.8} ms | {2.71e12} |": {
        "field_memory": "register_wave",
        "vector_width": 8,
        "strip": 8,
        "block_size": 256,
        "time_block": 16,
        "launch": "graph",
        "coefficient": "separable",
        "block_rows": 2342,
        "min_blocks": 2,
        "tiles_ahead": 0,
    },
    "| a wave, two blocks of 256 threads x 8 rows x 8 columns a multiprocessor, 12 steps, 1,490 rows a block | {24.9} ms | {2.59e12} |": {
        "field_memory": "register_wave",
        "vector_width": 8,
        "strip": 8,
        "block_size": 256,
        "time_block": 12,
        "launch": "graph",
        "coefficient": "separable",
        "block_rows": 1490,
        "min_blocks": 2,
        "tiles_ahead": 0,
    },
    "| a wave, two blocks of 256 threads x 16 rows x 4 columns a multiprocessor, 12 steps, 3,280 rows a block | {25.1} ms | {2.57e12} |": {
        "field_memory": "register_wave",
        "vector_width": 4,
        "strip": 16,
        "block_size": 256,
        "time_block": 12,
        "launch": "graph",
        "coefficient": "separable",
        "block_rows": 3280,
        "min_blocks": 2,
        "tiles_ahead": 0,
    },
    "| a wave, four blocks of 128 threads x 16 rows x 4 columns a multiprocessor, 12 steps, 1,640 rows a block | {26.3} ms | {2.45e12} |": {
        "field_memory": "register_wave",
        "vector_width": 4,
        "strip": 16,
        "block_size": 128,
        "time_block": 12,
        "launch": "graph",
        "coefficient": "separable",
        "block_rows": 1640,
        "min_blocks": 4,
        "tiles_ahead": 0,
    },
    "| a tile, two blocks of 256 threads x 20 rows x 4 columns a multiprocessor, 12 steps, graph | {29.5} ms | {2.18e12} |": {
        "field_memory": "register_tile",
        "vector_width": 4,
        "strip": 20,
        "block_size": 256,
        "time_block": 12,
        "launch": "graph",
        "coefficient": "separable",
        "block_rows": 1024,
        "min_blocks": 2,
        "tiles_ahead": 0,
    },
    "| a tile, two blocks of 256 threads x 16 rows x 4 columns a multiprocessor, 12 steps, graph | {30.5} ms | {2.11e12} |": {
        "field_memory": "register_tile",
        "vector_width": 4,
        "strip": 16,
        "block_size": 256,
        "time_block": 12,
        "launch": "graph",
        "coefficient": "separable",
        "block_rows": 1024,
        "min_blocks": 2,
        "tiles_ahead": 0,
    },
    "| a tile, two blocks of 256 threads x 16 rows x 4 columns a multiprocessor, 8 steps, graph | {31.8} ms | {2.03e12} |": {
        "field_memory": "register_tile",
        "vector_width": 4,
        "strip": 16,
        "block_size": 256,
        "time_block": 8,
        "launch": "graph",
        "coefficient": "separable",
        "block_rows": 1024,
        "min_blocks": 2,
        "tiles_ahead": 0,
    },
    "| a flow, 12 steps, three rows a level, strips of 256 rows | {33.8} ms | {1.91e12} |": {
        "field_memory": "register_flow",
        "vector_width": 4,
        "strip": 256,
        "block_size": 128,
        "time_block": 12,
        "launch": "graph",
        "coefficient": "separable",
        "block_rows": 1024,
        "min_blocks": 1,
        "tiles_ahead": 0,
    },
    "| a tile, a block of 512 threads x 8 rows a multiprocessor, 12 steps, persistent | {35.0} ms | {1.84e12} |": {
        "field_memory": "register_tile",
        "vector_width": 4,
        "strip": 8,
        "block_size": 512,
        "time_block": 12,
        "launch": "persistent",
        "coefficient": "separable",
        "block_rows": 1024,
        "min_blocks": 1,
        "tiles_ahead": 0,
    },
    "| 16 rows, 12 steps, one cooperative launch, tiles fetched ahead | {35.1} ms | {1.84e12} |": {
        "field_memory": "register_tile",
        "vector_width": 4,
        "strip": 16,
        "block_size": 256,
        "time_block": 12,
        "launch": "persistent",
        "coefficient": "separable",
        "block_rows": 1024,
        "min_blocks": 2,
        "tiles_ahead": 1,
    },
    "| a stream, 8 steps, strips of 256 rows, separable, `min_blocks` 1 | {51.7} ms | {1.25e12} |": {
        "field_memory": "register_stream",
        "vector_width": 4,
        "strip": 256,
        "block_size": 128,
        "time_block": 8,
        "launch": "graph",
        "coefficient": "separable",
        "block_rows": 1024,
        "min_blocks": 1,
        "tiles_ahead": 0,
    },
    "| a graph of one-step launches, as above | {196.1} ms | {3.29e11} |": {"field_memory": "readonly"},
}.items():
    figure("reaction_diffusion", _text, LARGE)(_lattice(**_wanted))


@figure(
    "reaction_diffusion",
    "through CuPy {1.88e11}, PyTorch's eager operations {1.42e10}, CuPy's array operations {5.59e9}",
    "reaction_diffusion-h200-peers.csv",
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return list(frame["updates_per_second"])


for _text, _row in {
    "strips of 256) | 16,384 x 16,384, 240 | {1.57e12} |": 0,
    "| the same | 8,192 x 8,192, 240 | {1.39e12} |": 1,
    "one for each multiprocessor) | 10,472 x 10,472, 243 | {1.11e12} |": 3,
    "| the same with 128 threads | 10,472 x 10,472, 243 | {1.00e12} |": 2,
}.items():

    def _stencils(frame: pd.DataFrame, index: int = _row) -> Sequence[float]:
        return [frame["updates_per_second"].iloc[index]]

    figure("reaction_diffusion", _text, "reaction_diffusion-h200-stencils.csv")(_stencils)


# the sweeps of tiles and of an outline
for _workload, _text in {
    "experiment": "{0.252} ms ({1.66e12} updates/s) by 384 threads x 9 rows, 12 steps, `neighbours`; the next is {0.254} ms (384 threads x 10 rows, 16 steps, `neighbours`), the control {2.91} ms",
    "cell": "{0.695} ms ({3.77e11} updates/s) by 256 threads x 4 rows, 4 steps, `neighbours`; the next is {0.822} ms (512 threads x 4 rows, 12 steps, `neighbours`), the control {2.85} ms",
}.items():

    def _swept(frame: pd.DataFrame, workload: str = _workload) -> Sequence[float]:
        some = frame[frame["workload"] == workload].sort_values("time_ms")
        best, after = some.iloc[0], some.iloc[1]
        control = some[some["preset"] == "control"]["time_ms"].iloc[0]
        return best["time_ms"], best["operations_per_s"], after["time_ms"], control

    figure("reaction_diffusion", _text, "reaction_diffusion-h200-tiles.csv.xz")(_swept)


TUNED = "reaction_diffusion-h200.csv.xz"


@figure(
    "reaction_diffusion",
    "| `fast` | 48 of 48 | {0.352} ms, {1.19e12} updates/s: 640 threads x 6 rows, 16 steps, graph | {0.377} ms",
    TUNED,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    some = frame[frame["workload"] == "experiment"].sort_values("time_ms")
    return some["time_ms"].iloc[0], some["operations_per_s"].iloc[0], some["time_ms"].iloc[1]


@figure("reaction_diffusion", "| `textbook` | {44} of 44 | {1.44} ms, {2.91e11}:", TUNED)
def _(frame: pd.DataFrame) -> Sequence[float]:
    some = frame[(frame["workload"] == "experiment") & (frame["time_block"] == 1)].sort_values("time_ms")
    return len(some), some["time_ms"].iloc[0], some["operations_per_s"].iloc[0]


@figure("reaction_diffusion", "| `cell` | {63} of {66} | {0.911} ms, {2.88e11}:", TUNED)
def _(frame: pd.DataFrame) -> Sequence[float]:
    some = frame[frame["workload"] == "cell"].sort_values("time_ms")
    return some["time_ms"].count(), len(some), some["time_ms"].iloc[0], some["operations_per_s"].iloc[0]


@figure(
    "reaction_diffusion",
    "{40} of the 44 configurations ran before the time was over",
    "reaction_diffusion-h200-textbook.csv",
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [len(frame)]


# -- several-gpus, run-time -------------------------------------------------------------------------------

SPREAD = ("coulomb-h200-x2-achbp-384.csv", "coulomb-h200-x2-mache-384.csv", "eri-h200-x2.csv")


@figure(
    "several-gpus",
    "by `automatic`, two H200s reached {0.994} and {0.985} of twice one on [potential maps of 384 "
    "slices](coulomb.md#measured), and {0.957} on [integrals of (H2O)27](eri.md), a run of {28} ms, where `contiguous` "
    "reaches {0.981}",
    *SPREAD,
)
def _(*frames: pd.DataFrame) -> Sequence[float]:
    def two(frame: pd.DataFrame, allocation: str, column: str) -> float:
        return row(frame, column, devices=2, worker="all", allocation=allocation, redone=0)

    shares = [two(frame, "auto", "efficiency") for frame in frames]
    return [*shares, 1e3 * two(frames[2], "auto", "elapsed_s"), two(frames[2], "contiguous", "efficiency")]


# J and K on two devices by five programs
TILES = "eri-h200-x2-tiles.csv"
ALLOCATIONS = ("automatic", "contiguous", "dynamic")
for _session, _text in (
    (1, "| 1 | {16.3} ms | {8.41} ms | {0.968} | {8.41} ms | {0.967} | {8.56} ms | {0.951} |"),
    (2, "| 2 | {16.1} ms | {8.28} ms | {0.975} | {8.25} ms | {0.978} | {8.38} ms | {0.964} |"),
    (3, "| 3 | {16.4} ms | {8.30} ms | {0.990} | {8.29} ms | {0.990} | {8.42} ms | {0.976} |"),
    (4, "| 4 | {16.2} ms | {8.27} ms | {0.980} | {8.30} ms | {0.976} | {8.40} ms | {0.964} |"),
    (5, "| 5 | {16.1} ms | {8.27} ms | {0.975} | {8.24} ms | {0.979} | {8.39} ms | {0.962} |"),
):

    def _five(frame: pd.DataFrame, session: int = _session) -> Sequence[float]:
        some = frame[(frame["session"] == session) & (frame["worker"] == "all") & (frame["redone"] == 0)]
        two = [
            scale * row(some, column, devices=2, allocation=allocation)
            for allocation in ALLOCATIONS
            for scale, column in ((1e3, "elapsed_s"), (1, "efficiency"))
        ]
        return [1e3 * some[some["devices"] == 1]["elapsed_s"].min(), *two]

    figure("several-gpus", _text, TILES)(_five)


@figure(
    "several-gpus",
    "Besides computing a run takes {0.35} ms on one device and {0.32} ms on two (medians)",
    TILES,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    some = frame[(frame["worker"] == "all") & (frame["allocation"] == "contiguous") & (frame["redone"] == 0)]
    besides = 1e3 * (some["elapsed_s"] - some["computing_s"] / some["devices"])
    return [float(besides[some["devices"] == n].median()) for n in (1, 2)]


@figure(
    "several-gpus",
    "so that the two compute for {0.948} to {0.967} of a run with `contiguous`",
    TILES,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    some = frame[(frame["worker"] == "all") & (frame["redone"] == 0) & (frame["devices"] == 2)]
    busy = some[some["allocation"] == "contiguous"]["balance"]
    return [float(busy.min()), float(busy.max())]


@figure(
    "several-gpus",
    "Until the caller has both matrices, with the report, `contiguous` reaches {0.960} to {0.987}",
    TILES,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    some = frame[(frame["worker"] == "all") & (frame["redone"] == 0)]
    alone = some[some["devices"] == 1].groupby("session")["call_s"].min()
    two = some[(some["devices"] == 2) & (some["allocation"] == "contiguous")].set_index("session")["call_s"]
    found = alone / (2 * two)
    return [float(found.min()), float(found.max())]


@figure("several-gpus", "It was {0.86} ms on two devices (`eri-h200-x2.csv`) until", SPREAD[2])
def _(frame: pd.DataFrame) -> Sequence[float]:
    there = {"devices": 2, "allocation": "contiguous", "worker": "all", "redone": 0}
    return [1e3 * (row(frame, "elapsed_s", **there) - row(frame, "computing_s", **there) / 2)]


def _energy(frame: pd.DataFrame, family: str, role: str, column: str) -> float:
    return row(frame, column, family=family, role=role, run="all")


def _energy_row(family: str, text: str, *scales: float) -> None:
    """A line of the table: of the tuned one, then of the control, then ratios."""

    @figure("measurement", text, "energy-h200.csv")
    def _(frame: pd.DataFrame) -> Sequence[float]:
        columns = [
            *(("tuned", name) for name in ("time_ms", "energy_j", "energy_spread", "power_w")),
            *(("control", name) for name in ("energy_j", "energy_spread", "power_w", "time_over_tuned", "energy_over_tuned")),
        ]  # fmt: skip
        return [scale * _energy(frame, family, *one) for scale, one in zip(scales, columns, strict=True)]


_energy_row(
    "allpairs",
    "| allpairs `primer` | {5.82} µs | {331} µJ ± {21.0} % | {162} W | {10.0} mJ ± {5.3} % | {283} W | {6.87} | {30.3} |",
    1e3, 1e6, 100, 1, 1e3, 100, 1, 1, 1,
)  # fmt: skip
_energy_row(
    "reaction_diffusion",
    "| reaction_diffusion `cell` | {924} µs | {186} mJ ± {8.4} % | {201} W | {893} mJ ± {2.5} % | {312} W | {3.09} | {4.80} |",
    1e3, 1e3, 100, 1, 1e3, 100, 1, 1, 1,
)  # fmt: skip
_energy_row(
    "coulomb",
    "| coulomb `achbp` | {5.23} ms | {2.12} J ± {0.8} % | {404} W | {36.1} J ± {0.2} % | {154} W | {44.9} | {17.0} |",
    1, 1, 100, 1, 1, 100, 1, 1, 1,
)  # fmt: skip


@figure(
    "measurement",
    "the fastest is also the one with the least energy, {281} µJ; control takes {35.8} times as much",
    "allpairs-h200-energy.csv",
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    least = frame["energy_j"].min()
    assert frame.loc[frame["energy_j"].idxmin(), "rank"] == 1
    control = frame[frame["preset"].str.contains("control", na=False)]["energy_j"].iloc[0]
    return [1e6 * least, control / least]


RANKS = ("achbp-384", "sent-achbp-384", "mache-384")


@figure(
    "several-gpus",
    "By ranks, two H200s of one host reach {0.986} of twice one on `achbp-384`, a run of {0.37} s (two processes of one "
    "program: {0.994}), {0.960} where a rank's results are sent as from another host, and {0.935} on `mache-384`, a run of {58} ms",
    *(f"coulomb-h200-ranks-{name}.csv" for name in RANKS),
    SPREAD[0],
)
def _(*frames: pd.DataFrame) -> Sequence[float]:
    def two(frame: pd.DataFrame, column: str, allocation: str = "automatic") -> float:
        return row(frame, column, devices=2, worker="all", allocation=allocation, redone=0)

    near, far, short, processes = frames
    return [
        two(near, "efficiency"), two(near, "elapsed_s"), two(processes, "efficiency", "auto"), two(far, "efficiency"),
        two(short, "efficiency"), 1e3 * two(short, "elapsed_s"),
    ]  # fmt: skip


@figure(
    "run-time",
    "the driver and its context take {223} ms, which any program on the GPU pays once, `load` takes {15} ms and the first call "
    "{54} ms",
    "dispatch-overhead-h200.csv",
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [row(frame, "median", what=what) for what in ("driver and context", "load", "first call")]


@figure("eri", "the one of 18 components takes {19} % of all time", "eri-h200-subclasses.csv")
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [100 * row(frame, "share_of_all", components=18)]


def _reached_by(frame: pd.DataFrame, devices: int, allocation: str) -> float:
    """Mean over longest of the measured times when the work is divided by ``allocation``."""
    name = "eri_cost_model"
    spec = spec_from_file_location(name, Path(__file__).parents[2] / "kernels" / "eri" / "cost_model.py")
    assert spec and spec.loader
    costs = sys.modules.get(name) or module_from_spec(spec)
    if name not in sys.modules:
        sys.modules[name] = costs
        spec.loader.exec_module(costs)
    shares = [costs.Share(c, u) for c, u in zip(frame["components"], frame["work_units"], strict=True)]
    model = costs.calibrated(list(zip(shares, frame["measured_ms"], strict=True)))
    of_one = dict(zip(frame["components"], frame["measured_ms"] / frame["work_units"], strict=True))
    if allocation == "equal":
        given = costs.equal_counts(shares, devices)
    elif allocation == "pieces":
        given = costs.chunked(shares, devices, model)
    else:
        given = costs.whole_subclasses(shares, devices, model)
    return float(costs.efficiency([sum(of_one[s.components] * s.units for s in gpu) for gpu in given]))


for _devices, _text in {
    2: "| 2 | {0.891} | {0.961} | 0.999 | {0.991} |", 4: "| 4 | {0.732} | {0.788} | 0.993 | {0.986} |",
    8: "| 8 | {0.604} | {0.644} | 0.644 | {0.967} |",
}.items():  # fmt: skip

    def _plans(frame: pd.DataFrame, devices: int = _devices) -> Sequence[float]:
        return [_reached_by(frame, devices, allocation) for allocation in ("equal", "whole", "pieces")]

    figure("eri", _text, "eri-h200-subclasses.csv")(_plans)

# -- several devices --------------------------------------------------------------------------------------

for _page, _file, _rows in (
    ("coulomb", SPREAD[0], [
        (1, "auto", "| 1 | `automatic` | {96} | {739.2} ms | {1.000} | {1.040} |"),
        (1, "contiguous", "| 1 | `contiguous` | {96} | {739.3} ms | {1.000} | {1.040} |"),
        (1, "cyclic", "| 1 | `cyclic` | {1} | {1300.0} ms | {0.569} | {1.003} |"),
        (2, "auto", "| 2 | `automatic` | {48} | {371.9} ms | {0.994} | {1.034} |"),
        (2, "contiguous", "| 2 | `contiguous` | {96} | {371.6} ms | {0.995} | {1.035} |"),
        (2, "cyclic", "| 2 | `cyclic` | {1} | {650.9} ms | {0.568} | {1.005} |"),
    ]),
    ("coulomb", SPREAD[1], [
        (1, "auto", "| 1 | `automatic` | {32} | {108.2} ms | {1.000} | {1.040} |"),
        (1, "contiguous", "| 1 | `contiguous` | {96} | {110.8} ms | {0.977} | {1.041} |"),
        (1, "cyclic", "| 1 | `cyclic` | {1} | {161.5} ms | {0.670} | {1.013} |"),
        (2, "auto", "| 2 | `automatic` | {16} | {54.9} ms | {0.985} | {1.031} |"),
        (2, "contiguous", "| 2 | `contiguous` | {96} | {56.0} ms | {0.967} | {1.037} |"),
        (2, "cyclic", "| 2 | `cyclic` | {1} | {81.3} ms | {0.665} | {1.027} |"),
    ]),
    ("eri", SPREAD[2], [
        (1, "auto", "| 1 | `automatic` | {54.0} ms | {0.999} | {1.038} |"),
        (1, "whole", "| 1 | `whole` | {54.1} ms | {0.997} | {1.036} |"),
        (1, "balanced", "| 1 | `balanced` | {54.2} ms | {0.995} | {1.034} |"),
        (1, "contiguous", "| 1 | `contiguous` | {54.1} ms | {0.996} | {1.035} |"),
        (1, "dynamic", "| 1 | `dynamic` | {53.9} ms | {1.000} | {1.039} |"),
        (2, "auto", "| 2 | `automatic` | {28.2} ms | {0.957} | {0.992} |"),
        (2, "whole", "| 2 | `whole` | {27.5} ms | {0.980} | {1.011} |"),
        (2, "balanced", "| 2 | `balanced` | {28.1} ms | {0.961} | {0.995} |"),
        (2, "contiguous", "| 2 | `contiguous` | {27.5} ms | {0.981} | {1.015} |"),
        (2, "dynamic", "| 2 | `dynamic` | {27.5} ms | {0.979} | {1.016} |"),
    ]),
):  # fmt: skip
    for _devices, _allocation, _text in _rows:

        def _run(
            frame: pd.DataFrame, devices: int = _devices, allocation: str = _allocation, text: str = _text
        ) -> Sequence[float]:
            some = frame[(frame["devices"] == devices) & (frame["worker"] == "all") & (frame["redone"] == 0)]
            (one,) = some[some["allocation"] == allocation].to_dict("records")
            told = [1e3 * one["elapsed_s"], one["efficiency"], one["predicted_over_measured"]]
            return [one["batch"], *told] if text.count("{") == 4 else told

        figure(_page, _text, _file)(_run)


def _texture(frame: pd.DataFrame, workload: str, **wanted: Any) -> float:
    """How many times as long a step through a texture takes as one from global memory."""
    some = {"workload": workload, "time_block": 1, **wanted}
    return best(frame, field_memory="texture", **some) / best(frame, field_memory="global", **some)


for _text, _launch, _boundaries in (
    ("| graph, clamp | {0.998} | | {2.74} |", "graph", ["clamp"]),
    ("| graph, branch | {1.14} | | {2.68} |", "graph", ["branch"]),
    ("| graph, mask | {1.15} | | {2.57} |", "graph", ["mask"]),
    ("| each, clamp | {0.996} | | {2.38} |", "each", ["clamp"]),
    ("| each, branch; mask | {1.13}; {1.13} | | {2.35}; {2.27} |", "each", ["branch", "mask"]),
):

    def _walls(
        frame: pd.DataFrame, launch: str = _launch, boundaries: Sequence[str] = tuple(_boundaries)
    ) -> Sequence[float]:
        return [
            _texture(frame, "experiment", launch=launch, boundary=boundary, vector_width=width)
            for width in (1, 4)
            for boundary in boundaries
        ]

    figure("reaction_diffusion", _text, TUNED)(_walls)

for _strip, _text in {
    1: "`strip` 1 | {1.12} | {1.35} | {1.75} |",
    4: "`strip` 4 | {1.25} | {1.30} | {1.56} |",
}.items():

    def _strips(frame: pd.DataFrame, strip: int = _strip) -> Sequence[float]:
        return [
            _texture(frame, "cell", launch="graph", boundary="mask", strip=strip, vector_width=width)
            for width in (1, 2, 4)
        ]

    figure("reaction_diffusion", _text, TUNED)(_strips)


@figure("coulomb", "- {27} of the {68} are at 3.7·10¹² or more", MAP)
def _(frame: pd.DataFrame) -> Sequence[float]:
    some = frame[~frame["preset"].fillna("").isin([*PRESETS])]
    return (some["operations_per_s"] >= 3.7e12).sum(), len(some)


@figure(
    "proof",
    "took {7.5} s with all of this and {6.4} s before it (2026-11-22, `benchmarks/results/proof-cost-h200.csv`): {17} % more",
    "proof-cost-h200.csv",
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    walls = frame[frame["run"] != "warm"].groupby("tree")["wall_s"].median()
    return walls["after"], walls["before"], 100 * (walls["after"] / walls["before"] - 1)


@figure("proof", "called no configuration wrong in all {80}", "proof-repeated.csv")
def _(frame: pd.DataFrame) -> Sequence[float]:
    return (len(frame[frame["not_measured"] == 0]),)


@figure(
    "proof",
    "128 configurations took {7.25} s with all of this and {6.85} s before it. A sweep of presets alone (`--preset ladder`), "
    "which are verified in full however slow they are, took {2.1} s and {1.4} s",
    "proof-cost-cpu.csv",
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    walls = frame.groupby(["selection", "tree"])["wall_s"].median()
    return [walls[s, t] for s in ("block_size=128,memory=global", "ladder") for t in ("after", "before")]


@figure("proof", "of {2,674} configurations {2,673} were measured", "proof-families-h200.csv")
def _(frame: pd.DataFrame) -> Sequence[float]:
    return frame["tried"].sum(), frame["measured"].sum()


# -- adopted kernels ---------------------------------------------------------------------------------------

ADOPTED = "adopted-h200.csv"


@figure(
    "adopted",
    "{23} of {24} are at most 3 % slower than they were; bodyForce of nbody-orig.cu ({19} %) is not",
    ADOPTED,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    ratios = frame.set_index("kernel")["control_over_original"]
    slower = 100 * (ratios["mini-nbody: bodyForce (nbody-orig.cu)"] - 1)
    return float((ratios <= 1.03).sum()), float(len(ratios)), float(slower)


# -- whole trials ------------------------------------------------------------------------------------------

MDBENCH, XSBENCH, HASHGRID = (
    "adopted-mdbench-h200.csv.xz",
    "adopted-xsbench-h200.csv",
    "adopted-hashgrid-h200.csv.xz",
)


def _theirs(
    frame: pd.DataFrame, problem: str, run: int, variant: str = "", column: str = "kernel_ms"
) -> float:
    """The shortest time of the authors' variants whose name has ``variant`` in it."""
    some = frame[(frame["problem"] == problem) & (frame["run"] == run) & (frame["whose"] == "theirs")]
    return float(some[some["variant"].str.contains(variant, regex=True)][column].min())


def _ours(frame: pd.DataFrame, problem: str, run: int, role: str = "", configuration: str = "") -> float:
    """The shortest time of our configurations of that role, whose name has ``configuration`` in it."""
    some = frame[(frame["problem"] == problem) & (frame["run"] == run) & (frame["whose"] == "ours")]
    named = some["configuration"].str.contains(configuration, regex=True)
    return float(some[some["role"].fillna("").str.contains(role) & named]["kernel_ms"].min())


def _tried(frame: pd.DataFrame, problem: str, run: int) -> float:
    return float(((frame["problem"] == problem) & (frame["run"] == run) & (frame["whose"] == "ours")).sum())


def _beside(frame: pd.DataFrame, problem: str, run: int) -> Sequence[float]:
    """Theirs, control and winner in microseconds, and how many times as fast as theirs the winner is."""
    theirs, winner = _theirs(frame, problem, run), _ours(frame, problem, run, "winner")
    return theirs * 1e3, _ours(frame, problem, run, "control") * 1e3, winner * 1e3, theirs / winner


@figure("adopted-trials", "| default box | {67.6} µs | {72.3} µs | {62.9} µs | {1.08} |", MDBENCH)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return _beside(frame, "lattice", 3)


@figure(
    "adopted-trials",
    "| default box, one type of atom | {60.5} µs | {66.3} µs | {54.9} µs | {1.10} |",
    MDBENCH,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return _beside(frame, "one", 3)


@figure(
    "adopted-trials",
    "| default box, single precision | {56.3} µs | {62.0} µs | {40.0} µs | {1.41} |",
    MDBENCH,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return _beside(frame, "single", 3)


@figure("adopted-trials", "| larger box | {218} µs | {266} µs | {203} µs | {1.07} |", MDBENCH)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return _beside(frame, "big", 3)


@figure(
    "adopted-trials",
    "| larger box, atoms at random | {218} µs, sorted by them | {708} µs | {205} µs | {1.06} |",
    MDBENCH,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return _beside(frame, "shuffled", 3)


@figure(
    "adopted-trials",
    "**SoA is what wins among theirs** ({67.6} µs, AoS {70.8} µs), until atoms lie at random: then it is AoS ({635} µs against {1006} µs), and SoA again once they are sorted.",
    MDBENCH,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return (
        _theirs(frame, "lattice", 3, "SOA") * 1e3,
        _theirs(frame, "lattice", 3, "AOS") * 1e3,
        _theirs(frame, "shuffled", 3, "^AOS$") * 1e3,
        _theirs(frame, "shuffled", 3, "^SOA$") * 1e3,
    )


@figure(
    "adopted-trials",
    "default box {66.6} µs against {67.7} µs of theirs, one type {63.0} against {60.4}, a loss.",
    MDBENCH,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return (
        _ours(frame, "lattice", 2, "winner") * 1e3,
        _theirs(frame, "lattice", 2) * 1e3,
        _ours(frame, "one", 2, "winner") * 1e3,
        _theirs(frame, "one", 2) * 1e3,
    )


@figure(
    "adopted-trials",
    "{72.3} µs against {70.9} on the default box and {266} against {230} on the larger one",
    MDBENCH,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return (
        _ours(frame, "lattice", 3, "control") * 1e3,
        _theirs(frame, "lattice", 3, "^AOS$") * 1e3,
        _ours(frame, "big", 3, "control") * 1e3,
        _theirs(frame, "big", 3, "^AOS$") * 1e3,
    )


@figure(
    "adopted-trials",
    "| theirs, lookups as they come: best of variants 0 to 3 and 5 | {11.2} ms | {45.9} ms |",
    XSBENCH,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return (
        _theirs(frame, "small", 2, "-k [01235]"),
        _theirs(frame, "large", 2, "-k [01235]"),
    )


@figure(
    "adopted-trials", "| theirs, sorted by material and energy: variant 6 | {2.46} ms | {7.64} ms |", XSBENCH
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return (
        _theirs(frame, "small", 2, "-k 6"),
        _theirs(frame, "large", 2, "-k 6"),
    )


@figure("adopted-trials", "| ours, lookups as they come | {9.03} ms | not swept |", XSBENCH)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return (_ours(frame, "small", 2, "winner", "order=given"),)


@figure("adopted-trials", "| ours, sorted by material and energy | {1.79} ms | {6.10} ms |", XSBENCH)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return (
        _ours(frame, "small", 2, "winner", "order=material_energy"),
        _ours(frame, "large", 2, "winner"),
    )


@figure("adopted-trials", "| theirs / ours, as they come | {1.24} | |", XSBENCH)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return (_theirs(frame, "small", 2, "-k [01235]") / _ours(frame, "small", 2, "winner", "order=given"),)


@figure("adopted-trials", "| theirs / ours, sorted | {1.37} | {1.25} |", XSBENCH)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return (
        _theirs(frame, "small", 2, "-k 6") / _ours(frame, "small", 2, "winner", "order=material_energy"),
        _theirs(frame, "large", 2, "-k 6") / _ours(frame, "large", 2, "winner"),
    )


@figure(
    "adopted-trials",
    "More bins is an option of theirs, too, and in its best time: variant 6 takes {2.46} ms with them and {2.66} ms without on the small problem.",
    XSBENCH,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return (
        _theirs(frame, "small", 2, "hash -k 6 -h"),
        _theirs(frame, "small", 2, "hash -k 6$"),
    )


@figure(
    "adopted-trials",
    "**A first run** with fewer policies (no finer bins, registers as they come) gave {1.96} ms and {6.92} ms, against {2.50} ms and {7.68} ms of theirs.",
    XSBENCH,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return (
        _ours(frame, "small", 1, "winner"),
        _ours(frame, "large", 1, "winner"),
        _theirs(frame, "small", 1, "-k 6"),
        _theirs(frame, "large", 1, "-k 6"),
    )


@figure(
    "adopted-trials",
    "**Sorting is most of a sorted run**: variant 6 takes {9.38} ms as a whole, {2.55} ms of it the lookups, and the baseline {11.6} ms.",
    XSBENCH,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return (
        _theirs(frame, "small", 2, "unionized -k 6", "whole_ms"),
        _theirs(frame, "small", 2, "unionized -k 6"),
        _theirs(frame, "small", 2, "unionized -k 0", "whole_ms"),
    )


@figure(
    "adopted-trials",
    "| points anywhere, features in any layout | {1.13} ms | {1.06} ms | {0.88} ms | {1.28} |",
    HASHGRID,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return (
        _theirs(frame, "uniform", 2, "out SoA"),
        _ours(frame, "uniform", 2, "control"),
        _ours(frame, "uniform", 2, "winner"),
        _theirs(frame, "uniform", 2, "out SoA") / _ours(frame, "uniform", 2, "winner"),
    )


@figure(
    "adopted-trials",
    "| points along rays, features in any layout | {0.83} ms | {0.77} ms | {0.86} ms | {0.96} |",
    HASHGRID,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return (
        _theirs(frame, "rays", 1, "out SoA"),
        _ours(frame, "rays", 1, "control"),
        _ours(frame, "rays", 1, "winner"),
        _theirs(frame, "rays", 1, "out SoA") / _ours(frame, "rays", 1, "winner"),
    )


@figure(
    "adopted-trials",
    "| points anywhere, a point's features side by side | {1.44} ms | – | {1.74} ms | {0.83} |",
    HASHGRID,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return (
        _theirs(frame, "uniform", 1, "out AoS"),
        _ours(frame, "pointmajor", 1, "winner"),
        _theirs(frame, "uniform", 1, "out AoS") / _ours(frame, "pointmajor", 1, "winner"),
    )


@figure("adopted-trials", "Control alone, {1.06} ms, is {1.06} times as fast as theirs", HASHGRID)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return (
        _ours(frame, "uniform", 2, "control"),
        _theirs(frame, "uniform", 2, "out SoA") / _ours(frame, "uniform", 2, "control"),
    )


@figure(
    "adopted-trials",
    "A sweep of a quarter of the points with values of its own found {191} µs against control's {201}",
    HASHGRID,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return (
        _ours(frame, "rays, a quarter", 2, "winner") * 1e3,
        _ours(frame, "rays, a quarter", 2, "control") * 1e3,
    )


@figure(
    "adopted-trials",
    "Two kernels became a policy afterwards: on a quarter of the points {312} µs against {452} at once, and {273} with points in Morton order",
    HASHGRID,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return (
        _ours(frame, "pointmajor, a quarter", 2, "turned") * 1e3,
        _ours(frame, "pointmajor, a quarter", 2, "aos") * 1e3,
        _ours(frame, "pointmajor, a quarter", 2, "winner") * 1e3,
    )


# -- images -----------------------------------------------------------------------------------------------


def _fastest_bilateral(frame: pd.DataFrame, staging: str) -> list[float]:
    """Of plain memory, a linear texture, a texture with rows of its own."""
    some = frame[(frame["image_staging"] == staging) & (frame["state"] == "measured")]
    is_texture, is_line = some["image_memory"] == "texture", some["image_dims"] == "1d"
    return [float(some[which]["median_ms"].min()) for which in (~is_texture, is_texture & is_line, ~is_line)]


figure("how-to-images", "Of {226} configurations that were measured on an H200", "bilateral-h200.csv.xz")(
    lambda frame: [(frame["state"] == "measured").sum()]
)
figure(
    "how-to-images",
    "| each thread for itself | {0.369} ms | {0.375} ms | {0.482} ms |",
    "bilateral-h200.csv.xz",
)(lambda frame: _fastest_bilateral(frame, "none"))
figure(
    "how-to-images",
    "| a block once, into shared memory | {0.275} ms | {0.276} ms | {0.271} ms |",
    "bilateral-h200.csv.xz",
)(lambda frame: _fastest_bilateral(frame, "tile"))


@figure(
    "how-to-images",
    "({0.482} ms with it and {0.482} ms without, where it was tried)",
    "bilateral-h200.csv.xz",
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    some = frame[(frame["image_dims"] == "image") & (frame["image_staging"] == "none")]
    times = some.groupby("smooth_dims")["median_ms"].min()
    return times["image"], times["1d"]


# -- the page of all families and README's section ------------------------------------------------------------


def _everywhere(text: str, *files: str) -> Callable[[Callable[..., Sequence[float]]], None]:
    def declare(values: Callable[..., Sequence[float]]) -> None:
        for page in ("README", "performance"):
            figure(page, text, *files)(values)

    return declare


def _beside_ours(frame: pd.DataFrame, workload: str, tool: str) -> list[float]:
    """Seconds of a whole command here and of ``tool``, and how many times as long that is."""
    ours, other = _of(frame, workload, _OURS), _of(frame, workload, tool)
    return [ours, other, other / ours]


@_everywhere(
    "{0.380} ms | torch._int_mm with its epilogue {2.40} ms | {6.3} x | a bare store of the result {0.250} ms: {66} % |",
    PEERS,
    "allpairs-h200-limits.csv",
)
def _(frame: pd.DataFrame, limits: pd.DataFrame) -> Sequence[float]:
    ours, other = (
        row(frame, "median_ms", workload="wide", what=f)
        for f in ("autotune: tuned", "torch._int_mm rank-2 + epilogue")
    )
    stored = row(limits, "ms", what="bytes stored")
    return [ours, other, other / ours, stored, 100 * stored / ours]


@_everywhere("CBRIGG | {0.74} s | copMEM2, 16 cores {2.86} s | {3.9} x |", WHOLE)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return _beside_ours(frame, "cbrigg", "copMEM2")


@figure(
    "performance",
    "On LMONO it is {3.2} times as fast as MUMmer4 ({0.68} and {2.19} s), on SSUIS {2.4},",
    WHOLE,
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    ours, other, times = _beside_ours(frame, "lmono", "MUMmer4")
    return [times, ours, other, _beside_ours(frame, "ssuis", "MUMmer4")[2]]


@figure("performance", "on C. elegans {3.5} times as fast as copMEM2", WHOLE)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return [_beside_ours(frame, "celeg", "copMEM2")[2]]


@_everywhere(
    "HSILL | {1.08} s | MUMmer4, 16 cores {4.58} s | {4.2} x | a copy of the output {0.56} s: {52} % |", WHOLE
)
def _(frame: pd.DataFrame) -> Sequence[float]:
    ours, other, times = _beside_ours(frame, "hsill", "MUMmer4")
    copied = _of(frame, "hsill", "copy of the output")
    return [ours, other, times, copied, 100 * copied / ours]


@_everywhere(
    "{5.05e12}/s | a CUDA C++ kernel as one writes it {1.97e12}/s | {2.6} x | roots by their unit alone {4.14e12}/s: {122} % |",
    "coulomb-h200-peers.csv", "limits.json",
)  # fmt: skip
def _(frame: pd.DataFrame, limits: dict[str, float]) -> Sequence[float]:
    ours, other = (row(frame, "evaluations_per_s", what=what) for what in ("autotune", "cupy"))
    return [ours, other, ours / other, limits["mufu_per_s"], 100 * ours / limits["mufu_per_s"]]


@_everywhere(
    "{77} ms | coulomb's rate above, computed, {39.7} s | {514} x |",
    "coulomb_map-h200-million.csv",
    "coulomb-h200-peers.csv",
)
def _(frame: pd.DataFrame, direct: pd.DataFrame) -> Sequence[float]:
    best_row = frame.loc[frame["ms"].idxmin()]
    seconds = best_row["atoms"] * best_row["points"] / row(direct, "evaluations_per_s", what="autotune")
    return [best_row["ms"], seconds, 1000 * seconds / best_row["ms"]]


@_everywhere(
    "{0.343} ms | cupy's sort {5.70} ms | {17} x | a bare store of the list {0.250} ms: {73} % |",
    "cyclospectrum-h200.csv.xz", "cyclospectrum-h200-peers.csv", "allpairs-h200-limits.csv",
)  # fmt: skip
def _(frame: pd.DataFrame, peers: pd.DataFrame, limits: pd.DataFrame) -> Sequence[float]:
    ours = winner(frame, "cyclospectrum", "n16384")
    other = row(peers, "ms", residues=16384, what="torch prefix differences + cupy sort in place")
    stored = 1000 * 4 * 16384**2 / row(limits, "per_second", what="bytes stored")
    return [ours, other, other / ours, stored, 100 * stored / ours]


@figure(
    "performance",
    "a million residues as masses with their counts take {8.25} ms, {21.5} ms by torch's Fourier transforms",
    "cyclospectrum-h200.csv.xz", "cyclospectrum-h200-peers.csv",
)  # fmt: skip
def _(frame: pd.DataFrame, peers: pd.DataFrame) -> Sequence[float]:
    other = row(peers, "ms", residues=1000000, what="torch transforms in float64, rounded")
    return [winner(frame, "cyclospectrum", "n1000000-pairs"), other]


@figure("performance", "`eviction=hinted` takes {3} % off the list of 16,384", "cyclospectrum-h200.csv.xz")
def _(frame: pd.DataFrame) -> Sequence[float]:
    hinted, normal = (best(frame, workload="n16384", eviction=how) for how in ("hinted", "normal"))
    return [100 * (1 - hinted / normal)]


def _matrix_times(frame: pd.DataFrame, ours: str, other: str) -> list[float]:
    here, there = (float(program(frame, part)["device_ms"]) for part in (ours, other))
    return [here, there, there / here]


@_everywhere("{2.26} ms | JoltQC {7.99} ms | {3.5} x |", MATRICES)
def _(frame: pd.DataFrame) -> Sequence[float]:
    return _matrix_times(frame, "screening=schwarz", "joltqc")


@_everywhere(
    "{15.4} ms | gpu4pyscf (screens) {55.1} ms | {3.6} x | 18 float64 multiply-adds a component {8.5} ms: {55} % |",
    MATRICES, "limits.json",
)  # fmt: skip
def _(frame: pd.DataFrame, limits: dict[str, float]) -> Sequence[float]:
    ours, other, times = _matrix_times(frame, "order=place,roots=inverse", "gpu4pyscf")
    least = 1000 * 7_079_995_350 * 18 / limits["fp64_fma_per_s"]
    return [ours, other, times, least, 100 * least / ours]


@_everywhere("{2.71} ms | libcint, 16 cores {487} ms | {180} x |", "eri-sp-h200-libcint.csv")
def _(frame: pd.DataFrame) -> Sequence[float]:
    some = frame[frame["workload"] == "water16"]
    return [
        some["gpu_ms"].min(),
        some["libcint_ms"].iloc[0],
        some["libcint_ms"].iloc[0] / some["gpu_ms"].min(),
    ]


@_everywhere(
    "{2.71e12}/s | AN5D {1.57e12}/s | {1.7} x | five float32 instructions a point {6.2e12}/s: {43} % |",
    "reaction_diffusion-h200-large.csv", "reaction_diffusion-h200-stencils.csv", "limits.json",
)  # fmt: skip
def _(frame: pd.DataFrame, stencils: pd.DataFrame, limits: dict[str, float]) -> Sequence[float]:
    ours = frame[frame["grid"] == 16384]["updates_per_second"].max()
    other = stencils[(stencils["grid"] == 16384) & stencils["program"].str.startswith("AN5D")][
        "updates_per_second"
    ].max()
    most = limits["fp32_fma_per_s"] / 5
    return [ours, other, ours / other, most, 100 * ours / most]
