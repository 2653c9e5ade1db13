"""storage: numbers that are declared float32 or float64, held in fewer bits (host side of ``storage.cuh``).

A code is the nearest there is, ties to even, as the GPU's own conversions round (PTX ISA, "cvt"), so that host and
device make the same codes; only what a scale divides is a float32 first. Beyond the largest number float16 and
bfloat16 have infinity; float8 and scaled integers keep the largest (OCP 8-bit Floating Point Specification).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.errors import LayoutRefusal, UnknownName


@dataclass(frozen=True)
class Storage:
    """``code`` is numpy's type of a stored number, ``cpp`` its codec in ``storage.cuh``. Of floats ``exponent`` and
    ``mantissa`` are bits, and those that are ``saturated`` have no infinity here. Scaled integers hold -``largest`` ..
    ``largest`` times a scale: of the declared range where there is one; else of the largest magnitude in the array,
    or, ``by_row``, at each index of the first extent."""

    name: str
    code: str
    cpp: str
    exponent: int = 0
    mantissa: int = 0
    saturated: bool = False
    largest: int = 0
    by_row: bool = False

    @property
    def bytes(self) -> int:
        return np.dtype(self.code).itemsize

    @property
    def is_scaled(self) -> bool:
        return self.largest > 0

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The elements of an array of another library that holds such numbers: numpy's own where it has a name for
        them, else a record of the code."""
        named = self.name in ("float16", "float32")
        return np.dtype(self.name) if named else np.dtype([(self.name, self.code)])

    # -- what it can hold -----------------------------------------------------------------------------

    @cached_property
    def _smallest(self) -> float:
        """Of a float: numbers below have fewer digits."""
        return 2.0 ** (2 - (1 << self.exponent - 1))

    @cached_property
    def _too_large(self) -> float:
        """Of a float: from here on a number is rounded to no finite one, or to one that is further off than others."""
        most = self._most if self.saturated else ((1 << self.exponent) - 1 << self.mantissa) - 1
        last, largest = self.widen(np.array([most - 1, most], self.code), np.ones(1, np.float32)).tolist()
        return float(largest + (largest - last) / 2)

    def check(self, name: str, numbers: NDArray[Any]) -> None:
        """Raise LayoutRefusal where the array ``name`` has a number that is too large for it, where all are so small
        that they lose digits, or where a scale of the content leaves nothing of most of them. What is infinite or NaN
        is no number."""
        if self.is_scaled:
            self._check_scale(name, numbers, self.scales_of(name, numbers))
            return
        most = max(float(numbers.max()), -float(numbers.min()))
        if not np.isfinite(most):
            most = float(np.abs(numbers[np.isfinite(numbers)]).max(initial=0))
        if most >= self._too_large:
            raise LayoutRefusal(
                f"{name}: {most:g} is too large for storage {self.name}, which holds numbers below "
                f"{self._too_large:g}: take another storage, or scale the array"
            )
        if 0 < most < self._smallest:
            raise LayoutRefusal(
                f"{name}: the largest number is {most:g}, and storage {self.name} loses digits below "
                f"{self._smallest:g}: take another storage, or scale the array"
            )

    def _check_scale(self, name: str, numbers: NDArray[Any], scales: NDArray[np.float32]) -> None:
        half = _reshape_along_rows(scales, numbers.ndim) * np.float32(0.5)
        lost = np.count_nonzero(np.abs(numbers) <= half) - np.count_nonzero(numbers == 0)
        whole = np.count_nonzero(numbers)
        if 2 * lost > whole:
            raise LayoutRefusal(
                f"{name}: {lost:,} of {whole:,} numbers that are not 0 would be 0 in storage {self.name}, whose scale "
                f"is for the largest {'of each row' if self.by_row else 'of all'}: take a float, or clip outliers"
            )

    # -- scales -----------------------------------------------------------------------------------------

    def scale_for(self, magnitude: Any) -> NDArray[np.float32]:
        """The scale by which the largest code stands for ``magnitude``: 1 for 0."""
        wanted = np.asarray(magnitude, np.float64) / self.largest
        scale = np.maximum(wanted, np.finfo(np.float32).tiny).astype(np.float32)
        return np.asarray(np.where(wanted == 0, np.float32(1), scale), np.float32)

    def scales_of(self, name: str, numbers: NDArray[Any]) -> NDArray[np.float32]:
        """One for the array, or for each index of its first extent. Raises LayoutRefusal for what is not finite."""
        if not np.isfinite(numbers).all():
            raise LayoutRefusal(
                f"{name}: storage {self.name} holds finite numbers, and there is a NaN or an infinity: take a float"
            )
        axes = tuple(range(1 if self.by_row else 0, numbers.ndim))
        return self.scale_for(np.abs(numbers).max(axis=axes)).reshape(-1)

    # -- codes ------------------------------------------------------------------------------------------

    def narrow(self, numbers: NDArray[Any], scales: NDArray[np.float32]) -> NDArray[Any]:
        """The codes of ``numbers``, whose first extent the ``scales`` run along where there are several."""
        with np.errstate(over="ignore", invalid="ignore"):
            single = numbers.astype(np.float32, copy=False)
            if self.exponent and self.name != "float32" and numbers.dtype == np.float64:
                single = _round_to_odd(numbers, single)
            if self.is_scaled:
                quotient = np.rint(single / _reshape_along_rows(scales, single.ndim))
                whole = np.clip(
                    np.nan_to_num(quotient, posinf=np.inf, neginf=-np.inf), -self.largest, self.largest
                )
                codes: NDArray[Any] = whole.astype(f"i{self.bytes}").view(self.code)
                return codes
            if self.name in ("float16", "float32"):
                return single.astype(self.name).view(self.code)
        if self.name == "bfloat16":
            bits = single.view(np.uint32)
            rounded = ((bits + (0x7FFF + (bits >> 16 & 1))) >> 16).astype(self.code)
            if (nans := np.isnan(single)).any():
                rounded[nans] = bits[nans] >> 16 | 0x40
            return rounded
        return self._encode_small(single)

    def _encode_small(self, single: NDArray[np.float32]) -> NDArray[Any]:
        """Of a float8: the exponent's place, and how many units of the last place there are, rounded; a carry goes
        where it belongs by itself."""
        magnitude = np.where(np.isnan(single), np.float32(0), np.abs(single)).astype(np.float64)
        finite = np.minimum(magnitude, 1e30)
        lowest = 2 - (1 << self.exponent - 1)  # exponent of the smallest normal number
        exponent = np.where(finite > 0, np.maximum(np.frexp(finite)[1] - 1, lowest), lowest)
        units = np.rint(np.ldexp(finite, self.mantissa - exponent))
        code = np.minimum((exponent - lowest) * 2.0**self.mantissa + units, self._most)
        code = np.where(np.isnan(single), 0x7F, code) + np.where(np.signbit(single), 0x80, 0)
        return np.asarray(code, self.code)

    @property
    def _most(self) -> int:
        """The code of the largest float8."""
        return 0x7E if self.mantissa == 3 else 0x7B

    def widen(self, codes: NDArray[Any], scales: NDArray[np.float32]) -> NDArray[np.float32]:
        """The numbers that ``codes`` stand for."""
        if self.is_scaled:
            whole = np.ascontiguousarray(codes).view(f"i{self.bytes}").astype(np.float32)
            return whole * _reshape_along_rows(scales, whole.ndim)
        if self.name in ("float16", "float32"):
            return np.ascontiguousarray(codes).view(self.name).astype(np.float32)
        if self.name == "bfloat16":
            return (codes.astype(np.uint32) << 16).view(np.float32)
        return np.asarray(_table(self)[codes], np.float32)


def _round_to_odd(numbers: NDArray[np.float64], single: NDArray[np.float32]) -> NDArray[np.float32]:
    """``single``, the nearest float32 to ``numbers``, made the one towards 0 with its last bit set where it is not
    equal to them: rounded again, that is rounded once (storage.cuh: RoundedOnce)."""
    odd = (single.view(np.uint32) - (np.abs(single) > np.abs(numbers))) | 1
    return np.where(single == numbers, single, odd.astype(np.uint32).view(np.float32))


def _reshape_along_rows(scales: NDArray[np.float32], rank: int) -> NDArray[np.float32]:
    return scales.reshape(-1, *(1,) * (rank - 1))


@cache
def _table(storage: Storage) -> NDArray[np.float32]:
    """Every number of a float8."""
    codes = np.arange(256)
    magnitude, bias = codes & 0x7F, (1 << storage.exponent - 1) - 1
    field, units = magnitude >> storage.mantissa, magnitude & (1 << storage.mantissa) - 1
    whole = units + np.where(field > 0, 1 << storage.mantissa, 0)
    number = np.ldexp(whole.astype(np.float32), np.maximum(field, 1) - bias - storage.mantissa)
    if storage.mantissa == 2:
        number = np.where(magnitude == 0x7C, np.inf, np.where(magnitude > 0x7C, np.nan, number))
    else:
        number = np.where(magnitude == 0x7F, np.nan, number)
    return np.where(codes & 0x80, -number, number).astype(np.float32)


_SCALE_BYTES = 4  # of a float, behind the elements


@dataclass(frozen=True)
class Scales:
    """The scales of an array of scaled integers, compiled in or behind the elements in the same buffer. ``low`` and
    ``high`` are the declared range of its values, None without one; a texel has ``texel_bytes``. ``line`` is the buffer
    in texels, the first ``texels`` of which are elements; ``shape`` is canonical."""

    storage: Storage
    low: float | None
    high: float | None
    texel_bytes: int

    @cached_property
    def fixed(self) -> NDArray[np.float32] | None:
        """The scale of the declared range, where that gives it; then none is stored."""
        if self.storage.by_row or self.low is None or self.high is None:
            return None
        return self.storage.scale_for(max(abs(self.low), abs(self.high)))

    def tail(self, texels: int, shape: Sequence[int]) -> tuple[int, int, int]:
        """Where stored ones lie (storage.cuh: scale_behind): (texel at which the first begins, how many there are,
        texels from one to the next)."""
        unit = max(1, _SCALE_BYTES // self.texel_bytes)
        return -(-texels // unit) * unit, shape[0] if self.storage.by_row else 1, unit

    def room(self, line: NDArray[Any], texels: int, shape: Sequence[int]) -> NDArray[np.float32]:
        """The stored ones, one each, to read or write."""
        begin, count, unit = self.tail(texels, shape)
        return line[begin : begin + count * unit].view(np.float32).reshape(count, -1)[:, 0]

    def get(self, line: NDArray[Any], texels: int, shape: Sequence[int]) -> NDArray[np.float32]:
        """Those that hold, stored or not."""
        return self.room(line, texels, shape) if self.fixed is None else self.fixed.reshape(1)

    @property
    def cpp(self) -> str:
        if self.fixed is not None:
            return f"FixedScale<0x{int(self.fixed.view(np.uint32)):08x}u>"
        return "RowScale" if self.storage.by_row else "ArrayScale"


STORAGES: Mapping[str, Storage] = MappingProxyType(
    {
        storage.name: storage
        for storage in (
            Storage("float32", "u4", "Float32", 8, 23),
            Storage("float16", "u2", "Float16", 5, 10),
            Storage("bfloat16", "u2", "BFloat16", 8, 7),
            Storage("float8_e4m3", "u1", "Float8E4M3", 4, 3, saturated=True),
            Storage("float8_e5m2", "u1", "Float8E5M2", 5, 2, saturated=True),
            Storage("scaled_int16", "u2", "ScaledInt16", largest=32767),
            Storage("scaled_int8", "u1", "ScaledInt8", largest=127),
            Storage("scaled_int16_by_row", "u2", "ScaledInt16", largest=32767, by_row=True),
            Storage("scaled_int8_by_row", "u1", "ScaledInt8", largest=127, by_row=True),
        )
    }
)
# Of ml_dtypes, which numpy takes for records of bytes.
_NO_NAME = ("bfloat16", "float8_e4m3fn", "float8_e5m2")


def to_numbers(array: NDArray[Any]) -> NDArray[Any]:
    """``array`` as float32 where it holds a float that numpy has no name for."""
    return array.astype(np.float32) if array.dtype.name in _NO_NAME else array


HEADER = "autotune/storage.cuh"
ELEMENTS = ("float16", "bfloat16", "float8_e4m3", "float8_e5m2")  # what can be declared as a type, too


def storage_of(name: str, declared: str) -> Storage | None:
    """The storage of that name for elements that are ``declared`` float32 or float64; None for all their bits, by the
    type's name or as ``declared``, where an option decides the type. Raises UnknownName."""
    if name in ("declared", declared):
        return None
    if name not in STORAGES:
        raise UnknownName("storage", name, list_storages(declared))
    return STORAGES[name]


def list_storages(declared: str) -> tuple[str, ...]:
    """What elements of the ``declared`` type can be stored as."""
    return ("declared", declared, *(name for name in STORAGES if name != declared))
