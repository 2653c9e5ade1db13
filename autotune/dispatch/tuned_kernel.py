"""The run time: the tuned kernel as a function of arrays."""

import atexit
import threading
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from autotune.compile import Cache, default_root
from autotune.declaration import Family, Inputs, load_family
from autotune.device import Closing, DeviceProgram, LaunchError, foreign, open_backend
from autotune.dispatch.call import NOTHING, Arguments, Request, arguments, request, take
from autotune.dispatch.fast_call import MISSED, RawCall
from autotune.dispatch.monitor import Monitor
from autotune.dispatch.prepared import Prepared
from autotune.dispatch.refinement import CALLS
from autotune.dispatch.target import Choosing, Target
from autotune.errors import AutotuneError, CompilerError, DeviceError, UsageError
from autotune.extensions import loader_of
from autotune.files import policy_folders
from autotune.policy import Candidate, Frozen, PolicyFile

_open: "weakref.WeakSet[TunedKernel]" = weakref.WeakSet()


class SweptFamily(Protocol):
    """What a sweep found (``autotune.SweepResult``): the family's ``folder``, the ``device`` as ``load`` takes it, and
    what its policy file would say."""

    @property
    def folder(self) -> Path: ...

    @property
    def device(self) -> str: ...

    @property
    def policy_file(self) -> PolicyFile: ...


def load(
    family: str | PathLike[str] | SweptFamily,
    device: str | None = None,
    policies: str | Path | None = None,
    cache: str | Path | None = None,
    accuracy: Mapping[str, Any] | None = None,
    objective: str = "kernel",
    refine: bool | int | None = None,
    max_error: float | None = None,
    frozen: Frozen | None = None,
    reproducible: bool = False,
    agreement: Any = None,
    monitor: Monitor | int | None = None,
) -> Any:
    """Open the tuned kernel of a family.

    Args:
        family: a name, a folder with a family.yaml, an ``autotune.Kernel``, or the result of ``autotune.sweep``, whose
            winner then runs, by default on the device of the sweep.
        device: cpu, cuda or cuda:N. None takes the first GPU, or the cpu, with a warning, if no GPU works.
        policies: the folder of policy files to look in first.
        cache: the folder of compiled kernels.
        accuracy: values of the family's accuracy policies.
        objective: ``kernel`` for data that stay on the device or for many calls; ``with-transform`` and
            ``with-transfer`` include the costs of the layout in a single call, if a sweep chose by that.
        refine: let the first 20 calls (or that many, at least 2) on sizes that were not measured try the best few
            configurations, and keep the fastest in the user's policy folder. None leaves this to the policy file.
        max_error: in place of ``accuracy``, the largest error of results in the sweeps, relative to the largest
            magnitude of each output; the fastest accuracy class within it is taken. Other data may have larger errors.
        frozen: run only what policy files name, without refinement; ``"exact"`` also rejects every size that no entry
            is of. None leaves this to AUTOTUNE_FROZEN, then to the policy file.
        reproducible: take only configurations that gave the same bits in repeated runs.
        agreement: the ``autotune.Agreement`` of a program's ranks, which all call ``load`` and take the policy files of
            the first one.
        monitor: time one call in 1,000 (or in that many), and report a winner that became slower than its entry
            (``autotune.Monitor``).

    Returns:
        A ``TunedKernel``, to be called with arrays.

    Raises:
        UnknownName, FamilyError, DeviceError, UsageError, NothingMeasured: an argument is wrong, the device cannot be
            used, or the kernel is frozen and no policy file names a configuration.
    """
    own = None
    if isinstance(family, str | PathLike):
        folder: str | PathLike[str] = family
        if loader := loader_of(family):
            return loader(family, device, policies, cache)
    else:
        folder, own, device = family.folder, family.policy_file, device or family.device
    if max_error is not None and accuracy is not None:
        raise UsageError("accuracy names one class and max_error admits several: give one of them")
    asked = accuracy if max_error is None else max_error
    loaded = load_family(folder, check=False)
    choosing = Choosing(
        folders=policy_folders(policies, loaded.folder), cache=Cache(Path(cache) if cache else default_root()),
        accuracy=asked, objective=objective, own=own, refine=_calls(refine),
        frozen=frozen, reproducible=reproducible, agreement=agreement,
        monitor=monitor if isinstance(monitor, Monitor | None) else Monitor(every=1000 if monitor is True else monitor),
    )  # fmt: skip
    return TunedKernel(loaded, device, choosing)


def _calls(refine: bool | int | None) -> int | None:
    if refine is None or isinstance(refine, bool):
        return CALLS * refine if refine is not None else None
    if refine < 2:
        raise UsageError(
            f"refine={refine}: it takes at least 2 calls to compare; True stands for {CALLS}, False for none"
        )
    return refine


class TunedKernel(Closing):
    """A tuned kernel on a device; call it with arrays. A context manager; ``is_closed`` after its end.

    It may be called from any number of threads; calls on one device take turns.
    """

    def __init__(self, family: Family, device: str | None, choosing: Choosing) -> None:
        self.family, self._choosing = family, choosing
        self._may_change = device in (None, "auto") and choosing.agreement is None  # one rank alone cannot
        self._lock = threading.RLock()
        self._calls = self._open_device(device or "auto")
        self._failed: list[Prepared] = []  # what answered calls before
        self._handles: weakref.WeakSet[Prepared] = weakref.WeakSet()
        self.is_closed = False
        _open.add(self)

    @property
    def _target(self) -> Target:
        """What calls run on."""
        return self._calls.target

    @property
    def device(self) -> str:
        """Return the name of the device that calls run on."""
        return self._target.backend.device.name

    @property
    def kind(self) -> str:
        """Return the kind of the device: cpu or cuda."""
        return self._target.kind

    @property
    def memory_bytes(self) -> int:
        """Return the size of the device's memory in bytes."""
        return self._target.backend.device.limits.memory_bytes

    def __repr__(self) -> str:
        policies = self._target.policies
        entries = len(policies.own.entries) if policies and policies.own else 0
        told = "closed" if self.is_closed else f"on {self.device}, {entries} entries in its policy file"
        return f"<TunedKernel {self.family.name} {told}>"

    def close(self) -> None:
        """Release what was prepared, modules, memory and the device. Safe to call twice."""
        with self._lock:
            if self.is_closed:
                return
            self.is_closed = True
            answering = (*self._failed, self._calls)
            for prepared in (*self._handles, *answering):
                prepared.close()
            for prepared in answering:
                prepared.target.close()

    def __call__(self, *arrays: Any, out: Any = None, stream: Any = None, **named: Any) -> Any:
        """Inputs in declared order or by name, options and scalars by name -> the output, or a dict of them when the
        family has several.

        Arrays are numpy's, or anything with ``__cuda_array_interface__`` or DLPack; outputs are of the same kind, or go
        to ``out`` (an array, or a dict of them). ``stream`` (an int, or an object with ``__cuda_stream__``) is the one
        in whose order the call runs, by default the current one of the arrays' library. Raises WorkloadError for input
        outside the declaration, UsageError."""
        found = self._calls.call_again(arrays, out, stream, named)
        if found is not MISSED:
            return found
        asked = request(self.family, NOTHING, self._arguments(arrays, named), stream, None)
        return self._answer(asked, out, RawCall(arrays, stream, named))

    def _answer(self, asked: Request, out: Any, call: RawCall | None) -> Any:
        calls = self._open_calls()
        try:
            return calls.answer(asked, out, call)
        except (LaunchError, DeviceError, CompilerError) as problem:
            if "capturing" in str(problem):  # the device is well
                raise UsageError(
                    f"{self.family.name}: a CUDA graph is being captured, and this call cannot be part of it: "
                    f"{problem}; give arrays on the GPU, by the stream that is captured"
                ) from None
            if not self._leave_gpu(calls, problem):
                raise
        return self._calls.answer(asked, out, call)

    def _open_calls(self) -> Prepared:
        if self.is_closed:
            raise DeviceError(f"the kernel of {self.family.name} was closed; load it again")
        return self._calls

    def _open_device(self, device: str) -> Prepared:
        """What answers calls on that device."""
        backend = open_backend(device)
        try:
            return Prepared(Target(self.family, backend, self._choosing), NOTHING)
        except BaseException:
            backend.close()
            raise

    def _leave_gpu(self, calls: Prepared, problem: Exception) -> bool:
        """Whether the cpu takes over from the GPU that failed: where the caller named no device."""
        with self._lock:
            if calls is self._calls:
                if not self._may_change or self.kind == "cpu":
                    return False
                warnings.warn(
                    f"{self.device} failed, running on the cpu from now on: {problem}", stacklevel=4
                )
                self._failed.append(calls)
                self._calls = self._open_device("cpu")
            return True

    def bind(self, *arrays: Any, **named: Any) -> Inputs:
        """Check the arguments of a call, and return them as canonical inputs."""
        return request(self.family, NOTHING, self._arguments(arrays, named), 0, None).inputs

    def _arguments(self, arrays: tuple[Any, ...], named: Mapping[str, Any]) -> Arguments:
        return arguments(self.family, self._calls.rest, arrays, named)

    def run(self, inputs: Inputs) -> dict[str, NDArray[Any]]:
        """Run the kernel on inputs that ``bind`` returned; return the outputs by name."""
        asked = Request(inputs, tuple(data.name for data in self.family.inputs))
        answer = self._answer(asked, None, None)
        return answer if isinstance(answer, dict) else {self.family.outputs[0].name: answer}

    def prepare(self, *arrays: Any, **named: Any) -> Prepared:
        """Copy inputs to the device and apply their layouts once, for calls that follow.

        Args:
            arrays, named: all inputs or some, in declared order or by name; options and scalars by name. What ``bind``
                returned can be prepared too.

        Returns:
            A ``Prepared``, to be called with the other inputs. Its data stay on the device that calls run on.
        """
        if len(arrays) == 1 and isinstance(arrays[0], Inputs):
            inputs = arrays[0]
            kept, example = Arguments(inputs.arrays, inputs.options, inputs.scalars), None
        else:
            given = self._arguments(arrays, named)
            data = self.family.apply_types(given.options).data
            kept = replace(given, arrays={name: take(data[name], a) for name, a in given.arrays.items()})
            example = next(
                iter([*filter(foreign.is_on_gpu, given.arrays.values()), *given.arrays.values()]), None
            )
        self._open_calls()
        prepared = Prepared(self._target, kept, example)
        self._handles.add(prepared)
        return prepared

    def program(self, source: Path, kernels: Sequence[str], constants: Mapping[str, int]) -> DeviceProgram:
        """Compile other kernels of the family for this device. Raises CompilerError, LaunchError, FamilyError."""
        return DeviceProgram(self._target.backend, self._choosing.cache, source, kernels, constants)

    def compilers(self, chosen: Candidate, inputs: Inputs) -> list[Callable[[], object]]:
        """Return functions that compile what ``chosen`` runs on ``inputs``, and what stores arrays of a GPU, ahead of
        calls; each may run in a thread of its own. They raise CompilerError, LaunchError."""
        moves = [self._target.layout_transform.load] if self._target.lender else []
        return [partial(self._target.load, chosen, inputs), *moves]

    def explain(self, inputs: Inputs) -> tuple[Candidate, list[Candidate]]:
        """Return the candidate that is chosen for ``inputs`` and those passed over, each with its reason."""
        return self._target.explain(inputs)


@atexit.register
def _close_all() -> None:
    """At the interpreter's end, while libraries still stand."""
    for kernel in list(_open):
        with suppress(AutotuneError, LaunchError):
            kernel.close()


def explain_chain(chosen: Candidate, passed: list[Candidate]) -> str:
    """The chain of candidates as text, one a line."""
    lines = [f"  passed over  {c.match:8} {c.origin}: {c.refusal}" for c in passed]
    assert chosen.configuration is not None
    lines.append(f"  taken        {chosen.match:8} {chosen.origin}: {chosen.configuration.id}")
    lines += [f"  drifted      {chosen.remark}"] * bool(chosen.remark)
    return "\n".join(lines)
