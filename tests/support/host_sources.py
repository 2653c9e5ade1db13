"""A process in which the families' own C++ runs, built with AddressSanitizer and UndefinedBehaviorSanitizer: in many
threads, in small pieces, on inputs that a test has written to a folder. What the sanitizers find ends it.

    python host_sources.py FOLDER           every source; the folder gets the matches, and the functions called
    python host_sources.py FOLDER SOURCE    another source's function ``run``, on an array of 8 bytes
"""

import ctypes
import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np

import autotune.family
from autotune.compile.host_library import library

# ahead of the families' modules, which take it by name
autotune.family.library = lambda source, *headers, **options: Recorded(  # type: ignore[assignment]
    library(source, *headers, **options), source
)

from mummergpu_helpers import _load, mems_of, mums, sequences  # noqa: E402

THREADS = 8
ROOT = Path(__file__).parents[2]
MINIMUM = 12


class Recorded:
    """A library; ``called`` gets the functions that were asked of it, each with its source."""

    called: ClassVar[set[tuple[str, str]]] = set()

    def __init__(self, made: ctypes.CDLL, source: Path) -> None:
        self._made, self._source = made, str(source.relative_to(ROOT))

    def __getitem__(self, name: str) -> Any:
        self.called.add((self._source, name))
        return getattr(self._made, name)

    __getattr__ = __getitem__


@contextmanager
def small_pieces(text: Any, fastx: Any, lines: Any) -> Iterator[None]:
    """Many threads, each with little to do, so that every edge between two pieces is met."""
    tree, array, search = (_load(name) for name in ("suffix_tree", "suffix_array", "mem_search"))
    sizes = {
        text: {"_BYTES_AT_ONCE": 512},
        fastx: {
            "_PIECE_BYTES": 2048,
            "_WINDOW_BYTES": 4096,
            "_LEAST_WINDOW": 1024,
            "_LONG_WINDOW_BYTES": 5_000,
        },
        lines: {"_ROWS_AT_ONCE": 64},
        mums: {"_LINES_AT_ONCE": 64},
        tree: {"_LEAST_RANGE": 1024},
        array: {"_LEAST_POSITIONS": 64, "_LEAST_WORDS": 1},
        search: {"_BASES_AT_ONCE": 1024},
    }
    with ExitStack() as patched:
        patched.enter_context(patch.object(os, "sched_getaffinity", lambda _: set(range(THREADS))))
        for module, of_module in sizes.items():
            for name, size in of_module.items():
                assert hasattr(module, name)
                patched.enter_context(patch.object(module, name, size))
        yield


def run_mummergpu(folder: Path) -> None:
    """The matches of each file of reads, ``NAME.mems`` of ``NAME.reads``; an index for the kernels; and what takes a
    whole MB for a piece."""
    text, fastx, lines, search = (_load(name) for name in ("text", "fastx", "app.lines", "mem_search"))
    with small_pieces(text, fastx, lines):
        references = {path.stem: sequences.read_reference(path) for path in folder.glob("*.reference")}
        for path in sorted(folder.glob("*.reads")):
            reference = references[path.stem.split("-")[0]]
            with path.with_suffix(".mems").open("wb") as stream:
                for block in sequences.read_blocks(path, 30_000):
                    turned = sequences.reverse_complement(block.codes, block.offsets)
                    found = (
                        search.find_mems(reference.codes, codes, block.offsets, MINIMUM)
                        for codes in (block.codes, turned)
                    )
                    mums.Lines(reference, block.headers, *found).write(stream)
        for reference in references.values():
            tree = _load("suffix_tree").build(reference.codes)
            _load("suffix_tree").leaf_arrays(tree)
            _load("tables").tables(reference.codes, MINIMUM)
    in_whole_pieces(text, lines, references["one"], folder)


def in_whole_pieces(text: Any, lines: Any, reference: Any, folder: Path) -> None:
    """Sizes that text.cpp has for its pieces, and a file of nothing but matches made in memory."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 5, 1_100_003, dtype=np.uint8)
    words = np.zeros(-(-codes.size // 8), np.uint32)
    text.packed(codes, words, THREADS)
    offsets = np.linspace(0, codes.size, 9_001).astype(np.int64)
    turned = text.turned(codes, offsets, THREADS)
    assert np.array_equal(text.turned(turned, offsets, THREADS), codes)
    large = folder / "large"
    large.write_bytes(codes.tobytes())
    room = np.empty(codes.size, np.uint8)
    with large.open("rb") as file:
        assert text.read_at(file.fileno(), 0, room, THREADS) == codes.size
    assert np.array_equal(room, codes)
    assert text.cut_fasta(codes + np.uint8(ord("A")), THREADS) == codes.size  # one line
    rows = [(read, 7 * read % 1000, read, 10**9 * (read % 2)) for read in range(500)]
    stream = io.BytesIO()
    headers = [f"read{number}" for number in range(500)]
    mums.Lines(reference, headers, mems_of(rows)).write(stream)
    assert stream.getvalue().count(b"\n") == 1000


def run_coulomb(_folder: Path) -> None:
    exact = autotune.family.family_module("coulomb", "exact")
    rng = np.random.default_rng(1)
    atoms = np.zeros(37, [(name, np.float32) for name in "xyzq"])
    for name in "xyzq":
        atoms[name] = rng.uniform(-1, 3, atoms.size)
    by_numpy = exact.potential(atoms, (13, 7, 5), 0.5)
    with patch.object(exact, "_COMPILED_FROM", 0):
        assert np.allclose(exact.potential(atoms, (13, 7, 5), 0.5), by_numpy, rtol=1e-12)


def run(folder: Path) -> None:
    run_mummergpu(folder)
    run_coulomb(folder)
    (folder / "called.json").write_text(json.dumps(sorted(Recorded.called)))


if __name__ == "__main__":
    if len(sys.argv) > 2:
        array = np.zeros(8, np.uint8)
        library(Path(sys.argv[2])).run(ctypes.c_void_p(array.ctypes.data))
    else:
        run(Path(sys.argv[1]))
