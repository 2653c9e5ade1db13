"""Which options of a compiler a family may ask for, for all its configurations or as a choice."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from autotune.errors import FamilyError

# As a message names them, and as they are recognised.
_COMPILE_OPTIONS = {
    "-DNAME": r"-D[A-Za-z_]\w*",
    "-DNAME=VALUE (letters, digits, _ . + -)": r"-D[A-Za-z_]\w*=[\w.+-]*",
    "-UNAME": r"-U[A-Za-z_]\w*",
    "-O0 to -O3": r"-O[0-3]",
    "-std=c++N": r"--?std=(c|gnu)\+\+\w\w",
    "-use_fast_math": r"--?use_fast_math",
    "--fmad, --ftz, --prec-div, --prec-sqrt, --restrict, --extra-device-vectorization, each also =true or =false": (
        r"--?(fmad|ftz|prec-div|prec-sqrt|restrict|extra-device-vectorization)(=(true|false))?"
    ),
    "-maxrregcount=N": r"--?maxrregcount=\d+",
    "-Xptxas=-ON, -Xptxas=-dlcm=…, -Xptxas=-dscm=…, -Xptxas=--allow-expensive-optimizations=…": (
        r"(-Xptxas|--ptxas-options)="
        r"(-O\d|-d[ls]cm=\w\w|--def-(load|store)-cache=\w\w|--allow-expensive-optimizations=(true|false)|-v)"
    ),
    "-lineinfo": r"-lineinfo|--generate-line-info",
    "-extended-lambda": r"--?extended-lambda",
    "--expt-relaxed-constexpr": r"--?expt-relaxed-constexpr",
    "-default-device": r"-default-device|--device-as-default-execution-space",
    "-diag-suppress=N": r"--?diag-suppress=\d+(,\d+)*",
    "-w": r"-w|--disable-warnings",
}


def compile_options(options: Sequence[str], where: str) -> tuple[str, ...]:
    """Options that say how a kernel is compiled, and nothing else: others name programs to run and files to read or
    write, and nvcc hands its arguments on through a shell. Raises FamilyError."""
    for option in options:
        if not any(re.fullmatch(pattern, option) for pattern in _COMPILE_OPTIONS.values()):
            raise FamilyError(
                f"{where}: compile_options: {option!r} is not allowed; allowed are, each as one text: "
                f"{', '.join(_COMPILE_OPTIONS)}"
            )
    return tuple(options)


def read_policy_options(policy: Mapping[str, Any], place: str) -> dict[str, tuple[str, ...]] | None:
    """What each value of a policy, as it is declared, adds to the command line; a value without a meaning adds nothing.
    None for one that chooses no option. Raises FamilyError."""
    if "compile_option" not in policy:
        return None
    if policy.get("layout"):
        raise FamilyError(f"{place}: it either chooses a layout or a compile option; make two policies of it")
    if not policy.get("means"):
        raise FamilyError(
            f"{place}: compile_option needs means: what each value adds to the compiler's command line, as {{fast: "
            "-use_fast_math}}; a value that is not there adds nothing"
        )
    listed = {
        str(value): [meaning] if isinstance(meaning, str) else meaning
        for value, meaning in policy["means"].items()
    }
    return {
        value: compile_options([str(option) for option in options if option], place)
        for value, options in listed.items()
    }
