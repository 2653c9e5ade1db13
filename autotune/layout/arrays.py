"""The arrays a family declares: their elements, shape and role, whatever their layout."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from autotune.errors import WorkloadError
from autotune.layout.image import Sampling
from autotune.layout.storage import ELEMENTS, STORAGES, to_numbers

# What C++ calls the numbers that can be declared: first as generated code has it, then as others write it.
CPP_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "int8": ("signed char", "char", "int8_t"),
        "uint8": ("unsigned char", "uint8_t", "uchar"),
        "int16": ("short", "short int", "int16_t"),
        "uint16": ("unsigned short", "uint16_t", "ushort"),
        "int32": ("int", "int32_t"),
        "uint32": ("unsigned int", "unsigned", "uint32_t", "uint"),
        "int64": ("long long", "long", "int64_t", "long long int", "ptrdiff_t"),
        "uint64": ("unsigned long long", "unsigned long", "uint64_t", "size_t", "std::size_t", "ulong"),
        "float32": ("float",),
        "float64": ("double",),
        "float16": ("__half", "half"),
        "bfloat16": ("__nv_bfloat16", "nv_bfloat16"),
        "float8_e4m3": ("__nv_fp8_e4m3",),
        "float8_e5m2": ("__nv_fp8_e5m2",),
    }
)
# Those that a kernel computes with; the others are stored alone (see ``storage``).
SCALAR_TYPES: Mapping[str, str] = MappingProxyType(
    {name: names[0] for name, names in CPP_NAMES.items() if name not in ELEMENTS}
)


@dataclass(frozen=True)
class Field:
    """One member of a record. ``link`` names the extent whose index the field holds: when that index space is
    reordered, the field's values are renumbered. ``none`` is the number outside of it that stands for no link; None for
    those that are usual: a negative one, and of an unsigned type the largest."""

    name: str
    type: str
    link: str = ""
    none: int | None = None

    def is_null(self, links: NDArray[Any]) -> NDArray[np.bool_]:
        """Where ``links`` are no links."""
        if self.none is not None:
            return np.asarray(links == self.none)
        return np.asarray(links < 0 if links.dtype.kind == "i" else links == np.iinfo(links.dtype).max)


@dataclass(frozen=True, kw_only=True)
class Data:
    """A declared array. ``shape`` names its extents; an extent is also an index space that an order can permute.

    ``fields`` has one unnamed member for plain elements; otherwise ``record`` names the kernel source's struct.
    ``packed`` is the axis along which packing and vector width join elements; ``low``/``high`` bound the values.
    ``index_bits`` is the width of address arithmetic; 31 are those of an int, which a compiler takes not to wrap.
    ``constant_bytes`` is the share of constant memory it may take; ``plane`` is (width, rows a block) of its 2D
    addressing, powers of two. ``fixed`` are layout choices that no policy makes. ``of`` is the scratch array that a
    view reads, ``pitch`` the extent that says how far apart the view's rows lie there (see ``views``). A view that is
    ``converted`` may have a layout of its own, and is a copy then (see ``views``). ``element`` is the declared type
    where that is narrower than what a kernel reads and a canonical array holds (float16, ...: see ``storage``).
    ``sampling`` is of an image: what a kernel gets beyond its edge and between its elements (see ``image``).
    """

    name: str
    role: str
    fields: tuple[Field, ...]
    shape: tuple[str, ...]
    record: str = ""
    packed: str = ""
    low: float | None = None
    high: float | None = None
    index_bits: int = 32
    constant_bytes: int = 65536
    plane: tuple[int, int] = (4096, 1)
    fixed: Mapping[str, object] = field(default_factory=dict)
    of: str = ""
    pitch: str = ""
    converted: bool = False
    element: str = ""
    sampling: Sampling | None = None
    doc: str = ""

    @property
    def is_view(self) -> bool:
        """Whether it is never more than another accessor onto its array's memory."""
        return bool(self.of) and not self.converted

    @property
    def dtype(self) -> np.dtype[np.void] | np.dtype[np.generic]:
        """Return the numpy dtype of one canonical element."""
        members: DTypeLike = [(f.name, f.type) for f in self.fields] if self.record else self.fields[0].type
        return np.dtype(members)

    @property
    def element_dtype(self) -> np.dtype[Any]:
        """What arrays of other libraries hold where they hold exactly what is declared."""
        return STORAGES[self.element].dtype if self.element else self.dtype

    def shape_for(self, sizes: Mapping[str, Any]) -> tuple[int, ...]:
        """Its shape with the extents of ``sizes``."""
        return tuple(int(sizes[extent]) for extent in self.shape)

    def numbers(self, array: NDArray[Any]) -> NDArray[Any]:
        """A canonical array whose fields are all of one type, with them as one more extent."""
        number = self.fields[0].type
        return np.ascontiguousarray(array, self.dtype).view(number).reshape(*array.shape, -1)


def canonical(data: Data, array: Any) -> NDArray[Any]:
    """``array`` as the declared dtype and rank, its values inside the declared range: the same object where it is so
    already. Raises WorkloadError."""
    try:
        return _canonical(data, array)
    except MemoryError:
        raise WorkloadError(f"{data.name}: this host has no memory for it as {data.dtype}") from None


def _canonical(data: Data, array: Any) -> NDArray[Any]:
    if array is None or isinstance(array, (str, bytes)):
        raise WorkloadError(
            f"{data.name}: {array!r:.40} is no array; {len(data.shape)} dimensions of {data.dtype} are needed"
        )
    if hasattr(array, "mask") and np.ma.is_masked(array):
        raise WorkloadError(
            f"{data.name}: it has masked elements, and a kernel has no masks: fill them, as in array.filled(0)"
        )
    try:
        given = to_numbers(np.asarray(array))
    except ValueError as problem:
        raise WorkloadError(f"{data.name}: not an array: {problem}") from None
    if given.ndim != len(data.shape):
        raise WorkloadError(
            f"{data.name}: {given.ndim} dimensions given, {len(data.shape)} needed ({', '.join(data.shape)})"
        )
    if 0 in given.shape:
        raise WorkloadError(
            f"{data.name}: shape {given.shape} is empty; every extent ({', '.join(data.shape)}) must be at least 1"
        )
    # Before a value is looked at or copied. Some packed elements share a word, 32 at most.
    if given.size >= 2**data.index_bits * (32 if data.packed else 1):
        raise WorkloadError(
            f"{data.name}: {given.size} elements pass the range of {data.index_bits}-bit addresses (index_bits: 64 in "
            "family.yaml widens it)"
        )
    if not data.record:
        check_numbers(data.name, given, data.dtype)
    elif given.dtype.names != data.dtype.names:  # numpy would put one number into every field
        raise WorkloadError(f"{data.name}: dtype {given.dtype} given, records of {data.dtype} needed")
    else:
        for member in data.fields:
            check_numbers(f"{data.name}.{member.name}", given[member.name], np.dtype(member.type))
    if data.low is not None and data.high is not None:
        numbers = data.numbers(given) if data.record else given
        least, most = numbers.min(), numbers.max()
        if not (least >= data.low and most <= data.high):
            bad = most if least >= data.low else least
            raise WorkloadError(
                f"{data.name}: value {bad} is outside the allowed {data.low:g}..{data.high:g}"
            )
    if given.dtype == data.dtype and given.flags.c_contiguous:
        return given  # the very object, which numpy does not give back for records
    return _convert(data, given)


def _convert(data: Data, given: NDArray[Any]) -> NDArray[Any]:
    """``given`` as ``data`` declares it. Raises WorkloadError where a number would become another one: beyond the
    largest, or a whole number with more digits than a float has."""
    try:
        with np.errstate(over="raise", invalid="ignore"):
            made = np.ascontiguousarray(given, data.dtype)
            may_round = (
                given.dtype.kind in "iu"
                and data.dtype.kind == "f"
                and not np.can_cast(given.dtype, data.dtype)
            )
            is_rounded = may_round and not np.array_equal(made.astype(given.dtype), given)
    except FloatingPointError:
        raise WorkloadError(
            f"{data.name}: values of {given.dtype} are beyond the range of {data.dtype}: scale them, or declare a "
            "wider type"
        ) from None
    if is_rounded:
        raise WorkloadError(
            f"{data.name}: whole numbers of {given.dtype} have more digits than {data.dtype} holds: declare a wider "
            f"type, or round them on purpose, as array.astype({data.dtype.name!r})"
        )
    return made


def check_links(data: Data, array: NDArray[Any], sizes: Mapping[str, int]) -> None:
    """Raise WorkloadError for a link of a canonical array that leads out of its extent, as far as ``sizes`` has it, and
    is no null: a kernel that followed it would read what is nobody's."""
    for member in data.fields:
        if member.link not in sizes:
            continue
        links, size = (array[member.name] if data.record else array), sizes[member.link]
        if int(links.min()) >= 0 and int(links.max()) < size:
            continue
        astray = links[((links < 0) | (links >= size)) & ~member.is_null(links)]
        if astray.size:
            name = f"{data.name}.{member.name}" if data.record else data.name
            null = "a negative number or all bits set" if member.none is None else str(member.none)
            raise WorkloadError(
                f"{name}: link {int(astray[0])} is outside of extent {member.link}, which has {size}: 0..{size - 1} "
                "are "
                f"links, and {null} is none (none: in family.yaml names another number for it)"
            )


def check_numbers(name: str, given: NDArray[Any], dtype: np.dtype[Any]) -> None:
    """Raise WorkloadError when ``given`` cannot be held as ``dtype``: numpy itself would wrap or cut silently."""
    if given.dtype.kind not in "biuf":
        raise WorkloadError(f"{name}: dtype {given.dtype} given, numbers ({dtype}) needed")
    if dtype.kind not in "iu" or given.dtype == dtype:
        return
    if given.dtype.kind == "f" and not (np.isfinite(given).all() and np.array_equal(given, np.floor(given))):
        raise WorkloadError(f"{name}: fractional or NaN values given, {dtype} needed")
    limits = np.iinfo(dtype)
    for value in (int(given.min()), int(given.max())):
        if not limits.min <= value <= limits.max:
            raise WorkloadError(
                f"{name}: value {value} is outside the range of {dtype}, {limits.min}..{limits.max}"
            )
