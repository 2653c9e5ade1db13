"""``autotune run``: the tuned kernel once, on data from files, or what a family makes of it (``application``)."""

import logging
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer
from numpy.typing import NDArray

from autotune import files as paths
from autotune.cli.leftovers import alone
from autotune.compile import Cache, default_root
from autotune.declaration import Family, Inputs, bind, load_family, prepare, read_npy
from autotune.declaration import load_workload as load
from autotune.device import device_names
from autotune.dispatch import Choosing, TunedKernel, explained
from autotune.errors import AutotuneError, StoreError, UnknownName, UsageError
from autotune.files import written

if TYPE_CHECKING:
    from autotune.dispatch import RankKernel, Report, Spread, SpreadKernel

    Opened = TunedKernel | SpreadKernel

Note = Callable[[str], None]
_ONE_CALL = "with-transform"  # the objective of a program that makes one


def run(
    family: Family, workload: str, given: Sequence[str], output: Path | None, device: str, policies: Path | None,
    data: Path | None, explain: bool, note: Note, allocation: str = "", mpi: bool = False,
) -> None:  # fmt: skip
    """Inputs from ``given`` (name=value) or a workload -> outputs in ``output``; ``note`` prints a line, to
    stderr where the output goes to stdout. Bad input is refused before the device is opened; the output appears whole
    or not at all. Several devices (``cuda:0,1``) share the work of a family that has units, as ``allocation`` says.

    A family's ``application`` takes what is given, unless that is every input array of the kernels by name."""
    if given and workload:
        raise UsageError("give the input with -i or with --workload, not both")
    texts = _texts(given)
    if output is not None:
        _check_place(output, texts)
        if paths.is_stdout(output):
            note = partial(print, file=sys.stderr)
    devices = _devices(family, device, allocation, mpi)
    logging.getLogger("autotune").setLevel(logging.INFO)
    application = getattr(family.module, "application", None) if given else None
    if application is not None and {data.name for data in family.inputs} <= texts.keys():
        application = None
    if application is not None and mpi:
        raise UsageError(
            f"--mpi shares a call of the kernels: give a workload or every input of {family.name} by name, "
            "its application runs in one process"
        )
    inputs = None if application else _inputs(family, texts, workload, output, data)
    if mpi:
        assert inputs is not None
        from autotune.dispatch import RankKernel

        ranks = RankKernel(family, device, policies, allocation or "automatic", _teller(note))
        _run_rank(ranks, inputs, output, note)
        return

    with _whole(output) as unfinished, ExitStack() as opened:

        def open_kernel(name: str = "") -> "Opened":
            """The family's kernel, or another's of that name that it builds on: on the same devices, from the same
            policy files."""
            of = load_family(name, check=False) if name else family
            kernel = _kernel(of, devices, policies, allocation, note)
            opened.enter_context(kernel)
            return kernel

        if inputs is not None:
            _call(open_kernel(), inputs, unfinished, explain, note)
        elif application is not None:
            if explain:
                opened.enter_context(_told(note))
            application(texts, unfinished, open_kernel, note)
    if output is not None:
        note(f"written      {output}")


def _inputs(
    family: Family, texts: Mapping[str, str], workload: str, output: Path | None, data: Path | None
) -> Inputs:
    """Of a call of the kernels themselves. Raises UsageError for an ``output`` that has no form for their results."""
    if output is not None:
        allowed = ".npy" if len(family.outputs) == 1 else ".npz"
        named = output.suffix == allowed or not paths.is_plain(output)
        if getattr(family.module, "write", None) is None and not named:
            raise UsageError(f"-o {output}: the name must end in {allowed}")
    return _given(family, texts) if texts else prepare(family, load(family, workload), paths.data_root(data))


def _call(kernel: "Opened", inputs: Inputs, unfinished: Path | None, explain: bool, note: Note) -> None:
    """One call, what is told of it, and its results in the file ``unfinished``."""
    family = kernel.family
    if isinstance(kernel, TunedKernel):
        chosen, passed = kernel.explain(inputs)
        begin = time.perf_counter()
        outputs = kernel.run(inputs)
        elapsed = time.perf_counter() - begin
        if explain:
            note(explained(chosen, passed))
        assert chosen.configuration is not None
        ran = f"{chosen.configuration.id} ({chosen.match}), {elapsed:.3f} s"
        note(f"{family.name} on {kernel.device_for(inputs)}: {ran}")
    else:  # which tells of itself
        outputs = kernel.run(inputs)
    for name, array in outputs.items():
        note(f"{name}: {array.dtype} {array.shape}")
    if unfinished is not None:
        _write(family, outputs, unfinished)


def _devices(family: Family, text: str, allocation: str, mpi: bool) -> list[str]:
    """The devices named. Raises UsageError and UnknownName for what cannot be spread."""
    names = device_names(text) if "," in text else [text]
    if not allocation and len(names) == 1:
        return names
    from autotune.dispatch import ALLOCATIONS, Spread

    if mpi and len(names) > 1:
        raise UsageError(f"--mpi is a rank for each device: name one, or cuda for the next one, not {text}")
    if allocation and len(names) == 1 and not mpi:
        raise UsageError(f"--allocation {allocation} goes with several devices (--device cuda:0,1)")
    if allocation not in ("", *ALLOCATIONS):
        raise UnknownName("allocation", allocation, ALLOCATIONS)
    if len(names) > 1 or mpi:
        Spread.check(family, names)
    return names


def _kernel(
    family: Family, devices: Sequence[str], policies: Path | None, allocation: str, note: Note
) -> "Opened":
    if len(devices) == 1:
        cache = Cache(default_root())
        return TunedKernel(family, devices[0], policies, cache, Choosing(objective=_ONE_CALL))
    from autotune.dispatch import SpreadKernel

    return SpreadKernel(family, devices, policies, allocation or "automatic", _teller(note))


def _teller(note: Note) -> "Callable[[Spread, Report], None]":
    """Tells of each run."""

    def told(spread: "Spread", report: "Report") -> None:
        on = ", ".join(share.device for share in report.shares)
        note(
            f"{spread.family.name} on {on}: {report.configuration} ({spread.match}), {report.elapsed_s:.3f} s"
        )
        for line in report.lines():
            note(f"  {line}")

    return told


def _run_rank(kernel: "RankKernel", inputs: Inputs, output: Path | None, note: Note) -> None:
    """One call of all ranks; the first tells of it, and writes the results."""
    if output is not None and paths.is_plain(output):
        paths.writable(output.resolve().parent)
    try:
        outputs = kernel.run(inputs)
    except AutotuneError as problem:
        if kernel.is_told:
            raise
        raise typer.Exit(problem.exit_code) from None
    if not kernel.is_first:
        return
    with _whole(output) as unfinished:
        for name, array in outputs.items():
            note(f"{name}: {array.dtype} {array.shape}")
        if unfinished is not None:
            _write(kernel.family, outputs, unfinished)
    if output is not None:
        note(f"written      {output}")


@contextmanager
def _told(note: Note) -> Iterator[None]:
    """What the dispatcher logs goes to ``note``, each line once however often it chooses."""
    told: set[str] = set()

    class Teller(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if (line := record.getMessage()) not in told:
                told.add(line)
                note(line)

    teller = Teller()
    logger = logging.getLogger("autotune")
    logger.addHandler(teller)
    try:
        yield
    finally:
        logger.removeHandler(teller)


def _texts(items: Sequence[str]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for item in items:
        name, separator, text = item.partition("=")
        if not separator:
            raise UsageError(f"cannot read -i {item!r}: write -i name=value")
        if name in texts:
            raise UsageError(f"-i {name} is given twice: {texts[name]!r} and {text!r}")
        texts[name] = text
    return texts


def _given(family: Family, texts: Mapping[str, str]) -> Inputs:
    names = [data.name for data in family.inputs]
    arrays: dict[str, Any] = {}
    options: dict[str, str] = {}
    for name, text in texts.items():
        if name in family.options:
            options[name] = text
        elif name in family.scalars:
            arrays[name] = _number(name, text)
        elif name in names:
            arrays[name] = _array(family, name, text)
        else:
            raise UnknownName(
                "input", name, [*names, *family.scalars, *family.options], f"family {family.name}"
            )
    return bind(family, arrays, options, {})


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"-i {name}={text!r}: a number is needed") from None


def _array(family: Family, name: str, text: str) -> NDArray[Any]:
    reader = getattr(family.module, "read", None)
    array = reader(name, text) if reader else None
    if array is not None:
        return np.asarray(array)
    return read_npy(Path(text), f"-i {name}")


def _check_place(output: Path, given: Mapping[str, str]) -> None:
    try:
        if not (output.parent if str(output.parent) else Path()).is_dir():
            raise StoreError(f"-o {output}: the folder {output.parent} is not there")
        # Not is_dir, which in newer Pythons says nothing of a name that is too long.
        with suppress(FileNotFoundError):
            if stat.S_ISDIR(output.stat().st_mode):
                raise StoreError(f"-o {output} is a folder; name a file in it")
    except OSError as problem:
        raise StoreError(f"-o {output}: {problem.strerror}") from None
    for name, text in given.items():
        with suppress(OSError, ValueError):  # what is not there, or no path, cannot be replaced
            if output.samefile(text):
                raise UsageError(
                    f"-o {output} is -i {name}={text}: the output would replace it; name another file"
                )


@contextmanager
def _whole(output: Path | None) -> Iterator[Path | None]:
    """Where to write what becomes ``output`` when the block ends well, and vanishes otherwise: a name nobody can know
    before, that ends as ``output`` does, from which a family may take the form of the file."""
    if output is None:
        yield None
        return
    temporary: Path | None = None
    try:  # a place where nothing can be written shows before anything is done
        with written(output, f".partial{output.suffix}") as temporary, alone(temporary):
            yield temporary
    except OSError as problem:
        known = temporary is None or problem.filename in (None, str(temporary))
        what = problem.strerror or str(problem)
        raise StoreError(f"cannot write {output}: {what if known else problem}") from None


def _write(family: Family, outputs: Mapping[str, NDArray[Any]], path: Path) -> None:
    if (writer := getattr(family.module, "write", None)) is not None:
        writer(outputs, path)
        return
    with path.open("wb") as file:
        if len(outputs) == 1:
            np.save(file, next(iter(outputs.values())))
        else:
            np.savez(file, **outputs)  # type: ignore[arg-type]
