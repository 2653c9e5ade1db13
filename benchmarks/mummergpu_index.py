"""What the index of a reference takes to make on a GPU: seconds for each step, bytes for each character, and where the
device's memory ends; with ``--host`` also on the host.

    python benchmarks/mummergpu_index.py --reference chr20.fa.gz --letters 4600000 48000000 --host
    python benchmarks/mummergpu_index.py --letters 1300000000 3100000000 --runs 1

``--letters`` makes genomes: random, with copies of elements as a human genome has them, a tenth of 300 letters and a
fifth of 6,000, each letter changed with a chance of 0.1, and a hundredth of tandem repeats. Kinds of an index: ``tree``
(nodes and children by turns), ``ranges`` (with the leaves below each node), ``words`` (no tree, but the leaves in order
and a table of 13 letters). ``peak`` and ``kept`` are the bytes of a character while it is made and afterwards. With
``--host`` each array is compared with what the host makes of the same reference.
"""

import importlib
import itertools
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from harness import arguments, module_of
from numpy.typing import NDArray
from result_files import write_rows

from autotune.compile import Cache, default_root
from autotune.declaration import load_family
from autotune.device import DeviceProgram, Room, open_backend

FAMILY = load_family("mummergpu")
PACKAGE = module_of(FAMILY).__package__
BUILDER, STEPS, SEQUENCES, TREE = (
    importlib.import_module(f"{PACKAGE}.{name}")
    for name in ("index.builder", "index.steps", "sequences", "suffix_tree")
)
TABLE_LETTERS = 13
KINDS: dict[str, dict[str, Any]] = {
    "tree": {"merged": True},
    "ranges": {"merged": True, "ranges": True, "leaves": True},
    "words": {"tree": False, "leaves": True, "tables": {"fine_table": TABLE_LETTERS}},
}
ELEMENTS = ((300, 0.1), (6000, 0.2))  # letters, share of the genome
CHANGED = 0.1
TANDEM, TANDEM_LETTERS = 0.01, 1000
AT_ONCE = 1 << 24
COLUMNS = (
    "device", "reference", "characters", "kind", "seconds", "least", "most", "runs", "steps", "nodes", "peak", "kept",
    "right", "host_seconds", "refused",
)  # fmt: skip

Codes = NDArray[np.uint8]


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__, "mummergpu-index.csv")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--reference", type=Path, nargs="*", default=[])
    parser.add_argument("--letters", type=int, nargs="*", default=[])
    parser.add_argument("--kinds", choices=KINDS, nargs="*", default=[*KINDS])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--host", action="store_true", help="the host's index, too, and whether they agree")
    given = parser.parse_args(words)
    references = [*_references(given.reference, given.letters)]
    if given.check:
        print(f"{len(references)} references, {', '.join(given.kinds)}")
        return 0
    rows: list[dict[str, Any]] = []
    with closing(open_backend(given.device)) as backend:
        program = _Counting(backend, Cache(default_root()), STEPS.SOURCE, STEPS.KERNELS, STEPS.SIZES)
        for name, make in references:
            text = make()
            expected = _host(text) if given.host else None
            for kind in given.kinds:
                row = {
                    "device": backend.device.name,
                    "reference": name,
                    "characters": text.size,
                    "kind": kind,
                }
                row |= _measured(program, text, kind, given.runs, expected)
                rows.append(row)
                print(*row.values(), flush=True)
            write_rows(given.out, rows, COLUMNS)
    return 0


def _references(paths: Sequence[Path], lengths: Sequence[int]) -> Iterator[tuple[str, Callable[[], Codes]]]:
    """Names, and what reads or makes each."""
    for path in paths:
        yield path.name, lambda path=path: SEQUENCES.read_reference(path).codes  # type: ignore[misc]
    for letters in lengths:
        yield f"generated {letters}", lambda letters=letters: genome(letters)  # type: ignore[misc]


def genome(letters: int, seed: int = 20260501) -> Codes:
    """A separator ends it. Pieces are made each on its own, by all cores, with the same elements."""
    elements = repeats(np.random.default_rng(seed))
    text = np.empty(letters + 1, np.uint8)
    text[letters] = TREE.SEPARATOR
    pieces = [text[begin : min(begin + AT_ONCE, letters)] for begin in range(0, letters, AT_ONCE)]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for _ in pool.map(
            lambda k: fill(pieces[k], elements, np.random.default_rng((seed, k))), range(len(pieces))
        ):
            pass
    return text


def repeats(generator: np.random.Generator) -> list[Codes]:
    """What a genome has many copies of."""
    return [generator.integers(0, 4, length).astype(np.uint8) for length, _ in ELEMENTS]


def fill(piece: Codes, elements: Sequence[Codes], generator: np.random.Generator) -> None:
    """A piece of a genome, made in its place."""
    piece[:] = generator.integers(0, 256, piece.size, np.uint8) >> 6
    for element, (length, share) in zip(elements, ELEMENTS, strict=True):
        if length >= piece.size:
            continue
        starts = generator.integers(0, piece.size - length, int(piece.size * share / length))
        drawn = generator.integers(0, 256, (starts.size, length), np.uint8)
        changes = np.where(drawn < int(256 * CHANGED), drawn % 3 + 1, 0)
        piece[starts[:, None] + np.arange(length)] = (element + changes) % 4
    for _ in range(int(piece.size * TANDEM / TANDEM_LETTERS)):
        unit = generator.integers(0, 4, generator.integers(1, 7)).astype(np.uint8)
        start = int(generator.integers(0, max(1, piece.size - TANDEM_LETTERS)))
        there = piece[start : start + TANDEM_LETTERS]
        there[:] = np.resize(unit, there.size)


class _Counting(DeviceProgram):
    """Counts the bytes of the memory that is held, ``now`` and at the most."""

    now = peak = 0

    def room(self, nbytes: int, content: NDArray[Any] | None = None) -> Room:
        room = super().room(nbytes, content)
        self.now += nbytes
        self.peak = max(self.peak, self.now)
        close = room.close
        is_open = [nbytes]

        def closed() -> None:
            self.now -= is_open.pop() if is_open else 0
            close()

        room.close = closed  # type: ignore[method-assign]
        return room


def _measured(
    program: _Counting, text: Codes, kind: str, runs: int, expected: dict[str, Any] | None
) -> dict[str, Any]:
    seconds, steps = [], []
    for _ in range(runs + (runs > 1)):  # the first is for what is loaded once
        told: list[tuple[str, float]] = []
        program.peak = program.now

        def tell(step: str, share: float, told: list[tuple[str, float]] = told) -> None:  # noqa: ARG001
            program.synchronize()
            told.append((step, time.perf_counter()))

        begin = time.perf_counter()
        try:
            index = BUILDER.build(program, text, BUILDER.Wanted(**KINDS[kind]), tell)
        except MemoryError as problem:
            return {"refused": str(problem)}
        seconds.append(time.perf_counter() - begin)
        steps.append({name: after - at for (name, at), (_, after) in itertools.pairwise(told)})
        row = {
            "nodes": index.nodes,
            "peak": f"{program.peak / text.size:.1f}",
            "kept": f"{program.now / text.size:.1f}",
        }
        row["right"] = "" if expected is None else _agrees(index, expected)
        index.close()
    seconds, steps = seconds[-runs:], steps[-runs:]
    medians = {name: statistics.median(step[name] for step in steps) for name in steps[0]}
    return {
        "seconds": f"{statistics.median(seconds):.4f}", "least": f"{min(seconds):.4f}", "most": f"{max(seconds):.4f}",
        "runs": runs, "steps": " ".join(f"{name.replace(' ', '_')}={s:.4f}" for name, s in medians.items()), **row,
        "host_seconds": f"{expected['seconds']:.3f}" if expected else "", "refused": "",
    }  # fmt: skip


def _host(text: Codes) -> dict[str, Any]:
    begin = time.perf_counter()
    tree = TREE.build(text)
    seconds = time.perf_counter() - begin
    arrays = {name: getattr(tree, name) for name in ("nodes", "children", "tails")} | TREE.leaf_arrays(tree)
    return {"seconds": seconds, **{name: array.view(np.uint32) for name, array in arrays.items()}}


def _agrees(index: Any, expected: dict[str, Any]) -> str:
    """Whether every word is as the host has it, of what was made."""
    for name, room in index.rooms.items():
        found = room.fetch(np.uint32, room.nbytes // 4) if name in expected else None
        if found is not None and name == "nodes":
            both = found.reshape(-1, 2, 4)
            if not all(
                np.array_equal(both[:, member].reshape(-1), expected[part])
                for member, part in enumerate(("nodes", "children"))
            ):
                return "no"
        elif found is not None and not np.array_equal(found, expected[name]):
            return "no"
    return "yes"


if __name__ == "__main__":
    sys.exit(main())
