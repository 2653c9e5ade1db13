"""``autotune run mummergpu -i reference=FILE -i queries=FILE -i min_match_length=N -o FILE``: all maximal exact
matches of reads in a reference, as ``mummer -maxmatch -n`` writes them.

Reading, searching and writing go on at the same time, a block of reads each; never are all reads in memory. Where the
reference is cut into pages, the reads are gone through once for each, and the last pass writes; reads from a pipe come
but once, so they need one page.
"""

import itertools
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, fields, replace
from functools import partial
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
    require,
    reverse_complement,
)
from .clock import Clock
from .expected import expected
from .lines import compiled
from .mums import Lines
from .pages import Page, Spill, merged, pages
from .portions import Portions
from .search import Search, Searcher, compile_ahead, largest_text
from .stages import Ahead, Behind, Beside

__all__ = ["Request", "Tally", "align", "parse", "run"]

PAPER_PAGE = 8_388_608
_MOST = 2**32 - 1
# Of reads: enough to fill a device; with more, less of the reading, searching and writing goes on at once.
_BASES_PER_BLOCK = 1 << 25
# Of these so many are searched at once: on one device, and on a cpu or where matches wait in a file.
_MANY_BASES, _FEW_BASES = 1 << 24, 1 << 22
_SPARE = 1.25  # portions are about equal: room for a little more reads than the first block has
_SOON_BUILT = 1 << 22, 1 << 29  # characters: about a second on a cpu, on a GPU
_FITS_ANYWHERE = 1 << 24  # characters: 1.7 GB on a device

Codes = NDArray[np.uint8]
Strands = list[Mems]
Writing = Callable[[], None]
Keep = Callable[[int, ReadBlock, Strands], Writing | None]
OpenPage = Callable[[Codes, ReadBlock], Search]


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
    arguments, or is not there, is refused before ``open_kernel`` is called; what is wrong in the reference, or in the
    reads up to the first that is long enough, before anything runs on the device, which is opened and compiled for
    meanwhile. Raises UsageError, UnknownName, WorkloadError, what the device raises, and OSError from writing."""
    clock = Clock()
    request = parse(given)
    if output is None:
        raise UsageError("matches go to a file: name it with -o FILE")
    for path in (request.reference, request.queries):
        require(path)
    clock.lap("start")
    # One thread opens the device and gives it back; others compile, where it has not been done before.
    with ExitStack() as held, ThreadPoolExecutor(1) as opener, ThreadPoolExecutor(2) as compilers:

        def open_device() -> TunedKernel:
            kernel = open_kernel()
            if kernel.kind == "cuda":
                compilers.submit(_compile_ahead, request, kernel)  # what goes wrong there shows later as well
            return kernel

        opened, writes = opener.submit(open_device), compilers.submit(compiled)
        reference, blocks = _inputs(request)
        held.enter_context(closing(blocks))
        clock.lap("reading")
        kernel = opened.result()
        device, is_gpu = kernel.device, kernel.kind == "cuda"
        parts = _pages(request, reference, lambda: _largest(request, reference, kernel))
        clock.lap("start")

        def told(step: str, share: float) -> None:
            note(f"index        {step}, {share:.0%} done")

        def open_page(text: Codes, block: ReadBlock) -> Search:
            at_once = _at_once(len(block.codes), len(block.headers), _MANY_BASES if is_gpu else _FEW_BASES)
            report = told if len(text) > _SOON_BUILT[is_gpu] else None
            return Searcher(kernel, text, request.min_match_length, *at_once, report)

        def give_back(search: Search) -> None:
            search.close()
            compilers.shutdown()  # who still compiles needs the device
            kernel.close()

        def searched(search: Search) -> None:
            closed.append(opener.submit(give_back, search))  # while the last lines are written

        closed: list[Future[None]] = []
        writes.result()
        tally = align(request, reference, parts, blocks, open_page, searched, output, clock)
        for done in closed:
            done.result()
    clock.lap("end")
    for line in tally.lines(device, request, len(parts), clock):
        note(line)


def _compile_ahead(request: Request, kernel: TunedKernel) -> None:
    """What will most likely run, where files say how large they are before they are read."""
    reference, queries = expected(request.reference), expected(request.queries)
    if reference and queries:
        block = min(queries.letters, request.block)
        reads = queries.records * block // max(1, queries.letters)
        at_once = _at_once(block, reads, _MANY_BASES)
        characters = reference.letters + reference.records
        if request.page:
            characters = min(characters, request.page + request.max_read_length + 1)
        compile_ahead(kernel, characters, request.min_match_length, *at_once)


def _at_once(bases: int, reads: int, most: int) -> tuple[int, int]:
    """How many bases and reads of a block are searched at once; ``most`` is in bases."""
    few = min(bases, most)
    return few, int(_SPARE * (reads * few // max(1, bases))) + 1


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


def _largest(request: Request, reference: Reference, kernel: TunedKernel) -> int:
    """How many characters a page may have."""
    if len(reference.codes) <= _FITS_ANYWHERE and kernel.kind == "cuda":
        return _FITS_ANYWHERE
    return largest_text(kernel, reference.codes, request.min_match_length)


def _pages(request: Request, reference: Reference, largest: Callable[[], int]) -> list[Page]:
    """As asked for, else as few as are possible where a page may have the ``largest`` number of characters."""
    size = request.page or None
    if request.page is None and len(reference.codes) > (most := largest()):
        size = max(1, most - request.max_read_length - 1)
    parts = pages(reference.codes, size, request.max_read_length)
    if len(parts) > 1 and _comes_once(request.queries):
        raise WorkloadError(
            f"{request.queries} is a pipe, which can be read once, and the reads are gone through for each of "
            f"{len(parts)} pages of the reference: write them to a file, or ask for page=none"
        )
    return parts


def _reference(request: Request) -> Reference:
    """With what can be said of its pages before the device is opened."""
    reference = read_reference(request.reference)
    if request.page is not None:
        _pages(request, reference, lambda: 0)
    return reference


def _inputs(request: Request) -> tuple[Reference, Generator[ReadBlock, None, None]]:
    """The reference and the reads, read at the same time where both are files."""
    if _comes_once(request.queries):
        reference = _reference(request)
        return reference, _reads(request)
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(_reads, request)
        try:
            reference = _reference(request)
            return reference, coming.result()
        except BaseException:
            if not coming.exception():
                coming.result().close()
            raise


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
    """What a run did; ``reading`` and ``writing`` are the seconds of the threads that did these beside the others."""

    reads: int = 0
    bases: int = 0
    matches: int = 0
    reading: float = 0.0
    writing: float = 0.0
    policy: str = ""

    def lines(self, device: str, request: Request, parts: int, clock: Clock) -> list[str]:
        """The summary."""
        strands = "both strands" if request.both_strands else "one strand"
        beside = f"in threads beside these reading {self.reading:.3f}, output {self.writing:.3f}"
        return [
            f"mummergpu on {device}: {self.policy or 'nothing to search'}",
            f"reads        {self.reads:,} ({self.bases:,} bases), {strands}, {parts} page{'s' * (parts != 1)}",
            f"matches      {self.matches:,} of at least {request.min_match_length} bases",
            f"seconds      {clock.total:.3f}: {clock}; {beside}",
            f"rate         {self.reads / clock.total:,.0f} reads a second",
        ]


def align(
    request: Request, reference: Reference, parts: list[Page], blocks: Iterator[ReadBlock],
    open_page: OpenPage, searched: Callable[[Search], None], output: Path, clock: Clock,
) -> Tally:  # fmt: skip
    """Search ``blocks``, the reads of ``request``, in every page and write ``output``; ``searched`` is called when all
    is found, but not all is written. On one page rows are in the order of the tree, which is MUMmer's; on several by
    start in the read, then position."""
    tally = Tally()
    sizes: list[tuple[int, int]] = []
    with output.open("wb") as stream, Spill(output.parent) as spill, ExitStack() as opened:
        for number, page in enumerate(parts):
            if number:
                again = read_blocks(request.queries, request.block, request.max_read_length)
                blocks = opened.enter_context(closing(again))

            def keep(block: int, reads: ReadBlock, found: Strands, page: int = number) -> Writing | None:
                if page < len(parts) - 1:
                    for strand, mems in enumerate(found):
                        spill.put((page, block, strand), mems)
                    return None
                whole = _whole(parts, spill, block, found)
                tally.matches += sum(len(mems.reads) for mems in whole)
                return partial(Lines(reference, reads.headers, *whole).write, stream)

            def checked(portions: Iterator[ReadBlock], again: bool = number > 0) -> Iterator[ReadBlock]:
                return _unchanged(portions, sizes, request.queries) if again else _noted(portions, sizes)

            def opened_page(block: ReadBlock, page: Page = page) -> Search:
                return open_page(page.text(reference.codes), block)

            last = searched if number == len(parts) - 1 else _nothing
            reads = Pass(blocks, checked, len(parts) == 1, last)
            _search_page(request, page, reads, opened_page, keep, tally, clock)
            clock.lap("end")
    tally.reads, tally.bases = (sum(column) for column in zip(*sizes, strict=True))
    return tally


@dataclass(frozen=True)
class Pass:
    """One pass over the reads: the ``blocks`` as they are read, what looks at the portions that are searched at once,
    and what is called when all are. Where it is the only one, portions may be of any size."""

    blocks: Iterator[ReadBlock]
    checked: Callable[[Iterator[ReadBlock]], Iterator[ReadBlock]]
    is_only: bool
    searched: Callable[[Search], None]


def _nothing(_search: Search) -> None:
    """Another pass follows."""


def _search_page(
    request: Request, page: Page, reads: Pass, open_page: Callable[[ReadBlock], Search],
    keep: Keep, tally: Tally, clock: Clock,
) -> None:  # fmt: skip
    """One pass over the reads. ``keep`` is called for every portion, in order, on a thread of its own, and what is then
    to be written on another."""
    ahead, behind, writer = Ahead(reads.blocks), Behind(), Behind()
    with ahead as coming, behind, writer:
        block = next(coming)
        clock.lap("reading")
        at_once, waited = itertools.chain([block], coming), ahead.waited
        # Reading goes on, and while one lane copies, another computes.
        with closing(open_page(block)) as search, Beside(_threads(request, search)) as lanes:
            clock.lap("index")
            _search_all(request, page, search, replace(reads, blocks=at_once), lanes, behind, writer, keep)
            clock.lap("search")
            clock.move("search", "reading", ahead.waited - waited)
            clock.move("search", "output", behind.waited)
            reads.searched(search)
            behind.finish()
            writer.finish()
            clock.lap("output")
            tally.policy = tally.policy or search.policy
    tally.reading += ahead.seconds
    tally.writing += writer.seconds


def _search_all(
    request: Request, page: Page, search: Search, reads: Pass, lanes: Beside, behind: Behind,
    writer: Behind, keep: Keep,
) -> None:  # fmt: skip
    """Every read in a page that is open; the last may still have to be written."""
    few = search.lanes == 1 or not reads.is_only
    portions = Portions(_FEW_BASES if few else _MANY_BASES, reads.is_only)

    def strands() -> Iterator[tuple[ReadBlock, bool]]:
        for block in reads.checked(portions.of(reads.blocks)):
            yield block, False
            if request.both_strands:
                yield block, True

    def found_in(strand: tuple[ReadBlock, bool]) -> Mems:
        block, is_reverse = strand
        codes = reverse_complement(block.codes, block.offsets) if is_reverse else block.codes
        found = search.search(codes, block.offsets)
        portions.found(0 if is_reverse else len(block.codes), len(found.reads))
        return found

    def kept(number: int, block: ReadBlock, found: Strands) -> None:
        writer.do(written, keep(number, block, [page.owned(mems) for mems in found]), found)

    def written(write: Writing | None, found: Strands) -> None:
        if write is not None:
            write()
        for mems in found:
            search.release(mems)

    number, found = 0, list[Mems]()
    for (block, is_reverse), mems in lanes.each(found_in, strands()):
        found.append(mems)
        if is_reverse == request.both_strands:  # the last strand of the block
            behind.do(kept, number, block, found)
            number, found = number + 1, []


def _threads(request: Request, search: Search) -> int:
    """How many searches go on at once: as many on either strand, since a block of threads with a word that has very
    many leaves may take longer than all others together."""
    return search.lanes * (1 + request.both_strands) if search.lanes > 1 else 1


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
