"""Where things lie: what ships with the package, and the folders a user owns."""

import json
import os
import tempfile
from pathlib import Path

from autotune.errors import StoreError

__all__ = [
    "bundled",
    "data_root",
    "include_dir",
    "pip_install",
    "policy_folders",
    "user_data",
    "writable",
]

_PACKAGE = Path(__file__).resolve().parent


def bundled(kind: str) -> Path:
    """The folder of that kind (kernels, workloads, policies) that ships with autotune: inside an installed
    package, or beside it in a checkout."""
    inside = _PACKAGE / "_bundled" / kind
    return inside if inside.is_dir() else _PACKAGE.parent / kind


def include_dir() -> Path:
    """The C++ layout library's include folder."""
    return bundled("kernels") / "include"


def pip_install(extra: str = "") -> str:
    """The command that installs an extra of autotune, or what it needs anyway: from the checkout that runs, else from
    where it was installed from (PEP 610), else by name."""
    from importlib import metadata
    from urllib.parse import unquote, urlsplit

    named = f"[{extra}]" if extra else ""
    checkout = _PACKAGE.parent
    if (checkout / "pyproject.toml").is_file():
        return f"pip install -e '{checkout}{named}'"
    try:
        origin = json.loads(metadata.distribution("autotune").read_text("direct_url.json") or "{}")
    except metadata.PackageNotFoundError:
        origin = {}
    url = urlsplit(origin.get("url", ""))
    return f"pip install '{unquote(url.path) if url.scheme == 'file' else 'autotune'}{named}'"


def data_root(named: str | Path | None = None) -> Path:
    """Where workload files find their data: ``named``, else AUTOTUNE_DATA, else what ships with the package."""
    return Path(named or os.environ.get("AUTOTUNE_DATA") or bundled("workloads") / "data")


def user_data() -> Path:
    """The user's own data folder (platformdirs is imported only when it is asked for)."""
    import platformdirs

    return Path(platformdirs.user_data_dir("autotune"))


def policy_folders(named: str | Path | None = None, family: Path | None = None) -> list[Path]:
    """Where policy files are looked for, first hit first: ``named``, AUTOTUNE_POLICIES, ./policies, ``policies``
    beside the folder ``family``, the user's data folder, those shipped."""
    first = [Path(p) for p in (named, os.environ.get("AUTOTUNE_POLICIES")) if p]
    beside = [family.parent / "policies"] if family and family.parent != bundled("kernels") else []
    return [*first, Path("policies"), *beside, user_data() / "policies", bundled("policies")]


def writable(folder: Path) -> None:
    """Raise StoreError unless files can be made in ``folder`` (made when it is not there)."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as problem:
        raise StoreError(
            f"cannot write to {folder}: {problem.strerror or problem}; name another folder (--out for results, "
            "--policies for policy files)"
        ) from None
