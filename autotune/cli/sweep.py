"""``autotune sweep``: progress, what is printed, and the files that come out."""

import time
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any

import click
from rich.console import Console

from autotune import files as paths
from autotune.api import name_five, read_prior, save_winners
from autotune.cli import options
from autotune.cli.remote import Host, sweep_on
from autotune.cli.report import write_reports
from autotune.cli.static_pass import run_static
from autotune.cli.terminal import describe_regret, print_study
from autotune.declaration import Configuration, load_family
from autotune.engine import SweepRequest, Swept, open_session, raise_unless_measured
from autotune.errors import FailedTrials, Interrupted, StoreError, UsageError
from autotune.figures import duration
from autotune.policy import Entry, new_entries, read_policy_file
from autotune.record import Study, merge_latest, remarks
from autotune.report import show_live


@options.family_argument
@options.sweep_options()
@options.policies_option
@options.option(
    "--static", help="Compile only, and report registers, spills, shared memory and occupancy. Needs no GPU."
)
@options.option("--arch sm_XX", multiple=True, help="Compute capability for --static; repeat for more.")
@options.option("--strict", help="Exit with code 11 if a configuration failed, after everything is recorded.")
@options.option(
    "--on HOST[:PROGRAM]",
    default="",
    help="Sweep on a host over ssh, where PROGRAM runs autotune, and copy the results back.",
)
def sweep_command(
    family: str,
    policies: Path | None,
    static: bool,
    arch: tuple[str, ...],
    strict: bool,
    on: str,
    **asked: Any,
) -> None:
    request, place = SweepRequest(family=load_family(family), **asked), paths.policy_folder(policies)
    for is_given, why in (
        (request.sanitize, "--sanitize watches kernels run, and --static runs none: omit one of them"),
        (request.bounds, "--bounds watches kernels run, and --static runs none: omit one of them"),
        (on, "--static needs no device, so it needs no other host: omit --on"),
        (strict, "--static runs nothing, so nothing can fail: omit --strict"),
    ):
        if static and is_given:
            raise UsageError(why)
    if request.strategy.seconds == 0:
        print_five(request, options.out)
    elif static:
        run_static(request, arch or ("sm_90",), options.out, options.err)
    elif arch:
        raise UsageError("--arch goes with --static: a measured sweep compiles for the device it runs on")
    elif on:
        raise click.exceptions.Exit(sweep_on(Host.parse(on), request, place, options.out, strict=strict))
    else:
        run(request, place, options.out, options.err, strict=strict)


def run(request: SweepRequest, policies: Path, out: Console, err: Console, *, strict: bool = False) -> None:
    """Check names, data, device and folders; then run one sweep for each workload, and write the winners to the policy
    file below ``policies``. Raises FailedTrials at the end if ``strict`` and a configuration failed."""
    began = time.perf_counter()
    request.check()
    cases = request.cases()
    paths.writable(policies)
    ended: list[Swept] = []
    elsewhere = read_prior(request)
    with open_session(request, cases, partial(show_live, err=err), err.print, elsewhere) as session:
        # What reports take half a second to import: done while the devices are opened.
        Thread(target=import_module, args=("autotune.report.files",), daemon=True).start()
        for swept in session.sweeps():
            ended.append(swept)
            print_study(
                swept.study, swept.wall_s, swept.phases, swept.before, swept.device, out, request.objective
            )
        studies = [swept.study for swept in ended]
        _publish(request, policies, studies, session.store.studies(), out)
    spent_s = time.perf_counter() - began
    out.print(f"in all       {spent_s:.1f} s, with opening the device and writing the files")
    _raise_for(request, studies, ended[-1].interrupted, strict=strict)


def print_five(request: SweepRequest, out: Console) -> None:
    """Print the five configurations that should be fastest, with nothing measured. Raises UsageError."""
    request.check()
    elsewhere = read_prior(request)
    for case in request.cases():
        source, five = name_five(request, case.workload.name, elsewhere)
        out.print(f"{request.family.name} on {case.workload.name}, named without measuring:")
        for place, one in enumerate(five, 1):
            out.print(f"{place}  {one.changes(request.family.space.control) or 'control'}")
        out.print(describe_regret(source))


def _raise_for(request: SweepRequest, studies: Sequence[Study], interrupted: str, *, strict: bool) -> None:
    """Raises what the command ends with, after all is recorded."""
    if interrupted:
        raise Interrupted(f"interrupted: {interrupted}; run the same command to resume")
    raise_unless_measured(studies, f"{request.folder}/results.csv")
    if strict and (told := [line for study in studies for line in remarks.failures(study)]):
        raise FailedTrials(
            f"--strict: {'; '.join(told)}; everything is recorded, all reasons are in {request.folder}/results.csv"
        )


def _publish(
    request: SweepRequest, policies: Path, studies: Sequence[Study], recorded: Sequence[Study], out: Console
) -> None:
    newest = merge_latest(recorded, studies)
    won = [study for study in studies if study.decision]
    try:
        publishes = won and not request.bounds
        written = save_winners(policies, newest, won[0], request.objective) if publishes else None
    finally:  # after the policy file, which the report names; a disk may have room for that alone
        console = out if won else Console(quiet=True)
        known = {request.family.name: request.family}
        try:
            write_reports(request.folder, newest, console, known, policies=[policies])
        except StoreError as problem:
            again = f"what was measured is recorded, and `autotune report {request.store or request.folder}` reports it"
            raise StoreError(f"{problem}; {again}") from None
    if written:
        out.print(f"policy file  {written}")
        kept = read_policy_file(written).entries
        new = [(study, new_entries(study, request.objective)) for study in studies]
        proved = [_describe_proof(study, [kept[one.name] for one in own]) for study, own in new if own]
        for line in dict.fromkeys(proved):
            out.print(f"             {line}")
        for one in (entry for _, own in new for entry in own):
            better = kept[one.name]
            if better.configuration != one.configuration:
                told = f"{Configuration(better.configuration).id}, {duration(better.median_ms)}"
                out.print(f"             keeps for {one.name} what an earlier sweep found: {told}")


def _describe_proof(study: Study, entries: Sequence[Entry]) -> str:
    """For which sizes the winners of a study are right, as its ``entries`` say."""
    sizes = [entry.proved.get("sizes", []) for entry in entries]
    against = study.about.proof.get("against", "")
    told = f", against the result of {against} only" if against else ""
    if all(sizes):
        return f"proved for {study.workload} and {min(map(len, sizes))} odd sizes near it{told}"
    why = study.about.proof.get("why_not", "")
    return f"proved for the swept sizes of {study.workload} only{told}{f': {why}' if why else ''}"
