"""``autotune sweep --static``: the static pass over part of a space for one or more architectures, and its files."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median_low

from rich.console import Console
from rich.table import Table

from autotune.compile import Cache, KernelProfile, StaticProfile, default_root, static_pass
from autotune.declaration import Configuration, Policy, SourceText
from autotune.engine import SweepRequest
from autotune.errors import CompilerError, UsageError
from autotune.files import data_root, writable
from autotune.record import holds_store, read_record, remarks
from autotune.report import pace, write_static, write_static_report
from autotune.search import Search

BEST, WORST = 10, 5  # of each architecture and kernel; static.csv has all


def run_static(
    request: SweepRequest, archs: Sequence[str], out: Console, err: Console
) -> list[StaticProfile]:
    """The static pass for each architecture: what the policies change and the configurations with most occupancy, and
    static.csv in the output folder. Raises CompilerError when nothing compiles for one of them."""
    if request.device != "auto" or request.store:
        raise UsageError("--static runs and records nothing: omit --device and --store")
    if len(request.workloads) > 1:
        raise UsageError("--static takes sizes from one --workload at most")
    SourceText(request.family, request.family.folder).check()
    configurations = _draw(request)
    writable(request.folder)
    known = static_pass.StaticInputs.make(request.family, "".join(request.workloads), data_root(request.data))
    if known.note:
        err.print(f"note: {known.note}")
    rows: list[StaticProfile] = []
    for arch in archs:
        toolchain = static_pass.static_toolchain(arch, request.compiler)
        with pace(f"{request.family.name} {arch}", len(configurations), err) as steps:
            profiles = static_pass.static_sweep(
                request.family, configurations, toolchain, arch, Cache(default_root()),
                request.compiler_processes("cpu"), known,
            )  # fmt: skip
            failed = 0
            for done, row in enumerate(profiles, 1):
                rows.append(row)
                failed += bool(row.message)
                steps.step(done, f"{failed} compile_failed" if failed else "")
    _print_tables(rows, request.space.policies, request.family.space.control, out)
    path = request.folder / "static.csv"
    write_static(request.family, rows, path)
    failures = [("compile_failed", row.message, row.configuration.id) for row in rows if row.message]
    lost = f", {len(failures)} of them compile_failed" if failures else ""
    out.print(f"static pass  {len(rows)} configurations in {path}{lost}")
    beside = read_record(str(request.folder)) if holds_store(request.folder) else ()
    report = write_static_report(request.folder, beside, {request.family.name: request.family})
    out.print(f"report       {report}")
    without = [arch for arch in archs if not any(row.kernels for row in rows if row.arch == arch)]
    if without:
        raise CompilerError(
            f"no configuration compiles for {', '.join(without)}; all reasons are in {path}\n"
            f"{remarks.reasons(failures)}"
        )
    if failures:
        err.print(f"warning: some do not compile\n{remarks.reasons(failures)}")
    return rows


def _draw(request: SweepRequest) -> Sequence[Configuration]:
    """All, or as many as ``--trials`` says: presets first, and as an exhaustive sweep goes on where the space can be
    listed; else at random, by the seed, since a search has nothing to learn from here."""
    configurations, strategy = request.configurations, request.strategy
    if strategy.trials is None:
        if configurations is None:
            raise UsageError(
                "this space is too large for a static pass of all of it: narrow it with --preset or --set, or draw "
                "some of it with --trials"
            )
        return configurations
    sampler = "random" if configurations is None else "exhaustive"
    search = Search(request.space, configurations, replace(strategy, sampler=sampler))
    return list(iter(search.ask, None))


def _print_tables(
    rows: Sequence[StaticProfile], policies: Sequence[Policy], control: Configuration, out: Console
) -> None:
    """Of each architecture and kernel: what values of policies change, then the best and the worst configurations."""
    tables: dict[tuple[str, str], list[tuple[Configuration, KernelProfile]]] = {}
    for row in rows:
        for p in row.kernels:
            tables.setdefault((row.arch, p.kernel), []).append((row.configuration, p))
    if not tables:
        return
    out.print(_group_by_value(tables, policies))
    table = Table("arch", "kernel", "registers", "spills B", "shared B", "occupancy", "limited by", box=None)
    table.add_column("differs from control in", overflow="fold", min_width=40)
    for (arch, kernel), of in tables.items():
        of.sort(key=lambda one: (-one[1].occupancy, one[1].spilled_bytes, one[1].registers))
        left = len(of) - BEST - WORST
        for rank, (configuration, p) in enumerate(of):
            if left > 0 and rank == BEST:
                table.add_row(*["…"] * 7, f"{left:,} between are in static.csv")
            if left <= 0 or rank < BEST or rank >= BEST + left:
                # Dashes where sizes that a block depends on are not known.
                known = str(p.shared_bytes), f"{p.occupancy:.0%}", p.limited_by
                of_block = known if p.limited_by else ("-",) * 3
                changes = configuration.changes(control)
                table.add_row(arch, kernel, str(p.registers), str(p.spilled_bytes), *of_block, changes)
    out.print(table)


def _group_by_value(
    found: Mapping[tuple[str, str], Sequence[tuple[Configuration, KernelProfile]]], policies: Sequence[Policy]
) -> Table:
    """The figures of each kernel over all configurations and over those with each value of a policy, without the
    policies whose values all have the same."""
    table = Table(
        "arch", "kernel", "policy", "configurations", "registers", "spilling", "occupancy", box=None
    )
    for (arch, kernel), of in found.items():
        table.add_row(arch, kernel, "all", *_figures([p for _, p in of]))
        for policy in policies:
            groups = {value: [p for c, p in of if c[policy.name] == value] for value in policy.values}
            told = {value: _figures(group) for value, group in groups.items() if group}
            if len({figures[1:] for figures in told.values()}) > 1:
                for value, figures in told.items():
                    table.add_row(arch, kernel, f"{policy.name}={value}", *figures)
    return table


def _figures(profiles: Sequence[KernelProfile]) -> tuple[str, ...]:
    """How many, fewest to most registers and their median, how many spill, least to most occupancy."""
    registers = [p.registers for p in profiles]
    occupied = [p.occupancy for p in profiles if p.limited_by]
    spread = _range(str(min(registers)), str(max(registers)))
    return (
        str(len(profiles)),
        f"{spread}, median {median_low(registers)}" if " to " in spread else spread,
        str(sum(p.spilled_bytes > 0 for p in profiles)),
        _range(f"{min(occupied):.0%}", f"{max(occupied):.0%}") if occupied else "-",
    )


def _range(least: str, most: str) -> str:
    return least if least == most else f"{least} to {most}"
