"""The index of a registry: for one family, the policy files that it has, whose they are and what they were made with.

    FAMILY/index.yaml                      the index
    FAMILY/files/DEVICE-SHA256.yaml        a policy file, by the first digits of its digest

A file's place follows from its listing: no index names a path.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml

from autotune.declaration import yamlfile
from autotune.errors import PolicyFileError
from autotune.hardware import Device
from autotune.policy import PolicyFile, read_policy_file
from autotune.processes import own_folder

SCHEMA = 1
MOST_BYTES = 4 << 20  # of an index, or of a policy file
_LONGEST = 2000  # characters of a text
Read = TypeVar("Read")


@dataclass(frozen=True, kw_only=True)
class Listing:
    """A policy file of a registry: whose it is (``by``), when it was published, and what it was made with.

    ``device`` is its device's kind, name and compute capability; ``sha256`` and ``bytes`` are the file's, the other
    digests those that its entries have. ``measured`` is when the newest of its sweeps began, ``commit`` that of the
    repository in which its publisher has the family, ``record`` says where the record is, or what measures it again."""

    device: Mapping[str, str]
    sha256: str
    bytes: int
    entries: Sequence[str]
    source_digest: str
    layouts_digest: str
    space_digest: str
    by: str
    date: str
    measured: str = ""
    driver: str = ""
    compiler: str = ""
    autotune: str = ""
    commit: str = ""
    record: str = ""

    @property
    def slug(self) -> str:
        """The device's name as a policy file's."""
        kind: Literal["cpu", "cuda"] = "cpu" if self.device["kind"] == "cpu" else "cuda"
        return Device(kind=kind, name=self.device["name"], arch="").slug

    @property
    def path(self) -> str:
        """The file's place in the family's folder."""
        return f"files/{self.slug}-{self.sha256[:16]}.yaml"

    @property
    def key(self) -> tuple[str, ...]:
        """What a registry has one file for: a device, and a family as it then was."""
        return (*device_key(self.device), self.source_digest, self.layouts_digest, self.space_digest)

    def __str__(self) -> str:
        count = "1 entry" if len(self.entries) == 1 else f"{len(self.entries)} entries"
        return f"{self.device['name']}: {count} by {self.by}, {self.date[:10]}"


@dataclass(frozen=True)
class Index:
    """What a registry has for ``family``."""

    family: str
    listings: tuple[Listing, ...] = ()

    @property
    def text(self) -> str:
        """What is written."""
        listings = [{k: v for k, v in asdict(one).items() if v != ""} for one in self.listings]
        plain = {"schema": SCHEMA, "family": self.family, "listings": listings, "count": len(listings)}
        text = yaml.safe_dump(plain, sort_keys=False, width=110, allow_unicode=True)
        return f"# Written by `autotune push`.\n{text}"

    def add(self, listing: Listing) -> "Index":
        """With ``listing`` in place of the one of the same key."""
        others = [one for one in self.listings if one.key != listing.key]
        return Index(self.family, tuple(sorted([*others, listing], key=lambda one: (one.slug, one.date))))


def index_path(family: str) -> str:
    """The place of a family's index in a registry."""
    return f"{family}/index.yaml"


def device_key(device: Mapping[str, str]) -> tuple[str, str, str]:
    """Kind, name and compute capability."""
    return device["kind"], device["name"], device.get("compute_capability", "")


def read_index(content: bytes, family: str, where: str) -> Index:
    """Read an index.

    Args:
        content: The bytes that were at ``where``.
        family: Whose index it should be.

    Raises:
        PolicyFileError: It is none, is another family's, was cut off, or says two things of one file.
    """
    plain = _read(content, where, _load_index)
    listings = tuple(Listing(**one) for one in plain["listings"])
    if plain["family"] != family:
        raise PolicyFileError(f"{where}: it is the index of family {plain['family']}, not of {family}")
    if plain["count"] != len(listings):
        raise PolicyFileError(
            f"{where}: it has {len(listings)} listings and says {plain['count']}: it was cut off, or merged by hand; "
            "push again to write it whole"
        )
    key, times = Counter(one.key for one in listings).most_common(1)[0] if listings else ((), 0)
    if times > 1:
        raise PolicyFileError(f"{where}: it lists {times} files for {key[1]} and the same sources")
    return Index(family, listings)


def _load_index(path: Path) -> dict[str, Any]:
    plain = yamlfile.read(path, PolicyFileError)
    if wrong := yamlfile.fault(plain, "registry"):
        yamlfile.check(plain, "registry", path, PolicyFileError)  # which names the place best
        raise PolicyFileError(f"{path}: {wrong}")
    refuse_unreadable(plain, path)
    return plain


def read_listed(content: bytes, listing: Listing, where: str) -> PolicyFile:
    """The policy file that ``listing`` describes, from the bytes that were at ``where``. Raises PolicyFileError for
    what is none, and for other bytes than those that are listed."""
    if len(content) != listing.bytes or hashlib.sha256(content).hexdigest() != listing.sha256:
        raise PolicyFileError(
            f"{where}: its {len(content):,} bytes are not the {listing.bytes:,} of digest {listing.sha256[:16]} that "
            "the index lists: it is damaged, or the index is; tell who keeps the registry"
        )

    def read(path: Path) -> PolicyFile:
        refuse_unreadable(yamlfile.read(path, PolicyFileError), path)
        return read_policy_file(path)

    file = _read(content, where, read)
    own = device_key({**vars(file.device), "compute_capability": file.device.compute_capability})
    if own != device_key(listing.device) or sorted(file.entries) != sorted(listing.entries):
        raise PolicyFileError(
            f"{where}: the index lists it for another device, or with other entries, than it has"
        )
    return file


def _read(content: bytes, where: str, read: Callable[[Path], Read]) -> Read:
    """What ``read`` makes of a file with that content; its messages name the place where that came from."""
    with own_folder() as folder:
        path = Path(folder, "downloaded.yaml")
        path.write_bytes(content)
        try:
            return read(path)
        except PolicyFileError as problem:
            raise PolicyFileError(str(problem).replace(str(path), where)) from None


def refuse_unreadable(content: Any, path: Path) -> None:
    """Raise PolicyFileError for a text that a terminal or a page would not show as it is, or that is too long."""
    for text in _texts(content):
        if len(text) > _LONGEST or not all(part.isprintable() for part in text.split("\n")):
            raise PolicyFileError(
                f"{path}: {text!r:.60} is not a text of at most {_LONGEST} printable characters"
            )


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, Mapping):
        for key, value in content.items():
            yield from _texts(key)
            yield from _texts(value)
    elif isinstance(content, Iterable):
        for value in content:
            yield from _texts(value)


def list_file(content: bytes, file: PolicyFile, **said: str) -> Listing:
    """The listing of a policy file with these bytes; ``said`` is what its publisher says of it."""
    device, newest = file.device, max(file.entries.values(), key=lambda item: item.date)
    names = ("source_digest", "layouts_digest", "space_digest", "driver", "compiler", "autotune")
    return Listing(
        device={"kind": device.kind, "name": device.name, "compute_capability": device.compute_capability},
        sha256=hashlib.sha256(content).hexdigest(), bytes=len(content), entries=sorted(file.entries),
        measured=newest.date, **{name: getattr(newest, name) for name in names}, **said,
    )  # fmt: skip
