"""``autotune new``: a family folder that works at once.

The template, ``new_family/`` next to this file, is itself a working family: its files open in an editor, compile and
are linted like any other. Its name is the placeholder: the word ``new_family`` becomes the new family's name in
file names and texts, and nothing else is changed.
"""

import re
from pathlib import Path

from autotune.declaration import families, yamlfile
from autotune.errors import StoreError, UsageError, explained

PLACEHOLDER = "new_family"
TEMPLATE = Path(__file__).resolve().parent / PLACEHOLDER

_NAME = re.compile(r"[a-z][a-z0-9_]*")  # as in schemas/family.json
_FILES = {".cu", ".cuh", ".py", ".yaml"}  # __pycache__ and what editors leave do not travel


def new_family(name: str, parent: Path) -> tuple[Path, list[Path]]:
    """Write ``parent/name``; returns the folder and the files in it. Raises UsageError for a name that cannot be a
    family's or a folder that exists, and StoreError when a file cannot be written."""
    _check(name)
    folder = parent / name
    if folder.exists() or folder.is_symlink():
        raise UsageError(
            f"{folder} already exists, and nothing is overwritten: choose another name, or --out DIR"
        )
    made = []
    with explained(StoreError, f"cannot write {folder}:", "; name another folder with --out DIR"):
        for source in sorted(path for path in TEMPLATE.rglob("*") if path.suffix in _FILES):
            path = folder / rename(source.relative_to(TEMPLATE).as_posix(), name)
            path.parent.mkdir(parents=True, exist_ok=True)
            text = rename(source.read_text(encoding="utf-8"), name)
            if path.suffix == ".yaml":  # what stands ahead of a YAML file for editors
                text = (
                    f"{yamlfile.editor_line('family' if path.name == 'family.yaml' else 'workload')}\n{text}"
                )
            path.write_text(text, encoding="utf-8")
            made.append(path)
    return folder, made


def rename(text: str, name: str) -> str:
    """``text`` with the placeholder, as a whole word, replaced by ``name``."""
    return re.sub(rf"\b{PLACEHOLDER}\b", name, text)


def _check(name: str) -> None:
    if not _NAME.fullmatch(name):
        close = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
        hint = f"; did you mean {close!r}?" if _NAME.fullmatch(close) else ""
        raise UsageError(
            f"{name!r} is not a valid family name{hint} (allowed: lower-case letters, digits and _, beginning with a "
            "letter)"
        )
    if name in families():
        raise UsageError(
            f"a family named {name!r} ships with autotune, and workloads and policy files are found by that "
            "name: choose another one (autotune families lists them)"
        )
