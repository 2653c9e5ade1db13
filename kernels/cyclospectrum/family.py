"""Inputs, plan and reference of the cyclospectrum family."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import Application, Execution, WorkloadError, on_demand

from .peptide import MASSES, MOST_PAIRED, MOST_RESIDUES, checked_masses, masses_of
from .radix_sort import radix_sort
from .reference import list_of, pairs_of
from .transform import count_by_transform

_MADE = {"residues", "seed"}
_TO_PAIRS = ("tile_sums", "scan_tiles", "pair_up")
_TO_LIST = {  # from counts, by the policy scan
    "passes": ("tile_sums", "scan_tiles", "offsets", "expand"),
    "look_back": ("look_back", "expand"),
    "listing": ("list_tiles",),
}

Array = NDArray[Any]


# ---- inputs


def inputs(parameters: Mapping[str, Any], _root: Path) -> dict[str, Any]:
    """``peptide: LETTERS`` or ``masses: [57, 71, …]`` ; or ``residues: N`` drawn at random (``seed``) from the twenty
    amino acids; more than 46,341 are for pairs. No file is read."""
    if parameters.keys() == {"peptide"}:
        return arrays_of(masses_of(str(parameters["peptide"])))
    if parameters.keys() == {"masses"}:
        return arrays_of(np.asarray(parameters["masses"]))
    if not ("residues" in parameters and parameters.keys() <= _MADE):
        raise WorkloadError(
            f"parameters {sorted(parameters)} do not make a peptide: give peptide, or masses, or residues (how many "
            "are drawn; with seed)"
        )
    count = parameters["residues"]
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise WorkloadError(f"residues must be a whole number of at least 1, found {count!r}")
    generator = np.random.default_rng(int(parameters.get("seed", 0)))
    return arrays_of(generator.choice(np.array(list(MASSES.values()), np.int32), count), MOST_PAIRED)


def ragged(_parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of rings of few residues, around the sizes of blocks."""
    for residues in (1, 2, 61, 257):
        yield {"residues": residues, "seed": residues}


def arrays_of(masses: Any, most: int = MOST_RESIDUES) -> dict[str, Any]:
    """What the kernels take: ``residues`` and their ``total``, from whole masses of at least 0 in the order of the
    ring. Raises WorkloadError for masses that are negative, fractional or too large, and for more than ``most``."""
    residues = checked_masses(masses, most)
    if not residues.size:
        raise WorkloadError("no masses given: the kernels need at least 1 (without any the list is 0, 0)")
    return {"residues": residues, "total": int(residues.sum(dtype=np.int64))}


# ---- one call


def plan(execution: Execution) -> None:
    """The sums by the policy's generation, then its finish; counting makes no sums, and the host's pairs need no
    kernel."""
    policies = execution.names
    ordered = policies["order"] == "sorted"
    generation, finish = policies["generation"], policies["finish"]
    if policies["output"] == "pairs" and finish == "host_sort":
        execution.stage("host_sort", lambda _stream: _host_pairs(execution))
        return
    into_spare = int(ordered and finish == "radix_sort" and _passes(execution) % 2)
    if finish == "counting":
        _count(execution)
        return
    if generation == "prefix" or policies["wrap"] == "doubled":
        execution.launch("arrange")
    _generate(execution, generation, into_spare)
    if not ordered:
        return
    if finish == "host_sort" or execution.backend.device.kind == "cpu":
        execution.stage(
            "host_sort", lambda _stream: _host_sort(execution, "spare" if into_spare else "spectrum")
        )
    else:
        execution.stage("radix_sort", lambda stream: _radix_sort(execution, into_spare, stream))


def _generate(execution: Execution, generation: str, into_spare: int) -> None:
    match generation:
        case "iterated":
            for row in range(max(1, int(execution.names["n"]) - 1)):
                execution.launch("iterated", row=row, into_spare=into_spare)
        case "prefix":
            execution.launch("differences", into_spare=into_spare)
        case "brute":
            execution.launch("brute", into_spare=into_spare)
        case _:
            execution.launch("sequential")


def _count(execution: Execution) -> None:
    """Arranged where differences are counted, counted, and written; as one graph where the policy says so."""

    def launches() -> None:
        scan = execution.names["scan"]
        if execution.names["count_by"] == "transform":
            count_by_transform(execution)
        else:
            if scan != "passes":
                execution.zero("sums")
            execution.launch("arrange")
            execution.zero("counts")
            execution.launch("tally")
        pairs = execution.names["output"] == "pairs"
        for kernel in _TO_PAIRS if pairs else _TO_LIST[str(scan)]:
            execution.launch(kernel)

    if execution.names["launch"] == "graph":
        execution.graph("counting", launches)
    else:
        launches()


def _bits(execution: Execution) -> int:
    return max(1, int(execution.names["total"]).bit_length())


def _passes(execution: Execution) -> int:
    """CUB's radix sort takes 8 bits at a time, and each pass moves the keys to the other buffer."""
    return -(-_bits(execution) // 8)


def _radix_sort(execution: Execution, into_spare: int, stream: int) -> None:
    spectrum, spare = execution.address("spectrum"), execution.address("spare")
    radix_sort(
        execution.backend.device.arch,
        spare if into_spare else spectrum,
        spectrum,
        spare,
        (execution.address("workspace"), int(execution.names["room"])),
        int(execution.names["outputs"]),
        _bits(execution),
        stream,
    )


def _host_sort(execution: Execution, source: str) -> None:
    """As in the post: the list is fetched and sorted on the host. And sent back, to be fetched with other results."""
    fetched = execution.backend.download(execution.placed[source])
    fetched.view(np.int32)[: execution.names["outputs"]].sort()
    execution.refill("spectrum", fetched)


def _host_pairs(execution: Execution) -> None:
    masses = execution.backend.download(execution.placed["residues"]).view(np.int32)
    pairs = pairs_of(masses[: execution.names["n"]].astype(np.int64))
    execution.refill("spectrum", pairs.view(np.uint8))


# ---- reference


def reference(arrays: Mapping[str, Array], options: Mapping[str, Any]) -> dict[str, Array]:
    """The list by numpy's prefix sums, or its pairs (reference.py)."""
    masses = arrays["residues"].astype(np.int64)
    if options["output"] == "pairs":
        return {"spectrum": pairs_of(masses)}
    return {"spectrum": list_of(masses, str(options["order"]))}


# ---- autotune run


@on_demand
def application() -> Application:
    """The spectrum of one peptide."""
    from .app.run import run  # noqa: PLC0415  # a sweep needs none of it

    return run
