"""Images: arrays of two or three extents that a kernel may read beyond their edge and between their elements.

What it then gets is declared (``Sampling``), since it is part of the result, and is the same in every layout. With
``dims: image`` an input in texture memory is a texture with the array's own rows, and an output is a surface; in any
other memory an image is stored in a line (image.cuh).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from autotune.hardware import Limits

IMAGE_HEADER = "autotune/image.cuh"  # of the accessors
EDGES = ("clamp", "mirror", "wrap", "border")
READS = ("element", "normalised")
FILTERS = ("nearest", "linear")
_RANKS = (2, 3)
_TEXELS = (1, 2, 4, 8, 16)  # bytes


@dataclass(frozen=True)
class Sampling:
    """``edge``: beyond the array is the nearest element (``clamp``), the array again, in reverse each other time
    (``mirror``) or not (``wrap``), or zero (``border``). ``read``: the ``element``, or an integer of 8 or 16 bits
    ``normalised`` to 0..1 (-1..1 with a sign). ``filter``: between elements is the ``nearest``, or ``linear``
    interpolation by weights of 8 bits of fraction, as the texture units do it."""

    edge: str = "clamp"
    read: str = "element"
    filter: str = "nearest"

    @property
    def is_normalised(self) -> bool:
        """Whether a kernel gets float32 for integers."""
        return self.read == "normalised"

    @property
    def is_linear(self) -> bool:
        """Whether a kernel gets what is between elements."""
        return self.filter == "linear"

    @property
    def cpp(self) -> str:
        """The arguments of the accessor's template (image.cuh) that say all this."""
        read, choice = ("Normalised" if self.is_normalised else "Elements"), self.filter.capitalize()
        return f"autotune::Edge::{self.edge}, autotune::{read}, autotune::{choice}"


@dataclass(frozen=True)
class Raster:
    """The rows of a texture or a surface: ``size`` is its width, height and, of three extents, depth, in texels;
    ``element`` the numbers' type, empty for a record, whose bytes are moved as they are. ``is_pitched``: in pitched
    memory, not in a CUDA array."""

    size: tuple[int, ...]
    element: str
    sampling: Sampling
    is_surface: bool = False
    is_pitched: bool = False

    def explain_refusal(self, name: str, limits: Limits) -> str:
        """Why a device with ``limits`` has no such texture or surface; empty when it has."""
        most: tuple[int, ...]
        if self.is_pitched:
            most, kind = (limits.texture_pitched_width, limits.texture_pitched_height), "pitched texture"
        elif len(self.size) == 3:
            most = limits.surface_3d if self.is_surface else limits.texture_3d
            kind = "3D surface" if self.is_surface else "3D texture"
        elif self.is_surface:
            most, kind = limits.surface_2d, "2D surface"
        else:
            most, kind = (limits.texture_2d_width, limits.texture_2d_height), "2D texture"
        if any(n > bound for n, bound in zip(self.size, most, strict=True)):
            return f"{name}: an image of {self.size} texels passes the {kind} limit of {most}"
        return ""


def raster_refusal(name: str, rank: int, texel: tuple[int, int], whole: Sequence[tuple[str, bool]]) -> str:
    """Why an array of ``rank`` extents is no image; empty when it is one. ``texel`` is (bytes of a value, texels in
    it); ``whole`` says what else its layout does to the elements: (what, whether it does)."""
    value_bytes, parts = texel
    if rank not in _RANKS:
        return f"{name} has {rank} extents, and an image has two or three"
    if value_bytes not in _TEXELS or parts != 1:
        return (
            f"{name}: an image has one texel of 1, 2, 4, 8 or 16 bytes for each element, not {parts} of "
            f"{value_bytes // parts}"
        )
    done = next((what for what, is_done in whole if is_done), "")
    return f"{name}: {done} leaves no rows that an image could have" if done else ""
