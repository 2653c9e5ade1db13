"""The commands that benchmarks/mummergpu_end_to_end.py runs: ours, and those of the peers that are on this machine."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness import python_path

OURS = "autotune"

COPMEM_LEAST = 50  # copMEM2 finds no shorter matches


@dataclass(frozen=True, eq=False)
class Command:
    """`arguments` take {reference}, {queries}, {length}, {kept} and {output}; without {output} it is what they print.
    `kept` is what an earlier command wrote. Before each run the folder `emptied` is removed."""

    tool: str
    version: str
    threads: int
    arguments: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    most_runs: int | None = None
    emptied: Path | None = None


def ours(cores: int, cache: Path, device: str, policies: Path | None, cold_runs: int = 1) -> list[Command]:
    arguments = [sys.executable, "-m", "autotune", "run", "mummergpu", "-i", "reference={reference}"]
    arguments += ["-i", "queries={queries}", "-i", "min_match_length={length}", "-o", "{output}"]
    arguments += ["--device", device] if device else []
    environment = {"AUTOTUNE_CACHE": str(cache), "PYTHONPATH": python_path(), "COLUMNS": "400"}
    if policies:
        environment["AUTOTUNE_POLICIES"] = str(policies.resolve())
    version = told_by([sys.executable, "-m", "autotune", "--version"], environment).split()[-1]
    shared = (version, cores, tuple(arguments), environment)
    # A cold run finds an empty cache and leaves it filled.
    return [
        Command(f"{OURS}, cold cache", *shared, most_runs=cold_runs, emptied=cache),
        Command(f"{OURS}, warm cache", *shared),
    ]


def _printed(*options: str) -> tuple[str, ...]:
    """The arguments of a program that prints matches as mummer does."""
    return (*options, "-n", "-l", "{length}", "{reference}", "{queries}")


# What each peer is called, the names of its program, and its arguments for n threads and matches of a length; None
# where it has none for them.
PEERS: dict[str, tuple[tuple[str, ...], Callable[[int, int], tuple[str, ...] | None]]] = {
    "mummer 3": (("mummer3", "mummer"), lambda n, _: _printed("-maxmatch") if n == 1 else None),
    "MUMmer4": (("mummer4", "mummer"), lambda n, _: _printed("-maxmatch", "-qthreads", str(n))),
    "copMEM2": (
        ("copmem2",),
        lambda n, length: (
            ("-q", "-t", str(n), "-l", "{length}", "-o", "{output}", "{reference}", "{queries}")
            if length >= COPMEM_LEAST
            else None
        ),
    ),
    "E-MEM": (("e-mem",), lambda n, _: _printed("-t", str(n))),
    "essaMEM -k 1": (("essamem",), lambda n, _: _printed("-maxmatch", "-k", "1", "-qthreads", str(n))),
    "essaMEM -k 4": (("essamem",), lambda n, _: _printed("-maxmatch", "-k", "4", "-qthreads", str(n))),
}

# Copying an output within its folder: what nobody who writes it can be much faster than.
FLOOR = Command(
    "copy of the output", "cp", 1, (shutil.which("cp") or "cp", "{kept}", "{output}"), most_runs=2
)


def peers(
    cores: int, folder: Path | None, length: int, threads: Sequence[int] = ()
) -> tuple[list[Command], list[str]]:
    """The commands of programs that are here, and the names of those that are not; each with one thread and with as
    many as there are cores, or with ``threads``."""
    made, missing = [], []
    for tool, (files, options) in PEERS.items():
        program = _program(files, folder)
        if program is None:
            missing.append(tool)
            continue
        path, version = program
        for count in sorted(set(threads or (1, cores))):
            if (chosen := options(count, length)) is not None:
                made.append(Command(tool, version, count, (path, *chosen)))
    return made, missing


def _program(files: tuple[str, ...], folder: Path | None) -> tuple[str, str] | None:
    """Path and version of the first of `files` that is here; a `mummer` only where it is of the right generation."""
    own = str(folder.resolve()) if folder else ""
    for file in files:
        path = shutil.which(file, path=os.pathsep.join(filter(None, [own, os.environ.get("PATH", "")])))
        if path is None:
            continue
        # MUMmer 4 knows this option and mummer 3 does not; E-MEM and copMEM begin every message with theirs.
        told = re.search(
            r"^(?:E-MEM Version |copMEM )?(\d+(?:\.\d+)+)", told_by([path, "--version"]), re.MULTILINE
        )
        if file == "mummer" and ("mummer4" in files) != (told is not None):
            continue
        digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12]
        listed = _listed(Path(own) / "versions.txt").get(file) if str(Path(path).parent) == own else None
        return path, listed or (told[1] if told else None) or _packaged(path) or f"untold, sha256 {digest}"
    return None


def _listed(file: Path) -> dict[str, str]:
    lines = file.read_text().splitlines() if file.exists() else []
    return {words[0]: words[1] for words in (line.split(maxsplit=1) for line in lines) if len(words) == 2}


def _packaged(path: str) -> str:
    if shutil.which("dpkg-query") is None:
        return ""
    package = told_by(["dpkg-query", "-S", path]).partition(":")[0]
    return told_by(["dpkg-query", "-W", "-f", "${Version}", package]).strip() if package else ""


def told_by(command: list[str], environment: dict[str, str] | None = None) -> str:
    """What a command prints, whatever its exit code; it may leave files in its folder, so that gets one."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            command, cwd=folder, env=os.environ | (environment or {}), check=False, capture_output=True, text=True
        )  # fmt: skip
    return done.stdout + done.stderr
