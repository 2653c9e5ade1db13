"""C++ over the layout library as a GPU's compiler sees it (``device_shim.hpp``), by the host's compiler."""

import ctypes
import shutil
import subprocess
from pathlib import Path

from autotune.files import include_dir

SUPPORT = Path(__file__).parent


AS_A_KERNEL = ("-DAUTOTUNE_CPU", "-nostdinc++")  # as the cpu device compiles, over the project's own headers


def shim_library(source: str, folder: Path, optimization: str, *more: str) -> ctypes.CDLL:
    """``source`` compiled in ``folder`` with ``more`` flags and loaded; it may include the headers of this folder."""
    compiler = shutil.which("g++") or shutil.which("c++") or shutil.which("clang++")
    assert compiler, "these tests need a C++ compiler: install g++"
    (folder / "cases.cpp").write_text(source)
    flags = [*more, "-std=c++17", optimization, "-fPIC", "-shared", "-fno-strict-aliasing", "-w"]
    command = [compiler, *flags, f"-I{include_dir()}", f"-I{SUPPORT}", "cases.cpp", "-o", "cases.so"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(folder / "cases.so"))
