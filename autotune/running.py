"""``autotune run``: the tuned kernel once, on data from files."""

import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from autotune import paths
from autotune.cache import Cache, default_root
from autotune.dispatch import Kernel, explained
from autotune.errors import StoreError, UnknownName, UsageError
from autotune.family import Family
from autotune.workload import Inputs, bind, load, prepare, read_npy

__all__ = ["run"]


def run(
    family: Family, workload: str, given: Sequence[str], output: Path | None, device: str, policies: Path | None,
    data: Path | None, explain: bool, out: Console,
) -> None:  # fmt: skip
    """Inputs from ``given`` (name=value) or a workload -> outputs in ``output``. Bad input is refused before the
    device is opened; the output appears whole or not at all."""
    if given and workload:
        raise UsageError("give the input with -i or with --workload, not both")
    inputs = (
        _given(family, given) if given else prepare(family, load(family, workload), paths.data_root(data))
    )
    if output is not None:
        _check_output(family, output)
    logging.getLogger("autotune").setLevel(logging.INFO)
    with Kernel(family, device, policies, Cache(default_root())) as kernel:
        chosen, passed = kernel.explain(inputs)
        begin = time.perf_counter()
        outputs = kernel.run(inputs)
        elapsed = time.perf_counter() - begin
        if explain:
            out.print(explained(chosen, passed))
        assert chosen.configuration is not None
        out.print(
            f"{family.name} on {kernel.device}: {chosen.configuration.id} ({chosen.match}), {elapsed:.3f} s",
            markup=False,
        )
    for name, array in outputs.items():
        out.print(f"{name}: {array.dtype} {array.shape}")
    if output is not None:
        _write(family, outputs, output)
        out.print(f"written      {output}")


def _given(family: Family, items: Sequence[str]) -> Inputs:
    names = [data.name for data in family.inputs]
    arrays: dict[str, Any] = {}
    options: dict[str, str] = {}
    for item in items:
        name, separator, text = item.partition("=")
        if not separator:
            raise UsageError(f"cannot read -i {item!r}: write -i name=value")
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


def _check_output(family: Family, output: Path) -> None:
    allowed = (".npy",) if len(family.outputs) == 1 else (".npz",)
    if getattr(family.module, "write", None) is None and output.suffix not in allowed:
        raise UsageError(f"-o {output}: the name must end in {allowed[0]}")
    if output.is_dir():
        raise StoreError(f"-o {output} is a folder; name a file in it")
    if not (output.parent if str(output.parent) else Path()).is_dir():
        raise StoreError(f"-o {output}: the folder {output.parent} is not there")


def _write(family: Family, outputs: Mapping[str, NDArray[Any]], output: Path) -> None:
    temporary = output.with_name(f".{output.name}.partial")
    writer = getattr(family.module, "write", None)
    try:
        if writer is not None:
            writer(outputs, temporary)
        else:
            with temporary.open("wb") as file:
                if len(outputs) == 1:
                    np.save(file, next(iter(outputs.values())))
                else:
                    np.savez(file, **outputs)  # type: ignore[arg-type]
        temporary.replace(output)
    except OSError as problem:
        temporary.unlink(missing_ok=True)
        raise StoreError(f"cannot write {output}: {problem.strerror or problem}") from None
