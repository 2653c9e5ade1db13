"""``tune_kernel`` and ``run_kernel``: Kernel Tuner's arguments as a plain kernel and a sweep."""

import inspect
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from autotune.api import sweep
from autotune.compile import Cache, default_root
from autotune.declaration import Configuration, Space, bind
from autotune.device import open_backend, run_each
from autotune.errors import CompilerError, NothingMeasured, UsageError
from autotune.kernel_tuner.asked_kernel import AskedKernel, KernelArgument, keep_contents
from autotune.kernel_tuner.cache import read_cache, write_cache
from autotune.kernel_tuner.parameters import Parameters
from autotune.kernel_tuner.results import (
    NOTHING,
    Metrics,
    choose_goal,
    device_environment,
    environment,
    json_path,
    line,
    result,
    warn,
)
from autotune.kernel_tuner.simulation import simulate
from autotune.record import Trial
from autotune.search import can_be_listed, list_configurations

_SEARCHES = {
    "brute_force": "exhaustive",
    "random_sample": "random",
    **dict.fromkeys(
        (
            "bayes_opt", "skopt", "genetic_algorithm", "nsga2", "nsga3", "diff_evo", "pso", "firefly_algorithm",
            "adaptive_tabu_greywolf", "hybrid_vndx", "minimize", "basinhopping", "dual_annealing",
            "simulated_annealing", "mls", "greedy_mls", "ordered_greedy_mls", "greedy_ils", "pyatf_strategies",
        ),
        "auto",
    ),
}  # fmt: skip
_FORBIDDEN = ("grid_size_x", "grid_size_y", "grid_size_z", "time")
_RELATIVE = 1e-5  # that of numpy.allclose, by which Kernel Tuner compares
_LIMITS = ("max_fevals", "time_limit", "fraction")  # of strategy_options; the others are another search's own


def tune_kernel(
    kernel_name: str, kernel_source: Any, problem_size: Any, arguments: Sequence[Any],
    tune_params: Mapping[str, Sequence[Any]], grid_div_x: Any = None, grid_div_y: Any = None,
    grid_div_z: Any = None, restrictions: Any = None, answer: Sequence[Any] | None = None, atol: float = 1e-6,
    verify: Callable[..., bool] | None = None, verbose: bool = False, lang: str | None = None,
    device: int | str = "auto", platform: int = 0, smem_args: Mapping[str, Any] | None = None,
    cmem_args: Mapping[str, Any] | None = None, texmem_args: Mapping[str, Any] | None = None,
    compiler: str | None = None, compiler_options: Sequence[str] | None = None,
    defines: Mapping[str, Any] | None = None, log: Any = None, iterations: int | None = None,
    block_size_names: Sequence[str] | None = None, quiet: bool = False, strategy: str | None = None,
    strategy_options: Mapping[str, Any] | None = None, cache: str | os.PathLike[str] | None = None,
    metrics: Mapping[str, Any] | None = None, simulation_mode: bool | None = None,
    parallel: bool | int | None = None,  # noqa: ARG001 - compiling is, measuring is not
    observers: Sequence[Any] | None = None, objective: str | None = None,
    objective_higher_is_better: bool | None = None, objectives: Mapping[str, bool] | None = None,
    seed: int | None = None,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:  # fmt: skip
    """Tune a CUDA kernel: (a dict for each configuration with its parameters, ``time`` in milliseconds, ``times``,
    the metrics and what it took; what is known of the device, with ``best_config``).

    As Kernel Tuner's function of this name, but for these: ``time`` is the median by which autotune ranks, and what
    failed has an ``__error__`` and no ``time``; without an ``answer`` each configuration is compared with its own first
    run; without ``iterations`` samples are taken until the median is known; without ``device`` it is the first GPU, or
    the cpu where there is none. Each configuration is printed when it was tried, unless ``quiet``; ``verbose`` says why
    one failed. What has no counterpart is left out with a warning. Raises AutotuneError.
    """
    began = time.perf_counter()
    _warn(platform=platform, compiler=compiler, log=log, observers=observers)
    figures, parameters = Metrics(metrics or {}), _parameters(tune_params, restrictions)
    search = {**_search(strategy, strategy_options or {}, parameters.space), "seed": seed or 0}
    told = _Lines(parameters, figures, quiet, verbose)
    aim = _choose_goal(objectives or {objective or "time": objective_higher_is_better})
    if simulation_mode:
        if not cache:
            raise UsageError("simulation_mode reads times from a cache file: name it with cache=")
        return simulate(json_path(cache), parameters, search, figures, aim, told.tell, began)
    aim = _measurable(aim, figures, search)
    if iterations is not None and iterations < 1:
        raise UsageError(
            f"iterations {iterations}: 1 or more samples are taken; leave it out for as many as needed"
        )
    asked = AskedKernel(
        kernel_name, kernel_source, problem_size, arguments, parameters, (grid_div_x, grid_div_y, grid_div_z),
        block_size_names, lang, smem_args, cmem_args, texmem_args, compiler_options, defines,
    )  # fmt: skip
    if verify is None and answer is not None and all(one is None for one in answer):
        answer = None
    place, compared = _device(device), verify is None and answer is not None
    roles = _roles(asked, answer, verify, place)
    expected = {one.output: one.expected for one in _select_written(roles)} if compared else None
    kernel = asked.kernel(roles, {"relative": _RELATIVE, "absolute": atol} if compared else None)
    with ExitStack() as held:
        folder = _store(cache) if cache else Path(held.enter_context(TemporaryDirectory("autotune")))
        try:
            study = sweep(
                kernel, inputs=asked.inputs(roles), device=place, samples=iterations or 0, out=folder,
                progress=lambda *_: nullcontext(told), expected=expected,
                compiler="nvcc" if asked.needs_nvcc and place != "cpu" else "", **search,
            )  # fmt: skip
        except NothingMeasured as problem:
            if cache:
                raise
            raise NothingMeasured(str(problem).replace(f"({folder})", "which cache='NAME' keeps")) from None
    trials = study.record.selection
    wrong = set() if verify is None else _find_refused(asked, roles, trials, verify, answer, atol, place)
    results = [result(parameters, trial, figures, wrong) for trial in trials]
    if cache:
        write_cache(study.record, json_path(cache))
    if not any("time" in one for one in results):
        raise NothingMeasured(f"verify rejected all {len(wrong)} configurations that were measured")
    told_of = {"iterations": iterations or "auto", "compiler_options": list(compiler_options or ())}
    env = {**device_environment(study.record.about), **told_of, **environment(results, aim, began)}
    told.end(env["best_config"], aim[0])
    return results, env


def tune_cache(
    cache_path: str | os.PathLike[str], restrictions: Any = None, **kwargs: Any
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """``tune_kernel`` in simulation mode with the parameters that a cache file names. Raises AutotuneError."""
    content = read_cache(json_path(cache_path))
    return tune_kernel(
        str(content["kernel_name"]), "", content["problem_size"], [], content["tune_params"],
        restrictions=restrictions, cache=cache_path, simulation_mode=True, **kwargs,
    )  # fmt: skip


def run_kernel(
    kernel_name: str, kernel_source: Any, problem_size: Any, arguments: Sequence[Any],
    params: Mapping[str, Any], grid_div_x: Any = None, grid_div_y: Any = None, grid_div_z: Any = None,
    lang: str | None = None,
    device: int | str = "auto", platform: int = 0, smem_args: Mapping[str, Any] | None = None,
    cmem_args: Mapping[str, Any] | None = None, texmem_args: Mapping[str, Any] | None = None,
    compiler: str | None = None, compiler_options: Sequence[str] | None = None,
    defines: Mapping[str, Any] | None = None, block_size_names: Sequence[str] | None = None,
    quiet: bool = False,  # noqa: ARG001 - nothing is printed
    log: Any = None,
) -> list[Any]:  # fmt: skip
    """Compile and run a CUDA kernel once, in this process: the arguments as they are afterwards. Raises
    AutotuneError."""
    _warn(platform=platform, compiler=compiler, log=log)
    parameters = Parameters({name: [value] for name, value in params.items()})
    asked = AskedKernel(
        kernel_name, kernel_source, problem_size, arguments, parameters, (grid_div_x, grid_div_y, grid_div_z),
        block_size_names, lang, smem_args, cmem_args, texmem_args, compiler_options, defines,
    )  # fmt: skip
    (after,) = _runs(asked, keep_contents(asked.arguments()), [{}], _device(device))
    return after


# -- what is asked for ------------------------------------------------------------------------------------------

_NO_COUNTERPART = {
    "platform": "it names an OpenCL platform, and only CUDA is tuned",
    "compiler": "it names a host compiler for lang='C', and only CUDA is tuned; the environment's CXX names the cpu "
    "device's",
    "log": "what a sweep does is in its record; Python's logger 'autotune' has what a person should know",
    "observers": NOTHING,
}


def _warn(**given: Any) -> None:
    for name, value in given.items():
        if value:
            warn(f"{name} is left out, which has no counterpart in autotune: {_NO_COUNTERPART[name]}")


def _choose_goal(objectives: Mapping[str, bool | None]) -> tuple[str, bool]:
    if len(objectives) > 1:
        warn("more than one of objectives has no counterpart in autotune: results are ranked by the first")
    return choose_goal(*next(iter(objectives.items())))


def _measurable(aim: tuple[str, bool], metrics: Metrics, search: Mapping[str, Any]) -> tuple[str, bool]:
    """``aim``, where a sweep has that figure."""
    name = aim[0]
    if name != "time" and name not in metrics:
        warn(f"objective {name!r} is none of metrics and is not observed: results are ranked by time")
        return "time", False
    if name != "time" and search["search"] != "exhaustive":
        warn(f"objective {name!r}: a search is led by time; strategy='brute_force' tries all")
    return aim


def _parameters(tune_params: Mapping[str, Sequence[Any]], restrictions: Any) -> Parameters:
    for name in tune_params:
        if name in _FORBIDDEN:
            raise UsageError(f"tune parameter {name} has a name that Kernel Tuner forbids: take another one")
    given = [restrictions] if isinstance(restrictions, str) or callable(restrictions) else restrictions or []
    listed = [one[:2] if isinstance(one, tuple) and len(one) == 3 else one for one in given]
    for one in listed:
        is_pair = isinstance(one, tuple) and len(one) == 2 and callable(one[0])
        if not isinstance(one, str) and not callable(one) and not is_pair:
            raise UsageError(
                f"restriction {one!r} has no counterpart in autotune: give texts, functions of the parameters, or "
                "pairs of a function and the names of those that it takes"
            )
    return Parameters({name: list(some) for name, some in tune_params.items()}, restrictions=listed)


def _device(device: int | str) -> str:
    return f"cuda:{device}" if isinstance(device, int) else _find_device() if device == "auto" else device


@cache
def _find_device() -> str:
    """The device of a call that names none: looked for, with a warning where it is the cpu, once in a process."""
    with closing(open_backend("auto")) as backend:
        return "cpu" if backend.device.kind == "cpu" else "cuda:0"


def _search(strategy: Any, options: Mapping[str, Any], space: Space) -> dict[str, Any]:
    """The sweep's words for it; all of a space is tried only where that can be listed."""
    name = strategy or "brute_force"
    if not isinstance(name, str):
        warn("a strategy of your own has no counterpart in autotune: the search is auto")
    elif name not in _SEARCHES:
        raise UsageError(
            f"strategy {name!r} is not one of Kernel Tuner's that autotune supports: {', '.join(_SEARCHES)}"
        )
    search: dict[str, Any] = {"search": _SEARCHES[name] if isinstance(name, str) else "auto"}
    if unknown := [option for option in options if option not in _LIMITS]:
        warn(
            f"strategy_options: {', '.join(unknown)} ignored, they belong to another search "
            f"({', '.join(_LIMITS)} are supported)"
        )
    if options.get("max_fevals") is not None:
        search["trials"] = int(options["max_fevals"])
    elif options.get("fraction") is not None:
        search["trials"] = _share(options["fraction"], space)
    elif {"popsize", "maxiter"} <= options.keys():  # a population's evaluations
        search["trials"] = int(options["popsize"]) * int(options["maxiter"])
    if options.get("time_limit") is not None:
        search["time"] = float(options["time_limit"])
    if search["search"] == "exhaustive" and not can_be_listed(space):
        if len(search) == 1:
            raise UsageError(
                "the space is too large to try all of it: give strategy_options={'max_fevals': …} or a time_limit, "
                "or take another strategy"
            )
        search["search"] = "random"  # nothing tells it from a walk that ends long before the space does
    return search


def _share(fraction: Any, space: Space) -> int:
    """Return the number of configurations in that fraction of the space."""
    if not isinstance(fraction, int | float) or not 0 < fraction <= 1:
        raise UsageError(f"strategy_options: fraction is {fraction!r}, and a share is above 0 and at most 1")
    if (members := list_configurations(space)) is None:
        raise UsageError("strategy_options: the space is too large to take a fraction of: give max_fevals")
    return math.ceil(float(fraction) * len(members))


def _store(cache: str | os.PathLike[str]) -> Path:
    """Return the folder of a sweep's record: next to the cache file, so that the next call continues it."""
    path = json_path(cache)
    folder = path.with_suffix(".autotune")
    if path.exists() and not folder.is_dir():
        raise UsageError(
            f"cache {path} was written by Kernel Tuner, and times of two tuners are not put together: name another file"
        )
    return folder


def _runs(
    asked: AskedKernel, arguments: Sequence[KernelArgument], chosen: Sequence[Mapping[str, Any]], device: str
) -> list[list[Any]]:
    """The arguments after one run, in this process, of each of ``chosen``; what is not named is as in control."""
    family = asked.kernel(arguments).family
    inputs, cache = bind(family, asked.inputs(arguments), {}, {}), Cache(default_root())
    configurations = [Configuration({**family.space.control, **policies}) for policies in chosen]
    with closing(open_backend(device)) as backend:
        runs = run_each(family, configurations, inputs, backend, cache)
        return [[one.value_after(outputs) for one in arguments] for outputs in runs]


def _roles(
    asked: AskedKernel, answer: Sequence[Any] | None, verify: Any, device: str
) -> list[KernelArgument]:
    """The arguments with what each is for. Where the text hands a pointer on, one run shows whether it is written; for
    a ``verify`` of the caller's, what is not written keeps what it held before."""
    arguments = asked.arguments(answer)
    if not all(one.is_certain for one in arguments):
        arguments = _observe_roles(asked, arguments, device)
    if verify is not None:
        arguments = keep_contents(arguments)
    if not _select_written(arguments):
        raise UsageError(
            f"kernel {asked.name} writes to none of its arguments, as far as its source shows: name them with answer="
        )
    return arguments


def _observe_roles(
    asked: AskedKernel, arguments: Sequence[KernelArgument], device: str
) -> list[KernelArgument]:
    """What a run shows of the pointers that the text hands on; where there can be none, or nothing changes, they are
    taken for written."""
    every = keep_contents(arguments)
    try:
        (after,) = _runs(asked, every, [{}], device)
    except CompilerError:  # by the compiler that is a library; nvcc may have the headers
        return every
    is_written = [
        one.role == "inout" or (not one.is_certain and one.value.tobytes() != then.tobytes())
        for one, then in zip(arguments, after, strict=True)
    ]
    if not any(is_written):  # what it wrote is what was there
        return every
    return [
        one if one.is_certain else replace(one, role="inout" if written else "input", is_certain=True)
        for one, written in zip(arguments, is_written, strict=True)
    ]


def _select_written(arguments: Sequence[KernelArgument]) -> list[KernelArgument]:
    return [one for one in arguments if one.role in ("output", "inout")]


# -- what came of it --------------------------------------------------------------------------------------------


class _Lines:
    """Prints each configuration when it was tried (``autotune.engine``'s Watch)."""

    def __init__(self, parameters: Parameters, metrics: Metrics, quiet: bool, verbose: bool) -> None:
        self._parameters, self._metrics, self._quiet, self._verbose = parameters, metrics, quiet, verbose
        self._seen: set[str] = set()

    @property
    def unfinished(self) -> str:
        return ""

    def report_compiled(self, done: int, total: int) -> None:
        """Nothing is said of it."""

    def update(self, trial: Trial, _done: int, _best_ms: float, _busy_share: float) -> None:
        if trial.configuration.id not in self._seen:
            self._seen.add(trial.configuration.id)
            self.tell(result(self._parameters, trial, self._metrics, ()))

    def tell(self, found: Mapping[str, Any]) -> None:
        if not self._quiet:
            print(line(found, [*self._parameters.values, *self._metrics], self._verbose), flush=True)

    def end(self, best: Mapping[str, Any], objective: str) -> None:
        if not self._quiet:
            print(f"best configuration by {objective}:")
            self.tell(best)


def _find_refused(
    asked: AskedKernel, arguments: Sequence[KernelArgument], trials: Sequence[Trial], verify: Callable[..., bool],
    answer: Sequence[Any] | None, atol: float, device: str,
) -> set[str]:  # fmt: skip
    """The ids of what the caller's function refuses: each that was measured is run once more for it, here."""
    named = {"atol": atol} if "atol" in inspect.signature(verify).parameters else {}
    measured = [trial.configuration for trial in trials if trial.measurement]
    after = _runs(asked, arguments, measured, device)
    return {one.id for one, then in zip(measured, after, strict=True) if not verify(answer, then, **named)}
