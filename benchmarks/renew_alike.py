"""Renew the policy entries whose machine code an edit of sources left alike.

    python benchmarks/renew_alike.py BASE [POLICY.yaml ...]

Each configuration that a policy file names (winners, ties, runners-up, defaults, those kept for prediction, control)
is compiled twice with NVRTC for the file's GPU, from the tree of the commit BASE and from this one. No GPU is needed.
A stale entry for whose configurations machine code, layouts and launches are the same gets the digests of this tree;
`renewed_from` keeps those of the sweep. Where one differs, the entry stays as it is and the exit code is 1: its
workload needs a sweep.

What the family no longer has may differ. A kernel that is gone has to be named in --gone, by one who knows that no plan
of these configurations launched it. Where arguments of a kernel are gone, its code has to be the same but for the
places of the others. Policies that are gone leave the file, and so does a tie, a runner-up or a break-even with a value
that is gone; a winner, a default or a configuration kept for prediction may not.
"""

import argparse
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent.parent
DIGESTS = ("source_digest", "layouts_digest", "space_digest")
DRAWN_SIZES = 64  # at which launches are compared
INSTRUCTION = 16  # bytes
OFFSET, BANK = 0xFFFF << 38, 54  # of an instruction's constant operand: its offset's bits, its bank's first
LOADS = 0xB82, 0xAB9  # instructions that load constants: LDC, ULDC
LOADED = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 8, 6: 16}  # bytes, by the bits that tell how wide a load is
OF_32_BITS = (  # instructions whose operands are no wider: MOV, SEL, FMNMX, FSET, ISETP, IADD3, LEA, LOP3, IABS,
    0x002, 0x007, 0x009, 0x00B, 0x00C, 0x010, 0x011, 0x012, 0x013, 0x017, 0x019, 0x020, 0x021, 0x023, 0x024,
)  # fmt: skip  # IMNMX, SHF, FMUL, FADD, FFMA, IMAD
MOST = 1 << 16  # bytes of constants
PARAMETER, PARAMETERS = (
    0x17,
    0x0A,
)  # attributes of a kernel in a cubin: one of its parameters; where they all lie


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("base", help="the commit whose entries were measured")
    parser.add_argument(
        "policies", nargs="*", type=Path, default=sorted((HERE / "policies").glob("*/*.yaml"))
    )
    parser.add_argument("--gone", nargs="*", default=(), help="kernels that no plan launches any more")
    parser.add_argument("--describe", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args(words)
    if asked.describe:
        (path,) = asked.policies
        json.dump(describe(path), sys.stdout)
        return 0
    paths = [path.resolve() for path in asked.policies if stale_entries(path)]
    if not paths:
        print("no entry is stale")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder) / "before"
        subprocess.run(
            ["git", "-C", HERE, "worktree", "add", "--detach", "--quiet", before, asked.base], check=True
        )
        try:
            differing = sum(
                not renew(path, described(path, before), described(path, HERE), asked.gone) for path in paths
            )
        finally:
            subprocess.run(["git", "-C", HERE, "worktree", "remove", "--force", before], check=True)
    return 1 if differing else 0


def stale_entries(path: Path) -> dict[str, Any]:
    """The entries of a policy file whose sources changed since they were measured, by name."""
    from autotune.declaration import load_family
    from autotune.policy import read_policy_file
    from autotune.policy.acceptance import find_change

    file = read_policy_file(path)
    family = load_family(file.family)
    return {name: item for name, item in file.entries.items() if find_change(family, item)}


def renew(path: Path, then: Mapping[str, Any], now: Mapping[str, Any], gone: Sequence[str] = ()) -> bool:
    """Renew the stale entries of one policy file, of which ``describe`` gave ``then`` and ``now``. Returns whether all
    of it is accepted afterwards."""
    from autotune.policy import read_policy_file
    from autotune.policy.file import write

    file, stale = read_policy_file(path), stale_entries(path)
    measured = {digest: {getattr(item, digest) for item in stale.values()} for digest in DIGESTS}
    if any(measured[digest] != {then["digests"][digest]} for digest in DIGESTS):
        print(f"unknown   {path}: its stale entries were not measured with the sources of that commit")
        return False
    lost = [name for name in then["code"] if name not in now["code"]]
    differences = {name: difference(then["code"][name], code, gone) for name, code in now["code"].items()}
    lost += [  # a value of a policy that is gone, and no winner's
        name
        for name, what in differences.items()
        if what and name not in then["needed"] and without(name, now["policies"]) != name
    ]
    other = {name: what for name, what in differences.items() if what and name not in lost}
    other |= {name: "gone" for name in lost if name in then["needed"]}
    swept = [name for name in stale if not other.keys().isdisjoint(then["entries"][name])]
    if other:
        first = ": ".join(next(iter(other.items())))
        print(f"differs   {path}: {len(other)} of {len(then['code'])} configurations, {first}")
        print(f"          {len(swept)} of {len(stale)} entries need a sweep: {', '.join(swept)}")
    if len(swept) == len(stale):
        return False
    stale = {name: item for name, item in stale.items() if name not in swept}
    read = read_by_launches(file, now)
    today = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    entries = {
        name: replace(
            in_space(item, now["policies"], {name.split(" {")[0] for name in lost}, gone),
            **now["digests"],
            renewed=today,
            renewed_from=item.renewed_from
            or {"date": item.date, **{digest: getattr(item, digest) for digest in DIGESTS}},
        )
        for name, item in stale.items()
    }
    renewed = with_policies(replace(file, entries={**file.entries, **entries}), now["policies"])
    if renewed.prediction:
        kept = {n: replace(one, numbers=read[n]) for n, one in renewed.prediction.kept.items()}
        renewed = replace(renewed, prediction=replace(renewed.prediction, kept=kept))
    write(path, renewed)
    alike = {name: code for name, code in now["code"].items() if name not in lost and name not in other}
    moved = sum(
        any(then["code"][name]["arguments"][kernel] != places for kernel, places in code["arguments"].items())
        for name, code in alike.items()
    )
    print(
        f"renewed   {path}: {len(stale)} entries, {len(alike)} configurations alike, {moved} of them but for "
        f"where arguments lie, {len(lost)} gone"
    )
    return not swept


def read_by_launches(file: Any, now: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """By the name of each kept configuration, what of the compiled source its longest kernel's launch reads."""
    from autotune.declaration import load_family

    kernels, found = load_family(file.family).kernels, {}
    for name, one in (file.prediction.kept if file.prediction else {}).items():
        called = ",".join(f"{k}={v}" for k, v in sorted(one.configuration.items()))
        told: Mapping[str, int] = next(
            (code["numbers"] for at, code in now["code"].items() if at.split(" {")[0] == called), {}
        )
        wanted = kernels[one.kernel].names if one.kernel in kernels else ()
        found[name] = {number: value for number, value in told.items() if number in wanted}
    return found


def difference(then: Mapping[str, Any], now: Mapping[str, Any], gone: Sequence[str]) -> str:
    """How the device does something else with one configuration than it did; empty where it does the same."""
    for array, layout in now["layouts"].items():
        if then["layouts"].get(array) != layout:
            return f"layout of {array}"
    if unknown := sorted({*then["kernels"]} - {*now["kernels"]} - {*gone}):
        return f"kernel {unknown[0]} is gone"
    for kernel, code in now["kernels"].items():
        if kernel not in then["kernels"] or then["kernels"][kernel]["rest"] != code["rest"]:
            return f"kernel {kernel}"
        if then["launches"][kernel] != now["launches"][kernel]:
            return f"launch of {kernel}"
        if what := moved_arguments(then, now, kernel):
            return f"kernel {kernel}: {what}"
    return ""


def moved_arguments(then: Mapping[str, Any], now: Mapping[str, Any], kernel: str) -> str:
    """How the instructions of a kernel differ in more than the places of its arguments; empty where they do not."""
    codes = [bytes.fromhex(tree["kernels"][kernel]["code"]) for tree in (then, now)]
    places = [tree["arguments"][kernel] for tree in (then, now)]
    if places[0] == places[1]:
        return "" if codes[0] == codes[1] else "instructions"
    if len(codes[0]) != len(codes[1]) or [n for n in places[0] if n in places[1]] != list(places[1]):
        return "length or order of arguments"
    for at in range(0, len(codes[0]), INSTRUCTION):
        one, other = (int.from_bytes(code[at : at + INSTRUCTION], "little") for code in codes)
        argument, expected = argument_of(one, places[0]), argument_of(other, places[1])
        is_argument = has_constant(one) and one >> BANK & 31 == 0
        if one & ~OFFSET != other & ~OFFSET or (argument != expected if is_argument else one != other):
            return f"instruction {at // INSTRUCTION}"
    return ""


def has_constant(instruction: int) -> bool:
    """Whether it has an operand in constant memory, from sm_70 to sm_120 alike: loads of constants, and arithmetic in
    the forms that take one. The bits of its place mean something else in all others."""
    return instruction & 0xFFF in LOADS or instruction >> 9 & 7 in (0b011, 0b101)


def bytes_read(instruction: int) -> int:
    """Of its constant operand, at most: all behind it where it adds a register to the place."""
    if instruction & 0xFFF in LOADS:
        is_indexed = instruction & 0xFFF == LOADS[0] and instruction >> 24 & 0xFF != 0xFF
        return MOST if is_indexed else LOADED.get(instruction >> 73 & 7, MOST)
    return 4 if instruction & 0x1FF in OF_32_BITS else 8


def argument_of(instruction: int, places: Mapping[str, Sequence[int]]) -> list[tuple[str, int, int]]:
    """Return the arguments, or members of accessors, that a constant operand reads: the first byte of each, and its
    distance from the operand's place; no name for what is no argument."""
    offset, size = instruction >> 38 & 0xFFFF, bytes_read(instruction)
    found = [
        (name, max(0, offset - first), max(0, first - offset))
        for name, (first, length) in places.items()
        if offset < first + length and first < offset + size
    ]
    return found if offset in range(*spanned(places)) else [("", offset, 0)]


def spanned(places: Mapping[str, Sequence[int]]) -> tuple[int, int]:
    """Where the arguments begin and end."""
    return min((first for first, _ in places.values()), default=0), max(map(sum, places.values()), default=0)


def with_members(places: Mapping[str, Sequence[int]], variant: Any) -> dict[str, Sequence[int]]:
    """The places of a kernel's arguments, accessors as their members: what each is has one name in every tree, so that
    one may be without members that no instruction reads."""
    found: dict[str, Sequence[int]] = {}
    for name, (first, size) in places.items():
        if name not in variant.layouts or name in variant.family.accesses:
            found[name] = [first, size]
            continue
        layout = variant.layouts[name]
        index, known = layout.data.index_bits // 8, layout.known
        numbers = {"extents": (4, known.extents), "strides": (index, known.strides)}
        numbers["part_stride"] = index, (known.part_stride,)
        found[f"{name}.handle"], at = [first, 8], first + 8
        for member, (each, constants) in numbers.items():
            for axis, constant in enumerate(constants):
                if not constant:
                    at += -(at - first) % each
                    found[f"{name}.{member}[{axis}]"] = [at, each]
                    at += each
        if at - first + -(at - first) % 8 != size:
            raise ValueError(f"{name} has {size} bytes, and its members {at - first}")
    return found


def in_space(item: Any, policies: Sequence[str], lost: Collection[str], gone: Collection[str]) -> Any:
    """An entry without the policies that are not in ``policies``, the configurations that are ``lost``, and kernels
    that are gone."""
    ties = [without(name, policies) for name in item.tie_set if name not in lost]
    changes: dict[str, Any] = {
        "tie_set": ties,
        "needs": {k: v for k, v in item.needs.items() if k not in gone},
    }
    if item.runner_up in lost:
        changes |= {"runner_up": "", "runner_up_ms": 0.0, "runner_up_cost": 0.0}
    else:
        changes["runner_up"] = without(item.runner_up, policies)
    if item.break_even_with in lost:
        changes |= {"break_even": 0, "break_even_with": ""}
    else:
        changes["break_even_with"] = without(item.break_even_with, policies)
    values = {name: value for name, value in item.configuration.items() if name in policies}
    return replace(item, configuration=values, **changes)


def with_policies(file: Any, policies: Sequence[str]) -> Any:
    """The file whose default and kept configurations have no other policies than these."""

    def part(values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in values.items() if name in policies}

    file = replace(file, default=part(file.default))
    if not file.prediction:
        return file
    kept = {n: replace(one, configuration=part(one.configuration)) for n, one in file.prediction.kept.items()}
    return replace(file, prediction=replace(file.prediction, kept=kept))


def without(name: str, policies: Collection[str]) -> str:
    """A configuration's id, and what follows it, without what is no policy."""
    name, space, rest = name.partition(" ")
    return ",".join(pair for pair in name.split(",") if pair.partition("=")[0] in policies) + space + rest


def described(path: Path, tree: Path) -> dict[str, Any]:
    """What ``describe`` gives in another tree."""
    script = Path(__file__).resolve()
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        [sys.executable, script, "-", path, "--describe"],
        env=environment, cwd=tree, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return dict(json.loads(done.stdout))


def describe(path: Path) -> dict[str, Any]:
    """The digests of the tree that runs, and of each named configuration what the device is made to do."""
    from autotune.compile import Cache, CompileFailure, Variant, batch, compile_many
    from autotune.compile.nvrtc import Nvrtc
    from autotune.declaration import load_family
    from autotune.layout import layouts_digest
    from autotune.policy import read_policy_file

    file = read_policy_file(path)
    family = load_family(file.family)
    policies = [policy.name for policy in family.space.policies]
    variants: dict[str, Any] = {}
    needed = set()
    entries: dict[str, list[str]] = {name: [] for name in file.entries}
    for entry, options, values, is_needed in named(file):
        configuration = known(family, {name: value for name, value in values.items() if name in policies})
        name = f"{','.join(f'{k}={v}' for k, v in sorted(values.items()))} {dict(sorted(options.items()))}"
        entries[entry].append(name)
        if configuration is not None:
            variants[name] = Variant.make(family, configuration, family.choose_options(options))
        if is_needed:
            needed.add(name)
    toolchain = Nvrtc(file.device.arch)
    code: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as cache:
        found = (
            one
            for part in compile_many(
                batch(family, tuple(variants.values())),
                toolchain,
                Cache(Path(cache)),
                os.cpu_count() or 1,
                16,
            )
            for one in part
        )
        for (name, variant), compiled in zip(variants.items(), found, strict=True):
            if isinstance(compiled, CompileFailure):  # a default need not be for every option
                needed.discard(name)
                continue
            code[name] = {
                "layouts": {array: repr(arranged(layout)) for array, layout in variant.layouts.items()},
                "launches": {k.name: launches(variant, k, compiled) for k in variant.kernels.values()},
                "numbers": dict(getattr(compiled, "numbers", {})),
                **machine_code(variant, compiled),
            }
    return {
        "policies": policies,
        "needed": sorted(needed),
        "entries": entries,
        "digests": {
            "source_digest": family.source_digest,
            "layouts_digest": layouts_digest(),
            "space_digest": family.space_digest,
        },
        "code": code,
    }


def launches(variant: Any, kernel: Any, compiled: Any) -> list[Any]:
    """Blocks, threads and shared bytes of a kernel at sizes that are drawn for each name alike in every tree; an extent
    that is computed follows from those."""
    from autotune.errors import FamilyError

    fixed = {**dict(variant.options), **variant.configuration, **getattr(compiled, "numbers", {})}
    names = {name for item in (*kernel.grid, *kernel.block, kernel.shared_bytes) for name in item.names}

    def size(name: str, number: int) -> Any:
        if name in fixed:
            return fixed[name]
        if value := variant.family.extents.get(name):
            return value.integer({other: size(other, number) for other in value.names})
        return random.Random(f"{name} {number}").randint(1, 4 ** (number % 9))

    drawn = []
    for number in range(DRAWN_SIZES):
        try:
            geometry = variant.geometry(kernel, {**fixed, **{name: size(name, number) for name in names}})
            drawn.append([list(geometry.grid), list(geometry.block), geometry.shared_bytes])
        except FamilyError:
            drawn.append([])
    return drawn


def machine_code(variant: Any, compiled: Any) -> dict[str, Any]:
    """By kernel: its instructions, where its arguments lie, and a digest of what else counts."""
    from autotune.compile.same_code import _hash, _parts, _read

    module = _read(compiled.image, 0, 0)
    kernels, arguments = {}, {}
    for kernel, symbol in compiled.symbols.items():
        code, _ = module.sections[f".text.{symbol}"]
        own = f".nv.constant0.{symbol}"  # as long as the arguments
        sections = {name: content for name, content in module.sections.items() if name != own}
        reading = b"".join(
            one if has_constant(int.from_bytes(one, "little")) else bytes(INSTRUCTION)
            for one in (code[at : at + INSTRUCTION] for at in range(0, len(code), INSTRUCTION))
        )
        sections[f".text.{symbol}"] = (reading, len(reading))
        rest = _parts(replace(module, sections=sections), compiled, kernel)
        kernels[kernel] = {
            "code": code.hex(),
            "rest": _hash([part for part in rest if part is not reading]),
        }
        places = argument_places(
            module.sections[f".nv.info.{symbol}"][0], parameters(variant, variant.kernels[kernel])
        )
        arguments[kernel] = with_members(places, variant)
    return {"kernels": kernels, "arguments": arguments}


def parameters(variant: Any, kernel: Any) -> list[dict[str, tuple[int, int]]]:
    """The arguments in each parameter of a kernel, by name: all of one that is no struct (0, 0), or the offset and the
    size in bytes of each member, as the host lays them out."""
    if not getattr(kernel, "struct", ""):  # of a tree that knows none, or a parameter each
        return [{name: (0, 0)} for name in kernel.arguments]
    from autotune.layout import POINTER_BYTES, members, struct_of

    def content(name: str) -> bytes:
        if number := variant.family.number_type(name):
            return bytes(np.dtype(number).itemsize)
        if name in variant.family.accesses:
            return bytes(POINTER_BYTES)
        layout = variant.layouts[name]
        return bytes(layout.room((64,) * len(layout.data.shape)).argument(0))

    contents = [content(name) for name in kernel.arguments]
    offsets = members(contents)[1]
    laid = {name: (at, len(one)) for name, at, one in zip(kernel.arguments, offsets, contents, strict=True)}
    return [{**laid, "": (0, len(struct_of(contents)))}]


def argument_places(
    attributes: bytes, expected: Sequence[Mapping[str, tuple[int, int]]]
) -> dict[str, list[int]]:
    """Where a kernel's arguments lie in the constants of a launch: offset and size in bytes, by name. ``expected`` is
    as ``parameters`` gives it. Raises ValueError where the compiler's struct has another size."""
    places, base, at = {}, 0, 0
    while at < len(attributes):
        form, attribute, size = struct.unpack_from("<BBH", attributes, at)
        at += 4
        if form != 4:
            continue
        if attribute == PARAMETER:
            _, number, offset, kind = struct.unpack_from("<IHHI", attributes, at)
            places[number] = [offset, kind >> 18]
        elif attribute == PARAMETERS:
            _, base, _ = struct.unpack_from("<IHH", attributes, at)
        at += size
    found: dict[str, list[int]] = {}
    for number, inside in enumerate(expected):
        first, whole = base + places[number][0], places[number][1]
        if inside.get("", (0, whole))[1] != whole:
            raise ValueError(f"a struct of {whole} bytes, which the host makes of {inside[''][1]} bytes")
        found |= {name: [first + at, size or whole] for name, (at, size) in inside.items() if name}
    return found


def arranged(layout: Any) -> Any:
    """The layout without what only explains or checks values: a range decides nothing else where nothing is scaled."""
    from autotune.compile.same_code import _arrangement

    limits = {} if layout.storage else {"low": None, "high": None}
    return _arrangement(replace(layout, data=replace(layout.data, doc="", **limits)))


def known(family: Any, values: Mapping[str, Any]) -> Any:
    """The configuration of these policy values, None where the space no longer has it."""
    from autotune.policy import acceptance

    configuration, wrong = acceptance.find_configuration(family, values)
    return None if wrong else configuration


def named(file: Any) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any], bool]]:
    """By entry, options and policy values of everything that the file names for it, the control among them, and whether
    the entry cannot do without it."""
    kept = [one.configuration for one in file.prediction.kept.values()] if file.prediction else []
    for entry, item in file.entries.items():
        yield entry, item.options, item.configuration, True
        for name in (*item.tie_set, item.runner_up, item.break_even_with):
            if name:
                yield entry, item.options, dict(pair.split("=", 1) for pair in name.split(",")), False
        for values in (file.default, {}, *kept):
            yield entry, item.options, values, True


if __name__ == "__main__":
    sys.exit(main())
