"""The host's C++ compiler, for kernels on a cpu: the same .cu through the headers in ``autotune/cpu``."""

import hashlib
import os
import platform
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from autotune.compile import stand_ins
from autotune.compile.toolchain import (
    Batch,
    BuildError,
    Built,
    VariantSource,
    include,
    read_dependencies,
    run_compiler,
    translation_unit,
)
from autotune.errors import CompilerError
from autotune.files import include_dir

_COMMON = (
    "-std=c++17",
    "-nostdinc++",
    "-D_GLIBCXX_INCLUDE_NEXT_C_HEADERS",  # <math.h> is C's also where CPATH names libstdc++'s headers
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-fno-exceptions",
    "-fno-rtti",
    "-s",
)

_NATIVE = {"x86_64": "-march=native", "aarch64": "-mcpu=native"}

# With g++ 12, -O3 takes 0.05 s for a small variant and -O2 0.035 s; what -O3 makes is up to 1.5 times as fast.
# Memory may be read as another type, as nvcc lets it be. Rounding is as written: with fused multiply-add a result
# would depend on the compiler.
_KERNELS = (
    "-O3",
    "-fno-strict-aliasing",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-Wno-unknown-pragmas",
)

_FILLING = "-ftrivial-auto-var-init=pattern"
_RUNTIME = ("-O2", "-pthread")
_ARITHMETIC = ("-O3", "-fno-math-errno", "-fno-trapping-math")
_NAMES = ("c++", "g++", "clang++")
_CHECKS_BOUNDS = "-DAUTOTUNE_CHECK_BOUNDS"
VIOLATION = "autotune::detail::violation"  # kernels/include/autotune/cpu/layout.hpp
_ACCESSOR = re.compile(r"using (\w+) = (autotune::(?:Array|Narrow|SurfaceImage)<.*>);")
_USUAL = re.compile(r"([\w.]+-)*(c\+\+|g\+\+|clang|clang\+\+)(-[\d.]+)?")


@dataclass(frozen=True)
class HostCxx:
    """``command`` is the compiler's command line; see ``find_compiler``. ``last`` are options behind all others: a
    build in which every access of memory calls a function, for one."""

    command: tuple[str, ...]
    last: tuple[str, ...] = ()
    suffix: ClassVar = ".so"

    @property
    def identity(self) -> str:
        """With the processor's model and features, as what is compiled for this one may not run on another,
        and the headers that stand in for CUDA. Raises CompilerError when the compiler does not run."""
        return " ".join([_version(self.command), *self._flags, *_processor(), _shim_digest()[:12]])

    @property
    def _flags(self) -> tuple[str, ...]:
        return (*_COMMON, *_KERNELS, *_native(), *_driver_flags(self.command), *self.last)

    def fill_locals(self) -> "HostCxx | None":
        """One that puts a pattern into every local variable that the source leaves as it is; None where the compiler
        cannot (GCC before 12)."""
        return replace(self, last=(*self.last, _FILLING)) if _takes(self.command, _FILLING) else None

    def build(self, batch: Batch) -> Built:
        """Of the batch's options only ``-D…`` count; the others are a CUDA compiler's. Raises BuildError with
        the compiler's message, and CompilerError when it cannot be run."""
        defines = [option for option in batch.command_options if option.startswith("-D")]
        symbols = {
            variant.key: {k: f"{k.strip(':').replace('::', '_')}_{variant.name}" for k in variant.kernels}
            for variant in batch.variants
        }
        plain = [variant for variant in batch.variants if variant.is_plain]
        source = f"#define AUTOTUNE_CPU\n{_SHIM_AHEAD if plain else ''}"
        checks = any(word.startswith(_CHECKS_BOUNDS) for word in self.command)
        if checks:  # but what may be outside, as an image's
            source += '#include "autotune/checked.cuh"\n'
            checked = r"AUTOTUNE_ARRAY(\1, \2);"
            variants = [replace(v, struct=_ACCESSOR.sub(checked, v.struct)) for v in batch.variants]
            batch = replace(batch, variants=tuple(variants))
        source += translation_unit(batch, host_source(batch.source.resolve()))
        source += _OWN_WINDOW if plain and not plain[0].headers else _CONSTANT_WINDOW
        variables = [symbol for variant in batch.variants for symbol in variant.variables]
        for symbol in dict.fromkeys([*variables, *([VIOLATION] if checks else [])]):
            source += _VARIABLE.format(function=symbol_function(symbol), symbol=symbol)
        for variant in batch.variants:
            source += "".join(
                _WRAPPER.format(symbol=symbols[variant.key][kernel], instance=variant.instance(kernel))
                for kernel in variant.kernels
            )
        includes = [f"-I{folder}" for folder in (stand_ins.cuda_headers(), *batch.include_dirs)]
        try:
            usual = ["-idirafter", str(stand_ins.cuda_headers().with_name("usual"))] if plain else []
            image, read = _compile(self.command, [*self._flags, *defines, *includes, *usual], source)
            if checks:  # with headers that the family does not include
                read = tuple(path for path in read if not path.is_relative_to(include_dir()))
        except BuildError as problem:
            raise type(problem)(_add_advice(str(problem), batch.source) if plain else str(problem)) from None
        return Built(image, symbols, {}, read)


def symbol_function(symbol: str) -> str:
    """What gives the address and, in its argument, the size of a variable of the source, by its name in the library."""
    return f"autotune_symbol_{symbol.strip(':').replace('::', '_')}"


def make_checking_command() -> str:
    """The compiler's command for kernels that end at the first index outside of an array. Raises CompilerError."""
    digest = hashlib.sha256((include_dir() / "autotune" / "checked.cuh").read_bytes()).hexdigest()
    return shlex.join((*find_compiler(), f"{_CHECKS_BOUNDS}=0x{digest[:8]}"))


_VARIABLE = """
extern "C" __attribute__((visibility("default"))) void* {function}(unsigned long long* bytes) {{
  *bytes = sizeof({symbol});
  return (void*)&{symbol};
}}
"""

_WRAPPER = """
extern "C" __attribute__((visibility("default"))) int {symbol}(autotune::cpu::Launch* request) {{
  return autotune::cpu::launch<&{instance}>(*request);
}}
"""

_SHIM_AHEAD = '#include "autotune/cpu.hpp"\n'  # what a CUDA compiler knows without a header

# Of a source that finds no array by an accessor.
_OWN_WINDOW = """
alignas(16) static unsigned char autotune_own_window[65536];
extern "C" __attribute__((visibility("default"))) void* autotune_constant_window() { return autotune_own_window; }
"""

_CONSTANT_WINDOW = """
#include "autotune/memory.cuh"
extern "C" __attribute__((visibility("default"))) void* autotune_constant_window() {
  return autotune::constant_window<65536>;
}
"""


@dataclass(frozen=True)
class RuntimeCxx:
    """Compiles libraries of plain C++: the one that all kernels on this machine share (``runtime_batch``), and the
    families' own. With ``arithmetic`` loops are made for this processor's vectors, so the result is for it alone."""

    command: tuple[str, ...]
    arithmetic: bool = False
    suffix: ClassVar = ".so"

    @property
    def identity(self) -> str:
        """Raises CompilerError when the compiler does not run."""
        processor = _processor() if self.arithmetic else ()
        return " ".join([_version(self.command), *self._flags, platform.machine(), *processor])

    @property
    def _flags(self) -> tuple[str, ...]:
        vectors = (*_ARITHMETIC, *_native()) if self.arithmetic else ()
        return (*_COMMON, *_RUNTIME, *vectors, *_driver_flags(self.command))

    def build(self, batch: Batch) -> Built:
        """Raises BuildError with the compiler's message, and CompilerError when it cannot be run."""
        includes = [f"-I{folder}" for folder in batch.include_dirs]
        image, read = _compile(self.command, [*self._flags, *includes], include(batch.source))
        return Built(image, {variant.key: {} for variant in batch.variants}, {}, read)


def runtime_batch() -> Batch:
    """The runtime library as a batch of one variant without kernels."""
    source = include_dir() / "autotune" / "cpu" / "runtime.cpp"
    return Batch(source, (include_dir(),), (VariantSource(_shim_digest(), "runtime", "", ()),))


@lru_cache(maxsize=1)
def _shim_digest() -> str:
    """sha256 over cpu.hpp and all that is in cpu/."""
    cpu, folder = _shim()
    files = [cpu, *sorted(path for path in folder.rglob("*") if path.is_file())]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def _shim() -> tuple[Path, Path]:
    root = include_dir() / "autotune"
    return root / "cpu.hpp", root / "cpu"


def is_compiler(name: str) -> bool:
    """Whether it is the usual name of a compiler, without a folder or options."""
    return name in ("nvrtc", "nvcc") or _USUAL.fullmatch(name) is not None


def find_compiler(named: str = "", environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The command of the C++ compiler: ``named``, else CXX, else c++, g++ or clang++ on PATH, else the one in
    the ziglang package. Raises CompilerError when there is none, or not the one that was asked for."""
    environment = os.environ if environment is None else environment
    path = environment.get("PATH", os.defpath)
    for asked, where in ((named, "compiler"), (environment.get("CXX", ""), "CXX")):
        try:
            words = shlex.split(asked)
        except ValueError as problem:
            raise CompilerError(f"{where} asks for {asked!r}, which is no command: {problem}") from None
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
        f"no C++ compiler: CXX is not set, {', '.join(_NAMES)} are not on PATH and the ziglang package is "
        "not installed; install g++ (gcc-c++, gcc) with the system's packages, or pip install ziglang"
    )


@lru_cache(maxsize=1)
def cpu_model() -> str:
    """The processor's name as the system gives it."""
    for line in _cpuinfo():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


def _native() -> tuple[str, ...]:
    """What makes code for this processor alone."""
    flag = _NATIVE.get(platform.machine())
    return (flag,) if flag else ()


def _processor() -> tuple[str, str]:
    """Its model, and a digest of its features."""
    return cpu_model(), hashlib.sha256(_features().encode()).hexdigest()[:12]


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
    """The command without its folder, and the first line of its ``--version``."""
    status, answer, complaint = run_compiler([*command, "--version"])
    lines = answer.splitlines()
    if status or not lines:
        raise CompilerError(f"{shlex.join(command)} --version failed: {complaint.strip() or 'no output'}")
    return shlex.join([Path(command[0]).name, *command[1:], lines[0].strip()])


@lru_cache(maxsize=16)
def _takes(command: tuple[str, ...], option: str) -> bool:
    return not run_compiler([*command, option, "-x", "c++", "-fsyntax-only", os.devnull])[0]


def _driver_flags(command: tuple[str, ...]) -> tuple[str, ...]:
    """What differs between compilers. No C++ library is needed; ziglang's would first have to be compiled. What g++
    calls unique is one in the process for all libraries that have it: their constant memory would be."""
    if "clang" not in _version(command).lower():
        return ("-fno-gnu-unique",)
    zig = ("-fno-sanitize=undefined",) if "ziglang" in command or Path(command[0]).stem == "zig" else ()
    return ("-nostdlib++", *zig)


_ERROR = re.compile(r"^.*\b(?:fatal )?error:.*$", re.MULTILINE | re.IGNORECASE)
_UNDECLARED = re.compile(r"error: (?:use of undeclared identifier )?['‘](__\w+)['’]")


def _add_advice(message: str, source: Path) -> str:
    """With what to do where the cpu device lacks something, behind the first error."""
    if (advised := stand_ins.add_advice(message, for_host=True)) != message:
        return advised
    what = stand_ins.find_lacked(source.read_text(encoding="utf-8", errors="surrogateescape"), source.name)
    if not what and (name := _UNDECLARED.search(message)):
        what = name[1]
    advice = "what a CUDA compiler takes and the cpu device lacks needs a GPU: --device cuda"
    return _ERROR.sub(rf"\g<0>\n  ({stand_ins.describe_lack(what) if what else advice})", message, count=1)


def _compile(command: tuple[str, ...], options: list[str], source: str) -> tuple[bytes, tuple[Path, ...]]:
    """The shared library and the files it was made from. In a folder of its own, with names that are always the same,
    so that equal sources give equal bytes."""
    with tempfile.TemporaryDirectory(prefix="autotune-") as folder:
        Path(folder, "autotune.cpp").write_text(source, encoding="utf-8", errors="surrogateescape")
        listing, made = Path(folder, "autotune.d"), Path(folder, "autotune.so")
        names = ["-MMD", "-MF", listing.name, "-o", made.name, "autotune.cpp"]
        status, _, complaint = run_compiler([*command, *options, *names], folder)
        if status:
            raise BuildError(complaint.strip() or f"{shlex.join(command)} exited with {status}")
        if not made.is_file():
            raise CompilerError(
                f"{shlex.join(command)} exited with 0 and made no library, so it is no C++ compiler; name one in CXX"
            )
        return made.read_bytes(), read_dependencies(listing, (Path(folder), *_shim()))


# -- a source in the words of the host: what CUDA C++ says and no macro in the headers of autotune/cpu can ----------

_NOT_CODE = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
_DYNAMIC = re.compile(
    r"\bextern\s+(?:volatile\s+)?__shared__\s+(?:(?:__align__|alignas)\s*\(\s*\d+\s*\)\s*)?"
    r"(?P<type>(?:const\s+|volatile\s+)?[A-Za-z_][\w:]*(?:\s+(?:int|char|short|long))*(?:<[^;{}]*?>)?)\s+"
    r"(?P<name>\w+)\s*\[\s*\]\s*;"
)
_STATIC = re.compile(r"\bstatic\s+(?=__shared__\b)|(?<=\b__shared__)\s+static\b")
_SCOPE = re.compile(r"(?:\bnamespace\b[\w:\s]*|\bextern\s*)$")
_SHARED = "autotune::cpu::setting.dynamic_shared"


def host_source(source: Path) -> str:
    """The directive that includes the file, or its text where the shared memory in it has to be named in other words:
    a block's dynamic one is at an address that is known when it runs."""
    text = source.read_text(encoding="utf-8", errors="surrogateescape")
    code = _NOT_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    parts, end = [], 0
    found = [*_DYNAMIC.finditer(code), *_STATIC.finditer(code)]
    for match in sorted(found, key=lambda match: match.start()):
        is_dynamic = match.re is _DYNAMIC  # what is shared on the host is static without the word
        parts += [
            text[end : match.start()],
            _declare(match, code, source) if is_dynamic else re.sub(r"\S", "", match[0]),
        ]
        end = match.end()
    if not parts:
        return include(source)
    return f'#line 1 "{source.as_posix()}"\n{"".join(parts)}{text[end:]}\n'


def _declare(match: "re.Match[str]", code: str, source: Path) -> str:
    kind, name = match["type"], match["name"]
    if _is_inside_a_function(code[: match.start()]):
        return f"{kind}* const {name} = reinterpret_cast<{kind}*>({_SHARED});"
    line = code.count("\n", 0, match.end()) + 1
    place = f'#line {line} "{source.as_posix()}"'
    return f"\n#undef {name}\n#define {name} (reinterpret_cast<{kind}*>(::{_SHARED}))\n{place}\n"


def _is_inside_a_function(before: str) -> bool:
    """Whether a brace that no namespace and no extern "C" opened is open at the end of ``before``, whose texts are
    blank."""
    depth: list[bool] = []
    for brace in re.finditer(r"[{}]", before):
        if brace[0] == "{":
            depth.append(_SCOPE.search(before[: brace.start()].rstrip()) is None)
        elif depth:
            depth.pop()
    return any(depth)
