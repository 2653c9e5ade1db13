"""The eri family's lists, runs, transfer figures and cost model: pure functions against what is counted by hand."""

import math
from typing import Any

import numpy as np
import pytest
from eri_helpers import FAMILY, inputs, part
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.errors import UsageError

expansion, launches, cuts = part("expansion"), part("launches"), part("pieces")
costs, transfers, boys = part("cost_model"), part("transfer"), part("boys")
Share = costs.Share


# ---- the Boys function


def exact(t: float) -> float:
    return 1 - t / 3 + t * t / 10 if t < 1e-6 else math.sqrt(math.pi / t) / 2 * math.erf(math.sqrt(t))


def test_the_quotient_is_the_boys_function() -> None:
    t = np.concatenate(([0.0, 1e-300, 1e-12], np.geomspace(1e-8, 1e6, 4001), np.linspace(0, 31.999, 6001)))
    expected = np.array([exact(x) for x in t])
    np.testing.assert_allclose(boys.f0(t), expected, rtol=1e-13)


def test_the_kernels_quotient_has_the_same_coefficients() -> None:
    source = (FAMILY.folder / "boys.cuh").read_text()
    for coefficient in (*boys.NUMERATOR, *boys.DENOMINATOR[1:]):
        assert repr(coefficient) in source


# ---- lists and runs

counts_of = st.lists(st.integers(1, 6), min_size=1, max_size=7)


def pairs_of(shells: list[int]) -> np.ndarray:
    """Return the pairs of shells with these numbers of primitives."""
    i, j = np.tril_indices(len(shells))
    pairs = np.zeros(len(i), part("arrays").PAIR)
    pairs["i"], pairs["j"] = i, j
    pairs["count"] = np.array(shells)[i] * np.array(shells)[j]
    pairs["bound"] = np.random.default_rng(0).random(len(i))
    return pairs


@settings(max_examples=60, deadline=None)
@given(counts_of, st.sampled_from(["none", "class", "subclass", "schwarz"]))
def test_a_list_has_every_work_unit_once(shells: list[int], order: str) -> None:
    pairs = pairs_of(shells)
    chosen = np.random.default_rng(1).permutation(len(pairs))
    units = expansion.work_units_of(pairs[chosen], order)
    assert sorted(units["target"].tolist()) == list(range(len(pairs) * (len(pairs) + 1) // 2))
    for unit in units:
        bra, ket = pairs[chosen][unit["bra"]], pairs[chosen][unit["ket"]]
        assert (unit["i"], unit["j"], unit["k"], unit["l"]) == (bra["i"], bra["j"], ket["i"], ket["j"])
        assert unit["components"] == bra["count"] * ket["count"]
    if order in expansion.SORTED:
        assert (np.diff(units["components"].astype(int)) <= 0).all()
        if order == "schwarz":
            bounds = pairs[chosen]["bound"][units["bra"]] * pairs[chosen]["bound"][units["ket"]]
            same = np.diff(units["components"].astype(int)) == 0
            assert (np.diff(bounds)[same] <= 1e-15).all()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.integers(7, 500))
def test_a_list_of_components_has_every_primitive_quartet_once(shells: list[int], most: int) -> None:
    units = expansion.work_units_of(pairs_of(shells), "none")
    records = np.zeros(len(shells), part("arrays").SHELL)
    records["count"] = shells
    records["first"] = np.cumsum(shells) - shells
    parts = list(expansion.components_of(units, records, most))
    assert all(len(made) <= most for made in parts)
    made = np.concatenate(parts)
    assert len(made) == units["components"].sum()
    assert len({tuple(row) for row in made.tolist()}) == len(made)
    for primitive, shell in zip("abcd", "ijkl", strict=True):
        place = made[primitive].astype(int) - records["first"][made[shell]]
        assert ((place >= 0) & (place < records["count"][made[shell]])).all()
    assert (np.bincount(made["target"]) == units["components"][np.argsort(units["target"])]).all()


def walked(run: Any, width: int) -> list[tuple[int, int, int]]:
    """(block, bra, ket) of every work-unit of a run, as autotune/runs.cuh's chunk gives them."""
    found = []
    for block in range(launches.blocks_of(run.bras, run.kets, width)):
        if run.kets:
            chunks = -(-run.kets // width)
            bra, first = divmod(block, chunks)
            ket, end = first * width, run.kets
        else:
            group = 0
            while width * ((group + 1) * (group + 2) // 2) <= block:
                group += 1
            rest = block - width * (group * (group + 1) // 2)
            bra, first = divmod(rest, group + 1)
            bra, ket = bra + group * width, first * width
            end = bra + 1
        found += [(block, bra, k) for k in range(ket, min(ket + width, end))]
    return found


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.integers(0, 30), st.sampled_from([2, 4, 8]))
def test_blocks_have_every_work_unit_of_a_run_once(bras: int, kets: int, width: int) -> None:
    run = expansion.Run(0, 0, kets, bras * kets if kets else bras * (bras + 1) // 2, 1)
    found = walked(run, width)
    expected = {(bra, ket) for bra in range(bras) for ket in range(kets or bra + 1)}
    assert len(found) == len(expected)
    assert {(bra, ket) for _, bra, ket in found} == expected
    for block in range(launches.blocks_of(run.bras, run.kets, width) + 1):
        assert cuts._units_before(run, width, block) == sum(b < block for b, _, _ in found)


@settings(max_examples=60, deadline=None)
@given(counts_of, st.sampled_from(["block", "component", "thread"]), st.sampled_from([1.0, 0.1, 0.01]))
def test_pieces_are_the_runs_cut(shells: list[int], granularity: str, largest: float) -> None:
    counts = np.sort(pairs_of(shells)["count"]).astype(int)
    pieces = cuts.pieces_of(counts, granularity, 4, largest=largest)
    found: dict[int, int] = {}
    for piece in pieces:
        assert piece.share.units > 0
        found[piece.share.components] = found.get(piece.share.components, 0) + piece.share.units
        threads = {"block": None, "component": piece.share.components, "thread": 1}[granularity]
        if threads:
            assert piece.launch.threads == threads * piece.share.units
    assert found == expansion.subclasses(counts)
    assert [Share(c, n) for c, n in found.items()] == cuts.shares_of(counts)
    whole = [piece.launch for piece in cuts.pieces_of(counts, granularity, 4, largest=1.0)]
    assert list(cuts.joined(piece.launch for piece in pieces)) == whole
    each = [piece.share.components for piece in pieces]
    assert each == sorted(each)
    if granularity != "block":
        total = sum(cuts.RELATIVE.seconds(piece.share) for piece in pieces)
        one = max(c + cuts.RELATIVE.transfer for c in each)
        assert all(cuts.RELATIVE.seconds(p.share) <= largest * total + one for p in pieces)


def test_every_order_is_a_permutation_and_all_but_the_first_two_sort_by_components() -> None:
    arrays = dict(inputs({"waters": 2, "basis": "6-31g"}).arrays)
    counts, bounds = arrays["pairs"]["count"].astype(int), arrays["pairs"]["bound"]
    assert set(expansion.orders) == set(FAMILY.space.policy("order").values) - {"none"}
    for name, order in expansion.orders.items():
        chosen = order(arrays)
        assert sorted(chosen.tolist()) == list(range(len(counts)))
        same = np.diff(counts[chosen]) == 0
        if name in expansion.SORTED:
            assert (np.diff(counts[chosen]) >= 0).all()
        else:
            assert (chosen == np.arange(len(counts))).all()
        if name == "schwarz":
            assert (np.diff(bounds[chosen])[same] <= 0).all()


# ---- the article's transfer


def sent(configuration: str, **parameters: object) -> object:
    made = inputs({"waters": 8, "basis": "6-31g", **parameters})
    return transfers.transfer(FAMILY.space.configuration(configuration), {**made.sizes, **made.scalars})


def test_the_articles_transfer_is_two_gigabytes_then_forty_megabytes_then_a_hundred_kilobytes() -> None:
    listed = sent("scheme-3")
    assert listed.lists == pytest.approx(36 * 56_592_492, rel=1e-5)  # parts of equal length: a few rows more
    assert 2.03e9 < listed.sent < 2.05e9
    units = sent("scheme-2")
    assert units.lists == 32 * 1_274_406
    assert 40e6 < units.sent < 42e6
    for scheme in ("scheme-4", "scheme-4-pairs"):
        assert sent(scheme).sent == 56 * 32 + 144 * 24 + 1596 * 24
        digested = sent(scheme, output="coulomb_exchange")
        assert digested.sent + digested.back < 130_000
        assert digested.back == 2 * 56 * 56 * 8


def test_tables_made_on_the_host_count() -> None:
    host = "pair_table=host,granularity=block,order=subclass,boys=rational"
    assert sent(host).tables == 10_632 * 48
    assert sent(host).molecule == sent("scheme-4").molecule
    loaded = (
        "pair_table=device,granularity=block,order=subclass,boys=loaded_rational,quotient_memory=constant"
    )
    assert sent(loaded).tables == 20 * 8


# ---- the cost model


def waters27() -> list[object]:
    counts = inputs({"waters": 27, "basis": "6-31g", "output": "coulomb_exchange"}).arrays["pairs"]["count"]
    return list(cuts.shares_of(np.sort(counts).astype(int)))


def test_the_allocations_on_27_waters_are_as_good_as_they_can_be() -> None:
    """By components alone. The article's whole subclasses stop at 4 devices: the largest is 17 % of all work."""
    subclasses = waters27()
    assert len(subclasses) == 15
    model = costs.CostModel(component=1.0, transfer=0.0, start=0.0)
    total = sum(model.seconds(share) for share in subclasses)
    assert total == 7_079_995_350
    assert max(model.seconds(share) for share in subclasses) / total == pytest.approx(0.167, abs=0.001)

    def reached(allocation: object) -> float:
        return costs.efficiency(model.predicted(allocation))

    expected = {2: (0.996, 0.999), 4: (0.987, 0.998), 8: (0.749, 0.995)}
    for gpus, (whole, chunked) in expected.items():
        assert reached(costs.whole_subclasses(subclasses, gpus, model)) == pytest.approx(whole, abs=0.002)
        assert reached(costs.chunked(subclasses, gpus, model)) >= chunked
        assert reached(costs.equal_counts(subclasses, gpus)) < whole - 0.1


shares_of = st.lists(st.builds(Share, st.integers(1, 1500), st.integers(1, 10**7)), min_size=1, max_size=20)
models = st.builds(costs.CostModel, st.floats(1e-12, 1e-9), st.floats(0, 1e-8), st.floats(0, 1e-5))


@settings(deadline=None)
@given(shares_of, st.integers(1, 9), models)
def test_every_allocation_gives_away_every_work_unit(
    subclasses: list[object], gpus: int, model: object
) -> None:
    def counted(shares: object) -> dict[int, int]:
        found: dict[int, int] = {}
        for share in shares:
            found[share.components] = found.get(share.components, 0) + share.units
        return found

    for allocation in (
        costs.equal_counts(subclasses, gpus),
        costs.whole_subclasses(subclasses, gpus, model),
        costs.chunked(subclasses, gpus, model),
    ):
        assert len(allocation) == gpus
        assert counted(share for shares in allocation for share in shares) == counted(subclasses)
    sizes = [sum(share.units for share in shares) for shares in costs.equal_counts(subclasses, gpus)]
    assert max(sizes) - min(sizes) <= 1


@settings(deadline=None)
@given(st.floats(1e-12, 1e-9), st.floats(1e-10, 1e-8), st.floats(1e-6, 1e-5))
def test_calibration_finds_the_times_again(component: float, transfer: float, start: float) -> None:
    model = costs.CostModel(component, transfer, start)
    shares = [Share(c, n) for c, n in ((1, 10**6), (36, 10**5), (1296, 10**4), (648, 100), (1, 100))]
    found = costs.calibrated([(share, model.seconds(share)) for share in shares])
    for share in [*shares, Share(216, 12345)]:
        assert found.seconds(share) == pytest.approx(model.seconds(share), rel=1e-6)


def test_calibration_has_no_negative_time_and_needs_three() -> None:
    found = costs.calibrated([(Share(1, 100), 1e-5), (Share(10, 100), 1.2e-4), (Share(100, 100), 1e-3)])
    assert min(found.component, found.transfer, found.start) >= 0
    with pytest.raises(UsageError, match="three are needed"):
        costs.calibrated([(Share(1, 1), 1.0), (Share(2, 1), 1.0)])
    with pytest.raises(UsageError, match="0 GPUs"):
        costs.chunked([Share(1, 1)], 0, found)


@pytest.mark.parametrize(
    ("output", "change", "message"),
    [
        ("integrals", {}, "output=coulomb_exchange"),
        ("coulomb_exchange", {"order": "none"}, "order=none cannot be spread"),
        ("coulomb_exchange", {"expansion": "work_units"}, "expansion=work_units"),
    ],
)
def test_what_cannot_be_spread_is_refused(output: str, change: dict[str, str], message: str) -> None:
    names = {"output": output, "expansion": "index", "order": "subclass", "granularity": "block", **change}
    with pytest.raises(UsageError, match=message):
        cuts._check(names)
