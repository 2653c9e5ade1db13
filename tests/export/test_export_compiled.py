"""The exported C++ compiled: its dispatch table against Python's selection, nvcc, a GPU, and docs/guides/export.md."""

import ctypes
import os
import random
import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from exports import C_WARNINGS, WARNINGS, Exported

from autotune.cli.commands import main
from autotune.compile.nvcc import find_nvcc
from autotune.compile.variant import Variant
from autotune.declaration.family import Family
from autotune.declaration.space import Configuration
from autotune.hardware import Device, Limits
from autotune.policy.file import read_policy_file as read
from autotune.policy.selection import Policies, candidates, choose, find

# -- the dispatch table --------------------------------------------------------------------------------------

DRIVER = """
#include <cstdio>
#include <iostream>
#include "{name}_configurations.h"

int main() {{
  using namespace tuned::{name};
  tuned::Device device;
  Problem problem;
  int option = 0;
  while (std::cin >> device.capability >> device.limits.texture_1d_texels >> {reads} >> option &&
         std::getline(std::cin, device.name)) {{
    device.name.erase(0, 1);
    problem.{option} = static_cast<{option_type}>(option);
    const Choice choice = choose(problem, device);
    const Configuration& chosen = configurations()[choice.configuration];
    std::printf("%s|%s|%g|%zu", choice.rule.c_str(), choice.id.c_str(), choice.median_ms, choice.passed_over.size());
    const Values v = values(problem);
    for (const tuned::Geometry& at : chosen.geometries(v))
      std::printf("|%lld %lld %lld", static_cast<long long>(at.grid[0]), static_cast<long long>(at.block[0]),
                  static_cast<long long>(at.shared_bytes));
    for (const bool is_cleared : chosen.cleared(v)) std::printf("|%d", is_cleared);
    std::puts("");
  }}
}}
"""


def expected(
    exported: Exported, known: Policies | None, device: Device, sizes: dict[str, int], option: tuple[str, str]
) -> str:
    """What Python's selection says, as the driver prints it."""
    family, options = exported.family, dict([option])
    scalars = {"factor": 2.0, "twice": 2 * sizes.get("count", 0)} if exported.name == "shifted" else {}
    listed = candidates(family, known, {**sizes, **scalars}, options, "cuda")

    def exclusion(configuration: Configuration) -> str:
        names = {**sizes, **options, **scalars, **configuration}
        return Variant(family, configuration, (option,)).explain_exclusion(names, device.limits)

    taken, passed = choose(listed, exclusion)
    assert taken.configuration is not None
    refused = [
        c for c in passed if "measured with" not in c.refusal
    ]  # C++ leaves other options out beforehand
    names = {**sizes, **options, **scalars, **taken.configuration}
    variant = Variant(family, taken.configuration, (option,))
    found = []
    for kernel in family.kernels.values():
        geometry = variant.geometry(kernel, names)
        found.append(f"{geometry.grid[0]} {geometry.block[0]} {geometry.shared_bytes}")
    cleared = [name in family.list_cleared(names) for name in family.data]
    item = known.files[0].entries.get(taken.origin.rpartition(": ")[2]) if known else None
    median = f"{item.median_ms if item else 0:g}"
    identity = f"{taken.configuration.id}; {option[0]}={option[1]}"
    return "|".join(
        [taken.match, identity, median, str(len(refused)), *found, *(str(int(c)) for c in cleared)]
    )


def test_cpp_chooses_what_python_chooses(exported: Exported, tmp_path: Path) -> None:
    family = exported.family
    given = ("instances", "attributes") if exported.name == "allpairs" else ("count", "size")
    ((option_name, option),) = family.options.items()
    (tmp_path / "driver.cpp").write_text(
        DRIVER.format(
            name=exported.name,
            reads=" >> ".join(f"problem.{name}" for name in given),
            option=option_name,
            option_type=option_name.capitalize(),
        )
    )
    sources = ["driver.cpp", str(exported.folder / f"{exported.name}_configurations.cpp")]
    command = ["g++", *WARNINGS, f"-I{exported.folder}", "-o", "driver", *sources]
    subprocess.run(command, cwd=tmp_path, check=True)
    generator = random.Random(7)
    (path,) = exported.policies.rglob("*.yaml")
    entries = sorted(read(path).entries.values(), key=lambda e: e.workload)
    problems = []
    for _ in range(120):
        name, capability = generator.choice([(exported.device, 90), ("Other GPU", 90), (exported.device, 80)])
        texels = generator.choice([2**28, 2**28, 4096])
        sizes = [round(2 ** generator.uniform(0, 15)) for _ in given]
        if generator.random() < 0.3:  # the very sizes of an entry
            item = generator.choice(entries)
            sizes = [int(item.features[n]) for n in given]
        if exported.name == "shifted":
            sizes[1] = 16
        problems.append((name, capability, texels, sizes, generator.randrange(2)))
    text = "".join(f"{c} {t} {s[0]} {s[1]} {o} {n}\n" for n, c, t, s, o in problems)
    answers = subprocess.run(
        [tmp_path / "driver"], input=text, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert len(answers) == len(problems)
    known = cache(lambda device: find(family, device, [exported.policies])[0])
    rules = set()
    for answer, (name, capability, texels, numbers, place) in zip(answers, problems, strict=True):
        own = name if capability == 90 else "No GPU"  # a device of another architecture has another name
        device = Device(
            kind="cuda", name=own, arch=f"sm_{capability}", limits=Limits(texture_1d_texels=texels)
        )
        sizes = family.sizes(_shapes(family, given, numbers))
        chosen = (option_name, str(option.values[place]))
        told = expected(exported, known(device), device, sizes, chosen)
        assert answer == told, (name, capability, numbers)
        rules.add(answer.partition("|")[0])
    assert rules == {"exact", "nearest", "capability", "default", "control"}


def _shapes(family: Family, given: Sequence[str], numbers: Sequence[int]) -> dict[str, tuple[int, ...]]:
    known = dict(zip(given, numbers, strict=True))
    return {data.name: tuple(known[extent] for extent in data.shape) for data in family.inputs}


# -- the C interface -----------------------------------------------------------------------------------------


def test_the_c_interface_compiles(shifted: Exported, tmp_path: Path) -> None:
    """With records, a scalar, an option and an order."""
    (tmp_path / "only.c").write_text('#include "shifted_c.h"\n')
    given = ["-fsyntax-only", f"-I{shifted.folder}"]
    subprocess.run(["gcc", *C_WARNINGS, *given, str(tmp_path / "only.c")], check=True)
    subprocess.run(["g++", *WARNINGS, *given, str(shifted.folder / "shifted_c.cpp")], check=True)


# -- the compilers -------------------------------------------------------------------------------------------


def build(exported: Exported, folder: Path, arch: str) -> Path:
    """The example, compiled by the line that its README gives."""
    command = [find_nvcc(), "-std=c++17", f"-arch={arch}", f"-I{exported.folder}", f"-I{exported.folder / 'kernels'}",
               "-Xcompiler=-Wall,-Wextra,-Werror", "-o", str(folder / "example"),
               *(str(exported.folder / name) for name in (
                   f"{exported.name}_configurations.cpp", f"{exported.name}_launch.cu", "main.cu"))]  # fmt: skip
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0 and "warning" not in done.stderr, done.stderr
    return folder / "example"


@pytest.mark.nvcc
def test_nvcc_compiles_it_and_without_a_gpu_it_says_so(shifted: Exported, tmp_path: Path) -> None:
    example = build(shifted, tmp_path, "sm_90")
    done = subprocess.run(
        [example, shifted.folder / "example"],
        env=os.environ | {"CUDA_VISIBLE_DEVICES": ""},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 77
    assert done.stderr.startswith("nothing was checked: this needs a CUDA device and its driver (")
    assert "shifted_example PROPERTIES SKIP_RETURN_CODE 77" in (shifted.folder / "CMakeLists.txt").read_text()


@pytest.mark.nvcc
def test_its_cmake_project_builds_and_others_find_it_installed(allpairs: Exported, tmp_path: Path) -> None:
    """By nvcc's own line where there is no CMake."""
    if not shutil.which("cmake"):
        assert build(allpairs, tmp_path, "sm_90").stat().st_size > 0
        return
    built, prefix, program = (tmp_path / name for name in ("built", "prefix", "program"))
    succeed("-S", allpairs.folder, "-B", built, f"-DCMAKE_CUDA_COMPILER={find_nvcc()}")
    succeed("--build", built)
    assert (built / "allpairs_example").stat().st_size > 0
    succeed("--install", built, "--prefix", prefix)
    for folder in (built, allpairs.folder / "kernels"):
        assert all(str(folder) not in path.read_text() for path in prefix.rglob("*.cmake"))
    program.mkdir()
    for language, name in (("cpp", "program.cpp"), ("c", "program.c"), ("cmake", "CMakeLists.txt")):
        (program / name).write_text(block(language))
    with (program / "CMakeLists.txt").open("a") as file:
        file.write(BOUND)
    (program / "bound.c").write_text("typedef int something;\n")
    told = (f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCUDAToolkit_ROOT={Path(find_nvcc()).resolve().parents[1]}")
    succeed("-S", program, "-B", program, *told)
    succeed("--build", program, "--parallel", "2")
    assert (program / "program").stat().st_size > 0
    hidden = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([program / "program_in_c"], env=hidden, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")  # TUNED_ALLPAIRS_FAILED, where C++ throws
    assert done.stderr.startswith("cudaGetDevice: ")
    no_exception_leaves(ctypes.CDLL(str(program / "libbound.so")))


BOUND = """
add_library(bound SHARED bound.c)
target_link_libraries(bound PRIVATE autotune::allpairs_tuned)
target_link_options(bound PRIVATE LINKER:-u,tuned_allpairs_run)
"""


class Problem(ctypes.Structure):
    _fields_ = (("attributes", ctypes.c_int64), ("instances", ctypes.c_int64), ("missing", ctypes.c_int))


def no_exception_leaves(library: ctypes.CDLL) -> None:
    """What needs no GPU of the C interface, by a shared library that it was linked into."""
    library.tuned_allpairs_last_error.restype = ctypes.c_char_p
    problem, elements, prepared = Problem(9, 9, 9), ctypes.c_int64(), ctypes.c_void_p(1)

    def told(name: str, *arguments: Any) -> tuple[int, str]:
        status = getattr(library, f"tuned_allpairs_{name}")(*arguments)
        return status, library.tuned_allpairs_last_error().decode()

    asked = ctypes.byref(problem)
    assert told("defaults", None) == (1, "problem is null")
    assert told("defaults", asked) == (0, "")
    assert (problem.attributes, problem.instances, problem.missing) == (0, 0, 0)
    assert told("distance_elements", asked, ctypes.byref(elements)) == (
        1,
        "attributes is 0; at least 1 is needed",
    )
    problem.attributes, problem.instances = 5, 7
    assert told("distance_elements", asked, ctypes.byref(elements)) == (0, "")
    assert elements.value == 49
    assert told("create", asked, None, None, ctypes.byref(prepared)) == (1, "inputs is null")
    assert prepared.value is None
    assert told("launch", None, None) == (1, "prepared is null")
    problem.missing = 2
    assert told("run", asked, asked, asked, None) == (1, "missing is 2; 0..1 are allowed")
    library.tuned_allpairs_free(None)


def succeed(*arguments: str | Path) -> None:
    done = subprocess.run(["cmake", *map(str, arguments)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["allpairs", "shifted", "mummergpu"])
def test_it_runs_and_every_configuration_is_right(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    exported: Exported = request.getfixturevalue(name)
    example = build(exported, tmp_path, "native")
    done = subprocess.run([example, exported.folder / "example"], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("as expected") >= 2
    assert "wrong" not in done.stdout


# -- docs/guides/export.md ------------------------------------------------------------------------------------------

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "export.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    """The one block of the page in this language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


def test_the_page_s_command_and_its_program(allpairs: Exported, tmp_path: Path) -> None:
    (command,) = re.findall(r"^autotune (export .*)$", PAGE, re.MULTILINE)
    arguments = [str(tmp_path / "out") if word == "tuned-allpairs" else word for word in command.split()]
    assert main([*arguments, "--policies", str(allpairs.policies)]) == 0
    (tmp_path / "program.cpp").write_text(block("cpp"))
    (tmp_path / "program.c").write_text(block("c"))
    for command in (["g++", *WARNINGS, "program.cpp"], ["gcc", *C_WARNINGS, "program.c"]):
        subprocess.run([*command, "-fsyntax-only", f"-I{tmp_path / 'out'}"], cwd=tmp_path, check=True)


def test_the_page_names_every_file(allpairs: Exported) -> None:
    table = PAGE.partition("## What is written")[2].partition("##")[0]
    named = set(
        re.findall(
            r"`([\w./]+)`", "".join(line.partition("|")[2].partition("|")[0] for line in table.splitlines())
        )
    )
    for path in allpairs.folder.rglob("*"):
        if path.is_file():
            name = path.relative_to(allpairs.folder)
            assert name.as_posix() in named or f"{name.parts[0]}/" in named
    for name in named:
        assert (allpairs.folder / name).exists()
