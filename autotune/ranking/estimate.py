"""Configurations ranked with no GPU: each is traced on the cpu, a few blocks of a launch, and its time on a GPU
estimated."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path

from autotune.compile import (
    Cache,
    Compiled,
    CompileFailure,
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
from autotune.ranking.warp_requests import requests

_BATCH_SIZE = 24
_KEPT_LAYOUTS = 4


def static_ranking(
    family: Family, workload: str, data: Path, rows: Sequence[StaticProfile], processes: int
) -> Iterator[Forecast]:
    """The estimate of each of ``rows``, profiles of one architecture, for a workload. The traces are made in a process
    of its own; a configuration that takes it down, or fails, has a message. Raises CompilerError, WorkloadError."""
    options = prepare(family, load_workload(family, workload), data).options
    variants = tuple(Variant.make(family, row.configuration, options) for row in rows)
    cache, tracer = Cache(default_root()), Pool(1)
    chunks = compile_many(
        batch(family, variants), make_tracing_toolchain(), cache, max(1, processes), _BATCH_SIZE
    )
    try:
        for row, compiled in zip(rows, chain.from_iterable(chunks), strict=True):
            yield _estimate(tracer, family, workload, data, row, compiled)
    finally:
        tracer.stop()


def _estimate(
    pool: Pool, family: Family, workload: str, data: Path, row: StaticProfile,
    compiled: Compiled | CompileFailure,
) -> Forecast:  # fmt: skip
    profiles = {profile.kernel: profile for profile in row.kernels}
    if isinstance(compiled, CompileFailure) or not profiles:
        return _mark_failed(
            row.configuration, row.message or getattr(compiled, "message", "no kernel has a profile")
        )
    job = (str(family.folder), workload, data, row.configuration, compiled, profiles)
    try:
        launches = pool.submit(trace_launches, *job).result()
    except ProcessDied:
        return _mark_failed(row.configuration, "its process died while it was traced")
    except (AutotuneError, LaunchError, ArithmeticError, ValueError, LookupError) as problem:
        return _mark_failed(row.configuration, f"{type(problem).__name__}: {problem}")
    if not launches:
        return _mark_failed(row.configuration, "it launched no kernel")
    return forecast(row.arch, row.configuration, [(one, profiles[kernel]) for kernel, one in launches])


def _mark_failed(configuration: Configuration, message: str) -> Forecast:
    return Forecast(configuration, 0.0, "", message=message)


# -- in the tracing process -------------------------------------------------------------------------------


def trace_launches(
    folder: str, workload: str, data: Path, configuration: Configuration, compiled: Compiled,
    profiles: Mapping[str, KernelProfile],
) -> list[tuple[str, Launched]]:  # fmt: skip
    """Each launch of a plan, but of many the first few: its kernel, and what its warps ask for."""
    family, backend, resident = _resident(folder, workload, data)
    variant = Variant.make(family, configuration, resident.inputs.options)
    module = backend.load(compiled)
    backend.traces.clear()
    try:
        execution = resident.execution(variant, module)
        execution.prepare()
        execution.run()
    except EnoughTraced:
        pass
    finally:
        module.unload()
    launches = []
    for trace in backend.traces:
        blocks = len(set(trace.accesses["block"].tolist()))
        asked = requests(trace, cache_share(profiles[trace.kernel], blocks))
        launches.append((trace.kernel, Launched(trace.geometry, asked)))
    return launches


@lru_cache(maxsize=1)
def _resident(folder: str, workload: str, data: Path) -> tuple[Family, TracingBackend, Resident]:
    family = load_family(folder)
    backend = TracingBackend()
    inputs = prepare(family, load_workload(family, workload), data)
    return family, backend, Resident(backend, inputs, most=_KEPT_LAYOUTS)
