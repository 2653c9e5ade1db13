"""``autotune sweep --on HOST``: the sweep runs on a host that has the GPU, by ssh; its record, results and policy file
come back.

What the host cannot have is sent with it: the family's folder, workload files, ``--data``, and the record so far, so
that the same command goes on where an earlier one ended. ssh is the user's own, with all that ~/.ssh/config says;
AUTOTUNE_SSH names another command for it, or options.
"""

import hashlib
import io
import os
import platform
import shlex
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from rich.console import Console

from autotune import __version__
from autotune import files as paths
from autotune.cli.options import words
from autotune.declaration import workloads
from autotune.engine import SweepRequest
from autotune.errors import DeviceError, Interrupted, StoreError, UsageError, explained
from autotune.files import find_bundled, replace_file
from autotune.processes import exchange, guard, run_attended

if TYPE_CHECKING:
    from subprocess import CompletedProcess

_LEFT_OUT = ("__pycache__", ".git")
_THEIRS = (".claims", ".lock")  # of what comes back: of use only where it was made
_SSH_FAILED = 255  # ssh's own status
_KEPT = ("store.journal", "limits.json")  # of an output folder: what a sweep there goes on from


@dataclass(frozen=True)
class Host:
    """``name`` is as ssh takes it, ``program`` what runs autotune there."""

    name: str
    program: str = "autotune"

    @classmethod
    def parse(cls, text: str) -> "Host":
        """From ``[user@]host[:program]``. Raises UsageError."""
        name, _, program = text.partition(":")
        if not name or name.startswith("-"):
            raise UsageError(f"cannot read --on {text!r}: write --on [user@]host, or host:/path/to/autotune")
        return cls(name, program or "autotune")

    def build_command(self, script: str, *words: str) -> list[str]:
        """What runs a shell script there, with ``words`` as its arguments."""
        ssh = shlex.split(os.environ.get("AUTOTUNE_SSH", "ssh"))
        return [*ssh, self.name, "exec sh -c " + shlex.join([script, "sh", *words])]


def sweep_on(host: Host, request: SweepRequest, policies: Path, out: Console, *, strict: bool = False) -> int:
    """The sweep there, whose policy file goes below ``policies`` here; returns its exit code. Raises AutotuneError."""
    if request.store:
        raise UsageError("--on brings the record back to --out: leave --store out")
    if request.prior:
        raise UsageError(
            "--on sweeps there, and --from is read here: run the sweep on that host, or leave --from out"
        )
    here = {"out": request.folder, "policies": policies}
    for folder in here.values():
        paths.writable(folder)
    # From the home folder there, the one that belongs to the folder here.
    told = hashlib.sha256(f"{platform.node()} {request.folder.resolve()}".encode()).hexdigest()[:16]
    place = f".cache/autotune/on/{told}"
    _send(host, place, request, policies)
    out.print(f"on {host.name}:")
    script = f'cd "$1" && shift\n{guard("TERM")}'
    command = host.build_command(
        script, place, host.program, *_words(request), *(["--strict"] if strict else [])
    )
    status, is_interrupted = run_attended(command)
    if status == _SSH_FAILED and not is_interrupted:
        raise DeviceError(
            f"the connection to {host.name} was lost; what was measured is kept there: run the same command to resume"
        )
    _fetch(host, place, here)
    if is_interrupted:
        raise Interrupted(
            f"interrupted: what was measured is in {request.folder}; run the same command to resume"
        )
    for what, where in (("results", request.folder), ("policy files", policies)):
        out.print(f"{what:12} {where}")
    return status


# -- there ------------------------------------------------------------------------------------------------------


_RECEIVE = """set -e
umask 077
mkdir -p "$1"
version=$("$2" --version) || { echo "$2 does not run there" >&2; exit 127; }
echo "$version"
cd "$1"
tar xf -
mkdir -p out
for file in sent/*; do  # where a connection was lost, what was measured since is here
  name="out/${file#sent/}"
  [ ! -e "$file" ] || [ -e "$name" ] || mv "$file" "$name"
done"""


def _send(host: Host, place: str, request: SweepRequest, policies: Path) -> None:
    """What the sweep needs. Raises DeviceError for a host that cannot be reached or has another autotune."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, path in _list_sent_files(request, policies):
            tar.add(path, name, filter=lambda one: None if Path(one.name).name in _LEFT_OUT else one)
    ended = _ssh(host, _RECEIVE, place, host.program, given=packed.getvalue())
    version = ended.stdout.decode(errors="replace").strip()
    if ended.returncode:
        said = ended.stderr.decode(errors="replace").strip()
        raise DeviceError(
            f"cannot sweep on {host.name}: {said or f'exit code {ended.returncode}'}; `ssh {host.name} {host.program} "
            "--version` must work (--on HOST:PROGRAM names another program)"
        )
    if version != f"autotune {__version__}":
        raise DeviceError(
            f"{host.name} has {version}, and this is autotune {__version__}: install the same version on both"
        )


def _fetch(host: Host, place: str, here: Mapping[str, Path]) -> None:
    """Record, results and policy files, to the folders ``here`` of the names there, where they are no more. Raises
    StoreError."""
    ended = _ssh(host, 'cd "$1" && mkdir -p out policies && tar cf - out policies', place)
    if ended.returncode:
        said = ended.stderr.decode(errors="replace").strip()
        raise StoreError(f"cannot bring the results back from {host.name}:{place}: {said}")
    try:
        with tarfile.open(fileobj=io.BytesIO(ended.stdout)) as tar:
            for member, inside in _files(tar):
                _write(tar, member, here[inside.parts[0]].joinpath(*inside.parts[1:]))
    except (OSError, tarfile.TarError) as problem:
        raise StoreError(f"cannot write what came back from {host.name}:{place}: {problem}") from None
    _ssh(host, 'rm -rf "$1"', place)


def _files(tar: tarfile.TarFile) -> Iterator[tuple[tarfile.TarInfo, PurePosixPath]]:
    """Plain files below the two folders, and nothing that leads elsewhere."""
    for member in tar:
        inside = PurePosixPath(member.name)
        is_ours = inside.parts[0] in ("out", "policies") and ".." not in inside.parts
        if member.isfile() and is_ours and inside.suffix not in _THEIRS:
            yield member, inside


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    content = tar.extractfile(member)
    assert content
    path.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(path) as temporary:
        temporary.write_bytes(content.read())


def _ssh(host: Host, script: str, *words: str, given: bytes = b"") -> "CompletedProcess[bytes]":
    command = host.build_command(script, *words)
    with explained(DeviceError, f"cannot run {command[0]}:", "; --on needs an ssh client"):
        return exchange(command, given)


# -- what is sent -----------------------------------------------------------------------------------------------


def _own_family(request: SweepRequest) -> str:
    """The folder there of a family that the host does not have with its autotune; empty of one that it has."""
    folder = request.family.folder
    has_it = folder.parent.resolve() == find_bundled("kernels").resolve()
    return "" if has_it else f"family/{folder.resolve().name}"


def _list_sent_files(request: SweepRequest, policies: Path) -> Iterator[tuple[str, Path]]:
    """Names in the host's folder, and what they are here."""
    if own := _own_family(request):
        yield own, request.family.folder
    for path, there in _workload_files(request).items():
        yield there, path
    if request.data:
        yield "data", request.data
    for name in _KEPT:
        if (request.folder / name).is_file():
            yield f"sent/{name}", request.folder / name
    if (policies / request.family.name).is_dir():
        yield f"policies/{request.family.name}", policies / request.family.name


def _workload_files(request: SweepRequest) -> dict[Path, str]:
    """Those that were named by their file, and what they are called there."""
    known = workloads(request.family)
    files = [Path(name) for name in request.workloads if name and name not in known]
    return {path: f"workloads/{number}/{path.name}" for number, path in enumerate(files)}


def _words(request: SweepRequest) -> list[str]:
    """The command there."""
    sent, own = _workload_files(request), _own_family(request)
    named = tuple(sent.get(Path(name), name) if name else name for name in request.workloads)
    data = Path("data") if request.data else None
    there = replace(request, workloads=named, data=data, out=Path("out"))
    family = f"./{own}" if own else request.family.name
    return ["sweep", family, *words(there), "--policies", "policies"]
