"""The tuned kernel beside the plain one and nvForest, in one run.

    autotune sweep ./examples/forest --workload digits-deep --device cuda
    python examples/forest/compare.py --workload digits-deep --out compare-forest.csv

Needs a GPU, PyCUDA and cupy; nvForest (nvforest-cu13, with treelite) is left out, with a word, where it is not
installed. It gets the same float32 forest through treelite's model builder, tries its three layouts and six sizes of
chunks on the very rows (its `optimize`), and is timed twice: its call by the host's clock, since it waits for the
result, beside a call of the tuned kernel that is given new rows and waits, too; and what its calls run on the device,
by torch's profiler. All results are compared with the float64 sum first; how the other times are taken is said in
comparison.py.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from autotune.family import Inputs

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # where comparison.py lies
from comparison import Way, compare, plain_way, waited  # type: ignore[import-not-found,unused-ignore]

FOLDER = Path(__file__).resolve().parent
BLOCK = 256
LEAF, NAN_SMALLER = np.uint32(1 << 31), np.uint32(1 << 30)  # as in trees.py
OPTIMIZE_S = 0.4  # what nvForest may take to choose; its own default is 0.2


def plain(inputs: Inputs) -> Way:
    """plain.cu as it is."""
    cupy = import_module("cupy")
    arrays = inputs.arrays
    nodes = cupy.asarray(arrays["nodes"].view(np.uint32))
    roots, leaf_values, base, rows = (
        cupy.asarray(arrays[name]) for name in ("roots", "leaf_values", "base", "rows")
    )
    (count, features), outputs = rows.shape, base.size
    result = cupy.empty((count, outputs), np.float32)
    grid, given = (
        (-(-count // BLOCK),),
        (nodes, roots, np.uint32(roots.size), leaf_values, base, np.uint32(outputs), rows, np.uint32(features),
         result, np.uint32(count)),
    )  # fmt: skip
    return plain_way(FOLDER, "forest", grid, (BLOCK,), given, result)


def treelite_model(inputs: Inputs) -> Any:
    """The forest as treelite has it, with float32 thresholds and leaves; its outputs are sums, as ours."""
    builder = import_module("treelite.model_builder")
    nodes, roots, leaf_values, base = (
        inputs.arrays[name] for name in ("nodes", "roots", "leaf_values", "base")
    )
    outputs, trees = base.size, roots.size
    single = outputs == 1
    model = builder.ModelBuilder(
        threshold_type="float32",
        leaf_output_type="float32",
        metadata=builder.Metadata(
            num_feature=inputs.arrays["rows"].shape[1],
            task_type="kRegressor" if single else "kMultiClf",
            average_tree_output=False,
            num_target=1,
            num_class=[outputs],
            leaf_vector_shape=(1, outputs),
        ),
        tree_annotation=builder.TreeAnnotation(
            num_tree=trees, target_id=[0] * trees, class_id=[0 if single else -1] * trees
        ),
        postprocessor=builder.PostProcessorFunc(name="identity" if single else "identity_multiclass"),
        base_scores=base.tolist(),
    )
    bounds = [*roots.tolist(), len(nodes)]
    floats = nodes["leaf"].view(np.float32)
    for begin, end in pairwise(bounds):
        model.start_tree()
        for at in range(begin, end):
            node = nodes[at]
            model.start_node(at - begin)
            if node["word"] & LEAF:
                model.leaf(float(floats[at]) if single else leaf_values[node["leaf"]].tolist())
            else:
                model.numerical_test(
                    feature_id=int(node["word"] & (NAN_SMALLER - 1)),
                    threshold=float(node["threshold"]),
                    default_left=bool(node["word"] & NAN_SMALLER),
                    opname="<=",
                    left_child_key=int(node["smaller"]) - begin,
                    right_child_key=int(node["larger"]) - begin,
                )
            model.end_node()
        model.end_tree()
    return model.commit()


@dataclass(frozen=True)
class Optimized:
    """nvForest with its best layout and chunk for ``inputs``, as ``chosen`` says."""

    inputs: Inputs
    call: Callable[[], Any]
    result: Callable[[], Any]
    chosen: str


_last: list[Optimized] = []  # two ways ask for the same, one after the other


def optimized(inputs: Inputs) -> Optimized:
    if not _last or _last[0].inputs is not inputs:
        _last[:] = [nvforest(inputs)]
    return _last[0]


def nvforest(inputs: Inputs) -> Optimized:
    cupy, library = import_module("cupy"), import_module("nvforest")
    rows = cupy.asarray(inputs.arrays["rows"])
    shape = (len(rows), inputs.arrays["base"].size)
    method = "predict_proba" if shape[1] > 1 else "predict"
    found = library.load_from_treelite_model(treelite_model(inputs), device="gpu", precision="single")
    found = found.optimize(data=rows, timeout=OPTIMIZE_S, predict_method=method)
    chosen = f"{library.__version__}, {found.layout}, chunks of {found.default_chunk_size}"

    def call() -> Any:
        return getattr(found, method)(rows)

    return Optimized(inputs, call, lambda: cupy.asnumpy(call()).reshape(shape), chosen)


def by_nvforest(inputs: Inputs) -> Way:
    """A call as a program has it."""
    found = optimized(inputs)
    return Way(found.call, found.result, found.chosen, sample=waited)


def nvforest_on_device(inputs: Inputs) -> Way:
    """What the same call runs on the device."""
    found = optimized(inputs)
    torch = import_module("torch")

    def sample(call: Callable[[], Any], calls: int) -> float:
        """Milliseconds a call, without what lies between its kernels and copies."""
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
            for _ in range(calls):
                call()
            torch.cuda.synchronize()
        spent = sum(event.self_device_time_total for event in seen.key_averages())
        if not spent:
            raise RuntimeError("torch's profiler saw nothing on the device")
        return float(spent) / 1e3 / calls

    sample(found.call, 1)  # where it cannot profile this way alone is left out
    return Way(found.call, found.result, found.chosen, sample=sample)


if __name__ == "__main__":
    ways = {
        "plain.cu": plain,
        "nvForest optimize, waited for": by_nvforest,
        "nvForest optimize, device alone": nvforest_on_device,
    }
    compare(__doc__, FOLDER, ways, allowed=1e-5, anew=("rows",))
    _last.clear()  # before the interpreter takes libraries apart in its own order
