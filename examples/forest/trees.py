"""A decision forest as arrays: made of one that scikit-learn trained, written to a small file and read again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import WorkloadError

LEAF = np.uint32(1 << 31)  # in `Forest.feature`; forest.cu has the same
NAN_SMALLER = np.uint32(1 << 30)

Floats = NDArray[np.float32]
Words = NDArray[np.uint32]


@dataclass(frozen=True)
class Forest:
    """Trees end to end, the nodes of each depth first: a node, the subtree of smaller values, that of larger ones.

    A row goes to ``smaller`` where its ``feature`` is at most ``threshold``, or is NaN and the feature's word has
    NAN_SMALLER. A leaf's word is LEAF, its ``leaf`` a row of ``leaf_values``, and it is both of its own children. What
    the forest gives is ``base`` + the sum of the leaves that a row ends in. ``visits`` are of the training.
    """

    roots: Words  # (trees,)
    threshold: Floats  # this and the next five: (nodes,)
    feature: Words
    smaller: Words
    larger: Words
    leaf: Words
    visits: Words
    leaf_values: Floats  # (different leaves, outputs)
    base: Floats  # (outputs,)
    features: int

    @property
    def inner(self) -> NDArray[np.bool_]:
        return np.less(self.feature, LEAF)

    @property
    def depth(self) -> NDArray[np.int64]:
        """How many nodes lie above each."""
        depth = np.zeros(len(self.feature), np.int64)
        for node in np.flatnonzero(self.inner):  # parents come first
            depth[[self.smaller[node], self.larger[node]]] = depth[node] + 1
        return depth

    def first(self, trees: int) -> "Forest":
        """Only so many trees."""
        if trees >= len(self.roots):
            return self
        end = self.roots[trees]
        parts = ("threshold", "feature", "smaller", "larger", "leaf", "visits")
        cut = {name: getattr(self, name)[:end] for name in parts}
        return Forest(
            self.roots[:trees], **cut, leaf_values=self.leaf_values, base=self.base, features=self.features
        )


def not_above(thresholds: NDArray[np.float64]) -> Floats:
    """The largest float32 that is at most each threshold. A float32 is at most a float64 just when it is at most this,
    so a tree that scikit-learn grew in float64 takes the same turns in float32."""
    with np.errstate(over="ignore"):  # what no float32 holds is an infinity
        nearest = thresholds.astype(np.float32)
        return np.where(nearest > thresholds, np.nextafter(nearest, np.float32(-np.inf)), nearest)


@dataclass(frozen=True)
class Tree:
    """One tree in any order, its root first: children by number, -1 at a leaf; a leaf's values (nodes, outputs)."""

    smaller: NDArray[np.int64]
    larger: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    nan_smaller: NDArray[np.bool_]
    visits: NDArray[np.int64]
    values: NDArray[np.float64]


def depth_first(smaller: NDArray[Any], larger: NDArray[Any], root: int = 0) -> NDArray[np.int64]:
    """The nodes below ``root``, it among them, depth first; a child of itself or of -1 is a leaf."""
    found, waiting = [], [root]
    while waiting:
        node = waiting.pop()
        found.append(node)
        if smaller[node] not in {-1, node}:
            waiting += [int(larger[node]), int(smaller[node])]
    return np.array(found, np.int64)


def forest_of(trees: Sequence[Tree], base: NDArray[np.float64], features: int) -> Forest:
    """The trees, each made depth first, their leaves' values rounded to float32, equal ones kept once."""
    parts: dict[str, list[NDArray[Any]]] = {name: [] for name in ("smaller", "larger", "leaves")}
    columns: dict[str, list[NDArray[Any]]] = {name: [] for name in ("threshold", "feature", "visits")}
    roots, start = [], 0
    for tree in trees:
        order = depth_first(tree.smaller, tree.larger)
        place = np.empty(len(tree.smaller), np.int64)
        place[order] = np.arange(start, start + len(order))
        own = place[order]
        leaf = tree.smaller[order] < 0
        for name in ("smaller", "larger"):
            parts[name].append(np.where(leaf, own, place[getattr(tree, name)[order]]))
        parts["leaves"].append(tree.values[order][leaf])
        word = tree.feature[order] | np.where(tree.nan_smaller[order], int(NAN_SMALLER), 0)
        columns["feature"].append(np.where(leaf, int(LEAF), word))
        columns["threshold"].append(np.where(leaf, np.float32(0), not_above(tree.threshold[order])))
        columns["visits"].append(tree.visits[order])
        roots.append(start)
        start += len(order)
    feature = np.concatenate(columns["feature"]).astype(np.uint32)
    values, number = np.unique(
        np.concatenate(parts["leaves"]).astype(np.float32), axis=0, return_inverse=True
    )
    leaf_number = np.zeros(start, np.uint32)
    leaf_number[(feature & LEAF) != 0] = number.reshape(-1)
    return Forest(
        roots=np.array(roots, np.uint32),
        threshold=np.concatenate(columns["threshold"]).astype(np.float32),
        feature=feature,
        smaller=np.concatenate(parts["smaller"]).astype(np.uint32),
        larger=np.concatenate(parts["larger"]).astype(np.uint32),
        leaf=leaf_number,
        visits=np.concatenate(columns["visits"]).astype(np.uint32),
        leaf_values=np.ascontiguousarray(values),
        base=np.asarray(base, np.float32),
        features=features,
    )


# ---- of scikit-learn


def _tree(model: Any, values: NDArray[np.float64]) -> Tree:
    tree = model.tree_
    # A tree that saw no NaN sends one where more of the training went; scikit-learn keeps that in the nodes.
    missing = tree.__getstate__()["nodes"]["missing_go_to_left"].astype(bool)
    return Tree(
        smaller=tree.children_left.astype(np.int64),
        larger=tree.children_right.astype(np.int64),
        feature=np.maximum(tree.feature, 0).astype(np.int64),
        threshold=tree.threshold.astype(np.float64),
        nan_smaller=missing,
        visits=np.rint(tree.weighted_n_node_samples).astype(np.int64),
        values=values,
    )


def of_sklearn(model: Any) -> Forest:
    """A fitted forest, extra trees, gradient boosting (regression, or two classes) or single tree of scikit-learn's.

    What the forest then gives is, in float32, of a regressor ``predict``; of a gradient boosting classifier
    ``decision_function``; of any other classifier ``predict_proba``, of two classes the second one's. Raises
    WorkloadError for a model of another kind or with several targets.
    """
    kind = type(model).__name__
    single = hasattr(model, "tree_")
    if not single and not hasattr(model, "estimators_"):
        raise WorkloadError(
            f"{kind} is no fitted forest: give one of scikit-learn's trees, forests or gradient boosting"
        )
    if getattr(model, "n_outputs_", 1) != 1:
        raise WorkloadError(f"{kind} with {model.n_outputs_} targets: only forests with one are read")
    members = [model] if single else list(np.ravel(model.estimators_))
    classes = getattr(model, "n_classes_", 1)
    boosted = kind.startswith("GradientBoosting")
    if boosted and classes > 2:
        raise WorkloadError(f"{kind} with {classes} classes: only two are read, whose trees have one output")
    share = model.learning_rate if boosted else 1 / len(members)
    trees = []
    for member in members:
        values = member.tree_.value[:, 0, :] * share
        if not boosted and classes == 2:
            values = values[:, 1:]
        trees.append(_tree(member, values))
    base = np.zeros(trees[0].values.shape[1])
    if boosted:
        base += model._raw_predict_init(np.zeros((1, model.n_features_in_)))[0]  # noqa: SLF001 - it has no other name
    return forest_of(trees, base, int(model.n_features_in_))


# ---- files


def save(path: Path, forest: Forest, rows: Floats) -> None:
    """The forest and some rows of its data set, for `load`; numbers that repeat are written once."""
    inner = forest.inner
    thresholds, which = np.unique(forest.threshold[inner], return_inverse=True)
    np.savez_compressed(
        path,
        inner=np.packbits(inner),
        nodes=np.uint32(len(inner)),
        feature=_narrow(forest.feature[inner] & ~NAN_SMALLER),
        nan_smaller=np.packbits((forest.feature[inner] & NAN_SMALLER) != 0),
        thresholds=thresholds,
        threshold=_narrow(which),
        leaf=_narrow(forest.leaf[~inner]),
        leaf_visits=_narrow(forest.visits[~inner]),
        leaf_values=forest.leaf_values,
        base=forest.base,
        rows=rows,
    )


def load(path: Path) -> tuple[Forest, Floats]:
    """What `save` wrote. Raises WorkloadError where there is no such file."""
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in path.parent.glob("*.npz")))
        raise WorkloadError(f"there is no forest {path.stem}: there are {known}")
    with np.load(path) as file:
        found: Mapping[str, NDArray[Any]] = {name: file[name] for name in file.files}
    rows = found["rows"]
    inner = np.unpackbits(found["inner"], count=int(found["nodes"])).astype(bool)
    own = np.arange(len(inner), dtype=np.uint32)
    threshold, leaf = np.zeros(len(inner), np.float32), np.zeros(len(inner), np.uint32)
    feature = np.full(len(inner), LEAF, np.uint32)
    threshold[inner] = found["thresholds"][found["threshold"]]
    nan = np.unpackbits(found["nan_smaller"], count=int(inner.sum())).astype(np.uint32)
    feature[inner] = found["feature"] | nan * NAN_SMALLER
    leaf[~inner] = found["leaf"]
    visits = np.zeros(len(inner), np.uint32)
    visits[~inner] = found["leaf_visits"]
    smaller, larger, roots = own.copy(), own.copy(), []
    # Depth first, the child of smaller values follows its node, and the other one what lies below that.
    below: list[int] = []  # subtrees that are whole, from the last node back
    for node in range(len(inner) - 1, -1, -1):
        if inner[node]:
            smaller[node], larger[node] = below.pop(), below.pop()
            visits[node] = visits[smaller[node]] + visits[larger[node]]
        below.append(node)
    roots = below[::-1]
    return (
        Forest(
            roots=np.array(roots, np.uint32),
            threshold=threshold,
            feature=feature,
            smaller=smaller,
            larger=larger,
            leaf=leaf,
            visits=visits,
            leaf_values=found["leaf_values"],
            base=found["base"],
            features=rows.shape[1],
        ),
        rows,
    )


def _narrow(numbers: NDArray[Any]) -> NDArray[Any]:
    """In the smallest unsigned type that holds them."""
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))
