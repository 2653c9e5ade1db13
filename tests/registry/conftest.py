"""What the tests of the registry share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import registries
from registries import Registry, Server


@pytest.fixture(autouse=True)
def _own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is pulled into the user's own folder is gone with the test."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data-home"))


@pytest.fixture
def registry(folder: Path, tmp_path: Path) -> Registry:
    """With the doubler's policy file for the fake GPU."""
    return Registry.of(folder, tmp_path)


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
