"""The forest example on the cpu device: against scikit-learn, against a walk in plain Python over random trees, its
orders by what they promise, its files and its README."""

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from cpu_results import Binary, compiled, covering, results, together
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.compile.variant import Variant
from autotune.declaration import family as families
from autotune.declaration.space import Configuration
from autotune.declaration.workload import Inputs, bind
from autotune.device.cpu.backend import CpuBackend
from autotune.errors import WorkloadError

FAMILY = families.load_family(str(Path(__file__).parents[2] / "examples" / "forest"))
MADE: Any = FAMILY.module
TREES: Any = import_module(f"{MADE.__name__}.trees")
STORAGE: Any = import_module(f"{MADE.__name__}.storage")
POLICIES = FAMILY.space.policies


EXTREMES = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 1.5, float(np.nextafter(np.float32(1.5), np.float32(2)))]


@cache
def chosen() -> list[Configuration]:
    """Every fifth has every pair of values, as is tested."""
    return covering(FAMILY.space.configurations()[::5], 2)


@pytest.fixture(scope="module")
def binaries(backend: CpuBackend) -> list[Binary]:
    return compiled(backend, [Variant(FAMILY, c) for c in chosen()], 16)


def of(forest: Any, rows: Any) -> Inputs:
    arrays = STORAGE.arrays_of(forest, rows)
    scalars = {name: arrays.pop(name) for name in ("reach", "magnitude")}
    return bind(FAMILY, arrays, {}, scalars)


def allowed(binaries: list[Binary], inputs: Inputs, every: int = 1) -> list[Binary]:
    """Those that the constraints allow for these sizes; every so-manyth."""
    names = {**inputs.sizes, **inputs.scalars}
    return [b for b in binaries if not FAMILY.space.explain_exclusion({**names, **b[0].configuration})][
        ::every
    ]


def rounding(inputs: Inputs) -> float:
    """How far apart a float32 sum in any order may be (Higham 2002, 4.2), and its leaves and itself rounded."""
    return float((inputs.sizes["tree"] + 4) * 2.0**-24 * inputs.scalars["magnitude"])


def check(backend: CpuBackend, binaries: list[Binary], inputs: Inputs, expected: Any, bound: float) -> None:
    for variant, found in results(backend, binaries, inputs):
        np.testing.assert_allclose(
            found["result"], expected, rtol=0, atol=bound, err_msg=variant.configuration.id
        )


def test_the_chosen_have_every_pair_of_values() -> None:
    every = {pair for c in FAMILY.space.configurations() for pair in together(c, 2)}
    assert {pair for c in chosen() for pair in together(c, 2)} == every
    assert len(chosen()) < 70


# ---- against scikit-learn


@cache
def table(name: str) -> tuple[Any, Any]:
    """Rows and targets of scikit-learn's ``digits`` or ``wine``. It is imported by the tests that need it: seconds."""
    found: tuple[Any, Any] = getattr(import_module("sklearn.datasets"), f"load_{name}")(return_X_y=True)
    return found


def holed(rows: Any) -> Any:
    """With every seventh number missing."""
    rows = np.array(rows, np.float32)
    rows.reshape(-1)[::7] = np.nan
    return rows


MODELS = [
    "forest",
    "two-classes",
    "regression",
    "extra",
    "best-first",
    "boosted",
    "boosted-classes",
    "tree",
    "missing",
]


def fitted(name: str) -> Any:
    from sklearn import ensemble, tree

    (x, y), wine = table("digits"), table("wine")
    models = {
        "forest": lambda: ensemble.RandomForestClassifier(9, random_state=1).fit(x[:600], y[:600]),
        "two-classes": lambda: ensemble.RandomForestClassifier(20, max_depth=3, random_state=2).fit(x, y > 4),
        "regression": lambda: ensemble.RandomForestRegressor(5, random_state=3).fit(x[:300], y[:300] / 7),
        "extra": lambda: ensemble.ExtraTreesRegressor(5, random_state=4).fit(x[:300], y[:300]),
        "best-first": lambda: ensemble.RandomForestRegressor(5, max_leaf_nodes=9, random_state=5).fit(x, y),
        "boosted": lambda: ensemble.GradientBoostingRegressor(n_estimators=30, random_state=6).fit(x[:400], y[:400]),
        "boosted-classes": lambda: ensemble.GradientBoostingClassifier(n_estimators=9).fit(x[:400], y[:400] > 4),
        "tree": lambda: tree.DecisionTreeClassifier(random_state=7).fit(*wine),
        "missing": lambda: ensemble.RandomForestRegressor(6, random_state=8).fit(holed(wine[0]), wine[1]),
    }  # fmt: skip
    return models[name]()


def expected_of(model: Any, rows: Any) -> Any:
    if type(model).__name__ == "GradientBoostingClassifier":
        return model.decision_function(rows)[:, None]
    if not hasattr(model, "classes_"):
        return model.predict(rows)[:, None]
    found = model.predict_proba(rows)
    return found[:, 1:] if found.shape[1] == 2 else found


@pytest.mark.parametrize("name", MODELS)
def test_scikit_learns_models_give_the_same_leaves_and_outputs(
    name: str, backend: CpuBackend, binaries: list[Binary]
) -> None:
    model, wine = fitted(name), table("wine")[0]
    rows = np.float32(wine if name == "tree" else table("digits")[0][600:733])
    rows = holed(wine) if name == "missing" else rows
    forest = TREES.of_sklearn(model)
    inputs = of(forest, rows)
    if name != "best-first":  # whose nodes are in another order; depth first they have the same numbers
        applied = model.apply(rows).reshape(len(rows), -1)
        np.testing.assert_array_equal(MADE.leaves(inputs.arrays) - forest.roots, applied)
    expected = expected_of(model, rows)
    bound = rounding(inputs)
    np.testing.assert_allclose(MADE.reference(inputs.arrays, {})["result"], expected, rtol=0, atol=bound)
    check(backend, allowed(binaries, inputs, 6), inputs, expected, bound)


def test_infinite_rows_end_where_scikit_learns_trees_say() -> None:
    model, columns = fitted("forest"), table("digits")[0].shape[1]
    rows = np.random.default_rng(3).choice(np.float32([-np.inf, 0, 5, 16, np.inf]), (200, columns))
    arrays = of(TREES.of_sklearn(model), rows).arrays
    ends = np.stack([e.tree_.apply(rows) for e in model.estimators_], axis=1)  # the model itself refuses inf
    np.testing.assert_array_equal(MADE.leaves(arrays) - arrays["roots"], ends)


def test_models_that_cannot_be_read_are_refused() -> None:
    from sklearn import ensemble

    x, y = table("digits")
    for model, reason in (
        (ensemble.RandomForestRegressor(), "no fitted forest"),
        (ensemble.RandomForestRegressor(2).fit(x[:50], x[:50, :2]), "with 2 targets"),
        (ensemble.GradientBoostingClassifier(n_estimators=1).fit(x[:99], y[:99]), "with 10 classes"),
    ):
        with pytest.raises(WorkloadError, match=reason):
            TREES.of_sklearn(model)


@settings(max_examples=400, deadline=None)
@given(st.floats(allow_nan=False), st.floats(width=32) | st.none(), st.integers(-2, 2))
def test_a_threshold_in_float32_decides_as_in_float64(
    threshold: float, value: float | None, apart: int
) -> None:
    """For any float32, and for those next to the threshold."""
    made = TREES.not_above(np.array([threshold]))[0]
    with np.errstate(over="ignore"):
        x = np.float32(threshold if value is None else value)
        for _ in range(abs(apart)):
            x = np.nextafter(x, np.float32(np.copysign(np.inf, apart)))
    assert (x <= made) == (float(x) <= threshold)


# ---- random trees, against a walk in Python


@st.composite
def trees(draw: st.DrawFn, features: int, outputs: int) -> Any:
    """A tree of up to 12 splits whose thresholds repeat; whole numbers as values, so that sums are exact."""
    smaller, larger, leaves = [-1], [-1], [0]
    for _ in range(draw(st.integers(0, 12))):
        node = leaves.pop(draw(st.integers(0, len(leaves) - 1)))
        smaller[node], larger[node] = len(smaller), len(smaller) + 1
        leaves += [smaller[node], larger[node]]
        smaller += [-1, -1]
        larger += [-1, -1]
    count = len(smaller)

    def each(values: Any) -> Any:
        return draw(st.lists(values, min_size=count, max_size=count))

    return TREES.Tree(
        smaller=np.array(smaller), larger=np.array(larger), feature=np.array(each(st.integers(0, features - 1))),
        threshold=np.array(each(st.sampled_from([-1e300, 0.0, 1.0, 1.1, 1.5, 1e-50])), np.float64),
        nan_smaller=np.array(each(st.booleans())), visits=np.array(each(st.integers(0, 5))),
        values=np.array(each(st.lists(st.integers(-99, 99), min_size=outputs, max_size=outputs)), np.float64),
    )  # fmt: skip


@st.composite
def cases(draw: st.DrawFn, fewest: int = 1) -> tuple[list[Any], Any, Any]:
    features, outputs = draw(st.integers(1, 3)), draw(st.sampled_from([1, 2, 3, 17]))
    members = draw(st.lists(trees(features, outputs), min_size=fewest, max_size=9))
    cells = st.lists(st.sampled_from([*EXTREMES, 1.1, -7.0]), min_size=features, max_size=features)
    rows = np.array(draw(st.lists(cells, min_size=1, max_size=5)), np.float32)
    return members, np.arange(outputs, dtype=np.float64), rows


def walked(members: list[Any], base: Any, rows: Any) -> Any:
    """In float64, as scikit-learn says it."""
    total = np.tile(base, (len(rows), 1))
    for i, row in enumerate(rows):
        for member in members:
            node = 0
            while member.smaller[node] >= 0:
                cell = float(row[member.feature[node]])
                left = member.nan_smaller[node] if np.isnan(cell) else cell <= member.threshold[node]
                node = int((member.smaller if left else member.larger)[node])
            total[i] += member.values[node]
    return total


@settings(max_examples=25, deadline=None)
@given(case=cases())
def test_random_trees_give_what_a_walk_gives(backend: CpuBackend, binaries: list[Binary], case: Any) -> None:
    members, base, rows = case
    inputs = of(TREES.forest_of(members, base, rows.shape[1]), rows)
    expected = walked(members, base, rows)
    np.testing.assert_array_equal(MADE.reference(inputs.arrays, {})["result"], expected)
    check(backend, allowed(binaries, inputs), inputs, expected, 0)


def test_every_chosen_configuration_on_more_rows_than_a_block_has(
    backend: CpuBackend, binaries: list[Binary]
) -> None:
    for parameters in ({"forest": "digits-deep", "trees": 9}, {"forest": "cancer-many", "trees": 70}):
        made = MADE.inputs({**parameters, "rows": 517, "seed": 1}, Path())
        scalars = {name: made.pop(name) for name in ("reach", "magnitude")}
        inputs = bind(FAMILY, made, {}, scalars)
        expected = MADE.reference(made, {})["result"]
        check(backend, allowed(binaries, inputs), inputs, expected, rounding(inputs))


def test_a_leaf_keeps_its_bits(backend: CpuBackend, binaries: list[Binary]) -> None:
    """One tree with as many leaves as leaf_values has rows: the numbers are denormal if they are read as floats."""
    from sklearn import tree

    model = tree.DecisionTreeRegressor().fit(np.arange(300)[:, None], np.arange(300))
    inputs = of(TREES.of_sklearn(model), np.arange(300)[::-1, None])
    expected = np.arange(300)[::-1, None]
    check(backend, allowed(binaries, inputs, 3), inputs, expected, 0)


# ---- orders


def orders_of(forest: Any) -> dict[str, np.ndarray]:
    nodes = STORAGE.arrays_of(forest, np.zeros((1, forest.features)))["nodes"]
    found: dict[str, np.ndarray] = STORAGE.orders_of(nodes, forest.roots)
    for name in found.keys() - {"depth_first"}:
        declared: Any = FAMILY.orders["order", name]
        made = declared.permutation({"nodes": nodes, "roots": forest.roots}, "node", len(nodes))
        np.testing.assert_array_equal(made, found[name])
    return found


@settings(max_examples=60, deadline=None)
@given(cases())
def test_orders_keep_every_node_and_what_they_promise(case: Any) -> None:
    members, base, rows = case
    forest = TREES.forest_of(members, base, rows.shape[1])
    tree_of = np.searchsorted(forest.roots, np.arange(len(forest.feature)), "right")
    inner = np.flatnonzero(forest.inner)
    smaller, larger = forest.smaller[inner], forest.larger[inner]
    orders = orders_of(forest)
    assert set(orders) == set(FAMILY.space.policy("order").values)
    for name, order in orders.items():
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        assert sorted(order) == list(range(len(order)))
        assert (np.diff(tree_of[order]) >= 0).all() and (place[forest.roots] == forest.roots).all()
        if name == "hot_first":
            hotter = np.where(forest.visits[larger] > forest.visits[smaller], larger, smaller)
            assert (place[hotter] == place[inner] + 1).all()
        elif name == "depth_first":
            assert (place[smaller] == place[inner] + 1).all()
        else:
            assert (place[larger] == place[smaller] + 1).all() and (place[smaller] > place[inner]).all()
        if name == "breadth_first":
            depth = forest.depth[order]
            assert all((np.diff(depth[tree_of[order] == t]) >= 0).all() for t in set(tree_of))


def complete(levels: int) -> Any:
    count = 2**levels - 1
    smaller = np.array([2 * i + 1 if 2 * i + 1 < count else -1 for i in range(count)])
    numbers = np.zeros(count, np.int64)
    return TREES.Tree(
        smaller=smaller, larger=np.where(smaller < 0, -1, smaller + 1), feature=numbers,
        threshold=numbers + 0.5, nan_smaller=numbers > 0, visits=numbers, values=numbers[:, None] * 1.0,
    )  # fmt: skip


def test_van_emde_boas_of_15_nodes_is_the_textbook_one() -> None:
    """The upper two levels, then the four subtrees of three nodes; siblings side by side."""
    order = orders_of(TREES.forest_of([complete(4)], np.zeros(1), 1))["van_emde_boas"]
    assert order.tolist() == [0, 1, 8, 2, 5, 3, 4, 6, 7, 9, 12, 10, 11, 13, 14]


# ---- inputs, files, README


def test_what_a_compact_node_cannot_hold_excludes_it() -> None:
    names = {"reach": 1 << 20, "feature": 3, "output": 1, "tree": 1}
    compact = FAMILY.space.configuration("form=compact")
    assert "20 bits" in FAMILY.space.explain_exclusion({**names, **compact})
    assert "20 bits" in FAMILY.space.explain_exclusion({**names, "reach": 9, "feature": 1025, **compact})
    assert not FAMILY.space.explain_exclusion({**names, "reach": 9, **compact})
    far = TREES.forest_of([complete(2)], np.zeros(1), 5000)
    far.feature[0] = 4000
    made = STORAGE.arrays_of(far, np.zeros((1, 5000)))
    assert not made["compact_hot_first"]["word"].any()


def test_inputs_that_cannot_be_made_are_refused() -> None:
    for parameters, reason in (
        ({"forest": "wine-few"}, "give forest, a name, and rows"),
        ({"forest": "wine-few", "rows": 0}, "give forest, a name, and rows"),
        ({"forest": "oak", "rows": 3}, "there is no forest oak: there are cancer-many"),
    ):
        with pytest.raises(WorkloadError, match=reason):
            MADE.inputs(parameters, Path())
    forest, rows = TREES.load(MADE.FORESTS / "wine-few.npz")
    with pytest.raises(WorkloadError, match="takes at least one, of 13 numbers"):
        STORAGE.arrays_of(forest, rows[:, :5])


def test_the_rows_of_a_workload_are_mixed_from_those_of_its_data_set() -> None:
    rows = MADE.inputs({"forest": "wine-few", "rows": 4000, "seed": 5}, Path())["rows"]
    _, known = TREES.load(MADE.FORESTS / "wine-few.npz")
    assert all(np.isin(rows[:, k], known[:, k]).all() for k in range(known.shape[1]))
    own = (rows[:, None, :] == known[None]).sum(axis=2).max(axis=1)  # from one row
    assert 0.7 * 13 < own.mean() < 0.85 * 13
    again = MADE.inputs({"forest": "wine-few", "rows": 4000, "seed": 5}, Path())["rows"]
    np.testing.assert_array_equal(rows, again)


FORESTS = sorted(MADE.FORESTS.glob("*.npz"))


def test_the_forests_are_small_files_that_workloads_name() -> None:
    assert sum(path.stat().st_size for path in FORESTS) < 200_000
    named = [yaml.safe_load(path.read_text()) for path in (FAMILY.folder / "workloads").glob("*.yaml")]
    assert {found["parameters"]["forest"] for found in named} == {path.stem for path in FORESTS}


@pytest.mark.parametrize("path", FORESTS, ids=lambda path: path.stem)
def test_a_forest_is_the_same_when_it_was_written_and_read(path: Path, tmp_path: Path) -> None:
    forest, rows = TREES.load(path)
    TREES.save(tmp_path / "again.npz", forest, rows)
    again, same = TREES.load(tmp_path / "again.npz")
    np.testing.assert_array_equal(rows, same)
    for name in TREES.Forest.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(forest, name), getattr(again, name), err_msg=name)


def test_train_makes_the_forest_that_ships() -> None:
    train: Any = import_module(f"{MADE.__name__}.train")
    data, model = train.models()["wine-few"]
    x, y = table(data)
    trained = TREES.of_sklearn(model.fit(np.float32(x), y))
    shipped, rows = TREES.load(MADE.FORESTS / "wine-few.npz")
    for name in TREES.Forest.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(trained, name), getattr(shipped, name), err_msg=name)
    found = MADE.reference(of(shipped, rows).arrays, {})["result"]
    np.testing.assert_allclose(found, model.predict_proba(rows), rtol=0, atol=1e-6)
