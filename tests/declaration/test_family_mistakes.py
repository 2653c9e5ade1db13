"""Every mistake in a declaration is named with its place and with what is allowed."""

from pathlib import Path

import pytest
from demo_family import Change, at, load, refusal

from autotune.errors import AutotuneError

# -- one mistake each -------------------------------------------------------------------------------------

MISTAKES: list[tuple[str, Change, list[str]]] = [
    (
        "unknown argument",
        at("kernels", "demo", "arguments", value=["x", "tre"]),
        ["unknown argument 'tre' in family demo: kernel demo; did you mean 'tree'?", "x, tree, y, limit"],
    ),
    (
        "unknown extent",
        at("data", "y", "shape", value=["halv"]),
        ["unknown extent 'halv' in family demo: data y; did you mean 'half'?"],
    ),
    *(
        (
            f"compile option {option!r}",
            at("compile_options", value=[option]),
            [
                f"family demo: compile_options: {option!r} is not allowed",
                "-DNAME, -DNAME=VALUE",
                "-maxrregcount=N",
            ],
        )
        for option in (
            "-ccbin=./evil",
            "--pre-include=secret",
            "-Xcompiler=-fplugin=x.so",
            "-DX=`touch x`",
            "-D$(touch x)",
            "-O3\n",
            "-o/tmp/x",
            "@file",
            "--run",
            "-D",
            "-Xptxas=--output-file=x",
            "-I/tmp",
            "-include=x",
            "--options-file=x",
            '-DX="y"',
            "-DX=1 -o x",
            "-D__global__=__attribute__((constructor))",
            "",
        )
    ),
    *(
        (
            f"option value {value!r}",
            at("options", "mode", value={"values": [value, "y"], "default": "y"}),
            ["family demo: option mode: values", "must be distinct words (letters, digits, _ . + -)"],
        )
        for value in ("x\n", "x; } void f() {", "")
    ),
    (
        "extent bound by nothing",
        at("extents", "k", value="what it counts"),
        ["extent k is in no input's shape: give it a value"],
    ),
    (
        "unknown name in an extent",
        at("extents", "half", value={"value": "nn // 2"}),
        ["family demo: extent half: unknown name 'nn' in 'nn // 2'; did you mean 'n'?"],
    ),
    (
        "link to an unknown extent",
        at("data", "tree", "fields", "next", value={"type": "int32", "link": "nodes"}),
        ["unknown extent 'nodes' in family demo: data tree", "allowed: m, n, half"],
    ),
    (
        "misspelt policy in a constraint",
        at("constraints", value=[{"require": "memroy == 'global'", "reason": "r"}]),
        [
            "family demo: constraint: unknown name 'memroy'",
            "did you mean 'memory'?",
            "allowed: block, double",
        ],
    ),
    (
        "misspelt name in a grid",
        at("kernels", "demo", "grid", value=["ceil_div(n, blok)"]),
        ["family demo: kernel demo: grid: unknown name 'blok'", "did you mean 'block'?"],
    ),
    (
        "misspelt name in zero",
        at("data", "y", "zero", value="mod == 'fast'"),
        ["family demo: data y: zero: unknown name 'mod'", "did you mean 'mode'?"],
    ),
    (
        "misspelt name in used",
        at("data", "x", "used", value="mod == 'fast'"),
        ["family demo: data x: used: unknown name 'mod'", "did you mean 'mode'?"],
    ),
    (
        "used on an output",
        at("data", "y", "used", value="mode == 'fast'"),
        ["family demo: data y: used is for inputs and plain views, and this is output"],
    ),
    (
        "misspelt name in a scalar",
        at("scalars", "double", "value", value="2 * limt"),
        ["family demo: scalar double: unknown name 'limt'", "did you mean 'limit'?"],
    ),
    (
        "a number of a launch that nothing gives",
        at("launch", value={"first": {"type": "int32"}}),
        ["family demo: launch: first needs a default or a value, since no caller gives it"],
    ),
    (
        "a scalar that is of a launch, too",
        at("launch", value={"limit": {"type": "int32", "default": 1}}),
        ["family demo: the name 'limit' is used twice"],
    ),
    (
        "misspelt name in bytes",
        at("bytes", value="4 * nn"),
        ["family demo: bytes: unknown name 'nn'"],
    ),
    (
        "default not in values",
        at("policies", "block", "default", value=96),
        ["unknown default '96' in family demo: policy block (allowed: 64, 128)"],
    ),
    (
        "option default not in values",
        at("options", "mode", "default", value="exat"),
        ["unknown default 'exat' in family demo: option mode; did you mean 'exact'?"],
    ),
    (
        "values that print alike",
        at("policies", "block", value={"values": [64, "64"], "default": 64}),
        ["family demo: policy block: values ['64', '64'] must be distinct words"],
    ),
    (
        "value that an id cannot hold",
        at("policies", "block", value={"values": ["a,b"], "default": "a,b"}),
        ["family demo: policy block: values ['a,b'] must be distinct words (letters, digits, _ . + -)"],
    ),
    (
        "duplicate name across groups",
        at("scalars", "block", value={"type": "int32", "default": 1}),
        ["family demo: the name 'block' is used twice; extents, options, scalars, data, shared, structs, "],
    ),
    (
        "preset with an unknown policy",
        at("presets", "tex", "set", value={"memry": "texture"}),
        ["family demo: preset tex: unknown policy 'memry'; did you mean 'memory'? (allowed: memory, block)"],
    ),
    (
        "preset with an unknown value",
        at("presets", "tex", "set", value={"block": 65}),
        ["family demo: preset tex: unknown value of policy block '65' (allowed: 64, 128)"],
    ),
    (
        "preset of an unknown preset",
        at("presets", "both", value={"presets": ["tex", "wid"]}),
        ["unknown preset 'wid' in family demo: preset both; did you mean 'wide'? (allowed: tex, wide)"],
    ),
    (
        "preset that nothing would read",
        at("presets", "full", value={"set": {"block": 64}}),
        ["family demo: preset full: every family has one of that name"],
    ),
    (
        "preset that is two things",
        at("presets", "both", value={"presets": ["tex"], "set": {"block": 64}}),
        ["family demo: preset both: give either presets, or set and all"],
    ),
    (
        "excluded preset",
        at("presets", "tex", "set", value={"memory": "texture"}),
        ["family demo: preset 'tex': no configuration is left", "textures want small blocks"],
    ),
    (
        "excluded defaults",
        at("policies", "memory", "default", value="texture"),
        [
            "family demo: the defaults (block=128,memory=texture) break a constraint: textures want small blocks"
        ],
    ),
    (
        "reference that is no configuration",
        at("reference", value="contrl"),
        ["family demo: unknown preset 'contrl'; did you mean 'control'?"],
    ),
    (
        "missing source file",
        at("source", value="dem.cu"),
        ["family demo: source: ", "dem.cu is not there: write it, or correct the name"],
    ),
    (
        "unknown key",
        at("polices", value={}),
        ["family.yaml: top level: unknown key 'polices'; did you mean 'policies'?"],
    ),
    (
        "schema of another version",
        at("schema", value=2),
        ["family.yaml: schema: 1 was expected"],
    ),
]


@pytest.mark.parametrize(("change", "parts"), [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES])
def test_mistake(tmp_path: Path, change: Change, parts: list[str]) -> None:
    message = refusal(tmp_path, change)
    for part in parts:
        assert part in message


@pytest.mark.parametrize(("change", "parts"), [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES])
def test_mistake_reads_alike_at_run_time(tmp_path: Path, change: Change, parts: list[str]) -> None:
    # Without the schema's check a key that is not asked for is not missed, and all else is as with it.
    checked = refusal(tmp_path, change)
    try:
        load(tmp_path, change, check=False)
    except AutotuneError as problem:
        assert str(problem) == checked
    else:
        assert "unknown key" in checked or "was expected" in checked
