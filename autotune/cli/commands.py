"""The command line: a thin skin over the modules, one function a command.

``main`` turns every AutotuneError into one message and its exit code; the commands themselves only raise.
"""

import errno
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from autotune import __version__
from autotune.cli.options import (
    CallInput,
    CallOutput,
    CallWorkload,
    Data,
    DeviceOption,
    FamilyArgument,
    Policies,
    err,
    note,
    out,
    place,
    sweep_options,
)
from autotune.cli.policy_commands import (
    check_command,
    explain_command,
    plan_command,
)
from autotune.cli.record_commands import compare, limits, profile
from autotune.cli.show import doctor_command, families_command, list_command, show_command
from autotune.declaration import load_family
from autotune.engine import SweepRequest
from autotune.errors import AutotuneError, Interrupted, UsageError
from autotune.extensions import extending
from autotune.files import policy_folder

_INTERRUPTED = Interrupted.exit_code


app = typer.Typer(
    name="autotune",
    help="Tune how a CUDA kernel's data is laid out: compile every policy combination, prove it right, time it, "
    "keep the winner in a policy file that programs use at run time.",
    epilog="Exit codes: 0 done, 1 unexpected failure, 2 usage or unknown name, 3 family, 4 workload or input, "
    "5 device, 6 compiler, 7 store or output folder, 8 policy file, 9 nothing could be measured, "
    "10 a comparison found a regression, 11 a configuration failed under sweep --strict, 130 interrupted.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _version(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
) -> None:
    if version:
        out.print(f"autotune {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        raise UsageError("name a command; autotune --help lists them")


def new_command(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Small letters, digits and _; the folder is made as ./NAME.")
    ],
    out_: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Make the folder in DIR.", show_default=False)
    ] = Path(),
) -> None:
    """Write the folder of a new family. Its small kernel works at once, and is to be changed into yours."""
    from autotune.cli.new import new_family, print_made

    folder, made = new_family(name, out_)
    print_made(folder, made, out)


def lint_command(
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="A folder with a family.yaml, or a family's name.")
    ],
    strict: Annotated[bool, typer.Option("--strict", help="Warnings fail too.")] = False,
    json: Annotated[
        bool, typer.Option("--json", help="One JSON array: path, line, severity, rule, message.")
    ] = False,
) -> None:
    """Check a family without a GPU or a compiler. Exit code 0 without errors, 3 with them."""
    from autotune.cli.lint import lint, print_findings

    print_findings(lint(folder), folder, strict, out, json)


@sweep_options()
def sweep_command(
    family: FamilyArgument,
    policies: Policies = None,
    static: Annotated[
        bool,
        typer.Option(
            "--static", help="Only compile: registers, spills, shared memory, occupancy. Needs no GPU."
        ),
    ] = False,
    arch: Annotated[
        list[str] | None, typer.Option("--arch", metavar="sm_XX", help="Target of --static; again for more.")
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Exit code 11 when a configuration failed, after all is recorded."),
    ] = False,
    on: Annotated[
        str,
        typer.Option(
            "--on",
            metavar="HOST[:PROGRAM]",
            help="Sweep on a host that ssh reaches, with autotune as PROGRAM there; the results come back.",
        ),
    ] = "",
    **asked: Any,
) -> None:
    """Compile, verify and time configurations; keep the winner. Writes results.csv, report.html and the policy file."""
    from autotune.cli import sweep as sweeping

    request, place = SweepRequest(family=load_family(family), **asked), policy_folder(policies)
    if static and request.sanitize:
        raise UsageError("--sanitize watches kernels run, and --static runs none: leave one of them out")
    if static and on:
        raise UsageError("--static needs no device, so no other host: leave --on out")
    if static and strict:
        raise UsageError("--static runs nothing, so nothing fails there: leave --strict out")
    if static:
        from autotune.cli.static_pass import run_static

        run_static(request, tuple(arch or ("sm_90",)), out, err)
    elif arch:
        raise UsageError("--arch goes with --static: a measured sweep compiles for the device it runs on")
    elif on:
        from autotune.cli.remote import Host, sweep_on

        raise typer.Exit(sweep_on(Host.of(on), request, place, out, strict=strict))
    else:
        sweeping.run(request, place, out, err, strict=strict)


@sweep_options("device", "data", "processes")
def worker_command(
    store: Annotated[
        str, typer.Option("--store", metavar="URL|DIR", help="The record of the sweep, as that names it.")
    ],
    family: Annotated[
        list[str] | None,
        typer.Option(
            "--family",
            metavar="DIR",
            help="A family's folder on this host, whose code may run; again for more.",
        ),
    ] = None,
    wait: Annotated[
        float, typer.Option("--wait", metavar="S", min=0.0, help="Wait so long for a sweep to begin.")
    ] = 300,
    **asked: Any,
) -> None:
    """Join a sweep that another host began. Tries its configurations here, and leaves when none is left."""
    from autotune.cli.worker import work

    work(store, tuple(family or ()), asked, wait, out, err)


def report_command(
    records: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR|FILE.csv…", help="A sweep's --out folder or --store URL, or results.csv files."
        ),
    ],
    out_: Annotated[Path | None, place("Where the files go; default DIR itself.")] = None,
    trace: Annotated[
        bool,
        typer.Option("--trace", help="Write trace.json as well: the sweep's timeline, for ui.perfetto.dev."),
    ] = False,
) -> None:
    """Make the report and the tables of a record anew. report.html and the .csv files beside it; needs no device."""
    from autotune.cli.report import report

    report(records, out_, out, trace=trace)


def run_command(
    family: FamilyArgument,
    workload: CallWorkload = "",
    input_: CallInput = None,
    output: CallOutput = None,
    device: DeviceOption = "auto",
    policies: Policies = None,
    data: Data = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print why this configuration was taken.")
    ] = False,
) -> None:
    """Run the tuned kernel once on given data."""
    from autotune.cli.run import Call, run_on

    call = Call(load_family(family, check=False), workload, tuple(input_ or ()), output, policies, data)
    run_on(device, call, note, explain=explain)


COMMANDS: Mapping[str, Callable[..., None]] = {  # in the order in which --help lists them
    "families": families_command,
    "list": list_command,
    "show": show_command,
    "new": new_command,
    "lint": lint_command,
    "sweep": sweep_command,
    "worker": worker_command,
    "plan": plan_command,
    "report": report_command,
    "run": run_command,
    "explain": explain_command,
    "check": check_command,
    "compare": compare,
    "profile": profile,
    "limits": limits,
    "doctor": doctor_command,
}

for _named in (COMMANDS, *(extension.COMMANDS for extension in extending("commands"))):
    for _name, _command in _named.items():
        app.command(_name)(_command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code. What a command raises is printed as one line."""

    def tell(line: str) -> None:
        err.print(line, markup=False)

    warnings.showwarning = lambda message, *_args, **_kwargs: tell(f"warning: {message}")
    try:
        return _run(arguments)
    except Interrupted as interrupted:
        tell(str(interrupted))
        return interrupted.exit_code
    except AutotuneError as problem:
        tell(f"error: {problem}")
        return problem.exit_code
    except OSError as problem:
        if problem.errno != errno.ENAMETOOLONG:
            raise
        tell(f"error: a name that is too long for a file: {str(problem.filename)[:60]}…")
        return UsageError.exit_code
    except KeyboardInterrupt:
        tell("interrupted")
        return _INTERRUPTED


def _run(arguments: Sequence[str] | None) -> int:
    """The exit code of the command. typer makes an exit of a KeyboardInterrupt, or an abort, as its version has it:
    neither says a word, and here both raise KeyboardInterrupt."""
    try:
        result = app(args=list(arguments) if arguments is not None else None, standalone_mode=False)
        code = int(result) if isinstance(result, int) else 0
    except typer.Abort:
        code = _INTERRUPTED
    except typer.Exit as leaving:
        code = leaving.exit_code
    except _click_exception() as problem:
        problem.show()  # type: ignore[attr-defined]
        return int(problem.exit_code)  # type: ignore[attr-defined]
    if code == _INTERRUPTED:
        raise KeyboardInterrupt
    return code


def _click_exception() -> type[Exception]:
    """typer raises click's usage errors; where click lives differs between its versions."""
    name = "typer._click" if find_spec("typer._click") else "click"
    found: type[Exception] = import_module(f"{name}.exceptions").ClickException
    return found
