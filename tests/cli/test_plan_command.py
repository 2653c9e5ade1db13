"""autotune plan: ranges are read, workloads made of a template, sizes swept until a range is covered."""

from pathlib import Path

import pytest
import yaml
from fakes import write_family

from autotune.cli import plan
from autotune.cli.commands import main
from autotune.declaration import load_family, load_workload
from autotune.errors import UnknownName, UsageError
from autotune.policy import read_policy_file


def test_ranges_and_shares_are_read() -> None:
    assert plan.ranges(["n=64..65536", " m = 1..1 "]) == {"n": (64, 65536), "m": (1, 1)}
    for wrong in (["n=5..4"], ["n=0..4"], ["n"], ["n=1..2", "n=1..3"], []):
        with pytest.raises(UsageError, match="--over"):
            plan.ranges(wrong)
    assert plan.share("5%") == plan.share("0.05") == 0.05
    with pytest.raises(UsageError, match="--regret 'much'"):
        plan.share("much")


def test_a_condition_is_of_the_numbers() -> None:
    holds = plan.condition("n * m <= 100", {"n": (1, 9), "m": (1, 99)})
    assert holds({"n": 2, "m": 50})
    assert not holds({"n": 3, "m": 50})
    with pytest.raises(UnknownName, match="k"):
        plan.condition("k > 1", {"n": (1, 9)})


def test_a_template_is_the_first_workload_that_has_the_numbers(tmp_path: Path) -> None:
    allpairs, doubler = load_family("allpairs"), load_family(write_family(tmp_path / "doubler"))
    found = plan.template(allpairs, "", ["instances", "attributes"])
    made = plan.content(allpairs, found, {"instances": 7, "attributes": 9})
    assert made["parameters"] == {**found.parameters, "instances": 7, "attributes": 9}
    assert made["workload"] == "instances7-attributes9"
    small = plan.template(doubler, "", ["n"])
    assert plan.content(doubler, small, {"n": 12})["arrays"] == {
        "x": {"random": "uniform", "shape": [12], "seed": 1}
    }
    path = tmp_path / "made.yaml"
    path.write_text(yaml.safe_dump(plan.content(doubler, small, {"n": 12})))
    assert load_workload(doubler, path).arrays["x"]["shape"] == [12]
    with pytest.raises(UsageError, match="no workload of doubler has the numbers m"):
        plan.template(doubler, "", ["m"])
    with pytest.raises(UsageError, match="no such number"):
        plan.template(doubler, "small", ["n", "m"])


def test_sizes_are_swept_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = write_family(tmp_path / "doubler")
    words = ["plan", str(folder), "--over", "n=10..2000", "--where", "n < 1500", "--device", "cpu",
             "--preset", "control", "--sizes", "2"]  # fmt: skip
    assert main(words) == 0
    said = capsys.readouterr().out
    (path,) = (tmp_path / "policies" / "doubler").glob("*.yaml")
    found = read_policy_file(path)
    assert set(found.entries) >= {"n141", "n10"}
    assert all(int(name[1:]) < 1500 for name in found.entries)
    assert len(found.entries) == 2
    assert found.prediction is not None and not found.prediction.covered
    assert "2 sizes are too few for a prediction" in said
