"""Which launches make up a run: time blocks that end where a sample is taken, in cycles that a graph can repeat."""

from dataclasses import dataclass

__all__ = ["Block", "Schedule", "blocks", "schedule"]

_LAUNCHES_PER_CYCLE = 1000


@dataclass(frozen=True)
class Block:
    """A launch of ``steps`` steps from field ``source`` (0 even, 1 odd); ``sample`` is the number, in its cycle, of the
    sample that follows, 0 for none."""

    steps: int
    sample: int
    source: int


@dataclass(frozen=True)
class Schedule:
    """``cycle`` ``repeats`` times, then ``rest``. A cycle ends where it began, in the even field."""

    cycle: tuple[Block, ...]
    repeats: int
    rest: tuple[Block, ...]

    @property
    def source(self) -> int:
        """The field that has the result."""
        return len(self.rest) % 2


def blocks(steps: int, interval: int, time_block: int) -> tuple[Block, ...]:
    """``steps`` steps from the even field in blocks of at most ``time_block``, each ``interval``-th step the last of
    its block. As few blocks as can be, and none much shorter than the others: a block of few steps takes hardly less
    time than one of many."""
    made: list[Block] = []
    done = 0
    while done < steps:
        left = min(steps - done, interval - done % interval)
        count = -(-left // -(-left // time_block))
        done += count
        made.append(Block(count, 0 if done % interval else done // interval, len(made) % 2))
    return tuple(made)


def schedule(steps: int, interval: int, time_block: int) -> Schedule:
    """Cycles of about a thousand launches: a graph of all would take long to make for 100,000 steps."""
    launches = -(-interval // time_block)
    intervals = max(1, _LAUNCHES_PER_CYCLE // launches)
    intervals += intervals * launches % 2
    repeats = steps // (intervals * interval)
    cycle = blocks(intervals * interval, interval, time_block) if repeats else ()
    rest = blocks(steps - repeats * intervals * interval, interval, time_block)
    return Schedule(cycle, repeats, rest)
