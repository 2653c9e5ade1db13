"""The commands that benchmarks/mummergpu_end_to_end.py runs: ours, and those of the peers that are on this machine."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from harness import python_path

OURS = "autotune"


@dataclass(frozen=True, eq=False)
class Command:
    """`arguments` take {reference}, {queries}, {length} and {output}; without {output} it is what they print."""

    tool: str
    version: str
    threads: int
    arguments: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    most_runs: int | None = None


def ours(cores: int, cache: Path, device: str, policies: Path | None) -> list[Command]:
    arguments = [sys.executable, "-m", "autotune", "run", "mummergpu", "-i", "reference={reference}"]
    arguments += ["-i", "queries={queries}", "-i", "min_match_length={length}", "-o", "{output}"]
    arguments += ["--device", device] if device else []
    environment = {"AUTOTUNE_CACHE": str(cache), "PYTHONPATH": python_path(), "COLUMNS": "400"}
    if policies:
        environment["AUTOTUNE_POLICIES"] = str(policies.resolve())
    version = told_by([sys.executable, "-m", "autotune", "--version"], environment).split()[-1]
    shared = (version, cores, tuple(arguments), environment)
    # The first run finds an empty cache and leaves it filled.
    return [
        Command(f"{OURS}, cold cache", *shared, most_runs=1),
        Command(f"{OURS}, warm cache", *shared),
    ]


# What each peer is called, the names of its program, and its options for n threads.
PEERS: dict[str, tuple[tuple[str, ...], Callable[[int], list[str] | None]]] = {
    "mummer 3": (("mummer3", "mummer"), lambda n: ["-maxmatch"] if n == 1 else None),
    "MUMmer4": (("mummer4", "mummer"), lambda n: ["-maxmatch", "-qthreads", str(n)]),
    "E-MEM": (("e-mem",), lambda n: ["-t", str(n)]),
    "essaMEM -k 1": (("essamem",), lambda n: ["-maxmatch", "-k", "1", "-qthreads", str(n)]),
    "essaMEM -k 4": (("essamem",), lambda n: ["-maxmatch", "-k", "4", "-qthreads", str(n)]),
}


def peers(cores: int, folder: Path | None) -> tuple[list[Command], list[str]]:
    """The commands of programs that are here, and the names of those that are not."""
    made, missing = [], []
    for tool, (files, options) in PEERS.items():
        program = _program(files, folder)
        if program is None:
            missing.append(tool)
            continue
        path, version = program
        for threads in sorted({1, cores}):
            if (chosen := options(threads)) is not None:
                arguments = (path, *chosen, "-n", "-l", "{length}", "{reference}", "{queries}")
                made.append(Command(tool, version, threads, arguments))
    return made, missing


def _program(files: tuple[str, ...], folder: Path | None) -> tuple[str, str] | None:
    """Path and version of the first of `files` that is here; a `mummer` only where it is of the right generation."""
    own = str(folder.resolve()) if folder else ""
    for file in files:
        path = shutil.which(file, path=os.pathsep.join(filter(None, [own, os.environ.get("PATH", "")])))
        if path is None:
            continue
        # MUMmer 4 knows this option and mummer 3 does not; E-MEM begins every message with its version.
        told = re.search(r"^(?:E-MEM Version )?(\d+(?:\.\d+)+)", told_by([path, "--version"]), re.MULTILINE)
        if file == "mummer" and ("mummer4" in files) != (told is not None):
            continue
        digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12]
        listed = _listed(Path(own) / "versions.txt").get(file) if str(Path(path).parent) == own else None
        return path, (told[1] if told else None) or listed or _packaged(path) or f"untold, sha256 {digest}"
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
