"""``autotune adopt``: what is written, and what is said of it.

The work is done by a process of its own with limits of memory and time, since a source may be made to crash or to fill
whatever reads it.
"""

import ctypes
import os
import resource
import shlex
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from rich.console import Console

from autotune.adopt.adoption import Adopter, Adoption, family_name, write
from autotune.adopt.host import split
from autotune.adopt.proof import measure_coverage
from autotune.adopt.source import read_source
from autotune.adopt.templates import render
from autotune.compile import default_header
from autotune.declaration import families, load_family
from autotune.errors import FamilyError, StoreError, UsageError
from autotune.processes import Answer, Child, Failure, Warned, own_folder, report_problems, warn

_BYTES = 4 << 30  # of memory that the process may add to what it starts with
_READ_SECONDS = 60.0
_STEP_SECONDS = 300.0  # of a step that compiles or runs


@dataclass(frozen=True)
class AdoptRequest:
    """``kernel`` may have values for its template behind it: ``k<4, float>``."""

    path: Path
    out_folder: Path | None = None
    kernel: str = ""
    options: tuple[str, ...] = ()
    grid: str = ""
    block: str = ""


def adopt(asked: AdoptRequest, out: Console) -> None:
    """Write the family of a kernel and print what came of it. Raises UsageError for a folder that is there, FamilyError
    for a kernel that no family can hold, StoreError when a file cannot be written."""
    if bool(asked.grid) != bool(asked.block):
        raise UsageError("--grid and --block are a launch together: give both or neither")
    with own_folder() as folder:
        child = Child(_serve, (asked,), folder=folder, what="a process that reads the source", error=FamilyError,
                      tidies=True)  # fmt: skip
        try:
            lines = _await_lines(child, asked.path, out)
        finally:
            child.close()
    for line in lines:
        out.print(line, markup=False, highlight=False, soft_wrap=True)


def _await_lines(child: Child, path: Path, out: Console) -> list[str]:
    step = "reading the file"
    with out.status(step) if out.is_terminal else nullcontext() as status:
        while True:
            limit = _READ_SECONDS if step.startswith("reading") else _STEP_SECONDS
            if not child.poll(time.monotonic() + limit):
                raise FamilyError(f"{path}: {step} took more than {limit:.0f} s: give a smaller file")
            try:
                message = child.pipe.recv()
            except (EOFError, ConnectionResetError):
                raise FamilyError(
                    f"{path}: the process that was {step} {child.death()}: it may have {_BYTES >> 30} GiB of memory, "
                    "and what is nested very deep ends it; give a smaller file"
                ) from None
            match message:
                case Answer(lines):
                    return list(lines)
                case Failure():
                    raise message.error()
                case Warned(text):
                    warn(text)
                case str():
                    step = message
                    if status:
                        status.update(step)


def _serve(pipe: Connection, asked: AdoptRequest) -> None:
    with report_problems(pipe):
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + _BYTES
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (limit if hard < 0 else min(limit, hard), hard))
        os.environ["OPENBLAS_NUM_THREADS"] = "1"  # each would have memory of its own
        try:
            pipe.send(Answer(_adopt(asked, pipe.send)))
        except (RecursionError, AssertionError, ctypes.ArgumentError):  # the last out of libclang
            raise FamilyError(f"{asked.path}: its expressions are nested too deep to be read") from None
        except MemoryError:
            raise FamilyError(f"{asked.path}: reading it takes more than {_BYTES >> 30} GiB") from None


def _adopt(asked: AdoptRequest, told_: Callable[[str], None]) -> list[str]:
    name, _, values = asked.kernel.partition("<")
    source = read_source(asked.path, asked.options).find_source_of(name)
    kernel = source.kernel(name)
    family = family_name(asked.out_folder.name if asked.out_folder else kernel.spelling)
    folder = asked.out_folder or Path(family)
    if folder.exists() or folder.is_symlink():
        raise UsageError(f"{folder} already exists, and nothing is overwritten: name another one with -o")
    if family in families():
        raise UsageError(f"a family named {family!r} ships with autotune: name another folder with -o")
    defines = tuple(option for option in asked.options if option.startswith("-D"))
    given = split(values.rpartition(">")[0]) if values else ()
    adopter = Adopter(source, kernel.spelling, family, defines, given, asked.grid, asked.block, told_)
    adoption = adopter.adopt()
    lines = report(adoption, asked.path)
    adoption.files["adopted.txt"] = "\n".join(lines) + "\n"
    try:
        write(folder, adoption.files)
        header = default_header(load_family(folder.resolve()))
        (folder / "default.cuh").write_text(header, encoding="utf-8")
    except OSError as problem:
        raise StoreError(
            f"cannot write {folder}: {problem.strerror or problem}; name another folder with -o"
        ) from None
    shown = shlex.quote(str(folder if folder.is_absolute() else f"./{folder}"))
    next_ = f"set your sizes in {shown}/workloads/adopted.yaml, autotune lint {shown}, autotune sweep {shown}"
    return [*lines, f"made {shown} in {adoption.seconds:.1f} s; next: {next_}"]


def report(adoption: Adoption, path: Path) -> list[str]:
    """What became of each pointer, what was guessed, and what the runs showed, in lines."""
    declaration, outcome, shares = adoption.declaration, adoption.outcome, list[str]()
    # How much of each output the runs wrote, or came to.
    for name, share in measure_coverage(outcome, adoption.arrays).items():
        part, came = f"{outcome.written[name]:.0%}", f"{share:.0%}"
        shares.append(f"{part} of {name} was written{f' ({came} was reached)' if came != part else ''}")
    text = render(
        "adopted.txt.jinja", of=declaration, path=path, notes=adoption.notes, outcome=outcome, shares=shares,
        is_open=any(map(declaration.is_open, adoption.arrays)),
    )  # fmt: skip
    return text.removesuffix("\n").split("\n")
