"""Kernels of Warp that tests tune on its cpu device."""

import warp as wp

STEPS = 2


@wp.kernel
def lengths(points: wp.array(dtype=wp.vec3), out: wp.array(dtype=wp.float32)):  # type: ignore[no-untyped-def, valid-type]
    """A constant of this module is how often it is done."""
    i = wp.tid()
    total = wp.float32(0.0)
    for _ in range(STEPS):
        total += wp.length(points[i])
    out[i] = total / wp.float32(STEPS)
