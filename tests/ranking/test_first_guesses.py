"""What a search of a sweep begins with."""

from pathlib import Path
from types import SimpleNamespace

from autotune.compile import Geometry
from autotune.declaration import load_family
from autotune.engine.session import Session
from autotune.ranking.forecasts import Forecast, Launched
from autotune.ranking.printing import write_ranking
from autotune.ranking.warp_requests import Requests
from autotune.record import RANKING


def test_a_search_begins_with_the_first_of_a_ranking_and_then_with_other_winners(tmp_path: Path) -> None:
    family = load_family("allpairs")
    ranked = family.space.configurations()[100:107]
    launched = (Launched(Geometry((1, 1, 1), (32, 1, 1)), Requests(plain=1)),)
    found = [Forecast(c, 1.0 + i, "cache", launched) for i, c in enumerate(ranked)]
    write_ranking(family, "primer", [("sm_90", found)], tmp_path / RANKING)
    winner = SimpleNamespace(winner=SimpleNamespace(configuration=family.space.control))
    studies = [
        SimpleNamespace(family="allpairs", decision=winner),
        SimpleNamespace(family="allpairs", decision=None),
    ]
    session = SimpleNamespace(
        request=SimpleNamespace(folder=tmp_path, family=family),
        store=SimpleNamespace(studies=lambda: studies),
    )
    session._winners = lambda: Session._winners(session)  # type: ignore[arg-type]
    seeds = Session._seeds(session, SimpleNamespace(name="primer"))  # type: ignore[arg-type]
    assert seeds == [*ranked[:5], family.space.control]
