"""Kernels of CuPy, Numba and Warp as functions that ``autotune.tune`` takes: the kernel as it is, and its launch.

A launch is numbers or expressions over the arguments that are numbers, the extents of arrays (``x_0`` is the
first one of x) and the choices: ``grid="ceil_div(n, block)"``. A choice that is no argument and is not in the launch's
words is a constant of the kernel: a macro (-D) in CUDA C++, a global of the module where the kernel is Python.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from types import FunctionType
from typing import Any

from autotune.callables import functions
from autotune.callables.functions import Importable
from autotune.declaration import Expression
from autotune.errors import UsageError

Extent = int | str
Extents = Extent | Sequence[Extent]


@dataclass(frozen=True, kw_only=True)
class LibraryLaunch(ABC):
    """What all have: the kernel's ``arguments`` in order, by name, and the launch."""

    arguments: tuple[str, ...]
    grid: tuple[Extent, ...]
    block: tuple[Extent, ...] = ()
    shared: Extent = 0
    digest: str = ""
    __name__: str = ""
    tools: tuple[str, ...] = ()

    def __call__(self, **given: Any) -> None:
        """A launch on the current stream."""
        others = given.keys() - {*self.arguments} - self._words
        constants = tuple(sorted((name, given[name]) for name in others))
        if constants not in self._made:
            self._made[constants] = self._make(dict(constants))
        names = _numbers(given)
        grid, block = (tuple(_number(one, names) for one in some) for some in (self.grid, self.block))
        shared = _number(self.shared, names)
        self._launch(self._made[constants], [given[name] for name in self.arguments], grid, block, shared)

    @abstractmethod
    def _make(self, constants: Mapping[str, Any]) -> Any:
        """The kernel with those constants."""

    @abstractmethod
    def _launch(self, made: Any, arguments: Any, grid: Any, block: Any, shared: int) -> None:
        """Launch what ``_make`` gave."""

    @cached_property
    def _words(self) -> frozenset[str]:
        """The names in the launch."""
        texts = [str(one) for one in (*self.grid, *self.block, self.shared)]
        return frozenset().union(*(Expression(text).names for text in texts))

    @cached_property
    def _made(self) -> dict[Any, Any]:
        """Kernels by their constants."""
        return {}


@dataclass(frozen=True, kw_only=True)
class _CupyRaw(LibraryLaunch):
    code: str
    name: str
    options: tuple[str, ...]
    backend: str

    def _make(self, constants: Mapping[str, Any]) -> Any:
        options = (*self.options, *(f"-D{name}={_macro(value)}" for name, value in constants.items()))
        return import_module("cupy").RawKernel(self.code, self.name, options=options, backend=self.backend)

    def _launch(self, made: Any, arguments: Any, grid: Any, block: Any, shared: int) -> None:
        made(grid, block, tuple(arguments), shared_mem=shared)


@dataclass(frozen=True, kw_only=True)
class _CupyElementwise(LibraryLaunch):
    inputs: str
    outputs: str
    operation: str
    preamble: str

    def _make(self, constants: Mapping[str, Any]) -> Any:
        preamble = "".join(f"#define {name} {_macro(value)}\n" for name, value in constants.items())
        given = (self.inputs, self.outputs, self.operation, self.__name__)
        return import_module("cupy").ElementwiseKernel(*given, preamble=preamble + self.preamble)

    def _launch(self, made: Any, arguments: Any, grid: Any, block: Any, shared: int) -> None:  # noqa: ARG002
        made(*arguments, **({"size": grid[0]} if grid else {}), block_size=block[0])


_NUMBA_OPTIONS = ("fastmath", "max_registers", "opt", "debug", "lineinfo")


@dataclass(frozen=True, kw_only=True)
class _Numba(LibraryLaunch):
    kernel: Importable

    def _make(self, constants: Mapping[str, Any]) -> Any:
        kernel = self.kernel.find()
        given = getattr(kernel, "targetoptions", {})
        options = {name: given[name] for name in _NUMBA_OPTIONS if given.get(name) is not None}
        jit = import_module("numba.cuda").jit
        return jit(**options)(_with_globals(kernel.py_func, constants)) if constants else kernel

    def _launch(self, made: Any, arguments: Any, grid: Any, block: Any, shared: int) -> None:
        made[grid, block, 0, shared](*arguments)


@dataclass(frozen=True, kw_only=True)
class _Warp(LibraryLaunch):
    kernel: Importable

    def _make(self, constants: Mapping[str, Any]) -> Any:
        found, kernel = self.kernel.find(), import_module("warp").kernel
        return kernel(_with_globals(found.func, constants), module="unique") if constants else found

    def _launch(self, made: Any, arguments: Any, grid: Any, block: Any, shared: int) -> None:  # noqa: ARG002
        warp = import_module("warp")
        place = getattr(arguments[0], "device", None)
        size = {"block_dim": block[0]} if block else {}
        warp.launch(made, dim=grid, inputs=arguments, device=place, **size)
        if place is not None and not place.is_cuda:
            warp.synchronize_device(place)


# -- from the libraries' kernels -------------------------------------------------------------------------------


def cupy_raw(
    kernel: Any, arguments: Sequence[str], grid: Extents, block: Extents, shared_mem: Extent = 0, name: str = ""
) -> LibraryLaunch:  # fmt: skip
    """A ``cupy.RawKernel``, or the kernel ``name`` of a ``cupy.RawModule``, with its launch.

    Args:
        kernel: is read for its source and options, and compiled again for each set of macros.
        arguments: of the kernel, in order.
        grid, block, shared_mem: as CuPy has them, numbers or expressions.
        name: the function in a RawModule.
    """
    called = name or str(getattr(kernel, "name", ""))
    if not called or not kernel.code:
        raise UsageError(
            "give a cupy.RawKernel made from text, or name= of a function in such a cupy.RawModule"
        )
    return _CupyRaw(
        arguments=tuple(arguments), grid=_to_tuple(grid), block=_to_tuple(block), shared=shared_mem, tools=("cupy",),
        digest=repr((kernel.code, called, tuple(kernel.options))), __name__=called, code=kernel.code, name=called,
        options=tuple(kernel.options), backend=getattr(kernel, "backend", "nvrtc"),
    )  # fmt: skip


def cupy_elementwise(kernel: Any, arguments: Sequence[str], size: Extent | None = None) -> LibraryLaunch:
    """A ``cupy.ElementwiseKernel``; the choice ``block_size`` is CuPy's, others are macros of its text.

    Args:
        kernel: is read for its parameters and its operation.
        arguments: inputs and outputs, in order.
        size: how many elements, where all parameters are raw.
    """
    inputs, outputs = (", ".join(map(_parameter, some)) for some in (kernel.in_params, kernel.out_params))
    told = (inputs, outputs, kernel.operation, getattr(kernel, "preamble", ""))
    return _CupyElementwise(
        arguments=tuple(arguments), grid=() if size is None else (size,), block=("block_size",), tools=("cupy",),
        digest=repr(told), __name__=str(kernel.name), inputs=inputs, outputs=outputs, operation=kernel.operation,
        preamble=told[3],
    )  # fmt: skip


def numba_kernel(
    kernel: Any, arguments: Sequence[str], grid: Extents, block: Extents, shared_mem: Extent = 0
) -> LibraryLaunch:
    """A kernel of ``numba.cuda.jit`` with its launch; choices that are no arguments are globals of its module.

    Args:
        kernel: is imported by measuring processes, from where it is defined.
        arguments: of the kernel, in order.
        grid, block, shared_mem: numbers or expressions.
    """
    given = _describe_kernel("numba", kernel.py_func, arguments)
    return _Numba(grid=_to_tuple(grid), block=_to_tuple(block), shared=shared_mem, **given)


def warp_kernel(
    kernel: Any, arguments: Sequence[str], dim: Extents, block_dim: Extent | None = None
) -> LibraryLaunch:
    """A kernel of ``warp.kernel`` with its launch, as ``numba_kernel``.

    Args:
        kernel, arguments: as of ``numba_kernel``.
        dim: of the launch; ``block_dim`` the threads of a block, Warp's own where it is not given.
    """
    block = () if block_dim is None else (block_dim,)
    return _Warp(grid=_to_tuple(dim), block=block, **_describe_kernel("warp", kernel.func, arguments))


def _describe_kernel(library: str, function: Any, arguments: Sequence[str]) -> dict[str, Any]:
    """What a kernel has that a measuring process imports."""
    return {
        "arguments": tuple(arguments), "tools": (library,), "digest": functions.digest(function),
        "__name__": function.__name__, "kernel": Importable.make(function),
    }  # fmt: skip


def _to_tuple(some: Extents) -> tuple[Extent, ...]:
    return (some,) if isinstance(some, int | str) else tuple(some)


def _numbers(given: Mapping[str, Any]) -> dict[str, Any]:
    """What an expression may read."""
    numbers: dict[str, Any] = {}
    for name, value in given.items():
        if len(getattr(value, "shape", ())):
            numbers |= {f"{name}_{axis}": int(extent) for axis, extent in enumerate(value.shape)}
        elif isinstance(value, str):
            numbers[name] = value
        elif hasattr(value, "item") or isinstance(value, int | float):
            numbers[name] = value.item() if hasattr(value, "item") else value
    return numbers


def _number(extent: Extent, names: Mapping[str, Any]) -> int:
    return extent if isinstance(extent, int) else int(Expression(extent).integer(names))


def _macro(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _parameter(one: Any) -> str:
    kind = one.ctype if one.dtype is None else import_module("numpy").dtype(one.dtype).name
    return f"{'raw ' if one.raw else ''}{kind} {one.name}"


def _with_globals(function: Any, constants: Mapping[str, Any]) -> Any:
    """The function with other globals. Raises UsageError for what is none of its own."""
    if unknown := [name for name in constants if name not in function.__globals__]:
        raise UsageError(
            f"{function.__name__} has neither an argument nor a global {unknown[0]!r}, which space= chooses: write it "
            "in the launch, or make it a constant of the kernel's module"
        )
    made = FunctionType(
        function.__code__, {**function.__globals__, **constants}, function.__name__, function.__defaults__,
        function.__closure__,
    )  # fmt: skip
    made.__annotations__, made.__module__ = function.__annotations__, function.__module__
    made.__qualname__ = function.__qualname__
    return made
