"""The run time on the cpu device: right answers, honest warnings, nothing left behind."""

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import autotune
from autotune.cli import main
from autotune.errors import UsageError, WorkloadError


def hamming(x: np.ndarray) -> np.ndarray:
    return np.rint(cdist(x, x, "hamming") * x.shape[1]).astype(np.int32)


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("policies")
    arguments = ["sweep", "allpairs", "--device", "cpu", "--preset", "ladder", "-w", "ragged", "-w", "primer"]
    assert main([*arguments, "--out", str(folder / "out"), "--policies", str(folder)]) == 0
    return folder


def test_load_and_call(policies: Path) -> None:
    x = np.random.default_rng(1).integers(0, 3, (61, 97))
    with autotune.load("allpairs", device="cpu", policies=policies) as kernel:
        distance = kernel(x)
        assert isinstance(distance, np.ndarray)
        assert distance.dtype == np.int32
        np.testing.assert_array_equal(distance, hamming(x))
        np.testing.assert_array_equal(kernel(genotypes=x.astype(np.uint8)), distance)
        np.testing.assert_array_equal(kernel(np.asfortranarray(x)[::2]), hamming(x[::2]))


def test_the_choice_is_explained(policies: Path) -> None:
    with autotune.load("allpairs", device="cpu", policies=policies) as kernel:
        exact, _ = kernel.explain(kernel.bind(np.zeros((112, 512))))
        assert (exact.match, exact.origin.split(": ")[1]) == ("exact", "primer")
        near, passed = kernel.explain(kernel.bind(np.zeros((100, 600)), missing="masked"))
        assert near.match in ("nearest", "default")
        assert any("measured with missing=category" in c.refusal for c in passed)


def test_options_change_the_result_and_never_silently(policies: Path) -> None:
    x = np.array([[0, 1, 3], [0, 3, 2]])
    with autotune.load("allpairs", device="cpu", policies=policies) as kernel:
        assert kernel(x)[0, 1] == 2
        assert kernel(x, missing="masked")[0, 1] == 0


def test_no_policy_file_warns_and_still_answers() -> None:
    with pytest.warns(UserWarning, match="no usable policy file.*autotune sweep allpairs"):
        kernel = autotune.load("allpairs", device="cpu", policies="/nowhere")
    with kernel:
        assert kernel(np.zeros((3, 4), int)).sum() == 0


def test_no_gpu_runs_on_the_cpu_and_says_so(policies: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pycuda", None)
    monkeypatch.setattr("autotune.devices.has_driver", lambda: True)
    with pytest.warns(
        UserWarning, match=r"^running on the cpu: PyCUDA is not usable here .* pip install .*\[cuda\]'"
    ):
        autotune.load("allpairs", policies=policies).close()
    monkeypatch.setattr("autotune.devices.has_driver", lambda: False)  # nothing that could be mended
    with pytest.warns(UserWarning, match=r"^running on the cpu: no GPU found$") as warned:
        kernel = autotune.load("allpairs", policies=policies)
    assert [warning.filename for warning in warned] == [__file__]
    with kernel:
        assert kernel(np.eye(3, dtype=int))[0, 1] == 2


def test_bad_calls_are_refused(policies: Path) -> None:
    with autotune.load("allpairs", device="cpu", policies=policies) as kernel:
        with pytest.raises(UsageError, match="takes 1 arrays"):
            kernel(np.zeros((2, 2)), np.zeros((2, 2)))
        with pytest.raises(UsageError, match="given twice"):
            kernel(np.zeros((2, 2)), genotypes=np.zeros((2, 2)))
        with pytest.raises(WorkloadError, match="value 7 is outside"):
            kernel(np.full((2, 2), 7))
        with pytest.raises(WorkloadError, match="not given"):
            kernel()


def test_one_row_and_one_column() -> None:
    with pytest.warns(UserWarning, match="no usable policy file"):
        kernel = autotune.load("allpairs", device="cpu", policies="/nowhere")
    with kernel:
        assert kernel(np.array([[2]])).tolist() == [[0]]
        assert kernel(np.array([[0], [1], [1]])).tolist() == [[0, 1, 1], [1, 0, 0], [1, 0, 0]]
