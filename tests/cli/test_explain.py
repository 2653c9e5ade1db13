"""autotune explain: the whole chain, each candidate with its state."""

import copy
import math
import re
from pathlib import Path

import pytest
import yaml
from fakes import sweep

from autotune.cli.commands import main
from autotune.files import find_bundled
from autotune.policy import file_name, read_policy_file
from autotune.policy.merge import update


def lines(capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    """The words of each line; whether there is a break-even is of the times of this machine."""
    said = capsys.readouterr().out.splitlines()
    return [line.split() for line in said if not line.startswith("break-even:")]


def test_the_chain_with_every_verdict(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    update(tmp_path / "policies", [sweep(folder, tmp_path).run()])
    arguments = ["explain", str(folder), "--device", "fake-gpu", "--policies", str(tmp_path / "policies")]
    assert main(arguments) == 0
    head, _, *rows = lines(capsys)
    assert " ".join(head) == "doubler on small (n 1000), cuda: Fake GPU"
    assert [row[:2] for row in rows] == [["taken", "exact"], ["next", "default"], ["next", "control"]]
    assert rows[0][-4:] == ["1.00", "ms", "block_size=64,", "memory=readonly"]
    assert rows[1][-4:] == rows[0][-4:]  # the default is the same configuration
    assert rows[2][-3:-1] == ["4.50", "ms"]  # control: its margin over the winner was recorded
    source = folder / "doubler.cu"
    source.write_text(source.read_text() + "// edited\n")
    assert main(arguments) == 0
    _, _, *rows = lines(capsys)
    assert [row[:2] for row in rows] == [["rejected", "file"], ["taken", "control"]]
    assert "every entry is stale: the kernel source changed" in " ".join(rows[0])


def test_an_input_that_was_not_tuned_gets_the_nearest(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    update(tmp_path / "policies", [sweep(folder, tmp_path).run()])
    large = tmp_path / "large.yaml"
    text = (folder / "workloads" / "small.yaml").read_text()
    large.write_text(text.replace("[1000]", "[4000]").replace("workload: small", "workload: large"))
    assert main(["explain", str(folder), "-w", str(large), "--device", "fake-gpu",
                 "--policies", str(tmp_path / "policies")]) == 0  # fmt: skip
    _, _, *rows = lines(capsys)
    assert rows[0][:2] == ["taken", "nearest"]
    assert "ms" not in rows[0]  # nobody measured it
    assert [row[1] for row in rows[1:]] == ["default", "control"]


def test_other_rows_show_what_their_configuration_took_on_this_input(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = update(tmp_path / "policies", [sweep(folder, tmp_path).run()])
    content = yaml.safe_load(path.read_text())
    large = copy.deepcopy(content["entries"]["small"])
    large |= {
        "features": {"n": 4000},
        "configuration": {"memory": "texture", "block_size": 32},
        "median_ms": 9.0,
    }
    content["entries"] |= {"large": large, "huge": {**copy.deepcopy(large), "features": {"n": 9000}}}
    content["entries"]["huge"]["configuration"] = {"memory": "texture", "block_size": 256}
    content["entries"]["small"]["times_ms"] = {"c1": 1.25}
    kept = {"c1": {"configuration": dict(large["configuration"])}}
    content["prediction"] = {"options": {}, "kept": kept}
    path.write_text(yaml.safe_dump(content))
    assert (
        main(["explain", str(folder), "--device", "fake-gpu", "--policies", str(tmp_path / "policies")]) == 0
    )
    _, _, *rows = lines(capsys)
    told = {row[3 if row[1] == "nearest" else 1]: row for row in rows}
    assert told["exact"][-4:-2] == ["1.00", "ms"]
    assert told["large"][4:6] == ["1.25", "ms"]
    assert told["huge"][4:] == ["block_size=256,", "memory=texture"]  # nobody timed it here


def explained(capsys: pytest.CaptureFixture[str], instances: int, attributes: int) -> list[str]:
    words = ["explain", "allpairs", "-w", "primer", "--device", "nvidia-h200", "--policies",
             str(find_bundled("policies")),
             "--size", f"instances={instances}", "--size", f"attributes={attributes}"]  # fmt: skip
    assert main(words) == 0
    return capsys.readouterr().out.splitlines()


def test_what_is_predicted_and_how_far_it_is_from_what_was_measured(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    file = read_policy_file(find_bundled("policies") / file_name("allpairs", "nvidia-h200"))
    rule = file.prediction
    assert rule is not None
    known = [e.features for e in file.entries.values() if e.times_ms]
    said = explained(capsys, 700, 3000)
    predicted = [line for line in said if re.match(r"(taken|next) +predicted", line)]
    assert predicted[0].startswith("taken")
    assert len(predicted) == len(rule.kept)
    times = [re.search(r"([\d.]+) µs ± ([\d.]+) %", line) for line in predicted]
    assert all(time is not None and float(time[2]) > 0 for time in times)
    away = min(math.hypot(math.log(700 / f["instances"]), math.log(3000 / f["attributes"])) for f in known)
    lost, nearest = (f"{100 * rule.left_out[name]:.1f} %" for name in ("prediction", "nearest"))
    regrets = f"the mean regret is {lost}, with the nearest entry {nearest};"
    (line,) = (line for line in said if line.startswith("predicted from"))
    assert line.startswith(f"predicted from {len(known)} entries: each left out in turn, {regrets}")
    assert line.endswith(f"is a factor of {math.exp(away):.3g} away")
    assert not any("outside the measured" in line for line in said)


def test_an_input_outside_of_what_was_measured_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    said = explained(capsys, 100_000, 3000)
    (line,) = (line for line in said if "outside the measured" in line)
    assert line.startswith("instances 100000 is outside the measured range, 32 to ")


def test_on_the_cpu_of_this_machine(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["explain", "allpairs", "-w", "primer", "--device", "cpu", "--policies", str(tmp_path)]) == 0
    _, _, *rows = lines(capsys)
    assert rows[-1][1] == "control"
    assert [row[1] for row in rows if row[0] == "taken"] == ["preset"]


def test_names_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "alpairs"]) == 2
    assert main(["explain", "allpairs", "-w", "primr"]) == 2
    assert main(["explain", "allpairs", "--device", "nvidia-h20"]) == 2
    assert "did you mean 'primer'" in capsys.readouterr().err
