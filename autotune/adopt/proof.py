"""Proof, not hope: the kernel as it was and the rewritten one, run on the cpu device with the same random inputs.

Both are built so that every access of memory calls a function (the compiler's own instrumentation, made for finding
races), which writes down which byte of which array it is. With control's layouts both have to touch the same bytes
in the same order and leave the same bytes behind.
"""

import hashlib
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.adopt.arrays import Array
from autotune.adopt.declaration import Declaration
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
from autotune.processes import death, program

_FILL = "-ftrivial-auto-var-init="  # what a variable begins as that is given nothing
_TRACED = ("-O0", "-fsanitize=thread", "-nodefaultlibs", "-w")
_SECONDS = 60.0  # for all runs of an adoption
MOST_ELEMENTS = 1 << 26
ENOUGH = 0.9  # of an output, which the runs have to write
_UNSEEN = (
    "no access of its arrays was seen, so nothing was compared: either it makes none, or it stores what a function "
    "returns as a whole record, which the compiler does not show"
)
_TRACE = "autotune/trace/hooks.cpp"


@dataclass
class Budget:
    """Seconds that are left for runs."""

    left: float = _SECONDS


@dataclass
class Outcome:
    """What the runs said. ``is_proved``, or ``why`` not; ``left`` are arrays whose indices left an inner extent,
    ``beyond`` the bytes that were touched outside of an array. By array, ``written`` is the least part of a written one
    that was written in any run, ``touched`` that read or written."""

    is_proved: bool
    why: str = ""
    runs: int = 0
    accesses: int = 0
    turned: int = 0
    unseen: bool = False
    left: set[str] = field(default_factory=set)
    beyond: dict[str, tuple[int, int]] = field(default_factory=dict)
    written: dict[str, float] = field(default_factory=dict)
    touched: dict[str, float] = field(default_factory=dict)

    def reached(self, arrays: Sequence[Array]) -> dict[str, float]:
        """The part of each array that is written which the threads came to: what is read and written is touched; what
        is only written counts as reached where another array is read at the same expression, and left."""
        found = {}
        for array in arrays:
            if array.name not in self.written:
                continue
            keys = _keys(array)
            twins = [a.name for a in arrays if a.shape == array.shape and a is not array and keys & _keys(a)]
            own = self.touched[array.name] if array.is_read else self.written[array.name]
            found[array.name] = max([own, *(self.touched.get(name, 0.0) for name in twins)])
        return found


def _keys(array: Array) -> set[str]:
    return {
        str([(t.sign, sorted(f.key for f in t.factors)) for t in a.index]) for a in array.pointer.accesses
    }


@dataclass
class Proof:
    """``original`` is the text that the family's source was made from, cut alike and not rewritten."""

    declaration: Declaration
    family: Family
    original: str
    folder: Path
    budget: Budget
    told: Callable[[str], None] = lambda _: None

    def run(self, sizes: Sequence[Mapping[str, int]]) -> Outcome:
        """A run for each of ``sizes``, each with a seed of its own."""
        try:
            images = self._images()
        except (BuildError, CompilerError) as problem:
            return Outcome(False, f"the cpu device cannot take it: {_first(str(problem))}")
        outcome = Outcome(True)
        for seed, given in enumerate(sizes, 1):
            try:
                inputs = self._inputs(given, seed)
            except AutotuneError as problem:
                return replace(outcome, is_proved=False, why=f"no inputs of sizes {dict(given)}: {problem}")
            room = sum(math.prod(data.shape_for(inputs.sizes)) for data in self.family.data.values())
            if room > MOST_ELEMENTS:
                return replace(
                    outcome,
                    is_proved=False,
                    why=f"its sizes are fixed, and {room:,} elements are too many to try",
                )
            self.told(f"run {seed} of {len(sizes)}, {self.budget.left:.0f} s left")
            begun = time.monotonic()
            answer = self._one(images, inputs, seed)
            if answer["status"] in ("addresses", "values") and self._can_fill:
                images["filled"] = self._built("filled", self._before(), "pattern")
                answer = self._one(images, inputs, seed)
            self.budget.left -= time.monotonic() - begun
            _take(outcome, answer)
            if not outcome.is_proved:
                told = ", ".join(f"{name}={value}" for name, value in {**given, "seed": seed}.items())
                outcome.why += f" ({told})"
                if answer["status"] == "crashed" and self.declaration.guesses:
                    outcome.why += f"; a guess may be wrong: {', '.join(self.declaration.guesses)}"
                break
        return outcome

    # -- what is built ----------------------------------------------------------------------------------

    @cached_property
    def _variant(self) -> Variant:
        family = self.family
        return Variant.of(family, family.space.control, family.chosen_options({}))

    @property
    def _kernel(self) -> str:
        return self.declaration.function.name

    def _images(self) -> dict[str, Any]:
        command = find_compiler()
        if "ziglang" in command or Path(command[0]).stem == "zig":
            raise CompilerError("zig has functions of its own for what is traced: name g++ or clang++ in CXX")
        text = self.family.source.read_text(encoding="utf-8", errors="surrogateescape")
        rewritten = self.folder / "rewritten.cu"
        rewritten.write_text(
            f'#include "autotune/trace/checked.cuh"\n{text}', encoding="utf-8", errors="surrogateescape"
        )
        source = self._variant.source
        checked = replace(source, struct=self._checked(source.struct), kernels=(self._kernel,))
        after = replace(batch(self.family, (self._variant,)), source=rewritten, variants=(checked,))
        images: dict[str, Any] = {
            "original": self._built("original", self._before(), "zero"),
            "rewritten": self._built("rewritten", after, "pattern"),
        }
        hooks = include_dir() / _TRACE
        unit = Batch(
            hooks, (include_dir(),), (VariantSource(hooks.read_text(encoding="utf-8"), "trace", "", ()),)
        )
        unit = replace(unit, variants=(replace(unit.variants[0], key=_digest(hooks)),))
        compiled = compile_one(
            unit, RuntimeCxx(command), Cache(default_root()), "the trace does not compile: "
        )
        images["trace"] = str(compiled.image)
        return images

    def _before(self) -> Batch:
        """The kernel as it was."""
        original = self.folder / "original.cu"
        original.write_text(self.original, encoding="utf-8", errors="surrogateescape")
        plain = VariantSource("original", "Original", "", (self._kernel,), "", ((self._kernel,) * 2,), True)
        plain = replace(plain, symbols=tuple(symbol.name for symbol in self.declaration.symbols))
        options = batch(self.family, (self._variant,)).options
        return Batch(original, (include_dir(), self.family.folder), (plain,), options)

    @cached_property
    def _can_fill(self) -> bool:
        command = [*find_compiler(), f"{_FILL}zero", "-x", "c++", "-fsyntax-only", "/dev/null"]
        return program(command, seconds=_SECONDS).returncode == 0

    def _built(self, name: str, unit: Batch, fill: str) -> dict[str, str]:
        """The image of one of the kernels, in which a variable that is given nothing begins as ``fill`` says."""
        fills = (f"{_FILL}{fill}",) if self._can_fill else ()
        try:
            built = HostCxx(find_compiler(), (*_TRACED, *fills)).build(unit)
        except BuildError as problem:
            raise BuildError(f"{_which(name)} does not compile there: {_first(str(problem))}") from None
        image = self.folder / f"{name}.so"
        image.write_bytes(built.image)
        symbol = built.symbols[unit.variants[0].key][self._kernel]
        return {"image": str(image), "symbol": symbol, "kernel": self._kernel}

    def _checked(self, struct: str) -> str:
        """The policy struct with accessors that tell when an index leaves its extent."""
        for number, array in enumerate(self.declaration.arrays.all.values()):
            if array.is_accessor:
                cpp = self._variant.layouts[self.declaration.declared(array)].cpp
                name = self.declaration.declared(array)
                struct = struct.replace(
                    f"using {name} = {cpp};", f"using {name} = autotune::Checked<{cpp}, {number}>;"
                )
        return struct

    # -- one run ----------------------------------------------------------------------------------------

    def _inputs(self, sizes: Mapping[str, int], seed: int) -> Inputs:
        assert self.family.module is not None, "adopt writes a family.py"
        made = self.family.module.inputs({**sizes, "seed": seed}, Path())
        return bind(self.family, made, {}, self.declaration.numbers(sizes))

    def _one(self, images: Mapping[str, Any], inputs: Inputs, seed: int) -> dict[str, Any]:
        declaration, names = self.declaration, inputs.names(self.family.space.control)
        generator = np.random.default_rng(seed)
        contents: dict[str, NDArray[np.uint8]] = {}
        shapes: dict[str, tuple[int, ...]] = {}
        rests: dict[str, str] = {}
        for array in declaration.arrays.all.values():
            data = self.family.data[declaration.declared(array)]
            layout = self._variant.layouts[data.name]
            shape = data.shape_for(inputs.sizes)
            given = inputs.arrays.get(array.name)
            if given is None:
                content = generator.integers(0, 64, layout.room(shape).nbytes).astype(np.uint8)
            else:
                content = flat(given)
            contents[array.name], shapes[array.name] = content, tuple(shape)
            rests[array.name] = layout.room(shape).argument(0)[8:].hex() if array.is_accessor else ""
        geometry = self._variant.geometry(self.family.kernels[self._kernel], names)
        symbols = {symbol.name: f"symbol {symbol.name}" for symbol in declaration.symbols}
        request = {
            **images,
            "symbols": symbols,
            "arrays": list(contents),
            "record_bytes": {a.name: a.bytes if a.record else 0 for a in declaration.arrays.all.values()},
            "element_bytes": {a.name: a.bytes for a in declaration.arrays.all.values()},
            "written": [a.name for a in declaration.arrays.all.values() if a.is_written],
            "open": [a.name for a in declaration.arrays.all.values() if declaration.is_open(a)],
            "shapes": shapes,
            "arguments": [
                self._argument(cursor.spelling, rests, names) for cursor in declaration.function.parameters
            ],
            "grid": geometry.grid,
            "block": geometry.block,
            "shared_bytes": geometry.shared_bytes,
        }
        with tempfile.TemporaryDirectory(prefix="autotune-") as folder:
            Path(folder, "request.json").write_text(json.dumps(request), encoding="utf-8")
            contents |= {key: flat(inputs.arrays[name]) for name, key in symbols.items()}
            np.savez(Path(folder, "arrays.npz"), **contents)  # type: ignore[arg-type]
            command = [sys.executable, "-m", "autotune.adopt.trial", folder]
            try:
                done = program(command, seconds=max(1.0, self.budget.left))
            except subprocess.TimeoutExpired:
                return {"status": "late", "why": f"the runs took more than {_SECONDS:.0f} s"}
            answer = Path(folder, "answer.json")
            if not answer.is_file():
                said = death(done.returncode) if done.returncode < 0 else _last(done.stderr)
                return {"status": "crashed", "why": f"the run died: {said}"}
            found: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
            return found

    def _argument(self, name: str, rests: Mapping[str, str], names: Mapping[str, Any]) -> dict[str, str]:
        if name in rests:
            return {"array": name, "original": "", "rewritten": rests[name]}
        return {"bytes": scalar_bytes(self.family.number_type(name), names[name]).hex()}


def flat(array: NDArray[Any]) -> NDArray[np.uint8]:
    """The bytes."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _take(outcome: Outcome, answer: Mapping[str, Any]) -> None:
    outcome.runs += 1
    outcome.accesses += answer.get("events", 0)
    outcome.turned += answer.get("turned", 0)
    outcome.unseen |= answer.get("unseen", False)
    outcome.left |= set(answer.get("left", {}))
    for name, (first, last) in answer.get("beyond", {}).items():
        before = outcome.beyond.get(name, (0, 0))
        outcome.beyond[name] = (min(before[0], first), max(before[1], last))
    for mine, theirs in ((outcome.written, "written"), (outcome.touched, "touched")):
        for name, part in answer.get(theirs, {}).items():
            mine[name] = min(part, mine.get(name, 1.0))
    if answer["status"] != "same":
        outcome.is_proved = False
        told = {
            "original": "the kernel as it was does not run: ",
            "rewritten": "the rewritten kernel does not run: ",
            "addresses": "other addresses: ",
            "values": "other values: ",
            "unwritten": "",
            "crashed": "",
            "late": "",
        }
        outcome.why = told[answer["status"]] + answer["why"]
    elif not answer["compared"]:
        outcome.is_proved, outcome.why = False, _UNSEEN


def _which(name: str) -> str:
    return "the kernel as it was" if name == "original" else "the rewritten kernel"


def _first(message: str) -> str:
    """The first line of a compiler's message that tells what is wrong."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    lacking = next((line.strip("()") for line in lines if line.startswith("(the cpu device has no")), "")
    return lacking or next((line for line in lines if "error" in line), lines[0] if lines else "no message")


def _last(message: str) -> str:
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
