"""Where things lie: what ships with the package, and the folders a user owns."""

import os
from pathlib import Path

from autotune.errors import StoreError

__all__ = ["bundled", "data_root", "include_dir", "policy_folders", "user_data", "writable"]

_PACKAGE = Path(__file__).resolve().parent


def bundled(kind: str) -> Path:
    """The folder of that kind (kernels, workloads, policies) that ships with autotune: inside an installed
    package, or beside it in a checkout."""
    inside = _PACKAGE / "_bundled" / kind
    return inside if inside.is_dir() else _PACKAGE.parent / kind


def include_dir() -> Path:
    """The C++ layout library's include folder."""
    return bundled("kernels") / "include"


def data_root(named: str | Path | None = None) -> Path:
    """Where workload files find their data: ``named``, else AUTOTUNE_DATA, else what ships with the package."""
    return Path(named or os.environ.get("AUTOTUNE_DATA") or bundled("workloads") / "data")


def user_data() -> Path:
    """The user's own data folder (platformdirs is imported only when it is asked for)."""
    import platformdirs

    return Path(platformdirs.user_data_dir("autotune"))


def policy_folders(named: str | Path | None = None) -> list[Path]:
    """Where policy files are looked for, first hit first: ``named``, AUTOTUNE_POLICIES, ./policies, the user's data
    folder, those shipped."""
    first = [Path(p) for p in (named, os.environ.get("AUTOTUNE_POLICIES")) if p]
    return [*first, Path("policies"), user_data() / "policies", bundled("policies")]


def writable(folder: Path) -> None:
    """Raise StoreError unless files can be made in ``folder`` (made when it is not there)."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".writable-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as problem:
        raise StoreError(
            f"cannot write to {folder}: {problem.strerror or problem}; name another folder (--out for results, "
            "--policies for policy files)"
        ) from None
