"""The processes of one MPI program, as mpi4py has them: what they tell one another, with an end to every wait.

MPI waits for ever for a rank that is gone. So nothing here blocks: a message is looked for until the rank it is to come
from has given no sign of life for ``silent_s``; then ``RankLost`` names that rank, and this process, when it ends, ends
the whole program (MPI_Abort), since no rank could leave otherwise.
"""

import atexit
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.device import has_driver
from autotune.errors import AutotuneError, DeviceError
from autotune.files import pip_install
from autotune.processes import Failure

_TALK, _SIGN, _FAILURE, _DATA = range(1, 5)  # tags
_SIGNS = 5  # of life, in the time after which a rank is lost
_MOST_BYTES = 1 << 30  # of one message: MPI counts with 31 bits
_SHORTEST_S, _LONGEST_S = 2e-5, 2e-3  # between two looks for a message


class RankLost(DeviceError):
    """A rank gave no sign of life. MPI cannot go on without it."""


class Ranks:
    """This process among those of ``comm`` (mpi4py's; all that were started, without it). ``number`` is its rank,
    ``local`` its place among the ``beside`` ones of its host. Raises DeviceError where there is no mpi4py or no MPI."""

    def __init__(self, silent_s: float, comm: Any = None) -> None:
        self._mpi = mpi()
        self._comm = (comm or self._mpi.COMM_WORLD).Dup()
        self.number: int = self._comm.Get_rank()
        self.count: int = self._comm.Get_size()
        near = self._comm.Split_type(self._mpi.COMM_TYPE_SHARED)
        self.local, self.beside = near.Get_rank(), near.Get_size()
        self.is_beside_first: bool = near.bcast(self.number, 0) == 0  # on its host
        near.Free()
        self.silent_s = silent_s
        self.is_over = self.is_others = False  # by an error; by that of another rank
        self._signed = time.monotonic()
        self._sending: list[Any] = []  # requests whose buffers must stay
        self._heard = [time.monotonic()] * self.count
        self.names = ["this rank"] * self.count
        self.names = self.gather(f"rank {self.number} on {platform.node()}")

    @property
    def is_first(self) -> bool:
        return self.number == 0

    def gather(self, value: Any) -> list[Any]:
        """The ``value`` of every rank, by number, on all of them; nobody is past it before all have come to it."""
        if not self.is_first:
            self._send(value, 0)
            found: list[Any] = self._receive(0)
            return found
        values = [value, *(self._receive(rank) for rank in range(1, self.count))]
        for rank in range(1, self.count):
            self._send(values, rank)
        return values

    def broadcast(self, value: Any) -> Any:
        """The first rank's ``value``, on all."""
        return self.gather(value if self.is_first else None)[0]

    def _send(self, value: Any, rank: int) -> None:
        self._sending.append(self._comm.isend(value, rank, _TALK))

    def _receive(self, rank: int) -> Any:
        self._heard[rank] = time.monotonic()
        received: list[Any] = []

        def is_there() -> bool:
            if message := self._comm.improbe(rank, _TALK):
                received.append(message.recv())
            return bool(received)

        self.wait_until(is_there, {rank})
        return received[0]

    def look(self) -> None:
        """Tell the others now and then that this one is alive, and take what came. To be called again and again while
        they may wait for it. Raises what another rank ended with."""
        self._sign()
        status = self._mpi.Status()
        while self._comm.iprobe(self._mpi.ANY_SOURCE, _SIGN, status):
            self._comm.Recv([bytearray(0), 0, self._mpi.BYTE], status.Get_source(), _SIGN)
            self._heard[status.Get_source()] = time.monotonic()
        if message := self._comm.improbe(self._mpi.ANY_SOURCE, _FAILURE, status):
            failure: Failure = message.recv()
            self.is_others = True
            self._end(failure.kind)
            raise Failure(failure.kind, f"{self.names[status.Get_source()]}: {failure.text}").error()
        self._sending = [request for request in self._sending if not request.Test()]

    def _sign(self) -> None:
        now = time.monotonic()
        if now - self._signed < self.silent_s / _SIGNS:
            return
        self._signed = now
        for rank in range(self.count):
            if rank != self.number:
                self._sending.append(self._comm.Isend([b"", 0, self._mpi.BYTE], rank, _SIGN))

    def wait_until(self, is_over: Callable[[], bool], awaited: set[int]) -> None:
        """Return when ``is_over``, which is asked again and again; ``awaited`` are the ranks that it depends on, and
        may be changed by it. Raises RankLost, and what another rank ended with."""
        pause = _SHORTEST_S
        while not is_over():
            self.look()
            now = time.monotonic()
            for rank in awaited:
                if now - self._heard[rank] > self.silent_s:
                    self.is_over = True
                    atexit.register(self._comm.Abort, RankLost.exit_code)
                    raise RankLost(
                        f"{self.names[rank]}, one of {self.count}, did not respond for {self.silent_s:g} s. MPI "
                        "cannot continue without it: read that host's output, then run the same command again"
                    )
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_S)

    @contextmanager
    def end_together(self) -> Iterator[None]:
        """What ends this block ends that of the others too, and they say whose error it was."""
        try:
            yield
        except AutotuneError as problem:
            if not self.is_over:
                for rank in range(self.count):
                    if rank != self.number:
                        self._sending.append(self._comm.isend(Failure.make(problem), rank, _FAILURE))
                self._end(type(problem))
            raise

    def _end(self, kind: type[AutotuneError]) -> None:
        """The others may wait for what never comes: the first rank, which says what was wrong, takes them along."""
        self.is_over = True
        if self.is_first:
            atexit.register(self._comm.Abort, kind.exit_code)

    def send(self, array: NDArray[Any]) -> None:
        """``array`` (contiguous; not to be written to before ``wait_sent``) to the first rank."""
        for piece in _pieces(array):
            self._sending.append(self._comm.Isend([piece, self._mpi.BYTE], 0, _DATA))

    def receive(self, array: NDArray[Any], rank: int) -> list[Any]:
        """The requests of the next ``array`` that a rank sends, for ``has_come``."""
        return [self._comm.Irecv([piece, self._mpi.BYTE], rank, _DATA) for piece in _pieces(array)]

    @staticmethod
    def has_come(requests: list[Any]) -> bool:
        """Whether all of them are over."""
        requests[:] = [request for request in requests if not request.Test()]
        return not requests

    def wait_sent(self) -> None:
        """Return when everything that was sent has left. Raises RankLost."""
        self._heard[0] = time.monotonic()
        self.wait_until(lambda: not self._sending, {0})


def _pieces(array: NDArray[Any]) -> Iterator[NDArray[np.uint8]]:
    plain = array.reshape(-1).view(np.uint8)
    for begin in range(0, max(plain.size, 1), _MOST_BYTES):
        yield plain[begin : begin + _MOST_BYTES]


def mpi() -> Any:
    """mpi4py's MPI. Raises DeviceError where there is none."""
    try:
        from mpi4py import MPI
    except ImportError:
        raise DeviceError(
            f"several ranks need mpi4py, which is not installed; {pip_install('mpi')}"
        ) from None
    except RuntimeError as problem:  # it looks for an MPI library, and says where
        told = next((line for line in str(problem).splitlines() if line), "")
        raise DeviceError(
            f"mpi4py found no MPI library ({told}); load the cluster's module, or pip install mpich"
        ) from None
    return MPI


def device_of(name: str, local: int, environment: Mapping[str, str] = os.environ) -> str:
    """The device of the rank that is number ``local`` on its host: one that is named is every rank's; of ``cuda`` each
    takes another GPU, or the only one that its launcher lets it see; ``auto`` is that, or the cpu without a driver."""
    if name not in ("auto", "cuda"):
        return name
    if name == "auto" and not has_driver():
        return "cpu"
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    only_one = visible is not None and len(visible.split(",")) == 1
    return f"cuda:{0 if only_one else local}"
