"""Pictures of the concentration in time order: an animated GIF, or a .npy array of all frames."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import StoreError, UsageError, pip_install

__all__ = ["check_animation", "write_animation"]

_MILLISECONDS = 80


def check_animation(path: Path) -> None:
    """Raise UsageError when no animation can be written to ``path``, before anything is computed."""
    if path.suffix not in (".gif", ".npy"):
        raise UsageError(f"-i animation={path}: the name must end in .gif or .npy")
    if path.suffix == ".gif":
        _pillow(path)


def write_animation(path: Path, frames: Sequence[NDArray[Any]]) -> None:
    """``frames`` (rows, columns) from black, 0, to white, the largest concentration of the first; as float32
    (frames, rows, columns) for .npy. Raises StoreError."""
    try:
        if path.suffix == ".npy":
            np.save(path, np.stack([frame.astype(np.float32) for frame in frames]))
            return
        image = _pillow(path)
        most = max(float(frames[0].max()), np.finfo(np.float32).tiny)
        grey = [np.clip(frame / most * 255, 0, 255).astype(np.uint8) for frame in frames]
        pictures = [image.fromarray(frame) for frame in grey]
        pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=_MILLISECONDS, loop=0)
    except OSError as problem:
        raise StoreError(f"cannot write {path}: {problem.strerror or problem}") from None


def _pillow(path: Path) -> Any:
    try:
        from PIL import Image  # noqa: PLC0415  # only for a GIF
    except ImportError:
        raise UsageError(
            f"-i animation={path}: writing a GIF needs Pillow: {pip_install('image')}, or name a .npy file"
        ) from None
    return Image
