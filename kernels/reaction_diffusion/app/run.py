"""`autotune run reaction_diffusion -i grid=1024 -i D=10 -i seconds=10 -o fluorescence.csv`: one experiment."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import TunedKernel, UsageError, WorkloadError

from ..experiment import Experiment
from ..outline import read_outline
from .animation import check_animation, write_animation

__all__ = ["run"]

_FRAMES = 50
_NOT_OF_THE_EXPERIMENT = {"image", "grid", "animation", "frames"}
_MOST_POINTS = 65536


@dataclass(frozen=True)
class Result:
    """F at each sample, with its time in s, and the concentration at the end (rows, columns)."""

    seconds: NDArray[np.float64]
    fluorescence: NDArray[np.float64]
    concentration: NDArray[np.float64]


def run(
    given: Mapping[str, str],
    output: Path | None,
    open_kernel: Callable[[], TunedKernel],
    note: Callable[[str], None],
) -> None:
    """``image=FILE`` (a cell's outline) or ``grid=N`` or ``grid=ROWSxCOLUMNS``, what an `Experiment` takes,
    ``precision`` float32 or float64, ``animation=FILE`` with ``frames=N``. Writes ``output`` as CSV: seconds,
    fluorescence, and that over its first value. Raises UsageError, WorkloadError."""
    inside = _inside(given)
    experiment = Experiment.of({name: v for name, v in given.items() if name not in _NOT_OF_THE_EXPERIMENT})
    options = {
        "precision": experiment.precision,
        "walls": "rectangle" if inside.all() else "outline",
        "beam_shape": "gaussian",
    }
    animation = Path(given["animation"]) if "animation" in given else None
    frames = _frames(given, experiment)
    if animation:
        check_animation(animation)
    if animation and experiment.precision != "float32":
        raise UsageError(
            f"animation={animation}: an experiment in frames goes on from float32 concentrations; "
            "leave precision=float64 out"
        )
    inputs = experiment.inputs(inside)
    if not inputs["detector"].any():
        raise WorkloadError(
            "the detector, a disc around the beam, sees no point of the cell; move the cell to the middle of the "
            "image, or give a larger detector_radius (0: everywhere)"
        )
    kernel = open_kernel()
    note(_described(experiment, inside))
    for sentence in experiment.rounded:
        note(f"rounded      {sentence}")
    begin = time.perf_counter()
    if animation:
        parts = list(_parts(kernel, inputs, options, frames))
        result = _joined(parts, experiment)
        write_animation(animation, [inputs["initial"], *(part["concentration"] for part in parts)])
        note(f"animation    {animation}: {len(parts) + 1} frames")
    else:
        outputs = kernel.run(kernel.bind(**inputs, **options))
        result = _joined([outputs], experiment)
    elapsed = time.perf_counter() - begin
    points = f"{result.fluorescence.size} samples"
    note(f"simulated    {experiment.steps:,} steps on {kernel.device} in {elapsed:.3f} s, {points}")
    relative = result.fluorescence / result.fluorescence[0]
    note(
        f"fluorescence {relative[-1]:.6f} of the first after {result.seconds[-1]:g} s, at least {relative.min():.6f}"
    )
    if output is not None:
        lines = [
            f"{t:.9g},{f:.17g},{r:.9g}\n"
            for t, f, r in zip(result.seconds, result.fluorescence, relative, strict=True)
        ]
        output.write_text("seconds,fluorescence,relative\n" + "".join(lines), encoding="utf-8")


def _inside(given: Mapping[str, str]) -> NDArray[np.bool_]:
    if ("image" in given) == ("grid" in given):
        raise UsageError("give either -i image=FILE (a cell's outline) or -i grid=N (or ROWSxCOLUMNS)")
    if "image" in given:
        return read_outline(Path(given["image"]))
    words = given["grid"].split("x")
    if len(words) > 2 or not all(word.isdigit() and 1 <= int(word) <= _MOST_POINTS for word in words):
        raise UsageError(
            f"-i grid={given['grid']}: N or ROWSxCOLUMNS, whole numbers of 1..{_MOST_POINTS}, is needed"
        )
    return np.ones((int(words[0]), int(words[-1])), np.bool_)


def _frames(given: Mapping[str, str], experiment: Experiment) -> int:
    """How many pictures follow the first; each is some whole samples later than the one before."""
    text = given.get("frames", str(_FRAMES))
    if "frames" in given and "animation" not in given:
        raise UsageError("frames are of an animation: add -i animation=FILE.gif or FILE.npy")
    if not text.isdigit() or not 1 <= int(text) <= 10_000:
        raise UsageError(f"-i frames={text}: a whole number of 1..10000 is needed")
    return min(int(text), max(1, experiment.steps // experiment.interval))


def _described(experiment: Experiment, inside: NDArray[np.bool_]) -> str:
    rows, columns = inside.shape
    cell = "" if inside.all() else f", {int(np.count_nonzero(inside)):,} of them in the cell"
    d = f"{experiment.D:g} um^2/s"
    if experiment.precision == "float32":
        d += f" (taken as {experiment.effective_D:.9g})"
    return (
        f"experiment   {rows} x {columns} points of {experiment.spacing:g} um{cell}; D = {d}, "
        f"{experiment.steps:,} steps of {experiment.dt:g} s"
    )


def _parts(
    kernel: TunedKernel, inputs: Mapping[str, Any], options: Mapping[str, str], frames: int
) -> Iterator[dict[str, Any]]:
    """The experiment in runs that go on from each other: float32 concentrations lose nothing on the way."""
    steps, interval = int(inputs["steps"]), int(inputs["interval"])
    samples = -(-steps // interval)
    ends = [min(steps, interval * (samples * n // frames)) for n in range(1, frames + 1)]
    initial, done = inputs["initial"], 0
    for end in ends:
        run_inputs = {**inputs, "initial": initial, "steps": end - done}
        outputs = kernel.run(kernel.bind(**run_inputs, **options))
        yield outputs
        initial, done = outputs["concentration"].astype(np.float32), end


def _joined(parts: list[dict[str, Any]], experiment: Experiment) -> Result:
    """One series of samples: each part begins with the last of the one before."""
    series = [part["fluorescence"] if n == 0 else part["fluorescence"][1:] for n, part in enumerate(parts)]
    fluorescence = np.concatenate(series)
    seconds = np.arange(fluorescence.size, dtype=np.float64) * (experiment.interval * experiment.dt)
    return Result(seconds, fluorescence, parts[-1]["concentration"])
