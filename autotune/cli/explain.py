"""``autotune explain``: every candidate for an input, why it was chosen or rejected, and its predicted time."""

import math
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from autotune import files as paths
from autotune.cli import options
from autotune.cli.terminal import pays
from autotune.compile import Variant
from autotune.declaration import Configuration, Family, Inputs, load_family, load_workload, prepare
from autotune.device import open_backend
from autotune.errors import AutotuneError, UnknownName, UsageError
from autotune.figures import duration, loss_percent
from autotune.hardware import Device
from autotune.measure import KERNEL, find_objective
from autotune.policy import (
    Candidate,
    Entry,
    Policies,
    basis,
    candidates,
    choose,
    feature_values,
    file_of,
    find,
    read_policy_file,
)

_HERE = ("auto", "cpu", "cuda")  # devices that are no policy file's name


@options.family_argument
@options.make_workload_option("Workload to take the input from; default: the family's own.")
@options.option(
    "--device auto|cpu|cuda|cuda:N|NAME",
    default="auto",
    help="Device that would run it; a policy file's name, such as nvidia-h200, stands for an absent device.",
)
@options.option(
    "--size EXTENT=N", multiple=True, help="Use this size in place of the workload's; repeat for more."
)
@options.make_sweep_option("objective")
@options.policies_option
@options.data_option
def explain_command(
    family: str,
    workload: str,
    device: str,
    size: tuple[str, ...],
    objective: str,
    policies: Path | None,
    data: Path | None,
) -> None:
    """Print the chain of candidates. ``device`` may be the name of a policy file (nvidia-h200), for a device that is
    not here. Raises what reading the workload and opening the device raise."""
    loaded, resized = load_family(family), options.parse_sizes(size)
    asked = load_workload(loaded, workload)
    inputs = _resize(loaded, prepare(loaded, asked, paths.data_root(data)), resized)
    folders = paths.policy_folders(policies, loaded.folder)
    opened = find_device(loaded, device, folders)
    name = f"{asked.name} resized" if resized else asked.name
    print_chain(loaded, name, opened, inputs, folders, objective, options.out)


def _resize(family: Family, inputs: Inputs, given: Mapping[str, float]) -> Inputs:
    """``inputs`` as if they had the sizes ``given``, with the extents and scalars that are computed from them. Raises
    UnknownName, and UsageError for an extent that is computed."""
    free = [name for name in inputs.sizes if family.extents.get(name) is None]
    whole: dict[str, int] = {}
    for name, size in given.items():
        if name not in free:
            raise UnknownName("extent", name, free, f"family {family.name}")
        if not isinstance(size, int) or size < 1:
            raise UsageError(f"--size {name}={size}: an extent is a whole number from 1")
        whole[name] = size
    if not whole:
        return inputs
    sizes, scalars = inputs.compute_sizes(family, whole), dict(inputs.scalars)
    for name, scalar in family.scalars.items():
        if scalar.value is not None:
            scalars[name] = scalar.value.evaluate({**sizes, **inputs.options, **scalars})
    return replace(inputs, sizes=sizes, scalars=scalars)


def find_device(family: Family, name: str, folders: list[Path]) -> Device:
    """The device of that name, or as the policy file of that name describes it (with the limits of its compute
    capability as far as they are known). Raises DeviceError, UnknownName, PolicyFileError."""
    if name.partition(":")[0] in _HERE:
        with closing(open_backend(name)) as backend:
            return backend.device
    if (path := file_of(family, name, folders)) is not None:
        return read_policy_file(path).device
    looked = [folder / family.name for folder in folders]
    known = [path.stem for folder in looked for path in sorted(folder.glob("*.yaml"))]
    allowed = dict.fromkeys([*_HERE, "cuda:N", *known])
    raise UnknownName("device or policy file", name, allowed, ", ".join(map(str, looked)))


def print_chain(
    family: Family, workload: str, device: Device, inputs: Inputs, folders: list[Path], objective: str, out: Console
) -> None:  # fmt: skip
    """What policy files in ``folders`` say of ``inputs``, which a reader knows as ``workload``."""
    known, passed = find(family, device, folders)
    numbers = {**inputs.sizes, **inputs.scalars}
    listed = candidates(family, known, numbers, inputs.options, device.kind, objective=objective)

    def explain_exclusion(configuration: Configuration) -> str:
        names = inputs.names(configuration)
        return Variant.make(family, configuration, inputs.options).explain_exclusion(names, device.limits)

    chosen, refused = choose(listed, explain_exclusion)
    values = feature_values(family.features, numbers)
    said = ", ".join(f"{name} {value:.6g}" for name, value in values.items())
    out.print(f"{family.name} on {workload} ({said}), {device.kind}: {device.name}")
    table = Table("", "rule", "from", "expected", box=None, pad_edge=False)
    table.add_column("differs from control in, or reason", overflow="fold")

    recorded = _collect_recorded_times(family, known, listed)

    def row(state: str, item: Candidate, text: str) -> None:
        expected_ms = item.expected_ms
        if not expected_ms and item.configuration is not None:
            expected_ms = recorded.get(item.configuration, 0.0)
        told = duration(expected_ms) if expected_ms else ""
        told += f" ± {loss_percent(item.spread)}" if item.spread and item.match == "predicted" else ""
        table.add_row(state, item.match, item.origin, told, text)

    for item in (*passed, *refused):
        row("rejected", item, item.refusal)
    assert chosen.configuration is not None
    row("taken", chosen, chosen.configuration.changes(family.space.control))
    rest = listed[len(refused) + 1 :]
    for item in [c for c in rest if c.match != "predicted"] if chosen.match == "exact" else rest:
        text = item.refusal or (explain_exclusion(item.configuration) if item.configuration else "")
        told = item.configuration.changes(family.space.control) if item.configuration else ""
        row("rejected" if text else "next", item, text or told)
    out.print(table)
    for conversion in Variant.make(family, chosen.configuration, inputs.options).conversions.values():
        out.print(str(conversion))
    if chosen.match == "predicted":
        _say_prediction(family, known, values, inputs, out)
    if chosen.entry:
        _say_objective(chosen.entry, objective, out)
    for file in known.files if known else ():
        if mark := next((item.pulled for item in file.entries.values() if item.pulled), None):
            out.print(
                f"{file.path}: pulled from {mark['from']} (by {mark['by']}), proved here on {mark['date']}"
            )


def _say_prediction(
    family: Family, known: Policies | None, values: Mapping[str, float], inputs: Inputs, out: Console
) -> None:
    """Print what the prediction is made from, its known regret, and how far the input is from the measured ones."""
    if known is None or known.own is None or known.own.prediction is None:
        return
    rule = known.own.prediction
    rests_on = basis(family, known.own, inputs.options, rule.accuracy)
    if rests_on is None:
        return
    where = rests_on.place(values)
    lost = {name: loss_percent(regret) for name, regret in rule.left_out.items()}
    out.print(
        f"predicted from {len(rests_on.rows)} entries: each left out in turn, the mean regret is {lost['prediction']}, "
        f"with the nearest entry {lost['nearest']}; the nearest of them, {where.nearest}, is a factor of "
        f"{math.exp(where.distance):.3g} away"
    )
    for name, (low, high) in where.beyond.items():
        out.print(
            f"{name} {values[name]:.6g} is outside the measured range, {low:.6g} to {high:.6g}: the prediction "
            "there extrapolates linearly; sweep that size, or let programs refine"
        )


def _collect_recorded_times(
    family: Family, known: Policies | None, listed: Sequence[Candidate]
) -> dict[Configuration, float]:
    """Configuration -> milliseconds on this very input, as far as its entry in the device's own file says: the winner,
    those that the file keeps for predictions, the runner-up, control. Empty where it was not measured, or is tuned for
    another objective than the kernels' time, whose ratios are of other sums."""
    own = next((item.entry for item in listed if item.match == "exact" and not item.refusal), None)
    if own is None or own.objective != KERNEL or known is None or known.own is None:
        return {}
    recorded = {family.space.control: own.median_ms * own.margin_over_control}
    kept = known.own.prediction.kept if known.own.prediction else {}
    recorded |= {
        Configuration(kept[name].configuration): ms for name, ms in own.times_ms.items() if name in kept
    }
    with suppress(AutotuneError):  # there need not be one
        recorded[family.space.configuration(own.runner_up)] = own.runner_up_ms
    return {**recorded, Configuration(own.configuration): own.median_ms}


def _figures(item: Entry) -> str:
    """Return the objective's figure as text; if that is no time, with the spread, the other figures and the time."""
    aim = find_objective(item.objective)
    if aim.is_time:
        return aim.text(item.cost)
    return ", ".join([*aim.texts(item.figures), f"in {duration(item.median_ms)} ± {item.spread:.1%}"])


def _say_objective(item: Entry, objective: str, out: Console) -> None:
    """What the entry that is taken is best in, and from how many launches on that matters."""
    other = f"; none is tuned for {objective}" if item.objective != objective else ""
    if other or objective != KERNEL:
        out.print(f"tuned for {item.objective}: {_figures(item)}{other}")
    if item.break_even:
        own = Configuration(item.configuration).id
        is_lasting = item.objective == KERNEL
        lasting, single = (own, item.break_even_with) if is_lasting else (item.break_even_with, own)
        told = pays("it" if is_lasting else lasting, item.break_even, single if is_lasting else "it")
        out.print(f"break-even: {told}")
