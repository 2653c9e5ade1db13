"""The CUDA toolkit's compiler, for sources that need its headers or a toolkit version that NVRTC lacks."""

import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from autotune.compile.ptxas import check_target, complaints, figures
from autotune.compile.toolchain import (
    Batch,
    BuildError,
    Built,
    Compiled,
    read_dependencies,
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
    suffix: ClassVar = ".cubin"

    @property
    def identity(self) -> str:
        """Raises CompilerError when nvcc is not installed."""
        flags = [os.environ.get(name, "") for name in ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")]
        return " ".join(["nvcc", _version(), self.arch, *_OPTIONS, *filter(None, flags)])

    def build(self, batch: Batch) -> Built:
        """Raises BuildError with nvcc's message, and CompilerError when no source at all would compile."""
        check_target(self.arch, _targets(), f"nvcc {_version()}")
        with tempfile.TemporaryDirectory(prefix="autotune-") as folder:
            source, image = Path(folder, "autotune.cu"), Path(folder, "autotune.cubin")
            # A kernel's signature is not known here, but a declared type is enough for an explicit instantiation.
            named = [variant.instance(kernel) for variant in batch.variants for kernel in variant.kernels]
            made = "".join(f"template __global__ decltype({name}) {name};\n" for name in named if "<" in name)
            source.write_text(translation_unit(batch) + made)
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
            built = _make_built(batch, image.read_bytes(), figures(log))
            read = read_dependencies(listing, (Path(folder),))
            # The toolkit's headers are in the folder of the one that nvcc includes first.
            toolkit = next((path.parent for path in read if path.name == "cuda_runtime.h"), None)
            return replace(built, read=tuple(p for p in read if not (toolkit and p.is_relative_to(toolkit))))


def _make_built(batch: Batch, image: bytes, counted: dict[str, dict[str, int]]) -> Built:
    symbols = {
        variant.key: {
            kernel: instance_symbol(variant.instance(kernel), counted) for kernel in variant.kernels
        }
        for variant in batch.variants
    }
    static = {
        key: {kernel: counted[symbol] for kernel, symbol in named.items()} for key, named in symbols.items()
    }
    return Built(image, symbols, static)


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
    if found := toolkit_program("nvcc"):
        return found
    raise CompilerError(
        "nvcc was not found on PATH, in CUDA_HOME, in CUDA_PATH or in /usr/local/cuda; install a CUDA "
        f"toolkit, or {pip_install('static')} and use --compiler nvrtc"
    )


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


def sass(compiled: Compiled) -> str:
    """The machine code of each kernel of a variant, in the order of its kernels. Raises CompilerError."""
    program = find_cuobjdump()
    return "\n".join(_dump(program, compiled.image, symbol) for symbol in compiled.symbols.values())


def find_cuobjdump() -> str:
    """The path of cuobjdump: the toolkit's, or the one in triton's wheel. Raises CompilerError when there is none."""
    if found := toolkit_program("cuobjdump"):
        return found
    triton = find_spec("triton")
    for folder in (triton.submodule_search_locations or ()) if triton else ():
        if (path := Path(folder, "backends", "nvidia", "bin", "cuobjdump")).is_file():
            return str(path)
    raise CompilerError(
        "SASS is read by NVIDIA's cuobjdump, which was not found on PATH, in CUDA_HOME, in CUDA_PATH, in "
        "/usr/local/cuda or in the package triton; install a CUDA toolkit"
    )


def _dump(program: str, image: Path, symbol: str) -> str:
    status, answer, complaint = run_compiler([program, "-sass", "-fun", symbol, str(image)])
    if status:
        raise CompilerError(f"{program} exited with {status}: {(complaint or answer).strip()}")
    # Each instruction is followed by its encoding, and by a line that is nothing else.
    lines = (re.sub(r"\s*/\* 0x[0-9a-f]{16} \*/\s*$", "", line) for line in answer.splitlines())
    return "\n".join(line for line in lines if line.strip()) + "\n"


# -- names in a binary: the Itanium ABI's, as far as a name and its template arguments decide them ---------------

_BUILTIN = {
    "signed char": "a", "unsigned char": "h", "char": "c", "short": "s", "unsigned short": "t", "int": "i",
    "unsigned int": "j", "long long": "x", "unsigned long long": "y", "float": "f", "double": "d", "bool": "b",
}  # fmt: skip


def instance_symbol(instance: str, symbols: Collection[str]) -> str:
    """The symbol of ``instance``, a kernel's name with its template arguments, if any. Raises CompilerError when none
    of ``symbols`` is it, or several may be."""
    name, _, arguments = instance.partition("<")
    if name in symbols:  # extern "C"
        return name
    pattern = re.compile(_pattern(name, arguments.removesuffix(">")))
    found = [match for symbol in symbols if (match := pattern.match(symbol))]
    least = min((match.start(1) for match in found), default=0)  # another namespace's comes later
    matches = [match.string for match in found if match.start(1) == least]
    if len(matches) == 1:
        return matches[0]
    there = ", ".join(sorted(matches or symbols)) or "none"
    what = f"{len(matches)} kernels that may be" if matches else "no symbol for kernel"
    raise CompilerError(
        f"nvcc's output has {what} {instance} ({there}); use --compiler nvrtc, which names the kernel"
    )


def variable_names(name: str, image: bytes) -> list[str]:
    """The names in a binary that may be the variable ``name`` of its source: of one in no namespace, its own; of one
    that is static, with the unit's."""
    *scopes, last = (f"{len(part)}{part}" for part in name.split("::") if part)
    unit = r"(?:\d+_INTERNAL_\w+?)?"
    mangled = rf"_ZN?{unit}{''.join(scopes)}L?{last}E?"
    pattern = mangled if scopes else f"{name}|{mangled}"
    found = re.findall(rf"(?<=\0)(?:{pattern})(?=\0)".encode(), image)
    return sorted({text.decode() for text in found}, key=len)


def _pattern(name: str, arguments: str) -> str:
    """``ns::sum<16>`` is ``_ZN2ns3sumILi16EEE…``: a name after its length; what is in no namespace has no N."""
    *scopes, last = (f"{len(part)}{part}" for part in name.split("::") if part)
    listed = "".join(_argument(text.strip()) for text in arguments.split(",")) if arguments else ""
    is_whole = re.fullmatch(r"[A-Za-z_]\w*", arguments)  # a struct alone: defaults of the template may follow
    template = f"I{listed}{'' if is_whole else 'E'}" if arguments else "(?!I)"
    within = "".join(scopes)
    return f"_ZN{within}(L?{last}){template}" if scopes else f"_Z(?:N\\w*?)?(L?{last}){template}"


def _argument(text: str) -> str:
    if re.fullmatch(r"-?\d+", text):
        return f"L[a-z]{text.replace('-', 'n')}E"
    if text in ("true", "false"):
        return f"Lb{int(text == 'true')}E"
    return _BUILTIN.get(text) or (f"{len(text)}{text}" if re.fullmatch(r"[A-Za-z_]\w*", text) else r"\w+?")
