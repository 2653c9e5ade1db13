"""A workload: the input that a family is tuned on, read from YAML and turned into canonical arrays."""

import hashlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.declaration import yamlfile
from autotune.declaration.expression import Value
from autotune.declaration.family_folder import Family
from autotune.declaration.parse import Scalar
from autotune.declaration.space import PolicyValue
from autotune.errors import AutotuneError, FamilyError, UnknownName, UsageError, WorkloadError, explained
from autotune.files import find_bundled
from autotune.layout import canonical, check_links, check_numbers


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A workload file. ``parameters`` go to the family's ``inputs`` function, ``arrays`` need none of it. ``files``
    has ``sha256`` and ``from`` (where it can be had) of data files by name. ``cold`` asks for a flushed last-level
    cache before each sample."""

    name: str
    family: str
    path: Path | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    scalars: Mapping[str, float] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    cold: bool = True
    doc: str = ""

    @property
    def content(self) -> dict[str, Any]:
        """What the file says, without what is empty."""
        told = {
            "schema": 1, "workload": self.name, "family": self.family, "doc": self.doc,
            "cache": "cold" if self.cold else "warm", "parameters": dict(self.parameters),
            "arrays": {name: dict(spec) for name, spec in self.arrays.items()}, "scalars": dict(self.scalars),
            "options": dict(self.options), "files": {name: dict(file) for name, file in self.files.items()},
        }  # fmt: skip
        return {key: value for key, value in told.items() if value}


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Canonical input arrays with everything an expression may read: ``sizes`` (extents), ``options``,
    ``scalars``."""

    arrays: Mapping[str, NDArray[Any]]
    sizes: Mapping[str, int]
    options: Mapping[str, str | int]
    scalars: Mapping[str, float]

    @classmethod
    def make(
        cls, family: Family, arrays: Mapping[str, Any], options: Mapping[str, Any], scalars: Mapping[str, Any]
    ) -> "Inputs":
        """With what follows from arrays that are canonical, or seen to be so elsewhere; their links are not looked at.
        Raises WorkloadError, UnknownName."""
        names = [data.name for data in family.inputs]
        missing = [name for name in names if name not in arrays]
        if missing:
            raise WorkloadError(
                f"input {missing[0]!r} of family {family.name} is not given (needed: {', '.join(names)})"
            )
        chosen = family.choose_options(options)
        family = family.apply_types(chosen)
        for data in family.inputs if family.typed_by else ():
            if isinstance(array := arrays[data.name], np.ndarray) and array.dtype != data.dtype:
                raise WorkloadError(
                    f"{data.name}: it is {array.dtype}, and with these options it is {data.dtype}: give the options "
                    "where it is prepared"
                )
        values: dict[str, float] = {}
        for name, scalar in family.scalars.items():
            number = scalars.get(name, scalar.default if scalar.value is None else None)
            if number is not None:
                values[name] = _scalar(scalar, number)
            elif scalar.value is None:
                raise WorkloadError(
                    f"scalar {name!r} of family {family.name} is not given and has no default"
                )
        sizes = family.sizes({name: arrays[name].shape for name in names}, {**chosen, **values})
        _check_sizes(family, sizes)
        for name, scalar in family.scalars.items():
            if name not in values:
                assert scalar.value is not None
                values[name] = _scalar(scalar, scalar.value.evaluate({**sizes, **chosen, **values}))
        return cls(arrays={name: arrays[name] for name in names}, sizes=sizes, options=chosen, scalars=values)

    @cached_property
    def digest(self) -> str:
        """sha256 over names, dtypes, shapes and bytes of the arrays, and the options and scalars."""
        digest = hashlib.sha256(repr((sorted(self.options.items()), sorted(self.scalars.items()))).encode())
        for name, array in sorted(self.arrays.items()):
            digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
        return digest.hexdigest()

    def compute_sizes(self, family: Family, sizes: Mapping[str, int]) -> dict[str, int]:
        """All extents where some have other ``sizes``. Raises FamilyError where one has no value then."""
        known = {**self.sizes, **sizes}
        for extent, value in family.extents.items():
            if value is not None and value.names:
                known[extent] = value.integer({**self.options, **self.scalars, **known})
        return known

    def names(self, configuration: Mapping[str, PolicyValue]) -> dict[str, Value]:
        """What expressions may read: extents, options, scalars and policies."""
        return {**self.sizes, **self.options, **self.scalars, **configuration}


def workloads(family: Family) -> dict[str, Path]:
    """Workload files by name: those shipped for the family, then those in its own ``workloads`` folder."""
    folders = [find_bundled("workloads") / family.name, family.folder / "workloads"]
    return {path.stem: path for folder in folders for path in sorted(folder.glob("*.yaml"))}


def load_workload(family: Family, name_or_path: str | Path = "") -> Workload:
    """Load a workload of ``family`` by name or file, or the family's default.

    Raises UnknownName, UsageError, WorkloadError.
    """
    known = workloads(family)
    text = str(name_or_path) or family.default_workload or (next(iter(known)) if len(known) == 1 else "")
    if not text and not known:
        raise UsageError(
            f"family {family.name} has no workload of its own: add --workload FILE, or put the file into "
            f"{family.folder / 'workloads'}/"
        )
    if not text:
        raise UsageError(f"family {family.name} has no default workload: name one of {', '.join(known)}")
    path = known.get(text) or Path(text)
    if text not in known and not path.is_file():
        if path.suffix in (".yaml", ".yml"):
            raise WorkloadError(f"workload file {path} does not exist")
        raise UnknownName("workload", text, known, f"family {family.name}")
    content = yamlfile.read(path, WorkloadError)
    yamlfile.check(content, "workload", path, WorkloadError)
    if content["family"] != family.name:
        raise WorkloadError(f"{path} is a workload of family {content['family']!r}, not of {family.name!r}")
    told = {
        key: content[key]
        for key in ("parameters", "arrays", "scalars", "options", "files", "doc")
        if key in content
    }
    is_cold = content.get("cache", "cold") == "cold"
    return Workload(name=content["workload"], family=content["family"], path=path, cold=is_cold, **told)


def find_data(name: str, root: Path, beside: Path | None = None) -> Path:
    """Find the data file ``name``: absolute, below the data root, next to the workload file, or shipped.

    Raises WorkloadError with the places that were searched.
    """
    shipped = find_bundled("workloads") / "data"
    near = [beside.parent] if beside else []
    places = [folder / name for folder in (root, *near, shipped)]  # an absolute name is itself in each
    for place in places:
        if place.is_file():
            return place
    looked = " and ".join(dict.fromkeys(str(place) for place in places))
    raise WorkloadError(
        f"data file {name!r} does not exist (looked for {looked}); put it there, or name its folder with --data "
        "or AUTOTUNE_DATA"
    )


def _check_file(name: str, known: Mapping[str, str], workload: Workload, root: Path) -> None:
    try:
        path = find_data(name, root, workload.path)
    except WorkloadError as problem:
        raise WorkloadError(
            f"workload {workload.name}: {problem}. It comes from: {known['from']} (sha256 {known['sha256']})"
        ) from None
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != known["sha256"]:
        warnings.warn(
            f"workload {workload.name}: {path} has sha256 {found}, not {known['sha256']}: measurements on other data "
            f"cannot be compared; they come from: {known['from']}",
            stacklevel=3,
        )


def prepare(family: Family, workload: Workload, root: Path) -> Inputs:
    """Read or generate the arrays of a workload.

    Raises WorkloadError if one is not as declared. A data file with another checksum is a warning: it may be the same
    data compressed again.
    """
    for name, known in workload.files.items():
        _check_file(name, known, workload, root)
    given: dict[str, Any] = {
        name: make_array(spec, root, workload.path, f"workload {workload.name}: array {name}")
        for name, spec in workload.arrays.items()
    }
    scalars = dict(workload.scalars)
    maker = getattr(family.module, "inputs", None)
    if maker is not None and not workload.arrays:
        try:
            given = dict(maker(workload.parameters, root))
        except AutotuneError:
            raise
        except Exception as problem:
            what = f"{type(problem).__name__}: {problem}"
            raise WorkloadError(
                f"workload {workload.name}: family.py's inputs function failed: {what}"
            ) from problem
    elif workload.parameters:
        what = f"workload {workload.name}: parameters {sorted(workload.parameters)}"
        if maker is not None:
            raise WorkloadError(
                f"{what} go to inputs in family.py, which then makes every array: delete parameters, or arrays"
            )
        raise WorkloadError(
            f"{what} need an inputs function in the family's family.py; without one, declare arrays"
        )
    return bind(family, given, workload.options, scalars)


def bind(
    family: Family, given: Mapping[str, Any], options: Mapping[str, Any], scalars: Mapping[str, float]
) -> Inputs:
    """Arrays (and scalars) from anywhere -> Inputs, checked against the declaration. Raises WorkloadError."""
    names = [data.name for data in family.inputs]
    for name in given:
        if name not in names and name not in family.scalars:
            raise UnknownName("input", name, [*names, *family.callers_scalars], f"family {family.name}")
    for name in scalars:
        if name not in family.scalars:
            raise UnknownName("scalar", name, family.callers_scalars, f"family {family.name}")
    family = family.apply_types(options)
    arrays = {data.name: canonical(data, given[data.name]) for data in family.inputs if data.name in given}
    inputs = Inputs.make(
        family, arrays, options, {**{n: given[n] for n in family.scalars if n in given}, **scalars}
    )
    for name, array in inputs.arrays.items():
        check_links(family.data[name], array, inputs.sizes)
    return inputs


def _check_sizes(family: Family, sizes: Mapping[str, int]) -> None:
    """Raise WorkloadError for an extent that is none, or that a kernel takes as a number too small for it."""
    for name, value in family.extents.items():
        if value is not None and sizes[name] < 0:
            raise WorkloadError(
                f"extent {name}, which is {value.text}, is {sizes[name]} for these inputs: they are too small"
            )
    for kernel in family.kernels.values():
        for name in kernel.arguments:
            if name in sizes and sizes[name] > np.iinfo(family.extent_types[name]).max:
                kind = family.extent_types[name]
                raise WorkloadError(
                    f"extent {name} is {sizes[name]}, and kernel {kernel.name} takes it as {kind}: give it a wider "
                    f"type in family.yaml (extents: {{{name}: {{type: int64}}}}) and in the kernel"
                )


def _scalar(scalar: Scalar, value: Any) -> float:
    number = np.asarray(value)
    check_numbers(f"scalar {scalar.name}", number, np.dtype(scalar.type))
    return float(number) if "float" in scalar.type else int(number)


def make_array(spec: Mapping[str, Any], root: Path, beside: Path | None, place: str) -> NDArray[Any]:
    """An array that a workload file reads from another file, or draws. Raises WorkloadError, naming ``place``."""
    if "npy" in spec:
        return read_npy(find_data(spec["npy"], root, beside), place)
    if "random" not in spec or "shape" not in spec:
        raise WorkloadError(f"{place}: give npy: FILE, or random: integers|uniform|normal with a shape")
    try:
        return _draw_random(spec, place)
    except (TypeError, ValueError, OverflowError, MemoryError) as problem:
        raise WorkloadError(f"{place}: numpy cannot make it: {problem}") from None


# What numpy raises for bytes that are no .npy file: its header is Python, tokenized and parsed.
MalformedNpy = (
    ValueError, EOFError, MemoryError, OverflowError, SyntaxError, TypeError, RecursionError, TokenError,
)  # fmt: skip


def read_npy(path: Path, place: str) -> NDArray[Any]:
    """Read the array in a .npy file. Raises WorkloadError, naming ``place``, if that is not possible."""
    try:
        with explained(WorkloadError, f"{place}: {path} cannot be read:"), path.open("rb") as file:
            return np.asarray(np.lib.format.read_array(file, allow_pickle=False))
    except MalformedNpy as problem:
        raise WorkloadError(
            f"{place}: {path} is not a .npy array: {str(problem) or type(problem).__name__}"
        ) from None


def _draw_random(spec: Mapping[str, Any], place: str) -> NDArray[Any]:
    generator = np.random.default_rng(int(spec.get("seed", 0)))
    low, high, shape = spec.get("low", 0), spec.get("high", 1), tuple(int(n) for n in spec["shape"])
    match spec["random"]:
        case "integers":
            _check_ends(int(low), int(high), place)
            return generator.integers(int(low), int(high), shape)
        case "uniform":
            _check_ends(low, high, place)
            return generator.uniform(low, high, shape)
        case _:
            return generator.normal(size=shape)


def _check_ends(low: float, high: float, place: str) -> None:
    if high <= low:
        raise WorkloadError(f"{place}: high ({high}, exclusive) must be above low ({low})")


@dataclass(frozen=True)
class Units:
    """The units of one call. ``costs`` (units,) are estimates in any unit; ``run(execution, first, count)`` queues the
    launches of ``count`` units in a row, at most ``batch`` of them.

    ``parts`` has for an output the elements of it, flattened, that each unit writes: unit u those from
    ``parts[name][u]`` to ``parts[name][u + 1]``. ``sums`` are outputs to which units add. ``groups`` (units,) are
    numbers that never decrease: a chunk does not reach from one group into the next.
    """

    costs: NDArray[np.float64]
    run: Callable[[Any, int, int], None]
    batch: int = 1
    parts: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    sums: tuple[str, ...] = ()
    groups: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.costs)

    def check(self, outputs: Mapping[str, int], where: str) -> None:
        """Raise FamilyError unless this describes ``outputs`` (name: elements) whole."""

        def refuse(what: str) -> None:
            raise FamilyError(f"{where}: units: {what}")

        n = len(self)
        if not n or not np.isfinite(self.costs).all() or float(np.min(self.costs)) < 0:
            refuse(f"costs has {n} values; at least one is needed, none negative or NaN")
        if self.batch < 1:
            refuse(f"batch is {self.batch}; at least 1 is needed")
        for name in (*self.parts, *self.sums):
            if name not in outputs:
                raise UnknownName("output", name, outputs, f"{where}: units")
        for name in outputs:
            if (name in self.parts) == (name in self.sums):
                refuse(f"output {name} must be in parts or in sums, and not in both")
        for name, offsets in self.parts.items():
            ends = [int(offsets[0]), int(offsets[-1])] if len(offsets) else []
            if len(offsets) != n + 1 or ends != [0, outputs[name]] or np.any(np.diff(offsets) < 0):
                refuse(
                    f"parts[{name!r}] has {len(offsets)} offsets, first and last {ends}; {n + 1} rising ones from 0 "
                    f"to {outputs[name]} are needed"
                )
        if self.groups is not None and (len(self.groups) != n or np.any(np.diff(self.groups) < 0)):
            refuse(f"groups has {len(self.groups)} values; {n} that never decrease are needed")
