"""The page of pictures has every layout."""

import importlib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def pictures(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("layout_pictures")


def test_every_layout_has_a_picture(pictures: Any) -> None:
    rows = (ROOT / "docs" / "layouts.md").read_text(encoding="utf-8").partition("| layout | values |")[2]
    titles = " ".join(picture.title for picture in pictures.pictures())
    for line in rows.splitlines()[2:]:
        if not line.startswith("|"):
            break
        layout = line.split("`")[1]
        assert layout in titles, f"{layout} has no picture"
