"""What a compiled variant really is: a digest of its machine code, equal for variants that differ in name alone.

Two policies often compile to the same instructions (a read-only load where the compiler had found one already).
Such variants are one measurement, and a policy that changed nothing can be named.
"""

import hashlib
import struct
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import Any

from autotune.compile.toolchain import Compiled
from autotune.compile.variant import Variant
from autotune.declaration import Configuration, Policy, PolicyValue
from autotune.layout import DIMENSIONS, Layout

_INSTRUCTION = 16  # bytes, on every architecture since sm_70

# Banks that a module's kernels share: __constant__ variables; addresses of variables.
_USER_CONSTANTS, _ADDRESSES = 3, 4

_LITERALS = ("$str", ".str", "__unnamed")  # how compilers call what has no name
_NO_CONTENT, _RELA, _REL = 8, 4, 9  # ELF section types
_CUDA = 190  # ELF machine


def kernel_digests(compiled: Compiled) -> dict[str, str]:
    """By kernel, sha256 over its machine code: instructions, its own constants and shared memory, registers and the
    other static figures, and what the code reaches by way of the module's tables. The names of variants and
    symbols do not count, nor what else is in the binary.

    Equal digests mean equal code; equal code in a much different module may still get two digests. Empty when the
    binary is not a cubin whose code can be distinguished (a cpu library refers to itself by distance) or is not there.
    """
    try:
        status = compiled.image.stat()
        module = _read(compiled.image, status.st_mtime_ns, status.st_size)
        return {kernel: _hash(list(_parts(module, compiled, kernel))) for kernel in compiled.symbols}
    except (OSError, ValueError, LookupError, struct.error):
        return {}


def digest(compiled: Compiled) -> str:
    """Equal for variants whose kernels all have the same machine code (see ``kernel_digests``); empty when it is
    unknown."""
    known = kernel_digests(compiled)
    return _hash([f"{kernel} {known[kernel]}".encode() for kernel in sorted(known)]) if known else ""


def compute_sameness(variant: Variant, compiled: Compiled, names: Mapping[str, Any]) -> str:
    """Equal for variants that make the device do the very same: same code, same arrangement of every array, same
    launches. ``names`` binds extents, policies, options and scalars (Inputs.names). Empty when the code is unknown.

    Of a family that drives its launches itself, plain policies always count, since its plan may look at them.
    """
    code, names = digest(compiled), {**names, **compiled.numbers}
    if not code:
        return ""
    family, plain = variant.family, hasattr(variant.family.module, "plan")
    parts, cleared = [code], family.list_cleared(names)
    parts += [
        f"{name} {_arrangement(layout)!r} {name in cleared}" for name, layout in variant.layouts.items()
    ]
    parts += [f"{kernel.name} {variant.geometry(kernel, names)}" for kernel in variant.kernels.values()]
    for policy in family.space.policies:
        value = variant.configuration[policy.name]
        moves = (policy.name, value) in family.orders
        if moves or (plain and policy.is_constant):
            parts.append(f"{policy.name}={value}")
    return _hash([part.encode() for part in parts])


def idle_policies(policies: Sequence[Policy], known: Mapping[Configuration, str]) -> tuple[str, ...]:
    """The policies that changed nothing at all. ``known`` is each configuration's ``compute_sameness``; one without
    is left out. Of an idle policy every two configurations that differ in it alone are the same, and every two
    values that were seen have two such configurations: what cannot be compared is undecided."""
    told = {configuration: same for configuration, same in known.items() if same}
    idle = []
    for policy in policies:
        beside: dict[tuple[tuple[str, PolicyValue], ...], dict[PolicyValue, str]] = defaultdict(dict)
        for configuration, same in told.items():
            others = tuple((k, v) for k, v in configuration.items() if k != policy.name)
            beside[others][configuration[policy.name]] = same
        met = {frozenset(two) for row in beside.values() for two in combinations(row, 2)}
        seen = {configuration[policy.name] for configuration in told}
        is_compared = len(seen) > 1 and all(frozenset(two) in met for two in combinations(seen, 2))
        if is_compared and all(len(set(row.values())) == 1 for row in beside.values()):
            idle.append(policy.name)
    return tuple(idle)


def _arrangement(layout: Layout) -> Layout:
    """The layout as the device's memory has it: what only chooses an instruction is in the code, not here."""
    memory = "global" if layout.memory == "readonly" else layout.memory
    dims = "2d" if layout.dims == "2d_pitched" and memory != "texture" else layout.dims
    if DIMENSIONS["dims"].goes_beyond(dims) and not layout.is_image:
        dims = "1d"
    return replace(layout, memory=memory, dims=dims)


def _hash(parts: Sequence[bytes]) -> str:
    hasher = hashlib.sha256()
    for part in parts:
        hasher.update(len(part).to_bytes(8, "little") + part)
    return hasher.hexdigest()


# -- cubins: ELF files of CUDA's machine --------------------------------------------------------------------


@dataclass(frozen=True)
class _Symbol:
    name: str
    section: str
    value: int
    size: int


@dataclass(frozen=True)
class _Module:
    """``sections`` by name: (content, size in bytes); ``relocations`` by the section they change: (offset, type,
    symbol, addend)."""

    sections: Mapping[str, tuple[bytes, int]]
    symbols: Sequence[_Symbol]
    relocations: Mapping[str, Sequence[tuple[int, int, _Symbol, int]]]

    def find_content(self, bank: int, offset: int) -> str:
        """What is at a place in a bank that the module's kernels share, or empty."""
        section = f".nv.constant{bank}"
        if bank == _ADDRESSES:
            slots = self.relocations.get(section, ())
            there = ((s, addend) for at, _, s, addend in slots if at == offset)
            return next((f"&{s.name}+{addend} {self.content(s)}" for s, addend in there), "")
        for symbol in self.symbols:
            if symbol.section == section and symbol.value <= offset < symbol.value + symbol.size:
                return f"{symbol.name}+{offset - symbol.value} {self.content(symbol)}"
        return ""

    @property
    def literals(self) -> bytes:
        """Return the text literals of all kernels. A kernel's instructions do not always show which of them it uses,
        and a compiler numbers them again in each module."""
        found = {self.content(symbol) for symbol in self.symbols if symbol.name.startswith(_LITERALS)}
        return " ".join(sorted(found)).encode()

    def content(self, symbol: _Symbol, above: tuple[_Symbol, ...] = ()) -> str:
        """A digest of the bytes that a variable begins with, and of what its pointers point to."""
        if symbol in above or not symbol.section.startswith((".nv.global", ".nv.constant")):
            return ""
        data, _ = self.sections[symbol.section]
        size = symbol.size or max(0, len(data) - symbol.value)  # a section's own symbol has no size
        parts = [data[symbol.value : symbol.value + size]]
        for at, kind, target, addend in self.relocations.get(symbol.section, ()):
            if symbol.value <= at < symbol.value + size:
                inside = self.content(target, (*above, symbol))
                parts.append(f"{at - symbol.value} {kind} {target.name} {addend} {inside}".encode())
        return _hash(parts)


def _parts(module: _Module, compiled: Compiled, kernel: str) -> Iterator[bytes]:
    """The parts of one kernel that count. Raises KeyError when the module lacks it."""
    symbol = compiled.symbols[kernel]
    code, _ = module.sections[f".text.{symbol}"]
    yield repr(sorted(compiled.figures.get(kernel, {}).items())).encode()
    yield code
    yield repr(_collect_references(module, code)).encode()
    yield module.literals
    own = [name for name in module.sections if name.endswith(f".{symbol}")]
    for name in sorted(own):
        bank = name.removesuffix(f".{symbol}")
        if bank.startswith((".nv.constant", ".nv.shared", ".nv.local")):
            content, size = module.sections[name]
            yield f"{bank} {size}".encode()
            yield content
    for offset, kind, target, addend in module.relocations.get(f".text.{symbol}", ()):
        inside = target.section.endswith(f".{symbol}")  # its own shared memory, its own labels
        place = f"{target.section.removesuffix(symbol)} {target.value}" if inside else target.name
        yield f"{offset} {kind} {place} {addend} {module.content(target)}".encode()


def _collect_references(module: _Module, code: bytes) -> list[str]:
    """Return the variables that instructions use in banks that the kernels of a module share. A variable's place
    depends on the rest of the module, so that equal instructions may use different variables.

    From sm_70 to sm_120 an instruction's constant operand is a bank (5 bits from 54) and a byte offset (16 bits from
    38). Other instructions may happen to have such bits; a name too many only makes two digests differ.
    """
    references = []
    for at in range(0, len(code) - _INSTRUCTION + 1, _INSTRUCTION):
        operands = int.from_bytes(code[at : at + 8], "little")
        bank, offset = operands >> 54 & 31, operands >> 38 & 0xFFFF
        if bank in (_USER_CONSTANTS, _ADDRESSES) and (name := module.find_content(bank, offset)):
            references.append(f"{at} {name}")
    return references


@lru_cache(maxsize=8)  # variants of a batch lie in one file, and are asked for in turn
def _read(path: Path, modified_ns: int, size: int) -> _Module:  # noqa: ARG001 - part of the memory's key
    """Raises OSError, and ValueError or struct.error for what is not a whole cubin."""
    data = path.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", data, 18)[0] != _CUDA:
        raise ValueError("not a cubin")
    (table,) = struct.unpack_from("<Q", data, 0x28)
    entry, count, names = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * entry) for i in range(count)]
    text = _text(data, headers[names][4])
    named = [text(header[0]) for header in headers]
    sections = {
        name: (b"" if header[1] == _NO_CONTENT else data[header[4] : header[4] + header[5]], header[5])
        for name, header in zip(named, headers, strict=True)
    }
    symbols = []
    if ".symtab" in sections:
        header = headers[named.index(".symtab")]
        label = _text(data, headers[header[6]][4])
        for start, _, _, section, value, length in struct.iter_unpack("<IBBHQQ", sections[".symtab"][0]):
            symbols.append(_Symbol(label(start), named[section] if section < count else "", value, length))
    relocations: dict[str, list[tuple[int, int, _Symbol, int]]] = {}
    for name, header in zip(named, headers, strict=True):
        if header[1] in (_RELA, _REL):
            layout = "<QQq" if header[1] == _RELA else "<QQ"
            for offset, info, *addend in struct.iter_unpack(layout, sections[name][0]):
                row = (offset, info & 0xFFFFFFFF, symbols[info >> 32], addend[0] if addend else 0)
                relocations.setdefault(named[header[7]], []).append(row)
    return _Module(sections, symbols, relocations)


def _text(data: bytes, start: int) -> Callable[[int], str]:
    """Names in a string table that begins at ``start``."""
    return lambda at: data[start + at : data.index(b"\0", start + at)].decode()
