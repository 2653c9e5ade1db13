"""``autotune push``: a policy file into a registry, a folder of this machine; nothing is sent anywhere."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from autotune.declaration import Family, load_family, workloads
from autotune.errors import AutotuneError, PolicyFileError, StoreError, UnknownName, UsageError, explained
from autotune.files import policy_folders, replace_file
from autotune.policy import PolicyFile, file_of, read_policy_file
from autotune.registry.checking import check_file
from autotune.registry.git import git
from autotune.registry.index import MOST_BYTES, Index, Listing, index_path, list_file, read_index, read_listed
from autotune.registry.source import FolderSource, NotThere


def push(
    family: str | os.PathLike[str], registry: str | os.PathLike[str], *, device: str = "",
    policies: str | Path | None = None, by: str = "", record: str = "", commit: bool = False,
    replace: bool = False, note: Callable[[str], None] = lambda line: None,
) -> Path:  # fmt: skip
    """Put the policy file of a family and a device into a registry on this machine, as it is, comments too. Sends
    nothing anywhere: a git working tree is then yours to push, a folder yours to serve.

    Args:
        family: A name, or a folder with a family.yaml.
        registry: The folder, which has to be there.
        device: The policy file's name, as nvidia-h200; may be left out where the family has one file.
        policies: The first folder that the file is looked for in.
        by: Who publishes it, as everybody will read it; default git's user.name.
        record: Where the record is, or the command that made it; default the command that sweeps the same workloads.
        commit: Commit index and file, in the git working tree that the registry is.
        replace: Publish although an entry that is listed now is faster, or is not in this file.
        note: Called with each line that a person should see.

    Returns:
        The file in the registry.

    Raises:
        UnknownName: The family has no such policy file.
        UsageError: Nobody says who publishes it, or there is no git working tree to commit in.
        PolicyFileError: An entry is stale or unproven, or what is listed is better; nothing was written.
        StoreError: The folder cannot be read or written.
    """
    loaded, folder = load_family(family), Path(registry)
    if not folder.is_dir():
        raise StoreError(f"{folder} is no folder: make it, or name the one that holds the registry with --to")
    found = _policy_file(loaded, device, policies)
    file = read_policy_file(found)
    check_file(loaded, file, str(found))
    if commit and _git_says(folder, "rev-parse", "--is-inside-work-tree") != "true":
        raise UsageError(f"{folder} is no git working tree: leave --commit out, or make it one with git init")
    if not (by := by or _git_says(folder, "config", "user.name")):
        raise UsageError("nobody says who publishes it: name yourself, or your group, with --by")
    content = found.read_bytes()
    listing = list_file(
        content, file, by=by, date=datetime.now(UTC).isoformat(timespec="seconds"), commit=_commit_of(loaded),
        record=record or _command(loaded, file),
    )  # fmt: skip
    read_listed(content, listing, str(found))  # as a reader will
    source = FolderSource(folder)
    with _lock_folder(folder / loaded.name):
        index = _index(source, loaded.name)
        before = next((one for one in index.listings if one.key == listing.key), None)
        path = folder / loaded.name / listing.path
        if before and before.sha256 == listing.sha256:
            note(f"{path} is listed already, by {before.by}")
        else:
            lost = list(_list_losses(source, loaded, before, file)) if before else []
            if lost and not replace:
                raise PolicyFileError(
                    f"{folder} lists a file that is better: {'; '.join(lost)}. Sweep what is missing, or publish yours "
                    "in its place with --replace"
                )
            text = index.add(listing).text.encode()
            read_index(text, loaded.name, f"the new index of {folder}")  # as a reader will
            _put(path, content)
            _put(folder / index_path(loaded.name), text)
            note(f"{listing}, in {path}")
            for why in lost:
                note(f"replaced, although {why}")
        if commit:
            about = f"autotune: {loaded.name} on {file.device.name}"
            _commit(folder, about, index_path(loaded.name), f"{loaded.name}/{listing.path}")
    return path


def _commit(folder: Path, about: str, *paths: str) -> None:
    """Those files alone, where they are not committed as they are now. Raises StoreError."""
    git("add", "--", *paths, folder=str(folder))
    if git("status", "--porcelain", "--", *paths, folder=str(folder)):
        git("commit", "--quiet", "-m", about, "--", *paths, folder=str(folder))


def _policy_file(family: Family, device: str, policies: str | Path | None) -> Path:
    """The file of that name; without one the only file of the first folder that has any. Raises UnknownName."""
    folders = policy_folders(policies, family.folder)
    if device and (found := file_of(family, device, folders)):
        return found
    listed = [sorted((folder / family.name).glob("*.yaml")) for folder in folders]
    first = next(filter(None, listed), [])
    if not device and len(first) == 1:
        return first[0]
    known = dict.fromkeys(path.stem for paths in listed for path in paths)
    raise UnknownName("policy file", device, known, f"{family.name}: name one with --device")


def _command(family: Family, file: PolicyFile) -> str:
    """The sweep that measures the family's workloads in the file again."""
    known = workloads(family)
    names = dict.fromkeys(item.workload for item in file.entries.values() if item.workload in known)
    return " ".join(["autotune sweep", family.name, *(f"--workload {name}" for name in names)])


def _commit_of(family: Family) -> str:
    """Of the repository that has the family's folder; empty outside of one."""
    commit = _git_says(family.folder, "rev-parse", "HEAD")
    is_edited = commit and _git_says(family.folder, "status", "--porcelain", "--", ".")
    return f"{commit} with edits" if is_edited else commit


def _git_says(folder: Path, *words: str) -> str:
    """Nothing where git is not there, or has no answer."""
    try:
        return git(*words, folder=str(folder)).strip()
    except StoreError:
        return ""


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Nobody else on this machine pushes into ``folder`` meanwhile. Raises StoreError."""
    with explained(StoreError, f"cannot write to {folder}:", "; name another folder with --to"):
        folder.mkdir(exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _index(source: FolderSource, family: str) -> Index:
    """What is there, or an empty one. Raises PolicyFileError for a broken one, which is not replaced."""
    path = index_path(family)
    try:
        return read_index(source.read(path, MOST_BYTES), family, f"{source.name}/{path}")
    except NotThere:
        return Index(family)


def _list_losses(source: FolderSource, family: Family, listing: Listing, new: PolicyFile) -> Iterator[str]:
    """What is better in the file that is listed now."""
    path = f"{family.name}/{listing.path}"
    try:
        old = read_listed(source.read(path, MOST_BYTES), listing, f"{source.name}/{path}").entries
    except AutotuneError as problem:
        yield f"the file that is listed now cannot be compared with: {problem}"
        return
    for name, item in old.items():
        if name not in new.entries:
            yield f"entry {name} is only there"
        elif item.cost * (1 + item.cost_spread) < (own := new.entries[name]).cost * (1 - own.cost_spread):
            yield f"entry {name} takes {item.cost:.4g} there and {own.cost:.4g} here"


def _put(path: Path, content: bytes) -> None:
    """Whole, or not at all. Raises StoreError."""
    with explained(StoreError, f"cannot write {path}:", "; name another folder with --to"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(path, 0o644) as temporary:
            temporary.write_bytes(content)
