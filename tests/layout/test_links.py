"""Links of host arrays: one that leaves its extent and is no null is rejected before anything runs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import FAMILY, write_family

import autotune
from autotune.declaration import family as families
from autotune.declaration.workload import bind
from autotune.errors import FamilyError, WorkloadError
from autotune.layout.arrays import Data, Field, check_links

NONE = 0xFFFFFFFF
pytestmark = pytest.mark.filterwarnings("ignore:no usable policy file")
LOOKUP = Path(__file__).parents[2] / "examples" / "lookup"


def linked(kind: str, null: int | None = None) -> Data:
    return Data(name="next", role="input", fields=(Field("", kind, "node", null),), shape=("node",))


@pytest.mark.parametrize(
    ("kind", "null", "link"),
    [
        ("uint32", None, NONE),
        ("int32", None, -1),
        ("int32", None, -7),
        ("uint8", None, 255),
        ("int32", 9, 9),
        ("uint32", 4, 4),
    ],
)
def test_a_null_is_a_link_to_nothing(kind: str, null: int | None, link: int) -> None:
    check_links(linked(kind, null), np.array([0, link, 3], kind), {"node": 4})


@pytest.mark.parametrize(
    ("kind", "null", "link"),
    [
        ("uint32", None, 4),
        ("int32", None, 4),
        ("int32", None, 10**9),
        ("int32", 9, -1),
        ("uint32", 4, NONE),
    ],
)
def test_any_other_number_outside_of_the_extent_is_refused(kind: str, null: int | None, link: int) -> None:
    with pytest.raises(
        WorkloadError, match=f"next: link {link} is outside of extent node, which has 4: 0..3"
    ):
        check_links(linked(kind, null), np.array([0, link, 3], kind), {"node": 4})


def test_an_extent_that_is_not_known_yet_is_not_checked() -> None:
    check_links(linked("uint32"), np.array([9], np.uint32), {"other": 4})


def table() -> dict[str, Any]:
    made: Any = families.load_family(str(LOOKUP)).module
    keys = np.arange(8, dtype=np.uint32)
    return {**made.table(keys, keys), "queries": keys}


def test_a_link_of_a_record_that_leads_nowhere_is_refused_by_a_sweep_and_by_a_call() -> None:
    given = table()
    bind(families.load_family(str(LOOKUP)), given, {}, {})
    broken = {**given, "children": given["children"].copy()}
    broken["children"]["larger"][2] = 10**9
    said = "children.larger: link 1000000000 is outside of extent slot"
    with pytest.raises(WorkloadError, match=said):
        bind(families.load_family(str(LOOKUP)), broken, {}, {})
    with autotune.load(LOOKUP, device="cpu") as kernel:
        for call in (kernel, kernel.bind, kernel.prepare):
            with pytest.raises(WorkloadError, match=said):
                call(**broken)
        kept = {name: array for name, array in broken.items() if name != "queries"}
        with pytest.raises(WorkloadError, match=said):
            kernel.prepare(**kept)


def test_what_was_prepared_is_checked_when_the_extent_comes_with_a_call() -> None:
    given = table()
    root = np.array([10**6], np.uint32)
    with autotune.load(LOOKUP, device="cpu") as kernel:
        handle = kernel.prepare(root=root)
        with pytest.raises(WorkloadError, match="root: link 1000000 is outside of extent slot, which has 8"):
            handle(**{name: array for name, array in given.items() if name != "root"})


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ("{role: input, type: int32, none: -1, shape: [n]}", "`none` is for links"),
        ("{role: input, type: float32, link: n, shape: [n]}", "a link is a whole number"),
        (
            "{role: input, type: uint8, link: n, none: -1, shape: [n]}",
            "none -1 is outside the range of uint8",
        ),
    ],
)
def test_a_null_that_cannot_be_is_refused(tmp_path: Path, declared: str, said: str) -> None:
    folder = write_family(
        tmp_path, FAMILY.replace("x: {role: input, type: float32, shape: [n]}", f"x: {declared}")
    )
    with pytest.raises(FamilyError, match=said):
        families.load_family(folder)
