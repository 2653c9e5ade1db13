"""Kernels of Triton that tests tune; its interpreter runs them without a GPU (TRITON_INTERPRET=1)."""

import triton
import triton.language as tl

from autotune.callables.triton import autotune

CONFIGS = [triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128}, num_warps=8)]


@triton.jit
def stored(pointer, offsets, values, mask):  # type: ignore[no-untyped-def]
    tl.store(pointer + offsets, values, mask=mask)


@autotune(configs=CONFIGS, key=["n"], progress=False)
@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    stored(out, offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask), mask)


@autotune(
    configs=[triton.Config({"BLOCK": 64, "HOW": how}) for how in (0, 1, 2)],
    key=["n"],
    restore_value=["x"],
    progress=False,
    trial_seconds=60,
)
@triton.jit
def doubled(x, n, BLOCK: tl.constexpr, HOW: tl.constexpr):  # type: ignore[no-untyped-def]
    """x *= 2 in place; one configuration is wrong, and one does not compile."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    pointers = x + offsets
    if HOW == 2:
        tl.static_assert(BLOCK > 64, "no such block")
    tl.store(pointers, tl.load(pointers, mask=offsets < n) * (3 if HOW == 1 else 2), mask=offsets < n)


@triton.heuristics({"EVEN": lambda given: given["columns"] % 2 == 0})
@autotune(configs=CONFIGS, key=["columns"], reset_to_zero=["sums"], progress=False)
@triton.heuristics({"WIDE": lambda given: given["BLOCK"] > given["columns"]})
@triton.jit
def row_sums(x, sums, stride, columns, EVEN: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    part = tl.load(x + row * stride + offsets, mask=offsets < columns, other=0.0)
    tl.atomic_add(sums + row, tl.sum(part))
