"""From variants to binaries: many instantiations in one compiler call, failures bisected out, results cached.

Process start and front end dominate a compiler call, so a batch of variants is one translation unit. When
a unit does not compile it is halved until the failing variants stand alone; the others are kept.
"""

import hashlib
import importlib
import re
import sys
import time
import warnings
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING

from autotune.compile.pool import Pool, ProcessDied
from autotune.compile.toolchain import (
    TOO_LONG,
    Batch,
    BuildError,
    Built,
    CallTimeout,
    Compiled,
    CompileFailure,
    Toolchain,
    VariantSource,
)
from autotune.declaration import source_files
from autotune.errors import CompilerError, FamilyError

if TYPE_CHECKING:
    from autotune.compile.cache import Cache


_CALLS = 3  # of each process, at least, so that all are done at about the same time


def sizes(missing: int, processes: int, most: int, early: bool = True) -> Iterator[int]:
    """How many of ``missing`` variants each compiler call gets, without end; never more than ``most``.

    With ``early``, somebody works on the first results while the next are made: a call gets a process's share of what
    was given out before it, and is then ready by the time that the results before it are used up, if using one takes as
    long as all processes together need to make one. Else each process gets its share in as few calls as may be.
    """
    if processes <= 1:
        yield from repeat(most)
    if not early:
        yield from repeat(min(most, max(1, -(-missing // processes))))
    full = min(most, max(1, -(-missing // (_CALLS * processes))))
    given = 0
    while given // processes < full:
        size = max(1, given // processes)
        yield size
        given += size
    yield from repeat(full)


def split_into_chunks(
    batch: "Batch", uncached: Set[str], processes: int, most: int, early: bool = True
) -> Iterator["Batch"]:
    """The batch in consecutive chunks of at most ``most`` variants, with as many of the ``uncached`` keys in each as
    ``sizes`` says. Variants that need no compiler are a chunk of their own where they come first: nothing has to be
    waited for."""
    wanted = sizes(len(uncached), processes, most, early)
    chunk: list[VariantSource] = []
    new, size = 0, next(wanted)
    for variant in batch.variants:
        if chunk and (len(chunk) == most or new == size or (new == 0 and variant.key in uncached)):
            yield batch.select(chunk)
            size = next(wanted) if new else size
            chunk, new = [], 0
        chunk.append(variant)
        new += variant.key in uncached
    if chunk:
        yield batch.select(chunk)


_MESSAGE_CHARACTERS = 4000
_ERROR = re.compile(r"\b(error|fatal)\b")
_WORTH_A_PROCESS = 4  # variants; fewer are sooner compiled than another process is started
_ALONE = 4  # variants for a process at a time, where each is a unit of its own: nothing is saved by more
_AHEAD = 4  # chunks for each process that nobody has asked for yet


# A compiler call that succeeded, with its wall time in seconds, or a variant that does not compile. Processes
# compile; the parent alone writes to the cache, warns, and owns the files outside the cache.
_Piece = tuple[Batch, Built, float] | CompileFailure


def compile_batch(batch: Batch, toolchain: Toolchain, cache: "Cache") -> list[Compiled | CompileFailure]:
    """Every variant of the batch, in its order: from the cache, or compiled in this process and cached.

    ``seconds`` is the call's wall time divided by the variants in it. Raises CompilerError when the toolchain
    cannot be used at all.
    """
    found, missing = _look_up(batch, toolchain, cache)
    return _answer(batch, found, _build(missing, toolchain), toolchain, cache)


def compile_one(batch: Batch, toolchain: Toolchain, cache: "Cache", failed: str) -> Compiled:
    """The batch's only variant. Raises CompilerError, which begins with ``failed`` when that does not compile."""
    (compiled,) = compile_batch(batch, toolchain, cache)
    if isinstance(compiled, CompileFailure):
        raise CompilerError(failed + compiled.message)
    return compiled


def limit_processes(processes: int, variants: int, batch_size: int = _WORTH_A_PROCESS) -> int:
    """Return how many of ``processes`` have work for ``variants`` variants, in calls of at most ``batch_size``."""
    return min(processes, -(-variants // min(batch_size, _WORTH_A_PROCESS)))


def compilers(count: int) -> Pool:
    """Start ``count`` processes that import the compiler before the first batch. The caller stops them."""
    pool = Pool(count)
    for _ in range(count):
        pool.submit(_import_compiler)
    return pool


def _import_compiler() -> None:
    with suppress(ImportError):
        importlib.import_module("cuda.bindings.nvrtc")


def compile_many(
    batch: Batch,
    toolchain: Toolchain,
    cache: "Cache",
    processes: int,
    batch_size: int,
    started: Pool | None = None,
    early: bool = True,
) -> Iterator[list[Compiled | CompileFailure]]:
    """``compile_batch`` over consecutive chunks of at most ``batch_size`` variants, in up to ``processes`` processes.

    Chunks come in order, each as soon as it and those before it are ready; while the caller works on one, the
    next are compiled. With ``early`` the first chunks are small, so that the caller has work soon (see ``sizes``); a
    caller that waits for all of them says no, and fewer calls are made. What another process has put into the cache in
    the meantime is not compiled again. With one process, or few variants that are not cached, no process is started.
    Closing the iterator ends the processes. A variant whose compiler takes its process down is a CompileFailure.
    ``started`` are processes to use instead, which are the caller's to end. Raises CompilerError.
    """
    if any(variant.is_alone for variant in batch.variants):
        batch_size = min(batch_size, _ALONE)
    cached, missing = _look_up(batch, toolchain, cache)
    uncached = {variant.key for variant in missing.variants}
    processes = limit_processes(processes, len(uncached), batch_size)
    chunks = deque(split_into_chunks(batch, uncached, processes, batch_size, early))
    jobs = _Jobs(toolchain, processes, started)
    waiting: deque[tuple[Batch, Mapping[str, Compiled], _Job]] = deque()

    def submit(chunk: Batch) -> None:
        known, still_missing = cached, chunk.select([])
        if any(variant.key in uncached for variant in chunk.variants):
            # Another sweep may have compiled it by now.
            known, still_missing = _look_up(chunk, toolchain, cache)
        waiting.append((chunk, known, jobs.submit(still_missing)))

    def count_unfinished() -> int:
        return sum(future is not None and not future.done() for _, _, (_, future) in waiting)

    try:
        while chunks or waiting:
            # Before the caller works on a chunk, so that the processes have enough to do meanwhile.
            while chunks and (
                not waiting or (jobs.processes > 1 and count_unfinished() < _AHEAD * jobs.processes)
            ):
                submit(chunks.popleft())
            chunk, known, job = waiting.popleft()
            yield _answer(chunk, known, jobs.result(job), toolchain, cache)
    finally:
        jobs.stop()


def _look_up(batch: Batch, toolchain: Toolchain, cache: "Cache") -> tuple[dict[str, Compiled], Batch]:
    """What the cache has, by key, and a batch of the rest, each key once."""
    variants = {variant.key: variant for variant in batch.variants}
    cached = {key: cache.get(key, toolchain) for key in variants}
    found = {key: compiled for key, compiled in cached.items() if compiled is not None}
    return found, batch.select([variant for key, variant in variants.items() if key not in found])


def _answer(
    batch: Batch,
    found: Mapping[str, Compiled],
    pieces: Sequence[_Piece],
    toolchain: Toolchain,
    cache: "Cache",
) -> list[Compiled | CompileFailure]:
    results: dict[str, Compiled | CompileFailure] = dict(found)
    for piece in pieces:
        if isinstance(piece, CompileFailure):
            results[piece.key] = piece
            continue
        part, built, seconds = piece
        for compiled in cache.put(built, part, toolchain):
            results[compiled.key] = replace(compiled, seconds=seconds / len(part.variants))
    return [results[variant.key] for variant in batch.variants]


def _build(batch: Batch, toolchain: Toolchain) -> list[_Piece]:
    """One call for the whole batch; when it fails, one for the variants that the message names and one for
    the others, or one for each half when the names separate nothing."""
    variants = batch.variants
    if not variants:
        return []
    if len(units := batch.units) > 1:
        return [piece for unit in units for piece in _build(unit, toolchain)]
    start = time.perf_counter()
    try:
        return [(batch, _compile_checked(batch, toolchain), time.perf_counter() - start)]
    except BuildError as error:
        message, is_late = str(error), isinstance(error, CallTimeout)
    if len(variants) == 1:
        return [CompileFailure(variants[0].key, _locate(_shorten(message), batch.source.parent))]
    if is_late:  # halves would each wait as long
        return [piece for variant in variants for piece in _build(batch.select([variant]), toolchain)]
    named = [variant for variant in variants if variant.name in message]
    others = [variant for variant in variants if variant.name not in message]
    if not named or not others:
        middle = len(variants) // 2
        named, others = list(variants[:middle]), list(variants[middle:])
    return [*_build(batch.select(named), toolchain), *_build(batch.select(others), toolchain)]


def _locate(message: str, folder: Path) -> str:
    """With the first line of the family's own that the message names, where its first error is elsewhere: an error in a
    template shows where that was written, and who used it only lines away."""
    lines = message.splitlines(keepends=True)
    error = next((i for i, line in enumerate(lines) if _ERROR.search(line)), None)
    own = re.compile(rf"{re.escape(str(folder))}/[^\s:()\"]+?(?:\((\d+)\)|:(\d+))")
    said = re.compile(rf"at line (\d+) of (?:\\?\")?({re.escape(str(folder))}/[^\s:()\"\\]+)")
    if error is None or own.search(lines[error]):
        return message
    users = [line for line in lines[:error] if "required from" in line]  # g++ names them ahead of the error
    for line in (*lines[error:], *users):
        if (found := own.search(line)) or (found := said.search(line)):
            place = f"{found[2]}:{found[1]}" if found.re is said else found[0].rstrip(")").replace("(", ":")
            lines.insert(error + 1, f"  used in {place}\n")
            return "".join(lines)
    return message


def _compile_checked(batch: Batch, toolchain: Toolchain) -> Built:
    """What the compiler makes of the very files that the variants' keys stand for. Raises BuildError, CompilerError,
    and FamilyError when one of them was edited, or when the compiler read others."""
    before = _fingerprint_sources(batch)
    while True:
        try:
            built = toolchain.build(batch)
        finally:
            after = _fingerprint_sources(batch)
        if after == before:
            break
        before = after  # written again meanwhile, and equal now: who knows what the compiler saw
    if batch.sources:
        _require_known(built.read, {path.resolve() for path, _ in batch.sources})
    return built


def _fingerprint_sources(batch: Batch) -> list[tuple[int, int]]:
    """What changes whenever one of the batch's sources is written. Raises FamilyError where one is not as it was when
    the variants' keys were made."""
    states = []
    for path, digest in batch.sources:
        try:
            status = path.stat()
            is_same = hashlib.sha256(path.read_bytes()).hexdigest() == digest
        except OSError:
            is_same = False
        if not is_same:
            raise FamilyError(
                f"{path} was edited while it was being compiled; what was measured or compiled before is kept and "
                "belongs to the text as it was. Run the same command again for the new text"
            )
        states.append((status.st_ino, status.st_ctime_ns))
    return states


def _require_known(read: Sequence[Path], known: Collection[Path]) -> None:
    for path in read:
        if path not in known:
            how = (
                "only editors should: include it between #ifndef AUTOTUNE_VARIANTS and #endif"
                if path.name == source_files.EDITORS_HEADER
                else "nothing includes by a name that can be followed, so autotune could not detect that a "
                "measurement is out of date: write #include with the file's own name"
            )
            raise FamilyError(f"the compiler read {path}, which {how}")


def _shorten(message: str) -> str:
    """At most 4000 characters; a longer message loses the warnings before its first error."""
    if len(message) <= _MESSAGE_CHARACTERS:
        return message
    lines = message.splitlines(keepends=True)
    start = next((i for i, line in enumerate(lines) if _ERROR.search(line)), 0)
    return "".join(lines[start:])[:_MESSAGE_CHARACTERS]


# A batch given to the pool; without a future it is compiled here, when its turn comes.
_Job = tuple[Batch, Future[list[_Piece]] | None]


class _Jobs:
    """Jobs for processes that compile. They start with the first job, if at all, and where none were ``started``."""

    def __init__(self, toolchain: Toolchain, processes: int, started: Pool | None) -> None:
        self.toolchain = toolchain
        self.processes = processes
        self._started = self._pool = started
        self._proven = False

    def submit(self, batch: Batch) -> _Job:
        if self.processes <= 1 or not batch.variants:
            return batch, None
        self._pool = self._pool or Pool(self.processes)
        return batch, self._pool.submit(_build, batch, self.toolchain)

    def result(self, job: _Job) -> list[_Piece]:
        batch, future = job
        if future is None:
            return _build(batch, self.toolchain)
        try:
            pieces = future.result()
        except ProcessDied as problem:
            died = str(problem)
            return self._bisect(batch, died) if self._processes_start() else _build(batch, self.toolchain)
        self._proven = True
        return pieces

    def stop(self) -> None:
        if self._pool and self._pool is not self._started:
            self._pool.stop()

    def _bisect(self, batch: Batch, died: str) -> list[_Piece]:
        """What can be compiled of a batch whose compiler took its process down."""
        variants = batch.variants
        if len(variants) == 1:
            return [CompileFailure(variants[0].key, died)]
        size = 1 if died == TOO_LONG else -(-len(variants) // 2)
        parts = [variants[begin : begin + size] for begin in range(0, len(variants), size)]
        jobs = [self.submit(batch.select(part)) for part in parts]
        return [piece for job in jobs for piece in self.result(job)]

    def _processes_start(self) -> bool:
        """Whether it was the compiler that died; if not, all that is left is compiled in this process."""
        try:
            if self._pool and self.processes > 1 and not self._proven:
                self._pool.submit(time.sleep, 0).result()
                self._proven = True
        except ProcessDied:
            self.processes = 1
            warnings.warn(
                f"worker processes do not start, so variants are compiled in this one; see whether {sys.executable} "
                "is a Python that can import autotune",
                stacklevel=2,
            )
        return self._proven
