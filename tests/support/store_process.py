"""A sweep as the store sees it, to be run in a process of its own and killed.

Tries each configuration for some seconds. Into its log it writes "trying N", "recorded N", and at the end "done". With
a number of bytes no file may grow beyond that, as on a full disk.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from import_path import import_path
from waiting import wait_for

from autotune.declaration.space import Configuration, Policy
from autotune.errors import StoreError
from autotune.record.store import Store, StudyStore
from autotune.record.study import Study
from autotune.record.trial import Measurement, Trial

POLICIES = {"number": Policy("number", tuple(range(1000)), 0)}


def configurations(count: int) -> list[Configuration]:
    return [Configuration({"number": number}) for number in range(count)]


def trial(configuration: Configuration, state: str = "measured") -> Trial:
    measured = Measurement(median_ms=1.0, minimum_ms=1.0, spread=0.0, samples=3)
    return Trial(
        family="f", workload="w", device="d", configuration=configuration, state=state,  # type: ignore[arg-type]
        measurement=measured if state == "measured" else None, reason="" if state == "measured" else state,
    )  # fmt: skip


def study(device: str = "d", identity: str = "0" * 64) -> Study:
    return Study(
        family="f", workload="w", device=device, identity=identity, control=Configuration({"number": 0})
    )


def opened(where: str | Path, silent_s: float = 120.0) -> StudyStore:
    return Store(where, silent_s=silent_s).open(study(), POLICIES)


def main(
    where: str,
    count: int,
    seconds: float,
    log: Path,
    begin: Path | None,
    end: Path | None,
    silent_s: float = 120.0,
) -> None:
    starter = os.getppid()
    with log.open("a", buffering=1) as told:
        try:
            store = opened(where, silent_s)
            print("ready", file=told)
            while begin and not begin.exists():
                time.sleep(0.002)
                if os.getppid() != starter:  # the test has failed before it said begin
                    sys.exit(1)
            wanted = configurations(count)
            while left := [c for c in wanted if c not in store.get_known()]:
                mine = [c for c in left if store.claim(c) and _try(store, c, seconds, end, told)]
                if not mine:
                    print("waiting", file=told)
                    time.sleep(0.02)
                    store.refresh()
        except StoreError as problem:
            print(f"StoreError {problem}", file=told)
            sys.exit(problem.exit_code)
        print("done", file=told)


def _try(
    store: StudyStore, configuration: Configuration, seconds: float, end: Path | None, told: object
) -> bool:
    print(f"trying {configuration['number']}", file=told)  # type: ignore[call-overload]
    time.sleep(seconds)
    while end and not end.exists():
        time.sleep(0.002)
    is_recorded = store.record(trial(configuration))
    print(f"{'recorded' if is_recorded else 'lost'} {configuration['number']}", file=told)  # type: ignore[call-overload]
    return True


class Starter:
    """Starts such processes, forked from one that has imported all they need: that takes longer than what they do."""

    def __init__(self) -> None:
        self._program = subprocess.Popen(
            [sys.executable, __file__], env={**os.environ, "PYTHONPATH": import_path()},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def __call__(
        self,
        where: str,
        count: int,
        seconds: float,
        log: Path,
        *,
        most_bytes: int = 0,
        begin: Path | None = None,
        end: Path | None = None,
        silent_s: float = 120.0,
    ) -> "Started":
        """It tries nothing before there is the file ``begin``, and ends no trial before there is ``end``, where one is
        named."""
        asked = [where, count, seconds, str(log), most_bytes, str(begin or ""), str(end or ""), silent_s]
        return Started(self, self.ask("start", asked))

    def ask(self, what: str, of: Any) -> Any:
        assert self._program.stdin and self._program.stdout
        print(json.dumps([what, of]), file=self._program.stdin, flush=True)
        return json.loads(self._program.stdout.readline())

    def close(self) -> None:
        self._program.communicate()


class Started:
    """As a ``subprocess.Popen``."""

    def __init__(self, starter: Starter, pid: int) -> None:
        self.pid, self._starter, self._status = pid, starter, None

    def poll(self) -> int | None:
        if self._status is None:
            self._status = self._starter.ask("poll", self.pid)
        return self._status

    def wait(self) -> int:
        wait_for(lambda: self.poll() is not None)
        assert self._status is not None
        return self._status

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def _serve() -> None:
    for line in sys.stdin:
        what, of = json.loads(line)
        answer = _fork(*of) if what == "start" else _ended(of)
        print(json.dumps(answer), flush=True)


def _fork(
    where: str, count: int, seconds: float, log: str, most_bytes: int, begin: str, end: str, silent_s: float
) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        os.close(0)
        if most_bytes:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, resource.RLIM_INFINITY))
        named = [Path(name) if name else None for name in (begin, end)]
        main(where, count, seconds, Path(log), *named, silent_s)
        status = 0
    except SystemExit as ending:
        status = int(ending.code or 0)
    finally:
        os._exit(status)


def _ended(pid: int) -> int | None:
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


if __name__ == "__main__":
    _serve()
