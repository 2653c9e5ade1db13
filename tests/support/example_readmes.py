"""What holds for the README and the sources of any example."""

import re
import subprocess
from collections.abc import Collection
from pathlib import Path

from autotune.compile.nvcc import find_nvcc
from autotune.declaration.family import Family
from autotune.files import include_dir


def fenced(family: Family, language: str) -> str:
    """The only block of the README in that language."""
    readme = (family.folder / "README.md").read_text()
    (block,) = re.findall(rf"^```{language}\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    return str(block)


def check_diff(family: Family, moved: Collection[str] = ()) -> None:
    """The diff's lines are those of plain.cu without the new ones and those of the tunable source without the old ones;
    the old ones in order, since they are the whole kernel, but for those that were ``moved`` out of it."""
    plain = (family.folder / "plain.cu").read_text().splitlines()
    tunable = [line.strip() for line in family.source.read_text().splitlines()]
    lines = fenced(family, "diff").splitlines()
    was = [line[1:] for line in lines if line[0] in " -"]
    body = [line for line in plain[plain.index(was[0]) :] if line not in moved]
    assert was == body[: len(was)] and body[len(was) :] == ["}"]
    for line in lines:
        if line[0] in " +":
            assert line[1:].strip() in tunable, line


def check_policies(family: Family) -> None:
    """The README names every policy with its values, and how many configurations there are."""
    text = (family.folder / "README.md").read_text()
    for policy in family.space.policies:
        values = ", ".join(map(str, policy.values))
        assert f"| `{policy.name}` | {values} |" in text
    assert f"{len(family.space.configurations())} configurations" in text


def check_compiles(family: Family, name: str, folder: Path) -> None:
    """By nvcc, into ``folder``; the plain kernel without the layout library, which it knows nothing of."""
    include = [] if name == "plain.cu" else [f"-I{include_dir()}"]
    command = [str(find_nvcc()), "-std=c++17", "-arch=sm_90", "-Werror", "all-warnings", *include, "-cubin"]
    made = folder / "x.cubin"
    subprocess.run([*command, "-o", str(made), str(family.folder / name)], check=True, capture_output=True)
    assert made.stat().st_size > 0
