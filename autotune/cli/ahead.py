"""A family's kernel, opened while its input is read."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

from autotune.declaration import Family
from autotune.device import import_ahead
from autotune.dispatch import TunedKernel
from autotune.files import policy_folders
from autotune.hardware import EarlyContext
from autotune.policy import find_ahead

__all__ = ["Ahead"]


class Ahead:
    """What ``open_kernel`` gives, begun at once in a thread where a GPU's context is being made by now
    (``EarlyContext``), and else when it is asked for; what it raises is raised then, too. Leaving the block closes what
    nobody asked for."""

    def __init__(self, family: Family, policies: Path | None, open_kernel: Callable[[], TunedKernel]) -> None:
        self._open = open_kernel
        self._coming: Future[TunedKernel | None] | None = None
        early = EarlyContext.current
        if early is not None:
            pool = ThreadPoolExecutor(1)
            self._coming = pool.submit(self._opened, early, family, policies)
            pool.shutdown(wait=False)

    def _opened(self, early: EarlyContext, family: Family, policies: Path | None) -> TunedKernel | None:
        """None where there is no GPU that works: why is told to who asks."""
        device = early.device()
        if device is None:
            return None
        import_ahead()
        find_ahead(family, device, policy_folders(policies, family.folder))
        return self._open() if early.is_made() else None

    def kernel(self) -> TunedKernel:
        """For the one who asks, and closes it."""
        coming, self._coming = self._coming, None
        kernel = coming.result() if coming is not None else None
        return self._open() if kernel is None else kernel

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        coming, self._coming = self._coming, None
        if coming is None or coming.exception() is not None:
            return
        kernel = coming.result()
        if kernel is not None:
            kernel.close()
