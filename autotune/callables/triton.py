"""In place of ``triton.autotune``: ``from autotune.callables.triton import autotune``, and the rest stays.

The configurations are tried in processes of their own, compiled ahead in parallel, verified against the first of them,
and recorded; the winner of each key goes to a policy file, which later programs read and a package can ship.
"""

import inspect
import multiprocessing
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any

from autotune.callables import functions
from autotune.callables.choices import Alternatives
from autotune.callables.deciding import Decider, Others
from autotune.callables.declared import CALL_FILE, family_name
from autotune.callables.functions import Importable
from autotune.callables.tuning import CallProblem, Check, Within
from autotune.errors import AutotuneError, UsageError
from autotune.files import policy_folders
from autotune.policy import Frozen, resolve_frozen
from autotune.processes import keep_spares

_LEFT_OUT = {
    "warmup": "samples are taken until the median is known",
    "rep": "samples are taken until the median is known",
    "use_cuda_graph": "each sample is queued after a delay, so that it excludes host time",
    "do_bench": "samples are taken as in every sweep",
    "cache_results": "the record and the policy file keep them",
}


def autotune(
    configs: Sequence[Any], key: Sequence[str], prune_configs_by: Mapping[str, Any] | None = None,
    reset_to_zero: Sequence[str] | None = None, restore_value: Sequence[str] | None = None,
    pre_hook: Callable[..., Any] | None = None, post_hook: Callable[..., Any] | None = None,
    warmup: int | None = None, rep: int | None = None, use_cuda_graph: bool = False,
    do_bench: Callable[..., Any] | None = None, cache_results: bool = False, *, check: Check = None,
    outputs: Sequence[str] = (), tolerance: Within = None, frozen: Frozen | None = None, agreement: Any = None,
    refine: bool = True, others: Others = "wait", policies: str | Path | None = None, **options: Any,
) -> Callable[[Any], "TunedKernelCall"]:  # fmt: skip
    """Decorate a kernel as ``triton.autotune`` does.

    Args:
        configs, key, prune_configs_by, reset_to_zero, restore_value, pre_hook, post_hook: Triton's.
        warmup, rep, use_cuda_graph, do_bench, cache_results: have no counterpart, and are left out with a warning.
        outputs: tensors that the kernel writes, besides those that the first call shows.
        check, tolerance, frozen, agreement, refine, others, policies, options: as ``autotune.tuned`` has them.

    Returns:
        What makes a kernel (``triton.jit``, or ``triton.heuristics`` of one) a tuned one.
    """
    given = {"warmup": warmup, "rep": rep, "use_cuda_graph": use_cuda_graph, "do_bench": do_bench}
    for name, value in {**given, "cache_results": cache_results}.items():
        if value:
            warnings.warn(f"{name} is ignored, it has no counterpart: {_LEFT_OUT[name]}", stacklevel=2)
    hooks = Hooks(tuple(reset_to_zero or ()), tuple(restore_value or ()), pre_hook, post_hook)
    deciding = {
        "check": check, "frozen": frozen, "agreement": agreement, "refine": refine, "others": others,
        "policies": policies,
    }  # fmt: skip
    told = {"outputs": tuple(outputs), "tolerance": tolerance}

    def decorate(kernel: Any) -> TunedKernelCall:
        return TunedKernelCall(
            kernel, configs, key, prune_configs_by or {}, hooks, {**deciding, "options": options}, told
        )

    return decorate


@dataclass(frozen=True)
class Hooks:
    """What Triton does around each call while it tunes."""

    zeroed: tuple[str, ...]
    restored: tuple[str, ...]
    before: Callable[..., Any] | None
    after: Callable[..., Any] | None


_PROCESSES = 3  # one that measures, one that forks those that compile, and one in place of one that ends


class TunedKernelCall:
    """A kernel with configurations, called as Triton's: ``kernel[grid](...)``. ``best_config`` is that of the latest
    call."""

    def __init__(
        self, kernel: Any, configs: Sequence[Any], key: Sequence[str], prune: Mapping[str, Any], hooks: Hooks,
        deciding: Mapping[str, Any], told: Mapping[str, Any],
    ) -> None:  # fmt: skip
        self.fn, self.arg_names = kernel, list(kernel.arg_names)
        self.configs = list(configs) or [import_module("triton").Config({})]
        self.keys, self.hooks, self.best_config = list(key), hooks, self.configs[0]
        self.base_fn = _function(kernel)
        self.__name__ = self.base_fn.__name__
        self._prune, self._deciding, self._told = prune, deciding, told
        self._known: dict[Any, Any] = {}
        if self._will_tune():
            keep_spares(_PROCESSES, f"{__name__}:{prepare.__name__}")
        self._places = [(i, name) for i, name in enumerate(self.arg_names) if name in self.keys]

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return lambda *args, **kwargs: self.run(*args, grid=grid, warmup=False, **kwargs)

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        """One launch with the winner for its key."""
        if len(self.configs) == 1:
            config = self.configs[0]
        else:
            kind = self._kind(args, kwargs)
            config = self._known.get(kind) or self._decide_first(kind, args, kwargs, grid)
        self.best_config = config
        if config.pre_hook is not None:
            config.pre_hook(
                {**dict(zip(self.arg_names, args, strict=False)), **kwargs, **config.all_kwargs()}
            )
        return self.fn.run(*args, grid=grid, warmup=warmup, **kwargs, **config.all_kwargs())

    def _will_tune(self) -> bool:
        """Whether the first call will, as far as can be known before it: the processes then start meanwhile."""
        if len(self.configs) < 2 or functions.is_elsewhere() or multiprocessing.parent_process():
            return False
        if self._deciding["agreement"] is not None or resolve_frozen(self._deciding["frozen"]):
            return False
        policies = self._deciding["policies"]
        folders = [Path(policies)] if policies else policy_folders()
        return not any(any(one.glob(f"{family_name(self.__name__, {})}*/{CALL_FILE}")) for one in folders)

    def _kind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """By the arguments in the key, and the elements of all tensors."""
        count = len(args)
        found = [args[i] if i < count else kwargs.get(name) for i, name in self._places]
        found += [value.dtype for value in args if hasattr(value, "dtype")]
        found += [value.dtype for value in kwargs.values() if hasattr(value, "dtype")]
        return tuple(found)

    def _decide_first(self, kind: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], grid: Any) -> Any:
        functions.refuse_while_loading(f"a call of {self.__name__}")
        named = {**dict(zip(self.arg_names, args, strict=False)), **kwargs}
        configs = self._prune_configs(named, kwargs)
        if len(configs) == 1:
            self._known[kind] = configs[0]
            return configs[0]
        listed = [_values(config, self.configs) for config in configs]
        try:
            decider = Decider(choices=Alternatives.read(listed), **self._deciding)
            problem, inputs = self._problem(named, len(args), configs, listed, grid, decider.choices)
            with _driver_opens():
                values = decider.decide(problem, inputs)
        except AutotuneError as problem_met:
            warnings.warn(
                f"{self.__name__} is not tuned: {problem_met}; it runs the first of its configurations",
                stacklevel=4,
            )
            values = listed[0]
        if values is None:  # another process is at it
            return configs[0]
        config = configs[listed.index({name: values[name] for name in listed[0]})]
        self._known[kind] = config
        return config

    def _problem(
        self, named: Mapping[str, Any], positional: int, configs: Sequence[Any], listed: Sequence[Mapping[str, Any]],
        grid: Any, choices: Alternatives,
    ) -> tuple[CallProblem, dict[str, Any]]:  # fmt: skip
        tensors = {name: value for name, value in named.items() if _is_tensor(value)}
        launch = TritonLaunch(
            kernel=Importable.make(self.base_fn),
            positional=tuple(self.arg_names[:positional]),
            chosen=tuple(listed[0]),
            grids=tuple(
                (tuple(values.values()), self._grid(grid, named, config))
                for values, config in zip(listed, configs, strict=True)
            ),
            views={name: (tuple(value.shape), tuple(value.stride())) for name, value in tensors.items()},
            elements={name: str(value.dtype).removeprefix("torch.") for name, value in tensors.items()},
            digest=functions.digest(self.base_fn),
            __name__=self.__name__,
        )
        zeroed = [tensors[name] for name in self.hooks.zeroed if name in tensors]
        spans = _spans(tensors, zeroed)
        inputs = {**named, **spans}
        stored = dict.fromkeys((*self.hooks.zeroed, *self.hooks.restored, *self._told["outputs"]))
        outputs = [name for name in stored if name in tensors]
        problem = CallProblem.make(
            launch, choices, inputs, outputs=outputs, key=[name for name in self.keys if name in named],
            tolerance=self._told["tolerance"],
        )  # fmt: skip
        return problem, inputs

    def _grid(self, grid: Any, named: Mapping[str, Any], config: Any) -> tuple[int, ...]:
        """The grid that a configuration is launched with."""
        if not callable(grid):
            return tuple(grid)
        meta = {**_defaults(self.base_fn), **named, **config.all_kwargs()}
        layer = self.fn
        while hasattr(layer, "values") and hasattr(layer, "fn"):  # triton.heuristics
            for name, rule in layer.values.items():
                meta[name] = rule(meta)
            layer = layer.fn
        return tuple(grid(meta))

    def _prune_configs(self, named: Mapping[str, Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """What prune_configs_by leaves, as Triton calls it."""
        configs = self.configs
        nargs = {name: value for name, value in named.items() if name not in kwargs}
        if prune := self._prune.get("early_config_prune"):
            configs = list(prune(configs, nargs, **kwargs))
            if not configs:
                raise UsageError(
                    f"early_config_prune leaves no configuration of {self.__name__}: it has to leave one"
                )
        if model := self._prune.get("perf_model"):
            top = self._prune.get("top_k", 1.0)
            most = int(len(self.configs) * top) if isinstance(top, float) and top <= 1.0 else int(top)
            costs = {id(one): model(**nargs, **kwargs, **one.all_kwargs()) for one in configs}
            configs = sorted(configs, key=lambda one: costs[id(one)])[: max(1, most)]
        return list(configs)


def prepare() -> None:
    """Import what measuring and compiling kernels needs, in a process of which no more is known."""
    for module in ("torch", "triton.backends.nvidia.driver", "triton.compiler", "autotune.callables.tuning"):
        import_module(module)
    if not _is_interpreted():
        with suppress(Exception):  # of another version, or without a C compiler: the first launch says so
            import_module("triton.backends.nvidia.driver").CudaUtils()
        _hash_compiler()


# -- in a measuring process ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TritonLaunch:
    """One kernel's launches: the grid of each configuration, by its values, and the tensors as ``views`` (shape,
    strides) of the memory that they span, with what torch calls their ``elements``."""

    kernel: Importable
    positional: tuple[str, ...]
    chosen: tuple[str, ...]
    grids: tuple[tuple[tuple[Any, ...], tuple[int, ...]], ...]
    views: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]]
    elements: Mapping[str, str]
    digest: str
    __name__: str
    tools: tuple[str, ...] = ("triton", "torch")

    @cached_property
    def tuned(self) -> TunedKernelCall:
        """The decorated kernel, where it is defined."""
        found = self.kernel.find()
        for layer in functions.layers(found):
            if isinstance(layer, TunedKernelCall):
                return layer
        raise UsageError(f"{self.kernel.name} is not decorated where a measuring process imports it")

    def __call__(self, **arguments: Any) -> None:
        """A launch on the current stream."""
        values, config, constants = self._split(arguments)
        given = {name: self._tensor(name, value) for name, value in arguments.items()}
        hooks = self.tuned.hooks
        for hook in (config.pre_hook, hooks.before):
            if hook is not None:
                hook({**given, **values})
        args = [given.pop(name) for name in self.positional]
        self.tuned.fn.run(*args, grid=self._grids[self._make_key(values)], warmup=False, **given, **constants)
        if hooks.after is not None:
            hooks.after({**given, **dict(zip(self.positional, args, strict=True)), **values}, exception=None)

    def import_libraries(self) -> None:
        """Import Triton's compiler, and hash it, which takes a while, once for all who build. The kernel's module is
        theirs: one that opens the device would leave it closed to the processes forked behind it."""
        for module in ("torch", "triton.compiler"):
            import_module(module)
        _hash_compiler()

    def open_libraries(self) -> None:
        """Initialise the device for torch, and Triton's driver."""
        if not _is_interpreted():
            import_module("torch").cuda.init()
            _open_driver()

    def build(self, arch: str, **arguments: Any) -> None:
        """Compile a configuration into Triton's cache, without a GPU. Raises what Triton does."""
        if not arch.startswith("sm_") or _is_interpreted():
            return
        torch, tensor = import_module("torch"), import_module("triton.runtime.jit").MockTensor
        with _without_device(arch):
            values, _, constants = self._split(arguments)
            kinds = {
                n: tensor(getattr(torch, one), list(self.views[n][0])) for n, one in self.elements.items()
            }
            given = {**arguments, **kinds}
            args = [given.pop(name) for name in self.positional]
            with suppress(
                AttributeError, KeyError, TypeError
            ):  # needs more than the types of tensors: see the call
                built = self.tuned.fn.run(*args, grid=(1,), warmup=True, **given, **constants)
                if self._make_key(values) == self.grids[0][0]:  # all configurations have the same launcher
                    _build_launcher(built)

    @cached_property
    def _grids(self) -> dict[tuple[Any, ...], tuple[int, ...]]:
        return dict(self.grids)

    @cached_property
    def _configs(self) -> dict[tuple[Any, ...], tuple[Any, dict[str, Any]]]:
        """By the values of a configuration: it, and what the kernel is given of it."""
        configs, unset = self.tuned.configs, dict.fromkeys(self.chosen)
        return {
            self._make_key({**unset, **_values(one, configs)}): (one, one.all_kwargs())
            for one in reversed(configs)
        }

    def _split(self, arguments: dict[str, Any]) -> tuple[dict[str, Any], Any, dict[str, Any]]:
        """The values of a configuration, taken out of ``arguments``, the configuration, and its constants."""
        values = {name: arguments.pop(name) for name in self.chosen}
        key = self._make_key(values)
        if key not in self._configs:
            made = _config(values)
            self._configs[key] = made, made.all_kwargs()
        return values, *self._configs[key]

    def _make_key(self, values: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(values[name] for name in self.chosen)

    def _tensor(self, name: str, value: Any) -> Any:
        return value.as_strided(*self.views[name]) if name in self.views else value


def _is_interpreted() -> bool:
    return os.environ.get("TRITON_INTERPRET", "0") not in ("", "0")


def _hash_compiler() -> None:
    """A part of every key of Triton's cache: it reads hundreds of megabytes."""
    module = import_module("triton.runtime.cache")
    if not hasattr(module, "triton_key"):  # before Triton 3.5
        module = import_module("triton.compiler.compiler")
    with suppress(AttributeError):  # of another version, which does so at the first launch
        module.triton_key()


def _open_driver() -> None:
    """Triton compiles a part of its driver, once for each cache."""
    with suppress(Exception):  # of no device: the launch says so
        import_module("triton.runtime").driver.active.utils  # noqa: B018 - it is made
    _hash_compiler()


@contextmanager
def _driver_opens() -> Iterator[None]:
    """Meanwhile: the launch behind the block finds it open."""
    opening = Thread(target=_open_driver)
    if not _is_interpreted():
        opening.start()
    try:
        yield
    finally:
        if opening.ident:
            opening.join()


def _build_launcher(built: Any) -> None:
    """What passes arguments to the kernel, and a C compiler builds into Triton's cache: it would be built at the first
    launch."""
    with suppress(Exception):  # which says so again
        import_module("triton.backends.nvidia.driver").CudaLauncher(built.src, built.metadata)


@contextmanager
def _without_device(arch: str) -> Iterator[None]:
    """Meanwhile Triton compiles for ``arch``, and a module that asks for the device's capability while it is imported
    gets that of ``arch``."""
    driver, cuda = import_module("triton.runtime").driver, import_module("torch").cuda
    number, asked = int(arch.removeprefix("sm_").rstrip("af")), cuda.get_device_capability
    driver.set_active(_Compiler(import_module("triton.backends.compiler").GPUTarget("cuda", number, 32)))
    cuda.get_device_capability = lambda _device=None: divmod(number, 10)
    try:
        yield
    finally:
        cuda.get_device_capability = asked
        driver.set_active(None)  # the next launch here asks for the device's own


class _Compiler:
    """What Triton's compiler asks of a driver, of a target that need not be there."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def get_current_target(self) -> Any:
        return self._target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, _device: int) -> int:
        return 0

    def get_active_torch_device(self) -> Any:
        """Asked by modules, Triton's tutorials among them, while they are imported."""
        return import_module("torch").device("cuda", 0)


_OWN = ("num_warps", "num_stages", "num_ctas", "maxnreg", "ir_override")  # of a Config, not in its kwargs


def _values(config: Any, configs: Sequence[Any]) -> dict[str, Any]:
    """What a configuration chooses, by name: the same names for all ``configs``, None for what it leaves out."""
    plain = [one.all_kwargs() for one in (*configs, config)]
    values = {name: plain[-1].get(name) for one in plain for name in one}
    keys = [repr(sorted((name, repr(value)) for name, value in one.items())) for one in plain[:-1]]
    if len(set(keys)) < len(keys):  # some differ in their hooks alone
        values["number"] = next((i for i, one in enumerate(configs) if one is config), len(configs))
    return values


def _config(values: Mapping[str, Any]) -> Any:
    """A configuration that early_config_prune made."""
    given = {name: value for name, value in values.items() if value is not None and name != "number"}
    kwargs = {name: value for name, value in given.items() if name not in _OWN}
    return import_module("triton").Config(kwargs, **{name: given[name] for name in _OWN if name in given})


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "data_ptr") and hasattr(value, "as_strided")


def _spans(tensors: Mapping[str, Any], zeroed: Sequence[Any]) -> dict[str, Any]:
    """Each tensor as a line of the memory from its first element to its last, whatever its strides; the very same
    object for the very same memory, and zeros for what is to be zero."""
    made: dict[Any, Any] = {}
    spans = {}
    for name, tensor in tensors.items():
        steps = zip(tensor.shape, tensor.stride(), strict=True)
        span = 1 + sum((extent - 1) * step for extent, step in steps)
        line = tensor.detach().as_strided((span,), (1,))
        if any(tensor is one for one in zeroed):
            line = line.new_zeros(span)
        spans[name] = made.setdefault((tensor.data_ptr(), span, tensor.dtype), line)
    return spans


def _function(kernel: Any) -> Any:
    while not inspect.isfunction(kernel):
        kernel = kernel.fn
    return kernel


def _defaults(function: Any) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters.values()
    return {one.name: one.default for one in parameters if one.default is not inspect.Parameter.empty}
