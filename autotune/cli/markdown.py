"""What comparisons and checks are in Markdown, for the summary of a CI job and for a comment."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from autotune.errors import StoreError


def append(path: Path, text: str) -> None:
    """Write ``text`` behind what is in ``path``: a job's summary may hold something already. Raises StoreError."""
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as problem:
        raise StoreError(f"cannot write {path}: {problem.strerror or problem}") from None


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Of cells that are Markdown: see ``code``."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def code(text: str) -> str:
    """What a file says, of whoever it is, as a code span: on one line, in which nobody reads markup, HTML or names."""
    line = re.sub(r"\\*\|", r"\\|", " ".join(text.split()).replace("`", "'"))
    return f"`{line}`" if line else ""
