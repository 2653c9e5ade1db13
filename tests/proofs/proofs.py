"""All that is proved, as functions that raise Refuted where it is not so."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from accessors import compiled, source
from bits import (
    SPANS,
    compiled_bits,
    hilbert_is_the_hosts,
    morton_joins_bits,
    packing_is_the_hosts,
    swizzle_has_no_conflicts,
)
from claims import (
    Case,
    Refused,
    addresses,
    mapping_is_inside,
    mapping_is_one_to_one,
    parts_are_inside_and_apart,
    plane_is_one_to_one,
)
from host import host_moves_as_it_says
from ir import Module
from machine import smear_lemma
from mappings import layouts
from whole import xor_lemma

from autotune.layout.bit_packing import PACKINGS
from autotune.layout.layout import Layout


@dataclass(frozen=True)
class Proof:
    name: str
    prove: Callable[[], None]


def about_layouts(named: Sequence[tuple[str, Layout]]) -> Iterator[Proof]:
    """What is claimed of these layouts and of their compiled accessors."""
    module = compiled(source([layout for _, layout in named]))
    for number, (name, layout) in enumerate(named):
        yield Proof(name, partial(prove_layout, layout, module, number))


def prove_layout(layout: Layout, module: Module, number: int) -> None:
    """Everything of one layout, whose functions in the module have that number. Raises Refuted."""
    try:
        case = Case.of(layout)
        for claim in (mapping_is_inside, mapping_is_one_to_one, parts_are_inside_and_apart):
            with case.facts.supposing():
                claim(case)
        if layout.is_plane:
            plane_is_one_to_one(layout)
        addresses(case, module, number)
        if (
            not layout.curve or layout.curve.side or layout.mapping.curve.chosen == 1
        ):  # the host makes one of any side
            host_moves_as_it_says(layout)
    except Refused:
        return


def about_bits() -> Iterator[Proof]:
    """What is claimed of curves and packings, and of numbers in general."""
    yield Proof("x ^ y ^ y is x", xor_lemma)
    yield Proof("the smallest power of two", smear_lemma)
    module = compiled_bits()
    for packing in PACKINGS.values():
        yield Proof(f"bits of packing {packing.name}", partial(packing_is_the_hosts, module, packing))
    for groups, width in SPANS:
        conflicts = partial(swizzle_has_no_conflicts, module, groups, width)
        yield Proof(f"swizzle xor{groups}x{width} of words, no bank conflicts", conflicts)
    for rank in (2, 3):
        for bits in (32, 64):
            name = f"curve of {rank} extents, every side, {bits} bits"
            yield Proof(f"morton {name}", partial(morton_joins_bits, module, rank, bits))
            yield Proof(f"hilbert {name}", partial(hilbert_is_the_hosts, module, rank, bits))


def part(number: int, of: int) -> Iterator[Proof]:
    """Every ``of``-th proof of a layout, from ``number`` on; those of bits go with the first."""
    if number == 0:
        yield from about_bits()
    yield from about_layouts(list(layouts())[number::of])
