"""Inputs and reference of the mummergpu family."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import Application, WorkloadError, find_data, on_demand

from .arrays import bounds_of, tree_arrays
from .mem_search import count_mems, find_mems
from .sequences import OTHER, read_blocks, read_reference, reverse_complement
from .tables import tables

_MOST = 2**32 - 1
_BASES_PER_BLOCK = 1 << 24
_FROM_FILES = {"reference", "bases", "queries", "min_match_length", "reads", "copies"}
_SIMULATED = {"reference", "bases", "min_match_length", "reads", "read_length", "substitutions", "seed"}

_MEM = np.dtype([(name, np.uint32) for name in ("query", "position", "start", "length")])

Codes = NDArray[np.uint8]
Positions = NDArray[np.int64]


# ---- inputs


def inputs(parameters: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """``reference: FILE``, ``min_match_length: N`` and either ``queries: FILE`` with at most ``reads: N`` of it,
    ``copies: N`` times, or N ``reads`` cut out of the reference: ``read_length: [low, high]``, a share of
    ``substitutions``, ``seed``. With ``bases: N`` only the first N characters of the reference are taken. Files are
    FASTA or FASTQ, plain, gzip or xz."""
    allowed = _FROM_FILES if "queries" in parameters else _SIMULATED
    needed = {"reference", "min_match_length", "queries" if "queries" in parameters else "read_length"}
    if parameters.keys() - allowed or needed - parameters.keys():
        raise WorkloadError(
            f"parameters {sorted(parameters)} do not make an input: give reference, min_match_length and either "
            "queries (with reads, at most so many) or reads and read_length: [low, high] (with substitutions, seed); "
            "bases: N takes the first N of the reference"
        )
    codes = read_reference(find_data(str(parameters["reference"]), root)).codes
    codes = codes[: _whole(parameters.get("bases", codes.size), "bases")]
    reads = _whole(parameters.get("reads", _MOST if "queries" in parameters else 1), "reads")
    if "queries" in parameters:
        queries, offsets = _from_file(find_data(str(parameters["queries"]), root), reads)
        copies = _whole(parameters.get("copies", 1), "copies")
        queries, lengths = np.tile(queries, copies), np.tile(np.diff(offsets), copies)
        offsets = np.concatenate(([0], np.cumsum(lengths)))
    else:
        queries, offsets = _simulated(codes, reads, parameters)
    return arrays_of(codes, queries, offsets, _whole(parameters["min_match_length"], "min_match_length"))


def ragged(parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of reads simulated from the start of a phage, some shorter than a match has to be: one read of one
    letter, and one more of them than blocks have threads."""
    least = min(_whole(parameters["min_match_length"], "min_match_length"), 100)
    for bases, reads, length in ((1, 1, 1), (257, 33, least), (5003, 129, least), (5386, 257, 2 * least + 1)):
        longest = min(bases, length + 30)
        yield {
            "reference": "phiX174_dada2.fa.gz",
            "bases": bases,
            "min_match_length": min(least, longest),
            "reads": reads,
            "read_length": [min(longest, max(1, least - 3)), longest],
            "substitutions": 0.02,
            "seed": reads,
        }


def arrays_of(codes: Codes, queries: Codes, offsets: Positions, min_match_length: int) -> dict[str, Any]:
    """Everything the kernels take, from codes of a reference and of reads. Raises WorkloadError."""
    lengths = np.diff(offsets)
    if int(lengths.max()) < min_match_length:
        raise WorkloadError(
            f"min_match_length {min_match_length} is longer than every read (the longest has {lengths.max()} bases), "
            "so nothing can match: take a smaller one"
        )
    if codes[-1] != OTHER:
        codes = np.append(codes, np.uint8(OTHER))
    bounds = bounds_of(offsets, min_match_length)
    found = count_mems(codes, queries, offsets, min_match_length)
    if found > _MOST:
        raise WorkloadError(
            f"{found:,} matches: at most {_MOST:,} at once; take fewer reads or a longer match"
        )
    return {
        **tree_arrays(codes),
        **tables(codes, min_match_length),
        "reference": codes,
        "queries": queries,
        "offsets": bounds,
        "min_match_length": min_match_length,
        "slots": int(bounds["slot"][-1]),
        "mem_count": found,
    }


def _from_file(path: Path, most: int) -> tuple[Codes, Positions]:
    codes, lengths = [], []
    for block in read_blocks(path, _BASES_PER_BLOCK):
        taken = min(most, len(block.headers))
        codes.append(block.codes[: block.offsets[taken]])
        lengths.append(np.diff(block.offsets[: taken + 1]))
        most -= taken
        if not most:
            break
    return np.concatenate(codes), np.concatenate(([0], np.cumsum(np.concatenate(lengths))))


def _simulated(codes: Codes, reads: int, parameters: Mapping[str, Any]) -> tuple[Codes, Positions]:
    """Pieces of the reference, every other one of the other strand, with letters changed at random."""
    try:
        low, high = (_whole(length, "read_length") for length in parameters["read_length"])
    except (TypeError, ValueError):
        raise WorkloadError("read_length must be [low, high], two whole numbers") from None
    if not low <= high <= codes.size:
        raise WorkloadError(
            f"read_length [{low}, {high}] must ascend and end within the reference ({codes.size})"
        )
    generator = np.random.default_rng(int(parameters.get("seed", 0)))
    lengths = generator.integers(low, high + 1, reads)
    starts = generator.integers(0, codes.size - lengths + 1)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    queries = codes[np.arange(offsets[-1]) - np.repeat(offsets[:-1] - starts, lengths)]
    turned = np.repeat(np.arange(reads) % 2 == 1, lengths)
    queries = np.where(turned, reverse_complement(queries, offsets), queries)
    changed = (generator.random(queries.size) < float(parameters.get("substitutions", 0.0))) & (
        queries != OTHER
    )
    queries[changed] = (queries[changed] + generator.integers(1, 4, int(changed.sum()))) % 4
    return queries.astype(np.uint8), offsets


def _whole(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise WorkloadError(f"{name} must be a whole number of at least 1, found {value!r}")
    return value


# ---- reference


def reference(arrays: Mapping[str, NDArray[Any]], options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """The MEMs by equal words; shares nothing with the kernels or the tree."""
    offsets = arrays["offsets"]["base"].astype(np.int64)
    found = find_mems(arrays["reference"], arrays["queries"], offsets, int(options["min_match_length"]))
    mems = np.full(max(1, found.reads.size), _MOST, _MEM)
    if found.reads.size:
        columns = (found.reads, found.positions, found.starts, found.lengths)
        for name, values in zip(_MEM.names or (), columns, strict=True):
            mems[name] = values
    return {"mems": mems}


# ---- autotune run


@on_demand
def application() -> Application:
    """Alignment of files."""
    from .app.run import run  # noqa: PLC0415  # a sweep needs none of it

    return run
