"""``autotune run``: the tuned kernel once, on data from files, or what a family makes of it (``application``)."""

import fcntl
import logging
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from glob import escape
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from autotune import files as paths
from autotune.cli import options
from autotune.declaration import Family, Inputs, bind, load_family, load_workload, prepare, read_npy
from autotune.dispatch import Choosing, TunedKernel, explain_chain
from autotune.errors import StoreError, UnknownName, UsageError, explained
from autotune.files import write_file

Note = Callable[[str], None]
_ONE_CALL = "with-transform"  # the objective of a program that makes one
_YOUNGEST_S = 60.0  # a younger partial file may be of a run that is about to lock it


class OpenKernel(AbstractContextManager[Any], Protocol):
    """A kernel on its device or devices."""

    @property
    def family(self) -> Family: ...
    def run(self, inputs: Inputs) -> Mapping[str, NDArray[Any]]: ...


Opener = Callable[[Family], OpenKernel]


@dataclass(frozen=True)
class RunRequest:
    """A call as the command line asks for it: on a workload, or on what ``given`` has (name=value). A family's
    application takes what is given, unless that is every input array of the kernels by name."""

    family: Family
    workload: str = ""
    given: tuple[str, ...] = ()
    output: Path | None = None
    policies: Path | None = None
    data: Path | None = None

    @cached_property
    def texts(self) -> dict[str, str]:
        """What is given, by name. Raises UsageError, StoreError where it, the workload or the output do not fit
        together."""
        if self.given and self.workload:
            raise UsageError("give the input with -i or with --workload, not both")
        texts = _texts(self.given)
        if self.output is not None:
            _check_place(self.output, texts)
        return texts

    @cached_property
    def application(self) -> Any:
        """What takes the texts; None where the kernels do."""
        found = getattr(self.family.module, "application", None) if self.texts else None
        return None if {data.name for data in self.family.inputs} <= self.texts.keys() else found

    def enable_notes(self, note: Note) -> Note:
        """Have the logger say what the call does; return ``note``, or one that prints to stderr where the output
        goes to stdout."""
        logging.getLogger("autotune").setLevel(logging.INFO)
        is_stdout = self.output is not None and paths.is_stdout(self.output)
        return partial(print, file=sys.stderr) if is_stdout else note

    def inputs(self) -> Inputs:
        """Of a call of the kernels themselves. Raises UsageError for an output that has no form for their results."""
        family = self.family
        if self.output is not None:
            allowed = ".npy" if len(family.outputs) == 1 else ".npz"
            named = self.output.suffix == allowed or not paths.is_plain(self.output)
            if getattr(family.module, "write", None) is None and not named:
                raise UsageError(f"-o {self.output}: the name must end in {allowed}")
        if self.texts:
            return _read_inputs(family, self.texts)
        return prepare(family, load_workload(family, self.workload), paths.data_root(self.data))


@options.family_argument
@options.call_options
@options.device_option
@options.policies_option
@options.data_option
@options.option("--explain", help="Print why this configuration was chosen.")
def run_command(family: str, device: str, explain: bool, **asked: Any) -> None:
    call = RunRequest(load_family(family, check=False), **asked)
    if "," in device:
        raise UsageError(f"run calls the kernel on one device, not on {device}: name one")

    def open_tuned(tuned: Family) -> TunedKernel:
        folders = paths.policy_folders(call.policies, tuned.folder)
        return TunedKernel(tuned, device, Choosing(folders=folders, objective=_ONE_CALL))

    run_call(call, open_tuned, print, explain=explain)


def run_call(call: RunRequest, opened: Opener, note: Note, *, explain: bool = False) -> None:
    """Make the call on the kernel that ``opened`` opens; ``note`` prints a line, to stderr where the output goes to
    stdout. Bad input is rejected before the device is opened; the output appears whole or not at all."""
    texts, output, note = call.texts, call.output, call.enable_notes(note)
    inputs = None if call.application else call.inputs()
    with _write_whole(output) as unfinished, ExitStack() as held:

        def open_kernel(name: str = "") -> OpenKernel:
            """The family's kernel, or another's of that name that it builds on."""
            kernel = opened(load_family(name, check=False) if name else call.family)
            held.enter_context(kernel)
            return kernel

        if inputs is not None:
            _call(open_kernel(), inputs, unfinished, explain, note)
        elif call.application is not None:
            if explain:
                held.enter_context(_forward_logs(note))
            call.application(texts, unfinished, open_kernel, note)
    if output is not None:
        note(f"written      {output}")


def _call(kernel: OpenKernel, inputs: Inputs, unfinished: Path | None, explain: bool, note: Note) -> None:
    """Make one call, print a line on it, and write its results to the file ``unfinished``."""
    family = kernel.family
    if isinstance(kernel, TunedKernel):
        chosen, passed = kernel.explain(inputs)
        begin = time.perf_counter()
        outputs: Mapping[str, NDArray[Any]] = kernel.run(inputs)
        elapsed = time.perf_counter() - begin
        if explain:
            note(explain_chain(chosen, passed))
        assert chosen.configuration is not None
        ran = f"{chosen.configuration.id} ({chosen.match}), {elapsed:.3f} s"
        note(f"{family.name} on {kernel.device}: {ran}")
    else:  # which tells of itself
        outputs = kernel.run(inputs)
    _put(family, outputs, unfinished, note)


def _put(family: Family, outputs: Mapping[str, NDArray[Any]], unfinished: Path | None, note: Note) -> None:
    for name, array in outputs.items():
        note(f"{name}: {array.dtype} {array.shape}")
    if unfinished is not None:
        _write(family, outputs, unfinished)


def write_outputs(
    family: Family, outputs: Mapping[str, NDArray[Any]], output: Path | None, note: Note
) -> None:
    """Print the form of ``outputs`` and write them. Raises StoreError."""
    with _write_whole(output) as unfinished:
        _put(family, outputs, unfinished, note)
    if output is not None:
        note(f"written      {output}")


@contextmanager
def _forward_logs(note: Note) -> Iterator[None]:
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


def _read_inputs(family: Family, texts: Mapping[str, str]) -> Inputs:
    names, reader = [data.name for data in family.inputs], getattr(family.module, "read", None)
    arrays: dict[str, Any] = {}
    options: dict[str, str] = {}
    for name, text in texts.items():
        if name in family.options:
            options[name] = text
        elif name in family.scalars:
            try:
                arrays[name] = float(text)
            except ValueError:
                raise UsageError(f"-i {name}={text!r}: a number is needed") from None
        elif name in names:
            array = reader(name, text) if reader else None
            arrays[name] = read_npy(Path(text), f"-i {name}") if array is None else np.asarray(array)
        else:
            raise UnknownName(
                "input", name, [*names, *family.callers_scalars, *family.options], f"family {family.name}"
            )
    return bind(family, arrays, options, {})


def _check_place(output: Path, given: Mapping[str, str]) -> None:
    with explained(StoreError, f"-o {output}:"):
        if not output.parent.is_dir():
            raise StoreError(f"-o {output}: the folder {output.parent} does not exist")
        # Not is_dir, which in newer Pythons says nothing of a name that is too long.
        with suppress(FileNotFoundError):
            if stat.S_ISDIR(output.stat().st_mode):
                raise StoreError(f"-o {output} is a folder; name a file in it")
    for name, text in given.items():
        with suppress(OSError, ValueError):  # what is not there, or no path, cannot be replaced
            if output.samefile(text):
                raise UsageError(
                    f"-o {output} is -i {name}={text}: the output would replace it; name another file"
                )


@contextmanager
def _write_whole(output: Path | None) -> Iterator[Path | None]:
    """Where to write what becomes ``output`` when the block ends well, and vanishes otherwise: a name nobody can know
    before, that ends as ``output`` does, from which a family may take the form of the file."""
    if output is None:
        yield None
        return
    temporary: Path | None = None
    ending = f".partial{output.suffix}"
    try:  # a place where nothing can be written shows before anything is done
        with write_file(output, ending) as temporary, lock_output(temporary, ending):
            yield temporary
    except OSError as problem:
        known = temporary is None or problem.filename in (None, str(temporary))
        what = problem.strerror or str(problem)
        raise StoreError(f"cannot write {output}: {what if known else problem}") from None


@contextmanager
def lock_output(unfinished: Path, ending: str) -> Iterator[None]:
    """Lock ``unfinished`` while the block lasts, and remove what killed runs have left of the same output: partial
    files that nobody has locked. On a file system without locks they stay."""
    alike = escape(unfinished.name.removesuffix(ending)[:-16]) + "[0-9a-f]" * 16 + escape(ending)
    with unfinished.open("rb+") as own:
        with suppress(OSError):
            fcntl.flock(own, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for left in unfinished.parent.glob(alike):  # the random letters are files.written's
                with suppress(OSError), os.fdopen(os.open(left, os.O_RDWR | os.O_NOFOLLOW)) as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails where another run writes it
                    if time.time() - os.fstat(file.fileno()).st_mtime > _YOUNGEST_S:
                        left.unlink()
        yield


def _write(family: Family, outputs: Mapping[str, NDArray[Any]], path: Path) -> None:
    if (writer := getattr(family.module, "write", None)) is not None:
        writer(outputs, path)
        return
    with path.open("wb") as file:
        if len(outputs) == 1:
            np.save(file, next(iter(outputs.values())))
        else:
            np.savez(file, **outputs)  # type: ignore[arg-type]
