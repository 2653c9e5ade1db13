"""Every public header of the layout library in one translation unit, first to last and last to first."""

from pathlib import Path

import pytest

from autotune.compile import Batch, HostCxx, Nvcc, Nvrtc, VariantSource, find_compiler
from autotune.files import include_dir

HEADERS = sorted(path.name for path in (include_dir() / "autotune").glob("*.cuh"))
KERNEL = """
template <class Policy>
__global__ void places(unsigned* out) {
  const autotune::Place place = autotune::in_triangle(out[0]);
  const autotune::detail::MultiIndex<2> index{{place.row, place.column}};
  out[1] = index.at[0] + index.at[1];
}
"""
TOOLCHAINS = {
    "host": lambda: HostCxx(find_compiler("")),
    "nvcc": lambda: Nvcc("sm_90"),
    "nvrtc": lambda: Nvrtc("sm_90"),
}


@pytest.mark.parametrize("is_reversed", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize(
    "compiler",
    ["host", pytest.param("nvcc", marks=pytest.mark.nvcc), pytest.param("nvrtc", marks=pytest.mark.nvrtc)],
)
def test_all_headers_can_be_included_together(compiler: str, is_reversed: bool, tmp_path: Path) -> None:
    assert len(HEADERS) >= 20
    order = HEADERS[::-1] if is_reversed else HEADERS
    source = tmp_path / "together.cu"
    source.write_text("".join(f'#include "autotune/{name}"\n' for name in order) + KERNEL)
    variant = VariantSource("together", "Together", "struct Together {};\n", ("places",))
    built = TOOLCHAINS[compiler]().build(Batch(source, (include_dir(),), (variant,)))
    assert set(built.symbols["together"]) == {"places"}
