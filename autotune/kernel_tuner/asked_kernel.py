"""A kernel as Kernel Tuner is told of it, and what that is as a plain kernel (``autotune.Kernel``)."""

import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune import Kernel
from autotune.declaration import Parameter, signature
from autotune.errors import UsageError
from autotune.kernel_tuner.parameters import Parameters
from autotune.kernel_tuner.source_text import headers, prologue

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
    """``source`` is a text, a file's name, or a function of the parameters that gives a text; ``given`` are the
    arguments, and ``symbols`` the arrays of the source, in numpy; ``divisors`` are those of the grid in x, y and z;
    ``shared_bytes`` is a formula. Raises UsageError, FamilyError."""

    name: str
    source: Any
    given: tuple[Any, ...]
    parameters: Parameters
    problem_size: Any
    divisors: tuple[Any, Any, Any]
    block_names: tuple[str, ...]
    shared_bytes: Any
    symbols: Mapping[str, NDArray[Any]]
    options: tuple[str, ...]
    defines: Mapping[str, Any] | None

    # -- the source ---------------------------------------------------------------------------------------------

    @cached_property
    def _texts(self) -> tuple[str, dict[str, str]]:
        """The source with what goes ahead of it, and its headers."""
        if isinstance(self.source, list | tuple):
            raise UsageError(
                "a list of sources is for host code (lang='C'), which has no counterpart in autotune: tune the kernel "
                "that it calls"
            )
        if callable(self.source):
            return self._generated(self.source)
        text, folder = _text(self.source)
        folders = [folder, *(Path(option[2:]) for option in self.options if option.startswith("-I"))]
        found = headers(text, folders)
        return self._ahead("".join([text, *found.values()])) + text, found

    @property
    def needs_nvcc(self) -> bool:
        """Whether it includes what comes with nvcc, and not with the compiler as a library."""
        source, found = self._texts
        return bool(re.search(r"#\s*include\s*<(cub|thrust|cuda/std)/", "".join([source, *found.values()])))

    def _ahead(self, text: str) -> str:
        defined = {**dict.fromkeys(self.block_names, "1"), "kernel_tuner": "1"}
        if self.defines is not None:
            defined = {name: self._macro(name, value) for name, value in self.defines.items()}
        return prologue(text, defined, self.grid, list(self.parameters.values))

    def _macro(self, name: str, value: Any) -> str:
        if callable(value):
            raise UsageError(
                f"defines: {name} is a function, which has no counterpart in autotune: write it over the parameters, "
                "which are macros"
            )
        return str(value)

    def _generated(self, function: Callable[..., str]) -> tuple[str, dict[str, str]]:
        """A header for each text that the function gives, and a source that includes the one of a configuration."""
        texts: dict[str, str] = {}
        branches = []
        for chosen in self._combinations():
            text = function(dict(chosen))
            header = f"text_{hashlib.sha256(text.encode()).hexdigest()[:16]}.cuh"
            texts[header] = text
            tests = [f"{n} == {v}" for n, v in chosen.items() if len(self.parameters.values[n]) > 1]
            for test in tests:
                if not re.fullmatch(r"\w+ == -?\d+", test):
                    raise UsageError(
                        f"the source is a function, and the preprocessor cannot tell {test}: number the values of that "
                        "parameter"
                    )
            branches.append(f'if {" && ".join(tests) or "1"}\n#include "{header}"\n')
        ahead = self._ahead("".join(texts.values()))
        return f"{ahead}// __global__\n#{'#el'.join(branches)}#endif\n", texts

    def _combinations(self) -> list[dict[str, Any]]:
        values = self.parameters.values
        every = (dict(zip(values, chosen, strict=True)) for chosen in product(*values.values()))
        kept = []
        for chosen in every:
            words = self.parameters.words(chosen)
            if all(c.require.evaluate(words) for c in self.parameters.constraints):
                kept.append(chosen)
            if len(kept) > _MOST_TEXTS:
                raise UsageError(
                    f"the source is a function, and there are more than {_MOST_TEXTS:,} configurations: write what it "
                    "changes as macros, or restrict the parameters"
                )
        return kept

    @cached_property
    def _signature(self) -> tuple[Parameter, ...]:
        if callable(self.source):
            control = self.parameters.given(self.parameters.control)
            return signature(self.source(control), self.name)
        return signature(self._texts[0], self.name)

    @cached_property
    def grid(self) -> list[str]:
        return self.parameters.grid(self.problem_size, self.divisors, self.block_names)

    # -- the arguments ------------------------------------------------------------------------------------------

    def arguments(self, answer: Sequence[Any] | None = None) -> list[KernelArgument]:
        """Each with what it is for, as far as the text and the answer tell."""
        told, count = self._signature, len(self.given)
        if answer is not None and len(answer) != count:
            raise UsageError(
                f"answer has {len(answer)} items, and there are {count} arguments: None stands for an input"
            )
        if told and len(told) != count:
            names = ", ".join(one.name for one in told)
            raise UsageError(
                f"kernel {self.name} has {len(told)} parameters ({names}), and {count} arguments are given"
            )
        taken = {*self.parameters.values, *self.symbols}
        found = []
        for number, value in enumerate(self.given):
            known = told[number] if told else Parameter("", True, "input", is_certain=False)
            name = known.name or f"argument_{number}"
            right = None if answer is None else answer[number]
            role = known.role or "input"
            if not isinstance(value, np.ndarray):
                role = ""
            elif right is not None and role == "input":
                role = "inout"
            elif answer is not None and right is None and role == "output":
                role = "scratch"
            held = f"{name}_argument" if name in taken else name
            found.append(KernelArgument(held, value, role, known.is_certain or not role, right))
        return found

    def inputs(self, arguments: Sequence[KernelArgument]) -> dict[str, NDArray[Any]]:
        """The arrays that the kernel reads, by the family's names for them."""
        held = {one.name: one.flat for one in arguments if one.role in ("input", "inout")}
        return held | {_symbol(name): value.reshape(-1) for name, value in self.symbols.items()}

    def _declared(self, arguments: Sequence[KernelArgument]) -> dict[str, Any]:
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
        for name, value in self.symbols.items():
            extent = f"{_symbol(name)}_size"
            sizes[extent] = {"value": int(value.size)}
            shape = {"type": value.dtype.name, "shape": [extent]}
            symbols[_symbol(name)] = {"role": "input", **shape, "symbol": name}
        return {"arguments": taken, "symbols": symbols, "extents": sizes}

    # -- the kernel ---------------------------------------------------------------------------------------------

    def kernel(
        self, arguments: Sequence[KernelArgument], tolerance: Mapping[str, float] | None = None
    ) -> Kernel:
        source, files = self._texts
        name, template = _instance(self.name)
        parameters = self.parameters
        return Kernel(
            source,
            name,
            **self._declared(arguments),
            grid=self.grid,
            block=parameters.block(self.block_names),
            shared_bytes=parameters.text(self.shared_bytes, "shared memory"),
            template=template,
            policies=parameters.policies,
            constraints=[{"require": c.require.text, "reason": c.reason} for c in parameters.constraints],
            compile_options=[option for option in self.options if not _is_own(option)],
            tolerance=dict(tolerance or {}),
            reference=None if tolerance else "itself",
            headers=files,
        )


def kept(arguments: Sequence[KernelArgument]) -> list[KernelArgument]:
    """With every array that may be written holding before what it holds in the caller's, as in Kernel Tuner."""
    return [
        replace(one, role="inout") if one.role in ("output", "scratch") or not one.is_certain else one
        for one in arguments
    ]


def _symbol(name: str) -> str:
    return f"{name}_symbol"


def _is_own(option: str) -> bool:
    """Whether autotune says itself what the option says: where headers lie, and the language's version."""
    return option.startswith("-I") or option.lstrip("-").startswith("std=")


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
