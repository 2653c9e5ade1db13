"""benchmarks/engine_peers.py, kernel_tuner_run.py, winner_agreement.py and copied_winners.py, as far as they go
without a GPU."""

import importlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from result_files import read_rows

import autotune
from autotune.compile.nvrtc import Nvrtc
from autotune.compile.variant import Variant, batch
from autotune.declaration import family as families
from autotune.declaration import workload as workloads
from autotune.measure.sampling import Samples
from autotune.policy import read_policy_file

peers = importlib.import_module("engine_peers")
peer_run = importlib.import_module("kernel_tuner_run")
agreement = importlib.import_module("winner_agreement")
copied = importlib.import_module("copied_winners")

FAMILY = families.load_family("allpairs")
PLAIN = {"memory": ["global", "readonly"]}


@pytest.fixture(scope="module")
def inputs() -> Any:
    return workloads.prepare(
        FAMILY, workloads.load_workload(FAMILY, "ragged"), workloads.find_bundled("workloads") / "data"
    )


@pytest.fixture(scope="module")
def work(inputs, tmp_path_factory) -> Any:
    configurations = FAMILY.space.configurations("tiles", PLAIN)
    return peer_run.task(FAMILY, inputs, configurations, tmp_path_factory.mktemp("cache"))


def lines_of(table: Path) -> list[str]:
    """Without what is said of it before its header."""
    return [line for line in table.read_text().splitlines() if not line.startswith("# ")]


# ---- what Kernel Tuner is given


class Chosen:
    """Stands for kernel_tuner.accuracy.Tunable: holds every form of an argument and picks one."""

    def __init__(self, key: Any, forms: dict[Any, Any]) -> None:
        self.key, self.forms = key, forms

    def of(self, index: int) -> Any:
        return self.forms[self.key({peer_run.INDEX: index})]


def test_the_default_space_has_96_configurations(work):
    assert len(work.configurations) == 96


def test_each_configuration_gets_its_own_layout_and_all_share_the_rest(work, inputs):
    arguments = peer_run.arguments_of(work, Chosen)
    data = arguments[0]
    assert len(data.forms) == 4  # axes times vector width; the memory is the same
    for index, configuration in enumerate(work.configurations):
        variant = Variant.make(FAMILY, configuration, inputs.options)
        stored = variant.layouts["genotypes"].apply(inputs.arrays["genotypes"])
        assert np.array_equal(data.of(index).view(np.uint8), stored.buffer)
        # The accessor that the plain kernel puts together is the one that our launch passes.
        scalars = [a.of(index) if isinstance(a, Chosen) else a for a in arguments[1:4]]
        assert b"".join(s.tobytes() for s in scalars) == stored.argument(0)[8:20]
    distance = arguments[4]
    assert distance.dtype == np.int32
    assert not distance.any()
    assert np.array_equal(work.answer[4].reshape(37, 37), work.answer[4].reshape(37, 37).T)
    assert work.answer[4].any()
    assert sum(a is not None for a in work.answer) == 1


def test_the_restriction_leaves_one_block_size_a_configuration(work):
    given = peer_run.tune_arguments(work, Chosen, 7)
    (text,) = given["restrictions"]
    fitting = [
        (index, size)
        for index in given["tune_params"][peer_run.INDEX]
        for size in given["tune_params"]["block_size_x"]
        if eval(text, {peer_run.INDEX: index, "block_size_x": size})
    ]
    assert fitting == list(enumerate(work.blocks))
    assert given["iterations"] == 7
    assert given["problem_size"]({peer_run.INDEX: 3}) == work.grids[3]


@pytest.mark.nvrtc
@pytest.mark.parametrize("index", [0, 17, 40, 95])
def test_the_plain_kernel_is_our_kernel(work, inputs, index, tmp_path):
    """One call each; registers and the size of the code tell a kernel that does the same (most are equal to a bit)."""
    ours = figures_of(batch(FAMILY, (Variant.make(FAMILY, work.configurations[index], inputs.options),)))
    (tmp_path / "plain.cu").write_text(
        f"#define {peer_run.INDEX} {index}\n#define block_size_x {work.blocks[index]}\n"
        + work.source.replace('extern "C" __global__', "template <class> __global__")
    )
    variant = Variant(FAMILY, work.configurations[index]).source
    plain = batch(FAMILY, ())
    plain = replace(plain, source=tmp_path / "plain.cu", variants=(replace(variant, kernels=("plain",)),))
    theirs = figures_of(plain)
    assert abs(theirs["registers"] - ours["registers"]) <= 8
    assert theirs["spill_load_bytes"] == ours["spill_load_bytes"] == 0
    assert theirs["static_shared_bytes"] == ours["static_shared_bytes"]


def figures_of(units: Any) -> dict[str, int]:
    built = Nvrtc("sm_90").build(units)
    ((figures,),) = [list(kernels.values()) for kernels in built.figures.values()]
    return dict(figures)


def test_other_families_and_memories_are_refused(inputs, tmp_path):
    with pytest.raises(ValueError, match="plain global memory"):
        peer_run.task(FAMILY, inputs, FAMILY.space.configurations("tiles", {"memory": ["texture"]}), tmp_path)


# ---- tables


def run(tuner: str, wall_s: float, **times_ms: float) -> Any:
    return peers.Run(tuner, wall_s, wall_s / 2, 1.0, 0.5, 0.4, 7, times_ms, "device")


def test_the_table_is_against_the_better_peer(tmp_path, capsys):
    runs = [
        run("Kernel Tuner 1.5.0 nvcuda", 4.0, a=2.0, b=3.0, c=4.0, d=5.0),
        run("Kernel Tuner 1.5.0 cupy", 5.0, a=2.0, b=3.0),
        run("autotune, 7 samples", 0.5, a=1.0, b=1.5, c=2.0, d=2.5),
    ]
    peers.show(runs, peers.write(runs, tmp_path / "out" / "peers"))
    lines = lines_of(tmp_path / "out" / "peers.csv")
    assert lines[0].startswith("tuner,wall_s,sweep_s,wall_times_faster,sweep_times_faster,")
    assert [line.split(",")[3] for line in lines[1:3]] == ["1.0", "0.8"]
    assert lines[3] == '"autotune, 7 samples",0.5,0.25,8.0,8.0,1.0,0.5,0.4,0.8,0.5,4,7,4,0.125,1.0,a,device'
    times = lines_of(tmp_path / "out" / "peers-times.csv")
    assert times[1:] == ["a,2.0,2.0,1.0", "b,3.0,3.0,1.5", "c,4.0,,2.0", "d,5.0,,2.5"]
    assert "shortest quarter: median 2.00 times, +1000.0 us apart" in capsys.readouterr().out


def test_a_tuner_that_fails_says_why(tmp_path):
    with pytest.raises(RuntimeError, match="exited with 3:\nno luck"):
        peers.call([sys.executable, "-c", "print('no luck'); raise SystemExit(3)"], tmp_path)


def test_caches_are_cold_and_elsewhere(tmp_path):
    environment = peers.cold(tmp_path)
    assert environment["CUDA_CACHE_DISABLE"] == "1"
    for name in ("AUTOTUNE_CACHE", "CUPY_CACHE_DIR", "CUDA_CACHE_PATH", "AUTOTUNE_POLICIES"):
        assert environment[name].startswith(str(tmp_path))


def answer(winner: str, ties: str = "", tuner: str = "autotune", **times_ms: float) -> Any:
    return agreement.Answer(tuner, winner, frozenset([winner, *ties]), times_ms or {winner: 1.0})


def test_agreement_is_one_winner_or_one_tie_set():
    assert agreement.agree([answer("a"), answer("a")])
    assert agreement.agree([answer("a", "b"), answer("b", "a")])
    assert not agreement.agree([answer("a", "b"), answer("b")])
    assert not agreement.agree([answer("a"), answer("b")])


def test_contenders_are_near_the_best_or_won():
    first = answer("a", "d", a=1.0, b=1.4, c=1.6, d=9.0)
    second = answer("e", a=1.0, e=5.0)
    assert sorted(agreement.contenders([first, second], 1.5)) == ["a", "b", "d", "e"]


def test_regret_is_against_the_references_best():
    truth = {"a": Samples((1.0,) * 8), "b": Samples((1.02,) * 8)}
    found = agreement.rows([answer("a", a=1.1, b=1.0), answer("b", a=1.1, b=1.0)], truth)
    assert [row["regret"] for row in found] == [0.0, 0.02]
    assert [row["tuner_says_ms"] for row in found] == [1.1, 1.0]


# ---- the whole way, on a cpu


SMALL = ["--device", "cpu", "--workload", "ragged", "--set", "block_size=64", "--set", "memory=global"]
SMALL += ["--set", "tile=1", "--set", "vector_width=1"]


def test_both_sweeps_and_their_table_on_a_cpu(tmp_path):
    samples, full = peers.main([*SMALL, "--samples", "3", "--out", str(tmp_path / "peers")])
    assert samples.samples == 3
    assert len(samples.times_ms) == len(full.times_ms) == 2
    assert 0 < samples.kernel_s < samples.sweep_s < samples.wall_s
    assert len(lines_of(tmp_path / "peers-times.csv")) == 3


def test_agreement_the_whole_way_on_a_cpu(tmp_path):
    out = tmp_path / "agreement.csv"
    table = agreement.main([*SMALL, "--sweeps", "1", "--rounds", "5", "--out", str(out)])
    assert [row["tuner"] for row in table] == ["autotune"]
    assert table[0]["regret"] >= 0
    assert lines_of(out)[0].startswith("tuner,winner,ties")


@pytest.mark.filterwarnings("ignore:running on the cpu")
def test_a_copied_winner_outside_of_the_preset_is_tried(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one = {"block_size": 64, "memory": "global", "tile": 2, "vector_width": 1, "axes": "instance_major"}
    there = autotune.sweep(
        "allpairs", workload="ragged", device="cpu", preset="tiles", set=one, progress=False
    )
    path = there.save_policy(tmp_path / "policies")
    winner = there.best.configuration
    assert winner not in FAMILY.space.configurations("control")
    words = [
        "--device",
        "cpu",
        "--of",
        path.stem,
        "--policies",
        str(tmp_path / "policies"),
        "--out",
        "out.csv",
    ]
    assert copied.main([*words, "--workload", "allpairs:ragged:control", "--seconds", "600"]) == 0
    (row,) = read_rows(tmp_path / "out.csv")
    assert (row["measured"], row["copied"]) == ("2", winner.id)
    assert float(row["regret"]) >= 0
    made = read_policy_file(tmp_path / "copied-winners" / "policies" / "allpairs" / path.name)
    assert list(made.entries) == ["ragged"]
