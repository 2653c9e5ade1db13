"""Reading ahead, searching beside, writing behind, compiling together: on threads of their own, with a bound on what
waits between them."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, TypeVar

__all__ = ["Ahead", "Behind", "Beside", "Together"]

Item = TypeVar("Item")
Result = TypeVar("Result")


class _Threads:
    """Calls begun in order. ``seconds`` is how long they took, ``waited`` how long their results were waited for.
    Leaving the block drops the calls that have not begun and waits for those that have."""

    def __init__(self, threads: int = 1) -> None:
        self.seconds = 0.0
        self.waited = 0.0
        self._thread = ThreadPoolExecutor(threads)
        self._calls: deque[Future[Any]] = deque()

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> None:
        self._calls.append(self._thread.submit(self._timed, function, *arguments))

    def _timed(self, function: Callable[..., Any], *arguments: Any) -> Any:
        begin = time.perf_counter()
        try:
            return function(*arguments)
        finally:
            self.seconds += time.perf_counter() - begin

    def _result(self) -> Any:
        """Of the oldest call, or what it raised."""
        begin = time.perf_counter()
        try:
            return self._calls.popleft().result()
        finally:
            self.waited += time.perf_counter() - begin


class Together(_Threads):
    """Calls that are made while the block runs, each on a thread of its own. What one of them raises comes out at the
    end of a block that raises nothing itself."""

    def __init__(self, functions: Sequence[Callable[[], object]]) -> None:
        super().__init__(len(functions))
        self._functions = functions

    def __enter__(self) -> None:
        for function in self._functions:
            self._submit(function)

    def __exit__(self, *problem: object) -> None:
        try:
            while self._calls and problem[0] is None:
                self._result()
        finally:
            super().__exit__(*problem)


class Ahead(_Threads, Generic[Item]):
    """The items of an iterator, none of them None, up to ``most`` made before they are asked for, from entering the
    block on. What the iterator raises comes out in its turn."""

    def __init__(self, items: Iterator[Item], most: int = 2) -> None:
        super().__init__()
        self._items = items
        self._most = most

    def __enter__(self) -> Iterator[Item]:
        for _ in range(self._most):
            self._submit(next, self._items, None)
        return self._taken()

    def _taken(self) -> Iterator[Item]:
        while (item := self._result()) is not None:
            self._submit(next, self._items, None)
            yield item


class Beside(_Threads):
    """One call for each of many items, ``threads`` at once; with one, in the calling thread, where Ctrl-C ends it."""

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self._most = threads

    def __enter__(self) -> "Beside":
        return self

    def each(
        self, function: Callable[[Item], Result], items: Iterator[Item]
    ) -> Iterator[tuple[Item, Result]]:
        """Every item with its result, in order."""
        if self._most == 1:
            for item in items:
                yield item, self._timed(function, item)
            return
        begun: deque[Item] = deque()
        for item in items:
            begun.append(item)
            self._submit(function, item)
            if len(begun) > self._most:
                yield begun.popleft(), self._result()
        while begun:
            yield begun.popleft(), self._result()


class Behind(_Threads):
    """Calls that are made later, at most ``most`` more than the one under way. What one of them raises comes out of a
    later ``do``, or of ``finish``, which waits for all."""

    def __init__(self, most: int = 1) -> None:
        super().__init__()
        self._most = most

    def __enter__(self) -> "Behind":
        return self

    def do(self, function: Callable[..., None], *arguments: Any) -> None:
        self._submit(function, *arguments)
        while len(self._calls) > self._most:
            self._result()

    def finish(self) -> None:
        while self._calls:
            self._result()
