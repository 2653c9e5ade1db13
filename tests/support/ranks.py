"""Ranks of one program as threads of one process, with a gather as mpi4py's allgather is."""

import threading
from collections.abc import Callable, Sequence
from typing import Any


def run_ranks(count: int, body: Callable[[int, Callable[[Any], Sequence[Any]]], Any]) -> list[Any]:
    """What ``body(rank, gather)`` gave on each rank, or the exception that ended it."""
    barrier, values, found = threading.Barrier(count, timeout=60), [None] * count, [None] * count

    def run(rank: int) -> None:
        def gather(value: Any) -> list[Any]:
            values[rank] = value
            barrier.wait()
            seen = list(values)
            barrier.wait()
            return seen

        try:
            found[rank] = body(rank, gather)
        except Exception as problem:  # noqa: BLE001 - for the test to look at
            found[rank] = problem  # type: ignore[call-overload]

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found
