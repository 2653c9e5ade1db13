"""What a spread's processes hear, and what a worker launches again."""

from dataclasses import dataclass, field
from multiprocessing import Pipe
from types import SimpleNamespace
from typing import Any

import pytest

from autotune.device.backend import LaunchError
from autotune.spread.plan import Chunk
from autotune.spread.worker import ChunkLaunches, Inbox


@pytest.mark.parametrize("awake_s", [0.0, 1e-3, 60.0])
def test_a_message_and_an_end_are_heard(awake_s: float) -> None:
    (first, there), (second, other) = Pipe(), Pipe()
    inbox = Inbox([first, second])
    assert inbox.wait() == []
    assert inbox.wait(2e-3, awake_s) == []
    there.send("word")
    assert inbox.wait(60.0, awake_s) == [first]
    assert inbox.wait() == [first]  # until it is received
    assert first.recv() == "word"
    other.close()
    assert inbox.wait(float("inf"), awake_s) == [second]


@dataclass
class Notes:
    """A backend and an execution; each launch of a unit is noted, and a graph's once in all."""

    notes: list[str] = field(default_factory=list)
    transfer_bytes: int = 0
    sends: int = 0
    refuses: bool = False

    def run(self, _execution: Any, first: int, count: int) -> None:
        self.notes += [f"unit {unit}" for unit in range(first, first + count)]
        self.transfer_bytes += self.sends

    def record(self, steps: Any) -> Any:
        if self.refuses:
            raise LaunchError("operation not permitted when stream is capturing")
        steps()
        recorded, self.notes = self.notes, []
        return lambda: self.notes.append(f"graph of {', '.join(recorded)}")

    def zero(self, name: str) -> None:
        self.notes.append(f"clear {name}")

    def launches(self) -> ChunkLaunches:
        return ChunkLaunches(self, self, SimpleNamespace(run=self.run, sums=("total",)))  # type: ignore[arg-type]


def test_what_was_run_is_recorded_one_at_a_time() -> None:
    device = Notes()
    launches = device.launches()
    for chunk, begins in ((Chunk(0, 2), True), (Chunk(4, 1), False), (Chunk(4, 1), False)):
        launches.queue(chunk, begins)
    assert device.notes == ["clear total", "unit 0", "unit 1", "unit 4", "unit 4"]
    device.notes.clear()
    assert launches.record() and launches.record()
    assert not launches.record()
    for chunk, begins in ((Chunk(0, 2), True), (Chunk(0, 2), False), (Chunk(4, 1), False)):
        launches.queue(chunk, begins)
    assert device.notes == ["graph of clear total, unit 0, unit 1", "unit 0", "unit 1", "graph of unit 4"]


@pytest.mark.parametrize("case", [{"sends": 8}, {"refuses": True}])
def test_what_no_graph_can_have_is_launched_each_time(case: dict[str, Any]) -> None:
    """Bytes from the host, whose memory may be something else's later, or what the driver refuses to record."""
    device = Notes(**case)
    launches = device.launches()
    for _ in range(2):
        device.notes.clear()
        launches.queue(Chunk(0, 1), False)
        launches.queue(Chunk(1, 1), False)
        assert device.notes == ["unit 0", "unit 1"]
        while launches.record():
            pass
