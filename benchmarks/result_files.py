"""The files in ``results``: CSV tables that begin with what made them, compressed by xz where they are large.

    python benchmarks/result_files.py TABLE NAME COMMAND...

keeps a table of a sweep or of an example's compare.py as ``results/NAME``, with COMMAND, which made it. The scripts of
this folder write theirs with ``write_rows``. The first lines are ``# command: ...`` and so on for each name of HEAD;
what is not known there is said to be ``not recorded``.
"""

import argparse
import csv
import io
import lzma
import platform
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

__all__ = ["HEAD", "RESULTS", "read_frame", "read_head", "read_rows", "write_rows", "write_text"]

RESULTS = Path(__file__).parent / "results"
HEAD = ("command", "commit", "date", "driver", "versions")
UNKNOWN = "not recorded"
LARGE = 100_000  # bytes


def read_frame(path: Path, **options: Any) -> pd.DataFrame:
    """A table without its head; ``options`` are pandas.read_csv's."""
    frame: pd.DataFrame = pd.read_csv(io.StringIO(_body(path)), **options)
    return frame


def read_rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(_body(path), newline="")))


def read_head(path: Path) -> dict[str, str]:
    """What is said of a table before its header; empty where nothing is."""
    lines = _text(path).partition(_body(path))[0].splitlines()
    return {name: told for name, _, told in (line.removeprefix("# ").partition(": ") for line in lines)}


def _text(path: Path) -> str:
    if path.suffix != ".xz":
        return path.read_bytes().decode("utf-8")
    return lzma.decompress(path.read_bytes()).decode("utf-8")


def _body(path: Path) -> str:
    text = _text(path)
    while text.startswith("# "):
        text = text.partition("\n")[2]
    return text


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> None:
    """A table with a line for each row; its columns are those of the first row, where none are given."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(columns or rows[0]), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue())


def write_text(path: Path, table: str, about: Mapping[str, str] | None = None) -> None:
    """A table behind its head: what is known of this process, where ``about`` does not say."""
    known = _this_run() if about is None else about
    text = "".join(f"# {name}: {known.get(name) or UNKNOWN}\n" for name in HEAD) + table
    path.parent.mkdir(parents=True, exist_ok=True)
    content = text.encode("utf-8")
    path.write_bytes(lzma.compress(content, preset=9) if path.suffix == ".xz" else content)


@cache
def _this_run() -> Mapping[str, str]:
    packages = ("numpy", "pandas", "optuna")
    return {
        "command": shlex.join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]]),
        "commit": _said("git", "-C", str(RESULTS), "describe", "--always", "--dirty"),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "driver": _said("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader") or "none",
        "versions": ", ".join(
            [f"Python {platform.python_version()}", *(f"{p} {version(p)}" for p in packages)]
        ),
    }


def _said(*command: str) -> str:
    """The first line that a program prints; empty where it cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.partition("\n")[0].strip()


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", type=Path)
    parser.add_argument("name")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args(words)
    table, frame = _body(given.table), read_frame(given.table, low_memory=False)
    told = {name: str(frame[name].dropna().iloc[-1]) for name in ("date", "driver") if name in frame}
    told |= {"versions": str(frame["compiler"].dropna().iloc[-1])} if "compiler" in frame else {}
    name = given.name + ".xz" if len(table) > LARGE and not given.name.endswith(".xz") else given.name
    write_text(RESULTS / name, table, {**_this_run(), **told, "command": shlex.join(given.command)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
