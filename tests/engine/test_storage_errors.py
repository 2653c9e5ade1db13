"""A sweep over storage types tells the error of each configuration, and a program takes what its bound admits."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from fakes import FAMILY, write_family
from local_worker import LocalWorker

import autotune
from autotune.compile.cache import Cache, default_root
from autotune.declaration import family as families
from autotune.declaration import workload as workloads
from autotune.device.cpu.backend import CpuBackend
from autotune.engine.request import SweepRequest
from autotune.engine.sweep import Sweep
from autotune.errors import UsageError
from autotune.layout import STORAGES
from autotune.measure.sampling import Protocol
from autotune.policy.merge import update
from autotune.record.results_csv import read_results, write_results
from autotune.record.store import Store
from autotune.report.ranking import configurations

QUICK = Protocol(least=2, most=2, seconds=0.01, finalists=2, rounds=1, round_samples=1)
STORED = FAMILY.replace(
    "memory: {layout: memory, data: [x], values: [global, readonly, texture], default: global}",
    "storage: {layout: storage, data: [x], values: [float32, float16, float8_e4m3], default: float32}",
).replace("values: [32, 64, 128, 256]", "values: [128]")


def test_errors_are_told_kept_and_asked_for(
    tmp_path: Path, compile_cache: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTOTUNE_CACHE", compile_cache)
    text = f"{STORED}accuracy: [storage]\ntolerance: {{relative: 0.01}}\n"
    family = families.load_family(write_family(tmp_path / "doubler", text))
    loaded = workloads.load_workload(family, "small")
    inputs = workloads.prepare(family, loaded, tmp_path)
    with CpuBackend(1) as backend, closing(LocalWorker(backend)) as worker:
        worker.start()
        study = Sweep(
            request=SweepRequest(family=family, processes=1), workers=[worker], workload=loaded, inputs=inputs,
            protocol=QUICK, store=Store(tmp_path), cache=Cache(default_root()),
        ).run()  # fmt: skip
    x = inputs.arrays["x"]
    found = {str(trial.configuration["storage"]): trial for trial in study.trials}
    assert found["float32"].errors == {"y": 0.0}
    for name in ("float16", "float8_e4m3"):
        one = np.ones(1, np.float32)
        left = np.abs(STORAGES[name].widen(STORAGES[name].narrow(x, one), one) - x).max() / np.abs(x).max()
        assert found[name].errors["y"] == pytest.approx(left, rel=1e-3)
    assert found["float16"].state == "measured"
    assert found["float8_e4m3"].state == "wrong_result"  # and its error is reported all the same

    (read,) = read_results([write_results([study], tmp_path / "results.csv")])
    assert {str(t.configuration["storage"]): t.errors for t in read.trials} == {
        name: trial.errors for name, trial in found.items()
    }

    assert study.decision is not None
    shown, _ = configurations(study, study.decision, {})
    (place,) = (i for i, column in enumerate(shown.columns) if column.label == "error")
    assert sorted(row[place] for row in shown.rows) == sorted(
        trial.error for trial in study.trials if trial.measurement
    )

    folder = update(tmp_path / "policies", [study]).parents[1]
    for bound, storages in ((1e-3, {"float32", "float16"}), (1e-6, {"float32"})):
        with autotune.load(family.folder, device="cpu", policies=folder, max_error=bound) as kernel:
            made = kernel(x)
            with kernel.prepare(x) as handle:
                assert handle.variant.configuration["storage"] in storages
        assert np.abs(made - 2 * x).max() <= bound * np.abs(2 * x).max()
    with pytest.raises(UsageError, match="give one of them"):
        autotune.load(
            family.folder, device="cpu", policies=folder, max_error=1, accuracy={"storage": "float16"}
        )
