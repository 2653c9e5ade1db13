"""``autotune advise FILE.cu``: from a plain kernel to a family folder with the few layouts that help."""

import json
from pathlib import Path

import advise
import pytest
from result_files import read_rows

from autotune.advise.arithmetic import Arithmetic, count_arithmetic
from autotune.cli import main
from autotune.declaration import Family, load_family

KERNEL = """\
struct P { float x, y, z, w; };
__global__ void k(const P* p, const float* m, const float* q, float* y, int n, int w) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0;
  for (int j = 0; j < w; ++j) sum += m[i * w + j];
  if (i % 2) q += 1;
  y[i] = sum * p[i].x + q[0];
}
"""
WARPS, WIDTH = 256 // 32, 32


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("program")
    (place / "k.cu").write_text(KERNEL)
    sizes = ["--size", "n=256", "--size", f"w={WIDTH}"]
    assert main(["advise", str(place / "k.cu"), "-o", str(place / "mine"), *sizes]) == 0
    return place / "mine"


@pytest.fixture(scope="module")
def told(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / "advice.json").read_text())
    return found


@pytest.mark.clang
@pytest.mark.tracing
def test_a_plain_kernels_rows_are_found_to_be_apart(told: dict[str, object]) -> None:
    (kernel,) = told["kernels"]  # type: ignore[misc]
    assert kernel["kernel"] == "k"
    m = next(array for array in kernel["arrays"] if array["name"] == "m")
    assert (m["requests"], m["sectors"], m["ideal"]) == (WARPS * WIDTH, 32 * WARPS * WIDTH, 4 * WARPS * WIDTH)
    assert told["arrays"] == ["m"]
    assert told["suggestions"][0]["set"]["m_axes"] == "reversed"  # type: ignore[index]


@pytest.mark.clang
@pytest.mark.tracing
def test_the_folder_has_the_layouts_that_help_and_loads(folder: Path, told: dict[str, object]) -> None:
    family: Family = load_family(str(folder))
    names = {policy.name: policy for policy in family.space.policies}
    helpful = {n for one in told["suggestions"] if one["helps"] for n in one["set"]}  # type: ignore[attr-defined]
    assert {name for name, policy in names.items() if policy.layout} == helpful
    assert "block_size" in names
    assert told["presets"][0] == "advised"  # type: ignore[index]
    best = family.space.configuration("advised")
    assert best.changes(family.space.control) == "m_axes=reversed" or "m_axes=reversed" in best.id
    assert "Left out, since they save next to nothing: " in (folder / "family.yaml").read_text()


@pytest.mark.clang
@pytest.mark.tracing
def test_what_stays_a_pointer_is_said_and_its_inputs_are_random(
    folder: Path, told: dict[str, object]
) -> None:
    assert "k.cu:7: q is moved" in told["not_tried"]["q stays as it is"]  # type: ignore[index]
    assert any(line.startswith("inputs: random") for line in told["how_sure"])  # type: ignore[attr-defined]
    assert "q is moved" in (folder / "advice.html").read_text()


@pytest.mark.clang
@pytest.mark.tracing
def test_the_first_suggestion_is_timed(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "times.csv"
    words = ["time", str(folder.parent), "--device", "cpu", "--bytes", "1", "--out", str(out)]
    assert advise.main(words) == 0
    (row,) = read_rows(out)
    assert (row["kernel"], row["reason"]) == ("mine", "")
    assert "m_axes=reversed" in row["advised"]
    assert row["sizes"].startswith("n=37 w=23 ")  # as adopted: no byte is left for more
    assert all(float(row[name]) > 0 for name in ("plain_ms", "control_ms", "advised_ms", "gain"))
    assert advise.main([*words, "--seconds", "-1"]) == 0  # too late for it
    assert read_rows(out) == [row]


@pytest.mark.clang
@pytest.mark.tracing
def test_inputs_are_enlarged_as_far_as_bytes_allow(folder: Path, tmp_path: Path) -> None:
    family, path = load_family(str(folder)), tmp_path / "timed.yaml"
    least = advise.count_bytes(family, advise.write_sizes(family, 1, path))
    most = advise.count_bytes(family, advise.write_sizes(family, 4, path))
    for allowed, factor in ((most, 4), (most - 1, 2), (0.5 * least, 1)):
        enlarged = advise.enlarge(family, allowed, path).read_text()
        assert enlarged == advise.write_sizes(family, factor, tmp_path / "expected.yaml").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["allpairs", "--size", "n=3"], "are of a file"),
        (["k.cu", "--workload", "primer"], "a file has --size"),
        (["gone", "--workload", "primer"], "gone"),
    ],
)
def test_options_of_files_and_of_families_are_told_apart(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["advise", *words]) == 2
    assert said in capsys.readouterr().err


def test_operations_and_bytes_of_ptx() -> None:
    text = """
    ld.global.nc.f32 %f1, [%rd1];
    @%p1 ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd2];
    fma.rn.ftz.f32 %f3, %f1, %f2, %f3;
    add.f64 %fd1, %fd2, %fd3;
    add.s32 %r1, %r2, %r3;
    st.global.f64 [%rd3], %fd1;
    ld.shared.f32 %f9, [%r1];
    """
    found = count_arithmetic(text)
    assert found == Arithmetic(operations=3, nbytes=4 + 16 + 8)
    assert (found.intensity, Arithmetic(3, 0).intensity) == (3 / 28, 0)
