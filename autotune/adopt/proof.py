"""Proof, not hope: the kernel as it was and the rewritten one, run on the cpu device with the same random inputs.

Both are built so that every access of memory calls a function (the compiler's own instrumentation, made for finding
races), which writes down which byte of which array it is. With control's layouts both have to touch the same bytes
in the same order and leave the same bytes behind.
"""

import hashlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.adopt.arrays import Array
from autotune.adopt.declaration import BEFORE, Declaration
from autotune.adopt.trial import Outcome, TracedArray, TracedLaunch, serve
from autotune.compile import (
    Batch,
    BuildError,
    Cache,
    HostCxx,
    RuntimeCxx,
    Variant,
    VariantSource,
    batch,
    compile_one,
    default_root,
    find_compiler,
    scalar_bytes,
)
from autotune.declaration import Family, Inputs, bind
from autotune.errors import AutotuneError, CompilerError
from autotune.files import include_dir
from autotune.processes import Child, program

_FILL = "-ftrivial-auto-var-init="  # what a variable begins as that is given nothing
_TRACED = ("-O0", "-fsanitize=thread", "-nodefaultlibs", "-w")
_SECONDS = 60.0  # for all runs of an adoption
MOST_ELEMENTS = 1 << 26
ENOUGH = 0.9  # of an output, which the runs have to write
_UNWRITTEN = (
    "; so it is, too, where the kernel reads a variable that nothing wrote, which begins otherwise in each"
)
_TRACE = "autotune/trace/hooks.cpp"


@dataclass
class Budget:
    """Seconds that are left for runs."""

    left: float = _SECONDS


def measure_coverage(outcome: Outcome, arrays: Sequence[Array]) -> dict[str, float]:
    """The part of each array that is written which the threads came to: what is read and written is touched; what is
    only written counts as reached where another array is read at the same expression, and left."""
    coverage = {}
    for array in (a for a in arrays if a.name in outcome.written):
        keys = _keys(array)
        twins = [a.name for a in arrays if a.shape == array.shape and a is not array and keys & _keys(a)]
        own = (outcome.touched if array.is_read else outcome.written)[array.name]
        coverage[array.name] = max([own, *(outcome.touched.get(name, 0.0) for name in twins)])
    return coverage


def _keys(array: Array) -> set[str]:
    indices = (access.index for access in array.pointer.accesses)
    return {str([(t.sign, sorted(f.key for f in t.factors)) for t in index]) for index in indices}


@dataclass
class Proof:
    """``folder`` is for what is built."""

    declaration: Declaration
    family: Family
    folder: Path
    budget: Budget
    told: Callable[[str], None] = lambda _: None

    def run(self) -> Outcome:
        """A run for each of the small sizes, each with a seed of its own."""
        try:
            images = self._images()
        except (BuildError, CompilerError) as problem:
            return Outcome(False, f"the cpu device cannot run it: {_find_first_error(str(problem))}")
        outcome, sizes = Outcome(True), self.declaration.small
        for seed, given in enumerate(sizes, 1):
            try:
                inputs = self._inputs(given, seed)
            except AutotuneError as problem:
                return replace(outcome, is_proved=False, why=f"no inputs of sizes {dict(given)}: {problem}")
            room = sum(math.prod(data.shape_for(inputs.sizes)) for data in self.family.data.values())
            if room > MOST_ELEMENTS:
                why = f"its sizes are fixed, and {room:,} elements are too many to try"
                return replace(outcome, is_proved=False, why=why)
            self.told(f"run {seed} of {len(sizes)}, {self.budget.left:.0f} s left")
            begun = time.monotonic()
            run = self._run_once(images, inputs, seed)
            self.budget.left -= time.monotonic() - begun
            outcome.take(run)
            if not outcome.is_proved:
                sizes_ = ", ".join(f"{name}={value}" for name, value in {**given, "seed": seed}.items())
                outcome.why += f" ({sizes_})"
                if run.differs and self._can_fill:
                    outcome.why += _UNWRITTEN
                if run.crashed and self.declaration.guesses:
                    outcome.why += f"; a guess may be wrong: {', '.join(self.declaration.guesses)}"
                break
        return outcome

    # -- what is built ----------------------------------------------------------------------------------

    @cached_property
    def _variant(self) -> Variant:
        family = self.family
        return Variant.make(family, family.space.control, family.choose_options({}))

    @property
    def _kernel(self) -> str:
        return self.declaration.function.name

    def _images(self) -> dict[str, tuple[Path, str]]:
        command = find_compiler()
        if "ziglang" in command or Path(command[0]).stem == "zig":
            raise CompilerError("zig has functions of its own for what is traced: name g++ or clang++ in CXX")
        text = self.family.source.read_text(encoding="utf-8", errors="surrogateescape")
        rewritten = self.folder / "rewritten.cu"
        checked = f'#include "autotune/trace/outside.cuh"\n{text}'
        rewritten.write_text(checked, encoding="utf-8", errors="surrogateescape")
        source = self._variant.source
        variant = replace(source, struct=self._write_checked_policy(source.struct), kernels=(self._kernel,))
        after = replace(batch(self.family, (self._variant,)), source=rewritten, variants=(variant,))
        original = self._build("original", self._make_original(), "zero")
        return {"original": original, "rewritten": self._build("rewritten", after, "pattern")}

    @cached_property
    def _trace(self) -> str:
        """The library that writes accesses down."""
        hooks = include_dir() / _TRACE
        digest = hashlib.sha256(hooks.read_bytes() + hooks.with_name("tsan.hpp").read_bytes()).hexdigest()
        variant = VariantSource(digest, "trace", "", ())
        unit, cache = Batch(hooks, (include_dir(),), (variant,)), Cache(default_root())
        compiler = RuntimeCxx(find_compiler())
        return str(compile_one(unit, compiler, cache, "the trace does not compile: ").image)

    def _make_original(self) -> Batch:
        plain = VariantSource("original", "Original", "", (self._kernel,), "", ((self._kernel,) * 2,), True)
        plain = replace(plain, symbols=tuple(symbol.name for symbol in self.declaration.symbols))
        options = batch(self.family, (self._variant,)).options
        return Batch(self.family.folder / BEFORE, (include_dir(), self.family.folder), (plain,), options)

    @cached_property
    def _can_fill(self) -> bool:
        command = [*find_compiler(), f"{_FILL}zero", "-x", "c++", "-fsyntax-only", "/dev/null"]
        return program(command, seconds=_SECONDS).returncode == 0

    def _build(self, name: str, unit: Batch, fill: str) -> tuple[Path, str]:
        """The image of one of the kernels, in which a variable that is given nothing begins as ``fill`` says, and its
        symbol there."""
        fills = (f"{_FILL}{fill}",) if self._can_fill else ()
        try:
            built = HostCxx(find_compiler(), (*_TRACED, *fills)).build(unit)
        except BuildError as problem:
            which = "the kernel as it was" if name == "original" else "the rewritten kernel"
            raise BuildError(f"{which} does not compile there: {_find_first_error(str(problem))}") from None
        image = self.folder / f"{name}.so"
        image.write_bytes(built.image)
        return image, built.symbols[unit.variants[0].key][self._kernel]

    def _write_checked_policy(self, struct: str) -> str:
        """The policy struct with accessors that tell when an index leaves its extent."""
        for number, array in enumerate(self.declaration.arrays.all.values()):
            if array.is_accessor:
                name = self.declaration.name_array(array)
                cpp = self._variant.layouts[name].cpp
                checked = f"using {name} = autotune::Checked<{cpp}, autotune::TracedOutside<{number}>>;"
                struct = struct.replace(f"using {name} = {cpp};", checked)
        return struct

    # -- one run ----------------------------------------------------------------------------------------

    def _inputs(self, sizes: Mapping[str, int], seed: int) -> Inputs:
        assert self.family.module is not None, "adopt writes a family.py"
        made = self.family.module.inputs({**sizes, "seed": seed}, Path())
        return bind(self.family, made, {}, self.declaration.numbers(sizes))

    def _run_once(self, images: Mapping[str, tuple[Path, str]], inputs: Inputs, seed: int) -> Outcome:
        declaration, names = self.declaration, inputs.names(self.family.space.control)
        generator, arrays = np.random.default_rng(seed), dict[str, TracedArray]()
        for array in declaration.arrays.all.values():
            layout = self._variant.layouts[declaration.name_array(array)]
            shape = tuple(layout.data.shape_for(inputs.sizes))
            room, given = layout.room(shape), inputs.arrays.get(array.name)
            if given is not None and layout.data.element:  # stored in fewer bits than a canonical array has
                given = layout.apply(given).buffer
            some = (
                generator.integers(0, 64, room.nbytes).astype(np.uint8) if given is None else flatten(given)
            )
            rest, size = room.argument(0)[8:] if array.is_accessor else b"", array.element.bytes
            is_open, record = declaration.is_open(array), size if array.element.record else 0
            traced = TracedArray(some, shape, rest, size, record, array.is_written, is_open)
            arrays[array.name] = traced
        parameters = [cursor.spelling for cursor in declaration.function.parameters]
        launch = TracedLaunch(
            self._kernel, self._trace, images, arrays,
            {symbol.name: flatten(inputs.arrays[symbol.name]) for symbol in declaration.symbols},
            [n if n in arrays else scalar_bytes(self.family.number_type(n), names[n]) for n in parameters],
            self._variant.geometry(self.family.kernels[self._kernel], names),
        )  # fmt: skip
        child = Child(serve, (launch,), folder=str(self.folder), what="a run", error=CompilerError)
        try:
            if not child.poll(time.monotonic() + max(1.0, self.budget.left)):
                return Outcome(False, f"the runs took more than {_SECONDS:.0f} s")
            outcome: Outcome = child.pipe.recv()
        except (EOFError, ConnectionResetError):
            return Outcome(False, f"the run died: {child.death()}", crashed=True)
        finally:
            child.close()
        return outcome


def flatten(array: NDArray[Any]) -> NDArray[np.uint8]:
    """The bytes."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _find_first_error(message: str) -> str:
    """The first line of a compiler's message that tells what is wrong."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    lacking = next((line.strip("()") for line in lines if line.startswith("(the cpu device has no")), "")
    return lacking or next((line for line in lines if "error" in line), lines[0] if lines else "no message")
