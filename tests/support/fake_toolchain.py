"""A toolchain without a compiler, for tests. A module of its own, because worker processes import it too."""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from import_path import import_path
from waiting import PATIENCE_S, eventually

from autotune.compile.pool import limit_time
from autotune.compile.toolchain import Batch, BuildError, Built, Toolchain, VariantSource
from autotune.errors import CompilerError


@dataclass(frozen=True)
class Fake:
    """Compiles to the variants' names. Calls are lines of a file, because workers make them too: the process
    id and the names. ``bad`` variants do not compile, ``fatal`` ones kill the process, ``slow`` ones take
    two minutes unless ``enough`` calls have been made, ``running`` ones run a program for as long, which
    counts as a call too, ``late`` ones take longer than a library's call may; ``quiet`` messages do not name the
    variant."""

    calls_file: Path
    bad: tuple[str, ...] = ()
    fatal: tuple[str, ...] = ()
    slow: tuple[str, ...] = ()
    enough: int = 10**9
    running: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    quiet: bool = False
    missing: bool = False
    identity: str = "fake 1"
    suffix: str = ".bin"

    def build(self, batch: Batch) -> Built:
        names = [variant.name for variant in batch.variants]
        with self.calls_file.open("a") as file:
            file.write(f"{os.getpid()} {' '.join(names)}\n")
        if self.missing:
            raise CompilerError("no compiler")
        if set(names) & set(self.fatal):
            os.kill(os.getpid(), signal.SIGKILL)
        if set(names) & set(self.slow):
            eventually(lambda: len(self.calls) >= self.enough)
        if set(names) & set(self.late):
            with limit_time(0.01):
                eventually(lambda: False)
        if set(names) & set(self.running):
            with subprocess.Popen(["sleep", "120"]) as program, self.calls_file.open("a") as file:
                file.write(f"{program.pid} sleep\n")
        if wrong := [name for name in names if name in self.bad]:
            raise BuildError("an error somewhere" if self.quiet else f"errors in {' '.join(wrong)}")
        image = " ".join(names).encode()
        keys = [variant.key for variant in batch.variants]
        return Built(
            image, {key: {"sum": f"_{key}"} for key in keys}, {key: {"sum": {"registers": 8}} for key in keys}
        )

    @property
    def calls(self) -> list[list[str]]:
        return [line.split()[1:] for line in self.lines]

    @property
    def processes(self) -> set[int]:
        return {int(line.split()[0]) for line in self.lines}

    @property
    def lines(self) -> list[str]:
        return self.calls_file.read_text().splitlines() if self.calls_file.exists() else []


_: type[Toolchain] = Fake


def batch_of(count: int) -> Batch:
    variants = [
        VariantSource(f"key{i:03}", f"V{i:03}", f"struct V{i:03} {{}};", ("sum",)) for i in range(count)
    ]
    return Batch(Path("k.cu"), (), tuple(variants))


def run_script(tmp_path: Path, body: str) -> "subprocess.CompletedProcess[str]":
    """Run ``body`` on ``chunks``, a compile_many of 6 variants in 2 processes, as a script of its own."""
    script = tmp_path / "script.py"
    script.write_text(
        "import os\nfrom pathlib import Path\n"
        "from autotune.compile.cache import Cache\nfrom autotune.compile.batches import compile_many\n"
        "from fake_toolchain import Fake, batch_of\n"
        f"fake = Fake(Path({str(tmp_path / 'calls')!r}))\n"
        f"cache = Cache(Path({str(tmp_path / 'cache')!r}))\n"
        f"chunks = compile_many(batch_of(6), fake, cache, 2, 1)\n{body}\n"
    )
    environment = {**os.environ, "PYTHONPATH": import_path(), "TMPDIR": str(tmp_path)}
    # Output goes to files: a worker that outlives its parent would hold a pipe open.
    with (tmp_path / "out").open("w+") as out, (tmp_path / "err").open("w+") as err:
        done = subprocess.run(
            [sys.executable, str(script)],
            check=False,
            stdout=out,
            stderr=err,
            env=environment,
            timeout=PATIENCE_S,
        )
    return subprocess.CompletedProcess(
        done.args, done.returncode, (tmp_path / "out").read_text(), (tmp_path / "err").read_text()
    )
