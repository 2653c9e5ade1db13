"""Which options of a compiler a family may ask for, for all its configurations or as a choice.

A policy chooses them by the name of the option (``compile: maxrregcount``), whose values are known and which is kept
apart by what it may do: to the speed alone, or to the result as well.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autotune.errors import FamilyError, UnknownName

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


def chosen_options(means: Mapping[str, Any], place: str) -> dict[str, tuple[str, ...]]:
    """What each value of a policy adds to the command line; a value without a meaning adds nothing. Raises
    FamilyError."""
    if not means:
        raise FamilyError(
            f"{place}: compile_option needs means: what each value adds to the compiler's command line, as {{fast: "
            "-use_fast_math}}; a value that is not there adds nothing"
        )
    listed = {value: [meaning] if isinstance(meaning, str) else meaning for value, meaning in means.items()}
    return {
        value: compile_options([str(option) for option in options if option], place)
        for value, options in listed.items()
    }


MIN_BLOCKS = "min_blocks"  # of __launch_bounds__, which the source says: a constant, not an option
_MAXRREGCOUNT = "maxrregcount"
_UNLIMITED = "none"
_EXACT, _FAST = "exact", "fast"
_MOST_REGISTERS = 255  # of a thread, on every GPU (CUDA C++ Programming Guide, "Technical Specifications")
_LEAST_REGISTERS = 16  # nvcc takes fewer and warns that it needs as many
_MOST_BLOCKS = 32  # of a multiprocessor, on every GPU (there)


@dataclass(frozen=True)
class _Arithmetic:
    """An option that may change results: what the exact and the fast value add, and how the option is recognised among
    those of the whole family."""

    exact: tuple[str, ...]
    fast: tuple[str, ...]
    pattern: str


# nvcc's manual, "Options for Steering GPU Code Generation": what is not said is exact, but for --fmad.
_ARITHMETIC = {
    "prec_div": _Arithmetic((), ("--prec-div=false",), r"--?prec-div.*"),
    "prec_sqrt": _Arithmetic((), ("--prec-sqrt=false",), r"--?prec-sqrt.*"),
    "ftz": _Arithmetic((), ("--ftz=true",), r"--?ftz.*"),
    "fmad": _Arithmetic(("--fmad=false",), (), r"--?fmad.*"),
    "use_fast_math": _Arithmetic((), ("-use_fast_math",), r"--?use_fast_math"),
}
_FAST_MATH = r"--?(use_fast_math|(ftz|prec-div|prec-sqrt|fmad).*)"  # which use_fast_math says together
COMPILE = (_MAXRREGCOUNT, MIN_BLOCKS, *_ARITHMETIC)


def chosen_by(
    policy: Mapping[str, Any], means: Mapping[str, Any], whole: Sequence[str], place: str
) -> dict[str, tuple[str, ...]] | None:
    """What each value of a policy, as it is declared, adds to the command line; None for one that chooses no option.
    ``whole`` is what the family adds for all. Raises FamilyError, UnknownName."""
    kind, is_by_means = policy.get("compile", ""), "compile_option" in policy
    if (kind or is_by_means) and policy.get("layout"):
        raise FamilyError(f"{place}: it either chooses a layout or a compile option; make two policies of it")
    if kind and (means or is_by_means):
        raise FamilyError(
            f"{place}: compile: {kind} says what its values add; means goes with compile_option: true"
        )
    if is_by_means:
        return chosen_options(means, place)
    return added_options(kind, policy["values"], whole, place) if kind else None


def changes_results(kind: str) -> bool:
    """Whether what ``compile: kind`` chooses may change what a kernel computes."""
    return kind in _ARITHMETIC


def added_options(
    kind: str, values: Collection[str | int], whole: Sequence[str], place: str
) -> dict[str, tuple[str, ...]] | None:
    """What each of the ``values`` of a policy with ``compile: kind`` adds to the command line, ``whole`` being what the
    family adds for all; None for what is no option but a constant of the source. Raises FamilyError, UnknownName."""
    if kind == MIN_BLOCKS:
        _check_numbers(kind, values, 1, _MOST_BLOCKS, (), place)
        return None
    if kind == _MAXRREGCOUNT:
        _check_numbers(kind, values, _LEAST_REGISTERS, _MOST_REGISTERS, (_UNLIMITED,), place)
        _check_said_once(kind, r"--?maxrregcount=.*", whole, place)
        return {str(value): (f"-maxrregcount={value}",) for value in values if value != _UNLIMITED}
    if kind not in _ARITHMETIC:
        raise UnknownName("compile", kind, COMPILE, place)
    for value in values:
        if value not in (_EXACT, _FAST):
            raise UnknownName(f"value of compile: {kind}", value, (_EXACT, _FAST), place)
    arithmetic = _ARITHMETIC[kind]
    _check_said_once(kind, _FAST_MATH if kind == "use_fast_math" else arithmetic.pattern, whole, place)
    return {_EXACT: arithmetic.exact, _FAST: arithmetic.fast}


def _check_numbers(
    kind: str, values: Collection[str | int], least: int, most: int, words: Collection[str], place: str
) -> None:
    for value in values:
        if value not in words and not (isinstance(value, int) and least <= value <= most):
            also = "".join(f", or {word}" for word in words)
            raise FamilyError(
                f"{place}: compile: {kind} takes whole numbers from {least} to {most}{also}, and not {value!r}"
            )


def _check_said_once(kind: str, pattern: str, whole: Sequence[str], place: str) -> None:
    for option in whole:
        if re.fullmatch(pattern, option):
            raise FamilyError(
                f"{place}: compile: {kind} chooses what compile_options of the family says for all ({option}): take "
                "one of them away"
            )


def check_together(kinds: Mapping[str, str], where: str) -> None:
    """Raise FamilyError where two policies (name: what ``compile`` it chooses) say the same: one option twice, or
    use_fast_math beside one that it says as well."""
    chosen: dict[str, str] = {}
    for name, kind in kinds.items():
        if kind != MIN_BLOCKS and (other := chosen.setdefault(kind, name)) != name:
            raise FamilyError(f"{where}: policies {other} and {name} both choose compile: {kind}")
    others = [name for kind, name in chosen.items() if kind in _ARITHMETIC and kind != "use_fast_math"]
    if "use_fast_math" in chosen and others:
        raise FamilyError(
            f"{where}: policy {chosen['use_fast_math']} chooses use_fast_math, which says what policy {others[0]} "
            "chooses, too: take one of them away"
        )
