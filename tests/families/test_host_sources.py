"""Every C++ source that a family has the host's compiler make, under AddressSanitizer and UndefinedBehaviorSanitizer:
on dirty files, in many threads and small pieces (tests/support/host_sources.py). What mummergpu finds there is what
mummer prints, byte for byte."""

import json
import os
import random
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from import_path import import_path
from mem_oracle import run_mummer
from sanitized import COMPILER, libraries

pytestmark = pytest.mark.asan

ROOT = Path(__file__).parents[2]
CHILD = ROOT / "tests" / "support" / "host_sources.py"
MINIMUM = 12
EXPORTED = re.compile(r"(?:\bEXPORT|visibility\(\"default\"\)\)\))\s+\w+\s+(\w+)\(")

# Lines so long that, with the end of a Windows line, sixteens are full; and others.
WIDTHS = [15, 31, 95, 111, 127, 14, 16, 1, 60, 100]
LINE_ENDS = ["\n", "\r\n", "  \n", "\t\r\n", " " * 16 + "\n", "\n\n", "\r\n \t\r\n"]


def child(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    environment = {
        **os.environ,
        "PYTHONPATH": import_path(),
        "CXX": shlex.join(COMPILER),
        "LD_PRELOAD": ":".join(libraries()),
        "ASAN_OPTIONS": "detect_leaks=0",  # Python keeps what it has to the end
        "PYTHONMALLOC": "malloc",
    }
    command = [sys.executable, str(CHILD), *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def sources() -> list[Path]:
    """Of all families, those of the examples too."""
    folders = {
        path.parent for root in ("kernels", "examples") for path in (ROOT / root).glob("*/family.yaml")
    }
    endings = (".c", ".cc", ".cpp", ".cxx")
    return sorted(path for folder in folders for path in folder.rglob("*") if path.suffix in endings)


def dirty(draw: random.Random, text: str) -> str:
    """``text`` in lines of all widths with all ends, blanks and tabs in some of them."""
    lines, at = "", 0
    end = draw.choice(LINE_ENDS)
    while at < len(text):
        width = draw.choice(WIDTHS)
        line = text[at : at + width]
        at += width
        if not draw.randrange(8):
            line = line[: width // 2] + draw.choice([" ", "\t", " " * 12]) + line[width // 2 :]
        lines += line + (end if draw.randrange(4) else draw.choice(LINE_ENDS))
    return lines


def write_inputs(folder: Path) -> None:
    draw = random.Random(1)
    bases = "".join(draw.choices("ACGT", k=6_000))
    text = bases + bases[1_000:2_000] + "ACGACG" * 40 + bases[:500].lower()
    several = [bases[:2_500], bases[2_000:2_700] + "N" * 20 + bases[4_000:5_000], "acg" * 30]
    (folder / "one.reference").write_text(">one record\r\n" + dirty(draw, text), newline="")
    headers = enumerate(several)
    records = "".join(f">record{number} of several\r\n{dirty(draw, each)}" for number, each in headers)
    (folder / "several.reference").write_text(records.rstrip(), newline="")
    for reference, count in (("one", 700), ("several", 300)):
        reads = []
        for number in range(count):
            first = draw.randrange(len(text))
            read = text[first : first + draw.choice([*WIDTHS, 0, 40, 300])]
            if read and not number % 3:
                place = draw.randrange(len(read))
                read = read[:place] + draw.choice("ACGTNRx*") + read[place + 1 :]
            reads.append((f"read{number} {draw.choice(['', 'a', 'words and words'])}", read))
        lines = "".join(f">{name}{draw.choice(LINE_ENDS)}{dirty(draw, read)}" for name, read in reads)
        (folder / f"{reference}-fasta.reads").write_text(lines.rstrip(), newline="")
        lines = "".join(
            f"@{name}\r\n{read} \t\r\n+\n{'I' * len(read)}{draw.choice([' ', ''])}\n" for name, read in reads
        )
        (folder / f"{reference}-fastq.reads").write_text(lines.rstrip("\n"), newline="")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, compile_cache: str) -> Path:
    made = tmp_path_factory.mktemp("dirty")
    write_inputs(made)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("AUTOTUNE_CACHE", compile_cache)
        done = child(made)
    assert done.returncode == 0, done.stderr
    return made


def test_every_source_of_every_family_has_run(folder: Path) -> None:
    called: dict[str, set[str]] = {}
    for source, function in json.loads((folder / "called.json").read_text()):
        called.setdefault(source, set()).add(function)
    expected = {
        str(source.relative_to(ROOT)): set(EXPORTED.findall(source.read_text())) for source in sources()
    }
    assert all(expected.values()) and len(expected) >= 8
    assert called == expected, "let tests/support/host_sources.py run what is not called yet"


@pytest.mark.mummer
@pytest.mark.parametrize("ending", ["fasta", "fastq"])
@pytest.mark.parametrize("reference", ["one", "several"])
def test_what_dirty_files_give_is_mummers_file(folder: Path, reference: str, ending: str) -> None:
    found = folder / f"{reference}-{ending}.mems"
    reads = folder / f"{reference}-fasta.reads"  # mummer reads no FASTQ
    expected = run_mummer(folder / f"{reference}.reference", reads, MINIMUM, both_strands=True)
    assert expected.count("\n") > 1_000
    assert found.read_bytes() == expected.encode()


FAULTS = {
    "AddressSanitizer: heap-buffer-overflow": "array[8] = 1;",
    "runtime error: signed integer overflow": "int most = 0x7FFFFFFF; most += array[0] + 1; array[0] = most & 1;",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_ends_the_process(fault: str, tmp_path: Path) -> None:
    source = tmp_path / "faulty.cpp"
    visible = 'extern "C" __attribute__((visibility("default")))'
    source.write_text(f"{visible} void run(volatile unsigned char* array) {{ {FAULTS[fault]} }}\n")
    done = child(tmp_path, source)
    assert done.returncode and fault in done.stderr
