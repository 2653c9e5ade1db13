"""What is to enter a policy file, proved on ragged sizes near the workload's before it does."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from autotune.declaration import Configuration, Inputs
from autotune.device import LaunchError
from autotune.engine.jobs import JobCompiler
from autotune.engine.messages import Ended, Job, Prove, Proved, Ragged, RaggedSize, RaggedSizes, Setting
from autotune.engine.ragged import grid_steps, ragged_files, size_text
from autotune.engine.worker import Worker
from autotune.errors import AutotuneError
from autotune.measure import PROOF_VERSION, Answer, answered
from autotune.record import State, Trial


@dataclass
class Prover:
    """By one worker, one configuration and one size after another: who is to blame for a process that ends is known.

    ``near`` are configurations around whose grids the sizes are chosen. ``sizes`` is known once something was
    proved."""

    worker: Worker
    compiler: JobCompiler
    setting: Setting
    root: Path
    inputs: Inputs
    answer: Answer | None = None
    near: Sequence[Configuration] = ()
    sizes: RaggedSizes | None = None
    _done: set[Configuration] = field(default_factory=set)

    def is_proved(self, trial: Trial) -> bool:
        """Whether it was proved here, or in an earlier sweep as it would be now."""
        return trial.configuration in self._done or bool(trial.proof == PROOF_VERSION and trial.proved)

    def proved(self, trial: Trial) -> Trial:
        """``trial`` with the sizes that it is right for, or as the failure that it turned out to be. Raises LaunchError
        when there is no device to ask."""
        self._done.add(trial.configuration)
        if self.sizes is None:
            self.sizes = self._sizes([*self.near, trial.configuration])
        (job,) = self.compiler.jobs([trial.configuration])
        right: list[Mapping[str, int]] = []
        for size in self.sizes.sizes:
            if self._is_excluded(trial.configuration, size):
                continue
            found = self._asked(job, size)
            if found.state != "measured":
                what = "wrong" if found.state == "wrong_result" else "but"
                told = f"right for the swept sizes, {what} for {size_text(size.told)}: {found.reason}"
                return failed(trial, found.state, told)
            right.append(dict(size.told))
        return replace(trial, proof=PROOF_VERSION, proved=tuple(right))

    def _sizes(self, near: Iterable[Configuration]) -> RaggedSizes:
        steps: dict[str, set[int]] = {}
        for configuration in dict.fromkeys(near):
            for extent, step in grid_steps(self.compiler.variant(configuration), self.inputs).items():
                steps.setdefault(extent, set()).add(step)
        told = {extent: sorted(found) for extent, found in steps.items()}
        if self.answer:
            return self._answered(self.answer, told)
        try:
            found: RaggedSizes = self.worker.ask(
                Ragged(self.setting, self.root, self.compiler.cache.root, told), 1
            )
        except LaunchError as problem:
            return RaggedSizes(why_not=f"no inputs could be made: {problem}")
        return found

    def _answered(self, answer: Answer, steps: Mapping[str, Sequence[int]]) -> RaggedSizes:
        """By what the program that sweeps says is right, here."""
        family, function = self.compiler.family, answer.function
        if function is None:
            return RaggedSizes(why_not="the expected outputs were given for the swept sizes alone")
        return ragged_files(
            self.setting, family, self.inputs, self.root, steps,
            lambda made: answered(family, made, function).outputs,
        )  # fmt: skip

    def _is_excluded(self, configuration: Configuration, size: RaggedSize) -> bool:
        """Whether a constraint, a range or the device rules the size out for it."""
        variant = self.compiler.variant(configuration)
        names = replace(self.inputs, sizes=size.sizes, scalars=size.scalars).names(configuration)
        try:
            return bool(variant.exclusion(names, self.worker.device.limits))
        except AutotuneError:  # an expression without a value there
            return True

    def _asked(self, job: Job, size: RaggedSize) -> Proved:
        try:
            answer: Proved = self.worker.ask(Prove(self.setting, job, size), 1)
        except Ended as problem:
            return Proved(problem.state, str(problem))
        return answer


def failed(trial: Trial, state: State, reason: str) -> Trial:
    """``trial`` as what it turned out to be: what is not right has no time that counts."""
    return replace(
        trial,
        state=state,
        reason=reason,
        measurement=None,
        notes=(),
        same_as=None,
        proof=PROOF_VERSION,
        proved=(),
    )
