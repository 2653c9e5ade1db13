"""``autotune run`` as it is written most often, without what reads the options of every command: to import that takes
longer than many a run. Whatever is written otherwise, or wrong, is left to it.
"""

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from autotune.cli.answers import answered

__all__ = ["Asked", "asked", "plain_run"]

_VALUES = {
    "-w": "workload",
    "--workload": "workload",
    "-i": "given",
    "--input": "given",
    "-o": "output",
    "--output": "output",
    "--out": "output",
    "--device": "device",
    "--policies": "policies",
    "--data": "data",
}
_PATHS = ("output", "policies", "data")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What cli.run.run takes."""

    family: str
    given: tuple[str, ...] = ()
    workload: str = ""
    output: Path | None = None
    device: str = "auto"
    policies: Path | None = None
    data: Path | None = None
    explain: bool = False


def asked(words: Sequence[str]) -> Asked | None:
    """What the words behind ``run`` ask for; None for those that need a closer look."""
    families: list[str] = []
    found: dict[str, Any] = {"given": ()}
    rest = iter(words)
    for word in rest:
        option, equals, text = word.partition("=") if word.startswith("--") else (word, "", "")
        if word == "--explain":
            found["explain"] = True
        elif option in _VALUES:
            value = text if equals else next(rest, "-")
            if value.startswith("-"):
                return None
            name = _VALUES[option]
            if name == "given":
                found[name] = (*found[name], value)
            else:
                found[name] = Path(value) if name in _PATHS else value
        elif word.startswith("-"):
            return None
        else:
            families.append(word)
    return Asked(family=families[0], **found) if len(families) == 1 else None


def plain_run(arguments: Sequence[str]) -> Callable[[], int] | None:
    """The command line ``arguments`` ready to be run, which gives its exit code; None for one that is to be read as a
    whole."""
    request = asked(arguments[1:]) if arguments[:1] == ["run"] else None
    if request is None:
        return None
    from autotune.cli.run import run
    from autotune.declaration import load_family

    def command() -> int:
        family = load_family(request.family, check=False)
        run(
            family, request.workload, request.given, request.output, request.device, request.policies, request.data,
            request.explain, print,
        )  # fmt: skip
        return 0

    warnings.showwarning = lambda message, *_args, **_kwargs: _tell(f"warning: {message}")
    return partial(answered, command, _tell)


def _tell(line: str) -> None:
    print(line, file=sys.stderr)
