"""The stencil example on the cpu device against scipy.ndimage: configurations with every value of every policy."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import ndimage

from autotune import family as families
from autotune import workload as workloads
from autotune.backends.cpu import CpuBackend
from autotune.cache import Cache, default_root
from autotune.compiler import Compiled, compile_many
from autotune.resident import Resident
from autotune.variant import Variant, batch
from autotune.workload import Inputs, bind

FAMILY = families.load(str(Path(__file__).parents[1] / "examples" / "stencil"))
MADE: Any = FAMILY.module
# Every fifth: each value of a policy is there with each value of every other that the constraints allow.
CONFIGURATIONS = FAMILY.space.configurations()[::5]


def convolved(inputs: Inputs) -> np.ndarray:
    """scipy's convolution in float64 with zero outside."""
    weights = np.zeros((3, 3, 3))
    weights[1, 1, :] = weights[1, :, 1] = weights[:, 1, 1] = inputs.scalars["side"]
    weights[1, 1, 1] = inputs.scalars["centre"]
    return ndimage.convolve(inputs.arrays["field"].astype(np.float64), weights, mode="constant")


def of(shape: tuple[int, int, int], **scalars: float) -> Inputs:
    field = np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)
    return bind(FAMILY, {"field": field}, {}, scalars)


@pytest.fixture(scope="module")
def backend() -> Iterator[CpuBackend]:
    opened = CpuBackend()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def binaries(backend: CpuBackend) -> list[tuple[Variant, Compiled]]:
    variants = tuple(Variant(FAMILY, c) for c in CONFIGURATIONS)
    chunks = compile_many(batch(FAMILY, variants), backend.toolchain(), Cache(default_root()), 2, 16)
    compiled = []
    for variant, binary in zip(variants, (c for chunk in chunks for c in chunk), strict=True):
        assert isinstance(binary, Compiled), binary
        compiled.append((variant, binary))
    return compiled


def check(backend: CpuBackend, binaries: list[tuple[Variant, Compiled]], inputs: Inputs) -> None:
    expected = convolved(inputs)
    resident = Resident(backend, inputs)
    for variant, binary in binaries:
        execution = resident.execution(variant, backend.load(binary))
        backend.fill(execution.placed["result"], 0xA5)
        execution.run()
        result = execution.restore("result", expected.shape)
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=2e-6, err_msg=variant.configuration.id)
    resident.close()


def test_the_configurations_have_every_pair_of_values_that_the_constraints_allow() -> None:
    names = [policy.name for policy in FAMILY.space.policies]

    def pairs(configurations: Any) -> set[Any]:
        return {(a, c[a], b, c[b]) for c in configurations for i, a in enumerate(names) for b in names[:i]}

    assert pairs(CONFIGURATIONS) == pairs(FAMILY.space.configurations())
    for policy in FAMILY.space.policies:
        assert {c[policy.name] for c in CONFIGURATIONS} == set(policy.values), policy.name


def test_the_ragged_workload_equals_scipy(
    backend: CpuBackend, binaries: list[tuple[Variant, Compiled]]
) -> None:
    check(backend, binaries, workloads.prepare(FAMILY, workloads.load(FAMILY, "ragged"), Path()))


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 9, 33), (17, 1, 2), (5, 3, 64)])
def test_lattices_with_thin_sides(
    backend: CpuBackend, binaries: list[tuple[Variant, Compiled]], shape: tuple[int, int, int]
) -> None:
    check(backend, binaries, of(shape, centre=-6, side=1))


def test_the_reference_equals_scipy() -> None:
    inputs = of((6, 5, 4), centre=-1.25, side=0.75)
    result = MADE.reference(inputs.arrays, inputs.scalars)["result"]
    np.testing.assert_allclose(result, convolved(inputs), rtol=1e-6, atol=1e-6)


def fenced(language: str) -> str:
    """The only block of the README in that language."""
    readme = (FAMILY.folder / "README.md").read_text()
    (block,) = re.findall(rf"^```{language}\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    return str(block)


def test_the_readmes_diff_is_of_the_two_sources() -> None:
    """Its lines are those of plain.cu without the new ones and those of the tunable source without the old ones; the
    old ones in order, since they are the whole kernel."""
    plain = (FAMILY.folder / "plain.cu").read_text().splitlines()
    tunable = [line.strip() for line in FAMILY.source.read_text().splitlines()]
    lines = fenced("diff").splitlines()
    was = [line[1:] for line in lines if line[0] in " -"]
    first = plain.index(was[0])
    constant = "  const unsigned none = 0xFFFFFFFFu;"  # of the kernel there, of the file here
    body = [line for line in plain[first:] if line != constant]
    assert was == body[: len(was)] and body[len(was) :] == ["}"]
    for line in lines:
        if line[0] in " +":
            assert line[1:].strip() in tunable, line


def test_the_readmes_program_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FAMILY.folder.parents[1])
    with pytest.warns(UserWarning, match="no usable policy file"):
        exec(compile(fenced("python"), "README.md", "exec"), {})


@pytest.mark.nvcc
@pytest.mark.parametrize("name", ["plain.cu", "stencil.cu"])
def test_the_sources_compile_alone(name: str, tmp_path: Path) -> None:
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    include = FAMILY.folder.parents[1] / "kernels" / "include"
    command = [nvcc, "-std=c++17", "-arch=sm_90", "-Werror", "all-warnings", f"-I{include}", "-cubin"]
    made = tmp_path / "x.cubin"
    subprocess.run([*command, "-o", str(made), str(FAMILY.folder / name)], check=True, capture_output=True)
    assert made.stat().st_size > 0
