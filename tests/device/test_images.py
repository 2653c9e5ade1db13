"""Images on the cpu: what is read beyond the edge and between elements is the same in every layout."""

from pathlib import Path

import edges
import numpy as np
from cpu_results import compiled, results
from edges import arrays, between, seen

from autotune.compile.variant import Variant
from autotune.declaration import family as families
from autotune.declaration.workload import bind
from autotune.device.cpu.backend import CpuBackend
from autotune.layout import Raster, Sampling

TRIED = [
    {},
    {"memory": "readonly", "axes": "columns"},
    {"memory": "constant", "seen_dims": "image"},
    {"memory": "texture"},
    {"memory": "texture", "dims": "image", "solid_dims": "image"},
    {"memory": "texture", "dims": "image", "axes": "columns", "seen_dims": "image"},
    {"memory": "texture", "dims": "image_pitched", "solid_dims": "image", "seen_dims": "image"},
]


def test_every_layout_of_an_image_gives_the_same(tmp_path: Path) -> None:
    family = families.load_family(edges.write(tmp_path / "edges"))
    given = arrays()
    names = [",".join(f"{k}={v}" for k, v in one.items()) or "control" for one in TRIED]
    variants = [Variant(family, family.space.configuration(name)) for name in names]
    with CpuBackend() as backend:
        binaries = compiled(backend, variants, len(variants), "-O0")
        made = [outputs for _, outputs in results(backend, binaries, bind(family, given, {}, {}))]
    assert len(made) == len(TRIED)
    for outputs in made:
        np.testing.assert_array_equal(outputs["seen"], seen(given))
        np.testing.assert_allclose(outputs["between"], between(given), atol=2e-6)
    exact = between(given, bits=20)  # what interpolation with 8 bits is worth
    assert 0 < np.abs(made[0]["between"] - exact).max() < 3 / 512


def test_rows_that_a_float_cannot_count_are_refused() -> None:
    """A coordinate is a float, and the centre of a texel lies between two whole numbers."""
    with CpuBackend() as backend:
        limits = backend.device.limits
    most = 2**23
    assert float(np.float32(most - 0.5)) == most - 0.5
    assert float(np.float32(most + 0.5)) != most + 0.5
    for size in ((most, most), (most, 1, most)):
        assert Raster(size, "float32", Sampling()).explain_refusal("a", limits) == ""
        longer = Raster((most + 1, *size[1:]), "float32", Sampling())
        assert longer.explain_refusal("a", limits).startswith(
            f"a: an image of {longer.size} texels passes the "
        )
