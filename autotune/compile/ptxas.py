"""What NVIDIA's assembler says: the static figures of each kernel, its complaints, and its targets.

NVRTC and nvcc both end in ptxas and carry its ``-v`` output in their logs, in slightly different shapes.
"""

import re
from collections.abc import Iterable

from autotune.errors import CompilerError, suggestion

FIGURES = (
    "registers", "local_bytes", "spill_store_bytes", "spill_load_bytes", "static_shared_bytes", "constant_bytes",
)  # fmt: skip


_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_PROPERTIES = re.compile(r"Function properties for '?([^\s']+)")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")

# Older assemblers split a sum: "4096+16 bytes smem".
_SHARED = re.compile(r"(\d+)(?:\+(\d+))? bytes smem")
_CONSTANT = re.compile(r"(\d+)(?:\+(\d+))? bytes cmem\[\d+\]")


def figures(log: str) -> dict[str, dict[str, int]]:
    """The figures of every kernel in a ``ptxas -v`` log, by symbol; a figure that the log lacks is 0.

    Per thread: ``registers``, ``local_bytes`` (the kernel's own stack frame), ``spill_store_bytes`` and
    ``spill_load_bytes``. Per block: ``static_shared_bytes``. ``constant_bytes`` is the sum of the constant
    banks listed for the kernel, its parameters among them; ptxas lists none from compute capability 9.0 on,
    and counts ``__constant__`` variables per module, so that they belong to no kernel here.
    """
    by_kernel: dict[str, dict[str, int]] = {}
    entry = described = ""
    for line in log.splitlines():
        if match := _ENTRY.search(line):
            entry = match[1]
            by_kernel[entry] = dict.fromkeys(FIGURES, 0)
        elif match := _PROPERTIES.search(line):
            described = match[1]
        elif (match := _FRAME.search(line)) and described in by_kernel:
            # A device function that was not inlined has a block of its own, after the kernel's.
            names = ("local_bytes", "spill_store_bytes", "spill_load_bytes")
            by_kernel[described].update(zip(names, map(int, match.groups()), strict=True))
        elif (match := _REGISTERS.search(line)) and entry:
            by_kernel[entry]["registers"] = int(match[1])
            by_kernel[entry]["static_shared_bytes"] = _total(_SHARED, line)
            by_kernel[entry]["constant_bytes"] = _total(_CONSTANT, line)
    return by_kernel


def complaints(log: str) -> str:
    """The log without the ``-v`` lines: what a person needs to read when a unit did not compile."""
    text = log.replace("\0", "\n")
    kept = [line for line in text.splitlines() if not line.startswith(("ptxas info", "ptxas         ."))]
    return "\n".join(line for line in kept if not _FRAME.search(line)).strip()


def check_target(arch: str, targets: Iterable[str], compiler: str) -> None:
    """Raise CompilerError unless ``arch`` (``sm_90``; ``sm_90a`` and ``sm_90f`` count as ``sm_90``) is one of
    ``targets``."""
    allowed = list(targets)
    if re.sub(r"[af]$", "", arch) not in allowed:
        hint = suggestion(arch, allowed)
        raise CompilerError(f"{compiler} has no target {arch!r}{hint} (allowed: {', '.join(allowed)})")


def _total(pattern: re.Pattern[str], line: str) -> int:
    return sum(int(part) for match in pattern.finditer(line) for part in match.groups() if part)
