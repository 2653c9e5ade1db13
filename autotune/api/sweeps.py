"""``autotune.sweep``: as the command, with the same record, and nothing printed.

Arrays that a program gives are kept as a workload: its name follows from what is in them, and its file can be swept,
profiled and checked as any other.
"""

import re
from collections.abc import Iterable, Mapping
from functools import partial
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, get_args

import numpy as np
import yaml

from autotune.api.prior import name_five, read_prior
from autotune.api.result import SweepResult
from autotune.declaration import Family, Inputs, Workload, bind, load_family, load_workload, workloads
from autotune.device import foreign
from autotune.engine import OPTIONS, Case, Option, SweepRequest, Watched, open_session, raise_unless_measured
from autotune.errors import StoreError, UnknownName, UsageError, explained, suggestion
from autotune.files import replace_file, write_text
from autotune.measure import KERNEL, Reference
from autotune.record import Study
from autotune.report import make_console, show_live

_LONGEST = 60  # characters that the sizes take of a name


def sweep(
    family: Any,
    /,
    *,
    workload: str | Path | Workload | None = None,
    inputs: Mapping[str, Any] | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002 - the command's own word
    preset: str = "full",
    search: str = "",
    prior: str | Path | Iterable[str | Path] | None = None,
    trials: int | None = None,
    budget: str | float = "",
    seed: int = 0,
    device: str = "auto",
    reference: Reference | None = None,
    expected: Any = None,
    cold: bool = True,
    objective: str = KERNEL,
    clocks: str | int = "",
    samples: int = 0,
    race: float = 0.0,
    compiler: str = "",
    processes: int = 0,
    trial_seconds: float = 120.0,
    sanitize: bool = False,
    bounds: bool = False,
    again: bool = False,
    retime: bool = False,
    out: str | Path | None = None,
    store: str | Path | None = None,
    data: str | Path | None = None,
    progress: bool | Watched = True,
    **named: Any,
) -> SweepResult:
    """Compile, verify and time configurations of a family.

    Args:
        family: a name, a folder, or an object that has a family, such as an ``autotune.Kernel``.
        workload: a workload of the family, by name or file; by default the family's own.
        inputs, named: inputs, scalars and options of the family by name (arrays of numpy, torch, cupy and others), in
            place of a workload. ``inputs`` is for names that are arguments of this function.
        set: values to which policies are restricted: ``{"packing": "u8"}``, ``{"block": [64, 128]}``.
        preset: a named part of the space.
        reference: a function of (inputs, options) that returns the expected outputs, in place of the family's own.
        expected: the expected outputs themselves: an array, or several by name.
        cold: flush the last-level cache before each sample of given arrays.
        again, retime: try recorded configurations again; time the finalists again.
        progress: show a bar on a terminal and in a notebook, or a function that makes another watch; nothing else is
            printed.
        search, trials, budget, seed, device, objective, clocks, samples, race, compiler, processes, trial_seconds,
            sanitize, bounds, out, store, data: as the options of ``autotune sweep``.
            ``prior`` is its ``--from``: records or policy files. Times are in seconds; ``budget`` may also be ``"5m"``;
            a budget of 0 measures nothing, and the result has the ``named`` configurations alone.

    Returns:
        The result, with trials, winner, report and policy file. Recorded configurations are not tried again; after
        Ctrl-C the same call resumes.

    Raises:
        AutotuneError: an argument is wrong, or nothing could be measured.
    """
    asked = locals()
    loaded = _family(family)
    _check_arguments(loaded, asked)
    options = {name: _field(option, asked[option.argument]) for name, option in _BY_NAME.items()}
    request = SweepRequest(family=loaded, **options)
    given = _collect_inputs(inputs or {}, named, workload)
    request.check()
    if reference is not None and expected is not None:
        raise UsageError(
            "reference= computes the expected outputs, expected= gives them: pass one of the two"
        )
    case = _case(request, workload, given, cold, reference if expected is None else expected)
    elsewhere = read_prior(request)
    if request.strategy.seconds == 0:
        name = case.workload.name
        record = Study(
            family=loaded.name, workload=name, device="", identity="", control=loaded.space.control
        )
        return SweepResult(loaded, record, request, 0.0, {}, name_five(request, name, elsewhere)[1])
    watch = progress if callable(progress) else partial(show_live, err=make_console(progress))
    with open_session(request, [case], watch, elsewhere=elsewhere) as session:
        (swept,) = session.sweeps()
    if swept.interrupted:
        raise KeyboardInterrupt(f"{swept.interrupted}; the same call resumes from there")
    raise_unless_measured([swept.study], f"the record ({request.store or request.folder})")
    return SweepResult(loaded, swept.study, request, swept.wall_s, dict(swept.phases))


_BY_NAME = {name: option for name, option in OPTIONS.items() if name != "workloads"}


def _field(option: Option, value: Any) -> Any:
    """What a request has for an argument."""
    if value is None:
        return option.default
    if option.kind == tuple[str, ...]:
        return tuple(_values(value) if not isinstance(value, PathLike) else [str(value)])
    if option.is_many:
        return {name: _values(one) for name, one in value.items()}
    if Path in get_args(option.kind):
        return Path(value) if value else None
    return str(value) if option.kind is str or isinstance(value, PathLike) else value


# Which types an argument may have, and what that is called.
_KINDS: Mapping[Any, tuple[tuple[type, ...], str]] = {
    str: ((str,), "a text"),
    int: ((Integral,), "a whole number"),
    float: ((Real,), "a number"),
    bool: ((bool, Integral), "True or False"),
    Path: ((str, PathLike), "a folder"),
}
_ARGUMENTS: Mapping[str, tuple[tuple[type, ...], str]] = {
    **{one.argument: _KINDS[next(iter(get_args(one.kind)), one.kind)] for one in _BY_NAME.values()},
    "workload": ((str, PathLike, Workload), "the name of a workload, its file, or one"),
    "inputs": ((Mapping,), "a mapping of names to arrays"),
    "set": ((Mapping,), "a mapping of policies to values"),
    "clocks": ((str, Integral), "a text or a number"),
    "budget": ((str, Real), "a text or a number of seconds"),
    "prior": ((Iterable, PathLike), "a record, or several"),
    "store": ((str, PathLike), "a folder"),
}


def _check_arguments(family: Family, asked: Mapping[str, Any]) -> None:
    """Raise UsageError for an argument of another type than it has, an input of the family by that name above all."""
    for name, (kinds, words) in _ARGUMENTS.items():
        value = asked[name]
        if value is None or isinstance(value, kinds):
            continue
        told = ""
        if name in family.data or name in family.scalars:
            told = f"; {family.name} has an input of that name, which goes in inputs={{{name!r}: …}}"
        raise UsageError(f"{name} is a {type(value).__name__}, and sweep takes {words} there{told}")


def _family(named: Any) -> Family:
    """Of a name, a folder, or what has a family (a kernel, another study)."""
    if isinstance(named, Family):
        return named
    own = getattr(named, "family", None)
    if isinstance(own, Family):
        return own
    if not isinstance(named, str | PathLike):
        raise UsageError(
            f"cannot sweep a {type(named).__name__}: give a family's name or its folder, or what has a family"
        )
    return load_family(named)


def _values(value: Any) -> list[str]:
    many = isinstance(value, Iterable) and not isinstance(value, str)
    return [str(one) for one in (value if many else [value])]


def _collect_inputs(
    inputs: Mapping[str, Any], named: Mapping[str, Any], workload: object
) -> Mapping[str, Any]:
    """All that is given by name, where no workload is. Raises UsageError."""
    if twice := [name for name in inputs if name in named]:
        raise UsageError(f"{twice[0]!r} is given twice: by its name, and in inputs=")
    given = {**inputs, **named}
    if given and workload is not None:
        raise UsageError(
            f"{next(iter(given))} is given, and workload={str(workload)!r} too: name a workload, or give its inputs"
        )
    return given


def _case(
    request: SweepRequest,
    workload: str | Path | Workload | None,
    given: Mapping[str, Any],
    cold: bool,
    reference: Reference | None,
) -> Case:
    family = request.family
    if isinstance(workload, Workload):
        return Case(workload=workload, reference=reference)
    if not given:
        return Case(workload=_load_named(family, workload), reference=reference)
    inputs = _bind(family, given)
    scalars = {name: inputs.scalars[name] for name in given if name in family.scalars}
    kept = write_given_workload(family, inputs, scalars, cold, request.folder)
    return Case(workload=kept, inputs=inputs, reference=reference)


def _load_named(family: Family, workload: str | Path | None) -> Workload:
    """The workload of that name, in that file, or the family's own. Raises UnknownName, UsageError, WorkloadError."""
    if workload is not None or family.default_workload or len(workloads(family)) == 1:
        return load_workload(family, workload or "")
    names = ", ".join(data.name for data in family.inputs)
    known = ", ".join(workloads(family))
    raise UsageError(
        f"family {family.name} has no {'default workload' if known else 'workload of its own'}: name "
        f"{f'one of {known}' if known else 'a file'} with workload=, or give its inputs ({names})"
    )


def _bind(family: Family, given: Mapping[str, Any]) -> Inputs:
    """Arrays, scalars and options by name, checked. Raises WorkloadError, UnknownName."""
    known = [*(data.name for data in family.inputs), *family.callers_scalars, *family.options]
    for name in given:
        if name not in known and suggestion(name, _ARGUMENTS):
            raise UnknownName("input", name, [*known, *_ARGUMENTS], f"family {family.name}, or argument")
    options = {name: value for name, value in given.items() if name in family.options}
    arrays = {
        name: foreign.fetch(value) if name in family.data else value
        for name, value in given.items()
        if name not in options
    }
    return bind(family, arrays, options, {})


# -- arrays that a program gives


def write_given_workload(
    family: Family, inputs: Inputs, scalars: Mapping[str, float], cold: bool, folder: Path
) -> Workload:
    """The workload of ``inputs``, written below ``folder`` where it is not there yet. ``scalars`` are those that were
    given. Raises StoreError."""
    name = f"given-{_sizes(family, inputs)}-{inputs.digest[:8]}"
    path = folder / "workloads" / f"{name}.yaml"
    arrays = {array: {"npy": f"{name}/{array}.npy"} for array in inputs.arrays}
    made = Workload(
        name=name, family=family.name, path=path, arrays=arrays, scalars=scalars, options=inputs.options, cold=cold,
        doc="arrays passed by a program",
    )  # fmt: skip
    if not path.is_file():
        _write(path, inputs, arrays)
        write_text(path, yaml.safe_dump(made.content, sort_keys=False))
    return made


def _sizes(family: Family, inputs: Inputs) -> str:
    """The sizes of the arrays, each extent once: ``112x512``."""
    extents = dict.fromkeys(extent for data in family.inputs for extent in data.shape)
    told = "x".join(str(inputs.sizes[extent]) for extent in extents if extent not in family.constants)
    return re.sub(r"x\d*$", "", told[:_LONGEST]) if len(told) > _LONGEST else told or "fixed"


def _write(path: Path, inputs: Inputs, arrays: Mapping[str, Mapping[str, str]]) -> None:
    with explained(
        StoreError, f"cannot write the inputs to {path.parent}:", "; name another folder with out="
    ):
        for name, array in inputs.arrays.items():
            file = path.parent / arrays[name]["npy"]
            file.parent.mkdir(parents=True, exist_ok=True)
            with replace_file(file) as temporary, temporary.open("wb") as opened:
                np.save(opened, array, allow_pickle=False)
