"""What a search proposes, in batches: all at once, or a few and no more before it has their results."""

from autotune.declaration.space import Configuration, Policy, Space
from autotune.engine.jobs import Proposals
from autotune.record.trial import Trial
from autotune.search.search import Search
from autotune.search.strategy import Strategy

SPACE = Space((Policy("n", tuple(range(6)), 0),))
ALL = SPACE.configurations()
BESIDE = Configuration({"n": 99})


def failed(configuration: Configuration) -> Trial:
    return Trial(
        family="f", workload="w", device="d", configuration=configuration, state="crashed", reason="so"
    )


def running() -> bool:
    return False


def test_the_whole_space_is_one_batch_and_nothing_is_waited_for() -> None:
    proposals = Proposals(Search(SPACE, ALL, Strategy()), None, first=[BESIDE])
    assert list(proposals.batches(running)) == [[BESIDE, *ALL]]


def test_a_batch_comes_when_all_before_it_are_told_or_set_aside() -> None:
    asked: list[list[Configuration]] = []
    proposals = Proposals(Search(SPACE, ALL, Strategy(trials=5)), 2)
    waited_for: list[Configuration] = []

    def stopped() -> bool:  # looked at before each batch
        if asked and not waited_for[2 * (len(asked) - 1) :]:
            told, elsewhere = asked[-1]
            waited_for.extend([told, elsewhere])
            assert not proposals._has_room()
            proposals.tell(failed(told))
            proposals.set_aside(elsewhere)
        return False

    for batch in proposals.batches(stopped):
        asked.append(batch)
    assert asked == [list(ALL[:2]), list(ALL[2:4]), [ALL[4]]]
    assert waited_for == list(ALL[:4])


def test_what_is_tried_before_comes_though_the_search_has_nothing_left() -> None:
    search = Search(SPACE, ALL, Strategy())
    for configuration in ALL:
        search.tell(configuration, 1.0)
    assert list(Proposals(search, None, first=[BESIDE]).batches(running)) == [[BESIDE]]
    assert list(Proposals(search, 4).batches(running)) == []
    assert list(Proposals(search, 4, first=[BESIDE]).batches(lambda: True)) == []
