"""The command line: which commands there are, and where; a command's module is imported when it is called.

``main`` turns every AutotuneError into one message and its exit code; the commands themselves only raise.
"""

import errno
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module

import click

from autotune import __version__
from autotune.errors import AutotuneError, Interrupted, UnknownName, UsageError
from autotune.extensions import EXTENSIONS

_HELP = {  # NAME_command in the module of that name
    "families": "List the kernel families that ship with autotune.",
    "list": "List the ids of the configurations that a sweep would visit. Runs nothing.",
    "show": "Show one configuration: generated code, layouts, static profile.",
    "sweep": "Compile, verify and time configurations; keep the winner. Writes results.csv, a report, the policy file.",
    "worker": "Join a sweep that another host started. Tries its configurations here, and exits when none is left.",
    "plan": "Sweep the sizes that matter most for a range of inputs. Stops when the expected regret is small; writes "
    "the policy file.",
    "report": "Write the report and the tables of a record again: report.html and the .csv files. Needs no device.",
    "run": "Run the tuned kernel once on given data.",
    "explain": "Show which configuration an input would get, and why not the others. Runs nothing.",
    "check": "Check that policy files are accepted here. Exit code 8 if an entry is rejected.",
    "compare": "Compare two records or policy files: what changed beyond noise. Exit code 10 on a regression.",
    "profile": "Read hardware counters of configurations with Nsight Compute. Stores them as columns of the record.",
    "limits": "Measure the ceilings of a GPU: bandwidths and instruction rates. Reports compare times with them.",
    "doctor": "Show which tools are installed, which are missing, and how to install them.",
}
_ELSEWHERE = {"families": "show", "list": "show", "limits": "profile", "doctor": "show"}

COMMANDS = {name: (f"autotune.cli.{_ELSEWHERE.get(name, name)}", about) for name, about in _HELP.items()} | {
    name: (f"autotune.{package}.commands", about)
    for package, extension in EXTENSIONS.items()
    for name, about in extension.commands.items()
}


class Commands(click.Group):
    """The group of all commands."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        if cmd_name not in self.commands:
            module, about = COMMANDS[cmd_name]
            function = getattr(import_module(module), f"{cmd_name}_command")
            self.add_command(click.command(cmd_name, help=about)(function))
        return self.commands[cmd_name]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not ctx.resilient_parsing:
            raise UnknownName("command", args[0], COMMANDS)
        return super().resolve_command(ctx, args)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, f"{about.partition('. ')[0].rstrip('.')}.") for name, (_, about) in COMMANDS.items()]
            )

    def invoke(self, ctx: click.Context) -> None:
        try:
            super().invoke(ctx)
        except KeyboardInterrupt:  # of which click would make something else
            raise Interrupted("interrupted") from None


app = Commands(
    "autotune",
    help="Tune how a CUDA kernel's data is laid out: compile every policy combination, verify it, time it, "
    "keep the winner in a policy file that programs use at run time.",
    epilog="Exit codes: 0 done, 1 unexpected failure, 2 usage or unknown name, 3 family, 4 workload or input, "
    "5 device, 6 compiler, 7 store or output folder, 8 policy file, 9 nothing could be measured, "
    "10 a comparison found a regression, 11 a configuration failed under sweep --strict, 130 interrupted.",
    no_args_is_help=True,
    params=[],
)
click.version_option(__version__, message="autotune %(version)s", help="Print the version and exit.")(app)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code. What a command raises is printed as one line."""

    def tell(line: str) -> None:
        print(line, file=sys.stderr)

    warnings.showwarning = lambda message, *_args, **_kwargs: tell(f"warning: {message}")
    try:
        return app.main(arguments, standalone_mode=False) or 0
    except click.ClickException as problem:
        problem.show()
        return problem.exit_code
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
    except (KeyboardInterrupt, click.Abort):
        tell("interrupted")
        return Interrupted.exit_code
