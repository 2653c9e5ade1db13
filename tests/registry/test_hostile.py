"""Registries that are broken or hostile: each is rejected with a reason, nothing is written, nothing runs."""

import copy
import os
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
import yaml
from fakes import FakeBackend
from registries import Registry, Server, git, send, stand_in

from autotune.errors import AutotuneError, PolicyFileError, StoreError, UsageError
from autotune.registry import pull
from autotune.registry.source import open_source

INDEX = "/doubler/index.yaml"


@pytest.fixture(autouse=True)
def backends(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> list[FakeBackend]:
    return stand_in(monkeypatch, registry.family)


@pytest.fixture
def refused(registry: Registry, backends: list[FakeBackend], tmp_path: Path) -> Callable[..., None]:
    """Check that a pull is rejected with such a message, before anything ran or was written."""

    def refused(why: str, address: str = "", error: type[AutotuneError] = PolicyFileError) -> None:
        with pytest.raises(error, match=why) as found:
            pull(registry.family, address or registry.root, policies=tmp_path / "mine")
        assert "downloaded.yaml" not in str(found.value)  # the place it came from, not a temporary file
        assert not (tmp_path / "mine").exists()
        assert not any(backend.launched for backend in backends)

    return refused


# -- an index, over HTTPS ----------------------------------------------------------------------------------------

BOMB = "a: &a [x, x, x, x]\nb: &b [*a, *a, *a, *a]\nc: [*b, *b, *b, *b]\n"
LISTING = "schema: 1\nfamily: doubler\nlistings: {listings}\ncount: {count}\n"


@pytest.mark.openssl
@pytest.mark.parametrize(
    "content, why",
    [
        (BOMB, r"aliases \(\*name\) are not allowed"),
        ("a: !!python/object/apply:os.system [true]\n", r"tags \(tag:yaml.org,2002:python.* are not allowed"),
        ("schema: 1\nschema: 1\n", "key 'schema' appears twice"),
        ("[" * 200 + "]" * 200, "nested deeper than 20 levels"),
        ("- 1\n- 2\n", "a mapping of key: value is needed"),
        (b"\xff\xfe\x00", "is not UTF-8 text"),
        ("", "a mapping of key: value is needed"),
        ("<html><body>Sign in</body></html>", "a mapping of key: value is needed"),
        (LISTING.format(listings="[]", count=0).replace("schema: 1", "schema: 9"), "9 is not one of"),
        (LISTING.format(listings="[]", count=0).replace("doubler", "tripler"), "index of family tripler, not of"),
        (LISTING.format(listings="[]", count=0).replace("doubler", "../doubler"), "does not match"),
        (LISTING.format(listings="[]", count=3), "it has 0 listings and says 3: it was cut off"),
        (LISTING.format(listings="[]", count=0), "no policy file of doubler for cuda Fake GPU 9.0 .*it lists nothing"),
        (LISTING.format(listings="{}", count=0), "{} is not of type 'array'"),
        (LISTING.format(listings="[7]", count=1), "7 is not of type 'object'"),
        (LISTING.format(listings="[]", count=0) + "run: rm -rf\n", "unknown key 'run'"),
        (LISTING.format(listings="[]", count="yes"), "True is not of type 'integer'"),
    ],
    ids=[
        "aliases", "tags", "a key twice", "deep", "a list", "no text", "empty", "a page", "a later schema",
        "another family", "a family that is a path", "a wrong count", "nothing in it", "listings that are none",
        "a listing that is none", "an unknown key", "a count that is none",
    ],
)  # fmt: skip
def test_a_broken_index(content: str | bytes, why: str, server: Server, refused: Callable[..., None]) -> None:
    raw = content.encode() if isinstance(content, str) else content
    server.answers[INDEX] = lambda request: send(request, raw)
    refused(why, server.address)


def _change(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda index: index["listings"][0].update({key: value})


def _double(index: dict[str, Any]) -> None:
    index["listings"].append(copy.deepcopy(index["listings"][0]) | {"sha256": "0" * 64})
    index["count"] = 2


@pytest.mark.openssl
@pytest.mark.parametrize(
    "change, why",
    [
        (_change("path", "../../../home/user/.profile"), "unknown key 'path'"),
        (_change("sha256", "../../../../../etc/passwd"), "does not match"),
        (_change("sha256", "0" * 64), r"files/fake-gpu-0000000000000000.yaml: the server says 404"),
        (_change("device", {"kind": "cuda", "name": "../../Fake GPU", "compute_capability": "9.0"}), "files/fake-gpu"),
        (_change("device", {"kind": "rocm", "name": "Fake GPU"}), "'rocm' is not one of"),
        (_change("bytes", 12), "bytes are not the 12 of digest"),
        (_change("bytes", -1), "less than the minimum"),
        (_change("bytes", 1e300), "not of type integer"),
        (_change("by", "\x1b]0;owned\x07"), "printable characters"),
        (_change("record", "x" * 5000), "is not a text of at most 2000"),
        (_change("by", ["a", "list"]), "is not of type 'string'"),
        (_change("entries", ["small", "large"]), "lists it for another device, or with other entries"),
        (_change("source_digest", "0" * 64), "the kernel source is another here"),
        (_double, "lists 2 files for Fake GPU and the same sources"),
    ],
    ids=[
        "a path", "a path for a digest", "a file that is not there", "a path for a device", "no such kind",
        "another size", "a size below 0", "a size beyond all reason", "control characters", "a long text", "a list",
        "entries that are not there", "other sources", "two files for one device",
    ],
)  # fmt: skip
def test_a_listing_that_lies(
    change: Callable[[dict[str, Any]], None], why: str, registry: Registry, server: Server,
    refused: Callable[..., None],
) -> None:  # fmt: skip
    registry.edit_index(change)
    refused(why, server.address, error=AutotuneError)
    assert all(path.startswith("/doubler/") and ".." not in path for path in server.asked)


# -- what a server does ------------------------------------------------------------------------------------------


def _redirect(to: str) -> Callable[[BaseHTTPRequestHandler], None]:
    return lambda request: send(request, b"", 302, {"Location": to, "Content-Length": "0"})


def _endless(request: BaseHTTPRequestHandler) -> None:
    send(request, b"", headers={})
    while True:  # until the client hangs up
        request.wfile.write(b"# " + b"x" * (1 << 16) + b"\n")


def _cut_off(request: BaseHTTPRequestHandler) -> None:
    send(request, b"schema: 1\n", headers={"Content-Length": "5000"})


def _cut_off_chunks(request: BaseHTTPRequestHandler) -> None:
    send(request, b"a\r\nschema: 1\n\r\n", headers={"Transfer-Encoding": "chunked"})


@pytest.mark.openssl
@pytest.mark.parametrize(
    "answer, why",
    [
        (_redirect("http://localhost/doubler/index.yaml"), "leads to http://localhost/.*, which is not https"),
        (_redirect("ftp://localhost/doubler/index.yaml"), "leads to ftp://localhost/.*, which is not https"),
        (_redirect("file:///etc/passwd"), "not allowed|which is not https"),
        (_redirect(INDEX), "infinite loop"),
        (_endless, "is larger than 4,194,304 bytes: nothing of it was taken"),
        (_cut_off, "was cut off: 10 of 5,000 bytes came"),
        (_cut_off_chunks, "cannot read https://localhost"),
        (lambda request: send(request, b"", 503), "the server says 503"),
        (lambda request: send(request, b"", 404), "the server says 404"),
        (lambda request: request.connection.close(), "cannot read https://localhost"),
    ],
    ids=[
        "to http", "to ftp", "to a file", "in a circle", "without an end", "cut off", "cut off in chunks", "busy",
        "not there", "hung up",
    ],
)  # fmt: skip
def test_a_server_that_does_what_it_should_not(
    answer: Callable[[BaseHTTPRequestHandler], None], why: str, server: Server, refused: Callable[..., None]
) -> None:
    server.answers[INDEX] = answer
    refused(why, server.address, error=StoreError)


@pytest.mark.openssl
def test_a_server_that_nobody_vouches_for(
    server: Server, refused: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    refused("CERTIFICATE_VERIFY_FAILED.*SSL_CERT_FILE", server.address, error=StoreError)
    monkeypatch.setenv("SSL_CERT_FILE", os.environ.get("NONE", "no-such-file"))
    refused("CERTIFICATE_VERIFY_FAILED", server.address, error=StoreError)
    assert not server.asked


@pytest.mark.openssl
def test_a_certificate_of_another_host(server: Server, refused: Callable[..., None]) -> None:
    refused("127.0.0.1", server.address.replace("localhost", "127.0.0.1"), error=StoreError)
    assert not server.asked


@pytest.mark.openssl
def test_a_redirection_to_https_is_followed(server: Server, registry: Registry, tmp_path: Path) -> None:
    server.answers["/moved" + INDEX] = _redirect(f"{server.address}{INDEX}")
    file = f"/doubler/files/{registry.file.name}"
    server.answers["/moved" + file] = _redirect(file)
    assert pull(registry.family, f"{server.address}/moved", policies=tmp_path / "mine").is_new


@pytest.mark.openssl
def test_an_index_that_changes_while_it_is_read_is_read_again(
    server: Server, registry: Registry, tmp_path: Path
) -> None:
    old = registry.index.read_bytes()
    registry.edit_file(lambda content: content.update(refine=7))
    first = iter([old])
    server.answers[INDEX] = lambda request: send(request, next(first, registry.index.read_bytes()))
    pulled = pull(registry.family, server.address, policies=tmp_path / "second")
    assert server.asked.count(INDEX) == 2 and pulled.listing.path.endswith(registry.file.name)


@pytest.mark.openssl
def test_an_index_that_never_stops_changing(
    server: Server, registry: Registry, refused: Callable[..., None]
) -> None:
    old = registry.index.read_bytes()

    def other(request: BaseHTTPRequestHandler) -> None:
        """Another one each time, of a file that is not there."""
        digest = f"{len(server.asked):a>64x}"
        send(request, old.replace(yaml.safe_load(old)["listings"][0]["sha256"].encode(), digest.encode()))

    server.answers[INDEX] = other
    refused("404", server.address, error=StoreError)
    assert len(server.asked) < 10


@pytest.mark.openssl
@pytest.mark.parametrize("content", [b"", b"torn", None], ids=["empty", "another", "cut off"])
def test_a_file_that_is_not_the_one_listed(
    content: bytes | None, server: Server, registry: Registry, refused: Callable[..., None]
) -> None:
    whole = registry.file.read_bytes()
    registry.file.write_bytes(whole[: len(whole) // 2] if content is None else content)
    refused(f"bytes are not the {len(whole):,} of digest", server.address)
    registry.file.write_bytes(whole.replace(b"readonly", b"texture "))  # as long as before
    refused(f"bytes are not the {len(whole):,} of digest", server.address)


# -- a policy file whose digest is right -------------------------------------------------------------------------


def _entry(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda content: content["entries"]["small"].update(changes)


@pytest.mark.parametrize(
    "change, why",
    [
        (_entry(configuration={"memory": "readonly", "block_size": 48}), "unknown value of policy block_size '48'"),
        (_entry(configuration={"memory": "$(reboot)", "block_size": 64}), "unknown value of policy memory"),
        (_entry(configuration={"memory": "global", "shell": "reboot"}), "unknown policy 'shell'"),
        (_entry(median_ms=0.0), "0.0 is less than or equal to the minimum of 0"),
        (_entry(median_ms=float("inf")), "not a number between"),
        (_entry(median_ms="fast"), "'fast' is not of type 'number'"),
        (_entry(median_ms=True), "True is not of type 'number'"),
        (_entry(features={"n": "1000"}), "'1000' is not of type 'number'"),
        (_entry(options={"rounding": "up"}), "family doubler has no option rounding=up"),
        (_entry(objective="profit"), "objective 'profit' is not one of"),
        (_entry(accuracy="precision=half"), "it says accuracy class 'precision=half', and its configuration is of ''"),
        (_entry(source_digest="0" * 64), "entry small: stale: the kernel source changed"),
        (_entry(layouts_digest=""), "entry small: stale: the layouts changed"),
        (_entry(proved={}), "entry small: unproven"),
        (_entry(refined={"calls": 3}), "entry small: a program's own calls found it"),
        (_entry(compiler="fake\x1b[31m"), "printable characters"),
        (_entry(source_path="../doubler.cu"), "unknown key 'source_path'"),
        (lambda content: content.update(default={"memory": "disk"}), "default: unknown value of policy memory 'disk'"),
        (lambda content: content.update(family="allpairs"), "it is for family allpairs, not for doubler"),
        (lambda content: content.update(entries={}), "it has no entry"),
        (lambda content: content.update(schema=99), "schema 99 is not 2"),
        (lambda content: content["device"].update(name="Faster GPU"), "lists it for another device"),
        (lambda content: content["device"].update(compute_capability="8.0"), "lists it for another device"),
        (
            lambda content: content.update(
                prediction={"options": {}, "kept": {"c": {"configuration": {"block_size": 7}}}}
            ),
            "prediction c: unknown value of policy block_size",
        ),
    ],
    ids=[
        "a value outside of the space", "a command for a value", "an unknown policy", "no time", "a time without end",
        "a word for a number", "a truth for a number", "a word for an extent", "an unknown option",
        "an unknown objective", "another accuracy class", "other sources", "no layouts", "unproven",
        "not of a sweep", "control characters", "an unknown key", "a default outside of the space", "another family",
        "no entries", "a later schema", "another device", "another capability", "a prediction outside of the space",
    ],
)  # fmt: skip
def test_a_policy_file_that_is_listed_and_not_in_order(
    change: Callable[[dict[str, Any]], None], why: str, registry: Registry, refused: Callable[..., None]
) -> None:
    registry.edit_file(change)
    refused(why)


@pytest.mark.parametrize(
    "content, why",
    [
        (BOMB.encode(), "aliases"),
        (b"a: !!python/object/apply:os.system [true]\n", "tags"),
        (b"schema: 2\nschema: 2\n", "appears twice"),
        (b"x" * (5 << 20), "is larger than 4,194,304 bytes"),
        (b"{" * 3000, "nested deeper|malformed YAML"),
        (bytes(range(256)), "is not UTF-8 text"),
    ],
    ids=["aliases", "tags", "a key twice", "large", "deep", "no text"],
)
def test_a_file_that_is_listed_and_no_policy_file(
    content: bytes, why: str, registry: Registry, refused: Callable[..., None]
) -> None:
    registry.replace_file(content)
    refused(why, error=AutotuneError)


# -- folders -----------------------------------------------------------------------------------------------------


def test_links_and_pipes_in_a_folder(
    registry: Registry, refused: Callable[..., None], tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere.yaml"
    registry.file.rename(elsewhere)
    file = (
        registry.index.parent
        / "files"
        / f"fake-gpu-{yaml.safe_load(registry.index.read_text())['listings'][0]['sha256'][:16]}.yaml"
    )
    file.symlink_to(elsewhere)
    refused("is a link, which a registry may not hold", error=StoreError)
    file.unlink()
    os.mkfifo(file)
    refused("it is no file", error=StoreError)
    registry.index.rename(tmp_path / "index.yaml")
    registry.index.symlink_to(tmp_path / "index.yaml")
    refused("is a link, which a registry may not hold", error=StoreError)
    refused("is not there", str(tmp_path / "none"), error=StoreError)


def test_a_familys_code_in_a_registry_is_not_run(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing but the index and the file is looked at, and the family is the one on this machine."""
    ran = tmp_path / "ran"
    for name in ("family.py", "conftest.py", "__init__.py"):
        (registry.index.parent / name).write_text(f"open({str(ran)!r}, 'w')\n")
    (registry.index.parent / "family.yaml").write_text((registry.family / "family.yaml").read_text())
    (registry.index.parent / "doubler.cu").write_text("#error not this one\n")
    monkeypatch.chdir(registry.root)
    before = set(sys.modules)
    assert pull(registry.family, registry.root, policies=tmp_path / "mine").is_new
    assert not ran.exists()
    assert not [name for name in set(sys.modules) - before if str(registry.root) in str(sys.modules[name])]


# -- git ---------------------------------------------------------------------------------------------------------


def _commit(root: Path) -> str:
    git(root, "init")
    git(root, "add", "-A")
    git(root, "commit", "-m", "hostile")
    return f"git+file://{root}"


@pytest.mark.git
def test_links_in_a_repository(registry: Registry, refused: Callable[..., None]) -> None:
    file = registry.file
    content = file.read_bytes()
    file.unlink()
    file.symlink_to("/etc/passwd")
    address = _commit(registry.root)
    refused("is no plain file but a link or a folder", address, error=StoreError)
    file.unlink()
    file.write_bytes(content)
    registry.index.unlink()
    registry.index.symlink_to(f"files/{file.name}")
    _commit(registry.root)
    refused("is no plain file but a link or a folder", address, error=StoreError)


@pytest.mark.git
def test_a_folder_for_a_file_and_a_large_one(registry: Registry, refused: Callable[..., None]) -> None:
    index = registry.index.read_bytes()
    registry.index.unlink()
    registry.index.mkdir()
    (registry.index / "index.yaml").write_bytes(index)
    address = _commit(registry.root)
    refused("is no plain file but a link or a folder", address, error=StoreError)
    (registry.index / "index.yaml").unlink()
    registry.index.rmdir()
    registry.index.write_bytes(index + b"#" * (5 << 20))
    _commit(registry.root)
    refused("is larger than 4,194,304 bytes", address, error=StoreError)


@pytest.mark.git
def test_hooks_and_filters_of_a_repository_do_not_run(registry: Registry, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    (registry.root / ".gitattributes").write_text("*.yaml filter=evil\n")
    address = _commit(registry.root)
    git(registry.root, "config", "filter.evil.smudge", f"touch {ran}")
    for name in ("post-checkout", "post-merge", "reference-transaction"):
        hook = registry.root / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
        hook.chmod(0o755)
    assert pull(registry.family, address, policies=tmp_path / "mine").is_new
    assert not ran.exists()


@pytest.mark.git
def test_a_repository_that_is_none(refused: Callable[..., None], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    refused("git clone failed: .*does not appear to be a git repository", f"git+file://{tmp_path}/empty",
            error=StoreError)  # fmt: skip
    git(tmp_path / "empty", "init")
    refused("git rev-parse failed", f"git+file://{tmp_path}/empty", error=StoreError)


@pytest.mark.parametrize(
    "address",
    [
        "http://localhost/registry", "ftp://localhost/registry", "file:///etc", "data://text/plain", "git://localhost/x",
        "git+http://localhost/x", "git+ext::sh -c true", "git+ext://sh", "https://", "git+file://a b",
        "https://user:secret@localhost/x", "https://token@localhost/x", "git+https://user:secret@localhost/x",
        "git+https://token@localhost/x", "https://localhost/x?token=secret", "https://localhost/x#y",
    ],
)  # fmt: skip
def test_addresses_that_are_none(address: str, refused: Callable[..., None]) -> None:
    """``git+ext::`` is no address, and no folder of that name is there."""
    error = UsageError if "://" in address else StoreError
    refused("cannot read a registry at|has a password, a user|is not there", address, error=error)


def test_the_secret_of_an_address_is_not_printed() -> None:
    with pytest.raises(UsageError) as found, open_source("https://user:secret@localhost/x"):
        pass
    assert "secret" not in str(found.value)
