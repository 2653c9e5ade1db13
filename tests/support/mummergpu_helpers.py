"""The modules of the mummergpu family, and short ways to call them from tests."""

import importlib
import io
import sys
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path
from typing import Any

import numpy as np
from mem_oracle import Mem

PACKAGE = "mummergpu_files"
FOLDER = Path(__file__).parents[2] / "kernels" / "mummergpu"


def _load(name: str) -> Any:
    # A family folder is not an installed package: one is made of it, so that its modules find each other.
    package = ModuleSpec(PACKAGE, None, is_package=True)
    package.submodule_search_locations = [str(FOLDER)]
    sys.modules.setdefault(package.name, module_from_spec(package))
    return importlib.import_module(f"{package.name}.{name}")


sequences = _load("sequences")
fastx = _load("fastx")
mums = _load("app.mums")


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def text_of(codes: Any) -> str:
    return "".join("ACGT."[code] for code in codes)


def reads_of(path: Path, bases_per_block: int = 10**9, **options: Any) -> list[tuple[str, str]]:
    """(header, sequence) of every read."""
    found = []
    for block in sequences.read_blocks(path, bases_per_block, **options):
        assert block.codes.dtype == np.uint8 and block.offsets.dtype == np.int64
        assert len(block.offsets) == len(block.headers) + 1
        assert block.offsets[0] == 0 and block.offsets[-1] == len(block.codes)
        for number, header in enumerate(block.headers):
            found.append((header, text_of(block.codes[block.offsets[number] : block.offsets[number + 1]])))
    return found


def mems_of(found: list[Mem], dtype: Any = np.int64) -> Any:
    columns = np.array(found, dtype).reshape(-1, 4).T
    return mums.Mems(reads=columns[0], positions=columns[1], starts=columns[2], lengths=columns[3])


def written(reference: Any, headers: list[str], forward: Any, reverse: Any = None) -> str:
    stream = io.BytesIO()
    mums.Lines(reference, headers, forward, reverse).write(stream)
    return stream.getvalue().decode("utf-8", "surrogateescape")
