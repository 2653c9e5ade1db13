"""What a sweep has to see: each planted fault is caught, and the right kernel is not."""

import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest
from filelock import FileLock
from planted import FAULTS, Fault, Seen, families, sweep_all
from result_files import RESULTS, read_frame


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Seen]:
    """One sweep of each family on the cpu, with a cache of its own: a reference is looked at when it is made. Made by
    one of the processes that tests run in, for all of them."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return swept(tmp_path_factory.mktemp("planted"))
    place = tmp_path_factory.getbasetemp().parent / "planted"  # of this run, above what each process has
    place.mkdir(exist_ok=True)
    with FileLock(place / "lock"):
        kept = place / "seen.json"
        if not kept.exists():
            found = {name: asdict(each) for name, each in swept(place).items()}
            kept.write_text(json.dumps(found, default=bool), encoding="utf-8")
        return {name: Seen(**each) for name, each in json.loads(kept.read_text(encoding="utf-8")).items()}


def swept(place: Path) -> dict[str, Seen]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTOTUNE_CACHE", str(place / "cache"))
        return sweep_all(families(place / "families"), "cpu", place / "out")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_caught(fault: Fault, seen: dict[str, Seen]) -> None:
    """Where that is left to chance it may have been measured, and on a busy machine it may have looked hopeless."""
    found = seen[fault.name]
    if found.state == "measured" and (fault.chance or (found.is_hopeless and not found.wins)):
        return
    state, reason = fault.cpu
    assert found.state == state, found
    assert reason in found.reason


def test_what_a_policy_file_takes_is_right_for_other_sizes_too(seen: dict[str, Seen]) -> None:
    """Whatever the times are: a configuration is proved on odd sizes before it wins."""
    winners = [fault for fault in FAULTS if seen[fault.name].wins]
    assert winners
    assert not [f.name for f in winners if f.cpu[0] != "measured" and (not f.chance or f.of == "multiples")]


def test_each_fault_has_a_name_of_its_own() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


def test_no_measured_sweep_refused_the_right_kernel() -> None:
    for path in RESULTS.glob("planted-*.csv"):
        measured = read_frame(path, keep_default_na=False).set_index("fault")
        assert set(measured.index) <= {fault.name for fault in FAULTS}
        assert measured.loc["none", "caught"] == 0, "the right kernel was refused"
