"""What a compiler made of one variant, as text: PTX by the compiler itself, SASS by the toolkit's cuobjdump."""

import re
from importlib.util import find_spec
from pathlib import Path

from autotune.compile.nvcc import toolkit_program
from autotune.compile.nvrtc import Nvrtc
from autotune.compile.toolchain import Batch, BuildError, Compiled, Toolchain, run_compiler
from autotune.errors import CompilerError
from autotune.files import pip_install


def ptx(batch: Batch, toolchain: Toolchain) -> str:
    """The batch as PTX. Raises CompilerError, for a source that does not compile, too."""
    if not isinstance(toolchain, Nvrtc):
        raise CompilerError(f"PTX is made by NVRTC, which is not installed: {pip_install('static')}")
    try:
        return toolchain.ptx(batch)
    except BuildError as problem:
        raise CompilerError(f"it does not compile:\n{problem}") from None


def sass(compiled: Compiled) -> str:
    """The machine code of each kernel of a variant, in the order of its kernels. Raises CompilerError."""
    program = find_cuobjdump()
    return "\n".join(_dumped(program, compiled.image, symbol) for symbol in compiled.symbols.values())


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


def _dumped(program: str, image: Path, symbol: str) -> str:
    status, answer, complaint = run_compiler([program, "-sass", "-fun", symbol, str(image)])
    if status:
        raise CompilerError(f"{program} exited with {status}: {(complaint or answer).strip()}")
    # Each instruction is followed by its encoding, and by a line that is nothing else.
    lines = (re.sub(r"\s*/\* 0x[0-9a-f]{16} \*/\s*$", "", line) for line in answer.splitlines())
    return "\n".join(line for line in lines if line.strip()) + "\n"
