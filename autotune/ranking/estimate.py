"""Configurations ranked with no GPU: each is traced on the cpu, a few blocks of a launch, and its time on a GPU
estimated."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from pathlib import Path

from autotune.compile import (
    Cache,
    Compiled,
    CompileFailure,
    Geometry,
    KernelProfile,
    Pool,
    ProcessDied,
    StaticProfile,
    Variant,
    batch,
    compile_many,
    default_root,
)
from autotune.declaration import Configuration, Family, load_family, load_workload, prepare
from autotune.device import LaunchError, Resident
from autotune.errors import AutotuneError
from autotune.ranking.forecasts import Forecast, Launched, cache_share, forecast
from autotune.ranking.trace import EnoughTraced, TracingBackend, make_tracing_toolchain
from autotune.ranking.warp_requests import WARP, requests_by_array, traced_lanes

_BATCH_SIZE = 24
_KEPT_LAYOUTS = 4


def static_ranking(
    family: Family, workload: str, data: Path, rows: Sequence[StaticProfile], processes: int, compiler: str = ""
) -> Iterator[Forecast]:  # fmt: skip
    """The estimate of each of ``rows``, profiles of one architecture, for a workload, from kernels that ``compiler``
    builds. The traces are made in a process of its own; a configuration that takes it down, or fails, has a message.
    Raises CompilerError, WorkloadError."""
    options = prepare(family, load_workload(family, workload), data).options
    variants = tuple(Variant.make(family, row.configuration, options) for row in rows)
    cache, tracer = Cache(default_root()), Pool(1)
    toolchain = make_tracing_toolchain(compiler)
    chunks = compile_many(batch(family, variants), toolchain, cache, max(1, processes), _BATCH_SIZE)
    try:
        for row, compiled in zip(rows, chain.from_iterable(chunks), strict=True):
            yield _estimate(tracer, (str(family.folder), workload, data), row, compiled)
    finally:
        tracer.stop()


def _estimate(
    pool: Pool, of: tuple[str, str, Path], row: StaticProfile, compiled: Compiled | CompileFailure
) -> Forecast:
    profiles = {profile.kernel: profile for profile in row.kernels}
    if isinstance(compiled, CompileFailure) or not profiles:
        why = row.message or getattr(compiled, "message", "no kernel has a profile")
        return _mark_failed(row.configuration, why)
    try:
        launches, further = pool.submit(trace_launches, of, row.configuration, compiled, profiles).result()
    except ProcessDied:
        return _mark_failed(row.configuration, "its process died while it was traced")
    except (AutotuneError, LaunchError, ArithmeticError, ValueError, LookupError) as problem:
        return _mark_failed(row.configuration, f"{type(problem).__name__}: {problem}")
    if not launches:
        return _mark_failed(row.configuration, "it launched no kernel")
    found = forecast(row.arch, row.configuration, [(one, profiles[one.kernel]) for one in launches])
    return replace(found, further=further)


def _mark_failed(configuration: Configuration, message: str) -> Forecast:
    return Forecast(configuration, 0.0, "", message=message)


# -- in the tracing process -------------------------------------------------------------------------------


def trace_launches(
    of: tuple[str, str, Path], configuration: Configuration, compiled: Compiled,
    profiles: Mapping[str, KernelProfile],
) -> tuple[list[Launched], list[tuple[str, Geometry]]]:  # fmt: skip
    """Each launch of a plan, but of many the first few: what its warps ask for; and the others, which were not run.
    ``of`` is what ``_resident`` takes."""
    family, backend, resident = _resident(*of)
    variant = Variant.make(family, configuration, resident.inputs.options)
    module = backend.load(compiled)
    backend.forget()
    try:
        execution = resident.execution(variant, module)
        backend.name_arrays(execution.placed)
        execution.prepare()
        execution.run()
    except EnoughTraced:
        pass
    except Exception:
        if not backend.further:  # a plan may stumble over launches that did not run
            raise
    finally:
        module.unload()
    launches = []
    for trace in backend.traces:
        asked, traffic = requests_by_array(trace, cache_share(profiles[trace.kernel], trace.blocks))
        lanes = traced_lanes(trace.accesses) if trace.is_cut else float(WARP)
        launches.append(Launched(trace.geometry, asked, trace.kernel, trace.blocks, lanes, traffic))
    return launches, [*backend.further]


@lru_cache(maxsize=1)
def _resident(folder: str, workload: str, data: Path) -> tuple[Family, TracingBackend, Resident]:
    family = load_family(folder)
    backend = TracingBackend()
    inputs = prepare(family, load_workload(family, workload), data)
    return family, backend, Resident(backend, inputs, most=_KEPT_LAYOUTS)
