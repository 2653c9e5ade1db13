"""Kernels whose arguments are one struct: its members lie where the compiler has them, on every way to a launch."""

import ctypes
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import renew_alike
import yaml
from exports import exporting
from lending import Array, loaded, make_world

from autotune.authoring.lint import lint
from autotune.cli.commands import main
from autotune.compile.cache import Cache, default_root
from autotune.compile.toolchain import Compiled
from autotune.compile.variant import Variant, default_header
from autotune.declaration.family import load_family
from autotune.declaration.workload import bind
from autotune.device.backend import Backend
from autotune.device.cpu.backend import CpuBackend
from autotune.device.execution import Execution
from autotune.device.resident import Resident, compile_module, run_each
from autotune.errors import AutotuneError

FAMILY = """\
schema: 1
family: affine
source: affine.cu
extents: {n: {type: int64}}
scalars:
  shift: {type: uint8, default: 3}
  factor: {type: float64, default: 0.5}
data:
  x: {role: input, type: float32, shape: [n]}
  weight: {role: input, type: float64, shape: [n], access: pointer}
  table: {role: input, type: int32, shape: [4]}
  y: {role: output, type: float64, shape: [n]}
  z: {role: output, type: float64, shape: [n]}
structs:
  line: [shift, x, weight, y, factor, table, n]
  two: [shift, table, z]
kernels:
  first: {arguments: line, grid: ["ceil_div(n, block_size)"], block: [block_size]}
  again: {arguments: line, grid: ["ceil_div(n, block_size)"], block: [block_size]}
  copy: {arguments: [y, z], grid: ["ceil_div(n, block_size)"], block: [block_size]}
policies:
  memory: {layout: memory, data: [x, table], values: [global, readonly, texture, constant], default: global}
  block_size: {values: [64], default: 64}
reference: control
"""
SOURCE = """\
#include "autotune/array.cuh"
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size) first(typename Policy::line a) {
  const long long i = blockIdx.x * Policy::block_size + threadIdx.x;
  if (i < a.n) a.y.store(a.factor * a.x.load(i) * a.weight[i] + a.shift + a.table.load(i % a.table.extent(0)), i);
}
template <class Policy>
__global__ void again(const typename Policy::line a) {
  const long long i = blockIdx.x * Policy::block_size + threadIdx.x;
  if (i < a.n) a.y.store(a.y.load(i) + a.shift, i);
}
template <class Policy>
__global__ void copy(typename Policy::y y, typename Policy::z z) {
  const unsigned i = blockIdx.x * Policy::block_size + threadIdx.x;
  if (i < y.extent(0)) z.store(y.load(i), i);
}
"""
WORKLOAD = """\
schema: 1
workload: small
family: affine
arrays:
  x: {random: uniform, shape: [130]}
  weight: {random: uniform, shape: [130]}
  table: {random: integers, high: 9, shape: [4]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "affine"
    (made / "workloads").mkdir(parents=True)
    (made / "family.yaml").write_text(FAMILY)
    (made / "affine.cu").write_text(SOURCE)
    (made / "workloads" / "small.yaml").write_text(WORKLOAD)
    return made


def given(seed: int = 5) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    table = np.array([7, -1, 0, 2], np.int32)
    return {"x": random.random(130, np.float32), "weight": random.random(130), "table": table}


def expected(arrays: dict[str, Any], shift: int) -> Any:
    """Of z."""
    scaled = 0.5 * arrays["x"].astype(np.float64) * arrays["weight"]
    return scaled + 2 * shift + arrays["table"][np.arange(130) % 4]


def check(folder: Path, backend: Backend) -> None:
    family, arrays = load_family(folder), given()
    inputs = bind(family, arrays, {}, {"shift": 200})
    configurations = list(family.space.configurations())
    assert len(configurations) == 4
    for found in run_each(family, configurations, inputs, backend, Cache(default_root())):
        np.testing.assert_allclose(found["z"], expected(arrays, 200), rtol=1e-14)


def test_every_configuration_finds_its_members(folder: Path) -> None:
    check(folder, CpuBackend(2))


@pytest.mark.gpu
def test_every_configuration_finds_its_members_on_a_gpu(folder: Path) -> None:
    from autotune.device.cuda.backend import CudaBackend

    with CudaBackend(0) as backend:
        check(folder, backend)
    with loaded(folder) as kernel:  # a call that is made ready, and its addresses changed
        for seed in range(3):
            found = kernel(**given(seed))["z"]
            np.testing.assert_allclose(found, expected(given(seed), 3), rtol=1e-14)


def test_the_next_call_only_changes_addresses_in_the_struct(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world(monkeypatch)
    with loaded(folder) as kernel:
        for seed in range(3):
            arrays = {name: Array(array) for name, array in given(seed).items()}
            found = kernel(**arrays)["z"].memory
            np.testing.assert_allclose(found, expected(given(seed), 3), rtol=1e-14)
    assert world.gpu.seen == ["bound"]  # nothing was placed, nothing copied


NUMBERS = {
    "shift": ctypes.c_ubyte,
    "weight": ctypes.c_void_p,
    "factor": ctypes.c_double,
    "n": ctypes.c_longlong,
}


def line(execution: Execution) -> type[ctypes.Structure]:
    """The struct as this platform's C compilers lay it out; accessors are 8-aligned."""

    class Line(ctypes.Structure):
        _fields_ = tuple(
            (name, NUMBERS.get(name) or ctypes.c_ulonglong * (len(execution.placed[name].argument) // 8))
            for name in execution.variant.family.kernels["first"].arguments
        )

    return Line


@pytest.fixture
def execution(folder: Path) -> Execution:
    family, backend = load_family(folder), CpuBackend(1)
    inputs = bind(family, given(), {}, {})
    variant = Variant.make(family, family.space.control, inputs.options)
    module = compile_module(backend, Cache(default_root()), variant)
    return Resident(backend, inputs).execution(variant, module)


def test_a_launch_knows_where_addresses_are(execution: Execution) -> None:
    kind, (first, again, copied) = line(execution), execution.launches
    arrays = ("x", "weight", "y", "table")
    places = tuple((name, 0, getattr(kind, name).offset) for name in arrays)
    assert first.addresses == again.addresses == places
    assert copied.addresses == (("y", 0, 0), ("z", 1, 0))
    (argument,) = first.arguments
    assert len(argument) == ctypes.sizeof(kind)
    for name, _, byte in first.addresses:
        assert argument[byte : byte + 8] == execution.placed[name].argument[:8]
    assert copied.arguments[0] == execution.placed["y"].argument
    made = kind.from_buffer_copy(argument)
    assert (made.shift, made.factor, made.n) == (3, 0.5, 130)


MISTAKES = [
    ("arguments: line", "arguments: lime", "unknown struct 'lime' in family affine: kernel .*did you mean 'line'"),
    ("[shift, x,", "[shift, ex,", "unknown argument 'ex' in family affine: kernel first"),
    ("  line:", "  y:", "the name 'y' is used twice; .* structs"),
    ("schema: 1", "schema: 1\nchoices: macros", "these are members of Policy, which a source with choices: macros"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "said"), MISTAKES)
def test_a_struct_that_cannot_be_is_refused(folder: Path, old: str, new: str, said: str) -> None:
    (folder / "family.yaml").write_text(FAMILY.replace(old, new))
    with pytest.raises(AutotuneError, match=said):
        load_family(folder)


def test_lint_holds_the_parameter_against_the_struct(folder: Path) -> None:
    assert not [found for found in lint(str(folder)) if found.rule.startswith("argument")]
    (folder / "affine.cu").write_text(
        SOURCE.replace("const typename Policy::line a", "typename Policy::two a")
    )
    (found,) = [found for found in lint(str(folder)) if found.rule == "argument-order"]
    assert "takes Policy::two where family.yaml passes 'line'" in found.message


def test_the_struct_is_in_the_header_once(folder: Path) -> None:
    header = default_header(load_family(folder))
    assert (
        header.count(
            "  struct line {\n    unsigned char shift;\n    Default::x x;\n    const double* weight;\n"
        )
        == 1
    )
    assert "struct two" not in header  # no kernel takes it
    assert "template __global__ void first<Default>(Default::line);\n" in header
    assert "template __global__ void copy<Default>(Default::y, Default::z);\n" in header


def test_an_export_hands_over_the_struct(folder: Path, tmp_path: Path) -> None:
    content = {
        "schema": 2, "family": "affine", "default": {"block_size": 64, "memory": "global"}, "entries": {},
        "device": {"kind": "cuda", "name": "NVIDIA H200", "compute_capability": "9.0"},
    }  # fmt: skip
    policies = tmp_path / "policies" / "affine"
    policies.mkdir(parents=True)
    (policies / "nvidia-h200.yaml").write_text(yaml.safe_dump(content))
    out = tmp_path / "out"
    assert main(exporting(folder, policies.parent, out, device="nvidia-h200")) == 0
    text = "".join(path.read_text() for path in sorted(out.rglob("affine_*.cu*")))
    assert text.count("typename Policy::line{static_cast<unsigned char>(v.shift), ") == 2
    ((name, inside),) = [
        (part.split(" {\n", 1)[0], part) for part in text.split("\nstruct ")[1:] if "struct line" in part
    ]
    assert f"{name}::x x;\n" in inside


def parameter(number: int, offset: int, size: int) -> bytes:
    """An attribute of a kernel in a cubin."""
    return struct.pack("<BBHIHHI", 4, renew_alike.PARAMETER, 12, 0, number, offset, size << 18)


def test_members_count_as_arguments_of_a_cubin(execution: Execution) -> None:
    kind, variant = line(execution), execution.variant
    whole = ctypes.sizeof(kind)
    expected = renew_alike.parameters(variant, variant.family.kernels["first"])
    told = struct.pack("<BBHIHH", 4, renew_alike.PARAMETERS, 8, 0, 0x210, whole) + parameter(0, 0, whole)
    places = renew_alike.argument_places(told, expected)
    members = {name: getattr(kind, name) for name in variant.family.kernels["first"].arguments}
    assert places == {name: [0x210 + member.offset, member.size] for name, member in members.items()}
    plain = renew_alike.parameters(variant, variant.family.kernels["copy"])
    both = told[:12] + parameter(1, 24, 24) + parameter(0, 0, 24)
    assert renew_alike.argument_places(both, plain) == {"y": [0x210, 24], "z": [0x228, 24]}
    with pytest.raises(ValueError, match=f"a struct of 96 bytes, which the host makes of {whole} bytes"):
        renew_alike.argument_places(told[:12] + parameter(0, 0, 96), expected)


@pytest.mark.nvrtc
def test_the_compiler_has_the_same_struct(folder: Path, tmp_path: Path) -> None:
    from autotune.compile.batches import compile_one
    from autotune.compile.nvrtc import Nvrtc
    from autotune.compile.variant import batch

    family = load_family(folder)
    variant = Variant.make(family, family.space.control, {})
    compiled: Compiled = compile_one(batch(family, (variant,)), Nvrtc("sm_90"), Cache(tmp_path), "")
    code = renew_alike.machine_code(variant, compiled)  # raises where sizes differ
    names = [name.partition(".")[0] for name in code["arguments"]["first"]]
    assert list(dict.fromkeys(names)) == list(family.kernels["first"].arguments)
