"""What a family says of an array that is an image: what a kernel gets beyond its edge and between its elements, and
which arrays can have rows of their own."""

from collections.abc import Mapping
from typing import Any

from autotune.errors import FamilyError
from autotune.layout import IMAGES, Data, Layout, Sampling

_NORMALISED = ("int8", "uint8", "int16", "uint16")


def sampling_of(value: Mapping[str, Any], place: str) -> Sampling | None:
    """``image`` of an array; None where it says nothing. Raises FamilyError for what no texture can do."""
    if "image" not in value:
        return None
    sampling = Sampling(**value["image"])
    element = value.get("type", f"the record {value.get('record')}")
    if value["role"] != "input":
        raise FamilyError(
            f"{place}: image says what a kernel reads beyond the edge of an input, and this has role {value['role']}; "
            "an output becomes a surface by its layout, dims: image"
        )
    if len(value["shape"]) not in (2, 3):
        raise FamilyError(f"{place}: an image has two or three extents, and this has {len(value['shape'])}")
    if "packed" in value:
        raise FamilyError(f"{place}: an image cannot be packed; take image or packed away")
    if sampling.is_normalised and element not in _NORMALISED:
        raise FamilyError(
            f"{place}: image: read: normalised is for {', '.join(_NORMALISED)}, and this holds {element}"
        )
    if sampling.is_linear and element != "float32" and not sampling.is_normalised:
        raise FamilyError(
            f"{place}: image: filter: linear is for float32, or for integers with read: normalised, and this holds "
            f"{element}"
        )
    return sampling


def check_dims(place: str, data: Data, choice: Any) -> None:
    """Raise FamilyError where ``data`` can never have the rows of its own that ``choice`` of dims asks for."""
    if choice not in IMAGES:
        return
    is_output = data.role in ("output", "scratch")
    if is_output and choice != "image":
        raise FamilyError(f"{place}: {data.name} is written, and a surface is a CUDA array; take dims: image")
    layout = Layout(data=data, memory="global" if is_output else "texture", dims=choice)
    if reason := layout.not_an_image:
        raise FamilyError(f"{place}: {reason}")
