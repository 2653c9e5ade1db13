"""What stands in for headers that a kernel's source includes out of habit, where a compiler has none of that name: the
toolkit's and C's own, as far as a kernel can use them."""

import re
from collections.abc import Mapping
from pathlib import Path

from autotune.files import include_dir

_TYPES = """
typedef signed char int8_t; typedef unsigned char uint8_t; typedef short int16_t; typedef unsigned short uint16_t;
typedef int int32_t; typedef unsigned int uint32_t; typedef long long int64_t; typedef unsigned long long uint64_t;
typedef decltype(sizeof(0)) size_t; typedef long long intptr_t; typedef unsigned long long uintptr_t;
"""
_LIMITS = """
#define CHAR_BIT 8
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295u
#define LLONG_MAX 9223372036854775807LL
#define LLONG_MIN (-LLONG_MAX - 1LL)
#define ULLONG_MAX 18446744073709551615ULL
"""
_FLOATS = """
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
"""
_MATH = """
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_E 2.7182818284590452354
#define M_SQRT2 1.41421356237309504880
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif
"""
_USUAL = ("cuda.h", "cuda_runtime.h", "cuda_runtime_api.h", "device_launch_parameters.h", "hip/hip_runtime.h")
_C = {"stdint": _TYPES, "limits": _LIMITS, "float": _FLOATS, "math": _MATH, "stdio": "", "stdlib": "", "string": "",
      "assert": "", "stddef": "", "time": ""}  # fmt: skip
_ONCE = "#pragma once\n"
# NVRTC can read CUB's headers one by one; the one that has all has what a host program calls, too.
_CUB = {"block": ("adjacent_difference", "discontinuity", "exchange", "histogram", "load", "merge_sort", "radix_sort",
                  "reduce", "scan", "store"), "warp": ("exchange", "reduce", "scan")}  # fmt: skip
_ALL_OF_CUB = "".join(f"#include <cub/{w}/{w}_{name}.cuh>\n" for w, names in _CUB.items() for name in names)

# NVRTC knows the functions without a header, and no header.
NVRTC: Mapping[str, str] = {
    **dict.fromkeys((*_USUAL, "iostream", "math_constants.h"), _ONCE),
    "cub/cub.cuh": _ONCE + _ALL_OF_CUB,
    **{f"{name}.h": _ONCE + text for name, text in _C.items()},
    **{f"c{name}": _ONCE + text for name, text in _C.items()},
}

_MISSING = re.compile(r"^.*\b(?:cannot open source file|No such file or directory)\b.*$", re.MULTILINE)
# What only a GPU's compiler takes, by how a line of a source says it.
_LACKING = {
    r"\basm\b|\b__asm": "inline PTX", r"\bmma\.h|\bwmma::": "tensor cores", r"fp8": "fp8", r"\bthrust\b": "Thrust",
    r"\bcurand": "cuRAND", r"\bcuda/(barrier|pipeline)|\b__pipeline_": "asynchronous copies",
    r"\bcuda(/|::)atomic": "cuda::atomic", r"\bcub::Device": "launches by CUB",
    r"\b\w*cluster_group|\bthis_cluster": "clusters of blocks", r"\btexture\s*<": "texture references",
}  # fmt: skip


def cuda_headers() -> Path:
    """The folder with what the cpu device has of a toolkit's headers; ``usual`` next to it has what nothing else
    has."""
    return include_dir() / "autotune" / "cpu" / "toolkit"


def find_lacked(text: str, name: str) -> str:
    """What of a GPU's compiler the source of that name uses that the cpu device has not, and where; empty for none."""
    lines = ((n, line.partition("//")[0]) for n, line in enumerate(text.splitlines(), 1))
    found = (
        f"{what} ({name}:{n})" for n, line in lines for by, what in _LACKING.items() if re.search(by, line)
    )
    return next(found, "")


def describe_lack(what: str) -> str:
    """What to do about a kernel that uses what only a GPU's compiler has."""
    return f"the cpu device has no {what}: this kernel needs --device cuda, or --static to compile only"


def add_advice(message: str, for_host: bool = False) -> str:
    """A compiler's message, with what to do about a header that is not there behind the first line that misses one."""
    missing = _MISSING.search(message)
    if missing and for_host and (what := find_lacked(missing[0], "").partition(" (")[0]):
        return f"{message[: missing.end()]}\n  ({describe_lack(what)}){message[missing.end() :]}"
    advice = (
        r"\g<0>\n  (omit what only the host program needs: give only the kernel's part of the file, as autotune adopt "
        r"extracts it, or compile the whole file with --compiler nvcc)"
    )
    return _MISSING.sub(advice, message, count=1)
