"""``autotune run mummergpu -i reference=FILE -i queries=FILE -i min_match_length=N -o FILE``: all maximal exact
matches of reads in a reference, as ``mummer -maxmatch -n`` writes them.

Reading, searching and writing go on at the same time, a block of reads each; never are all reads in memory. Where the
reference is cut into pages, the reads are gone through once for each, and the last pass writes; reads from a pipe come
but once, so they need one page.
"""

import time
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from autotune.family import TunedKernel, UnknownName, UsageError, WorkloadError

from ..matches import Mems
from ..sequences import (
    MAX_READ_LENGTH,
    ReadBlock,
    Reference,
    followed,
    read_blocks,
    read_reference,
    reverse_complement,
)
from .mums import write_block
from .pages import Page, Spill, merged, pages
from .search import Search, Searcher, largest_text, tree_of
from .stages import Ahead, Behind, Beside

__all__ = ["Request", "Tally", "align", "parse", "run"]

PAPER_PAGE = 8_388_608
_MOST = 2**31 - 1
# Of reads: enough to fill a device; with more, less of the reading, searching and writing goes on at once.
_BASES_PER_BLOCK = 1 << 22
_SOON_BUILT = 1 << 22  # characters: about a second
_FITS_ANYWHERE = 1 << 24  # characters: 1.7 GB on a device

Codes = NDArray[np.uint8]
Strands = list[Mems]
OpenPage = Callable[[Codes], Search]


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked for. ``page`` is in characters, 0 for one tree whatever its size, None for pages only where one
    tree would not fit; ``block`` is in bases of reads."""

    reference: Path
    queries: Path
    min_match_length: int
    both_strands: bool = False
    page: int | None = None
    block: int = _BASES_PER_BLOCK
    max_read_length: int = MAX_READ_LENGTH


def run(
    given: Mapping[str, str],
    output: Path | None,
    open_kernel: Callable[[], TunedKernel],
    note: Callable[[str], None],
) -> None:
    """Align what ``given`` names, write ``output`` and sum up through ``note``. What can be seen to be wrong in the
    arguments, the reference, or the reads up to the first that is long enough, is refused before ``open_kernel`` is
    called. Raises UsageError, UnknownName, WorkloadError, what the device raises, and OSError from writing."""
    begin = time.perf_counter()
    request = parse(given)
    if output is None:
        raise UsageError("matches go to a file: name it with -o FILE")
    reference = read_reference(request.reference)
    parts = _pages(request, reference)
    with closing(_reads(request)) as blocks, ThreadPoolExecutor(1) as opener:
        opened = opener.submit(open_kernel)  # while the first tree is built
        if request.page is None and len(reference.codes) > _FITS_ANYWHERE and opened.result().kind == "cuda":
            parts = _pages(request, reference, opened.result().memory_bytes)
        start = time.perf_counter() - begin

        def told(step: str, share: float) -> None:
            note(f"index        {step}, {share:.0%} done")

        def open_page(text: Codes) -> Search:
            tree = tree_of(text, told if len(text) > _SOON_BUILT else None)
            return Searcher(opened.result(), tree, request.min_match_length)

        tally = align(request, reference, parts, blocks, open_page, output)
        device = opened.result().device
    for line in tally.lines(device, request, len(parts), start, time.perf_counter() - begin):
        note(line)


# ---- what is asked for


def parse(given: Mapping[str, str]) -> Request:
    """The texts of the command line, checked. Raises UnknownName for a name or a value that is not one of those
    allowed, UsageError for one that is missing or no such number."""
    names = [field.name for field in fields(Request)]
    for name in given:
        if name not in names:
            raise UnknownName("input", name, names, "family mummergpu")
    for name, what in (("reference", "FILE"), ("queries", "FILE"), ("min_match_length", "N")):
        if not given.get(name):
            raise UsageError(
                f"-i {name}={what} is needed: reference, queries and min_match_length have no default"
            )
    return Request(
        reference=Path(given["reference"]),
        queries=Path(given["queries"]),
        min_match_length=_number("min_match_length", given["min_match_length"]),
        both_strands=_is_true("both_strands", given.get("both_strands", "false")),
        page=_page(given["page"]) if "page" in given else None,
        block=_number("block", given.get("block", str(_BASES_PER_BLOCK))),
        max_read_length=_number("max_read_length", given.get("max_read_length", str(MAX_READ_LENGTH))),
    )


def _page(text: str) -> int:
    named = {"none": 0, "paper": PAPER_PAGE}
    return named[text] if text in named else _number("page", text, "none, paper or ")


def _number(name: str, text: str, others: str = "") -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= _MOST):
        raise UsageError(f"-i {name}={text}: {others}a whole number from 1 to {_MOST:,} is needed")
    return int(text)


def _is_true(name: str, text: str) -> bool:
    if text not in ("true", "false"):
        raise UnknownName(f"value of {name}", text, ("true", "false"))
    return text == "true"


def _page_size(request: Request, characters: int, device_bytes: int | None = None) -> int | None:
    if request.page is not None:
        return request.page or None
    largest = largest_text(device_bytes)
    return None if characters <= largest else max(1, largest - request.max_read_length - 1)


def _pages(request: Request, reference: Reference, device_bytes: int | None = None) -> list[Page]:
    size = _page_size(request, len(reference.codes), device_bytes)
    parts = pages(reference.codes, size, request.max_read_length)
    if len(parts) > 1 and _comes_once(request.queries):
        raise WorkloadError(
            f"{request.queries} is a pipe, which can be read once, and the reads are gone through for each of "
            f"{len(parts)} pages of the reference: write them to a file, or ask for page=none"
        )
    return parts


def _comes_once(path: Path) -> bool:
    return path.exists() and not path.is_file()


def _reads(request: Request) -> Generator[ReadBlock, None, None]:
    """The blocks of reads; read up to the first that can match, so that a length beyond all reads is refused here."""

    def opened() -> Generator[ReadBlock, None, None]:
        return read_blocks(request.queries, request.block, request.max_read_length)

    keeps = _comes_once(request.queries)
    blocks = opened()
    kept: list[ReadBlock] = []
    longest = 0
    for number, block in enumerate(blocks):
        longest = max(longest, int(np.diff(block.offsets).max()))
        if keeps or not number:
            kept.append(block)
        if longest >= request.min_match_length:
            if keeps or not number:
                return followed(kept, blocks)
            blocks.close()
            return opened()
    raise WorkloadError(
        f"min_match_length {request.min_match_length} is longer than every read of {request.queries} (the longest has "
        f"{longest} bases), so nothing can match: take a smaller one"
    )


# ---- the run


@dataclass
class Tally:
    """What a run did, and the seconds it took: ``index`` and ``search`` one after the other, ``reading`` and
    ``writing`` beside them, ``waited`` for these two."""

    reads: int = 0
    bases: int = 0
    matches: int = 0
    index: float = 0.0
    search: float = 0.0
    reading: float = 0.0
    writing: float = 0.0
    waited: float = 0.0
    policy: str = ""

    def lines(self, device: str, request: Request, parts: int, start: float, wall: float) -> list[str]:
        """The summary. ``start`` is how many of ``wall`` seconds went by before the first page."""
        strands = "both strands" if request.both_strands else "one strand"
        in_turn = f"index {self.index:.3f}, search {self.search:.3f}, waiting for files {self.waited:.3f}"
        beside = f"beside these reading {self.reading:.3f}, output {self.writing:.3f}"
        return [
            f"mummergpu on {device}: {self.policy or 'nothing to search'}",
            f"reads        {self.reads:,} ({self.bases:,} bases), {strands}, {parts} page{'s' * (parts != 1)}",
            f"matches      {self.matches:,} of at least {request.min_match_length} bases",
            f"seconds      {wall:.3f}: start {start:.3f}, {in_turn}; {beside}",
            f"rate         {self.reads / wall:,.0f} reads a second",
        ]


def align(
    request: Request, reference: Reference, parts: list[Page], blocks: Iterator[ReadBlock],
    open_page: OpenPage, output: Path,
) -> Tally:  # fmt: skip
    """Search ``blocks``, the reads of ``request``, in every page and write ``output``. On one page rows are in the
    order of the tree, which is MUMmer's; on several by start in the read, then position."""
    tally = Tally()
    sizes: list[tuple[int, int]] = []
    with output.open("wb") as stream, Spill(output.parent) as spill, ExitStack() as opened:
        for number, page in enumerate(parts):
            if number:
                again = read_blocks(request.queries, request.block, request.max_read_length)
                blocks = _unchanged(opened.enter_context(closing(again)), sizes, request.queries)
            else:
                blocks = _noted(blocks, sizes)

            def keep(block: int, reads: ReadBlock, found: Strands, page: int = number) -> None:
                if page == len(parts) - 1:
                    whole = _whole(parts, spill, block, found)
                    write_block(stream, reference, reads.headers, *whole)
                    tally.matches += sum(len(mems.reads) for mems in whole)
                else:
                    for strand, mems in enumerate(found):
                        spill.put((page, block, strand), mems)

            _search_page(request, page, page.text(reference.codes), blocks, open_page, keep, tally)
    tally.reads, tally.bases = (sum(column) for column in zip(*sizes, strict=True))
    return tally


def _search_page(
    request: Request, page: Page, text: Codes, blocks: Iterator[ReadBlock], open_page: OpenPage,
    keep: Callable[[int, ReadBlock, Strands], None], tally: Tally,
) -> None:  # fmt: skip
    """One pass over the reads. ``keep`` is called for every block, in order, on a thread of its own."""
    ahead, behind = Ahead(blocks), Behind()
    with ahead as coming, behind:
        begin = time.perf_counter()
        search = open_page(text)  # while the reader is at the first blocks
        ready = time.perf_counter()
        # While one lane copies, another computes.
        with closing(search), Beside(search.lanes) as lanes:

            def found_in(block: ReadBlock) -> Strands:
                return [page.owned(mems) for mems in _strands(request, search, block)]

            for number, (block, found) in enumerate(lanes.each(found_in, coming)):
                behind.do(keep, number, block, found)
            tally.search += time.perf_counter() - ready - ahead.waited - behind.waited
            behind.finish()
        tally.index += ready - begin
        tally.policy = tally.policy or search.policy
    tally.reading += ahead.seconds
    tally.writing += behind.seconds
    tally.waited += ahead.waited + behind.waited


def _strands(request: Request, search: Search, block: ReadBlock) -> Iterator[Mems]:
    yield search.search(block.codes, block.offsets)
    if request.both_strands:
        yield search.search(reverse_complement(block.codes, block.offsets), block.offsets)


def _whole(parts: list[Page], spill: Spill, block: int, found: Strands) -> Strands:
    """What was found for a block on the last page, with what was put aside for it."""
    whole = []
    for strand, mems in enumerate(found):
        earlier = [page.placed(spill.take((n, block, strand))) for n, page in enumerate(parts[:-1])]
        last = parts[-1].placed(mems)
        whole.append(merged([*earlier, last]) if earlier else last)
    return whole


def _noted(blocks: Iterator[ReadBlock], sizes: list[tuple[int, int]]) -> Iterator[ReadBlock]:
    """``blocks``, whose reads and bases go to ``sizes``."""
    for block in blocks:
        sizes.append((len(block.headers), len(block.codes)))
        yield block


def _unchanged(blocks: Iterator[ReadBlock], sizes: list[tuple[int, int]], path: Path) -> Iterator[ReadBlock]:
    """``blocks``, as many and as large as noted; a WorkloadError where they are not."""
    now: list[tuple[int, int]] = []
    for block in _noted(blocks, now):
        if now != sizes[: len(now)]:
            break
        yield block
    if now != sizes:
        raise WorkloadError(f"{path} changed while it was read: run again when it is complete")
