"""What is to enter a policy file, proved on other inputs than the workload's before it does."""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from autotune.compile import Cache, HostCxx, Variant, default_root
from autotune.declaration import Configuration, Family, Inputs, Workload
from autotune.device import LaunchError
from autotune.engine.jobs import JobCompiler
from autotune.engine.measuring_process import Measuring
from autotune.engine.messages import Ended, Job, OddSize, OddSizes, Proved, Setting, trial_of
from autotune.engine.odd_sizes import LARGE_MS, MOST_LARGE, grid_steps, write_odd_sizes
from autotune.engine.process_worker import ProcessWorker
from autotune.engine.shared_inputs import share_arrays
from autotune.errors import AutotuneError
from autotune.measure import CPU, CUDA, PROOF_VERSION, GivenOutputs, evaluate_reference
from autotune.record import State, Trial


@dataclass
class Prover:
    """By one worker, one configuration and one size after another: who is to blame for a process that ends is known.

    ``near`` are configurations around whose grids the sizes are chosen. ``sizes`` is known once something was
    proved. ``reference_ms`` is what the reference takes for the workload."""

    worker: ProcessWorker
    compiler: JobCompiler
    setting: Setting
    root: Path
    inputs: Inputs
    answer: GivenOutputs | None = None
    reference_ms: float = 0.0
    near: Sequence[Configuration] = ()
    sizes: OddSizes | None = None
    _done: set[Configuration] = field(default_factory=set)
    _winners: set[Configuration] = field(default_factory=set)

    def is_proved(self, trial: Trial) -> bool:
        """Whether it was proved here, or in an earlier sweep as it would be now."""
        return trial.configuration in self._done or bool(trial.proof == PROOF_VERSION and trial.proved)

    def prove(self, trial: Trial) -> Trial:
        """``trial`` with the sizes that it is right for, or as the failure that it turned out to be. Raises LaunchError
        when there is no device to ask."""
        self._done.add(trial.configuration)
        return self._prove_on(
            replace(trial, proved=()), [size for size in self._list_sizes(trial) if not size.is_of_winners]
        )

    def is_proved_to_win(self, trial: Trial) -> bool:
        """Whether ``prove_to_win`` has nothing left to do."""
        return trial.configuration in self._winners

    def prove_to_win(self, trial: Trial) -> Trial:
        """``trial``, which was proved, on what costs more: again and again on the swept inputs, whether it repeats its
        bits; other values at the swept sizes, sizes above them, other options, and on the cpu with a pattern in every
        local variable that the source leaves as it is. As ``prove``."""
        self._winners.add(trial.configuration)
        filled = self.compile_filled([trial.configuration])
        for job in filled or self.compiler.jobs([trial.configuration]):
            found = self._ask(job, None) if job else Proved("measured")
            if found.state != "measured":
                told = "right when first verified, wrong when it was run again"
                if filled:
                    told = "right as compiled, wrong with a pattern in uninitialised local variables"
                return mark_failed(trial, found.state, f"{told}: {found.reason}")
            trial = replace(trial, reproducible=found.repeats)
        return self._prove_on(trial, [size for size in self._list_sizes(trial) if size.is_of_winners])

    def prove_untried(self, job: Job) -> Trial:
        """As ``prove`` and ``prove_to_win``, of a configuration that was not tried yet: on the swept inputs first."""
        trial = trial_of(self.setting.workload, self.worker.device, job.configuration, "measured", "")
        found = self._ask(job, None)
        if found.state != "measured":
            return mark_failed(trial, found.state, found.reason)
        trial = self.prove(trial)
        return self.prove_to_win(trial) if trial.state == "measured" else trial

    def _list_sizes(self, trial: Trial) -> Sequence[OddSize]:
        if self.sizes is None:
            self.sizes = self._sizes([*self.near, trial.configuration])
        return self.sizes.sizes

    def _prove_on(self, trial: Trial, sizes: Iterable[OddSize]) -> Trial:
        right = list(trial.proved)
        for size in sizes:
            job = None if self._is_excluded(trial.configuration, size) else self._job(trial, size)
            proof = self._ask(job, size) if job else Proved("excluded")
            if proof.state == "excluded":
                continue
            if proof.state != "measured":
                what = "wrong" if proof.state == "wrong_result" else "but"
                told = f"right for the swept sizes, {what} for {size.text}: {proof.reason}"
                return mark_failed(trial, proof.state, told)
            if size.told not in right and size.sizes != self.inputs.sizes:
                right.append(dict(size.told))
        return replace(trial, proof=PROOF_VERSION, proved=tuple(right))

    def _job(self, trial: Trial, size: OddSize) -> Job | None:
        """None where it does not compile with other options."""
        if size.options == self.inputs.options:
            return self.compiler.jobs([trial.configuration])[0]
        return self.compiler.compile_others([trial.configuration], size.options, self.worker.toolchain)[0]

    def compile_filled(self, configurations: Sequence[Configuration]) -> Sequence[Job | None]:
        """With a pattern in local variables; none where the compiler cannot."""
        toolchain = self.worker.toolchain
        filling = toolchain.fill_locals() if isinstance(toolchain, HostCxx) else None
        return self.compiler.compile_others(configurations, self.inputs.options, filling) if filling else ()

    def _sizes(self, near: Iterable[Configuration]) -> OddSizes:
        steps: dict[str, set[int]] = {}
        for job in self.compiler.jobs(tuple(dict.fromkeys(near))):
            variant = self.compiler.variant(job.configuration)
            for extent, step in grid_steps(variant, self.inputs, job.compiled.numbers).items():
                steps.setdefault(extent, set()).add(step)
        told = {extent: sorted(found) for extent, found in steps.items()}
        if self.answer:
            return self._collect_answers(self.answer, told)
        try:
            cache = self.compiler.cache.root
            return self.worker.ask(
                1, Measuring.make_odd_sizes, self.setting, self.root, cache, told, self._up_to
            )
        except LaunchError as problem:
            return OddSizes(why_not=f"no inputs could be made: {problem}")

    def _collect_answers(self, answer: GivenOutputs, steps: Mapping[str, Sequence[int]]) -> OddSizes:
        """By what the program that sweeps says is right, here."""
        family, function = self.compiler.family, answer.function
        if function is None:
            return OddSizes(why_not="the expected outputs were given for the swept sizes alone")
        return write_odd_sizes(
            self.setting, family, self.inputs, self.root, steps,
            lambda made: evaluate_reference(family, made, function).outputs, self._up_to,
        )  # fmt: skip

    @property
    def _up_to(self) -> int:
        """Values of an input that is as large as the workload: none where its reference takes long."""
        return MOST_LARGE if self.reference_ms <= LARGE_MS else 0

    def _is_excluded(self, configuration: Configuration, size: OddSize) -> bool:
        """Whether a constraint, a range or the device rules the size out for it."""
        variant = Variant.make(self.compiler.family, configuration, size.options)
        inputs = replace(self.inputs, sizes=size.sizes, scalars=size.scalars, options=size.options)
        try:
            return bool(variant.explain_exclusion(inputs.names(configuration), self.worker.device.limits))
        except AutotuneError:  # an expression without a value there
            return True

    def _ask(self, job: Job, size: OddSize | None) -> Proved:
        try:
            return self.worker.ask(1, Measuring.prove, self.setting, job, size)
        except Ended as problem:
            return Proved(problem.state, str(problem))


def mark_failed(trial: Trial, state: State, reason: str) -> Trial:
    """``trial`` as what it turned out to be: what is not right has no time that counts."""
    return replace(
        trial, state=state, reason=reason, measurement=None, notes=(), same_as=None, proof=PROOF_VERSION, proved=()
    )  # fmt: skip


def prove_configurations(
    family: Family, workload: Workload, inputs: Inputs, root: Path, configurations: Iterable[Configuration],
    worker: ProcessWorker,
) -> list[Trial]:  # fmt: skip
    """Prove configurations as a sweep proves its winners, and time none.

    Args:
        inputs: Those of ``workload``, which results are compared on first; the others are made from them.
        root: The folder that workloads find their data in.
        worker: One that was started.

    Returns:
        For each of them a trial without a time: ``measured``, with the sizes that it is right for, or as it failed.

    Raises:
        AutotuneError: There is no reference, or the device gives no answer.
    """
    cache, device = Cache(default_root()), worker.device
    with share_arrays(inputs.arrays) as arrays:
        protocol = CPU if device.kind == "cpu" else CUDA
        setting = Setting.make(family, inputs, arrays, workload=workload, protocol=protocol)
        reference_ms = worker.ask(math.inf, Measuring.reference, setting, cache.root)
        worker.study(setting)
        compiler = JobCompiler(family, inputs, worker, cache, len(os.sched_getaffinity(0)))
        excluded = {one: compiler.explain_exclusion(one) for one in configurations}
        made = list(chain(*compiler.chunks([one for one, why in excluded.items() if not why], lambda: False)))
        jobs = [one for one in made if isinstance(one, Job)]
        near = [job.configuration for job in jobs]
        prover = Prover(worker, compiler, setting, root, inputs, reference_ms=reference_ms, near=near)
        failures: list[tuple[Configuration, State, str]]
        failures = [(one, "excluded", why) for one, why in excluded.items() if why]
        failures += [(one[0], "compile_failed", one[1].message) for one in made if not isinstance(one, Job)]
        return [
            *map(prover.prove_untried, jobs),
            *(trial_of(workload, device, *failure) for failure in failures),
        ]
