"""What holds for the README and the sources of any example: its diff, its table of policies, its program."""

import difflib
import re
import subprocess
from collections.abc import Collection
from functools import cache
from pathlib import Path

import pytest

from autotune.compile.batches import compile_batch
from autotune.compile.cache import Cache
from autotune.compile.nvcc import find_nvcc
from autotune.compile.toolchain import Compiled
from autotune.compile.variant import Variant, batch
from autotune.declaration.family import Family, load_family
from autotune.files import include_dir

EXAMPLES = Path(__file__).parents[2] / "examples"

# Lines of lookup's plain kernel that its tunable source has outside of it.
LOOKUP = "  const unsigned none = 0xFFFFFFFFu;"


@cache
def example(name: str) -> Family:
    return load_family(str(EXAMPLES / name))


def readme(family: Family) -> str:
    return (family.folder / "README.md").read_text()


def fenced(family: Family, language: str) -> str:
    """The only block of the README in that language."""
    (block,) = re.findall(rf"^```{language}\n(.*?)^```$", readme(family), re.MULTILINE | re.DOTALL)
    return str(block)


@pytest.mark.parametrize(
    ("name", "moved"),
    [("bilateral", ()), ("forest", ()), ("lattice_boltzmann", ()), ("lookup", (LOOKUP,)), ("stencil", ())],
)
def test_the_diff_is_of_the_two_sources(name: str, moved: Collection[str]) -> None:
    """The diff's lines are those of plain.cu without the new ones and those of the tunable source without the old ones;
    the old ones in order, since they are the whole kernel, but for those that were ``moved`` out of it."""
    family = example(name)
    plain = (family.folder / "plain.cu").read_text().splitlines()
    tunable = [line.strip() for line in family.source.read_text().splitlines()]
    lines = fenced(family, "diff").splitlines()
    was = [line[1:] for line in lines if line[0] in " -"]
    body = [line for line in plain[plain.index(was[0]) :] if line not in moved]
    assert was == body[: len(was)] and body[len(was) :] == ["}"]
    for line in lines:
        if line[0] in " +":
            assert line[1:].strip() in tunable, line


@pytest.mark.parametrize("name", ["nbody", "spmv"])
def test_the_diff_is_all_of_the_two_sources(name: str) -> None:
    files = ("plain.cu", f"{name}.cu")
    plain, tunable = ((EXAMPLES / name / file).read_text().splitlines(keepends=True) for file in files)
    diff = "".join(difflib.unified_diff(plain, tunable, *files))
    assert f"```diff\n{diff}```\n" in readme(example(name))


@pytest.mark.parametrize(
    "name", ["bilateral", "forest", "hash_grid", "lattice_boltzmann", "nbody", "recursive_filter", "spmv"]
)
def test_every_policy_is_named_with_its_values(name: str) -> None:
    family = example(name)
    text = readme(family)
    for policy in family.space.policies:
        values = ", ".join(map(str, policy.values))
        assert f"| `{policy.name}` | {values} |" in text
    assert f"{len(family.space.configurations())} configurations" in text


@pytest.mark.parametrize(
    "name",
    [
        "bilateral",
        "forest",
        pytest.param("hash_grid", marks=pytest.mark.filterwarnings("ignore:running on the cpu")),
        "lattice_boltzmann",
        "lookup",
        "recursive_filter",
        "stencil",
    ],
)
def test_the_program_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES.parent)
    with pytest.warns(UserWarning, match="no usable policy file"):
        exec(compile(fenced(example(name), "python"), "README.md", "exec"), {})


@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("name", "file"),
    [(name, "plain.cu") for name in ("nbody", "spmv")]
    + [
        (name, file)
        for name in (
            "bilateral",
            "forest",
            "hash_grid",
            "lattice_boltzmann",
            "lookup",
            "recursive_filter",
            "stencil",
        )
        for file in ("plain.cu", f"{name}.cu")
    ],
)
def test_a_source_compiles_alone(name: str, file: str, tmp_path: Path) -> None:
    """The plain kernel without the layout library, which it knows nothing of."""
    include = [] if file == "plain.cu" else [f"-I{include_dir()}"]
    command = [str(find_nvcc()), "-std=c++17", "-arch=sm_90", "-Werror", "all-warnings", *include, "-cubin"]
    made = tmp_path / "x.cubin"
    subprocess.run([*command, "-o", str(made), str(EXAMPLES / name / file)], check=True, capture_output=True)
    assert made.stat().st_size > 0


@pytest.mark.nvrtc
@pytest.mark.parametrize("name", ["nbody", "spmv"])
def test_every_kind_compiles_for_a_gpu(name: str, tmp_path: Path) -> None:
    from autotune.compile.nvrtc import Nvrtc

    family = example(name)
    variants = tuple(
        Variant(family, configuration, ()) for configuration in family.space.configurations()[::7]
    )
    built = compile_batch(batch(family, variants), Nvrtc("sm_90"), Cache(tmp_path))
    assert [b for b in built if not isinstance(b, Compiled)] == []
