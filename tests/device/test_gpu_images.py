"""Images on a real CUDA device: textures with rows of their own and surfaces, from the host and from the GPU."""

from pathlib import Path

import edges
import numpy as np
import pytest
from edges import arrays, between, seen

import autotune
from autotune.compile.cache import Cache, default_root
from autotune.declaration import family as families
from autotune.declaration.workload import bind
from autotune.device.resident import run_each

pytestmark = pytest.mark.gpu

# Of a volume of random numbers in 0..1: hardware may round each of three coordinates to the next weight of 1/256.
_APART = 3 / 256


def test_every_configuration_gives_what_numpy_gives(tmp_path: Path) -> None:
    from autotune.device.cuda.backend import CudaBackend

    family = families.load_family(edges.write(tmp_path / "edges"))
    given = arrays(height=19, width=33, depth=5, points=20000)
    configurations = list(family.space.configurations())
    assert len(configurations) == 36
    with CudaBackend(0) as backend:
        made = run_each(family, configurations, bind(family, given, {}, {}), backend, Cache(default_root()))
        for configuration, outputs in zip(configurations, made, strict=True):
            np.testing.assert_array_equal(outputs["seen"], seen(given), err_msg=configuration.id)
            np.testing.assert_allclose(
                outputs["between"], between(given), atol=_APART, err_msg=configuration.id
            )


@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_arrays_on_the_gpu_become_images_and_come_from_surfaces(library: str, tmp_path: Path) -> None:
    module = pytest.importorskip(library)
    folder = edges.write(tmp_path / "edges")
    text = (folder / "family.yaml").read_text()
    for before, after in (
        ("default: global", "default: texture"),
        ("image_pitched], default: 1d", "image_pitched], default: image"),
        ("[1d, image], default: 1d", "[1d, image], default: image"),
    ):
        assert before in text
        text = text.replace(before, after)
    (folder / "family.yaml").write_text(text)
    with pytest.warns(UserWarning, match="no usable policy file"):
        kernel = autotune.load(folder, device="cuda")
    with kernel:
        for seed in (1, 2):
            given = arrays(points=100 * seed)
            given["clamped"] = np.roll(given["clamped"], seed)
            lent = {
                name: array if array.dtype.names or array.dtype == np.uint16
                else module.asarray(array) if library == "cupy" else module.from_numpy(array).cuda()
                for name, array in given.items()
            }  # fmt: skip
            outputs = kernel(**lent)
            found = {
                name: np.asarray(out.get() if hasattr(out, "get") else out.cpu())
                for name, out in outputs.items()
            }
            np.testing.assert_array_equal(found["seen"], seen(given))
            np.testing.assert_allclose(found["between"], between(given), atol=_APART)
