"""The family's baseline, compiled, proved and timed in turn with the control and the winner."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from autotune.compile import Cache, CompileFailure, Variant, batch, compile_batch, profiles
from autotune.declaration import Configuration, Family, Inputs
from autotune.device import LaunchError
from autotune.engine.jobs import JobCompiler
from autotune.engine.messages import Compare, Compared
from autotune.engine.worker import Worker
from autotune.errors import AutotuneError
from autotune.record import Baseline, Trial, decide


def digest(family: Family) -> str:
    """Of all that decides the time of the baseline beside the configurations."""
    text = f"{family.space_digest}\0{family.source_digest}\0{family.compile_options}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def compared(
    family: Family, inputs: Inputs, worker: Worker, compiler: JobCompiler, cache: Cache,
    trials: Mapping[Configuration, Trial], control: Configuration,
) -> Baseline:  # fmt: skip
    """``family`` is the baseline. What keeps it from being timed is told, and costs the sweep nothing else."""
    kernel = next(iter(family.kernels))
    untimed = Baseline(source=family.source.name, kernel=kernel, digest=digest(family))
    variant = Variant.of(family, family.space.control, inputs.options)
    names = inputs.names(variant.configuration)
    try:
        if reason := variant.exclusion(names, worker.device.limits):
            return replace(untimed, reason=reason)
        (compiled,) = compile_batch(batch(family, (variant,)), worker.toolchain, cache)
        if isinstance(compiled, CompileFailure):
            return replace(untimed, reason=f"it does not compile: {compiled.message}")
        decision = decide([trial for trial in trials.values() if trial.measurement], control)
        beside = [one for one in (control, decision.winner.configuration if decision else None) if one]
        measured = [one for one in dict.fromkeys(beside) if one in trials and trials[one].measurement]
        estimate_ms = sum(trials[one].time_ms for one in measured)
        answer: Compared = worker.ask(
            Compare(compiled, tuple(compiler.jobs(measured)), estimate_ms), 1 + len(measured)
        )
    except (LaunchError, AutotuneError) as problem:
        return replace(untimed, reason=str(problem))
    if answer.baseline is None:
        return replace(untimed, reason=answer.reason)
    (profile, *_) = profiles(variant, compiled, names, worker.device)
    times = {one: samples.median_ms for one, samples in answer.beside.items()}
    winner = decision.winner.configuration if decision else control
    return replace(
        untimed,
        median_ms=answer.baseline.median_ms,
        spread=answer.baseline.spread,
        samples=len(answer.baseline.times_ms),
        registers=profile.registers,
        control_ms=times.get(control, 0.0),
        winner_ms=times.get(winner, 0.0),
        winner=winner.id if winner in times else "",
    )
