"""The CUDA compiler as a library: NVRTC through cuda-bindings. It needs neither a GPU nor a driver."""

import ctypes
import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from autotune.compile import stand_ins
from autotune.compile.nvcc import toolkit_headers
from autotune.compile.pool import limit_time
from autotune.compile.ptxas import check_target, complaints, figures
from autotune.compile.toolchain import Batch, BuildError, Built, Toolchain, VariantSource, translation_unit
from autotune.errors import CompilerError
from autotune.files import pip_install

_OPTIONS = ("--std=c++17", "--ptxas-options=-v")
_INVALID_OPTION = 5  # nvrtcResult.NVRTC_ERROR_INVALID_OPTION
_BINDING = "cuda.bindings.nvrtc"
# Where the binding looks first.
_IN_WHEELS = ("nvidia/cu13/lib/libnvrtc.so.13", "nvidia/cuda_nvrtc/lib/libnvrtc.so.12")

Result = TypeVar("Result")


@dataclass(frozen=True)
class Nvrtc:
    """``arch`` is the target, ``sm_90``. The result is a cubin: no just-in-time compilation is left to do."""

    arch: str
    suffix: ClassVar = ".cubin"

    @property
    def identity(self) -> str:
        """Raises CompilerError when NVRTC is not installed."""
        major, minor = _version()
        return f"nvrtc {major}.{minor} {self.arch} {' '.join(_OPTIONS)}"

    def build(self, batch: Batch) -> Built:
        """Raises BuildError with the program log, and CompilerError when no source at all would compile."""
        return self._compile(batch, _make_built)

    def ptx(self, batch: Batch) -> str:
        """What ``build`` hands to ptxas. Raises what it raises."""
        return self._compile(
            batch,
            lambda nvrtc, program, *_: (
                _bytes(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program).rstrip(b"\0").decode()
            ),
        )

    def _compile(self, batch: Batch, taken: Callable[[Any, Any, Batch, str], Result]) -> Result:
        nvrtc = _library()
        major, minor = _version()
        check_target(self.arch, _targets(), f"nvrtc {major}.{minor}")
        options = [f"-arch={self.arch}", *_OPTIONS, *(f"-I{folder}" for folder in batch.include_dirs)]
        if _version() >= (12, 9):
            # A hit in the driver's compute cache would come without ptxas's figures.
            options.append("--no-cache")
        options += [*batch.command_options, *(f"-I{folder}" for folder in toolkit_headers())]
        is_plain = any(variant.is_plain for variant in batch.variants)
        source = translation_unit(batch).encode()
        texts, names = ([t.encode() for t in each] for each in (stand_ins.NVRTC.values(), stand_ins.NVRTC))
        program = _value(nvrtc.nvrtcCreateProgram(source, b"autotune.cu", len(names), texts, names))
        try:
            log = _run(nvrtc, program, batch, [option.encode() for option in options])
            return taken(nvrtc, program, batch, log)
        except BuildError as problem:
            raise BuildError(stand_ins.add_advice(str(problem)) if is_plain else str(problem)) from None
        finally:
            nvrtc.nvrtcDestroyProgram(program)


def _run(nvrtc: Any, program: Any, batch: Batch, options: list[bytes]) -> str:
    """Compile; the log."""
    for _, _, expression in _instances(batch):
        _value(nvrtc.nvrtcAddNameExpression(program, expression))
    for symbol in dict.fromkeys(symbol for variant in batch.variants for symbol in variant.variables):
        _value(nvrtc.nvrtcAddNameExpression(program, f"&{symbol}".encode()))  # keeps it, read or not
    with limit_time():
        status = int(nvrtc.nvrtcCompileProgram(program, len(options), options)[0])
    log = _bytes(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program).decode(errors="replace")
    if status == _INVALID_OPTION:
        raise CompilerError(complaints(log))
    if status:
        raise BuildError(complaints(log) or f"NVRTC error {status}")
    return log


def _instances(batch: Batch) -> list[tuple[VariantSource, str, bytes]]:
    """Each kernel of each variant, with the expression that names it."""
    return [(v, kernel, v.instance(kernel).encode()) for v in batch.variants for kernel in v.kernels]


def _make_built(nvrtc: Any, program: Any, batch: Batch, log: str) -> Built:
    counted = figures(log)
    symbols: dict[str, dict[str, str]] = {}
    static: dict[str, dict[str, dict[str, int]]] = {}
    for variant, kernel, expression in _instances(batch):
        symbol = _value(nvrtc.nvrtcGetLoweredName(program, expression)).decode()
        if symbol not in counted:
            raise CompilerError(f"nvrtc's log has no register count for kernel {kernel!r} ({symbol})")
        symbols.setdefault(variant.key, {})[kernel] = symbol
        static.setdefault(variant.key, {})[kernel] = counted[symbol]
    image = _bytes(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
    return Built(image, symbols, static)


def _library() -> Any:
    """The binding; raises CompilerError when it or the library behind it is not there."""
    try:
        nvrtc = importlib.import_module(_BINDING)
        nvrtc.nvrtcVersion()
    except (ImportError, OSError, RuntimeError) as error:
        raise CompilerError(
            f"NVRTC cannot be used ({error}); {pip_install('static')}, or install a CUDA toolkit and "
            "use --compiler nvcc"
        ) from error
    return nvrtc


@lru_cache(maxsize=1)
def _version() -> tuple[int, int]:
    """Of the library that the binding will find, asked for without the binding, which takes long to import and
    is not needed where all binaries are in the cache."""
    versions = [
        path
        for folder in dict.fromkeys(sys.path)
        for place in _IN_WHEELS
        if (path := Path(folder, place)).exists()
    ]
    is_bound = sys.modules.get(_BINDING, _BINDING) is not None and any(
        Path(folder, *_BINDING.split(".")[:-1]).is_dir() for folder in sys.path
    )
    if is_bound and len(versions) == 1:
        major, minor = ctypes.c_int(), ctypes.c_int()
        if ctypes.CDLL(str(versions[0])).nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)) == 0:
            return major.value, minor.value
    _, first, second = _library().nvrtcVersion()
    return first, second


@lru_cache(maxsize=1)
def _targets() -> list[str]:
    return [f"sm_{number}" for number in _value(_library().nvrtcGetSupportedArchs())]


def _value(result: tuple[Any, ...]) -> Any:
    """A call's value; raises CompilerError when its status is not success."""
    if int(result[0]):
        raise CompilerError(f"NVRTC failed: {result[0].name}")
    return result[1] if len(result) > 1 else None


def _bytes(size: Any, fill: Any, program: Any) -> bytes:
    """NVRTC writes into a buffer of the caller's."""
    buffer: bytes = b" " * _value(size(program))
    _value(fill(program, buffer))
    return buffer


def ptx(batch: Batch, toolchain: Toolchain) -> str:
    """The batch as PTX. Raises CompilerError, for a source that does not compile, too."""
    if not isinstance(toolchain, Nvrtc):
        raise CompilerError(f"PTX is made by NVRTC, which is not installed: {pip_install('static')}")
    try:
        return toolchain.ptx(batch)
    except BuildError as problem:
        raise CompilerError(f"it does not compile:\n{problem}") from None
