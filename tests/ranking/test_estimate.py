"""The ranking from end to end: kernels are built, traced on the cpu device, and compared."""

import pytest

from autotune.compile import KernelProfile, StaticProfile
from autotune.declaration import load_family
from autotune.files import find_bundled
from autotune.ranking import static_ranking
from autotune.ranking.forecasts import Forecast, sort_by_cycles

pytestmark = pytest.mark.tracing
TEXTS = ("packing=int32", "packing=planes2", "memory=texture", "accumulate=shared_memory")
PROFILE = KernelProfile(kernel="allpairs", block_size=128, registers=32, blocks_per_sm=16, occupancy=1.0)


@pytest.fixture(scope="module")
def found() -> dict[str, Forecast]:
    """What is expected of four configurations of allpairs, and of one that no compiler took."""
    family = load_family("allpairs")
    rows = [StaticProfile("sm_90", family.space.configuration(text), (PROFILE,)) for text in TEXTS]
    rows.append(StaticProfile("sm_90", family.space.configuration("memory=constant"), message="too large"))
    ranking = static_ranking(family, "primer", find_bundled("workloads") / "data", rows, 1)
    return dict(zip((*TEXTS, "refused"), ranking, strict=True))


def test_packed_data_are_fewer_sectors_and_come_first(found: dict[str, Forecast]) -> None:
    wide, packed = (found[text].launches[0].requests for text in TEXTS[:2])
    assert packed.sectors < wide.sectors / 8
    assert sort_by_cycles(list(found.values()))[0] is found["packing=planes2"]


def test_each_memory_is_seen(found: dict[str, Forecast]) -> None:
    plain, _, texture, shared = (found[text].launches[0].requests for text in TEXTS)
    assert (plain.texture, texture.plain) == (0, pytest.approx(plain.plain - texture.texture, abs=1))
    assert texture.texture > 4
    assert shared.shared > plain.shared


def test_what_was_not_compiled_has_a_reason_and_no_rank(found: dict[str, Forecast]) -> None:
    assert found["refused"].message == "too large"
    assert found["refused"] not in sort_by_cycles(list(found.values()))
