"""What a family's outputs should be: computed once by something that is not the kernel, kept on disk."""

import hashlib
import io
import platform
import time
from collections.abc import Callable, Mapping, Set
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune import __version__
from autotune.compile import Cache, Toolchain, Variant, batch, compile_one, is_trusted, put_file
from autotune.declaration import Family, Inputs
from autotune.device import Backend, Resident, foreign
from autotune.errors import CompilerError, DeviceError, FamilyError, WorkloadError
from autotune.layout import Data, check_numbers, layouts_digest
from autotune.measure.verify import GUARD_BYTES, PATTERNS, Verifier, difference

_KEEP_BYTES = 64 << 20  # a larger reference is made again: reading it back is no faster


def compute_expected(
    family: Family, inputs: Inputs, cache_root: Path, swept: "SweptDevice | None" = None
) -> tuple[dict[str, NDArray[Any]], float]:
    """(canonical outputs by name, milliseconds the reference took when it was computed). Where a configuration is the
    reference it runs on the cpu device; on the device that is ``swept`` where the source is compiled unmodified, and
    where the host compiler cannot make it.

    Raises FamilyError when the reference does not give what the family declares.
    """
    family = family.apply_types(inputs.options)
    reference = getattr(family.module, "reference", None)
    if family.is_own_reference or not (reference or family.reference):
        why = "reference: itself, so there is no reference" if family.is_own_reference else "no reference"
        raise FamilyError(
            f"family {family.name} has {why}: write reference(inputs, options) in family.py, or name a configuration "
            "with reference: in family.yaml"
        )
    path = cache_root / "references" / f"{family.name}-{_key(family, inputs, swept)[:32]}.npz"
    if kept := _read_kept(path, cache_root, family, inputs):
        return kept
    begin = time.perf_counter()
    if reference is not None:
        made = reference(dict(inputs.arrays), {**inputs.options, **inputs.scalars})
        outputs = check_outputs(family, inputs, made)
    else:
        outputs = _run_configuration(family, inputs, Cache(cache_root), swept)
    elapsed_ms = (time.perf_counter() - begin) * 1e3
    refuse_nothing(family, outputs)
    if sum(array.nbytes for array in outputs.values()) <= _KEEP_BYTES:
        _keep(path, cache_root, outputs, elapsed_ms)
    return outputs, elapsed_ms


@dataclass(frozen=True)
class SweptDevice:
    """A device with what compiles for it."""

    backend: Backend
    toolchain: Toolchain


def _run_configuration(
    family: Family, inputs: Inputs, cache: Cache, swept: SweptDevice | None
) -> dict[str, NDArray[Any]]:
    from autotune.device import CpuBackend

    if swept and family.reference_family.is_plain:  # another device rounds in another way
        return _run(family, inputs, swept, cache)
    backend = CpuBackend()
    try:
        return _run(family, inputs, SweptDevice(backend, backend.toolchain()), cache)
    except CompilerError:
        if swept is None or swept.backend.device.kind == "cpu":
            raise
        return _run(family, inputs, swept, cache)


def _run(family: Family, inputs: Inputs, on: SweptDevice, cache: Cache) -> dict[str, NDArray[Any]]:
    """The outputs of the configuration that is the reference. What it does wrong by itself is nobody's reference:
    raises FamilyError when it writes outside of an array or to an input, or when it gives something else once other
    content is in the outputs before."""
    backend, kernel = on.backend, family.reference_family
    configuration = kernel.space.configuration(kernel.reference)
    variant, names = Variant.make(kernel, configuration, inputs.options), inputs.names(configuration)
    where = f"family {family.name}: its reference, {family.reference},"
    if reason := variant.explain_exclusion(names, backend.device.limits):
        raise DeviceError(f"{where} cannot run here: {reason}")
    failed = f"{where} does not compile:\n"
    module = backend.load(compile_one(batch(kernel, (variant,)), on.toolchain, cache, failed))
    with backend.current(), closing(Resident(backend, inputs, guard=GUARD_BYTES)) as resident:
        execution, verifier = resident.execution(variant, module), Verifier(backend, kernel, {})
        answers = []
        for byte in PATTERNS:
            reason, outputs = verifier.run_reference(execution, byte)
            if reason:
                raise FamilyError(f"{where} {reason}")
            answers.append(outputs)
    first, second = answers
    for name, expected in first.items():
        if reason := difference(name, second[name], expected, kernel.tolerances(names)):
            raise FamilyError(
                f"{where} gives another result when its outputs hold other content before the run, or when its "
                f"blocks run in another order: {reason}. First compare the order of `arguments` with the kernel's "
                "parameters. Where it leaves elements out, or adds to them, declare "
                "zero: '1' for "
                f"{name}; otherwise fix the kernel, or widen the tolerance"
            )
    _refuse_unwritten(first, set(kernel.list_cleared(names)), where)
    return first


def _refuse_unwritten(outputs: Mapping[str, NDArray[Any]], cleared: Set[str], where: str) -> None:
    """Raise FamilyError where no element of an output was written: 0 throughout, as it was ``cleared``. A single one
    may be a count or a flag that is 0."""
    untouched = [name for name in outputs if name in cleared and not outputs[name].view(np.uint8).any()]
    many = [name for name in untouched if outputs[name].size > 1]
    if name := next(iter(many or (untouched if len(untouched) == len(outputs) else [])), ""):
        raise FamilyError(
            f"{where} wrote no element of {name}: it is 0 throughout, as it was cleared (zero: in family.yaml), so a "
            "kernel that does nothing would be right. Give a grid that covers it, or an input for which there is a "
            "result"
        )


def _key(family: Family, inputs: Inputs, swept: SweptDevice | None = None) -> str:
    """sha256 over all that decides the outputs: the whole declaration, the C++, the Python behind ``family.py``, the
    inputs, and what computes: numpy, or the configuration and the compiler of the cpu device."""
    parts = [
        family.space_digest, family.source_digest, family.host_digest, layouts_digest(), inputs.digest, np.__version__,
        platform.python_version(), __version__,
    ]  # fmt: skip
    if getattr(family.module, "reference", None) is None and family.reference:
        kernel = family.reference_family
        parts += [kernel.space.configuration(kernel.reference).id]
        device = swept.backend.device if swept and kernel.is_plain else None
        parts += (
            [device.slug, device.arch, swept.toolchain.identity] if swept and device else [_host_compiler()]
        )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _host_compiler() -> str:
    from autotune.compile import HostCxx, find_compiler

    try:
        return HostCxx(find_compiler()).identity
    except CompilerError:
        return "no host compiler"


def _read_kept(
    path: Path, root: Path, family: Family, inputs: Inputs
) -> tuple[dict[str, NDArray[Any]], float] | None:
    """What was computed before; None for a file that is missing, torn, foreign, or not this user's own."""
    try:
        if not is_trusted(path, root, path.parent):
            return None
        with np.load(path, allow_pickle=False) as file:
            outputs = {data.name: file[data.name] for data in family.outputs}
            elapsed_ms = float(file["milliseconds"])
    except Exception:  # noqa: BLE001 - a damaged file may end in any of zipfile's, tokenize's and numpy's exceptions
        return None
    is_whole = all(
        outputs[data.name].dtype == data.dtype and outputs[data.name].shape == data.shape_for(inputs.sizes)
        for data in family.outputs
    )
    return (outputs, elapsed_ms) if is_whole else None


def check_outputs(family: Family, inputs: Inputs, made: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """What a reference made, canonical. Raises FamilyError for what is not as declared."""
    outputs = {}
    for data in family.apply_types(inputs.options).outputs:
        if data.name not in made:
            raise FamilyError(
                f"the reference of family {family.name} gives no {data.name!r} (it gives {sorted(made)})"
            )
        given = np.asarray(made[data.name])
        shape = data.shape_for(inputs.sizes)
        if given.shape != shape:
            raise FamilyError(f"the reference's {data.name} has shape {given.shape}, declared is {shape}")
        if given.dtype.names != data.dtype.names:  # numpy would put one number into every field
            raise FamilyError(
                f"the reference's {data.name} has elements of {given.dtype}, not of {data.dtype}"
            )
        for name, part, dtype in _parts(data, given):
            try:
                check_numbers(name, part, dtype)
            except WorkloadError as problem:
                raise FamilyError(f"the reference's {problem}") from None
        outputs[data.name] = np.ascontiguousarray(given, data.dtype)
    return outputs


def refuse_nothing(family: Family, outputs: Mapping[str, NDArray[Any]]) -> None:
    """Raise FamilyError for floating point without one finite value: NaN equals NaN, so nothing would be proved."""
    for data in family.outputs:
        for name, part, _ in _parts(data, outputs[data.name]):
            if part.dtype.kind == "f" and not np.isfinite(part).any():
                raise FamilyError(
                    f"the reference's {name} has no finite value (the first is {part.reshape(-1)[0]}), so it would "
                    "prove nothing. Correct the reference, or take an input for which there is a result"
                )


def _parts(data: Data, array: NDArray[Any]) -> list[tuple[str, NDArray[Any], np.dtype[Any]]]:
    """The array, or each field of its records: name, values, declared type."""
    if not data.record:
        return [(data.name, array, data.dtype)]
    return [(f"{data.name}.{f.name}", array[f.name], np.dtype(f.type)) for f in data.fields]


def _keep(path: Path, root: Path, outputs: Mapping[str, NDArray[Any]], elapsed_ms: float) -> None:
    content = io.BytesIO()
    arrays: dict[str, Any] = {"milliseconds": np.float64(elapsed_ms), **outputs}
    np.savez(content, **arrays)
    with suppress(OSError):  # a cache that cannot be written costs the computation next time, nothing else
        put_file(path, content.getvalue(), root, path.parent)


# Takes input arrays by name, then options and scalars by name; gives outputs by name, or the only one.
Function = Callable[[dict[str, NDArray[Any]], dict[str, Any]], Any]
Reference = Function | Mapping[str, Any] | NDArray[Any]


@dataclass(frozen=True)
class GivenOutputs:
    """Canonical outputs by name, and the milliseconds they took. ``function``, where there is one, says what is right
    for other inputs."""

    outputs: Mapping[str, NDArray[Any]]
    elapsed_ms: float = 0.0
    function: Function | None = None

    @cached_property
    def digest(self) -> str:
        """sha256 over names, dtypes, shapes and bytes."""
        digest = hashlib.sha256()
        for name, array in sorted(self.outputs.items()):
            digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
        return digest.hexdigest()


def evaluate_reference(family: Family, inputs: Inputs, reference: Reference) -> GivenOutputs:
    """What ``reference`` says of ``inputs``. Raises WorkloadError for what is not as the outputs are declared, and
    whatever a function raises."""
    began = time.perf_counter()
    function = reference if callable(reference) else None
    made = (
        reference if function is None else function(dict(inputs.arrays), {**inputs.options, **inputs.scalars})
    )
    given = {name: foreign.fetch(array) for name, array in _by_name(family, made).items()}
    names = [data.name for data in family.outputs]
    if unknown := [name for name in given if name not in names]:
        raise WorkloadError(
            f"the reference gives {unknown[0]!r}, which is no output of family {family.name} ({', '.join(names)})"
        )
    try:
        outputs = check_outputs(family, inputs, given)
        refuse_nothing(family, outputs)
    except FamilyError as problem:
        raise WorkloadError(str(problem)) from None
    return GivenOutputs(outputs, (time.perf_counter() - began) * 1e3, function)


def _by_name(family: Family, made: Any) -> Mapping[str, Any]:
    """Outputs by name; of a family with one, that may be given alone."""
    if isinstance(made, Mapping):
        return made
    if len(family.outputs) == 1:
        return {family.outputs[0].name: made}
    listed = ", ".join(data.name for data in family.outputs)
    raise WorkloadError(
        f"the reference gives a {type(made).__name__}, and family {family.name} has several outputs: give a dict of "
        f"them by name ({listed})"
    )
