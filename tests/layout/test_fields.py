"""Groups of a record's fields: addresses by hand, every grouping, what is rejected."""

import numpy as np
import pytest
from layouts import record

from autotune.errors import FamilyError, UnknownName
from autotune.layout.fields import FieldGroups, check_groups, names_of
from autotune.layout.layout import Layout
from autotune.layout.order import find_gaps

XYZM = [("x", 4), ("y", 4), ("z", 4), ("mass", 4)]


def test_hot_and_cold_by_hand() -> None:
    """Three elements of 4 floats: f0, f1 and f2 of each side by side, then f3 behind a multiple of 16 bytes."""
    layout = Layout(data=record(*["float32"] * 4), records="f0+f1+f2-f3")
    room = layout.room((3,))
    assert (room.texel_bytes, room.part_stride, room.nbytes) == (4, 4, 64)
    found = [[layout.compute_address(element, part, 4) for part in range(4)] for element in range(3)]
    assert found == [[0, 1, 2, 12], [3, 4, 5, 13], [6, 7, 8, 14]]
    array = np.arange(12, dtype=np.float32).view(layout.data.dtype)
    stored = layout.apply(array).buffer
    assert stored is not None
    assert stored.view(np.float32).tolist() == [0, 1, 2, 4, 5, 6, 8, 9, 10, 0, 0, 0, 3, 7, 11, 0]
    assert find_gaps([layout], (3,)) == ((36, 48), (60, 64))


@pytest.mark.parametrize(
    ("types", "records", "texel", "groups"),
    [
        (["float32"] * 8, "f0+f1+f2+f3-f4+f5+f6+f7", 16, ((0,), (1,))),
        (["float32"] * 4, "f2+f3-f0+f1", 8, ((1,), (0,))),
        (["float32"] * 4, "f3+f2-f0+f1", 4, ((3, 2), (0, 1))),
        (["float64", "float32", "float32"], "f0-f1+f2", 8, ((0,), (1,))),
        (["float64", "float32", "float32"], "f0+f2-f1", 4, ((0, 1, 3), (2,))),
        (["int8", "int8", "int16"], "f0+f1-f2", 2, ((0,), (1,))),
    ],
)
def test_the_texel_is_as_wide_as_all_fields_allow(
    types: list[str], records: str, texel: int, groups: tuple[tuple[int, ...], ...]
) -> None:
    layout = Layout(data=record(*types), records=records)
    assert layout.field_groups == FieldGroups(texel, groups)
    assert layout.texel_bytes == texel


@pytest.mark.parametrize(
    ("value", "error", "said"),
    [
        ("x+y-w", UnknownName, "unknown field 'w' in here: records x\\+y-w"),
        ("x+y-z", FamilyError, "field mass is in no group; each of x, y, z, mass .* as in x\\+y\\+z-mass"),
        ("x+y-z+mass+x", FamilyError, "field x is in it more than once"),
        ("x+y+z+mass", FamilyError, "all fields in one group are aos"),
    ],
)  # fmt: skip
def test_what_groups_no_fields_is_refused(value: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        check_groups(value, [name for name, _ in XYZM], "here")


def test_other_words_name_no_groups() -> None:
    assert [names_of(value) for value in ("aos", "soa", "aosoa32", "x", "x+", "x--y", "aosoa-1")] == [[]] * 7
    assert names_of("x_0+y-z") == [["x_0", "y"], ["z"]]
