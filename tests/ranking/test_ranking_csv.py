"""ranking.csv: written and read back, and only what is of today's sources."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.compile import Geometry
from autotune.declaration import load_family
from autotune.ranking.forecasts import Forecast, Launched
from autotune.ranking.printing import write_ranking
from autotune.ranking.warp_requests import Requests
from autotune.record import RANKING, read_first_guesses


@pytest.fixture
def written(tmp_path: Path) -> Path:
    family = load_family("allpairs")
    configurations = family.space.configurations("ladder")
    launched = (Launched(Geometry((4, 1, 1), (64, 1, 1)), Requests(plain=2, lines=8)),)
    found = [Forecast(c, 100.0 - i, "cache", launched) for i, c in enumerate(configurations[:-1])]
    found.append(Forecast(configurations[-1], 0.0, "", message="it could\nnot run"))
    write_ranking(family, "primer", [("sm_90", found)], tmp_path / RANKING)
    return tmp_path


def test_the_fastest_come_first_and_what_was_not_traced_last(written: Path) -> None:
    family = load_family("allpairs")
    configurations = family.space.configurations("ladder")
    assert read_first_guesses(written, family, "primer", 2) == [configurations[-2], configurations[-3]]
    with (written / RANKING).open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["configuration"] for row in rows[-2:]] == [configurations[0].id, configurations[-1].id]
    assert (rows[0]["rank"], rows[0]["cycles"], rows[0]["plain"], rows[0]["lines"]) == (
        "1",
        f"{102 - len(configurations):g}",
        "2",
        "8",
    )
    assert (rows[-1]["rank"], rows[-1]["reason"]) == ("", "it could not run")


def test_others_are_no_guesses(written: Path, tmp_path: Path) -> None:
    family = load_family("allpairs")
    assert read_first_guesses(written, family, "wide", 2) == []
    assert read_first_guesses(written / "nowhere", family, "primer", 2) == []
    assert read_first_guesses(written, replace(family, name="other"), "primer", 2) == []
    text = (written / RANKING).read_text()
    (written / RANKING).write_text(text.replace(family.source_digest, "0" * 64))
    assert read_first_guesses(written, family, "primer", 2) == []
    (written / RANKING).write_bytes(b"\xff\xfe torn")
    assert read_first_guesses(written, family, "primer", 2) == []
