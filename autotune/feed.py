"""Work made ready in a thread of its own, so that whoever measures never waits for a compiler it need not wait for."""

import multiprocessing
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

__all__ = ["Feed"]

_Item = TypeVar("_Item")


class Feed(Generic[_Item]):
    """The items of an iterator that a thread makes and walks through. ``pipe`` becomes readable when ``take`` has
    something.

    ``stop`` calls the rest off and returns at once; the thread then ends with the item it is at. ``make`` is given a
    function that tells it so, for an iterator that is long about its first item."""

    def __init__(self, make: Callable[[Callable[[], bool]], Iterator[_Item]]) -> None:
        self.pipe, self._bell = multiprocessing.Pipe(duplex=False)
        self.done = False
        self._items: SimpleQueue[_Item | BaseException | None] = SimpleQueue()
        self._stopped = False
        self._thread = threading.Thread(target=self._walk, args=(make,), daemon=True, name="autotune-feed")
        self._thread.start()

    def _walk(self, make: Callable[[Callable[[], bool]], Iterator[_Item]]) -> None:
        try:
            for item in make(
                lambda: self._stopped
            ):  # closed when this function ends, and with it the processes it may have
                if self._stopped:
                    return
                self._put(item)
        except BaseException as problem:  # noqa: BLE001 - raised where it is seen: by ``take``
            self._put(problem)
        finally:
            self._put(None)

    def _put(self, item: _Item | BaseException | None) -> None:
        self._items.put(item)
        with suppress(OSError):  # nobody listens any more
            self._bell.send_bytes(b"")

    def take(self) -> list[_Item]:
        """What is ready now, in order. Raises what making the next one raised."""
        found: list[_Item] = []
        while not self.done:
            try:
                item = self._items.get_nowait()
            except Empty:
                break
            self.pipe.recv_bytes()
            if item is None:
                self.done = True
            elif isinstance(item, BaseException):
                raise item
            else:
                found.append(item)
        return found

    def stop(self) -> None:
        self._stopped = True
        self.pipe.close()
