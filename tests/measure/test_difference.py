"""What counts as right: whole numbers with a tolerance of their own, a share of elements, NaN; and what reasons say."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from test_verify import ONE, Bench, Kernel

from autotune.declaration import Tolerance
from autotune.measure.verify import difference

NAN = float("nan")
OWN = Tolerance(absolute=1, declared="tolerance.smooth")


def told(got: Any, expected: Any, within: Tolerance, kind: Any = np.uint8) -> str:
    return difference("smooth", np.array(got, kind), np.array(expected, kind), {"smooth": within})


def test_whole_numbers_may_be_off_by_what_is_declared_for_them_and_say_what_that_is() -> None:
    assert told([156, 6, 7], [155, 7, 7], OWN) == ""
    assert told([157, 6], [155, 7], OWN) == (
        "smooth: 1 of 2 elements differ, the first at [0]: 157, expected 155 (tolerance.smooth: absolute 1)"
    )
    assert told([0, 255], [255, 0], OWN).startswith("smooth: 2 of 2")  # not 1 apart modulo 256


def test_one_that_is_for_floating_point_says_so() -> None:
    """Off by one, which ``absolute: 1`` looks as if it allowed."""
    reason = told([156, 7], [155, 7], Tolerance(declared="tolerance"))
    assert reason.startswith(
        "smooth: 1 of 2 elements differ, the first at [0]: 156, expected 155 (tolerance does not"
    )
    assert "apply to smooth: uint8; integers are compared exactly" in reason
    assert reason.endswith("tolerance: {smooth: {absolute: 1}})")
    assert told([0, 0], [1, 0], Tolerance()).endswith("expected 1")


def test_a_share_of_the_elements_may_be_wrong() -> None:
    expected = np.zeros(1000, np.int32)
    got = expected.copy()
    got[:4] = 2, 100, 1, -1
    assert told(got, expected, replace(OWN, share=0.002), np.int32) == ""
    assert told(got, expected, replace(OWN, share=0.0019), np.int32).endswith(
        "(tolerance.smooth: absolute 1, share 0.0019; 1 elements may)"
    )
    assert told(got, expected, Tolerance(share=0.004), np.int32) == ""
    assert told(got, expected, Tolerance(share=0.003), np.int32).startswith("smooth: 4 of 1000")


@pytest.mark.parametrize(
    ("nan", "right"),
    [("equal", {(NAN, NAN), (1, 1)}), ("ignore", {(NAN, NAN), (1, NAN), (1, 1)}), ("wrong", {(1, 1)})],
    ids=["equal", "ignore", "wrong"],
)
def test_nan_is_right_where_it_is_declared_so(nan: str, right: set[tuple[float, float]]) -> None:
    within = Tolerance(nan=nan, declared="tolerance.smooth")
    for pair in [(NAN, NAN), (1, NAN), (NAN, 1), (1, 1), (1, 2)]:
        assert (told([pair[0]], [pair[1]], within, np.float32) == "") == (str(pair) in map(str, right)), pair


KINDS = ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"]


@st.composite
def numbers(draw: st.DrawFn) -> tuple[NDArray[Any], NDArray[Any]]:
    kind = np.dtype(draw(st.sampled_from(KINDS)))
    about = np.iinfo(kind)
    whole = st.one_of(
        st.integers(int(about.min), int(about.max)), st.sampled_from([about.min, about.max, 0, 1])
    )
    pairs = draw(st.lists(st.tuples(whole, whole), min_size=1, max_size=8))
    return np.array([a for a, _ in pairs], kind), np.array([b for _, b in pairs], kind)


@settings(max_examples=60, deadline=None)
@given(numbers(), st.integers(0, 300), st.sampled_from([0.0, 0.25, 0.5]))
def test_whole_numbers_of_every_type_by_exact_arithmetic(
    pair: tuple[NDArray[Any], NDArray[Any]], absolute: int, relative: float
) -> None:
    got, expected = pair
    wrong = [
        abs(Fraction(int(a)) - int(b)) > absolute + Fraction(relative) * abs(int(b))
        for a, b in zip(got, expected, strict=True)
    ]
    # What is so close to the bound that float64 cannot tell is no case for a declaration.
    gaps = [
        abs(abs(Fraction(int(a)) - int(b)) - absolute - Fraction(relative) * abs(int(b)))
        for a, b in zip(got, expected, strict=True)
    ]
    if any(0 < gap < 2**12 for gap in gaps) and expected.itemsize == 8:
        return
    reason = told(got, expected, Tolerance(relative, absolute, declared="tolerance.smooth"), got.dtype)
    assert reason.startswith(f"smooth: {sum(wrong)} of") == any(wrong)
    assert bool(reason) == any(wrong)


def test_fields_of_a_record_have_their_own() -> None:
    kind = np.dtype([("score", np.float32), ("place", np.int32)])
    expected = np.array([(1.0, 5)], kind)
    got = np.array([(1.5, 6)], kind)
    within = {"hits.score": Tolerance(absolute=0.5, declared="tolerance"), "hits.place": OWN}
    assert difference("hits", got, expected, within) == ""
    assert difference("hits", got, expected, {**within, "hits.place": Tolerance()}).startswith(
        "hits.place: 1 of 1"
    )
    assert "(tolerance: exact)" in difference(
        "hits", got, expected, {"hits.score": Tolerance(declared="tolerance")}
    )


# -- through the measurer ------------------------------------------------------------------------------------

WHOLE = ONE.replace("y: {role: output, type: float32", "y: {role: output, type: int32")
TWICE = np.full(1000, 40, np.int32)


def off_by_one(kernel: Kernel) -> None:
    kernel.y.view(np.int32)[:] = TWICE
    kernel.y.view(np.int32)[::2] += 1


def leaves_one(kernel: Kernel) -> None:
    kernel.y.view(np.int32)[1:] = TWICE[1:]


def is_off_by_two(kernel: Kernel) -> None:
    off_by_one(kernel)
    kernel.y.view(np.int32)[500] += 1


@pytest.mark.parametrize(
    ("does", "declared", "said"),
    [
        (off_by_one, "{y: {absolute: 1}}", ""),
        (off_by_one, "{absolute: 1}", "tolerance does not apply to y"),
        (off_by_one, "{y: {share: 0.5}}", ""),
        (off_by_one, "{y: {share: 0.499}}", "500 of 1000 elements differ"),
        (
            is_off_by_two,
            "{y: {absolute: 1}}",
            "1 of 1000 elements differ, the first at [500]: 42, expected 40 (tol",
        ),
        (leaves_one, "{y: {absolute: 45}}", "1 of 1000 elements differ, the first at [0]: 2122219134"),
    ],
)
def test_a_sweep_takes_what_is_declared_and_nothing_more(
    does: Any, declared: str, said: str, tmp_path: Path
) -> None:
    """What nobody wrote is -1 in the first run, which may be near; in the second it is not."""
    bench = Bench(tmp_path, does, f"{WHOLE}tolerance: {declared}\n", {"y": TWICE})
    trial = bench.tried().trial
    assert trial.state == ("wrong_result" if said else "measured")
    assert said in trial.reason
