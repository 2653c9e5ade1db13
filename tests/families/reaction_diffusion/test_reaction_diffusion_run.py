"""What goes with the reaction-diffusion kernels: experiments, `autotune run`, the benchmark."""

import csv
import importlib
import importlib.util
import itertools
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import example, given
from hypothesis import strategies as st

from autotune.cli.commands import app
from autotune.declaration import family as families
from autotune.errors import UsageError, WorkloadError

FAMILY = families.load_family("reaction_diffusion")
MODULE: Any = FAMILY.module


def module(name: str) -> Any:
    return importlib.import_module(f"{MODULE.__name__}.{name}")


pytestmark = pytest.mark.filterwarnings("ignore:no usable policy file")  # what is asked for here needs none
BEAM = module("beam")


def run(*arguments: str | Path) -> Any:
    return CliRunner().invoke(app, ["run", "reaction_diffusion", "--device", "cpu", *map(str, arguments)])


# ---- experiments


@example(0.0, 1.000000001, 1.0, 1.0)  # the longest is a little below 1, and must not be printed as 1
@given(st.floats(0, 1e3), st.floats(0, 1e3), st.floats(0.01, 5), st.floats(1e-6, 1))
def test_a_step_is_refused_exactly_when_it_is_unstable(D: float, k: float, spacing: float, dt: float) -> None:  # noqa: N803
    exact = D * dt / spacing**2
    weight = 4 * exact + k * dt
    if weight <= 1:
        made = MODULE.Experiment(D=D, k=k, spacing=spacing, dt=dt, seconds=dt, precision="float64")
        assert 4 * made.diffusion + k * dt <= 1
        assert made.diffusion == pytest.approx(exact, rel=1e-15, abs=1e-16)
        return
    if weight < 1 + 1e-9:
        return  # rounding decides
    with pytest.raises(WorkloadError, match="unstable") as refused:
        MODULE.Experiment(D=D, k=k, spacing=spacing, dt=dt, seconds=dt)
    longest = float(re.search(r"at most (\S+) s$", str(refused.value))[1])  # type: ignore[index]
    made = MODULE.Experiment(D=D, k=k, spacing=spacing, dt=longest, seconds=longest, precision="float64")
    assert longest > 0.98 * made.largest_stable_dt


@given(st.floats(0, 90), st.floats(0, 900), st.floats(0.1, 5), st.floats(1e-7, 1e-5))
def test_float32_takes_D_in_quanta_or_refuses(D: float, k: float, spacing: float, dt: float) -> None:  # noqa: N802, N803
    exact, quantum = D * dt / spacing**2, 2.0**-26
    off = abs(round(exact / quantum) * quantum - exact)
    if abs(off - 1e-3 * exact) < 1e-9 * exact:
        return  # rounding decides
    if off > 1e-3 * exact or (D and not exact):  # or so small a D that float64 has no number for it
        with pytest.raises(WorkloadError, match="take D of at least") as refused:
            MODULE.Experiment(D=D, k=k, spacing=spacing, dt=dt, seconds=dt)
        least = float(re.search(r"at least (\S+),", str(refused.value))[1])  # type: ignore[index]
        assert least * 1.01 > D
        assert MODULE.Experiment(D=least * 1.01, k=0, spacing=spacing, dt=dt, seconds=dt).diffusion > 0
        return
    made = MODULE.Experiment(D=D, k=k, spacing=spacing, dt=dt, seconds=dt)
    assert made.diffusion % quantum == 0
    assert made.effective_D == pytest.approx(D, rel=1.0001e-3)
    assert 4 * made.diffusion + k * dt <= 1


def test_a_small_D_diffuses_as_it_should_in_float64_and_is_refused_in_float32() -> None:  # noqa: N802
    small: dict[str, Any] = {"D": 5e-5, "spacing": 1.0, "k": 0.0, "seconds": 0.01}
    with pytest.raises(WorkloadError, match=r"so as 0: 100\.00% off, of which 0\.1% are allowed"):
        MODULE.Experiment(**small)
    assert MODULE.Experiment(**small, precision="float64").diffusion == 5e-5 * 1e-4
    assert MODULE.Experiment(**{**small, "D": 0.0}).diffusion == 0
    parameters = {**small, "grid": 4, "precision": "float64", "sample_seconds": 0.01}
    assert MODULE.inputs(parameters, Path())["diffusion"] == 5e-5 * 1e-4


def test_a_workload_says_which_times_are_rounded() -> None:
    with pytest.warns(
        UserWarning, match=r"sample_seconds is 0\.00025 and is taken as 0\.0002, 2 steps of 0\.0001 s"
    ):
        made = MODULE.inputs({"grid": 4, "seconds": 0.001, "sample_seconds": 0.00025}, Path())
    assert made["interval"] == 2
    assert not MODULE.Experiment(seconds=0.0097, sample_seconds=0.0023, dt=1e-4).rounded
    assert len(MODULE.Experiment(seconds=1e-5, sample_seconds=1).rounded) == 2


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"D": "-1"}, "D is -1.0; a number at least 0"),
        ({"seconds": "soon"}, "seconds is 'soon'; a number is needed"),
        ({"dt": "0"}, "dt is 0.0; a number above 0"),
        ({"k": "nan"}, "k is nan"),
        ({"seconds": "1e9"}, "steps are more than"),
    ],
)
def test_bad_numbers_are_refused(values: dict[str, str], message: str) -> None:
    with pytest.raises(WorkloadError, match=re.escape(message)):
        MODULE.Experiment.of(values)


def test_an_unknown_parameter_gets_a_suggestion() -> None:
    with pytest.raises(UsageError, match="did you mean 'beam_radius'"):
        MODULE.Experiment.of({"beam_radus": 1})


@given(st.integers(1, 300), st.floats(-50, 350, width=32), st.floats(0.0009765625, 4, width=32))
def test_the_beam_is_a_gaussian(count: int, centre: float, rate: float) -> None:
    factors = BEAM.gaussian_factors(count, centre, rate)
    exact = np.exp(-(((np.arange(count) - np.float64(centre)) * np.float64(rate)) ** 2))
    assert factors.dtype == np.float32
    assert factors.max() <= 1
    np.testing.assert_allclose(factors, exact, rtol=2e-4, atol=1e-7)


@pytest.mark.parametrize(
    "parameters", [{}, {"grid": 4, "outline": "x.pbm"}, {"grid": 0}, {"grid": [3, True]}, {"grid": "9"}]
)
def test_a_workload_names_one_lattice(parameters: dict[str, Any]) -> None:
    with pytest.raises(WorkloadError, match="grid"):
        MODULE.inputs(parameters, Path())


# ---- autotune run


def test_an_experiment_is_written_as_csv(tmp_path: Path) -> None:
    output = tmp_path / "fluorescence.csv"
    given_ = ["grid=24x30", "D=40", "seconds=0.021", "sample_seconds=0.004", "k=200", "beam_radius=1"]
    result = run(*itertools.chain.from_iterable(("-i", text) for text in given_), "-o", output)
    assert result.exit_code == 0, result.output
    rows = list(csv.DictReader(output.read_text().splitlines()))
    made = MODULE.Experiment(D=40, seconds=0.021, sample_seconds=0.004, k=200, beam_radius=1).inputs(
        np.ones((24, 30), bool)
    )
    options = {"walls": "rectangle", "beam_shape": "gaussian"}
    expected = MODULE.reference(made, {**made, **options})["fluorescence"]
    assert [float(row["seconds"]) for row in rows] == pytest.approx(np.arange(6) * 0.004)
    np.testing.assert_allclose([float(row["fluorescence"]) for row in rows], expected, rtol=1e-6)
    np.testing.assert_allclose([float(row["relative"]) for row in rows], expected / expected[0], rtol=1e-6)


def test_a_run_says_the_numbers_that_it_takes() -> None:
    given_ = ["grid=8x9", "D=0.0031", "seconds=0.00105", "sample_seconds=0.0004"]
    rough, exact = (
        run(*itertools.chain.from_iterable(("-i", text) for text in [*given_, f"precision={precision}"]))
        for precision in ("float32", "float64")
    )
    assert rough.exit_code == exact.exit_code == 0, rough.output + exact.output
    assert "D = 0.0031 um^2/s (taken as 0.00309944153)" in rough.output
    assert "D = 0.0031 um^2/s, " in exact.output
    assert "rounded      seconds is 0.00105 and is taken as 0.001, 10 steps of 0.0001 s" in rough.output
    assert "sample_seconds" not in rough.output


def test_an_animation_changes_nothing(tmp_path: Path) -> None:
    inside = np.ones((20, 26), np.uint8)
    inside[:4, :5] = 0
    np.save(tmp_path / "cell.npy", inside)
    common = [
        "-i",
        f"image={tmp_path / 'cell.npy'}",
        "-i",
        "seconds=0.023",
        "-i",
        "sample_seconds=0.002",
        "-i",
        "k=300",
    ]
    alone = run(*common, "-o", tmp_path / "alone.csv")
    framed = run(
        *common, "-i", f"animation={tmp_path / 'a.npy'}", "-i", "frames=4", "-o", tmp_path / "framed.csv"
    )
    picture = run(*common, "-i", f"animation={tmp_path / 'a.gif'}", "-i", "frames=2")
    assert alone.exit_code == framed.exit_code == picture.exit_code == 0, framed.output + picture.output
    first, second = (np.loadtxt(tmp_path / n, delimiter=",", skiprows=1) for n in ("alone.csv", "framed.csv"))
    np.testing.assert_allclose(second, first, rtol=1e-12)  # F has another quantum in each part
    frames = np.load(tmp_path / "a.npy")
    assert frames.shape == (5, 20, 26)
    assert (np.diff(frames.sum((1, 2))) < 0).all()
    assert not frames[:, :4, :5].any()

    from PIL import Image

    with Image.open(tmp_path / "a.gif") as image:
        assert image.size == (26, 20)
        assert getattr(image, "n_frames", 1) == 3


@pytest.mark.parametrize(
    ("given_", "status", "message"),
    [
        (["D=10"], 2, "give either"),
        (["grid=0"], 2, "whole numbers of 1..65536"),
        (["grid=12", "D=100", "dt=0.001"], 4, "take dt of at most"),
        (["grid=12", "frames=3"], 2, "frames are of an animation"),
        (["grid=12", "animation=a.mp4"], 2, "must end in .gif or .npy"),
        (["grid=12", "animation=a.npy", "precision=float64"], 2, "float32"),
        (["grid=12", "precision=float16"], 2, "float16"),
        (["grid=12", "D=1e-4"], 4, "1.33% off"),
        (["grid=12", "speed=3"], 2, "speed"),
        (["image=nowhere.png"], 4, "is not there"),
    ],
)
def test_what_cannot_be_run_is_refused(given_: list[str], status: int, message: str) -> None:
    result = run(*itertools.chain.from_iterable(("-i", text) for text in given_))
    said = result.output + str(result.exception or "")
    assert message in " ".join(said.split())
    assert getattr(result.exception, "exit_code", result.exit_code) == status


def test_a_detector_that_sees_nothing_is_refused(tmp_path: Path) -> None:
    inside = np.zeros((60, 60), np.uint8)
    inside[:3, :3] = 1
    np.save(tmp_path / "cell.npy", inside)
    result = run("-i", f"image={tmp_path / 'cell.npy'}")
    assert "sees no point of the cell" in result.output + str(result.exception)


# ---- the benchmark


def benchmark(name: str) -> ModuleType:
    path = Path(__file__).parents[3] / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[name] = loaded  # dataclasses look their module up
    spec.loader.exec_module(loaded)
    return loaded


def test_the_benchmark_runs_on_a_cpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main = benchmark("reaction_diffusion_experiment").main
    common = ["--device", "cpu", "--steps", "20", "--interval", "10", "--preset", "control"]
    assert main(["eigenmode", "--grid", "20x31", *common]) == 0
    out = tmp_path / "times.csv"
    assert main(["times", "--grid", "20x31", "--samples", "1", "--out", str(out), *common]) == 0
    rows = benchmark("result_files").read_rows(out)
    assert [row["steps"] for row in rows] == ["20", "20"]
    assert float(rows[0]["times_one_step"]) == 1
    assert "differ" not in capsys.readouterr().out
