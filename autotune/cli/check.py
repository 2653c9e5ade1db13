"""``autotune check``: would these policy files be accepted here, and does what they claim still hold."""

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from autotune import files as paths
from autotune.cli import options
from autotune.cli.terminal import append, code, markdown_table
from autotune.compile import Cache, default_root
from autotune.declaration import Family, load_family, load_workload, prepare
from autotune.device import open_backend
from autotune.engine import ProcessWorker, Sweep, SweepRequest, launch_workers, open_devices
from autotune.errors import AutotuneError, DeviceError, PolicyFileError, UsageError
from autotune.extensions import check_of_ranks
from autotune.hardware import Device
from autotune.policy import PolicyFile, acceptance, read_policy_file
from autotune.record import Store


@dataclass(frozen=True, kw_only=True)
class CheckRequest:
    """What is to be checked. ``families`` are folders of families that do not ship with autotune; ``tolerance`` how
    much worse than recorded a time may be, relative. A table is appended to ``markdown``."""

    files: Sequence[Path]
    families: tuple[str, ...] = ()
    device: str = "auto"
    measure: bool = False
    workloads: tuple[str, ...] = ()
    tolerance: float = 0.1
    trial_seconds: float = 120.0
    data: Path | None = None
    markdown: Path | None = None

    def device_for(self, file: PolicyFile) -> str:
        """The name of what measures the entries of ``file``."""
        return self.device if self.device != "auto" else file.device.kind

    def resolve_workloads(self, family: Family) -> dict[str, str]:
        """What ``workloads`` names, by the workloads' own names: a file stands for the workload in it."""
        return {_name(family, one): one for one in self.workloads}


def _name(family: Family, named: str) -> str:
    if Path(named).suffix not in (".yaml", ".yml"):
        return named
    try:
        return load_workload(family, named).name
    except AutotuneError:  # of another family, or none: no entry is called so
        return named


@dataclass(frozen=True)
class Checked:
    """One result. ``trouble`` says why the entry is rejected (the whole file if ``entry`` is empty), or is empty."""

    path: Path
    entry: str
    trouble: str
    remark: str = ""

    def __str__(self) -> str:
        where = f"{self.path}: {self.entry}" if self.entry else str(self.path)
        said = f"rejected  {where}: {self.trouble}" if self.trouble else f"accepted  {where}"
        return f"{said}{f'  ({self.remark})' if self.remark else ''}"


def policy_files(policies: Path | None, families: Sequence[str] = ()) -> list[Path]:
    """Every policy file in the folders where they are looked for; with the folders of ``families``, those of these
    alone. Raises PolicyFileError when there is none."""
    folders = paths.policy_folders(policies)
    of = [load_family(folder).name for folder in families] or ["*"]
    found = [path for folder in folders for name in of for path in sorted(folder.glob(f"{name}/*.yaml"))]
    if not found:
        raise PolicyFileError(f"no policy file in {', '.join(map(str, folders))}; `autotune sweep` makes one")
    return list({os.path.realpath(path): path for path in reversed(found)}.values())[::-1]


def check(request: CheckRequest, out: Console) -> None:
    """Print a line for each entry. Raises UsageError, and PolicyFileError if one is rejected or a claim is false."""
    if len({Path(folder).resolve().name for folder in request.families}) < len(request.families):
        raise UsageError(f"--family names one folder a family: {', '.join(request.families)} are of one name")
    results: list[Checked] = []
    for path in request.files:
        for result in _file(request, path):
            results.append(result)
            out.print(str(result))
    if request.markdown is not None:
        append(request.markdown, _markdown(results))
    if refused := sum(bool(result.trouble) for result in results):
        raise PolicyFileError(
            f"{refused} of {len(results)} would be rejected, or no longer meet their recorded times; the reasons are "
            "above. "
            "`autotune sweep` measures again; where an edit of sources left the machine code alike, "
            "`python benchmarks/renew_alike.py COMMIT` in a checkout renews the entries"
        )


def _markdown(results: Sequence[Checked]) -> str:
    refused = sum(bool(result.trouble) for result in results)
    rows = []
    for result in results:
        told = f"**{code(result.trouble)}**" if result.trouble else "accepted"
        named = (result.path.stem, result.path.parent.name, result.entry)
        rows.append((*map(code, named), told, code(result.remark)))
    count = f"**{refused} of {len(results)} rejected**" if refused else f"{len(results)} accepted"
    return f"### Policy files: {count}\n\n{markdown_table(('device', 'family', 'entry', '', 'measured'), rows)}\n"


def _file(request: CheckRequest, path: Path) -> Iterator[Checked]:
    try:
        file = read_policy_file(path)
        given = [load_family(folder) for folder in request.families]
        family = next((one for one in given if one.name == file.family), None)
        if family is None and given:
            names = " or ".join(one.name for one in given)
            yield Checked(path, "", f"it is for family {file.family}, not {names}")
            return
        family = family or load_family(file.family)
    except AutotuneError as problem:
        yield Checked(path, "", str(problem))
        return
    own, remark = _device(request, file)
    claims = {name: acceptance.Claim(family, item) for name, item in file.entries.items()}
    results = {n: Checked(path, n, one.explain_refusal(own or file.device)) for n, one in claims.items()}
    if request.measure and own is not None:
        results |= _time_accepted(request, family, request.device_for(file), claims, results)
    yield from results.values()
    reason = acceptance.file_refusal(family, file, file.device.kind)
    reason = reason or acceptance.find_configuration(family, file.default)[1]
    yield Checked(path, "default", reason, remark)
    if request.measure and own is None:
        yield Checked(path, "", f"cannot be measured here: {remark}")
    elif request.measure and (
        missing := request.resolve_workloads(family).keys()
        - {item.workload for item in file.entries.values()}
    ):
        yield Checked(path, min(missing), "no such entry")


def _device(request: CheckRequest, file: PolicyFile) -> tuple[Device | None, str]:
    """The device of this machine that the file is for, or None and why not."""
    kind = file.device.kind
    try:
        with closing(open_backend(request.device_for(file))) as backend:
            device = backend.device
    except DeviceError as problem:
        why = f": {str(problem).partition(';')[0]}" if request.measure else ""
        return None, f"no {kind} device here{why}"
    if (device.kind, device.name) != (kind, file.device.name):
        return None, f"for {file.device.name}, here is {device.name}"
    return device, ""


def _time_accepted(
    request: CheckRequest, family: Family, device: str, claims: Mapping[str, acceptance.Claim],
    results: Mapping[str, Checked],
) -> dict[str, Checked]:  # fmt: skip
    """The accepted entries, timed again; one worker for all of them."""
    asked = request.resolve_workloads(family)
    wanted = {name: claim for name, claim in claims.items() if not asked or claim.item.workload in asked}
    timed = {name: result for name, result in results.items() if name in wanted and not result.trouble}
    if not timed:
        return {}
    with launch_workers([device], "", request.trial_seconds) as workers:
        open_devices(workers, "")
        for name, result in timed.items():
            try:
                timed[name] = _retime(request, workers, family, claims[name], result)
            except AutotuneError as problem:
                timed[name] = replace(result, trouble=f"cannot be measured: {problem}")
    return timed


def _retime(
    request: CheckRequest, workers: Sequence[ProcessWorker], family: Family, claim: acceptance.Claim, result: Checked
) -> Checked:  # fmt: skip
    """What came of timing the entry's winner again, side by side with what it was compared with."""
    item = claim.item
    workload = load_workload(family, request.resolve_workloads(family).get(item.workload, item.workload))
    inputs = prepare(family, workload, paths.data_root(request.data))
    if inputs.digest != item.workload_digest:
        return replace(result, trouble="the workload's input is not the one it was measured on; sweep again")
    asked = SweepRequest(
        family=family, objective=item.objective, chosen=tuple(claim.configurations), processes=1
    )
    with tempfile.TemporaryDirectory(prefix="autotune-check-") as folder:
        study = Sweep(
            workers=workers, request=asked, workload=workload, inputs=inputs, store=Store(folder),
            cache=Cache(default_root()), protocol=asked.protocol(workers[0].device.kind),
        ).run()  # fmt: skip
    trials = {t.configuration: t for t in study.trials}
    found = "; ".join(claim.contradictions(trials, request.tolerance))
    return replace(result, trouble=found, remark=claim.figures(trials))


@click.argument(
    "policy",
    nargs=-1,
    type=options.FOLDER,
    metavar="[POLICY]...",
    help="Policy files; default: all that are found, or those of --family.",
)
@options.sweep_options("workloads", "data", "trial_seconds")
@options.option(
    "--measure",
    help="Also time each winner, its control and its runner-up; fail if a recorded claim does not hold.",
)
@options.option(
    "--tolerance T", default=0.1, least=0, help="Allowed relative increase of a time: 0.1 is 10 %."
)
@options.option(
    "--family DIR",
    multiple=True,
    help="Folder of a family that does not ship with autotune; repeat for more.",
)
@options.option("--device auto|cpu|cuda|cuda:N", default="auto", help="Device that measures.")
@options.option(
    "--ranks",
    help="This is a rank of mpiexec, srun or torchrun: do all have the same files, code and choices?",
)
@options.policies_option
@options.markdown_option("lines")
def check_command(
    policy: tuple[Path, ...], family: tuple[str, ...], policies: Path | None, ranks: bool, **asked: Any
) -> None:
    compare = check_of_ranks() if ranks else None
    if ranks and (compare is None or asked["measure"]):
        why = "leave --measure out" if compare else "the extension for ranks is not here"
        raise UsageError(f"--ranks compares digests over ranks: {why}")
    if compare:
        compare(lambda: policy or policy_files(policies, family), family, options.out)
        return
    files = policy or policy_files(policies, family)
    check(CheckRequest(files=files, families=family, **asked), options.out)
