"""A kernel in the arguments of Kernel Tuner's interface, and as a plain kernel (``autotune.Kernel``)."""

import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune import Kernel
from autotune.declaration import kernel_text
from autotune.device import foreign
from autotune.errors import UsageError
from autotune.kernel_tuner.parameters import BLOCK_NAMES, Parameters
from autotune.kernel_tuner.source_text import headers, own_options, prologue

_LANGUAGES = ("CUDA", "CUPY", "NVCUDA", "PYCUDA")
_MOST_TEXTS = 5000  # that a function may give, one a file


@dataclass(frozen=True)
class KernelArgument:
    """One of the kernel: ``value`` as an array or number of numpy. ``role`` is input, output, inout, scratch, or empty
    for a number; ``is_certain`` as the kernel's text tells. ``answer`` is what it holds afterwards, where that is
    known."""

    name: str
    value: Any
    role: str
    is_certain: bool = True
    answer: Any = None

    @property
    def output(self) -> str:
        """What a family calls what is written to it."""
        return f"{self.name}_after" if self.role == "inout" else self.name

    def value_after(self, outputs: Mapping[str, NDArray[Any]]) -> Any:
        """What it holds after a run with these ``outputs`` of the family."""
        written = outputs.get(self.output)
        return self.value if written is None else written.reshape(self.value.shape)

    @property
    def flat(self) -> NDArray[Any]:
        """The elements in their order in memory."""
        return np.ascontiguousarray(self.value).reshape(-1)

    @property
    def expected(self) -> NDArray[Any]:
        """What it should hold afterwards, as it was given: where nothing says so, what it held. Raises UsageError for
        another shape."""
        if self.answer is None:
            return self.flat
        right, shape = np.asarray(self.answer), self.value.shape
        if right.shape != shape and not right.size == self.value.size == 1:
            raise UsageError(
                f"answer: what is given for {self.name} has the shape {right.shape}, and the argument has {shape}"
            )
        return np.ascontiguousarray(right).reshape(-1)


@dataclass(frozen=True)
class AskedKernel:
    """In the words of ``tune_kernel``: ``source`` is a text, a file's name, or a function of the parameters that gives
    a text, ``given`` are the arguments, ``divisors`` those of the grid in x, y and z. Raises UsageError,
    FamilyError."""

    name: str
    source: Any
    problem_size: Any
    given: Sequence[Any]
    parameters: Parameters
    divisors: tuple[Any, Any, Any]
    block_size_names: Sequence[str] | None
    lang: str | None
    smem_args: Mapping[str, Any] | None
    cmem_args: Mapping[str, Any] | None
    texmem_args: Mapping[str, Any] | None
    options: Sequence[str] | None
    defines: Mapping[str, Any] | None

    def __post_init__(self) -> None:
        if self.texmem_args:
            raise UsageError(
                "texmem_args has no counterpart in autotune: texture references are gone from CUDA 12; an array in a "
                "texture is a memory policy of a family"
            )
        if self.lang is not None and self.lang.upper() not in _LANGUAGES:
            raise UsageError(
                f"lang {self.lang!r} has no counterpart in autotune, which tunes CUDA: leave it out, or say CUDA"
            )
        if unknown := [key for key in self.smem_args or {} if key != "size"]:
            raise UsageError(
                f"smem_args: {unknown[0]!r} has no counterpart in autotune: only size is supported"
            )

    @cached_property
    def _values(self) -> list[Any]:
        return [to_host(value) for value in self.given]

    @cached_property
    def _symbols(self) -> dict[str, NDArray[Any]]:
        return {name: np.atleast_1d(to_host(value)) for name, value in (self.cmem_args or {}).items()}

    @cached_property
    def _block_names(self) -> tuple[str, ...]:
        """Those given, else the usual ones in whatever case the parameters are written."""
        if self.block_size_names is None:
            cased = {name.lower(): name for name in self.parameters.values}
            return tuple(cased.get(name, name) for name in BLOCK_NAMES)
        return (*self.block_size_names, *BLOCK_NAMES[len(self.block_size_names) :])[:3]

    @cached_property
    def _texts(self) -> tuple[str, dict[str, str]]:
        """The source with what goes ahead of it, and its headers."""
        if isinstance(self.source, list | tuple):
            raise UsageError(
                "a list of sources is for host code (lang='C'), which has no counterpart in autotune: tune the kernel "
                "that it calls"
            )
        if callable(self.source):
            return self._generate(self.source)
        text, folder = _text(self.source)
        folders = [folder, *(Path(option[2:]) for option in self.options or () if option.startswith("-I"))]
        found = headers(text, folders)
        return self._write_prelude("".join([text, *found.values()])) + text, found

    @property
    def needs_nvcc(self) -> bool:
        """Whether it includes what comes with nvcc, and not with the compiler as a library."""
        source, found = self._texts
        return bool(re.search(r"#\s*include\s*<(cub|thrust|cuda/std)/", "".join([source, *found.values()])))

    def _write_prelude(self, text: str) -> str:
        defined = {**dict.fromkeys(self._block_names, "1"), "kernel_tuner": "1"}
        if self.defines is not None:
            defined = {name: str(value) for name, value in self.defines.items()}
            if functions := [name for name, value in self.defines.items() if callable(value)]:
                raise UsageError(
                    f"defines: {functions[0]} is a function, which has no counterpart in autotune: write it over the "
                    "parameters, which are macros"
                )
        return prologue(text, defined, self._grid, list(self.parameters.values))

    def _generate(self, function: Callable[..., str]) -> tuple[str, dict[str, str]]:
        """A header for each text that the function gives, and a source that includes the one of a configuration."""
        texts: dict[str, str] = {}
        branches = []
        values = self.parameters.values
        for configuration in islice(self.parameters.space.walk(), _MOST_TEXTS + 1):
            chosen = self.parameters.get_given(configuration)
            text = function(dict(chosen))
            header = f"text_{hashlib.sha256(text.encode()).hexdigest()[:16]}.cuh"
            texts[header] = text
            tests = [f"{name} == {value}" for name, value in chosen.items() if len(values[name]) > 1]
            if unknown := [test for test in tests if not re.fullmatch(r"\w+ == -?\d+", test)]:
                raise UsageError(
                    f"the source is a function, and the preprocessor cannot tell {unknown[0]}: number the values of "
                    "that parameter"
                )
            branches.append(f'if {" && ".join(tests) or "1"}\n#include "{header}"\n')
        if len(branches) > _MOST_TEXTS:
            raise UsageError(
                f"the source is a function, and there are more than {_MOST_TEXTS:,} configurations: write what it "
                "changes as macros, or restrict the parameters"
            )
        ahead = self._write_prelude("".join(texts.values()))
        return f"{ahead}// __global__\n#{'#el'.join(branches)}#endif\n", texts

    @cached_property
    def _signature(self) -> tuple[kernel_text.Parameter, ...]:
        text = self._texts[0]
        if callable(self.source):
            text = self.source(self.parameters.get_given(self.parameters.control))
        return kernel_text.signature(text, self.name)

    @cached_property
    def _grid(self) -> list[str]:
        return self.parameters.grid(self.problem_size, self.divisors, self._block_names)

    def arguments(self, answer: Sequence[Any] | None = None) -> list[KernelArgument]:
        """Each with what it is for, as far as the text and the answer tell."""
        told, count = self._signature, len(self._values)
        if answer is not None and len(answer) != count:
            raise UsageError(
                f"answer has {len(answer)} items, and there are {count} arguments: None stands for an input"
            )
        if told and len(told) != count:
            names = ", ".join(one.name for one in told)
            raise UsageError(
                f"kernel {self.name} has {len(told)} parameters ({names}), and {count} arguments are given"
            )
        taken = {*self.parameters.values, *self._symbols}
        arguments = []
        for number, value in enumerate(self._values):
            known = told[number] if told else kernel_text.Parameter("", True, "input", is_certain=False)
            name = known.name or f"argument_{number}"
            right = None if answer is None else answer[number]
            right = right if right is None or np.isscalar(right) else to_host(right)
            role = known.role or "input"
            if not isinstance(value, np.ndarray):
                role = ""
            elif right is not None and role == "input":
                role = "inout"
            elif answer is not None and right is None and role == "output":
                role = "scratch"
            held = f"{name}_argument" if name in taken else name
            arguments.append(KernelArgument(held, value, role, known.is_certain or not role, right))
        return arguments

    def inputs(self, arguments: Sequence[KernelArgument]) -> dict[str, NDArray[Any]]:
        """The arrays that the kernel reads, by the family's names for them."""
        held = {one.name: one.flat for one in arguments if one.role in ("input", "inout")}
        return held | {_symbol(name): value.reshape(-1) for name, value in self._symbols.items()}

    def _declare(self, arguments: Sequence[KernelArgument]) -> dict[str, Any]:
        """``arguments``, ``symbols`` and ``extents`` in the words of ``autotune.Kernel``."""
        taken: dict[str, Any] = {}
        sizes: dict[str, Any] = {}
        for one in arguments:
            taken[one.name] = one.value
            if one.role:
                extent = f"{one.name}_size"
                sizes[extent] = {"value": int(one.value.size)}
                taken[one.name] = {"role": one.role, "type": one.value.dtype.name, "shape": [extent]}
        symbols = {}
        for name, value in self._symbols.items():
            extent = f"{_symbol(name)}_size"
            sizes[extent] = {"value": int(value.size)}
            shape = {"type": value.dtype.name, "shape": [extent]}
            symbols[_symbol(name)] = {"role": "input", **shape, "symbol": name}
        return {"arguments": taken, "symbols": symbols, "extents": sizes}

    def kernel(
        self, arguments: Sequence[KernelArgument], tolerance: Mapping[str, float] | None = None
    ) -> Kernel:
        source, files = self._texts
        name, template = _instance(self.name)
        parameters = self.parameters
        shared_bytes = parameters.text((self.smem_args or {}).get("size", 0), "shared memory")
        return Kernel(
            source, name, **self._declare(arguments), **parameters.declared, grid=self._grid,
            block=parameters.block(self._block_names), shared_bytes=shared_bytes, template=template,
            compile_options=own_options(self.options or ()), tolerance=dict(tolerance or {}),
            reference=None if tolerance else "itself", headers=files,
        )  # fmt: skip


def keep_contents(arguments: Sequence[KernelArgument]) -> list[KernelArgument]:
    """With every array that may be written holding before what it holds in the caller's, as in Kernel Tuner."""
    return [
        replace(one, role="inout") if one.role in ("output", "scratch") or not one.is_certain else one
        for one in arguments
    ]


def _symbol(name: str) -> str:
    return f"{name}_symbol"


def _text(source: Any) -> tuple[str, Path]:
    """The text, and the folder in which its headers lie. By Kernel Tuner's rule a text is a file's name where it looks
    like one."""
    if isinstance(source, str) and any(character in source for character in "\n();{}"):
        return source, Path()
    path = Path(source)
    if not path.is_file():
        raise UsageError(f"kernel source {os.fspath(source)!r} is no file, and no kernel's text")
    return path.read_text(encoding="utf-8"), path.parent


def _instance(name: str) -> tuple[str, list[str | int]]:
    """``sum<block_size_x, float>``: the template and what it is instantiated with."""
    plain, _, rest = name.partition("<")
    entries = [entry.strip() for entry in rest.rstrip("> ").split(",") if entry.strip()]
    return plain.strip(), [int(entry) if entry.lstrip("-").isdecimal() else entry for entry in entries]


def to_host(value: Any) -> Any:
    """An array or number of numpy. Raises UsageError."""
    if isinstance(value, np.ndarray | np.generic):
        return value
    if hasattr(value, "__cuda_array_interface__") or hasattr(value, "__dlpack__"):
        seen = foreign.view(value)
        return np.asarray(foreign.to_host(value) if seen is None else seen.to_host())
    if isinstance(value, bool | int | float):
        raise UsageError(f"argument {value!r} has no type: give numpy.int32({value!r}) or the like")
    raise UsageError(
        f"an argument is a {type(value).__name__}, which has no counterpart in autotune: give arrays and numbers of "
        "numpy, torch or cupy"
    )
