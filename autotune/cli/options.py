"""What commands share: options with their help, and the consoles they print to.

The options of a sweep are ``engine.OPTIONS``: ``sweep_options`` gives them to a command, ``words`` writes a request as
a command line. What a shell completes is families, and a family's workloads, presets and policies; a family is read no
further than its declaration.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from autotune.declaration import families, load_family, workloads
from autotune.errors import AutotuneError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from autotune.declaration import Family
    from autotune.engine import SweepRequest

    out: Console
    err: Console

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]


def __getattr__(name: str) -> Any:
    """``out`` and ``err``, the consoles of the commands that print tables: Rich is loaded for these alone."""
    if name not in ("out", "err"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from rich.console import Console

    width = None if name == "err" or sys.stdout.isatty() else 200
    made = Console(stderr=name == "err", highlight=False, markup=False, soft_wrap=True, width=width)
    return globals().setdefault(name, made)


# -- what a shell completes: it asks while a line is typed, so nothing here raises


def workload_names(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    family = _family(context)
    return _beginning(workloads(family) if family else (), incomplete)


def preset_names(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    family = _family(context)
    return _beginning(family.space.preset_names if family else (), incomplete)


def policy_values(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
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


def _family(context: click.Context) -> "Family | None":
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


FOLDER = click.Path(path_type=Path)  # or a file
_RANGES: Mapping[type, Any] = {int: click.IntRange, float: click.FloatRange}


def option(word: str, *names: str, default: Any = None, least: float | None = None, **more: Any) -> Decorator:
    """An option as its help shows it: ``--trials N``, or ``--again``, which is a flag. Its default is shown where it
    says something, and ``least`` is the least number. One that is given again for more is ``multiple``."""
    word, takes, metavar = word.partition(" ")
    if takes:
        more["metavar"] = metavar
    else:
        more["is_flag"], default = True, False
    if least is not None:
        more["type"] = _RANGES[more.get("type") or type(default)](least)
    shows = default is not None and default is not False and default != ""
    if default is not None:  # click takes a None that is given for the value of a required option
        more["default"] = default
    return click.option(word, *names, show_default=shows, **more)


def make_sweep_option(name: str) -> Decorator:
    """An option of a sweep (``engine.OPTIONS``)."""
    from autotune.engine import OPTIONS

    one = OPTIONS[name]
    words = [f"--{one.word} {one.metavar}".strip(), one.name, *([f"-{one.letter}"] if one.letter else [])]
    shown: dict[str, Any] = {"help": one.help, "shell_complete": _COMPLETED.get(name)}
    if one.is_many:
        return option(*words, multiple=True, **shown)
    kind = next(each for each in (bool, int, float, str, Path) if each in (get_args(one.kind) or (one.kind,)))
    if kind is bool:
        return option(*words, help=one.help)
    type_ = FOLDER if kind is Path else kind
    return option(*words, default=one.default, type=type_, least=one.least, **shown)


_COMPLETED = {"workloads": workload_names, "preset": preset_names, "narrowed": policy_values}


def sweep_options(*names: str) -> Decorator:
    """Give a command the options of a sweep of those names, or all of them: it is called with the fields of a
    ``SweepRequest``."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def call_command(**given: Any) -> None:
            if "narrowed" in given:
                given["narrowed"] = parse_narrowed(given["narrowed"])
            command(**given)

        from autotune.engine import OPTIONS

        for name in reversed(names or list(OPTIONS)):
            make_sweep_option(name)(call_command)
        return call_command

    return decorate


def make_workload_option(about: str) -> Decorator:
    """The option for one workload."""
    return option("--workload NAME|PATH", "-w", default="", help=about, shell_complete=workload_names)


def place(about: str, metavar: str = "DIR", **more: Any) -> Decorator:
    """The option for where files go."""
    return option(f"--out {metavar}", "-o", "out_", type=FOLDER, help=about, **more)


family_argument = click.argument(
    "family",
    metavar="FAMILY",
    help="Family name, or folder with a family.yaml.",
    shell_complete=lambda _context, _parameter, incomplete: _beginning(families(), incomplete),
)

device_option = option(
    "--device auto|cpu|cuda|cuda:N",
    default="auto",
    help="Device that runs it; auto is the first GPU, or the cpu if there is none.",
)
data_option = option(
    "--data DIR", type=FOLDER, help="Folder with the workloads' data files (or AUTOTUNE_DATA)."
)
policies_option = option(
    "--policies DIR", type=FOLDER, help="Folder of policy files; default: AUTOTUNE_POLICIES, or ./policies."
)


def markdown_option(what: str) -> Decorator:
    """The option for a file that a CI job shows."""
    about = f"Append the {what} to this file as Markdown, for a CI job's summary."
    return option("--markdown FILE.md", type=FOLDER, help=about)


def call_options(command: Command) -> Command:
    """The options of a command that runs a kernel once."""
    about = "Output file: .npy, .npz or the family's own format."
    option("--output FILE", "--out", "-o", type=FOLDER, help=about)(command)
    about = "Input (a file), scalar or option; repeat for more."
    option("--input NAME=VALUE", "-i", "given", multiple=True, help=about)(command)
    return make_workload_option("Take the input from a workload; default without -i: the family's own.")(
        command
    )


def words(request: "SweepRequest") -> Iterator[str]:
    """The options of the command that asks for the same sweep."""
    from autotune.engine import OPTIONS

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


def parse_narrowed(items: Iterable[str]) -> dict[str, list[str]]:
    """``["a=1,2"]`` -> {"a": ["1", "2"]}. Raises UsageError."""
    held: dict[str, list[str]] = {}
    for item in items:
        name, separator, values = item.partition("=")
        if not separator or not name or not values:
            raise UsageError(f"cannot read --set {item!r}: write --set policy=value or --set policy=v1,v2")
        held.setdefault(name.strip(), []).extend(value.strip() for value in values.split(","))
    return held


def parse_sizes(items: Iterable[str]) -> dict[str, float]:
    """``["height=1000"]`` -> {"height": 1000}. Raises UsageError."""
    sizes: dict[str, float] = {}
    for item in items:
        name, _, number = item.partition("=")
        try:
            sizes[name.strip()] = float(number) if "." in number else int(number)
        except ValueError:
            raise UsageError(
                f"--size {item!r} is not NAME=N with a number: write, for example, --size taps=9"
            ) from None
    return sizes
