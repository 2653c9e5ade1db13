"""Trains the forests in forests/ by scikit-learn on its shipped data sets, from seeds.

    python examples/forest/train.py

Needs scikit-learn; its version (1.8.0) decides what the seeds give. 64 rows of its set go with each forest, for
workloads to be made of.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))  # so that it runs as a script
from trees import of_sklearn, save  # type: ignore[import-not-found,unused-ignore] # noqa: E402

ROWS = 64


def models() -> dict[str, tuple[str, Any]]:
    """By the forest's name: the data set, and the model that is to be fitted to it."""
    ensemble = import_module("sklearn.ensemble")
    return {
        "wine-few": ("wine", ensemble.RandomForestClassifier(10, random_state=1)),
        "cancer-shallow": (
            "breast_cancer",
            ensemble.GradientBoostingClassifier(n_estimators=100, max_depth=3, random_state=2),
        ),
        "cancer-many": ("breast_cancer", ensemble.RandomForestClassifier(370, max_depth=4, random_state=3)),
        "digits-deep": ("digits", ensemble.RandomForestClassifier(80, random_state=4)),
        "diabetes-boosted": (
            "diabetes",
            ensemble.GradientBoostingRegressor(n_estimators=250, max_depth=4, random_state=5),
        ),
        "diabetes-deep": ("diabetes", ensemble.RandomForestRegressor(35, random_state=6)),
    }


def main() -> None:
    datasets = import_module("sklearn.datasets")
    for name, (data, model) in models().items():
        x, y = getattr(datasets, f"load_{data}")(return_X_y=True)
        x = x.astype(np.float32)
        model.fit(x, y)
        chosen = np.random.default_rng(7).permutation(len(x))[:ROWS]
        forest = of_sklearn(model)
        save(FOLDER / "forests" / f"{name}.npz", forest, x[chosen])
        size = (FOLDER / "forests" / f"{name}.npz").stat().st_size
        print(
            f"{name}: {len(forest.roots)} trees, {len(forest.feature)} nodes, depth {forest.depth.max()}, {size} bytes"
        )


if __name__ == "__main__":
    main()
