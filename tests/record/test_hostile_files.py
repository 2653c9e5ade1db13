"""Files that strangers may hand over, and odd arguments: each ends in a message, in bounded time and memory."""

import errno
import gzip
import json
import lzma
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes import FAMILY, write_family
from store_process import configurations, study, trial

from autotune import processes
from autotune.cli.commands import main
from autotune.compile import Pool
from autotune.compile.hostcxx import find_compiler
from autotune.compile.variant import Geometry
from autotune.declaration import yamlfile
from autotune.declaration.expression import Expression
from autotune.declaration.family import load_family as load
from autotune.declaration.space import Configuration, Policy, Space
from autotune.declaration.workload import read_npy
from autotune.device.backend import LaunchError
from autotune.engine.process_worker import ProcessWorker
from autotune.errors import (
    AutotuneError,
    CompilerError,
    DeviceError,
    FamilyError,
    StoreError,
    UsageError,
    WorkloadError,
)
from autotune.files import write_text
from autotune.policy.selection import Candidate, choose
from autotune.record import Provenance
from autotune.record.readers import read_ceilings, read_record
from autotune.record.results_csv import read_results, write_results
from autotune.record.trial import Trial
from autotune.report.static_pass import _NEEDED, read_static

HEADER = "family,workload,device,configuration,preset,p,state,median_ms,samples,footprint_bytes\n"
ROW = "f,w,d,p=1,control,1,measured,1.0,3,8\n"
T4 = {
    "invalidity": "correct",
    "measurements": [{"name": "time", "value": 1, "unit": "ms"}],
    "objectives": ["time"],
}
KERNEL_TUNER = {"device_name": "d", "kernel_name": "k", "problem_size": [1], "tune_params_keys": ["p"]}


def kernel_tuner(entry: str) -> str:
    return f'{json.dumps(KERNEL_TUNER)[:-1]}, "cache": {{"1": {{"p": 1, {entry}}}}}}}'


# -- records and tables of others ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", "[" * 200_000),
        ("a.json", '{"cache": ' + "[" * 200_000),
        ("a.json", kernel_tuner('"time": 1, "samples": 1e999')),
        ("a.json", kernel_tuner('"time": 1e999')),
        ("a.json", kernel_tuner('"time": 1, "footprint_bytes": 1e999')),
        ("a.json", json.dumps({"results": [{**T4, "configuration": {"p": 1, "q": 1}},
                                           {**T4, "configuration": {"p": 2}}]})),
        ("a.json", json.dumps({"results": [{**T4, "configuration": {"p": 1}}],
                               "metadata": {"autotune": {"control": {"q": 1}}}})),
        ("a.json", json.dumps({"results": [{**T4, "configuration": {"p": 1}}],
                               "metadata": {"autotune": {"presets": {"best": {"q": 1}}}}})),
        ("a.csv", HEADER + ROW.replace(",3,", ",inf,")),
        ("a.csv", HEADER + ROW.replace(",3,", f",{2**64},")),
        ("a.csv", HEADER + ROW.replace("1.0", "inf")),
        ("a.csv", HEADER + ROW.replace("1.0", "0")),
        ("a.csv", HEADER + ROW.replace("1.0", "-1")),
        ("a.csv", HEADER + ROW.replace(",8", ",1e400")),
        ("a.csv", HEADER + ROW.replace("1,measured", "1" * 5000 + ",measured")),
        ("a.csv", HEADER + "f,w,d\n"),
        ("a.csv", HEADER + ROW.replace("\n", ",more\n")),
        ("a.csv", HEADER.replace("samples", "device") + ROW),
    ],
    ids=lambda text: text[:40] if len(text) < 400 else text[:10],
)  # fmt: skip
def test_a_record_of_a_stranger_is_refused_with_a_message(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(StoreError, match=re.escape(str(path))):
        read_record(str(path))


@pytest.mark.parametrize(
    "content", [b"family,workload", lzma.compress((HEADER + ROW).encode())[:-9], lzma.compress(b"\xff")]
)
def test_a_packed_table_that_cannot_be_unpacked_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.csv.xz"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=re.escape(str(path))):
        read_record(str(path))


def test_a_table_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autotune.files._MOST_BYTES", len(HEADER))
    path = tmp_path / "a.csv.xz"
    path.write_bytes(lzma.compress((HEADER + ROW).encode()))
    with pytest.raises(StoreError, match="holds more than"):
        read_record(str(path))


@pytest.mark.parametrize("name", ["pipe.csv", "pipe.csv.xz"])
def test_a_pipe_is_not_waited_for(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    os.mkfifo(path)
    with pytest.raises(StoreError, match="no file"):
        read_record(str(path))


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("limits.json", read_ceilings),
        ("static.csv", read_static),
        ("w.yaml", lambda path: yamlfile.read(path, StoreError)),
    ],
)
def test_a_pipe_beside_a_record_is_not_waited_for(
    name: str, read: Callable[[Path], object], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(StoreError, match=f"{name}: .*it is no file"):
        read(tmp_path / name)


def test_times_of_zero_are_not_divided_by(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, time in (("a", "0"), ("b", "1.0")):
        (tmp_path / f"{name}.csv").write_text(HEADER + ROW.replace("1.0", time))
    assert main(["compare", str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]) == 7
    assert "is no time" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ['{"device_name": "d", "ceilings": {"bytes_per_s": "fast"}}', "[" * 200_000, "{}"]
)
def test_ceilings_in_words_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "limits.json").write_text(text)
    with pytest.raises(StoreError):
        read_ceilings(tmp_path / "limits.json")


def test_a_static_pass_in_words_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "static.csv"
    path.write_text(",".join(sorted(_NEEDED)) + "\n" + ",".join("many" for _ in _NEEDED) + "\n")
    with pytest.raises(StoreError, match="cannot read the static pass"):
        read_static(path)


# -- what a spreadsheet would run ------------------------------------------------------------------------------

FORMULAS = [
    "=cmd|' /C calc'!A0",
    "@SUM(1)",
    "+1+cmd",
    "-1-cmd",
    "\tx",
    "'=1",
    "''-x",
    "plain",
    "it's",
    "'",
    "-1.5",
    "-",
]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_text_is_no_formula_and_is_read_back_unchanged(text: str, tmp_path: Path) -> None:
    (configuration,) = configurations(1)
    values = Configuration({"number": 0, "word": text})
    told = replace(
        trial(configuration), configuration=values, notes=(text,), family=text, workload=text, device=text
    )
    failed = Trial(
        family=text, workload=text, device=text, configuration=Configuration({"number": 1, "word": text}),
        state="compile_failed", reason=text,
    )  # fmt: skip
    kept = replace(
        study(), family=text, workload=text, device=text, control=values, presets={"control": values},
        trials=(told, failed), about=Provenance(device_name=text),
    )  # fmt: skip
    path = write_results([kept], tmp_path / "results.csv")
    import csv

    with path.open(newline="") as file:
        for row in csv.reader(file):
            for cell in row:
                assert (
                    not re.match(r"[=+\-@\t\r]", cell)
                    or re.fullmatch(r"[+-]?[\d.]+(e[+-]?\d+)?", cell)
                    or cell == text == "-1.5"
                )
    (back,) = read_results([path])
    assert (back.family, back.workload, back.device, back.about.device_name) == (text,) * 4
    assert back.control == values
    assert [t.reason for t in back.trials] == ["", text]
    assert back.trials[0].notes == (text,)


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name in (f".results.csv.{os.getpid()}.tmp", f".writable-{os.getpid()}"):
        (tmp_path / name).symlink_to(victim)
    (tmp_path / "results.csv").symlink_to(victim)
    write_text(tmp_path / "results.csv", "new")
    assert victim.read_text() == "precious"
    assert (tmp_path / "results.csv").read_text() == "new"
    assert not (tmp_path / "results.csv").is_symlink()


# -- data ------------------------------------------------------------------------------------------------------


def npy(header: str) -> bytes:
    text = header.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    "header",
    ["{'descr': '<f4', 'fortran_order': False, 'shape': (", "{'descr': '<f4', 'shape': (1e999,)}", "(((((", "'", "\x00",
     "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "[" * 100, "{'descr': [], }",
     "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"],
)  # fmt: skip
def test_a_broken_header_of_an_array_is_named(header: str, tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(npy(header))
    with pytest.raises(WorkloadError, match=r"a\.npy is not a \.npy array"):
        read_npy(path, "input x")


def test_a_small_file_that_becomes_gigabytes_is_refused(tmp_path: Path) -> None:
    plink = load("allpairs").module.plink
    with gzip.open(tmp_path / "a.fam.gz", "wb") as file:
        for _ in range(plink._MOST_BYTES // (1 << 24) + 1):
            file.write(bytes(1 << 24))
    with pytest.raises(WorkloadError, match="MiB of text"):
        plink._read_ids(tmp_path / "a.bed", ".fam")


def test_a_reference_beyond_memory_is_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mummergpu_helpers import sequences

    path = tmp_path / "r.fa"
    path.write_text(">r\n" + "ACGT" * 10 + "\n")
    monkeypatch.setattr(sequences, "host_memory", lambda: 39)
    with pytest.raises(WorkloadError, match=r"more than 39 bases, and to read one takes 1 byte .* Split it"):
        sequences.read_reference(path)

    def none(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(sequences, "plain_fasta", none)
    monkeypatch.setattr(sequences, "host_memory", lambda: 42)
    with pytest.raises(WorkloadError, match="does not fit into this host's memory"):
        sequences.read_reference(path)


def test_a_count_of_a_thousand_digits_is_refused(tmp_path: Path) -> None:
    read_xyz = load("eri").module.molecules.read_xyz
    path = tmp_path / "a.xyz"
    path.write_text("9" * 5000 + "\n\nH 0 0 0\n")
    with pytest.raises(WorkloadError, match="line 1"):
        read_xyz(path)


# -- declarations ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["extents", "scalars"])
def test_products_of_products_end_at_once(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, before = [], "n"
    for i in range(8):
        text = " * ".join([before] * 30)
        lines.append(f"  e{i}: {{value: {text!r}{', type: float64' if kind == 'scalars' else ''}}}")
        before = f"e{i}"
    folder = write_family(
        tmp_path / "doubler", FAMILY.replace("\ndata:", f"\n{kind}:\n" + "\n".join(lines) + "\ndata:")
    )
    assert main(["explain", str(folder), "--device", "cpu"]) == 3
    assert "a whole number beyond 2^256" in capsys.readouterr().err


def test_a_number_that_no_size_has_is_refused() -> None:
    assert Expression("n * n").evaluate({"n": 2**100}) == 2**200
    with pytest.raises(FamilyError, match="beyond 2\\^256"):
        Expression("n * n").evaluate({"n": 2**200})
    with pytest.raises(FamilyError, match="beyond 2\\^256"):
        Expression("round_up(n, m)").evaluate({"n": 2**256, "m": 2**256 - 1})


def large(*constraint: str) -> Space:
    from autotune.declaration.space import Constraint

    policies = tuple(Policy(f"p{i}", tuple(range(10)), 0) for i in range(9))
    return Space(policies, tuple(Constraint(Expression(text), "rare") for text in constraint))


def test_a_space_that_is_too_large_is_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    from autotune.declaration import space

    monkeypatch.setattr(space, "_MOST_MEMBERS", 1000)
    monkeypatch.setattr(space, "_MOST_STEPS", 20_000)
    for one in (large(), large("p8 > 8 and p0 == 9 or p8 == 0 and p7 + p6 + p0 == 0")):
        with pytest.raises(UsageError, match="too many combinations to list"):
            one.configurations()
        one.check()
        assert len(one.configurations("full", {f"p{i}": [0] for i in range(1, 9)})) >= 1
        assert one.get_single("control") == one.control
        assert one.get_single("full") is None


@pytest.mark.parametrize("value", ["x\n#error INJECTED", "x; int y", "x,y", "a=b", ""])
def test_a_value_of_an_option_is_a_word(value: str, tmp_path: Path) -> None:
    options = f"\noptions:\n  mode: {{values: [plain, {json.dumps(value)}], default: plain}}\ndata:"
    folder = write_family(tmp_path / "doubler", FAMILY.replace("\ndata:", options))
    for check in (True, False):
        with pytest.raises(FamilyError, match=r"option mode: values .* must be distinct words"):
            load(folder, check)


def test_less_than_no_shared_memory_is_refused() -> None:
    from autotune.hardware import Limits

    assert "less than none" in Geometry((1, 1, 1), (32, 1, 1), -1).explain_refusal(Limits())


@pytest.mark.parametrize("schema", ["family", "workload", "policy"])
def test_a_name_does_not_end_in_a_newline(schema: str) -> None:
    from autotune.declaration import yamlfile

    patterns = re.findall(
        r'"pattern": ("(?:[^"\\]|\\.)*")',
        (Path(yamlfile.__file__).parents[1] / "schemas" / f"{schema}.json").read_text(),
    )
    assert patterns
    for pattern in map(json.loads, patterns):
        for name in ("a", "a" * 64, "a.cu"):
            assert not re.search(pattern, name + "\n")


# -- the machine -----------------------------------------------------------------------------------------------


def test_what_a_device_refuses_is_an_error_of_ours() -> None:
    assert issubclass(LaunchError, AutotuneError)
    assert LaunchError.exit_code == 5


def test_an_input_that_fits_nowhere_has_its_exit_code() -> None:
    control = Candidate("control", Configuration({"p": 1}), "the family's defaults")
    with pytest.raises(DeviceError, match="no configuration fits this input: too large"):
        choose([control], lambda _: "too large")


def test_a_command_with_an_open_quote_is_named() -> None:
    with pytest.raises(CompilerError, match=r"CXX asks for .*No closing quotation"):
        find_compiler("", {"CXX": 'g++ "'})


@pytest.mark.usefixtures("fresh_children")
def test_a_process_that_cannot_be_started_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(*_arguments: Any, **_named: Any) -> None:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(processes.subprocess, "Popen", no_room)
    worker = ProcessWorker("cpu", dict, "", 1.0)
    with pytest.raises(DeviceError, match="cannot start a measuring process for cpu: Resource temporarily"):
        worker.launch()
    worker.close(at_once=True)
    pool = Pool(1)
    with pytest.raises(CompilerError, match="cannot start a compiler process: Resource temporarily"):
        pool.submit(print).result()
    pool.stop()


LONG = "x" * 300


@pytest.mark.parametrize(
    "arguments",
    [["list", LONG], ["lint", LONG], ["show", LONG, "control"], ["sweep", LONG], ["sweep", "allpairs", "-w", LONG],
     ["run", LONG], ["run", "allpairs", "-w", LONG], ["run", "allpairs", "-i", f"genotypes={LONG}"],
     ["explain", "allpairs", "-w", LONG], ["explain", "allpairs", "--device", LONG], ["check", LONG],
     ["report", LONG], ["compare", LONG, LONG], ["regret", LONG], ["convert", LONG], ["import", f"{LONG}.json"],
     ["export", "allpairs", "--device", LONG], ["check", "--policies", LONG], ["new", LONG]],
    ids=lambda arguments: "-".join(arguments)[:24],
)  # fmt: skip
def test_a_name_longer_than_a_file_may_have(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) in range(2, 11)
    assert capsys.readouterr().err


# -- which commands run a family's code ------------------------------------------------------------------------

IMPORTED = "import pathlib\n\npathlib.Path(__file__).with_name('imported').touch()\n"


@pytest.mark.parametrize(
    ("arguments", "imports"),
    [
        (["list"], False), (["show", "control", "--header"], False),
        (["check", "POLICIES/doubler/cpu-x.yaml", "--family"], False), (["explain", "--device", "cpu"], True),
    ],
)  # fmt: skip
def test_only_what_says_so_imports_a_familys_python(
    arguments: list[str], imports: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As SECURITY.md lists them."""
    folder = write_family(tmp_path / "doubler")
    (folder / "family.py").write_text(IMPORTED)
    path = tmp_path / "policies" / "doubler" / "cpu-x.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("schema: 2\nfamily: doubler\ndevice: {kind: cpu, name: X}\ndefault: {memory: global}\n")
    given = [item.replace("POLICIES", str(tmp_path / "policies")) for item in arguments]
    place = len(given) if given[0] == "check" else 1
    assert main([*given[:place], str(folder), *given[place:]]) in (0, 3)
    assert "Traceback" not in capsys.readouterr().err
    assert (folder / "imported").exists() is imports
    security = (Path(__file__).parents[2] / "SECURITY.md").read_text()
    (row,) = [
        line
        for line in security.splitlines()
        if re.match(rf"\| .*`{given[0]}\b( --header)?`[,` a-z-]*\|", line)
    ][:1]
    assert row.split("|")[2].strip().startswith("yes" if imports else "no")
