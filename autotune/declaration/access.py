"""How a kernel's source finds what is declared: arrays by accessor, by pointer or as its own symbols; choices as
members of a struct, as macros or as template arguments; sizes as arguments."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from autotune.declaration.space import Policy
from autotune.errors import FamilyError, UnknownName
from autotune.layout import SCALAR_TYPES

ACCESSOR, POINTER, SYMBOL = "accessor", "pointer", "symbol"
POLICY = "Policy"  # the struct, as a template argument
_TYPES = {**SCALAR_TYPES, **{cpp: cpp for cpp in SCALAR_TYPES.values()}, "bool": "bool", "char": "char"}
_MOVES = ("order",)  # what moves elements and leaves addresses as they are
KEYWORDS = frozenset(  # of C++, and restrict
    re.findall(
        r"\w+",
        """
        alignas alignof and asm auto bool break case catch char class const constexpr continue decltype default delete
        do double else enum explicit export extern false float for friend goto if inline int long mutable namespace new
        noexcept not nullptr operator or private protected public register restrict return short signed sizeof static
        struct switch template this throw true try typedef typeid typename union unsigned using virtual void volatile
        while xor
        """,
    )
)
_NO_MACROS = KEYWORDS.union(
    re.findall(r"\w+", "define defined blockDim blockIdx gridDim threadIdx warpSize Policy autotune x y z w")
)


def accesses(content: Mapping[str, Any], where: str) -> dict[str, str]:
    """``access`` of every array that kernels do not find by its accessor. Raises FamilyError."""
    usual = POINTER if content.get("choices") == "macros" else ACCESSOR
    by_name = {name: value.get("access", usual) for name, value in content["data"].items()}
    for name, value in content["data"].items():
        place = f"{where}: data {name}"
        if "symbol" in value and by_name[name] != SYMBOL:
            raise FamilyError(f"{place}: symbol names an array of the source: it needs access: symbol")
        if by_name[name] == SYMBOL and value["role"] != "input":
            raise FamilyError(
                f"{place}: a symbol of the source is filled before the launch, and this is {value['role']}; only an "
                "input can have access: symbol"
            )
        for key in ("layout", "packed", "windowed", "plane", "image") if by_name[name] != ACCESSOR else ():
            if key in value:
                raise FamilyError(
                    f"{place}: {key} needs access: accessor, since a {by_name[name]} finds the elements in their own "
                    "order"
                )
    return {name: access for name, access in by_name.items() if access != ACCESSOR}


def check_policies(accesses: Mapping[str, str], policies: Sequence[Policy], where: str) -> None:
    """Raise for a layout policy of an array whose elements kernels find without it."""
    for policy in policies:
        for name in policy.data if policy.layout not in ("", *_MOVES) else ():
            if access := accesses.get(name):
                raise FamilyError(
                    f"{where}: policy {policy.name} chooses the {policy.layout} of {name}, which the kernel finds as a "
                    f"{access}: give {name} access: accessor, write `Policy::{name} {name}` in the kernel with "
                    f"{name}.load(i, …) and .store(value, i, …), or delete the policy"
                )


def symbols(content: Mapping[str, Any], accesses: Mapping[str, str]) -> dict[str, str]:
    """What the source calls the arrays that are its own, by data."""
    named = {name: content["data"][name].get("symbol", name) for name in accesses}
    return {name: symbol for name, symbol in named.items() if accesses[name] == SYMBOL}


def beginnings(
    content: Mapping[str, Any], accesses: Mapping[str, str], policies: Sequence[Policy], where: str
) -> dict[str, str]:
    """The input that an array is a copy of before the launches. Raises FamilyError where the bytes of one would not be
    those of the other."""
    data: Mapping[str, Mapping[str, Any]] = content["data"]
    begins = {name: str(value["begins_as"]) for name, value in data.items() if "begins_as" in value}
    for name, given in begins.items():
        place = f"{where}: data {name}: begins_as"
        inputs = [
            key for key, value in data.items() if value["role"] == "input" and accesses.get(key) != SYMBOL
        ]
        if given not in inputs:
            raise UnknownName("input", given, inputs, place)
        if data[name]["role"] not in ("output", "scratch"):
            raise FamilyError(f"{place} is for outputs and scratch arrays, and this is {data[name]['role']}")
        if "zero" in data[name]:
            raise FamilyError(f"{place}: it is either cleared (zero) or a copy of {given}")
        for key in ("type", "record", "fields", "shape"):
            if data[name].get(key) != data[given].get(key):
                raise FamilyError(f"{place}: {given} has another {key}; a copy has the same one")
        moved = [f"policy {p.name}" for p in policies if {name, given} & {*p.data} and p.layout not in _MOVES]
        moved += [f"layout of {one}" for one in (name, given) if "layout" in data[one]]
        if moved:
            raise FamilyError(
                f"{place}: {moved[0]} stores {name} or {given} in another way, and one is a copy of the other's "
                "bytes: remove it"
            )
    return begins


def extent_types(content: Mapping[str, Any], extents: Collection[str]) -> dict[str, str]:
    """The type of each extent where it is a kernel's argument."""
    given = content.get("extents", {})
    typed = {name: value.get("type", "int32") for name, value in given.items() if isinstance(value, Mapping)}
    return {name: typed.get(name, "int32") for name in extents}


def check_arguments(
    kernel: str, arguments: Sequence[str], accesses: Mapping[str, str], known: Collection[str], where: str
) -> None:
    """Raise for an argument that is nothing declared, or no argument at all."""
    for argument in arguments:
        if argument not in known:
            raise UnknownName("argument", argument, known, f"{where}: kernel {kernel}")
        if accesses.get(argument) == SYMBOL:
            raise FamilyError(
                f"{where}: kernel {kernel}: {argument} is a symbol of the source, which is not an argument: remove it "
                "from arguments"
            )


def check_macros(names: Collection[str], where: str) -> None:
    """Raise for a choice that cannot be a macro."""
    for name in names:
        if name in _NO_MACROS or name.startswith("__"):
            raise FamilyError(
                f"{where}: {name} cannot be a macro, which the source would read everywhere: take another name, or "
                "make it a template argument (template: in the kernel)"
            )


def check_template(
    entries: Sequence[str | int], choices: Collection[str], accessors: Collection[str], place: str
) -> tuple[str | int, ...]:
    """The entries of ``template``. Raises UnknownName."""
    for entry in entries:
        if isinstance(entry, str) and entry not in (POLICY, *choices, *accessors, *_TYPES):
            known = [*choices, *accessors, POLICY, *_TYPES]
            raise UnknownName("template argument", entry, known, place)
    return tuple(entries)


def cpp_type(entry: str) -> str:
    """The C++ type that an entry of ``template`` names."""
    return _TYPES[entry]
