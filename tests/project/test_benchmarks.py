"""Every script of benchmarks/ is run: small on the cpu, and with ``--check`` where it is about a GPU or a peer.

So that none rots unseen: a script that is in no table here fails, as does a file of benchmarks/results that
benchmarks/README.md does not name. Nothing here judges a time.
"""

import argparse
import ast
import importlib
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import entries_again
import entries_tables
import pytest
import result_files
import selection_record
import selection_sweep
from result_files import HEAD, RESULTS, read_head, read_rows
from test_docs import TEXTS, fences

from autotune.policy import read_policy_file

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks"
SCRIPTS = {path.stem: path for path in FOLDER.glob("*.py")}
INDEX = (FOLDER / "README.md").read_text(encoding="utf-8")

# What each is given; {out} is the CSV that it writes, {tmp} an empty folder.
SMALL = {
    "accessor_costs": "--only lengths --times --device cpu --rounds 1 --families {tmp} --out {out}",
    "advise": f"spaces allpairs={RESULTS}/allpairs-h200.csv.xz --workloads primer --out {{out}}",
    "allpairs_peers": "--device cpu --workload ragged --configuration control --rounds 1 --out {out}",
    "callables_layouts": "--device cpu --scale 0.001 --kernels points --out {out}",
    "callables_overhead": "--device cpu --calls 3 --rounds 2 --out {out}",
    "coulomb_accuracy": "--device cpu --workload 1a63-slice --out {out} simple",
    "coulomb_cpu": "--workload 1a63-slice --out {out} simple",
    "coulomb_ions": "--device cpu --workload 1a63-ions --out {out} "
    "update=lazy,tile=4,near=3,block_size=128,launch=persistent",
    "coulomb_map": "--device cpu --workload 1a63-map --points 20 --out {out} control",
    "coulomb_map_peers": "--device cpu --workload 1a63-map --strides 2 4 --points 20 --rounds 1 --peers jzfmm "
    "--out {out} --configuration control accuracy=1e-2,cell=8,order=8,separation=18",
    "coulomb_peers": "--device cpu --workload 1a63-slice --rounds 1 --out {out}",
    "cyclospectrum_charts": "--device cpu --sizes 5 16 --samples 1 --out {out}",
    "cyclospectrum_exact": "--device cpu --set generation=prefix --set vector_width=1 --set outputs_per_thread=1 "
    "--set block_size=256 --set finish=host_sort --orders unsorted --sizes 1 5 --out {out}",
    "cyclospectrum_peers": "--device cpu --sizes 16 --pairs 16 --rounds 1 --policies {tmp} --out {out}",
    "dispatch_overhead": "--device cpu --calls 3 --rounds 2 --processes 1 --out {out}",
    "drawn_spaces": "--draws 50 --trials 8 --out {out}",
    "eri_libcint": "--device cpu --workload water2 --rounds 1 --configuration control --out {out}",
    "eri_subclasses": "--device cpu --workload water2 --out {out}",
    "eri_transfer": "--device cpu --workload water2 --scheme scheme-2 --out {out}",
    "generated_declarations": "--count 6 --device cpu --out {out}",
    "mummergpu_index": "--device cpu --letters 9000 --runs 1 --host --kinds tree ranges --out {out}",
    "mummergpu_large": "--device cpu --letters 90000 --records 2 --reads 50 --out {out}",
    "layout_pictures": "",
    "layout_share": "",
    "mummergpu_beyond": "",
    "mummergpu_policy_analysis": "",
    "planted_faults": "--sweeps 1 --of no_number --out {out}",
    "public_kernels": f"{ROOT} --list {ROOT}/tests/support/public_kernels.csv --out {{out}}",
    "reaction_diffusion_experiment": "times --device cpu --grid 7x9 --steps 4 --interval 2 --preset control "
    "--out {out}",
    "reaction_diffusion_peers": "--peers numpy --grid 8 --seconds 0 --out {out}",
    "reaction_diffusion_stencils": "--programs {tmp} --device cpu --grid 9 --steps 4 --configuration time_block=1 "
    "--out {out}",
    "renew_alike": "HEAD",
    "search_replay": f"{RESULTS}/stencil-h200.csv --seeds 1 --methods random --strategies random_sample "
    "--budget 0.1 --seconds 2 --processes 1 --out {out}",
    "selection_inputs": "--family allpairs --each 2 --out {tmp}/inputs",
    "selection_rules": f"--taught {RESULTS}/selection-taught-h200.csv.xz --family lookup --rule vote --out {{out}}",
    "selection_regret": f"{RESULTS}/allpairs-h200.csv.xz --out {{out}}",
    "spread_efficiency": "coulomb -w 1a63-slice --kind cpu --devices 1 --allocations contiguous --runs 1 "
    "--set slices_per_launch=1 --out {out}",
    "static_ranking": f"allpairs={RESULTS}/allpairs-h200.csv.xz --workloads primer --most 2 --out {{out}}",
    "store_overhead": "--trials 3 --timed 3",
    "transfer": f"{RESULTS}/lookup-h200.csv.xz --seeds 1 --budget 0.1 --out {{out}} --regret {{tmp}}/regret.csv",
}  # fmt: skip
# What needs a GPU or a peer, up to there; the workload is one that ships.
CHECKED = {
    "accessor_costs": "--only lengths",
    "allpairs_peers": "--workload ragged",
    "allpairs_plink": "--workload hapmap3-slice",
    "allpairs_programs": "--workload hapmap3-slice",
    "king_plink": "--workload hapmap3-slice",
    "callables_layouts": "",
    "callables_overhead": "",
    "coulomb_accuracy": "--workload 1a63-slice",
    "coulomb_cpu": "",
    "cold_lines": "",
    "copied_winners": "",
    "entries_again": "--families allpairs --workloads primer",
    "coulomb_ions": "--workload 1a63-ions",
    "coulomb_map": "--workload 1a63-map",
    "coulomb_map_peers": "--workload 1a63-map",
    "coulomb_peers": "--workload 1a63-slice",
    "coulomb_published": "--workload 1a63-slice",
    "crossover": "allpairs --parameter instances=28,56 --parameter attributes=64",
    "cyclospectrum_charts": "",
    "cyclospectrum_exact": "--sizes 5",
    "cyclospectrum_peers": "--sizes 16 --pairs 16",
    "dispatch_overhead": "",
    "energy": "allpairs --workload ragged",
    "equal_choices": "",
    "engine_peers": "",
    "eri_libcint": "--workload water2",
    "eri_matrices": "--family eri_sp --workload water27-jk --configuration control",
    "eri_subclasses": "--workload water2",
    "eri_transfer": "--workload water2",
    "helion_run": "--workload ragged --set memory=global --cache {tmp}",
    "quadrants_run": "--workload ragged --set memory=global --cache {tmp}",
    "kernel_tuner_run": "nvcuda --workload ragged --set memory=global --out {out} --cache {tmp}",
    "layout_costs": "",
    "programs": "md pic --workload small",  # tests of examples load them all
    "reaction_diffusion_experiment": "times --grid 16",
    "reaction_diffusion_peers": "--peers numpy,cupy,torch",
    "reaction_diffusion_stencils": "--programs {tmp}",
    "selection_refine": "allpairs --each 1",
    "spread_efficiency": "coulomb -w 1a63-slice",
    "triton_public": "",
    "why": "",
    "winner_agreement": "",
}
# What other tests run whole, on the cpu.
ELSEWHERE = {
    "equal_choices": "spread/test_equal_choices.py",
    "engine_peers": "project/test_engine_benchmarks.py",
    "winner_agreement": "project/test_engine_benchmarks.py",
    "kernel_tuner_examples": "project/test_kernel_tuner_benchmarks.py",
    "hub_t1": "project/test_kernel_tuner_benchmarks.py",
    "drawn_sweep": "project/test_kernel_tuner_benchmarks.py",
    "pages": "project/test_pages.py",
    "selection_sweep": "project/test_benchmarks.py",
    "mummergpu_end_to_end": "families/mummergpu/test_end_to_end_benchmark.py",
}
NEEDS = {"coulomb_published": pytest.mark.nvrtc}
RUNNING = [pytest.param(name, words, id=name) for name, words in SMALL.items()]
CHECKING = [pytest.param(name, words, id=name, marks=NEEDS.get(name, ())) for name, words in CHECKED.items()]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """A script's ``main``, to be called in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda name: importlib.import_module(name).main


@pytest.mark.filterwarnings("ignore:no usable policy file")
@pytest.mark.parametrize(("name", "words"), RUNNING)
def test_a_script_runs_small(name: str, words: str, script: Any, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    status = script(name)(words.format(out=out, tmp=tmp_path).split())
    assert status in ((0, 1) if name == "store_overhead" else (0, None))  # 1: slower than it should be
    if "{out}" in words:
        assert read_rows(out)


def test_inputs_that_selection_is_taught_with_and_asked_for_are_swept_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(selection_sweep, "_LISTED", 0)  # no space is swept whole
    (tmp_path / "pool").write_text("control\ngeneration=prefix\n")
    words = ["cyclospectrum", "--device", "cpu", "--out", str(tmp_path)]
    selection_sweep.main([*words, "--spread", "1", "--most", "2", "--pool", str(tmp_path / "pool")])
    taught = tmp_path / "taught.csv"
    ((point, study),) = selection_record.read(taught)["cyclospectrum"]
    assert point == {"n": 314}
    assert {trial.configuration["generation"] for trial in study.trials} == {"brute", "prefix"}
    table = taught.rename(tmp_path / "earlier.csv")

    later = [*words, "--known", str(table), "--best", "1", "--others", "0", "--spread", "1"]
    later += ["--drawn", "1", "--seed", "2", "--into", str(tmp_path / "policies")]
    selection_sweep.main(later)
    found = {
        kind: selection_record.read(tmp_path / f"{kind}.csv")["cyclospectrum"] for kind in ("asked", "taught")
    }
    assert [point["n"] for ((point, _),) in found.values()] == [135, 87]
    best = min(study.times, key=lambda c: study.times[c])
    assert all({t.configuration for t in one.trials} >= {best} for ((_, one),) in found.values())
    (path,) = (tmp_path / "policies").rglob("*.yaml")
    assert list(read_policy_file(path).entries) == ["87"]  # not what is asked for
    capsys.readouterr()
    selection_sweep.main(later)
    assert not capsys.readouterr().out

    named = [*words, "--pool", str(tmp_path / "pool"), "--most", "2", "--points", "30", "--into", later[-1]]
    selection_sweep.main(named)
    assert list(read_policy_file(path).entries) == ["30", "87"]

    joined = tmp_path / "joined.csv.xz"
    selection_record.main([str(table), str(tmp_path / "asked.csv"), "--out", str(joined)])
    assert [point["n"] for point, _ in selection_record.read(joined)["cyclospectrum"]] == [314, 135]


@pytest.mark.filterwarnings("ignore:running on the cpu")
@pytest.mark.parametrize(("name", "words"), CHECKING)
def test_a_script_goes_as_far_as_it_can(
    name: str, words: str, script: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = words.format(out=tmp_path / "out.csv", tmp=tmp_path)
    assert script(name)(["--check", *words.split()]) in (0, None, [])
    assert capsys.readouterr().out
    assert not (tmp_path / "out.csv").exists()


def imports(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    froms = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    return {name for name in froms if name} | {
        alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    }


def test_a_tree_comes_before_the_callers_own_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}
    monkeypatch.setattr(entries_again.subprocess, "Popen", lambda _words, **named: given.update(named))
    for before, after in (("wheels", [str(tmp_path), "wheels"]), ("", [str(tmp_path)])):
        monkeypatch.setenv("PYTHONPATH", before)
        entries_again.Tree("now", tmp_path, tmp_path, 1, 0.0)
        assert given["env"]["PYTHONPATH"].split(os.pathsep) == after


def test_what_the_same_code_differs_by_is_the_noise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header = "family,verdict,code,before_ms,now_ms,now_over_before,now_over_recorded"
    lines = [  # the verdicts are of rows alone
        "a,slower,same,1,1.02,1.02,1", "a,faster,same,1,0.97,0.97,1", "a,not timed,same,,,,",
        "examples/b,slower,other,1,1.02,1.02,1", "examples/b,slower,other,1,1.03,1.03,1",
        "examples/b,faster,other,1,0.96,0.96,1", "c,slower,,,1.01,,1.01", "c,swept again,,,2,,2",
    ]  # fmt: skip
    (tmp_path / entries_tables.RECORD).write_text("\n".join([header, *lines]), encoding="utf-8")
    swept = "family,winner,now_over_recorded\na,same,1.01\na,other,0.98\nb,same,1"
    (tmp_path / entries_tables.SWEPT_AGAIN).write_text(swept, encoding="utf-8")
    monkeypatch.setattr(result_files, "RESULTS", tmp_path)
    tables = entries_tables.tables()
    assert tables["swept"].splitlines()[2:] == ["| a | 2 | 1 | 0.980 to 1.010 |", "| b | 1 | 0 | 1.000 |"]
    assert tables["families"].splitlines()[2:] == [
        "| a | 3 | same | 0 | 2 | 0 | 0.970 to 1.020 | 0 |  | 1 |",
        "| c | 1 | new | 0 | 0 | 0 |  | 1 | 1.010 | 0 |",
        "| b | 3 | other | 1 | 1 | 1 | 0.960 to 1.030 | 0 |  | 0 |",
    ]


def test_no_script_is_left_out() -> None:
    run = SMALL.keys() | CHECKED.keys() | ELSEWHERE.keys()
    assert run <= SCRIPTS.keys()
    for name, place in ELSEWHERE.items():
        text = (ROOT / "tests" / place).read_text(encoding="utf-8")
        assert name in text and ".main(" in text, f"{place} does not run {name}"
    parts = {part for name in run for part in imports(SCRIPTS[name])} | {"search_replay_kernel_tuner"}
    assert "search_replay_kernel_tuner" in SCRIPTS["search_replay"].read_text(
        encoding="utf-8"
    )  # a process of its own
    tables = {name for text in TEXTS.values() for name in re.findall(r"<!-- table: (\w+) ", text)}
    for name, path in SCRIPTS.items():
        is_script = '__name__ == "__main__"' in path.read_text(encoding="utf-8")
        if name in tables and not is_script:  # pages.py imports it
            parts.add(name)
        assert name in run | parts, f"{path.name} is neither run nor checked: give it a line in {__name__}"
        assert is_script or name in parts


def commands() -> Iterator[tuple[str, str, list[str]]]:
    """(document, script, words) of every command in the documents and the scripts' own first lines."""
    texts = TEXTS | {
        f"benchmarks/{name}.py": f"```sh\n{ast.get_docstring(ast.parse(path.read_text(encoding='utf-8')))}\n```\n"
        for name, path in SCRIPTS.items()
    }
    for document, text in texts.items():
        for language, content in fences(text):
            for line in content.replace("\\\n", " ").splitlines() if language == "sh" else ():
                if found := re.match(r"\s*python benchmarks/(\w+)\.py(.*)", line):
                    words = shlex.split(re.sub(r"\[[^\]]*\]|\.\.\.|…", "", found[2]))
                    yield document, found[1], words


COMMANDS = list(commands())


class Parsed(BaseException):
    """Nothing was wrong with the words."""


@pytest.mark.parametrize(
    ("document", "name", "words"), COMMANDS, ids=[f"{d}: {n} {' '.join(w)}" for d, n, w in COMMANDS]
)
def test_a_command_of_the_documents_is_understood(
    document: str, name: str, words: list[str], script: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = argparse.ArgumentParser.parse_args

    def parse(self: Any, given: Any = None) -> Any:
        real(self, given)
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse)
    with pytest.raises(Parsed):
        script(name)(words)


def test_every_table_says_what_made_it_when_and_on_what() -> None:
    for path in [*RESULTS.rglob("*.csv"), *RESULTS.rglob("*.csv.xz")]:
        head = read_head(path)
        assert tuple(head) == HEAD and all(head.values()), (
            f"{path.name} does not begin with {', '.join(HEAD)}"
        )


def test_a_table_is_kept_with_its_head(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(result_files, "RESULTS", tmp_path)
    table = tmp_path / "results.csv"
    table.write_text("name,date,driver,compiler\na # b,2026-11-23,580.1,nvrtc 13\n")
    assert result_files.main([str(table), "kept.csv", "autotune", "sweep", "demo", "--set", "x=1 2"]) == 0
    head = read_head(tmp_path / "kept.csv")
    told = ("command", "date", "driver", "versions")
    assert [head[name] for name in told] == [
        "autotune sweep demo --set 'x=1 2'",
        "2026-11-23",
        "580.1",
        "nvrtc 13",
    ]
    assert read_rows(tmp_path / "kept.csv") == [
        {"name": "a # b", "date": "2026-11-23", "driver": "580.1", "compiler": "nvrtc 13"}
    ]
    assert result_files.read_frame(tmp_path / "kept.csv")["name"].tolist() == ["a # b"]


def test_every_result_names_what_made_it() -> None:
    named = set(re.findall(r"^\| `([\w.*-]+)` ", INDEX.partition("## Results")[2], re.MULTILINE))
    kept = {path.name for path in RESULTS.iterdir()}
    for name in kept:
        assert any(Path(name).match(pattern) for pattern in named), (
            f"benchmarks/README.md does not name {name}"
        )
    for pattern in named:
        assert any(Path(name).match(pattern) for name in kept), f"{pattern} is no file of benchmarks/results"
    scripts = set(re.findall(r"`(\w+)\.py`", INDEX))
    assert scripts >= {name for name in SCRIPTS if '"__main__"' in SCRIPTS[name].read_text(encoding="utf-8")}
    assert scripts <= SCRIPTS.keys() | {"compare", "tables"}
