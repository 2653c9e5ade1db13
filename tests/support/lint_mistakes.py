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
        "an order that no function makes",
        YAML, POLICIES,
        ("policies:\n  turned: {layout: order, data: [count], values: [given, plain, backward], default: plain}\n"),
        "unknown-order", True, "turned:",
        ["turned=backward is no order", "orders in family.py has none", "call the value given"],
    ),
    (
        "a block that no GPU takes",
        YAML, "    block: [block_size]", "    block: [block_size, 32]",
        "block-size", True, "block:", ["no block but of over 1024 threads", "up to 8,192 with block_size=256"],
    ),
    (
        "some blocks that no GPU takes",
        YAML, "    block: [block_size]", '    block: ["16 * block_size"]',
        "block-size", False, "block:", ["blocks of over 1024", "up to 4,096 with block_size=256", "constrain them"],
    ),
    (
        "a block that is too large whatever the policies",
        YAML, "    block: [block_size]", "    block: [2048]",
        "block-size", True, "block:", ["no block but of over 1024 threads", "(up to 2,048), which every"],
    ),
    (
        "an expression where a description is",
        YAML, "  fields: numbers in one item", "  fields: 2 * count + 1",
        "extent-text", False, "fields:", ["'2 * count + 1' looks like an expression", 'write {value: "2 * count + 1"}'],
    ),
    (
        "a tolerance for integers",
        YAML, "  scores: {role: output, type: float32", "  scores: {role: output, type: uint8",
        "exact-integers", False, "tolerance:",
        ["tolerance does not apply to scores: uint8; integers are compared exactly"],
    ),
    (
        "a raw pointer as parameter",
        SOURCE, "typename Policy::weights weights", "const float* __restrict__ weights",
        "raw-pointer", True, "const float*",
        ["takes the raw pointer `const float* __restrict__ weights`", "`typename Policy::weights weights`"],
    ),
    (
        "a pointer out of an accessor",
        SOURCE, "sum += weights.load(k) *", "sum += weights.memory.base[k] *",
        "raw-pointer", True, "weights.memory", ["policy weights_memory changes the layout of 'weights'", ".load("],
    ),
    (
        "an accessor cast to a pointer",
        SOURCE, "  float sum = 0;", "  float sum = *reinterpret_cast<const float*>(&items);",
        "raw-pointer", True, "reinterpret_cast", ["policy axes changes the layout of 'items'"],
    ),
    (
        "a pointer out of an accessor whose layout is fixed",
        SOURCE, "scores.store(sum, i)", "scores.memory.base[i] = sum",
        "raw-pointer", False, "scores.memory", ["holds only as long as no policy changes the layout of 'scores'"],
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
        "an index of threads that the block has not",
        SOURCE, "+ threadIdx.x;", "+ threadIdx.y;",
        "launch", False, "threadIdx.y",
        ["reads threadIdx.y, which is always 0", "its block in family.yaml has 1 of x, y, z", "give block its y"],
    ),
    (
        "an index of blocks that the grid has not",
        SOURCE, "= blockIdx.x *", "= blockIdx.z *",
        "launch", False, "blockIdx.z", ["reads blockIdx.z, which is always 0", "give grid its z"],
    ),
    (
        "a grid that forgets a policy",
        YAML, '"ceil_div(count, block_size)"', '"ceil_div(count, 64)"',
        "launch", False, "blockIdx.x * Policy::block_size",
        ["by Policy::block_size, and its grid in family.yaml (ceil_div(count, 64)) does not read block_size"],
    ),
    (
        "planes that no texture reads",
        YAML, POLICIES, "policies:\n  planes: {layout: dims, data: [items], values: [1d, 2d], default: 1d}\n",
        "no-effect", False, "planes:",
        ["planes=2d changes nothing for 'items' in global memory", "the same program as 1d", "delete the policy"],
    ),
    (
        "two words for one tile",
        YAML, POLICIES,
        ("policies:\n  tiles: {layout: tiles, data: [items], values: [none, 8x4, whole, small], default: none,\n"
         "    means: {whole: {count: 1}, small: {count: 8, fields: 4}}}\n"),
        "no-effect", False, "tiles:",
        ["tiles=whole stores items as tiles=none does: the same program, tried again; delete one of them"],
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
        "planes in every memory",
        YAML, POLICIES,
        ("policies:\n  items_memory: {layout: memory, data: [items], values: [global, readonly, tex], "
        "default: global, means: {tex: texture}}\n"
        "  planes: {layout: dims, data: [items], values: [line, 2d, pitched], default: 2d,\n"
        "    means: {line: 1d, pitched: 2d_pitched}}\n"),
        "no-effect", False, "planes:",
        ["planes=2d changes nothing for 'items' in global memory",
         "constrain it: planes == 'line' or items_memory == 'tex'"],
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
        "a constraint that excludes everything on a workload",
        YAML, CONSTRAINTS, f"constraints:\n  - {{require: fields < 8, reason: few fields}}\n{CONSTRAINTS}",
        "excluded", True, "", ["every configuration is excluded on it: few fields"],
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
        "no-reference", True, "", ["nothing says what is right", "write reference(arrays, options) in family.py"],
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
        "inputs that a function makes, and no small odd ones",
        PYTHON, "def reference(", "def inputs(parameters, root):\n    return {}\n\n\ndef reference(",
        "not-ragged", False, "", ["proved for the swept sizes only", "write ragged(parameters) in family.py"],
    ),
    (
        "an input of links, and no function that makes small odd ones",
        YAML, "  scores: {role", "  after: {role: input, type: uint32, link: count, shape: [count]}\n  scores: {role",
        "not-ragged", False, "after:", ["after holds links", "make them with inputs(parameters, root)"],
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
    (
        "a workload without an input",
        WORKLOAD, "  weights: {random: uniform, shape: [16], seed: 2}\n", "",
        "workload", True, "arrays:", ["input 'weights' of family mine is not given"],
    ),
    (
        "a workload with a shape that does not fit",
        WORKLOAD, "shape: [16]", "shape: [16, 1]",
        "workload", True, "weights:", ["has shape (16, 1), and (fields) is declared"],
    ),
    (
        "a workload with sizes that disagree",
        WORKLOAD, "shape: [16]", "shape: [17]",
        "workload", True, "", ["extent fields: weights gives 17", "they must agree"],
    ),
    (
        "a workload with a file that is not there",
        WORKLOAD, "weights: {random: uniform, shape: [16], seed: 2}", "weights: {npy: gone.npy}",
        "workload", True, "weights:", ["gone.npy"],
    ),
    (
        "a workload with parameters and nobody to take them",
        WORKLOAD, "arrays:\n", "parameters: {seed: 1}\narrays:\n",
        "workload", True, "parameters:", ["family.py has no inputs(parameters, root)"],
    ),
]  # fmt: skip
