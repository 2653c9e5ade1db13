"""Configurations ranked with no GPU: each is traced on the cpu, a few blocks of a launch, and its time on a GPU
estimated."""

import hashlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from autotune.compile import (
    Batch,
    BuildError,
    Built,
    Compiled,
    HostCxx,
    KernelProfile,
    Pool,
    ProcessDied,
    StaticProfile,
    Variant,
    batch,
)
from autotune.declaration import Configuration, Family, load_family, load_workload, prepare
from autotune.device import LaunchError, Resident
from autotune.errors import AutotuneError
from autotune.ranking.forecasts import Forecast, Launched, cache_share, forecast
from autotune.ranking.trace import EnoughTraced, TracingBackend, traced_toolchain
from autotune.ranking.warp_requests import requests

_BATCH_SIZE = 24
_KEPT_LAYOUTS = 4


def static_ranking(
    family: Family, workload: str, data: Path, rows: Sequence[StaticProfile], processes: int
) -> Iterator[Forecast]:
    """The estimate of each of ``rows``, profiles of one architecture, for a workload. The traces are made in a process
    of its own; a configuration that takes it down, or fails, has a message. Raises CompilerError, WorkloadError."""
    options = prepare(family, load_workload(family, workload), data).options
    variants = tuple(Variant.of(family, row.configuration, options) for row in rows)
    tracer = Pool(1)
    with tempfile.TemporaryDirectory(prefix="autotune-") as folder:
        try:
            for row, compiled in zip(rows, _built(family, variants, Path(folder), processes), strict=True):
                yield _one(tracer, family, workload, data, row, compiled)
        finally:
            tracer.stop()


def _built(
    family: Family, variants: tuple[Variant, ...], folder: Path, processes: int
) -> Iterator[Compiled | str]:
    """Each variant's library in ``folder``, or the compiler's message; those with the same code share one."""
    toolchain = traced_toolchain()
    whole = batch(family, variants)
    units = whole.of(list({source.key: source for source in whole.variants}.values())).units
    pool = Pool(max(1, processes))
    try:
        chunks = [
            u.of(u.variants[i : i + _BATCH_SIZE])
            for u in units
            for i in range(0, len(u.variants), _BATCH_SIZE)
        ]
        jobs = [pool.submit(_images, toolchain, chunk) for chunk in chunks]
        places = {
            source.key: job for job, chunk in zip(jobs, chunks, strict=True) for source in chunk.variants
        }
        made: dict[str, Compiled | str] = {}
        for source in whole.variants:
            if source.key not in made:
                for key, built in places[source.key].result().items():
                    made[key] = built if isinstance(built, str) else _written(key, built, folder)
            yield made[source.key]
    finally:
        pool.stop()


def _images(toolchain: HostCxx, chunk: Batch) -> dict[str, Built | str]:
    """By key. Where one does not compile, each by itself."""
    try:
        built = toolchain.build(chunk)
    except BuildError as problem:
        if len(chunk.variants) == 1:
            return {chunk.variants[0].key: str(problem)}
        return {
            key: one
            for source in chunk.variants
            for key, one in _images(toolchain, chunk.of([source])).items()
        }
    return {source.key: built for source in chunk.variants}


def _written(key: str, built: Built, folder: Path) -> Compiled:
    image = folder / f"{hashlib.sha256(built.image).hexdigest()}.so"
    if not image.exists():
        image.write_bytes(built.image)
    return Compiled(key, image, built.symbols[key])


def _one(
    pool: Pool, family: Family, workload: str, data: Path, row: StaticProfile,
    compiled: Compiled | str,
) -> Forecast:  # fmt: skip
    profiles = {profile.kernel: profile for profile in row.kernels}
    if isinstance(compiled, str) or not profiles:
        return _failed(row.configuration, row.message or str(compiled))
    job = (str(family.folder), workload, data, row.configuration, compiled, profiles)
    try:
        launches = pool.submit(traced, *job).result()
    except ProcessDied:
        return _failed(row.configuration, "its process died while it was traced")
    except (AutotuneError, LaunchError, ArithmeticError, ValueError, LookupError) as problem:
        return _failed(row.configuration, f"{type(problem).__name__}: {problem}")
    if not launches:
        return _failed(row.configuration, "it launched no kernel")
    return forecast(row.arch, row.configuration, [(one, profiles[kernel]) for kernel, one in launches])


def _failed(configuration: Configuration, message: str) -> Forecast:
    return Forecast(configuration, 0.0, "", message=message)


# -- in the tracing process -------------------------------------------------------------------------------


def traced(
    folder: str, workload: str, data: Path, configuration: Configuration, compiled: Compiled,
    profiles: Mapping[str, KernelProfile],
) -> list[tuple[str, Launched]]:  # fmt: skip
    """Each launch of a plan, but of many the first few: its kernel, and what its warps ask for."""
    family, backend, resident = _resident(folder, workload, data)
    variant = Variant.of(family, configuration, resident.inputs.options)
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
    found = []
    for trace in backend.traces:
        blocks = len(set(trace.accesses["block"].tolist()))
        asked = requests(trace, cache_share(profiles[trace.kernel], blocks))
        found.append((trace.kernel, Launched(trace.geometry, asked)))
    return found


@lru_cache(maxsize=1)
def _resident(folder: str, workload: str, data: Path) -> tuple[Family, TracingBackend, Resident]:
    family = load_family(folder)
    backend = TracingBackend()
    inputs = prepare(family, load_workload(family, workload), data)
    return family, backend, Resident(backend, inputs, most=_KEPT_LAYOUTS)
