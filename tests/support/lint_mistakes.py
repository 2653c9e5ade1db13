"""One mistake each in what ``autotune new mine`` writes, and what lint must say of it."""

__all__ = ["CONSTRAINTS", "MISTAKES", "POLICIES", "PYTHON", "SOURCE", "WORKLOAD", "YAML", "Mistake"]

SOURCE, YAML, PYTHON, WORKLOAD = "mine.cu", "family.yaml", "family.py", "workloads/small.yaml"

# (name, file, old, new, rule, is_error, what the line holds, what the message holds)
POLICIES = "policies:\n"
CONSTRAINTS = "tolerance: {relative: 0.00001}\n"
Mistake = tuple[str, str, str, str, str, bool, str, list[str]]
MISTAKES: list[Mistake] = [
    (
        "an argument that is not declared",
        YAML, "arguments: [items, weights, scores]", "arguments:\n      - item\n      - weights\n      - scores",
        "declaration", True, "weighted_sum:",
        ["unknown argument 'item'", "kernel weighted_sum; did you mean 'items'?", "allowed: items, weights, scores"],
    ),
    (
        "an output that no kernel takes",
        YAML, "  scores: {role", "  second: {role: output, type: int32, shape: [count]}\n  scores: {role",
        "unused-data", True, "second:", ["no kernel takes the output 'second'", "add it to a kernel's arguments"],
    ),
    (
        "a scratch array that no kernel takes",
        YAML, "  scores: {role", "  spare: {role: scratch, type: int32, shape: [count]}\n  scores: {role",
        "unused-data", False, "spare:", ["no kernel takes the scratch 'spare'"],
    ),
    (
        "a plain policy that no kernel reads",
        YAML, POLICIES, "policies:\n  unroll: {values: [1, 2], default: 1}\n",
        "unread-policy", True, "unroll:", ["Policy::unroll is not in mine.cu", "its values are the same program"],
    ),
    (
        "an order of an index that no kernel's data have",
        YAML, POLICIES, "policies:\n  batches: {layout: order, data: [batch], values: [as_given], default: as_given}\n",
        "declaration", True, "batches:", ["unknown extent 'batch' in family mine: policy batches"],
    ),
    (
        "a raw pointer as parameter",
        SOURCE, "typename Policy::weights weights", "const float* __restrict__ weights",
        "raw-pointer", True, "const float*",
        ["takes the raw pointer `const float* __restrict__ weights`", "`typename Policy::weights weights`"],
    ),
    (
        "parameters in another order",
        SOURCE, "typename Policy::items items, typename Policy::weights weights",
        "typename Policy::weights weights, typename Policy::items items",
        "argument-order", True, "weighted_sum(", ["takes Policy::weights where family.yaml passes 'items'"],
    ),
    (
        "a parameter too many",
        SOURCE, "typename Policy::scores scores)", "typename Policy::scores scores, unsigned count)",
        "argument-order", True, "arguments:", ["has 4 parameters in mine.cu and 3 arguments here"],
    ),
    (
        "a tile for another shape",
        YAML, POLICIES, "policies:\n  tiles: {layout: tiles, data: [items], values: [none, 8], default: none}\n",
        "declaration", True, "tiles:", ["tiles 8 is 1 long, and there are 2 extents (count, fields)"],
    ),
    (
        "planes of no data",
        YAML, POLICIES, "policies:\n  planes: {layout: dims, values: [1d, 2d], default: 1d}\n",
        "declaration", True, "planes:", ["layout and data go together"],
    ),
    (
        "a text with a comma and without quotes",
        YAML, "doc: threads of a block}", "doc: threads of a block, in x}",
        "declaration", True, "block_size: {values",
        ["unknown key 'in x'; a text with a comma needs quotes (allowed: compile_option, constant, data,"],
    ),
    (
        "such a text where a value has two forms",
        YAML, "  fields: numbers in one item", "  fields: {value: 16, doc: numbers in one item, side by side}",
        "declaration", True, "fields:",
        ["unknown key 'side by side'; a text with a comma needs quotes (allowed: doc, type, value)"],
    ),
    (
        "a number for an extent that is none",
        YAML, "  weights: {role: input, type: float32, shape: [fields]}",
        "  weights: {role: input, type: float32, shape: [0]}",
        "declaration", True, "weights:",
        ["data.weights.shape.0: 0 is less than the minimum of 1"],
    ),
    (
        "a constraint that nothing meets",
        YAML, CONSTRAINTS, f"constraints:\n  - require: block_size > 256\n    reason: large blocks\n{CONSTRAINTS}",
        "declaration", True, "require: block_size > 256", ["break a constraint: large blocks", "change a default"],
    ),
    (
        "constraints that together leave nothing",
        YAML, CONSTRAINTS,
        ("constraints:\n  - {require: block_size <= 128, reason: small}\n"
        f"  - {{require: block_size > 128, reason: large}}\n{CONSTRAINTS}"),
        "declaration", True, "reason: large", ["break a constraint: large", "change a default"],
    ),
    (
        "a value that no configuration has",
        YAML, CONSTRAINTS, f"constraints:\n  - {{require: block_size <= 128, reason: small}}\n{CONSTRAINTS}",
        "excluded", False, "block_size: {values", ["no configuration has block_size=256", "delete the value"],
    ),
    (
        "a constraint that has no value",
        YAML, CONSTRAINTS, f"constraints:\n  - {{require: axes > 3, reason: numbers}}\n{CONSTRAINTS}",
        "declaration", True, "constraints:", ["has no value here"],
    ),
    (
        "no reference at all",
        PYTHON, "def reference(", "def inputs_of(",
        "no-reference", True, "", ["there is no reference", "write reference(arrays, options) in family.py"],
    ),
    (
        "a key that does not exist",
        YAML, "default_workload:", "defualt_workload:",
        "declaration", True, "defualt_workload", ["unknown key", "did you mean 'default_workload'?"],
    ),
    (
        "a value of the wrong type",
        YAML, "    block: [block_size]", "    block: block_size",
        "declaration", True, "block: block_size", ["kernels.weighted_sum.block: ", "is not of type 'array'"],
    ),
    (
        "malformed YAML",
        YAML, "policies:", "policies: [",
        "declaration", True, "", ["malformed YAML"],
    ),
    (
        "what only loading sees",
        YAML, "values: [64, 128, 256], default: 128", "values: [64, 128, 256], default: 96",
        "declaration", True, "block_size: {values", ["unknown default '96'", "allowed: 64, 128, 256"],
    ),
    (
        "a source that is not there",
        YAML, "source: mine.cu", "source: other.cu",
        "declaration", True, "source: other.cu", ["source: ", "other.cu is not there"],
    ),
    (
        "Python that cannot be parsed",
        PYTHON, "def reference(", "def reference((",
        "declaration", True, "def reference((", ["correct it"],
    ),
    (
        "a header of before",
        YAML, "block_size: {values: [64, 128, 256], default: 128", "block_size: {values: [64, 128, 256], default: 64",
        "stale-header", False, "// Made by", ["show", "control --header >"],
    ),
    (
        "a default workload that is not there",
        YAML, "default_workload: small", "default_workload: smal",
        "no-workload", True, "default_workload: smal", ["did you mean 'small'?"],
    ),
    (
        "a workload with a key that does not exist",
        WORKLOAD, "arrays:", "array:",
        "workload", True, "", ["unknown key 'array'; did you mean 'arrays'?"],
    ),
    (
        "a workload of an unknown input",
        WORKLOAD, "  weights:", "  wieghts:",
        "workload", True, "wieghts", ["unknown input 'wieghts'", "did you mean 'weights'?"],
    ),
]  # fmt: skip
