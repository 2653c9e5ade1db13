"""What the tests of the registry share."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import registries
from registries import Registry, Server


@pytest.fixture(autouse=True)
def _own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is pulled into the user's own folder is gone with the test."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data-home"))


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the doubler, its policy file for the fake GPU, and a registry that has it. To be copied."""
    made = tmp_path_factory.mktemp("published")
    registries.publish(made)
    return made


@pytest.fixture
def registry(published: Path, tmp_path: Path) -> Registry:
    for name in ("doubler", "measured", "registry"):
        shutil.copytree(published / name, tmp_path / name)
    return Registry(tmp_path / "registry", tmp_path / "doubler")


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return registries.certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def server(registry: Registry, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Serves the registry; this machine trusts its certificate."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    monkeypatch.setenv("no_proxy", "localhost")
    with registries.serve(registry.root, certificate) as made:
        yield made
