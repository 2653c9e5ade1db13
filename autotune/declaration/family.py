"""Families by what a user calls them: a name, a folder, a family.yaml, a file that an extension reads.

This stands above what a kernel declared from Python, or by a T1 file, is made of: they read the folder that they wrote
(``read_family``), and know nothing of the ways to one.
"""

import os
from pathlib import Path

from autotune.declaration.family_folder import Family, read_family
from autotune.errors import FamilyError, UnknownName
from autotune.extensions import reader_of
from autotune.files import find_bundled


def families(extra: Path | None = None) -> dict[str, Path]:
    """Folders of the known families by name: those shipped, then ``extra``'s."""
    roots = [find_bundled("kernels"), *([extra] if extra else [])]
    return {file.parent.name: file.parent for root in roots for file in sorted(root.glob("*/family.yaml"))}


def load_family(name_or_folder: str | os.PathLike[str], check: bool = True) -> Family:
    """Load a family.

    Args:
        name_or_folder: the name of one that ships (``families``), the folder that declares it or the family.yaml there,
            or a file that an extension reads.
        check: whether to check the declaration against the schema; if False, only when it cannot be read otherwise.

    Raises:
        UnknownName, FamilyError: there is no such family, or its declaration is wrong.
    """
    text = os.fspath(name_or_folder)
    is_file = Path(text).name != "family.yaml" and Path(text).is_file()
    if is_file and (reader := reader_of(text, "families")):
        read: Family = reader.read_family(Path(text))
        return read
    return read_family(_folder(text), check)


def _folder(text: str) -> Path:
    """Where the family is stored. Raises UnknownName, FamilyError."""
    known = families()
    if Path(text).name == "family.yaml" and Path(text).is_file():  # its folder is meant
        text = str(Path(text).parent)
    folder = known.get(text) or Path(text)
    if text not in known and not (folder / "family.yaml").is_file():
        if "/" in text or folder.is_dir():
            raise FamilyError(
                f"{folder} holds no family.yaml: name a family ({', '.join(known)}) or a folder with one"
            )
        raise UnknownName("family", text, known)
    return folder
