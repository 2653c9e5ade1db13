"""``autotune run cyclospectrum -i peptide=VKLFPWFNQY -o spectrum.txt``: the spectrum of a cyclic peptide as a file; or
with ``-i output=pairs`` each mass that occurs with how often."""

import time
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from autotune.family import TunedKernel, UnknownName, UsageError

from ..peptide import MOST_PAIRED, MOST_RESIDUES, checked_masses, masses_of
from .text import parsed_masses, read_fasta

__all__ = ["run", "spectrum_of", "write"]

_NAMES = ("peptide", "masses", "fasta", "record", "decimals", "order", "output")
_SOURCES = _NAMES[:3]
_MOST_DECIMALS = 9
_LINES_AT_ONCE = 1 << 20


def run(
    given: Mapping[str, str],
    output: Path | None,
    open_kernel: Callable[[], TunedKernel],
    note: Callable[[str], None],
) -> None:
    """Read what ``given`` names, compute, write ``output`` (.npy, else a value a line) or sum up through ``note``.
    What is wrong in the arguments or the input is refused before the device is opened. Raises UsageError, UnknownName,
    WorkloadError, what the device raises, and OSError from writing."""
    begin = time.perf_counter()
    for name in given:
        if name not in _NAMES:
            raise UnknownName("input", name, _NAMES, "family cyclospectrum")
    sources = [name for name in _SOURCES if name in given]
    if len(sources) != 1:
        raise UsageError("give the peptide once: -i peptide=LETTERS, -i masses=57,71,… or -i fasta=FILE")
    if "record" in given and sources != ["fasta"]:
        raise UsageError("-i record=NAME names a record of -i fasta=FILE")
    order = given.get("order", "sorted")
    if order not in ("sorted", "unsorted"):
        raise UnknownName("value of option order", order, ("sorted", "unsorted"))
    form = given.get("output", "list")
    if form not in ("list", "pairs"):
        raise UnknownName("value of option output", form, ("list", "pairs"))
    if form == "pairs" and order == "unsorted":
        raise UsageError("-i output=pairs ascends: -i order=unsorted is for the list")
    decimals = _decimals(given.get("decimals", "0"))
    if decimals and sources != ["masses"]:
        raise UsageError("-i decimals=N is for -i masses=…: letters have whole masses")
    if sources == ["masses"]:
        masses = parsed_masses(given["masses"], decimals)
    else:
        text = (
            given["peptide"]
            if sources == ["peptide"]
            else read_fasta(Path(given["fasta"]), given.get("record", ""))
        )
        masses = masses_of(text)
    masses = checked_masses(masses, MOST_PAIRED if form == "pairs" else MOST_RESIDUES)
    spectrum = spectrum_of(masses, {"order": order, "output": form}, open_kernel)
    if output is not None:
        write(spectrum, decimals, output)
    what = "values" if form == "list" else "masses"
    note(
        f"residues     {masses.size:,}, total mass {_text(int(masses.sum(dtype=np.int64)), decimals)}; "
        f"{len(spectrum):,} {what} in {time.perf_counter() - begin:.2f} s"
    )
    if output is None:
        shown = " ".join(_line(one, decimals) for one in spectrum[:20].tolist())
        note(f"spectrum     {shown}{' …' if len(spectrum) > 20 else ''}")


def spectrum_of(
    masses: NDArray[np.int32], options: Mapping[str, str], open_kernel: Callable[[], TunedKernel]
) -> NDArray[np.int32]:
    """n (n - 1) + 2 values, or as pairs the masses that occur with their counts, shape (masses, 2). With no residue at
    all 0 and the total, which is 0; the device is not needed for that."""
    pairs = options["output"] == "pairs"
    if not masses.size:
        return np.array([[0, 2]] if pairs else [0, 0], np.int32)
    found: NDArray[np.int32] = open_kernel()(masses, total=int(masses.sum(dtype=np.int64)), **options)
    if not pairs:
        return found
    found = found.reshape(-1, 2)
    return found[: np.count_nonzero(found[:, 1])]


def write(spectrum: NDArray[np.int32], decimals: int, path: Path) -> None:
    """.npy: the array as it is, whole numbers in units of 10^-``decimals``. Any other name: a value a line, or
    a mass and its count."""
    with path.open("wb") as file:
        if path.suffix == ".npy":
            np.save(file, spectrum)
            return
        for first in range(0, len(spectrum), _LINES_AT_ONCE):
            part = spectrum[first : first + _LINES_AT_ONCE].tolist()
            file.write("".join(f"{_line(one, decimals)}\n" for one in part).encode())


def _line(one: int | list[int], decimals: int) -> str:
    """A value of the list, or a pair."""
    return f"{_text(one[0], decimals)} {one[1]}" if isinstance(one, list) else _text(one, decimals)


def _text(mass: int, decimals: int) -> str:
    return format(Decimal(mass).scaleb(-decimals), "f") if decimals else str(mass)


def _decimals(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= _MOST_DECIMALS):
        raise UsageError(f"-i decimals={text}: a whole number from 0 to {_MOST_DECIMALS} is needed")
    return int(text)
