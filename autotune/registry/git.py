"""The program git, asked for a registry or for what a family's folder is a commit of."""

import os
import subprocess

from autotune.errors import StoreError
from autotune.processes import program

_OURS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY")  # of a hook that runs this


def git(*words: str, folder: str | None = None, seconds: float = 60.0) -> str:
    """What ``git words`` says in ``folder``. It asks nothing at a terminal, and reaches others by https, ssh and files
    alone. Raises StoreError where it fails."""
    environment = {name: value for name, value in os.environ.items() if name not in _OURS}
    environment |= {"GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "https:ssh:file", "LC_ALL": "C"}
    environment.setdefault("GIT_SSH_COMMAND", "ssh -o BatchMode=yes")
    what = next(word for word in words if not word.startswith(("-", "/")))
    try:
        done = program(["git", *words], folder=folder, seconds=seconds, environment=environment)
    except OSError as problem:
        raise StoreError(f"cannot run git: {problem.strerror or problem}; install it") from None
    except subprocess.TimeoutExpired:
        raise StoreError(
            f"git {what} did not end within {seconds:g} s: try again, or name a folder"
        ) from None
    if done.returncode:
        raise StoreError(f"git {what} failed: {done.stderr.strip() or f'exit code {done.returncode}'}")
    return done.stdout
