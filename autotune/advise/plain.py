"""A plain kernel as a family whose control is that kernel, and the family folder with the few policies that help."""

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from rich.console import Console

from autotune.adopt import AdoptRequest, adopt
from autotune.advise.advice import Advice, make_advice, trace_configurations
from autotune.advise.arithmetic import describe_arithmetic
from autotune.advise.report import Said
from autotune.declaration import Family, Policy, load_family, load_workload
from autotune.errors import AutotuneError, StoreError, UnknownName
from autotune.files import write_text

ADVISED = "advised"  # the workload with other sizes, and the first of the presets
_COPIES = "begin_"  # kernels of adopt's that give an array what it begins as
_PROOF = re.compile(r"^(proved|unproved): ", re.MULTILINE)
_POINTER = re.compile(r"^  (\w+): stays a pointer, (.*)", re.MULTILINE)
_SHRINKS = 3  # times that sizes are quartered where one warp makes too many accesses to be traced
_LEAST = 64
_SECTION = re.compile(r"^policies:\n(?:[ #].*\n)*", re.MULTILINE)
_BLOCK = re.compile(r"^  (\w+):\n(?:    .*\n)*", re.MULTILINE)


@dataclass(frozen=True)
class AdoptedKernel:
    """``family`` with ``workload``; ``skipped`` are kernels that the plain one does not have, ``said`` what adopt said
    of the proof that both do the same, ``pointers`` the arrays whose layout cannot be chosen, each with the reason."""

    family: Family
    workload: str
    skipped: frozenset[str]
    said: str
    pointers: Mapping[str, str]


def adopt_kernel(request: AdoptRequest, sizes: Mapping[str, float], data: Path) -> AdoptedKernel:
    """The family of a plain kernel, in the request's folder, and a workload with ``sizes`` or, where none are given, as
    large as can be traced. Raises UsageError, FamilyError, StoreError, UnknownName for a size that it has not."""
    folder = request.out_folder
    assert folder is not None, "the caller names a folder"
    adopt(request, Console(file=io.StringIO()))
    family = load_family(str(folder.resolve()))
    text = (folder / "adopted.txt").read_text(encoding="utf-8")
    found = _PROOF.search(text)
    said = text[found.start() :].splitlines()[0] if found else ""
    skipped = frozenset(name for name in family.kernels if name.startswith(_COPIES))
    workload = _write_sizes(family, sizes) if sizes else _shrink(family, data, skipped)
    family = load_family(str(folder.resolve()))
    return AdoptedKernel(family, workload, skipped, said, dict(_POINTER.findall(text)))


def _write_sizes(family: Family, sizes: Mapping[str, float]) -> str:
    """The workload ``advised``: the adopted one with other numbers. Raises UnknownName, StoreError."""
    adopted = load_workload(family, "adopted")
    parameters, scalars = dict(adopted.parameters), dict(adopted.scalars)
    known = {*parameters, *scalars} - {"seed"}
    for name, value in sizes.items():
        if name not in known:
            raise UnknownName("size", name, sorted(known), f"family {family.name}")
        parameters |= {name: value} if name in parameters else {}
        scalars |= {name: value} if name in scalars else {}
    content = {"schema": 1, "workload": ADVISED, "family": family.name, "parameters": parameters}
    content |= {"scalars": scalars} if scalars else {}
    write_text(family.folder / "workloads" / f"{ADVISED}.yaml", yaml.safe_dump(content, sort_keys=False))
    return ADVISED


def _shrink(family: Family, data: Path, skipped: frozenset[str]) -> str:
    """The adopted workload, or one whose sizes are a quarter, a sixteenth and so on, until whole warps are traced."""
    workload, sizes = "adopted", dict(load_workload(family, "adopted").parameters)
    del sizes["seed"]
    control = family.space.control
    for _ in range(_SHRINKS):
        costs = trace_configurations(family, workload, data, (control,), skipped)[control]
        if not any(one.is_broken for one in costs.kernels):
            break
        smaller = {name: value // 4 if value // 4 >= _LEAST else value for name, value in sizes.items()}
        if smaller == sizes:
            break
        try:
            workload, sizes = _write_sizes(family, smaller), smaller
        except AutotuneError:
            break
    return workload


def keep_advised(advice: Advice) -> tuple[str, ...]:
    """Leave of the layout policies in the family's folder those that help, with a preset for each suggestion, and see
    that the family still loads. Returns the presets. Raises FamilyError, StoreError."""
    path = advice.family.folder / "family.yaml"
    names = {each.policy.name for one in advice.suggestions if one.helps for each in one.changes}
    presets = {ADVISED if n == 1 else f"{ADVISED}-{n}": one for n, one in enumerate(advice.advised, 1)}
    if presets:
        content = _keep_policies(path.read_text(encoding="utf-8"), advice.family.space.policies, names)
        told = "# What `autotune advise` suggests, the best first.\npresets:\n"
        for name, one in presets.items():
            told += f"  {name}: {{set: {{{', '.join(f'{n}: {v}' for n, v in one.values.items())}}}}}\n"
        before, mark, after = content.partition("# The kernel as it was, timed in the same run.\n")
        write_text(path, f"{before}{told}\n{mark}{after}" if mark else f"{content}\n{told}\n")
    load_family(str(advice.family.folder))
    return tuple(presets)


def _keep_policies(content: str, policies: Sequence[Policy], names: set[str]) -> str:
    """family.yaml without the layout policies that are not among ``names``. Raises StoreError."""
    found = _SECTION.search(content)
    if found is None:
        raise StoreError("family.yaml of an adopted kernel has no policies: adopt it again")
    dropped = [policy.name for policy in policies if policy.layout and policy.name not in names]
    section = _BLOCK.sub(lambda block: "" if block[1] in dropped else block[0], found[0])
    note = f"# Left out, since they save next to nothing: {', '.join(dropped)}.\n" if dropped else ""
    return content[: found.start()] + note + section + content[found.end() :]


def advise_on_kernel(request: AdoptRequest, sizes: Mapping[str, float], data: Path) -> Said:
    """Advice on a plain kernel; its family is left in the request's folder. Raises as ``adopt_kernel`` and
    ``make_advice`` do."""
    adopted = adopt_kernel(request, sizes, data)
    advice = make_advice(adopted.family, adopted.workload, data, skipped=adopted.skipped)
    presets = keep_advised(advice)
    title, arithmetic = f"{request.path.name}", describe_arithmetic(adopted.family)
    return Said(title, advice, adopted.said, adopted.pointers, arithmetic, presets)
