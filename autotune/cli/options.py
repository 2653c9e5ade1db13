"""What commands share: options with their help, and the consoles they print to.

The options of a sweep are ``engine.OPTIONS``: ``sweep_options`` gives them to a command, ``words`` writes a request as
a command line. What a shell completes is families, and a family's workloads, presets and policies; a family is read no
further than its declaration.
"""

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from autotune.declaration import Family, families, load_family, workloads
from autotune.engine import OPTIONS, SweepRequest
from autotune.errors import AutotuneError, UsageError

out = Console(highlight=False, markup=False, soft_wrap=True, width=None if sys.stdout.isatty() else 200)
err = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)

# -- what a shell completes: it asks while a line is typed, so nothing here raises


def family_names(incomplete: str) -> list[str]:
    """Folders are completed by the shell itself."""
    return _beginning(families(), incomplete)


def workload_names(context: typer.Context, incomplete: str) -> list[str]:
    family = _family(context)
    return _beginning(workloads(family) if family else (), incomplete)


def preset_names(context: typer.Context, incomplete: str) -> list[str]:
    family = _family(context)
    return _beginning(family.space.preset_names if family else (), incomplete)


def policy_values(context: typer.Context, incomplete: str) -> list[str]:
    """``name=`` for each policy, then its values, one behind the other."""
    if (family := _family(context)) is None:
        return []
    name, given, value = incomplete.partition("=")
    policies = {policy.name: policy for policy in family.space.policies}
    if not given or name not in policies:
        return _beginning((f"{each}=" for each in policies), incomplete)
    before, comma, last = value.rpartition(",")
    taken = before.split(",")
    left = (str(each) for each in policies[name].values if str(each) not in taken)
    return [f"{name}={before}{comma}{each}" for each in _beginning(left, last)]


def _family(context: typer.Context) -> Family | None:
    """The one whose name stands on the line already; an option that waits for its value leaves it unassigned."""
    for name in (context.params.get("family"), *context.args):
        try:
            return load_family(str(name or ""), check=False)
        except AutotuneError:
            continue
    return None


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


# -- options


_COMPLETED = {"workloads": workload_names, "preset": preset_names, "narrowed": policy_values}


def _typed(name: str) -> Any:
    """An option of a sweep for typer."""
    option = OPTIONS[name]
    flags = [f"--{option.word}", *([f"-{option.letter}"] if option.letter else [])]
    return typer.Option(
        *flags,
        metavar=option.metavar or None,
        help=option.help,
        min=option.least,
        autocompletion=_COMPLETED.get(name),
    )


def one_workload(about: str) -> Any:
    """The option for one workload."""
    return typer.Option("--workload", "-w", metavar="NAME|PATH", help=about, autocompletion=workload_names)


def place(about: str, metavar: str = "DIR") -> Any:
    """The option for where files go."""
    return typer.Option("--out", "-o", metavar=metavar, help=about)


FamilyArgument = Annotated[
    str,
    typer.Argument(
        metavar="FAMILY",
        help="A family's name, or a folder with a family.yaml.",
        autocompletion=family_names,
    ),
]

DeviceOption = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="auto|cpu|cuda|cuda:N",
        help="The device that runs it; auto is the first GPU, else the cpu.",
    ),
]

Policies = Annotated[
    Path | None,
    typer.Option(
        "--policies", metavar="DIR", help="Folder of policy files (or AUTOTUNE_POLICIES; else ./policies)."
    ),
]

Preset = Annotated[str, _typed("preset")]
Set = Annotated[list[str] | None, _typed("narrowed")]
Objective = Annotated[str, _typed("objective")]
Data = Annotated[Path | None, _typed("data")]

CallWorkload = Annotated[
    str, one_workload("Input from a workload; default the family's own when no -i is given.")
]

CallInput = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        "-i",
        metavar="NAME=VALUE",
        help="An input (a file), a scalar or an option; again for more.",
    ),
]

CallOutput = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "--out",
        "-o",
        metavar="FILE",
        help="Where the result goes: .npy, .npz or the family's own.",
    ),
]


def sweep_options(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command, in place of its ``**asked``, the options of a sweep of those names, or all of them. It is called
    with the fields of a ``SweepRequest``."""
    chosen = [OPTIONS[name] for name in names or OPTIONS]

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def called(**given: Any) -> None:
            asked = {option.name: given.pop(option.name) for option in chosen}
            if "workloads" in asked:
                asked["workloads"] = tuple(asked["workloads"] or ())
            if "narrowed" in asked:
                asked["narrowed"] = narrowed(asked["narrowed"])
            command(**given, **asked)

        signature = inspect.signature(command, eval_str=True)
        own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
        added = [
            inspect.Parameter(
                option.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=None if option.is_many else option.default,
                annotation=Annotated[
                    list[str] | None if option.is_many else option.kind, _typed(option.name)
                ],
            )
            for option in chosen
        ]
        first = [one for one in own if one.default is one.empty]
        rest = [one.replace(kind=one.KEYWORD_ONLY) for one in own if one.default is not one.empty]
        vars(called)["__signature__"] = signature.replace(parameters=[*first, *added, *rest])
        return called

    return decorated


def words(request: SweepRequest) -> Iterator[str]:
    """The options of the command that asks for the same sweep."""
    for option in OPTIONS.values():
        value = getattr(request, option.name)
        if isinstance(value, bool):
            yield from [f"--{option.word}"] if value else []
        elif isinstance(value, Mapping):
            for name, values in value.items():
                yield from (f"--{option.word}", f"{name}={','.join(values)}")
        elif value != option.default:
            for one in value if isinstance(value, tuple) else (value,):
                yield from (f"--{option.word}", str(one))


def note(line: str) -> None:
    """Print a line as it is."""
    out.print(line, markup=False)


def narrowed(items: Sequence[str] | None) -> dict[str, list[str]]:
    """``["a=1,2"]`` -> {"a": ["1", "2"]}. Raises UsageError."""
    held: dict[str, list[str]] = {}
    for item in items or ():
        name, separator, values = item.partition("=")
        if not separator or not name or not values:
            raise UsageError(f"cannot read --set {item!r}: write --set policy=value or --set policy=v1,v2")
        held.setdefault(name.strip(), []).extend(value.strip() for value in values.split(","))
    return held


def sized(items: Sequence[str] | None) -> dict[str, int]:
    """``["height=1000"]`` -> {"height": 1000}. Raises UsageError."""
    found: dict[str, int] = {}
    for item in items or ():
        name, _, number = item.partition("=")
        if not name.strip() or not number.strip().isdecimal() or int(number) < 1 or name.strip() in found:
            raise UsageError(
                f"cannot read --size {item!r}: write --size extent=N, a whole number from 1, each extent once"
            )
        found[name.strip()] = int(number)
    return found
