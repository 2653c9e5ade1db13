"""How much a kernel computes apart from its accesses, from its PTX: each instruction counts once."""

import re
from dataclasses import dataclass

from autotune.advise.advice import ARCH
from autotune.compile import Variant, batch, ptx, static_pass
from autotune.declaration import Family
from autotune.errors import AutotuneError
from autotune.figures import format_plain

_NAMES = "fma|mad|add|sub|mul|div|sqrt|rsqrt|rcp|ex2|lg2|sin|cos|tanh"
_FLOATING = re.compile(rf"^\s*(?:@!?%p\d+\s+)?({_NAMES})\.[\w.]*f(?:16|16x2|32|64)\b", re.MULTILINE)
_MOVED = re.compile(
    r"^\s*(?:@!?%p\d+\s+)?(?:ld|st|red|atom)\.global(?:\.[a-z_:0-9]+)*?(?:\.v(\d))?\.[busf](\d+)\s",
    re.MULTILINE,
)
_MUCH = 10.0  # operations for each byte: beyond it a recent GPU computes for longer than it moves


@dataclass(frozen=True)
class Arithmetic:
    """Floating-point ``operations`` (a fused one is two) and ``nbytes`` of accesses to global memory, of the text."""

    operations: int
    nbytes: int

    @property
    def intensity(self) -> float:
        """Operations for each byte that is asked for; 0 where none is."""
        return self.operations / self.nbytes if self.nbytes else 0.0


def count_arithmetic(text: str) -> Arithmetic:
    """Of PTX."""
    operations = sum(2 if name in ("fma", "mad") else 1 for name in _FLOATING.findall(text))
    return Arithmetic(operations, sum(int(many or 1) * int(bits) // 8 for many, bits in _MOVED.findall(text)))


def describe_arithmetic(family: Family) -> str:
    """A line about the family's control; says where no CUDA compiler is here."""
    try:
        variant = Variant.make(family, family.space.control, family.choose_options({}))
        found = count_arithmetic(ptx(batch(family, (variant,)), static_pass.static_toolchain(ARCH)))
    except AutotuneError as problem:
        return f"arithmetic: not known, since no CUDA compiler took it here ({str(problem).splitlines()[0]})"
    if not found.operations:
        return "arithmetic: no floating-point operation is in the code; what it computes otherwise is not counted"
    much = "arithmetic may take longer than the accesses do" if found.intensity > _MUCH else "accesses decide"
    return (
        f"arithmetic: {found.operations} floating-point operations and {found.nbytes} bytes of accesses in the code, "
        f"each instruction counted once: {format_plain(found.intensity)} for each byte, so {much}, as far as that tells"
    )
