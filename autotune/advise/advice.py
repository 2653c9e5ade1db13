"""What the arrays of a kernel cost in sectors, and which other layouts would cost less: traced on the cpu device, each
layout applied and traced again."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NoReturn

from autotune.advise.changes import LayoutChange, change, find_changes
from autotune.compile import Geometry, KernelProfile, StaticProfile, Variant, occupancy_model
from autotune.declaration import Configuration, Family, Inputs, PolicyValue, Workload, load_workload, prepare
from autotune.errors import AutotuneError, DeviceError
from autotune.ranking import (
    ArrayTraffic,
    Forecast,
    Launched,
    add_traffic,
    find_clang,
    forecast,
    static_ranking,
)

ARCH = "sm_90"
HELPS = 0.03  # of the estimate: less is noise of the compilers
_MOST_ADVISED = 3
_REGISTERS = 32  # of a thread, for how many blocks share a first cache: no GPU compiler is asked
_USUAL_BLOCK = 256
_WHOLE_WARP = 31.0  # lanes, on average, below which a trace that is cut says nothing of neighbours
_FEW_BLOCKS = 132  # multiprocessors of a large GPU
_NONE = Configuration({})


@dataclass(frozen=True)
class KernelCost:
    """What one kernel costs in one call of the plan, as the first blocks of its first launches tell: ``launches`` of
    ``blocks`` together, of which ``traced`` were traced; ``arrays`` for all of them, ``cycles`` as of a ``Forecast``.
    ``is_broken`` where the trace was full before whole warps were seen."""

    kernel: str
    launches: int
    blocks: int
    traced: int
    is_broken: bool
    cycles: float
    arrays: tuple[ArrayTraffic, ...]

    @classmethod
    def of(
        cls, profile: KernelProfile, launches: Sequence[Launched], further: Sequence[Geometry]
    ) -> "KernelCost":
        """Of the traced launches of a kernel and those that came after."""
        geometries = [one.geometry for one in launches]
        blocks, others = ([math.prod(one.grid) for one in many] for many in (geometries, further))
        more = 1 + sum(others) / max(1, sum(blocks))
        both = list(zip(launches, blocks, strict=True))
        scaled = [(each, more * count / max(1, one.blocks)) for one, count in both for each in one.traffic]
        return cls(
            profile.kernel, launches=len(launches) + len(further), blocks=sum(blocks) + sum(others),
            traced=sum(min(one.blocks, count) for one, count in both),
            is_broken=any(one.lanes < _WHOLE_WARP for one in launches),
            cycles=more * forecast(ARCH, _NONE, [(one, profile) for one in launches]).cycles,
            arrays=tuple(add_traffic(scaled)),
        )  # fmt: skip


@dataclass(frozen=True)
class Costs:
    """What a configuration costs: its kernels, the ``estimate`` of its time (cycles of one multiprocessor, which
    compare configurations and are no time), and what takes most of these (``bound``)."""

    configuration: Configuration
    kernels: tuple[KernelCost, ...]
    bound: str

    @property
    def estimate(self) -> float:
        return sum(one.cycles for one in self.kernels)

    @cached_property
    def arrays(self) -> tuple[ArrayTraffic, ...]:
        """All kernels together."""
        return tuple(add_traffic([(array, 1.0) for kernel in self.kernels for array in kernel.arrays]))

    def add_up(self, figure: str) -> float:
        """That figure of all arrays."""
        return float(sum(getattr(array, figure) for array in self.arrays))


@dataclass(frozen=True)
class Suggestion:
    """Layouts (``changes``) that were applied and traced: their ``costs`` and those of ``control``."""

    changes: tuple[LayoutChange, ...]
    costs: Costs
    control: Costs

    @property
    def name(self) -> str:
        """What it changes of control, other policies too that these layouts need."""
        return self.costs.configuration.changes(self.control.configuration)

    @property
    def values(self) -> dict[str, PolicyValue]:
        """As ``name``, by policy."""
        before = self.control.configuration
        return {name: value for name, value in self.costs.configuration.items() if value != before[name]}

    @property
    def arrays(self) -> tuple[str, ...]:
        """Those that it lays out otherwise and the kernels access."""
        traced = (*self.control.arrays, *self.costs.arrays)
        seen = {name for one in traced for name in one.name.split("+")}
        named = dict.fromkeys(name for one in self.changes for name in one.arrays)
        return tuple(name for name in named if name in seen)

    @property
    def ratio(self) -> float:
        """Its estimate over control's."""
        return self.costs.estimate / self.control.estimate if self.control.estimate else 1.0

    @property
    def helps(self) -> bool:
        """Whether it saves sectors or passes, and time by the estimate."""
        return bool(self.ratio < 1 - HELPS and self.most > HELPS)

    def save(self, figure: str) -> float:
        """The share of control's that it saves; below 0 where it costs more."""
        before = self.control.add_up(figure)
        return 1 - self.costs.add_up(figure) / before if before else 0.0

    @property
    def most(self) -> float:
        """The share of the time that it saves at most: that of the sectors, or of the passes of the first cache where
        these are more, in a kernel that does nothing but move them."""
        return max(0.0, self.save("missed"), self.save("wavefronts"))


@dataclass(frozen=True)
class Advice:
    """``suggestions`` are all layouts that were traced, the best estimate first; ``failed`` and ``left_out`` say of the
    others why not. ``notes`` are about how sure it is; ``is_real`` where the workload reads data from files."""

    family: Family
    workload: str
    control: Costs
    suggestions: tuple[Suggestion, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    is_real: bool = False

    @property
    def advised(self) -> tuple[Suggestion, ...]:
        """The best few of those that help."""
        return tuple(one for one in self.suggestions if one.helps)[:_MOST_ADVISED]

    @property
    def arrays(self) -> tuple[str, ...]:
        """The arrays whose layout matters most: those of the one layout that helps most by itself."""
        single = (one for one in self.suggestions if len(one.changes) == 1 and one.helps)
        return next((one.arrays for one in single), ())


def make_advice(family: Family, workload: str, data: Path, skipped: frozenset[str] = frozenset()) -> Advice:
    """Trace control, every other layout, and the best of them together; kernels that are ``skipped`` count for nothing.
    Raises CompilerError, WorkloadError, and DeviceError where control cannot be traced."""
    tracer = _Tracer(family, load_workload(family, workload), data, skipped)
    changes = find_changes(family, tracer.inputs)
    traced = tracer.trace([family.space.control, *(one.configuration for one in changes.traced)])
    if (control := traced.get(family.space.control)) is None:
        tracer.refuse()
    seen = (one for one in changes.traced if one.configuration in traced)
    found = [Suggestion((one,), traced[one.configuration], control) for one in seen]
    together = _combine(family, tracer.inputs, sorted(found, key=_order))
    traced = tracer.trace([*together])
    found += [Suggestion(parts, traced[one], control) for one, parts in together.items() if one in traced]
    notes, traced_on = tuple(_describe_certainty(family, control)), tracer.workload
    return Advice(
        family, traced_on.name, control, tuple(sorted(found, key=_order)), changes.left_out, tracer.failed,
        notes, bool(traced_on.files),
    )  # fmt: skip


def trace_configurations(
    family: Family, workload: str, data: Path, configurations: Sequence[Configuration],
    skipped: frozenset[str] = frozenset(),
) -> dict[Configuration, Costs]:  # fmt: skip
    """What each costs; of those after the first, the ones that cannot be traced are left out. Raises as
    ``make_advice`` does, where the first cannot."""
    tracer = _Tracer(family, load_workload(family, workload), data, skipped)
    found = tracer.trace(configurations)
    if configurations[0] not in found:
        tracer.refuse()
    return found


@dataclass
class _Tracer:
    """Traces configurations of a family on a workload; ``failed`` are those that could not be, each with the reason."""

    family: Family
    workload: Workload
    data: Path
    skipped: frozenset[str]
    failed: dict[str, str] = field(default_factory=dict)

    @cached_property
    def inputs(self) -> Inputs:
        return prepare(self.family, self.workload, self.data)

    def trace(self, configurations: Sequence[Configuration]) -> dict[Configuration, Costs]:
        """What each costs; those that cannot be traced are left out. Raises CompilerError."""
        given, costs = str(self.workload.path or self.workload.name), dict[Configuration, Costs]()
        rows = [StaticProfile(ARCH, one, self._assume_profiles(one)) for one in dict.fromkeys(configurations)]
        found = static_ranking(self.family, given, self.data, rows, 1, find_clang())
        for row, one in zip(rows, found if rows else (), strict=True):
            if one.launches:
                costs[row.configuration] = self._add_up(row, one)
            else:
                self.failed[row.configuration.changes(self.family.space.control)] = one.message
        return costs

    def refuse(self) -> NoReturn:
        """Raise DeviceError for what could not be traced."""
        which, why = next(iter(self.failed.items()))
        raise DeviceError(f"family {self.family.name}: {which} cannot be traced on the cpu device: {why}")

    def _assume_profiles(self, configuration: Configuration) -> tuple[KernelProfile, ...]:
        """Of each kernel, with as many blocks on a multiprocessor as fit where a thread has 32 registers."""
        names = self.inputs.names(configuration)
        variant, found = Variant.make(self.family, configuration, self.inputs.options), []
        for kernel in variant.kernels.values():
            try:
                block, shared = variant.block(kernel, names)
            except AutotuneError:  # by a number that is known after compiling
                block, shared = (_USUAL_BLOCK, 1, 1), 0
            at = occupancy_model.occupancy(ARCH, math.prod(block), _REGISTERS, shared)
            profile = KernelProfile(kernel=kernel.name, block_size=math.prod(block), registers=_REGISTERS)
            found.append(replace(profile, dynamic_shared_bytes=shared, blocks_per_sm=at.blocks_per_sm))
        return tuple(found)

    def _add_up(self, row: StaticProfile, found: Forecast) -> Costs:
        profiles = {profile.kernel: profile for profile in row.kernels}
        costs = []
        for name in dict.fromkeys(one.kernel for one in found.launches if one.kernel not in self.skipped):
            launches = [one for one in found.launches if one.kernel == name]
            further = [geometry for kernel, geometry in found.further if kernel == name]
            costs.append(KernelCost.of(profiles[name], launches, further))
        return Costs(row.configuration, tuple(costs), found.bound)


def _order(one: Suggestion) -> tuple[float, int, str]:
    """The best estimate first; of equal ones that with the fewest changes."""
    return round(one.ratio, 2), len(one.values), one.name


def _combine(
    family: Family, inputs: Inputs, singles: Sequence[Suggestion]
) -> dict[Configuration, tuple[LayoutChange, ...]]:
    """The layouts that help by themselves, one after another with those before: each policy once, the best first."""
    found = dict[Configuration, tuple[LayoutChange, ...]]()
    values, parts = dict[str, PolicyValue](), tuple[LayoutChange, ...]()
    for one in (one for one in singles if one.helps):
        own = one.values
        is_other = any(values.get(name, value) != value for name, value in own.items())
        if is_other or own.items() <= values.items():
            continue
        configuration = change(family, {**values, **own})
        if family.space.explain_exclusion(inputs.names(configuration)):
            continue
        values |= own
        parts += one.changes
        if len(parts) > 1:
            found[configuration] = parts
    return found


def _describe_certainty(family: Family, control: Costs) -> Iterator[str]:
    """What the figures rest on, and what may make them wrong."""
    if not find_clang() and (records := [data.name for data in family.data.values() if len(data.fields) > 1]):
        yield (
            f"records: clang++ is not installed, and g++ reads all fields of {', '.join(records)} where a kernel has "
            "use for some: what other records save is not seen; apt install clang"
        )
    for one in control.kernels:
        yield (
            f"{one.kernel}: {one.traced:,} of {one.blocks:,} blocks in {one.launches:,} launches were traced, the "
            "first ones; the others are taken to do the same"
        )
        if one.is_broken:
            yield (
                f"{one.kernel}: the trace was full before one warp was complete (a thread makes too many accesses), so "
                "its sectors are wrong: give smaller sizes"
            )
        if one.blocks < _FEW_BLOCKS * one.launches:
            yield (
                f"{one.kernel}: a launch has fewer blocks than a large GPU has multiprocessors: latency decides more "
                "than sectors do"
            )
    yield (
        "caches: the first is modelled (lines that hold sectors; the one that was unused for longest leaves), the "
        "second is not: a sector that is moved comes from the second cache or from memory"
    )
