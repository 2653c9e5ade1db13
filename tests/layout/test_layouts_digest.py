"""The hash of what layouts do: the same for code that stores alike, another for any layout that stores otherwise."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from autotune.files import find_bundled
from autotune.layout import bit_packing as packing
from autotune.layout import digest as layouts_digest
from autotune.layout import layout, order
from autotune.policy.file import read_policy_file as read


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    layouts_digest.layouts_digest.cache_clear()
    yield
    layouts_digest.layouts_digest.cache_clear()


def digest() -> str:
    layouts_digest.layouts_digest.cache_clear()
    return layouts_digest.layouts_digest()


def test_the_same_twice() -> None:
    assert digest() == digest()


def wrapped(changed: Callable[[Any], Any], function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given, **named: changed(function(*given, **named))


@pytest.mark.parametrize(
    ("owner", "name", "changed"),
    [
        (packing.Packing, "pack", lambda words: words ^ np.uint32(1)),
        (layout.Layout, "grid", lambda grid: replace(grid, strides=tuple(s + 1 for s in grid.strides))),
        (layout.Layout, "plane", lambda buffer: buffer[::-1].copy()),
        (layouts_digest, "reorder", lambda array: array[::-1]),
        (layouts_digest, "merge", lambda stored: [replace(s, buffer=s.buffer[::-1].copy()) for s in stored]),
        (layout.Stored, "argument", lambda accessor: accessor + b"x"),
        (layouts_digest, "view_room", lambda stored: replace(stored, nbytes=stored.nbytes + 8)),
    ],
)
def test_another_where_a_step_stores_otherwise(
    owner: Any, name: str, changed: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = digest()
    monkeypatch.setattr(owner, name, wrapped(changed, getattr(owner, name)))
    assert digest() != before


def test_the_same_for_other_code_that_stores_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest()
    monkeypatch.setattr(order, "_take", lambda array, places, axis: array.take(places, axis=axis))
    monkeypatch.setattr(order, "_PART", 2)
    assert digest() == before


def test_the_policy_file_that_ships_was_measured_with_these_layouts() -> None:
    """A change of what a layout does needs a new measurement."""
    shipped = read(find_bundled("policies") / "mummergpu" / "nvidia-h200.yaml")
    assert {entry.layouts_digest for entry in shipped.entries.values()} == {digest()}
