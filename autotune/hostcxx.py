"""The host's C++ compiler, for kernels on a cpu: the same .cu through the headers in ``autotune/cpu``."""

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from autotune.compiler import Batch, BuildError, Built, VariantSource, translation_unit
from autotune.errors import CompilerError
from autotune.paths import include_dir

__all__ = ["HostCxx", "RuntimeCxx", "cpu_model", "find_compiler", "runtime_batch"]

_COMMON = ("-std=c++17", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti")
_NATIVE = {"x86_64": "-march=native", "AMD64": "-march=native", "aarch64": "-mcpu=native", "arm64": "-mcpu=native"}
# A kernel may read bytes as what they are not, as nvcc lets it. Rounding is as written: a fused multiply-add would
# make a result depend on the compiler.
_KERNELS = (
    "-O3",
    "-fno-strict-aliasing",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-Wno-unknown-pragmas",
)
_RUNTIME = ("-O2", "-pthread")
_NAMES = ("c++", "g++", "clang++")


@dataclass(frozen=True)
class HostCxx:
    """``command`` is the compiler's command line; see ``find_compiler``."""

    command: tuple[str, ...]

    @property
    def identity(self) -> str:
        """With the processor's model and features: what is compiled for this one may not run on another.
        Raises CompilerError when the compiler does not run."""
        features = hashlib.sha256(_features().encode()).hexdigest()[:12]
        return " ".join([_version(self.command), *self._flags, cpu_model(), features])

    @property
    def suffix(self) -> str:
        return ".so"

    @property
    def _flags(self) -> tuple[str, ...]:
        native = _NATIVE.get(platform.machine())
        return (*_COMMON, *_KERNELS, *((native,) if native else ()), *_driver_flags(self.command))

    def build(self, batch: Batch) -> Built:
        """Of the batch's options only ``-D…`` count; the others are a CUDA compiler's. Raises BuildError with the
        compiler's message, and CompilerError when it cannot be run."""
        defines = [option for option in batch.options if option.startswith("-D")]
        symbols = {
            variant.key: {kernel: _symbol(kernel, variant.name) for kernel in variant.kernels}
            for variant in batch.variants
        }
        source = "#define AUTOTUNE_CPU\n" + translation_unit(batch) + _CONSTANT_WINDOW
        for variant in batch.variants:
            source += "".join(
                _WRAPPER.format(symbol=symbols[variant.key][kernel], kernel=kernel, struct=variant.name)
                for kernel in variant.kernels
            )
        includes = [f"-I{folder}" for folder in batch.include_dirs]
        image = _compile(self.command, [*self._flags, *defines, *includes], source)
        figures: dict[str, dict[str, dict[str, int]]] = {
            key: {kernel: {} for kernel in kernels} for key, kernels in symbols.items()
        }
        return Built(image, symbols, figures)


_WRAPPER = """
extern "C" __attribute__((visibility("default"))) int {symbol}(autotune::cpu::Launch* request) {{
  return autotune::cpu::launch<&{kernel}<{struct}>>(*request);
}}
"""
_CONSTANT_WINDOW = """
#include "autotune/memory.cuh"
extern "C" __attribute__((visibility("default"))) void* autotune_constant_window() {
  return autotune::constant_window<65536>;
}
"""


@dataclass(frozen=True)
class RuntimeCxx:
    """Compiles the one library that all kernels on this machine share; ``runtime_batch`` is its only batch."""

    command: tuple[str, ...]

    @property
    def identity(self) -> str:
        """Raises CompilerError when the compiler does not run."""
        return " ".join([_version(self.command), *self._flags, platform.machine()])

    @property
    def suffix(self) -> str:
        return ".so"

    @property
    def _flags(self) -> tuple[str, ...]:
        return (*_COMMON, *_RUNTIME, *_driver_flags(self.command))

    def build(self, batch: Batch) -> Built:
        """Raises BuildError with the compiler's message, and CompilerError when it cannot be run."""
        includes = [f"-I{folder}" for folder in batch.include_dirs]
        source = f'#include "{batch.source.as_posix()}"\n'
        image = _compile(self.command, [*self._flags, *includes], source)
        return Built(image, {variant.key: {} for variant in batch.variants}, {})


def runtime_batch() -> Batch:
    """The runtime library as a batch of one variant without kernels."""
    folder = include_dir() / "autotune" / "cpu"
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(folder.iterdir())))
    return Batch(folder / "runtime.cpp", (include_dir(),), (VariantSource(digest.hexdigest(), "runtime", "", ()),))


def find_compiler(named: str = "", environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The command of the C++ compiler: ``named``, else CXX, else c++, g++ or clang++ on PATH, else the one in the
    ziglang package. Raises CompilerError when there is none, or when the one that was asked for is not there."""
    environment = os.environ if environment is None else environment
    path = environment.get("PATH", os.defpath)
    for asked, where in ((named, "compiler"), (environment.get("CXX", ""), "CXX")):
        words = shlex.split(asked)
        if words and not shutil.which(words[0], path=path):
            raise CompilerError(f"{where} asks for {asked!r}, and {words[0]!r} is not an executable on PATH")
        if words:
            return tuple(words)
    for name in _NAMES:
        if found := shutil.which(name, path=path):
            return (found,)
    if find_spec("ziglang"):
        return (sys.executable, "-m", "ziglang", "c++")
    raise CompilerError(
        f"no C++ compiler: CXX is not set, {', '.join(_NAMES)} are not on PATH and the ziglang package is not "
        f"installed; {_install()}, or pip install ziglang"
    )


def _install() -> str:
    if sys.platform == "darwin":
        return "xcode-select --install"
    managers = {"apt": "g++", "dnf": "gcc-c++", "pacman": "gcc", "zypper": "gcc-c++", "apk": "g++"}
    found = next((name for name in managers if shutil.which(name)), "apt")
    verb = {"pacman": "-S", "apk": "add"}.get(found, "install")
    return f"{found} {verb} {managers[found]}"


@lru_cache(maxsize=1)
def cpu_model() -> str:
    """The processor's name as the system gives it."""
    for line in _cpuinfo():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


@lru_cache(maxsize=1)
def _features() -> str:
    """All that tells this processor from others: flags, family, model, part number."""
    named = ("flags", "features", "cpu family", "model", "cpu implementer", "cpu part", "cpu variant")
    lines = {line for line in _cpuinfo() if line.partition(":")[0].strip().lower() in named}
    return "\n".join(sorted(lines)) or platform.node()


def _cpuinfo() -> list[str]:
    try:
        return Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return []


@lru_cache(maxsize=16)
def _version(command: tuple[str, ...]) -> str:
    """The first line of ``--version``."""
    answer = _run([*command, "--version"], None)
    lines = answer.stdout.splitlines()
    if answer.returncode or not lines:
        raise CompilerError(f"{shlex.join(command)} --version failed: {answer.stderr.strip() or 'no output'}")
    return f"{Path(command[0]).name} {lines[0].strip()}"


def _driver_flags(command: tuple[str, ...]) -> tuple[str, ...]:
    """What differs between compilers. No C++ library is needed; ziglang's would first have to be compiled."""
    if "clang" not in _version(command).lower():
        return ()
    zig = ("-fno-sanitize=undefined",) if "ziglang" in command or Path(command[0]).stem == "zig" else ()
    return ("-nostdlib++", *zig)


def _symbol(kernel: str, struct: str) -> str:
    return f"{kernel.strip(':').replace('::', '_')}_{struct}"


def _compile(command: tuple[str, ...], options: list[str], source: str) -> bytes:
    """The shared library. In a folder of its own, with names that are always the same, so that equal sources
    give equal bytes."""
    with tempfile.TemporaryDirectory(prefix="autotune-") as folder:
        Path(folder, "autotune.cpp").write_text(source, encoding="utf-8")
        done = _run([*command, *options, "-o", "autotune.so", "autotune.cpp"], folder)
        if done.returncode:
            raise BuildError(done.stderr.strip() or f"{shlex.join(command)} exited with {done.returncode}")
        return Path(folder, "autotune.so").read_bytes()


def _run(command: list[str], folder: str | None) -> "subprocess.CompletedProcess[str]":
    # C: messages are kept and searched.
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        return subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise CompilerError(f"cannot run {shlex.join(command[:1])}: {error.strerror or error}") from error
