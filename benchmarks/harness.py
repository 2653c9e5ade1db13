"""What the scripts of this folder share: their arguments, inputs, configurations ready to run, CSV files, ``--check``.

A script that measures on a GPU or compares with a peer (torch, PLINK, Kernel Tuner, ...) takes ``--check`` for machines
without them: it makes the workload's inputs, looks up every configuration that would be timed and generates its code,
and prints which peers are installed. Tests run every script, small or with ``--check``.
"""

import argparse
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from autotune.compile import Cache, Compiled, Variant, batch, compile_batch, default_root
from autotune.declaration import Configuration, Family, Inputs, load_workload, prepare
from autotune.device import Execution, Resident, open_backend
from autotune.errors import AutotuneError
from autotune.files import find_bundled
from autotune.policy import file_name, read_policy_file

__all__ = [
    "arguments",
    "bound",
    "check",
    "entry",
    "inputs_of",
    "is_there",
    "module_of",
    "python_path",
    "variants_of",
]


def arguments(doc: str | None, out: str = "") -> argparse.ArgumentParser:
    """A parser that knows ``--check``, and ``--out`` with a default file where a script writes one."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if out:
        parser.add_argument("--out", type=Path, default=Path(out), help=f"default: {out}")
    parser.add_argument("--check", action="store_true", help="all that needs no GPU and no peer, then stop")
    return parser


def module_of(family: Family) -> Any:
    """What the family's family.py defines."""
    assert family.module is not None, f"{family.name} has no family.py"
    return family.module


def inputs_of(family: Family, workload: str, data: Path | None = None) -> Inputs:
    """A workload's inputs; data files are looked for in ``data``, else among those that ship."""
    return prepare(family, load_workload(family, workload), data or find_bundled("workloads") / "data")


def python_path() -> str:
    """PYTHONPATH for a new process: this checkout before what this process was given."""
    root = str(Path(__file__).resolve().parents[1])
    return os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])


def variants_of(
    family: Family, configurations: Iterable[Configuration | str], options: Mapping[str, Any]
) -> tuple[Variant, ...]:
    """Configurations, or their texts, with the options of some inputs."""
    chosen = (family.space.configuration(c) if isinstance(c, str) else c for c in configurations)
    return tuple(Variant.make(family, configuration, options) for configuration in chosen)


def bound(resident: Resident, variants: Sequence[Variant]) -> list[Execution]:
    """All compiled in one call, and bound to the inputs. Raises AssertionError with the compiler's message."""
    backend = resident.backend
    made = compile_batch(
        batch(variants[0].family, tuple(variants)), backend.toolchain(), Cache(default_root())
    )
    executions = []
    for variant, compiled in zip(variants, made, strict=True):
        assert isinstance(compiled, Compiled), f"{variant.configuration.id}: {compiled}"
        executions.append(resident.execution(variant, backend.load(compiled)))
    return executions


def entry(family: Family, policies: Path, device: str, workload: str) -> Configuration:
    """What the policy file of a device (its slug) has for a workload."""
    path = policies / file_name(family.name, device)
    entries = read_policy_file(path).entries
    if workload not in entries:
        raise SystemExit(
            f"{path} has no entry for {workload}: sweep it on this device, or name --configuration"
        )
    return Configuration(entries[workload].configuration)


def check(
    family: Family,
    inputs: Iterable[Inputs],
    configurations: Iterable[Configuration | str],
    *,
    peers: Iterable[str] = (),
    device: str = "cuda",
) -> int:
    """``--check``: generates the code of every configuration for every inputs, and says what is here."""
    chosen = list(configurations)
    for one in inputs:
        variants = variants_of(family, chosen, one.options)
        texts = {variant.source.struct for variant in variants}
        sizes = " ".join(f"{name}={size}" for name, size in one.sizes.items())
        print(f"{family.name} {sizes}: {len(variants)} configurations, {len(texts)} different structs")
    for peer in peers:
        print(f"{peer}: {'installed' if find_spec(peer) else 'not installed'}")
    print(f"{device}: {is_there(device)}")
    return 0


def is_there(device: str) -> str:
    """``here``, or why not."""
    try:
        open_backend(device).close()
    except AutotuneError as problem:
        return f"not here: {problem}"
    return "here"
