"""The sdist, the wheel that is made of it, and the wheel installed elsewhere, on every Python that is named.

Kernels, workloads and policies travel inside the wheel, and it works from any folder.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from pythons import OTHERS, interpreter, marker

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel built from what is in the sdist."""
    made = tmp_path_factory.mktemp("built")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(made), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    return made


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def sdist(built: Path) -> list[str]:
    """The names in the sdist, without the folder that holds them."""
    (found,) = built.glob("*.tar.gz")
    with tarfile.open(found) as archive:
        return [name.partition("/")[2] for name in archive.getnames()]


def test_the_sdist_has_what_a_reader_and_a_builder_need(sdist: list[str]) -> None:
    for name in (
        ".ci/run",
        ".github/workflows/gate.yml",
        ".pre-commit-config.yaml",
        "pyproject.toml",
        "LICENSE",
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "CITATION.cff",
        "SECURITY.md",
        "action.yml",
        ".clang-format",
        "mkdocs.yml",
        "autotune/py.typed",
        "docs/getting-started.md",
        "docs/reference/generated.py",
        "examples/tour.ipynb",
        "kernels/allpairs/family.yaml",
        "kernels/include/autotune/array.cuh",
        "policies/allpairs/nvidia-h200.yaml",
        "tests/conftest.py",
        "workloads/data/hapmap3-slice.bed",
    ):
        assert name in sdist
    left_behind = ("autotune-results/", "ci-out/", "dist/")
    assert not [name for name in sdist if name.endswith(".pyc") or name.startswith(left_behind)]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs the repository that the sdist is made of")
def test_the_sdist_is_the_repository(sdist: list[str]) -> None:
    """So that it passes its own tests, which read pages, results and the workflows."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    known = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    assert {*sdist} - {"PKG-INFO"} == {name for name in known if (ROOT / name).is_file()}


def test_everything_needed_at_run_time_is_inside(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for name in (
        "autotune/py.typed",
        "autotune/schemas/family.json",
        "autotune/report/page.html.j2",
        "autotune/device/cuda/probe.cu",
        "autotune/authoring/new_family/new_family.cu",
        "autotune/authoring/new_family/workloads/small.yaml",
        "autotune/_bundled/kernels/allpairs/family.yaml",
        "autotune/_bundled/kernels/allpairs/allpairs.cu",
        "autotune/_bundled/kernels/include/autotune/array.cuh",
        "autotune/_bundled/kernels/mummergpu/app/lines.cpp",
        "autotune/_bundled/kernels/mummergpu/app/run.py",
        "autotune/_bundled/kernels/include/autotune/cpu/runtime.cpp",
        "autotune/_bundled/workloads/allpairs/hapmap3-slice.yaml",
        "autotune/_bundled/workloads/data/hapmap3-slice.bed",
    ):
        assert name in names
    licences = {name.partition(".dist-info/licenses/")[2] for name in names if ".dist-info/licenses/" in name}
    assert licences == {
        "LICENSE", "LICENSES/apbs.txt", "LICENSES/basis-set-exchange.txt", "workloads/data/README.md",
    }  # fmt: skip
    data = {Path(name).name for name in names if name.startswith("autotune/_bundled/workloads/data/")}
    terms = (ROOT / "workloads/data/README.md").read_text(encoding="utf-8").partition("\n# hapmap3-slice")[0]
    told = re.findall(r"^\| `([\w.-]+?)[.*]*` \|", terms, re.MULTILINE)
    assert not [
        name for name in data - {"README.md"} if not name.startswith(tuple(told))
    ]  # each has its terms
    assert not any("tests/" in name or name.endswith(".pyc") for name in names)


def test_policy_files_that_a_sweep_left_in_the_checkout_are_not_packed(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    for name in ("pyproject.toml", ".gitignore", "README.md", "LICENSE", "autotune/__init__.py",
                 "policies/allpairs/nvidia-h200.yaml"):  # fmt: skip
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, checkout / name)
    for name in ("cpu-amd-epyc.yaml", "nvidia-a100.yaml"):
        (checkout / "policies" / "allpairs" / name).write_text("schema: 2\n")
    for made, kind, folder in (
        ("wheel", "zip", "autotune/_bundled"),
        ("sdist", "gztar", "autotune_layouts-*"),
    ):
        program = f"import hatchling.build; hatchling.build.build_{made}({str(tmp_path / kind)!r})"
        subprocess.run([sys.executable, "-c", program], cwd=checkout, check=True, capture_output=True)
        (archive,) = (tmp_path / kind).iterdir()
        shutil.unpack_archive(archive, tmp_path / made, kind)
        packed = (tmp_path / made).glob(f"{folder}/policies/*/*")
        assert [path.name for path in packed] == ["nvidia-h200.yaml"]


def test_the_version_has_one_place(built: Path, wheel: Path) -> None:
    source = (ROOT / "autotune" / "__init__.py").read_text(encoding="utf-8")
    (version,) = re.findall(r'^__version__ = "([^"]+)"$', source, re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "version" not in project
    assert project["dynamic"] == ["version"]
    assert f"autotune_layouts-{version}.tar.gz" in {path.name for path in built.iterdir()}
    with zipfile.ZipFile(wheel) as archive:
        metadata = Parser().parsestr(archive.read(f"autotune_layouts-{version}.dist-info/METADATA").decode())
    assert metadata["Version"] == version
    assert metadata["Requires-Python"] == ">=3.11"
    # A citation is of a release, so its file has to repeat the version.
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\S+)", changes, re.MULTILINE)[0] == version


def test_it_works_from_any_folder(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    # The environment's packages, without the checkout: an editable install would shadow the wheel.
    packages = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    program = f"""
import sys
sys.path[:0] = [{str(site)!r}]
sys.path.extend({packages!r})
from autotune.cli import main
import autotune
assert autotune.__file__.startswith({str(site)!r}), autotune.__file__
sys.exit(main(sys.argv[1:]))
"""
    arguments = ["sweep", "allpairs", "--device", "cpu", "--workload", "hapmap3-slice"]
    arguments += ["--preset", "cpu", "--samples", "3"]
    done = subprocess.run(
        [sys.executable, "-S", "-c", program, *arguments],
        cwd=elsewhere,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (elsewhere / "autotune-results" / "allpairs" / "report.html").is_file()
    assert list((elsewhere / "policies" / "allpairs").glob("cpu-*.yaml"))


# What the dispatcher needs, and no more: that a program gets by with these is part of what is tested.
RUN_TIME = ("lazy-loader", "numpy", "platformdirs", "pyyaml")
PROGRAM = """
import sys, warnings
import numpy as np
import autotune
assert autotune.__file__.startswith(sys.argv[1]), autotune.__file__
genotypes = np.random.default_rng(0).integers(0, 3, (9, 70))
with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message="no usable policy file")
    kernel = autotune.load("allpairs", device="cpu", policies="no-such-folder")
with kernel:
    assert (kernel(genotypes) == (genotypes[:, None] != genotypes[None]).sum(axis=2)).all()
print(autotune.__version__)
"""


@pytest.mark.pip
@pytest.mark.parametrize("version", [pytest.param(v, marks=getattr(pytest.mark, marker(v))) for v in OTHERS])
def test_it_is_installed_and_dispatches_on_another_python(version: str, wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        interpreter(version),
        "--quiet",
        "--disable-pip-version-check",
    ]
    here = ["--no-compile", "--no-deps", "--root-user-action", "ignore", "--target", str(site)]
    subprocess.run(
        [*pip, "install", *here, str(wheel), *RUN_TIME],
        check=True,
        capture_output=True,
    )
    done = subprocess.run(
        [interpreter(version), "-W", "error", "-c", PROGRAM, str(site)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in wheel.name
