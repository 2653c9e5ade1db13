"""What is predicted between entries, which configurations are kept, and where a plan of sweeps goes next."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.declaration import Configuration
from autotune.policy.prediction import (
    Predicted,
    Range,
    Taught,
    add_winners,
    compute_expected_gains,
    compute_expected_regret,
    compute_left_out_losses,
    compute_nearest_losses,
    cover,
    estimate_promise,
    fit_shape,
    next_point,
)

A, B, C = (Configuration({"p": value}) for value in "abc")


def crossing(*sizes: float) -> Taught:
    """A takes 1 µs an element, B 8 µs and a quarter of that: they cross at 10.7."""
    rows = {f"n{n:g}": {A: n, B: 8 + n / 4} for n in sizes}
    return Taught({f"n{n:g}": {"n": n} for n in sizes}, rows)


def test_the_crossing_is_found_between_entries_that_differ() -> None:
    taught = crossing(1, 2, 4, 8, 16, 32, 64)
    for n, best in ((3, A), (6, A), (9, A), (13, B), (40, B)):
        found = taught.predict({"n": n})
        assert found[0].configuration == best
        times = {p.configuration: p.ms for p in found}
        assert times[A] == pytest.approx(n, rel=0.05)
        assert times[B] == pytest.approx(8 + n / 4, rel=0.05)


def test_on_an_entry_its_own_times_come_back() -> None:
    for predicted in crossing(1, 2, 4, 8, 16, 32).predict({"n": 4}):
        assert predicted.ms == pytest.approx({A: 4.0, B: 9.0}[predicted.configuration], rel=0.02)


def test_the_farther_the_less_sure() -> None:
    taught = crossing(1, 2, 4, 8)
    spreads = [max(p.spread for p in taught.predict({"n": n})) for n in (4, 16, 128, 4096)]
    assert spreads == sorted(spreads)
    assert taught.place({"n": 16}).beyond == {"n": (1, 8)}
    assert taught.place({"n": 3}).beyond == {}
    assert taught.place({"n": 16}).nearest == "n8"
    assert taught.place({"n": 16}).distance == pytest.approx(math.log(2))


def test_what_cannot_be_placed_is_not_predicted() -> None:
    taught = crossing(1, 2)
    assert taught.predict({}) == taught.predict({"n": 0}) == []
    assert Taught({}, {}).predict({"n": 1}) == []


def test_a_configuration_that_was_measured_in_part_is_predicted_from_that() -> None:
    taught = crossing(1, 2, 4, 8, 16)
    rows = {name: {A: row[A], **({B: row[B]} if name != "n4" else {})} for name, row in taught.rows.items()}
    part = {p.configuration: p.ms for p in Taught(taught.features, rows).predict({"n": 4})}
    assert part[B] == pytest.approx(9.0, rel=0.1)


@given(
    st.lists(
        st.dictionaries(st.sampled_from((A, B, C)), st.floats(0.5, 50), min_size=1), min_size=1, max_size=6
    ),
    st.floats(0, 0.5),
)
def test_what_is_kept_suffices(rows: list[dict[Configuration, float]], regret: float) -> None:
    named = {f"w{i}": row for i, row in enumerate(rows)}
    chosen, worst = cover(named, (A, B, C), regret)
    lost = [min(row.get(c, math.inf) for c in chosen) / min(row.values()) - 1 for row in rows]
    assert worst == max(lost) <= regret
    for fewer in itertools.combinations(chosen, len(chosen) - 1):  # none is needless
        assert (
            not fewer
            or max(min(r.get(c, math.inf) for c in fewer) / min(r.values()) for r in rows) - 1 > regret
        )
    assert cover(named, (A, B, C), 0.0, most=1)[0][0] in (A, B, C)


def test_each_entry_is_left_out_in_turn() -> None:
    taught = crossing(1, 2, 4, 8, 16, 32, 64)
    winners = {name: min(row, key=lambda c: row[c]) for name, row in taught.rows.items()}
    assert compute_left_out_losses(taught, taught.rows) == [0.0] * 7
    lost = compute_nearest_losses(replace(taught, winners=winners), taught.rows)
    assert lost[3] == pytest.approx(10 / 8 - 1)  # 4 and 16 are as far, and 16 has another winner


def test_of_those_less_than_one_percent_behind_the_nearest_winner_is_first() -> None:
    rows = {f"n{n}": {A: 1.0 * n, B: 1.004 * n, C: 1.1 * n} for n in (1, 2, 4, 8)}
    known = Taught({f"n{n}": {"n": n} for n in (1, 2, 4, 8)}, rows)

    def order(**winners: Configuration) -> list[Configuration]:
        return [p.configuration for p in replace(known, winners=winners).predict({"n": 5})]

    assert order() == [A, B, C]
    assert order(n4=B, n8=A) == [B, A, C]
    assert order(n4=C, n8=B, n1=A) == [B, A, C]  # C is farther behind than noise goes
    left_out = replace(known, winners={"n4": B}).leave_out("n4")
    assert left_out.predict({"n": 5})[0].configuration == A


def test_what_the_nearest_entry_measured_comes_before_what_only_farther_ones_did() -> None:
    """A straight line through far entries promises anything."""
    rows = {f"n{n}": {A: 1.0 * n, B: 1.1 * n} for n in (1, 2, 4, 8)}
    rows |= {f"n{n}": {A: 1.0 * n, B: 1.1 * n, C: 0.001 * n**2} for n in (256, 512, 1024)}
    known = Taught({name: {"n": float(name[1:])} for name in rows}, rows)
    found = known.predict({"n": 5})
    assert [one.configuration for one in found] == [A, B, C] and found[2].ms < found[0].ms
    assert known.predict({"n": 300})[0].configuration == C


def test_winners_are_kept_beside_what_suffices() -> None:
    assert add_winners((A,), [B, C, C, A]) == (A, C, B)
    assert add_winners((A,), [B, C, C], most=2) == (A, C)
    assert add_winners((A, B), [C], most=1) == (A, B)


def test_times_that_step_with_the_load_of_a_multiprocessor() -> None:
    """A takes as long as the most loaded of four multiprocessors, B grows smoothly: only the blocks tell."""
    sizes = (1, 3, 4, 5, 7, 8, 9, 12, 13, 15, 17)
    rows = {f"n{n}": {A: float(math.ceil(n / 4)), B: 0.7 + n / 5} for n in sizes}
    blocks = {name: {A: int(name[1:]), B: 100} for name in rows}
    plain = Taught({f"n{n}": {"n": float(n)} for n in sizes}, rows, blocks, multiprocessors=4)
    found = fit_shape(plain, rows)
    assert found.load_counts > 0
    assert sum(compute_left_out_losses(found, rows)) < sum(compute_left_out_losses(plain, rows))
    assert fit_shape(replace(plain, multiprocessors=0), rows).load_counts == 0


@pytest.mark.parametrize("times", [[[1.0, 2.0]] * 3, [[1.0, np.e]] * 3])
def test_equal_rows_are_no_trouble(times: list[list[float]]) -> None:
    rows = {f"w{i}": dict(zip((A, B), row, strict=True)) for i, row in enumerate(times)}
    found = Taught({name: {"n": 5.0, "m": 2.0} for name in rows}, rows).predict({"n": 5.0, "m": 2.0})
    assert [p.ms for p in found] == pytest.approx(times[0], rel=1e-3)


# -- where to sweep next ------------------------------------------------------------------------------------

RANGE = Range({"n": (1, 4096), "m": (10, 1000)}, lambda point: point["n"] * point["m"] <= 100_000)


def test_corners_lie_in_the_range_and_within_its_condition() -> None:
    corners = list(RANGE.corners())
    assert corners[:2] == [{"n": 64, "m": 100}, {"n": 1, "m": 10}]
    assert {"n": 1, "m": 1000} in corners
    assert {"n": 4096, "m": 1000} not in corners  # it was moved inwards
    for point in (*corners, *itertools.islice(RANGE.draw_points(), 100)):
        assert RANGE.holds(point)
        assert 1 <= point["n"] <= 4096
        assert 10 <= point["m"] <= 1000


def test_first_corners_and_then_where_most_is_to_be_lost() -> None:
    over = Range({"n": (1, 4096)})
    assert next_point(over, [], None, dict) == {"n": 64}
    assert next_point(over, [{"n": 64}], None, dict) == {"n": 1}
    far = crossing(1, 64, 512, 1024, 2048, 4096)
    known = [{"n": int(f["n"])} for f in far.features.values()]
    found = next_point(over, known, far, dict)
    assert found is not None
    assert 2 <= found["n"] <= 60  # where they cross: 10.7
    near = crossing(*(2.0**i for i in range(13)))
    assert estimate_promise(over, near, dict) < estimate_promise(over, far, dict)


def test_expected_regret() -> None:
    assert compute_expected_gains([]) == compute_expected_gains([Predicted(A, 1.0, 1.0)]) == []

    def lost(ratio: float, spread: float) -> float:
        return compute_expected_regret([Predicted(A, 1.0, spread), Predicted(B, ratio, spread)])

    assert lost(1.0, 0.1) == pytest.approx(math.hypot(0.1, 0.1) / math.sqrt(2 * math.pi))
    assert lost(2.0, 0.01) < 1e-9
    assert lost(1.05, 0.1) < lost(1.0, 0.1) < lost(1.0, 0.2)
    assert (
        lost(1.05, 0.0)
        == compute_expected_regret([])
        == compute_expected_regret([Predicted(A, 1.0, 1.0)])
        == 0.0
    )
