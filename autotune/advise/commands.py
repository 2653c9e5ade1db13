"""``autotune advise`` and ``autotune why``, and their options."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from autotune.cli import options
from autotune.declaration import load_family, load_workload
from autotune.errors import AutotuneError, DeviceError, StoreError, UsageError
from autotune.files import data_root, policy_folders, write_text

if TYPE_CHECKING:
    from autotune.declaration import Family
    from autotune.record import Study, Trial


@click.argument(
    "program", metavar="FILE.cu|FAMILY", help="A file with a plain kernel, a family's name, or its folder."
)
@options.place(
    "The folder to make: of a file a family with the layouts that help, and advice.json, advice.html."
)
@options.option("--json", "is_json", help="Print JSON with all figures and nothing else.")
@options.option("--page FILE.html", type=options.FOLDER, help="Write a page that is one file.")
@options.make_workload_option("Of a family: the input that is traced; default the family's own.")
@options.option("--size NAME=N", multiple=True, help="Of a file: a size of its arrays; again for more.")
@options.option(
    "--record DIR", type=options.FOLDER,
    help="Of a family: a sweep's folder. Its winner is traced, too, and its report made again with the layout receipt.",
)  # fmt: skip
@options.data_option
@options.option("--kernel NAME[<VALUES>]", default="", help="Of a file: as of `autotune adopt`.")
@options.option("--grid X[,Y[,Z]]", default="", help="As of `autotune adopt`.")
@options.option("--block X[,Y[,Z]]", default="", help="As of `autotune adopt`.")
@options.option("--include DIR", "-I", multiple=True, help="As of `autotune adopt`.")
@options.option("--define NAME[=VALUE]", "-D", multiple=True, help="As of `autotune adopt`.")
def advise_command(
    program: str, out_: Path | None, is_json: bool, page: Path | None, workload: str, size: tuple[str, ...],
    record: Path | None, data: Path | None, include: tuple[str, ...], define: tuple[str, ...],
    **of_kernel: str,
) -> None:  # fmt: skip
    from autotune.adopt import AdoptRequest
    from autotune.advise.advice import make_advice
    from autotune.advise.arithmetic import describe_arithmetic
    from autotune.advise.plain import advise_on_kernel
    from autotune.advise.receipt import write_receipts
    from autotune.advise.report import Said, as_json, print_advice, write_page

    of_file, root = Path(program).suffix == ".cu", data_root(data)
    if of_file and (workload or record):
        raise UsageError("--workload and --record are a family's: a file has --size, and no record yet")
    if not of_file and (size or include or define or any(of_kernel.values())):
        raise UsageError("--size, --kernel, --grid, --block, -I and -D are of a file: a family declares them")
    with tempfile.TemporaryDirectory(prefix="autotune-") as made:
        if of_file:
            macros = (*(f"-I{folder}" for folder in include), *(f"-D{macro}" for macro in define))
            folder = out_ or Path(made, "kernel")
            request = AdoptRequest(Path(program), folder, options=macros, **of_kernel)
            said = advise_on_kernel(request, options.parse_sizes(size), root)
        else:
            family = load_family(program)
            advice = make_advice(family, workload, root)
            said = Said(f"family {family.name}", advice, arithmetic=describe_arithmetic(family))
            if record:
                for line in write_receipts(family, record, root):
                    options.err.print(line, markup=False)
        if out_ is not None:
            write_text(out_ / "advice.json", as_json(said))
            page = page or out_ / "advice.html"
        if page:
            write_page(said, page)
    if is_json:
        print(as_json(said), end="")
        return
    print_advice(said, options.out)
    for path in (page, out_ if of_file else None):
        if path:
            options.out.print(f"made {path}", markup=False, highlight=False)


@options.family_argument
@options.make_workload_option("Workload to explain; default: the newest in the record.")
@options.option("--of CONFIG", "of", default="", help="The faster one; default: the winner.")
@options.option("--than CONFIG", default="", help="The slower one; default: the control.")
@options.option("--record DIR|URL", default="", help="A sweep's record; default ./autotune-results/FAMILY.")
@options.option("--device cuda|cuda:N", default="cuda", help="GPU that reads counters the record lacks.")
@options.option("--raw FILE.csv", type=options.FOLDER, help="Also keep what Nsight Compute printed.")
@options.option("--json", "is_json", help="Print JSON with all figures and nothing else.")
@options.data_option
def why_command(
    family: str, workload: str, of: str, than: str, record: str, device: str, raw: Path | None, is_json: bool,
    data: Path | None,
) -> None:  # fmt: skip
    """Explain the way from ``than`` to ``of``; read the counters that the record lacks, and keep them. Without ncu,
    a GPU or the permission, say so, and trace instead. Raises StoreError without a record, UsageError for a
    configuration without a time."""
    from autotune.advise.advice import Costs, trace_configurations
    from autotune.advise.why import Explanation, as_json, collect_figures, find_way, print_explanation
    from autotune.declaration import Configuration
    from autotune.record import find_newest, read_record

    loaded = load_family(family)
    named = load_workload(loaded, workload).name if workload else ""
    record = record or str(Path("autotune-results") / loaded.name)
    studies = [s for s in read_record(record) if s.family == loaded.name and named in ("", s.workload)]
    if not studies:
        what = f"{loaded.name} on {named}" if named else loaded.name
        raise StoreError(
            f"{record} has no study of {what}: run autotune sweep first, or name another --record"
        )
    study = find_newest(studies)
    if study.decision is None:
        raise UsageError(
            f"the study of {study.family} on {study.workload} has no winner: nothing was measured"
        )
    first = loaded.space.configuration(than) if than else study.control
    last = loaded.space.configuration(of) if of else study.decision.winner.configuration
    trials, notes, traced = find_way(study.trials, first, last), list[str](), dict[Configuration, Costs]()
    input_, root = workload or study.workload, data_root(data)
    try:
        study = _count_missing(loaded, study, trials, record, input_, device, root, raw)
    except DeviceError as problem:
        notes.append(f"no hardware counters: {problem}")
        try:
            traced = trace_configurations(loaded, input_, root, [one.configuration for one in trials])
            notes.append("sectors and bank conflicts are those of accesses traced on the cpu device")
        except AutotuneError as unseen:
            notes.append(f"no traces either: {unseen}")
    figures = tuple(collect_figures(study, one, traced.get(one.configuration)) for one in trials)
    found = Explanation(study, trials, figures, tuple(notes))
    if is_json:
        print(as_json(found), end="")
    else:
        print_explanation(found, options.out)


def _count_missing(
    family: "Family", study: "Study", trials: Sequence["Trial"], record: str, workload: str, device: str, data: Path,
    raw: Path | None,
) -> "Study":  # fmt: skip
    """The study with the counters of ``trials``: those that it lacks are read, and kept in the record, whose report is
    made again. Raises DeviceError where they cannot be read."""
    from autotune.cli import count_and_keep
    from autotune.measure import WatchedTask, ncu
    from autotune.record import Store, holds_store, read_record
    from autotune.report import write_all

    names = (one.configuration.id for one in trials)
    if not (missing := tuple(name for name in names if name not in study.about.counters)):
        return study
    if study.about.device_kind != "cuda":
        raise DeviceError(
            f"they are a GPU's, and {study.device} is none: name the --record of a sweep on a GPU"
        )
    if not holds_store(record):
        raise DeviceError(
            f"{record} is no record that could keep them: name the folder of a sweep with --record"
        )
    task = WatchedTask(
        family=str(family.folder), workload=workload, data=str(data), device=device, compiler="",
        configurations=missing, result="",
    )  # fmt: skip
    _, study = count_and_keep(Store(record), study, family, task, ncu.find_ncu(), raw)
    if "://" not in record:
        write_all(read_record(record), Path(record), {family.name: family}, Path(record), policy_folders())
    return study
