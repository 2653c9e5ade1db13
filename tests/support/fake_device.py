"""A fake device in a process of its own, with whatever a kernel may do to that process; and sweeps to be killed."""

import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fakes import FakeBackend, cost, sweep
from import_path import import_path

from autotune.compile.variant import Variant
from autotune.declaration import family as families
from autotune.declaration.space import Configuration
from autotune.device.backend import LaunchError
from autotune.engine.process_worker import ProcessWorker
from autotune.errors import DeviceError
from autotune.hardware import Device


@dataclass(frozen=True)
class FakeDevice:
    """Opens a FakeBackend in a measuring process. ``faults``: part of a configuration's id -> what it does there;
    ``log`` receives the id of every configuration that is launched, a line each, and ``starts`` a line each time the
    device is opened. Nothing ends before another one has launched as well, where ``beside`` is the log of one."""

    folder: Path
    faults: Mapping[str, str] = field(default_factory=dict)
    log: Path | None = None
    start: str = ""
    name: str = "Fake GPU"
    ms: float = 0.0
    beside: Path | None = None

    def __call__(self) -> FakeBackend:
        if self.log:
            _append(self.log.with_name("starts"), str(os.getpid()))
        if self.start:
            _fault(self.start)
        family = families.load_family(self.folder)
        backend = FakeBackend(costs=self._cost, device=Device(kind="cuda", name=self.name, arch="sm_90"))
        backend.lost = "lost" in self.faults.values()
        backend.know([Variant(family, c) for c in family.space.configurations()])
        return backend

    def _cost(self, configuration: Mapping[str, Any]) -> float:
        named = Configuration(configuration).id
        if self.log:
            _append(self.log, named)
        for part, fault in self.faults.items():
            if part in named:
                _fault(fault)
        while self.beside and not self.beside.exists():
            time.sleep(0.005)
        time.sleep(self.ms / 1e3)
        return cost(configuration)


def _append(path: Path, line: str) -> None:
    with path.open("a") as file:
        file.write(line + "\n")


def _fault(kind: str) -> None:
    match kind:
        case "endless":
            time.sleep(3600)
        case "exit":
            os._exit(3)
        case "warn":
            warnings.warn("running on the cpu: no GPU found", stacklevel=2)
        case "raise":
            raise ValueError("no such thing")
        case "lost" | "refused":
            raise LaunchError(f"the device says {kind}")
        case "no device":
            raise DeviceError("no usable GPU: it fell off the bus")
        case _:
            os.kill(os.getpid(), getattr(signal, kind))


def process(device: FakeDevice, **changes: Any) -> ProcessWorker:
    """A measuring process on a fake device."""
    return ProcessWorker("cuda:0", device, **changes)


def start_sweep(
    folder: Path, out: Path, log: Path, ms: float = 1.0, isolated: bool = False, beside: Path | None = None
) -> subprocess.Popen[bytes]:
    """A sweep of ``folder`` into ``out`` in a process of its own, that may be killed."""
    arguments = (str(folder), str(out), str(log), ms, isolated, str(beside or ""))
    program = f"import fake_device; fake_device.sweep_here(*{arguments!r})"
    environment = {
        **os.environ,
        "PYTHONPATH": import_path(),
        "TMPDIR": str(out),
    }
    return subprocess.Popen([sys.executable, "-W", "error", "-c", program], env=environment)


def sweep_here(folder: str, out: str, log: str, ms: float, isolated: bool, beside: str = "") -> None:
    device = FakeDevice(Path(folder), log=Path(log), ms=ms, beside=Path(beside) if beside else None)
    if isolated:
        worker = process(device)
        worker.start()
        sweep(Path(folder), Path(out), workers=[worker]).run()
        worker.close()
    else:
        sweep(Path(folder), Path(out), device()).run()
