"""The nodes of a suffix tree from the order of the suffixes (prefixes.hpp, nodes.hpp), on the device."""

import ctypes
from contextlib import ExitStack
from dataclasses import dataclass

from autotune.family import Room

from .steps import WORD, Leasts, Steps
from .suffixes import Suffixes

__all__ = ["Forks", "Records", "forks_of", "shared_of", "write_records"]


class Records(ctypes.Structure):
    """nodes.hpp: Records. Addresses, 0 for what is not wanted; nodes and children lie ``stride`` records apart."""

    _fields_ = tuple((name, ctypes.c_uint64) for name in ("nodes", "children", "tails", "ranges", "stride"))


class _Tree(ctypes.Structure):
    """nodes.hpp: Tree."""

    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("text", "separators", "suffixes", "ranks")),
        ("shared", Leasts),
        ("positions", Leasts),
        *((name, ctypes.c_uint64) for name in ("forks", "firsts", "numbers", "leaves")),
        *((name, ctypes.c_uint32) for name in ("length", "letters", "separator_count")),
    )


@dataclass(frozen=True)
class Forks:
    """The inner nodes: by rank their ``forks``, by fork the least positions below them and their ``numbers``; the
    numbers of ``leaves`` by position. ``nodes`` is how many there are, leaves too."""

    shared: Leasts
    positions: Leasts
    forks: Room
    firsts: Room
    numbers: Room
    leaves: Room
    nodes: int


def shared_of(steps: Steps, owner: ExitStack, suffixes: Suffixes) -> Room:
    """How many letters the suffix of each rank shares with the one before it; 0 behind the last."""
    shared = steps.room(owner, (suffixes.letters + 1) * WORD)
    with ExitStack() as step:
        reach = steps.room(step, suffixes.length * WORD)
        steps.one.fill(0)
        known = suffixes.text, suffixes.ranks, suffixes.order, reach
        longer = shared  # not known yet
        steps.launch("share", suffixes.length, *known, longer, steps.one, suffixes.length)
        if count := steps.fetched():
            steps.launch_blocks("share_longer", count, *known, longer, suffixes.length)
        steps.scan(reach, suffixes.length, is_maximum=True)
        steps.launch("shared_by_rank", suffixes.letters + 1, reach, suffixes.order, shared, suffixes.letters)
    return shared


def forks_of(steps: Steps, owner: ExitStack, suffixes: Suffixes, shared: Room) -> Forks:
    """The nodes, numbered."""
    count, length = suffixes.letters, suffixes.length
    leasts = steps.leasts(owner, shared, count + 1)
    positions = steps.leasts(owner, suffixes.order, count)
    forks, firsts, numbers = (steps.room(owner, count * WORD) for _ in range(3))
    steps.launch("find_forks", count, bytes(leasts), forks, count)
    steps.launch("find_firsts", count, bytes(leasts), bytes(positions), forks, firsts, numbers, count)
    steps.launch("find_seconds", count, bytes(leasts), suffixes.order, forks, firsts, numbers, count)
    leaves = steps.room(owner, length * WORD)
    steps.launch("count_leaves", length, suffixes.text, leaves, length)
    steps.launch("count_forks", count, forks, numbers, leaves, count)
    nodes = steps.scanned(leaves, length) + 1
    steps.launch("number_forks", count, forks, numbers, leaves, count)
    return Forks(leasts, positions, forks, firsts, numbers, leaves, nodes)


def write_records(steps: Steps, suffixes: Suffixes, forks: Forks, records: Records) -> None:
    """Every record of the tree to where ``records`` says."""
    known = bytes(
        _Tree(
            text=suffixes.text.address,
            separators=suffixes.separators.address,
            suffixes=suffixes.order.address,
            ranks=suffixes.ranks.address,
            shared=forks.shared,
            positions=forks.positions,
            forks=forks.forks.address,
            firsts=forks.firsts.address,
            numbers=forks.numbers.address,
            leaves=forks.leaves.address,
            length=suffixes.length,
            letters=suffixes.letters,
            separator_count=suffixes.separator_count,
        )
    )
    to = bytes(records)
    steps.launch("clear_children", forks.nodes, to, forks.nodes)
    steps.launch("write_leaves", suffixes.length, known, to)
    steps.launch("write_forks", suffixes.letters, known, to)
