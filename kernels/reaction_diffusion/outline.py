"""A cell's outline from an image, and the walls that follow."""

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from autotune.family import WorkloadError, pip_install, read_npy

__all__ = ["open_sides", "read_outline"]

Inside = NDArray[np.bool_]

NORTH, SOUTH, WEST, EAST = 1, 2, 4, 8  # medium.cuh: through


def open_sides(inside: Inside) -> NDArray[np.uint8]:
    """For each point of ``inside`` (rows, columns) the sum of its sides that lead to another inside point: 1 north,
    2 south, 4 west, 8 east. A point outside has none."""
    sides = np.zeros(inside.shape, np.uint8)
    vertical, horizontal = inside[1:] & inside[:-1], inside[:, 1:] & inside[:, :-1]
    sides[1:] |= vertical * np.uint8(NORTH)
    sides[:-1] |= vertical * np.uint8(SOUTH)
    sides[:, 1:] |= horizontal * np.uint8(WEST)
    sides[:, :-1] |= horizontal * np.uint8(EAST)
    return sides


def read_outline(path: Path) -> Inside:
    """The inside of a cell, (rows, columns): what is brighter than half of the brightest value. ``.npy`` arrays, PBM
    and PGM images are read here (in a PBM, set bits are inside), any other image by Pillow. Raises WorkloadError."""
    if not path.is_file():
        raise WorkloadError(f"image {path} is not there")
    values = _values(path)
    if values.ndim != 2 or values.size == 0:
        raise WorkloadError(
            f"image {path}: {values.ndim} dimensions {values.shape}, two (rows, columns) are needed"
        )
    values = values.astype(np.float64)
    if not np.isfinite(values).all():
        raise WorkloadError(f"image {path}: holds values that are no numbers; give finite brightnesses")
    inside: Inside = values > values.max() / 2
    if not inside.any():
        raise WorkloadError(
            f"image {path}: no point is inside; the cell must be brighter than what is around it"
        )
    return inside


def _values(path: Path) -> NDArray[np.generic]:
    try:
        if path.suffix == ".npy":
            return read_npy(path, "image")
        with path.open("rb") as file:
            magic = file.read(2)
        if magic in (b"P1", b"P2", b"P4", b"P5"):
            return _netpbm(path.read_bytes())
    except (OSError, ValueError) as problem:
        raise WorkloadError(f"image {path} cannot be read: {problem}") from None
    return _pillow(path)


def _netpbm(content: bytes) -> NDArray[np.generic]:
    """PBM and PGM, plain and raw (netpbm's formats pbm(5) and pgm(5)). Raises ValueError."""
    kind = content[1:2]
    fields = 2 if kind in b"14" else 3
    header = re.match(rb"P[1245]" + rb"(?:\s|#[^\n]*\n)+(\d{1,6})" * fields + rb"\s", content)
    if header is None:
        raise ValueError("its header is not that of a PBM or PGM image")
    columns, rows, most = (*(int(text) for text in header.groups()), 1)[:3]
    body = content[header.end() :]
    if kind == b"4":
        bits = np.unpackbits(np.frombuffer(body, np.uint8, rows * -(-columns // 8)).reshape(rows, -1), axis=1)
        return bits[:, :columns]
    if kind == b"5":
        dtype = ">u2" if most > 255 else "u1"
        return np.frombuffer(body, dtype, rows * columns).reshape(rows, columns)
    words = list(body.replace(b" ", b"").replace(b"\n", b"").decode()) if kind == b"1" else body.split()
    return np.array(words, np.int64)[: rows * columns].reshape(rows, columns)


def _pillow(path: Path) -> NDArray[np.generic]:
    try:
        from PIL import Image, UnidentifiedImageError  # noqa: PLC0415  # only for images numpy cannot read
    except ImportError:
        raise WorkloadError(
            f"image {path}: reading it needs Pillow: {pip_install('image')}, or give a .npy, .pbm or .pgm file"
        ) from None
    try:
        with Image.open(path) as image:
            return np.asarray(image.convert("L"))
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError) as problem:
        raise WorkloadError(f"image {path} cannot be read: {problem}") from None
