"""The CUDA toolkit's compiler, for sources that need its headers or a toolkit version that NVRTC lacks."""

import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from autotune.compile.mangled import instance_symbol
from autotune.compile.ptxas import check_target, complaints, figures
from autotune.compile.toolchain import (
    Batch,
    BuildError,
    Built,
    VariantSource,
    listed_in,
    run_compiler,
    translation_unit,
)
from autotune.errors import CompilerError
from autotune.files import pip_install

_OPTIONS = ("-std=c++17", "-Xptxas", "-v")
_SHELL = "\"$`\\'\n\r"
_TOOLKIT = "/usr/local/cuda"  # where NVIDIA's packages put it


@dataclass(frozen=True)
class Nvcc:
    """``arch`` is the target, ``sm_90``. nvcc is searched on PATH, then in CUDA_HOME, CUDA_PATH and
    ``/usr/local/cuda``."""

    arch: str

    @property
    def identity(self) -> str:
        """Raises CompilerError when nvcc is not installed."""
        flags = [os.environ.get(name, "") for name in ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")]
        return " ".join(["nvcc", _version(), self.arch, *_OPTIONS, *filter(None, flags)])

    @property
    def suffix(self) -> str:
        return ".cubin"

    def build(self, batch: Batch) -> Built:
        """Raises BuildError with nvcc's message, and CompilerError when no source at all would compile."""
        check_target(self.arch, _targets(), f"nvcc {_version()}")
        with tempfile.TemporaryDirectory(prefix="autotune-") as folder:
            source, image = Path(folder, "autotune.cu"), Path(folder, "autotune.cubin")
            source.write_text(translation_unit(batch) + _instantiations(batch))
            includes = [f"-I{path}" for path in batch.include_dirs]
            options = ["-cubin", f"-arch={self.arch}", *_OPTIONS, *includes, *batch.command_options]
            listing = Path(folder, "autotune.d")
            names = ["-MMD", "-MF", str(listing), "-o", str(image), str(source)]
            _require_plain([*includes, *names])
            status, log = _run([find_nvcc(), *options, *names])
            if status:
                # "nvcc fatal" is about the command line or the host compiler, never about a variant.
                wrong = CompilerError if log.startswith("nvcc fatal") else BuildError
                raise wrong(complaints(log) or f"nvcc exited with {status}")
            built = _built(batch, image.read_bytes(), figures(log))
            return replace(built, read=_without_toolkit(listed_in(listing, (Path(folder),))))


def _without_toolkit(read: tuple[Path, ...]) -> tuple[Path, ...]:
    """Without the toolkit's headers, which are where the one lies that nvcc includes ahead of everything."""
    toolkit = next((path.parent for path in read if path.name == "cuda_runtime.h"), None)
    return tuple(path for path in read if not (toolkit and path.is_relative_to(toolkit)))


def _instantiations(batch: Batch) -> str:
    """A kernel's signature is not known here, but a declared type is enough for an explicit instantiation."""
    names = [variant.instance(kernel) for variant in batch.variants for kernel in variant.kernels]
    return "".join(f"template __global__ decltype({name}) {name};\n" for name in names if "<" in name)


def _built(batch: Batch, image: bytes, counted: dict[str, dict[str, int]]) -> Built:
    symbols = {
        variant.key: {kernel: _symbol_of(variant, kernel, counted) for kernel in variant.kernels}
        for variant in batch.variants
    }
    static = {
        key: {kernel: counted[symbol] for kernel, symbol in named.items()} for key, named in symbols.items()
    }
    return Built(image, symbols, static)


def _symbol_of(variant: VariantSource, kernel: str, symbols: Collection[str]) -> str:
    if variant.is_alone:
        return instance_symbol(variant.instance(kernel), symbols)
    return _symbol(kernel, variant.name, symbols)


def _symbol(kernel: str, struct: str, symbols: Iterable[str]) -> str:
    """The mangled ``kernel<struct>``. The Itanium ABI writes a name after its length, so ``ns::sum<V1>``
    holds ``2ns3sumI2V1``, and ``V1`` is not mistaken for ``V12``. Further template arguments may follow."""
    parts = [part for part in kernel.split("::") if part]
    mangled = "".join(f"{len(part)}{part}" for part in parts) + f"I{len(struct)}{struct}"
    matches = [symbol for symbol in symbols if mangled in symbol]
    if not matches:
        raise CompilerError(f"nvcc's output has no symbol for kernel {kernel}<{struct}>")
    # A kernel named x3sum holds 3sum as well, but later.
    return min(matches, key=lambda symbol: symbol.index(mangled))


def _run(command: list[str]) -> tuple[int, str]:
    """Exit status and all output."""
    status, answer, complaint = run_compiler(command)
    return status, answer + complaint


def _require_plain(paths: Iterable[str]) -> None:
    """nvcc hands its arguments on through a shell."""
    for path in paths:
        if any(character in path for character in _SHELL):
            raise CompilerError(
                f"nvcc cannot be given the path {path.removeprefix('-I')!r}: it hands paths on through a shell, which "
                f"reads {' '.join(_SHELL[:-2])} as more than characters; rename that folder, or use --compiler nvrtc"
            )


def toolkit_program(name: str) -> str | None:
    """A program of the CUDA toolkit: on PATH, in CUDA_HOME, in CUDA_PATH or in /usr/local/cuda."""
    homes = [os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", ""), _TOOLKIT]
    folders = [str(Path(home, "bin")) for home in homes if home]
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(folders))


def toolkit_headers() -> tuple[Path, ...]:
    """The folders in which a toolkit has its headers; none where there is no toolkit."""
    found = toolkit_program("nvcc")
    named = [os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", "")]
    homes = [
        *([Path(found).resolve().parent.parent] if found else []),
        *map(Path, filter(None, [*named, _TOOLKIT])),
    ]
    folder = next((home / "include" for home in homes if (home / "include" / "cuda_fp16.h").is_file()), None)
    return tuple(place for place in (folder, folder / "cccl") if place.is_dir()) if folder else ()


def find_nvcc() -> str:
    """The path of nvcc; raises CompilerError when there is none."""
    found = toolkit_program("nvcc")
    if not found:
        message = (
            "nvcc was not found on PATH, in CUDA_HOME, in CUDA_PATH or in /usr/local/cuda; install a CUDA "
            f"toolkit, or {pip_install('static')} and use --compiler nvrtc"
        )
        raise CompilerError(message)
    return found


def _ask(option: str) -> str:
    status, answer = _run([find_nvcc(), option])
    if status:
        raise CompilerError(f"{find_nvcc()} {option} failed: {answer.strip()}")
    return answer


@lru_cache(maxsize=1)
def _version() -> str:
    answer = _ask("--version")
    release = re.search(r"V(\d+\.\d+\.\d+)", answer)
    return release[1] if release else answer.strip()


@lru_cache(maxsize=1)
def _targets() -> list[str]:
    return _ask("--list-gpu-code").split()
