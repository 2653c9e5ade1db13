"""Ranges for NVIDIA's profilers: one for a trial, with its phases inside."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from fakes import sweep, write_family

from autotune.engine import measurer


def test_a_sweep_s_ranges_lie_within_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, str]] = []
    open_: list[str] = []

    @contextmanager
    def annotate(message: str, category: str, domain: str) -> Iterator[None]:
        assert domain == "autotune"
        seen.append(("/".join([*open_, category]), message))
        open_.append(category)
        yield
        open_.pop()

    monkeypatch.setattr(measurer, "_nvtx", lambda: SimpleNamespace(annotate=annotate))
    study = sweep(write_family(tmp_path / "doubler"), tmp_path).run()
    tried = [name for where, name in seen if where == "trial"]
    measured = {t.configuration.id for t in study.trials if t.state == "measured" and t.same_as is None}
    assert set(tried) == measured
    phases = [name for where, name in seen if where == "trial/phase"]
    assert phases == ["place", "verify", "measure", "verify"] * len(tried)
    assert ("phase", "finalists") in seen


@pytest.mark.parametrize("text", ["from _no_such_library import annotate\n", None])
def test_a_package_that_is_absent_or_for_another_python_costs_no_trial(
    text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if text is None:
        monkeypatch.setitem(sys.modules, "nvtx", None)
    else:
        (tmp_path / "nvtx.py").write_text(text)
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, "nvtx", raising=False)
    monkeypatch.setattr(measurer, "_nvtx", measurer._nvtx.__wrapped__)
    with measurer._mark_range("a", "trial"), measurer._mark_range("b", "phase"):
        pass
