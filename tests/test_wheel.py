"""The wheel, installed elsewhere: kernels, workloads and policies travel inside it and it works from any folder."""

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(made), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (found,) = made.glob("*.whl")
    return found


def test_everything_needed_at_run_time_is_inside(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for name in (
        "autotune/py.typed",
        "autotune/schemas/family.json",
        "autotune/report/page.html.j2",
        "autotune/backends/probe.cu",
        "autotune/new_family/new_family.cu",
        "autotune/new_family/workloads/small.yaml",
        "autotune/_bundled/kernels/allpairs/family.yaml",
        "autotune/_bundled/kernels/allpairs/allpairs.cu",
        "autotune/_bundled/kernels/include/autotune/array.cuh",
        "autotune/_bundled/kernels/include/autotune/cpu/runtime.cpp",
        "autotune/_bundled/workloads/allpairs/hapmap3-slice.yaml",
        "autotune/_bundled/workloads/data/hapmap3-slice.bed",
    ):
        assert name in names
    assert not any("tests/" in name or name.endswith(".pyc") for name in names)


def test_it_works_from_any_folder(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    # The environment's packages, without the checkout: an editable install would shadow the wheel.
    program = f"""
import sys
sys.path[:0] = [{str(site)!r}]
sys.path.append({sysconfig.get_path("purelib")!r})
from autotune.cli import main
import autotune
assert autotune.__file__.startswith({str(site)!r}), autotune.__file__
sys.exit(main(sys.argv[1:]))
"""
    arguments = ["sweep", "allpairs", "--device", "cpu", "--preset", "ladder", "--workload", "hapmap3-slice"]
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
