"""Other Pythons of this machine, which the wheel is installed on."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

OTHERS = ("3.12", "3.13", "3.14")  # besides the one that runs the tests


def marker(version: str) -> str:
    """The name of the mark of tests that need it."""
    return f"python{version.replace('.', '_')}"


@cache
def interpreter(version: str) -> str:
    """The first that starts (pyenv's on PATH may not) and is of that version; "" where none is."""
    for path in _places(version):
        asked = [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        try:
            answer = subprocess.run(asked, capture_output=True, text=True, check=False)
        except OSError:
            continue
        if answer.stdout.strip() == version:
            return path
    return ""


def _places(version: str) -> Iterator[str]:
    """Where a Python of ``version`` may be: on PATH, or among those that pyenv or uv installed."""
    if found := shutil.which(f"python{version}"):
        yield found
    home = Path.home()
    for folder in (
        Path(os.environ.get("PYENV_ROOT", home / ".pyenv")) / "versions",
        Path(os.environ.get("UV_PYTHON_INSTALL_DIR", home / ".local" / "share" / "uv" / "python")),
    ):
        for one in sorted(folder.glob(f"*{version}.*")):
            yield str(one / "bin" / "python3")
