"""PLINK 1 binary genotype filesets (.bed + .bim + .fam) as numpy arrays, and back.

Source of the layout: PLINK 1.9 file format page, https://www.cog-genomics.org/plink/1.9/formats
A genotype counts the copies of the variant's first allele (.bim column 5): 0, 1 or 2; 3 is a missing call.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from autotune.family import WorkloadError

MISSING = 3

_MAGIC = b"\x6c\x1b"
_SAMPLE_MAJOR = 0x00
_VARIANT_MAJOR = 0x01
_HEADER_BYTES = 3
_COLUMNS = 6
_MOST_BYTES = 1 << 29  # of a table's text: some ten million rows; a few MB of gzip can hold gigabytes
# Both the .fam and the .bim hold their id in the second column.
_ID_COLUMN = 1

# Indexed by the 2-bit code: 00 both first allele, 01 missing, 10 heterozygous, 11 both second allele.
_COPIES_OF_CODE = np.array([2, MISSING, 1, 0], dtype=np.int8)
# Its inverse, indexed by genotype.
_CODE_OF_COPIES = np.array([3, 2, 0, 1], dtype=np.uint8)
# The lowest two bits of a byte are its first individual.
_SHIFTS = np.array([0, 2, 4, 6], dtype=np.uint8)
# All four genotypes of a byte in one look-up: int8, (256, 4).
_COPIES_OF_BYTE = _COPIES_OF_CODE[(np.arange(256, dtype=np.uint8)[:, None] >> _SHIFTS) & 3]


def looks_like_bed(path: Path) -> bool:
    """Whether `path` is a file that starts with the PLINK magic bytes 6c 1b.

    The name does not count, since UCSC interval files are called .bed too, nor does the mode byte, so that
    `read_bed` gets to say what is wrong with it. A path that cannot be read is False; nothing is raised.
    """
    try:
        with path.open("rb") as stream:
            return stream.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def read_bed(path: Path) -> npt.NDArray[np.int8]:
    """Genotypes of a variant-major .bed: int8, C-contiguous, (individuals, variants), values 0 to 3.

    The counts come from the .fam and .bim beside it (plain, or with .gz appended). Padding bits after the
    last individual of a variant are ignored.

    Raises WorkloadError: no such file, wrong magic bytes, sample-major or unknown mode byte, a length that
    does not fit the counts, or anything `read_fam` and `read_bim` refuse.
    Source: PLINK 1.9 file format page, ".bed".
    """
    _check_header(path)
    individuals = len(read_fam(path))
    variants = len(read_bim(path))
    bytes_per_variant = _bytes_per_variant(individuals)
    _check_length(path, individuals, variants, bytes_per_variant)

    packed = np.fromfile(path, dtype=np.uint8, offset=_HEADER_BYTES).reshape(variants, bytes_per_variant)
    by_variant = _COPIES_OF_BYTE[packed].reshape(variants, 4 * bytes_per_variant)
    return np.ascontiguousarray(by_variant[:, :individuals].T)


def read_fam(bed_path: Path) -> list[str]:
    """Within-family individual ids (.fam column 2) of the .fam beside `bed_path`, in file order.

    Raises WorkloadError: .fam missing, unreadable or empty, or a row that does not have 6 columns.
    Source: PLINK 1.9 file format page, ".fam".
    """
    return _read_ids(bed_path, ".fam")


def read_bim(bed_path: Path) -> list[str]:
    """Variant ids (.bim column 2) of the .bim beside `bed_path`, in file order.

    Raises WorkloadError: .bim missing, unreadable or empty, or a row that does not have 6 columns.
    Source: PLINK 1.9 file format page, ".bim".
    """
    return _read_ids(bed_path, ".bim")


def write_bed(
    path: Path,
    genotypes: npt.NDArray[np.integer],
    individual_ids: Sequence[str],
    variant_rows: Sequence[str],
) -> None:
    """Write a variant-major fileset: `path` (named *.bed) with its .bim and .fam, replacing any there.

    genotypes: any integer dtype, (individuals, variants), values 0, 1, 2 and MISSING. variant_rows: .bim
    lines of 6 columns. The .fam says only who: family, parents and sex are 0, phenotype -9: "unknown".

    Raises WorkloadError: a name without .bed, a wrong shape, dtype or value, counts that do not match, an id
    that is empty or holds white space, a variant row without 6 columns.
    Source: PLINK 1.9 file format page, ".bed", ".bim" and ".fam".
    """
    if path.suffix != ".bed":
        raise WorkloadError(
            f"cannot write {path}: it ends in {path.suffix!r} and must end in .bed. Rename it."
        )
    _check_genotypes(genotypes, len(individual_ids), len(variant_rows))
    _check_rows_to_write(individual_ids, variant_rows)

    individuals, variants = genotypes.shape
    # Slots after the last individual keep code 00, the padding that the format asks for.
    codes = np.zeros((variants, 4 * _bytes_per_variant(individuals)), dtype=np.uint8)
    codes[:, :individuals] = _CODE_OF_COPIES[genotypes.T]
    packed = np.bitwise_or.reduce(codes.reshape(variants, -1, 4) << _SHIFTS, axis=2)

    path.write_bytes(_MAGIC + bytes([_VARIANT_MAJOR]) + packed.tobytes())
    _write_lines(path.with_suffix(".bim"), variant_rows)
    _write_lines(path.with_suffix(".fam"), [f"0\t{name}\t0\t0\t0\t-9" for name in individual_ids])


def _bytes_per_variant(individuals: int) -> int:
    return (individuals + 3) // 4


def _check_header(path: Path) -> None:
    try:
        with path.open("rb") as stream:
            header = stream.read(_HEADER_BYTES)
    except OSError as error:
        reason = error.strerror or error
        raise WorkloadError(f"cannot read {path}: {reason}. Give the path of a PLINK .bed file.") from error

    if header[:2] != _MAGIC:
        raise WorkloadError(
            f"{path} is not a PLINK .bed file: it starts with bytes [{header[:2].hex(' ')}], and only "
            "[6c 1b] is allowed. Decompress it if it is compressed, or make one with: plink --make-bed."
        )
    if len(header) < _HEADER_BYTES:
        raise WorkloadError(
            f"{path} is too short: it has {len(header)} bytes and a .bed header has {_HEADER_BYTES} bytes. "
            "Copy it again."
        )
    mode = header[2]
    if mode == _SAMPLE_MAJOR:
        raise WorkloadError(
            f"{path} is sample-major (mode byte 00); only variant-major (mode byte 01) is read. "
            "Convert it with: plink --make-bed (PLINK 1.9 transposes such files)."
        )
    if mode != _VARIANT_MAJOR:
        raise WorkloadError(
            f"{path} has unknown mode byte {mode:02x}; only 01 (variant-major PLINK 1 .bed) is read. "
            "If it is a PLINK 2 .pgen file, convert it with: plink2 --make-bed; otherwise copy it again."
        )


def _check_length(path: Path, individuals: int, variants: int, bytes_per_variant: int) -> None:
    actual = path.stat().st_size
    expected = _HEADER_BYTES + variants * bytes_per_variant
    if actual != expected:
        raise WorkloadError(
            f"{path} is too {'short' if actual < expected else 'long'}: it has {actual} bytes, but "
            f"{individuals} .fam rows and {variants} .bim rows need {expected} bytes. "
            "Check that the three files belong together and were copied whole."
        )


def _read_ids(bed_path: Path, suffix: str) -> list[str]:
    path = _sibling(bed_path, suffix)
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            text = file.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise WorkloadError(
                f"{path} has more than {_MOST_BYTES >> 20} MiB of text, more than any {suffix} has rows for. Copy it "
                "again."
            )
        ids = []
        # Split as bytes: str would also cut at Unicode separators inside an id.
        for number, line in enumerate(text.splitlines(), start=1):
            columns = line.split()
            if len(columns) != _COLUMNS:
                raise WorkloadError(
                    f"{path} line {number} has {len(columns)} columns; a {suffix} row has {_COLUMNS}. "
                    "Fix or remove that line, or write the fileset again with: plink --make-bed."
                )
            ids.append(columns[_ID_COLUMN].decode("utf-8"))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise WorkloadError(
            f"cannot read {path}: {error}. A {suffix} is UTF-8 text, plain or gzip-compressed. Copy it again."
        ) from error
    if not ids:
        raise WorkloadError(
            f"{path} is empty: it has 0 rows and needs at least 1. Copy it again, or write the fileset again."
        )
    return ids


def _sibling(bed_path: Path, suffix: str) -> Path:
    plain = bed_path.with_suffix(suffix)
    compressed = plain.with_name(plain.name + ".gz")
    for candidate in (plain, compressed):
        if candidate.is_file():
            return candidate
    raise WorkloadError(
        f"{bed_path} has no {suffix} file beside it: looked for {plain} and {compressed}. "
        f"Put the {suffix} of the same fileset there."
    )


def _check_genotypes(genotypes: npt.NDArray[np.integer], individuals: int, variants: int) -> None:
    if genotypes.shape != (individuals, variants) or genotypes.size == 0:
        raise WorkloadError(
            f"genotypes have shape {genotypes.shape}, but {individuals} individual ids and {variants} "
            f"variant rows were given; the shape must be ({individuals}, {variants}), neither of them 0. "
            "Pass matching arguments."
        )
    if not np.issubdtype(genotypes.dtype, np.integer):
        raise WorkloadError(
            f"genotypes have dtype {genotypes.dtype}; only integers are allowed. Convert them."
        )
    outside = (genotypes < 0) | (genotypes > MISSING)
    if outside.any():
        row, column = (int(index) for index in np.argwhere(outside)[0])
        raise WorkloadError(
            f"genotype {genotypes[row, column]} at individual {row}, variant {column}: only 0, 1, 2 and "
            f"{MISSING} (missing) can be stored. Recode it."
        )


def _check_rows_to_write(individual_ids: Sequence[str], variant_rows: Sequence[str]) -> None:
    for number, name in enumerate(individual_ids, start=1):
        if name.split() != [name]:
            raise WorkloadError(
                f"individual id {number} is {name!r}: it must be non-empty without white space. Rename it."
            )
    for number, row in enumerate(variant_rows, start=1):
        encoded = row.encode("utf-8")
        if len(encoded.split()) != _COLUMNS or len(encoded.splitlines()) != 1:
            raise WorkloadError(
                f"variant row {number} is {row!r}: it must be one line of exactly {_COLUMNS} columns. Fix it."
            )


def _write_lines(path: Path, lines: Sequence[str]) -> None:
    path.write_text("".join(line.rstrip("\n") + "\n" for line in lines), encoding="utf-8", newline="\n")
