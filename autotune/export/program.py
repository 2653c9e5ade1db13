"""``autotune export``: the winners of policy files as CUDA C++ that needs neither Python nor autotune.

``choices`` says what goes in, ``parts`` puts it into C++'s words, ``templates/`` has the files that are generated and
``cpp/`` those that are copied.
"""

import math
import re
import shlex
import shutil
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from numpy.typing import NDArray
from rich.console import Console

from autotune import __version__
from autotune import files as paths
from autotune.compile import default_root, enumeration
from autotune.declaration import Family, Inputs, load_workload, prepare, source_files
from autotune.errors import FamilyError, PolicyFileError, StoreError, WorkloadError, explained
from autotune.export.choices import identifier, select_entries
from autotune.export.orders import permutations
from autotune.export.parts import c_element, number_type, parts, problem_values, quote
from autotune.measure import compute_expected, find_objective
from autotune.policy import PolicyFile, file_name, file_of, read_policy_file

_HERE = Path(__file__).parent
_MOST_EXAMPLE_BYTES = 64 << 20


def export(
    family: Family, devices: Sequence[str], folder: Path, out: Console, *, workload: str = "",
    objective: str = "kernel", policies: Path | None = None, data: Path | None = None,
) -> None:  # fmt: skip
    """Write into ``folder`` what the policy files of ``devices``, named as files are (nvidia-h200), have for
    ``objective``, with an example on ``workload`` (the family's default). Raises FamilyError, PolicyFileError,
    WorkloadError, and StoreError for a folder that cannot be written or holds something else."""
    find_objective(objective)
    files = [_policy_file(family, name, paths.policy_folders(policies, family.folder)) for name in devices]
    choices = select_entries(family, files, objective)
    example = load_workload(family, workload)
    inputs = prepare(family, example, paths.data_root(data))
    _check_size(family, example.name, inputs)
    expected, _ = compute_expected(family, inputs, default_root())
    arrays = {**inputs.arrays, **expected, **permutations(choices, inputs)}
    problem = problem_values(family, inputs.sizes, inputs.options, inputs.scalars)
    made_from = (f"{file.path.name if file.path else ''} ({_dates(file)})" for file in files)
    context = {
        **parts(choices), "version": __version__, "date": datetime.now(UTC).date().isoformat(),
        "devices": ", ".join(file.device.name for file in files), "provenance": ", ".join(made_from),
        "source": family.source.name, "example": {"about": f"workload {example.name}", "problem": problem},
        "counts": {name: array.size for name, array in arrays.items()},
    }  # fmt: skip
    with explained(StoreError, f"cannot write to {folder}:", "; name another folder with -o"):
        written = _write(family, folder, context, arrays)
    out.print(
        f"{len(choices.winners)} configurations of {family.name} for {len(choices.entries)} entries: {len(written)} "
        f"files in {folder}, {folder / 'README.md'} explains how to build them",
        markup=False,
    )
    for item in choices.left_out:
        out.print(f"left out  {item}", markup=False)


def _policy_file(family: Family, name: str, folders: Sequence[Path]) -> PolicyFile:
    if (path := file_of(family, name, folders)) is not None:
        return read_policy_file(path)
    there = {path.stem for folder in folders for path in (folder / family.name).glob("*.yaml")}
    raise PolicyFileError(
        f"no policy file {file_name(family.name, name)} in {', '.join(map(str, folders))} (there: "
        f"{', '.join(sorted(there)) or 'none'}); a sweep on that device makes one, and docs/guides/no-gpu.md shows one "
        "to write by hand"
    )


def _dates(file: PolicyFile) -> str:
    dates = sorted({item.date[:10] for item in file.entries.values() if item.date})
    return f"measured {' to '.join(dict.fromkeys([dates[0], dates[-1]]))}" if dates else "nothing measured"


def _check_size(family: Family, workload: str, inputs: Inputs) -> None:
    """Raise WorkloadError where the example would be too large; before its outputs are computed."""
    size = sum(array.nbytes for array in inputs.arrays.values())
    for data in family.outputs:
        size += data.dtype.itemsize * math.prod(inputs.sizes[extent] for extent in data.shape)
    if size > _MOST_EXAMPLE_BYTES:
        raise WorkloadError(
            f"workload {workload} has {size >> 20} MiB of inputs and outputs, and an example at most "
            f"{_MOST_EXAMPLE_BYTES >> 20} MiB; name a smaller one with --workload"
        )


@cache
def _templates() -> jinja2.Environment:
    """One for all exports: each template is compiled once."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 (it is C++)
    )
    environment.filters |= {
        "quoted": quote, "line": line, "cell": cell, "shell": shlex.join, "c_element": c_element,
        "cpp": lambda word: identifier(str(word)), "enumeration": enumeration, "number_type": number_type,
    }  # fmt: skip
    return environment


def _write(
    family: Family, folder: Path, context: dict[str, Any], arrays: dict[str, NDArray[Any]]
) -> list[Path]:
    if folder.is_dir() and any(folder.iterdir()) and not (folder / f"{family.name}_policies.cuh").is_file():
        raise StoreError(
            f"{folder} is not empty and holds no export of {family.name}; name another folder with -o"
        )
    texts: dict[str, bytes] = {}
    old = ("kernels", "tuned", "example")  # an export that was here may have had other files in them
    _check_no_links(folder, old)
    for path in sorted((_HERE / "templates").iterdir()):
        name = path.stem.replace("family", family.name, 1)
        texts[name] = _templates().get_template(path.name).render(context).encode()
    for path in sorted((_HERE / "cpp").iterdir()):
        texts[f"tuned/{path.name}"] = path.read_bytes()
    for name, path in list_included(family).items():
        texts[f"kernels/{name}"] = path.read_bytes()
    for name, array in arrays.items():
        texts[f"example/{name}.bin"] = array.tobytes()
    _check_no_links(folder, texts)
    for name in old:
        shutil.rmtree(folder / name, ignore_errors=True)
    for name, content in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        with path.open("xb") as file:  # a new file: a link that is there by now is not followed
            file.write(content)
    return [folder / name for name in texts]


def _check_no_links(folder: Path, names: Iterable[str]) -> None:
    """Raise StoreError where one of ``names`` below ``folder`` is a link: what it leads to is somebody else's."""
    for name in names:
        path = folder / name
        while path != folder:
            if path.is_symlink():
                raise StoreError(
                    f"{path} is a link, which is not written through; name another folder with -o"
                )
            path = path.parent


def line(text: str) -> str:
    """``text`` for a comment of one line, which neither a line end nor a backslash at its end may carry on."""
    words = "".join(c if c.isprintable() else " " for c in text).split()
    return " ".join(words).rstrip("\\ ")


def cell(text: str) -> str:
    """``text`` for a table or a sentence of Markdown: no markup, no link, no HTML."""
    return re.sub(r"([\\`*\[\]<>|~!])", r"\\\1", line(text))


def list_included(family: Family) -> dict[str, Path]:
    """Return the kernel source and every header it includes, by the name in the include. Raises FamilyError for a
    header that is neither in the family's folder nor in the layout library."""
    library = paths.include_dir()
    needed = [library / header for header in family.layout_headers]
    files = source_files.follow_includes([family.source, *needed], family.folder, library)
    if (editors := family.folder / source_files.EDITORS_HEADER).is_file():
        files[source_files.EDITORS_HEADER] = editors
    for path in list(files.values()):
        for name in source_files.find_quoted_includes(path.read_text(encoding="utf-8", errors="replace")):
            is_there = any((place / name).is_file() for place in (path.parent, library, family.folder))
            if not is_there and Path(name).suffix in source_files.SUFFIXES:
                raise FamilyError(
                    f"family {family.name} cannot be exported: {name} is included and in neither of "
                    f"{family.folder} and {library}"
                )
    if outside := [name for name in files if name.startswith("..")]:
        raise FamilyError(
            f"family {family.name} cannot be exported: {outside[0]} is included, which is outside of "
            f"{family.folder}; move it there"
        )
    return dict(sorted(files.items()))
