"""Who runs which units, and what that should take: no device, no process."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.declaration import Units
from autotune.errors import FamilyError, UnknownName
from autotune.spread.plan import (
    ALLOCATIONS,
    Allocation,
    Chunk,
    Model,
    allocate,
    calibrate,
    chunks_of,
    predict,
)
from autotune.spread.spread import Planned


def units(costs: Any, batch: int = 1, groups: Any = None) -> Units:
    costs = np.asarray(costs, np.float64)
    return Units(
        costs=costs,
        run=lambda execution, first, count: None,
        batch=batch,
        parts={"y": np.arange(len(costs) + 1)},
        groups=None if groups is None else np.asarray(groups),
    )


def run_by(plan: Allocation) -> list[list[int]]:
    """The units of each worker's queue, then those of the shared one."""
    return [
        [unit for chunk in queue for unit in range(chunk.first, chunk.first + chunk.count)]
        for queue in (*plan.queues, plan.shared)
    ]


ONE = Model(1.0)


def launched(seconds: float, most: float = 1e3) -> Model:
    """Return a model: a second for each unit of cost, and ``seconds`` for each chunk."""
    return Model.fit([(0.0, seconds), (most, most + seconds)])


def test_what_is_handed_out_is_the_costliest_first() -> None:
    dynamic = allocate(units([1, 5, 3, 3]), "dynamic", [ONE] * 2)
    assert dynamic.queues == ((), ())
    assert run_by(dynamic)[2] == [1, 2, 3, 0]


def test_no_worker_of_several_is_handed_all_at_once() -> None:
    """However large a batch may be; a batch that was asked for is what is handed out."""
    many = units(np.ones(128), batch=128)
    assert [len(allocate(many, "dynamic", [ONE] * workers).shared) for workers in (1, 2, 4)] == [1, 8, 16]
    assert allocate(many, "dynamic", [ONE] * 2, batch=64).batch == 64
    assert allocate(units(np.ones(128), batch=4), "dynamic", [ONE] * 2).batch == 4


def test_when_a_plan_by_one_model_is_as_good_by_another() -> None:
    model = Model(1.0, 0.5, ((1.0, 1.0),))
    assert model.is_near(Model(1.01, 0.45, ((1.0, 1.1),)))
    for other in (Model(1.05, 0.5, model.points), Model(1.0, 0.7, model.points), Model(1.0, 0.5)):
        assert not model.is_near(other)


def test_a_plan_is_kept_while_the_workers_and_what_is_known_of_them_are_the_same() -> None:
    planned = Planned(allocate(units([1, 1]), "contiguous", [ONE] * 2), {0: ONE, 1: ONE}, {})
    assert planned.is_good_for({0: ONE, 1: Model(1.01)})
    assert not planned.is_good_for({0: ONE, 1: Model(1.1)})
    assert not planned.is_good_for({0: ONE})


def test_a_contiguous_share_is_of_the_cost_and_the_speed() -> None:
    assert run_by(allocate(units([4, 1, 1, 1, 1]), "contiguous", [ONE] * 2)) == [[0], [1, 2, 3, 4], []]
    slower = [Model(1.0), Model(3.0)]
    assert run_by(allocate(units(np.ones(8), batch=8), "contiguous", slower))[:2] == [list(range(6)), [6, 7]]


def test_a_group_larger_than_a_share_is_divided() -> None:
    costs = np.repeat([40.0, 20.0, 20.0, 20.0], 20) / 20
    subclasses = units(costs, groups=np.repeat([0, 1, 2, 3], 20))
    for allocation in ALLOCATIONS:
        plan = allocate(subclasses, allocation, [ONE] * 4)
        slowest = max(predict(plan, subclasses, [ONE] * 4))
        assert float(costs.sum()) / 4 / slowest > 0.95


@given(
    st.lists(st.floats(0, 100), min_size=1, max_size=60),
    st.integers(1, 5),
    st.integers(1, 9),
    st.sampled_from(ALLOCATIONS),
    st.data(),
)
def test_every_unit_is_run_once(
    costs: list[float], workers: int, batch: int, allocation: str, data: st.DataObject
) -> None:
    groups = sorted(data.draw(st.lists(st.integers(0, 4), min_size=len(costs), max_size=len(costs))))
    speeds = [data.draw(st.floats(0.1, 10)) for _ in range(workers)]
    models = [Model.fit([(0.0, data.draw(st.floats(0, 1))), (1e4, 1e4 * speed)]) for speed in speeds]
    work = units(costs, batch, data.draw(st.sampled_from([None, groups])))
    plan = allocate(work, allocation, models)
    assert sorted(unit for queue in run_by(plan) for unit in queue) == list(range(len(costs)))
    assert len(plan.queues) == workers
    for chunk in (*plan.shared, *(chunk for queue in plan.queues for chunk in queue)):
        assert 1 <= chunk.count <= batch
        if work.groups is not None:
            assert len(set(work.groups[chunk.first : chunk.first + chunk.count])) == 1
    seconds = predict(plan, work, models)
    assert len(seconds) == workers and all(s >= 0 for s in seconds)
    if allocation in ("automatic", "dynamic") and batch == 1:  # Graham's bound for any list order
        best = sum(costs) * min(m.per_cost for m in models) / workers
        most = max(costs) * max(m.per_cost for m in models) + len(costs) * max(m.points[0][1] for m in models)
        worst = sum(costs) * max(m.per_cost for m in models) / workers
        assert best - 1e-9 <= max(seconds) <= worst + most + 1e-9


def test_batch_and_devices_are_chosen_together() -> None:
    """Launches that cost as much as 8 slices: the more devices, the smaller the batch, in whole rounds."""
    slices, model = units(np.ones(384), batch=384), launched(8.0)
    for workers, batch in ((1, 384), (2, 192), (4, 96), (8, 48)):
        plan = allocate(slices, "automatic", [model] * workers)
        assert (plan.batch, plan.steals) == (batch, True)
        assert max(predict(plan, slices, [model] * workers)) == 384 / workers + 8
    # 50 slices on 8 devices: 7 each but for some, not 12 or 6
    assert allocate(units(np.ones(50), batch=50), "automatic", [model] * 8).batch == 7
    # of plans that take as long, the one with the largest launches
    assert allocate(slices, "automatic", [launched(0.01)] * 4).batch == 96
    # but where the copies of results take a while, they begin while the rest is computed
    copying = [Model(1.0, per_byte=0.1)] * 4
    assert allocate(slices, "automatic", copying, bytes_per_unit=1.0).batch == 8
    # and where units differ, launches small enough to divide them evenly
    uneven = units([*np.ones(90), *np.full(6, 10.0)], batch=96)
    assert allocate(uneven, "automatic", [ONE] * 4).batch == 2
    assert allocate(slices, "automatic", [model] * 4, batch=10).batch == 10
    # but none so short that the host could not keep up
    assert allocate(slices, "automatic", [Model(1e-4, per_byte=1e-3)] * 4, bytes_per_unit=1.0).batch == 24
    assert allocate(slices, "automatic", [Model(1e-7, per_byte=1e-6)] * 4, bytes_per_unit=1.0).batch == 96


def test_queues_end_in_small_chunks() -> None:
    """The last twelfth of each worker's time, unless that takes the plan longer by more than a percent."""
    slices = units(np.ones(256), batch=32)
    for queue in allocate(slices, "automatic", [ONE] * 2).queues:
        assert [chunk.count for chunk in queue] == [32, 32, 32, 21, 1, 2, 2, 2, 2, 2]
    dear = allocate(slices, "automatic", [launched(0.4)] * 2).queues[
        0
    ]  # three more launches: 130.8, and not 129.6
    assert [chunk.count for chunk in dear] == [32, 32, 32, 21, 3, 4, 4]
    for models in ([launched(8.0)] * 2, [ONE]):
        sizes = [chunk.count for chunk in allocate(slices, "automatic", models).queues[0]]
        assert set(sizes) == {sizes[0]}
    # of chunks that differ the cheapest are the last, and more than one is cut where one is too little
    uneven = units([*np.full(8, 0.25), *np.ones(120)], batch=8, groups=[0] * 8 + [1] * 120)
    for queue in allocate(uneven, "automatic", [ONE] * 2).queues:
        costs = [chunk.sum_over(uneven.costs) for chunk in queue]
        assert max(costs[-5:]) <= 2 and costs == sorted(costs, reverse=True)


def test_what_a_plan_takes() -> None:
    work = units([1, 2, 3, 4])
    plan = Allocation("contiguous", 1, ((Chunk(0, 1), Chunk(2, 1)), (Chunk(1, 1), Chunk(3, 1))))
    slower = Model.fit([(0.0, 0.25), (100.0, 200.25)])
    assert predict(plan, work, [ONE, slower]) == pytest.approx([4.0, 12.5])
    # copies go on while the device computes, but for the last one
    assert predict(plan, work, [Model(1.0, per_byte=0.1)] * 2, 10.0) == [5.0, 7.0]
    # and are what is waited for where they take longer
    assert predict(plan, work, [Model(1.0, per_byte=1.0)] * 2, 10.0) == [30.0, 30.0]
    one = allocate(units([1.0]), "contiguous", [ONE] * 3)
    assert sorted(predict(one, units([1.0]), [ONE] * 3)) == [0.0, 0.0, 1.0]


def test_a_model_is_found_from_what_was_measured() -> None:
    """A run without a calibration before it is the calibration of the next one."""
    samples = [(cost, 2e-9 * cost + 1e-4, int(cost), cost * 1e-10) for cost in (1e5, 1e6, 3e6)]
    found = ONE.refine(samples)
    for cost in (1e5, 5e5, 1e6, 2e6, 3e6):
        assert found.seconds(cost) == pytest.approx(2e-9 * cost + 1e-4)
    assert found.per_byte == pytest.approx(1e-10)
    faster = ONE.refine([(1.0, 2.0, 0, 0.0), (2.0, 1.0, 0, 0.0)])  # a cost that falls is no cost
    assert (faster.seconds(1.0), faster.seconds(2.0), faster.per_byte) == (2.0, 2.0, 0.0)


def test_chunks_are_of_nearly_one_size() -> None:
    assert [chunk.count for chunk in chunks_of(units(np.ones(10)), 0, 10, 4)] == [3, 3, 4]
    grouped = units(np.ones(10), groups=[0, 0, 0, 1, 1, 1, 1, 1, 1, 2])
    assert chunks_of(grouped, 1, 10, 4) == [Chunk(1, 2), Chunk(3, 3), Chunk(6, 3), Chunk(9, 1)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"costs": np.empty(0)}, "costs has 0 values"),
        ({"costs": np.array([1.0, -1.0])}, "none negative"),
        ({"costs": np.array([1.0, np.nan])}, "NaN"),
        ({"batch": 0}, "batch is 0"),
        ({"parts": {}}, "y must be in parts or in sums"),
        ({"sums": ("y",)}, "not in both"),
        ({"parts": {"y": np.array([0, 1])}}, "2 offsets, first and last"),
        ({"parts": {"y": np.array([0, 1, 3])}}, "3 rising ones from 0 to 2"),
        ({"parts": {"y": np.array([0, 3, 2])}}, "rising"),
        ({"groups": np.array([1, 0])}, "never decrease"),
    ],
)
def test_units_that_do_not_describe_the_work_are_refused(change: dict[str, Any], message: str) -> None:
    given = {"costs": np.ones(2), "run": print, "parts": {"y": np.arange(3)}}
    with pytest.raises(FamilyError, match=message):
        Units(**{**given, **change}).check({"y": 2}, "family f")


def test_names_are_checked() -> None:
    with pytest.raises(UnknownName, match="did you mean 'automatic'"):
        allocate(units([1.0]), "auto", [ONE])
    with pytest.raises(UnknownName, match="yy"):
        Units(costs=np.ones(1), run=print, sums=("yy",)).check({"y": 1}, "family f")


def test_a_chunk_takes_what_lies_between_measured_ones() -> None:
    model = Model.fit([(8.0, 1.5), (1.0, 1.0), (4.0, 1.0), (2.0, 0.9)], per_byte=0.5)
    assert model.per_cost == pytest.approx(1.5 / 8)
    assert [model.seconds(cost) for cost in (0.5, 1, 3, 6, 16)] == pytest.approx([1, 1, 1, 1.25, 3.0])
    slower = model.refine([(8.0, 3.0, 4, 4.0), (4.0, 2.0, 4, 4.0)])
    assert [slower.seconds(cost) for cost in (4, 8, 16)] == pytest.approx([2, 3, 6])
    assert slower.per_byte == 1.0


@given(filled=st.integers(1, 40), many=st.integers(2, 200), batch=st.integers(1, 64))
def test_calibration_predicts_a_device_that_few_units_do_not_fill(filled: int, many: int, batch: int) -> None:
    """Units of one cost run ``filled`` at a time: what a chunk of a measured size or a larger one takes is known."""
    work = units(np.ones(many), batch=batch)
    sizes: list[int] = []

    def timed(chunks: Sequence[Chunk]) -> dict[int, list[tuple[float, float]]]:
        sizes.extend(chunk.count for chunk in chunks)
        return {0: [(float(-(-chunk.count // filled)), 0.0) for chunk in chunks]}

    models, after = calibrate(work, np.zeros(many), 0.5, timed)
    assert all(low + 1 <= high <= 2 * low or high == 1 for low, high in pairwise(sizes[:-1]))
    assert sizes[-1] == max(sizes)  # a plan's chunks are as large as that
    assert max(sizes) <= max(1, min(batch, max(2, many // 2)))
    for size in sizes:
        assert models[0].seconds(size) == pytest.approx(-(-size // filled))
    assert after is work


def test_calibration_finds_what_groups_take() -> None:
    """The second group takes three times its estimate on both devices, the second device twice as long as the first."""
    work = units(np.ones(60), batch=8, groups=[0] * 40 + [1] * 20)
    true = np.where(np.arange(60) < 40, 1.0, 3.0)

    def timed(chunks: Sequence[Chunk]) -> dict[int, list[tuple[float, float]]]:
        times = [float(true[c.first : c.first + c.count].sum()) for c in chunks]
        return {0: [(t, 0.0) for t in times], 1: [(2 * t, 0.0) for t in times]}

    models, after = calibrate(work, np.zeros(60), 0.25, timed)
    assert after.costs == pytest.approx(true)
    assert [models[worker].seconds(8.0) for worker in (0, 1)] == pytest.approx([8.0, 16.0])
    plan = allocate(after, "automatic", [models[0], models[1]])
    assert predict(plan, after, [models[0], models[1]]) == pytest.approx([66, 66], rel=0.15)
