"""autotune push: which files may enter a registry, and that nothing better is lost there unsaid."""

import fcntl
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from fakes import FakeBackend, cost, sweep
from registries import BY, Registry, git

from autotune.cli.commands import main
from autotune.declaration import load_family
from autotune.errors import PolicyFileError, StoreError, UnknownName, UsageError
from autotune.layout import layouts_digest
from autotune.policy.merge import update
from autotune.registry import push, pushing
from autotune.registry.index import read_index


@pytest.fixture
def measured(registry: Registry, tmp_path: Path) -> Path:
    """The policy file that the registry has a copy of."""
    return tmp_path / "measured" / "doubler" / "fake-gpu.yaml"


def edit(path: Path, **entry: Any) -> None:
    content = yaml.safe_load(path.read_text())
    content["entries"]["small"].update(entry)
    path.write_text(yaml.safe_dump(content))


def again(registry: Registry, measured: Path, **more: Any) -> list[str]:
    """What pushing says."""
    said: list[str] = []
    push(
        registry.family, registry.root, policies=measured.parents[1], by="B. Tuner", note=said.append, **more
    )
    return said


def listings(registry: Registry) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load(registry.index.read_text())["listings"]
    return found


def test_a_listing_says_whose_it_is_and_what_it_was_made_with(registry: Registry) -> None:
    (listing,) = read_index(registry.index.read_bytes(), "doubler", "").listings
    family, entry = (
        load_family(registry.family),
        yaml.safe_load(registry.file.read_text())["entries"]["small"],
    )
    assert listing.by == BY and listing.device["name"] == "Fake GPU" and listing.entries == ["small"]
    assert (listing.source_digest, listing.space_digest) == (family.source_digest, family.space_digest)
    assert listing.layouts_digest == layouts_digest()
    assert listing.bytes == registry.file.stat().st_size
    assert (listing.measured, listing.compiler) == (entry["date"], entry["compiler"])
    assert listing.record == "autotune sweep doubler --workload small"
    assert listing.commit == ""  # the family is in no repository


def test_the_same_file_is_listed_once(registry: Registry, measured: Path) -> None:
    before = registry.index.read_bytes()
    assert again(registry, measured) == [f"{registry.file} is listed already, by {BY}"]
    assert registry.index.read_bytes() == before


@pytest.mark.parametrize(
    "entry, why",
    [
        ({"proved": {}}, "entry small: unproven: no sweep compared its results on other sizes"),
        ({"source_digest": "0" * 64}, "entry small: stale: the kernel source changed"),
        ({"space_digest": "0" * 64}, "entry small: stale: the space changed"),
        ({"layouts_digest": "0" * 64}, "entry small: stale: the layouts changed"),
        ({"refined": {"calls": 20}}, "entry small: a program's own calls found it, not a sweep"),
        (
            {"pulled": {"from": "https://example.org", "sha256": "", "by": "", "date": ""}},
            "entry small: it was pulled from https://example.org and not measured here",
        ),
    ],
    ids=["unproven", "source", "space", "layouts", "refined", "pulled"],
)
def test_what_a_reader_would_refuse_is_not_published(
    entry: dict[str, Any], why: str, registry: Registry, measured: Path
) -> None:
    before = registry.index.read_bytes()
    edit(measured, **entry)
    with pytest.raises(PolicyFileError, match=why):
        again(registry, measured, replace=True)
    assert registry.index.read_bytes() == before


def test_a_faster_entry_is_not_replaced_unsaid(registry: Registry, measured: Path) -> None:
    before = registry.index.read_bytes()
    edit(measured, median_ms=2.0, spread=0.01)
    with pytest.raises(PolicyFileError, match=r"better: entry small takes 1 there and 2 here.*--replace"):
        again(registry, measured)
    assert registry.index.read_bytes() == before
    said = again(registry, measured, replace=True)
    assert said[1] == "replaced, although entry small takes 1 there and 2 here"
    (listing,) = listings(registry)
    assert listing["by"] == "B. Tuner"


def test_an_entry_that_would_be_gone_is_named(registry: Registry, measured: Path) -> None:
    content = yaml.safe_load(measured.read_text())
    content["entries"]["large"] = content["entries"]["small"] | {"features": {"n": 5000}}
    measured.write_text(yaml.dump(content, Dumper=Unaliased))
    again(registry, measured)
    del content["entries"]["large"]
    measured.write_text(yaml.dump(content, Dumper=Unaliased))
    with pytest.raises(PolicyFileError, match="entry large is only there"):
        again(registry, measured)


class Unaliased(yaml.SafeDumper):
    """Writes again what it wrote before."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def test_a_better_one_takes_its_place(registry: Registry, measured: Path) -> None:
    edit(measured, median_ms=0.5)
    (said,) = again(registry, measured)
    assert said.startswith("Fake GPU: 1 entry by B. Tuner")
    (listing,) = listings(registry)
    assert listing["by"] == "B. Tuner"
    # The file before stays: who has read the index before still finds it.
    assert len([*registry.index.parent.glob("files/*.yaml")]) == 2


def test_what_is_listed_and_broken_is_not_replaced_unsaid(registry: Registry, measured: Path) -> None:
    registry.file.write_text("torn")
    edit(measured, median_ms=0.5)
    with pytest.raises(PolicyFileError, match=r"cannot be compared with: .*its 4 bytes are not"):
        again(registry, measured)
    assert len(again(registry, measured, replace=True)) == 2


def test_other_sources_and_other_devices_are_listed_beside_it(registry: Registry, tmp_path: Path) -> None:
    source = registry.family / "doubler.cu"
    source.write_text(source.read_text() + "// edited\n")
    slower = FakeBackend(costs=lambda configuration: 7 * cost(configuration))
    update(tmp_path / "edited", [sweep(registry.family, tmp_path / "second", slower).run()])
    push(registry.family, registry.root, policies=tmp_path / "edited", by=BY)
    assert len(listings(registry)) == 2


def test_a_broken_index_stays_as_it_is(registry: Registry, measured: Path) -> None:
    registry.index.write_text("schema: 1\nfamily: doubler\n")
    edit(measured, median_ms=0.5)
    with pytest.raises(PolicyFileError, match=r"index.yaml.*'listings' is a required property"):
        again(registry, measured, replace=True)
    assert registry.index.read_text() == "schema: 1\nfamily: doubler\n"


def test_a_file_is_published_as_it_is(registry: Registry, measured: Path) -> None:
    measured.write_text("# measured at night\n" + measured.read_text())
    again(registry, measured)
    (listing,) = listings(registry)
    (file,) = registry.index.parent.glob(f"files/*{listing['sha256'][:16]}.yaml")
    assert file.read_bytes() == measured.read_bytes()
    edit(measured, compiler="fake\x1b[31m")
    with pytest.raises(PolicyFileError, match=r"fake-gpu.yaml: 'fake.*printable characters"):
        again(registry, measured)


def test_no_code_of_the_family_runs(registry: Registry, measured: Path) -> None:
    (registry.family / "family.py").write_text("raise RuntimeError('it was imported')\n")
    edit(measured, median_ms=0.5)
    assert len(again(registry, measured)) == 1


def test_a_name_with_control_characters_is_refused(registry: Registry, measured: Path) -> None:
    edit(measured, median_ms=0.5)
    with pytest.raises(PolicyFileError, match="is not a text of at most 2000 printable characters"):
        push(registry.family, registry.root, policies=measured.parents[1], by="\x1b[2J")
    assert len([*registry.index.parent.glob("files/*.yaml")]) == 1


def test_the_folder_has_to_be_there_and_no_link(registry: Registry, measured: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is no folder: make it, or name the one"):
        push(registry.family, tmp_path / "none", policies=measured.parents[1], by=BY)
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "doubler").symlink_to(tmp_path)
    with pytest.raises(StoreError, match="is a link, which a registry may not hold"):
        push(registry.family, tmp_path / "linked", policies=measured.parents[1], by=BY)


def test_two_pushes_take_turns(registry: Registry, measured: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While an index is read and written again, nobody else gets the lock."""
    seen = []

    def probe(path: Path, content: bytes) -> None:
        descriptor = os.open(registry.index.parent, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(descriptor)
        seen.append(path.name)
        put(path, content)

    put = pushing._put
    monkeypatch.setattr(pushing, "_put", probe)
    edit(measured, median_ms=0.5)
    again(registry, measured)
    assert seen[1:] == ["index.yaml"] and len(seen) == 2


def test_a_device_is_named_where_there_are_several(registry: Registry, measured: Path) -> None:
    measured.with_name("other-gpu.yaml").write_bytes(measured.read_bytes())
    with pytest.raises(UnknownName, match=r"name one with --device \(allowed: fake-gpu, other-gpu\)"):
        again(registry, measured)
    edit(measured, median_ms=0.5)
    assert len(again(registry, measured, device="fake-gpu")) == 1


# -- git ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def identity(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Who git says commits."""
    (tmp_path / "gitconfig").write_text("[user]\n\tname = G. Tuner\n\temail = tuner@example.org\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))


@pytest.mark.git
@pytest.mark.usefixtures("identity")
def test_it_is_committed_where_that_is_asked_for(
    registry: Registry, measured: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    git(registry.root, "init")
    (registry.root / "unrelated").write_text("stays as it is")
    command = [
        "push",
        str(registry.family),
        "--to",
        str(registry.root),
        "--policies",
        str(measured.parents[1]),
    ]
    assert main([*command, "--commit"]) == 0
    assert "is listed already" in capsys.readouterr().out
    tracked = git(registry.root, "ls-files").splitlines()
    assert tracked == [
        "doubler/" + registry.file.relative_to(registry.index.parent).as_posix(),
        "doubler/index.yaml",
    ]
    assert git(registry.root, "log", "--format=%an: %s") == "G. Tuner: autotune: doubler on Fake GPU"
    assert main([*command, "--commit"]) == 0  # nothing is left to commit
    assert git(registry.root, "rev-list", "--count", "HEAD") == "1"
    edit(measured, median_ms=0.5)
    assert main([*command, "--commit"]) == 0
    assert git(registry.root, "rev-list", "--count", "HEAD") == "2"
    assert git(registry.root, "status", "--porcelain") == "?? unrelated"
    assert listings(registry)[0]["by"] == "G. Tuner"


@pytest.mark.git
@pytest.mark.usefixtures("identity")
def test_the_commit_of_the_familys_repository_is_listed(registry: Registry, measured: Path) -> None:
    git(registry.family, "init")
    git(registry.family, "add", ".")
    git(registry.family, "commit", "-m", "family")
    head = git(registry.family, "rev-parse", "HEAD")
    edit(measured, median_ms=0.5)
    again(registry, measured)
    assert listings(registry)[0]["commit"] == head
    (registry.family / "notes.txt").write_text("an edit")
    edit(measured, median_ms=0.4)
    again(registry, measured)
    assert listings(registry)[0]["commit"] == f"{head} with edits"


@pytest.mark.git
def test_no_commit_without_a_working_tree_and_no_publisher_without_a_name(
    registry: Registry, measured: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="is no git working tree"):
        again(registry, measured, commit=True)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "none"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    with pytest.raises(UsageError, match="nobody says who publishes it"):
        push(registry.family, registry.root, policies=measured.parents[1])
