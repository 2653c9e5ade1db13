"""docs/reference/errors.md names every exit code and error class, and quotes messages that autotune has."""

import ast
import re
from pathlib import Path

from test_docs import TEXTS, first_cells, section

from autotune import errors
from autotune.device import LaunchError
from autotune.record import trial

PAGE = TEXTS["docs/reference/errors.md"]
CLASSES = [
    *(item for item in vars(errors).values() if isinstance(item, type) and issubclass(item, Exception)),
    LaunchError,
]


def messages() -> list[str]:
    """Return every string of autotune's sources and its rules, with ``…`` for what an f-string fills in."""
    found: list[str] = []
    for path in (Path(__file__).parents[2] / "autotune").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = (part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
                found.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return found


def test_every_error_class_is_under_its_exit_code() -> None:
    for item in CLASSES:
        under = section(
            PAGE,
            next(line for line in PAGE.splitlines() if line.startswith(f"## Exit code {item.exit_code}:")),
        )
        assert item.__name__ in under or f"## Exit code {item.exit_code}: {item.__name__}\n" in PAGE


def test_every_exit_code_is_a_section() -> None:
    listed = {int(code) for code in re.findall(r"^## Exit code (\d+): \w+$", PAGE, re.MULTILINE)}
    assert listed == {item.exit_code for item in CLASSES}


def test_every_message_is_one_of_autotune() -> None:
    known = messages()
    quoted = [cell for cell in first_cells(PAGE) if cell not in trial.STATES]
    assert len(quoted) > 40
    for message in quoted:
        pieces = [piece.strip() for piece in message.split("…") if piece.strip(" :;,.()")]
        assert any(all(piece in text for piece in pieces) for text in known), f"no message like {message!r}"
