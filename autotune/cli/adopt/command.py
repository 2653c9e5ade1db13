"""``autotune adopt``: what is written, and what is said of it."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from autotune.cli.adopt.adoption import Adopter, Adoption, family_name, write
from autotune.cli.adopt.arrays import Array
from autotune.cli.adopt.source import read_source
from autotune.compile import default_header
from autotune.declaration import families, load_family
from autotune.errors import StoreError, UsageError


def adopt(path: Path, out_folder: Path | None, kernel: str, options: Sequence[str], out: Console) -> Adoption:
    """Write the family of a kernel and print what came of it. Raises UsageError for a folder that is there, FamilyError
    for a kernel that no family can hold, StoreError when a file cannot be written."""
    source = read_source(path, options).having(kernel)
    found = source.kernel(kernel)
    name = family_name(out_folder.name if out_folder else found.spelling)
    folder = out_folder or Path(name)
    if folder.exists() or folder.is_symlink():
        raise UsageError(
            f"{folder} is there already, and nothing is overwritten: name another folder with -o"
        )
    if name in families():
        raise UsageError(f"a family named {name!r} ships with autotune: name another folder with -o")
    defines = tuple(option for option in options if option.startswith("-D"))
    adoption = Adopter(source, found.spelling, name, defines).adopt()
    adoption.files["adopted.txt"] = "\n".join(told(adoption, path)) + "\n"
    try:
        write(folder, adoption.files)
        header = default_header(load_family(folder.resolve()))
        (folder / "default.cuh").write_text(header, encoding="utf-8")
    except OSError as problem:
        raise StoreError(
            f"cannot write {folder}: {problem.strerror or problem}; name another folder with -o"
        ) from None
    _print(adoption, path, folder, out)
    return adoption


def told(adoption: Adoption, path: Path) -> Iterator[str]:
    """What became of each pointer, what was guessed, and what the runs showed."""
    yield f"{path}: kernel {adoption.declaration.function.name}"
    for array in adoption.arrays:
        yield f"  {array.name}: {_said(array, adoption, path)}"
    for note in adoption.notes:
        yield f"  {note}"
    geometry = adoption.declaration.geometry
    grid, block = ", ".join(geometry.grid), ", ".join(geometry.block)
    yield f"  launch: grid [{grid}], block [{block}] - a guess, check it"
    outcome = adoption.outcome
    if outcome.is_proved:
        yield (
            f"proved: {outcome.runs} runs with random inputs on the cpu device, {outcome.accesses} accesses of memory "
            "at the same addresses in the same order, and the same results"
        )
        if outcome.unseen:
            yield (
                "  but for writes of whole records, which the compiler does not show where a function returns one: "
                "those are compared by what they leave"
            )
        if outcome.turned:
            yield (
                f"  but for {outcome.turned} places where an expression leaves it to the compiler which of its "
                "operands is loaded first"
            )
    else:
        yield f"unproved: {outcome.why}"


def _said(array: Array, adoption: Adoption, path: Path) -> str:
    if not array.is_accessor:
        return f"stays a pointer, {path}:{array.pointer.line}: {array.pointer.reason}"
    declaration = adoption.declaration
    role = (
        "input" if not array.is_written else "read and written" if array in declaration.in_place else "output"
    )
    element = array.record or array.type
    shape, uses = ", ".join(declaration.shape(array)), len(array.pointer.accesses)
    return f"accessor, {role}, {element} [{shape}], {uses} accesses"


def _print(adoption: Adoption, path: Path, folder: Path, out: Console) -> None:
    for line in told(adoption, path):
        out.print(line, markup=False, highlight=False, soft_wrap=True)
    shown = shlex.quote(str(folder if folder.is_absolute() else f"./{folder}"))
    out.print(f"made {shown} in {adoption.seconds:.1f} s; next: autotune lint {shown}, autotune sweep {shown}",
              markup=False, highlight=False, soft_wrap=True)  # fmt: skip
