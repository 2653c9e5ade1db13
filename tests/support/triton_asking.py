"""A kernel of Triton whose module asks for the device while it is imported, as Triton's attention tutorial does."""

import torch
import triton
import triton.language as tl

from autotune.callables.triton import autotune

DEVICE = triton.runtime.driver.active.get_active_torch_device()
CAPABILITY = torch.cuda.get_device_capability()


@autotune(configs=[triton.Config({"BLOCK": block}) for block in (64, 128)], key=["n"], progress=False)
@triton.jit
def halved(x, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + offsets, tl.load(x + offsets, mask=offsets < n) / 2, mask=offsets < n)
