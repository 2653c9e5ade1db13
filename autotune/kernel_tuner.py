"""Coming from Kernel Tuner: ``from autotune.kernel_tuner import tune_kernel``, and the rest of the program stays.

The arguments are those of Kernel Tuner 1.5.0, and so are the results; in between lie a plain kernel
(``autotune.Kernel``) and a sweep (``autotune.sweep``): compiled ahead in parallel, every configuration verified, timed
in a process of its own. An argument that has no counterpart is refused, with the reason.
"""

import inspect
import json
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from autotune import __version__
from autotune.compile import Cache, default_root
from autotune.declaration import (
    BLOCK_NAMES,
    AskedKernel,
    Configuration,
    KernelArgument,
    Parameters,
    Space,
    bind,
    can_be_listed,
    evaluated,
    kept,
)
from autotune.device import foreign, open_backend, run_each
from autotune.errors import CompilerError, UsageError
from autotune.files import write_text
from autotune.record import ERRORS, Trial, metadata_t4, results_t4, time_ms, write_cache
from autotune.report import sweep

__all__ = [
    "get_best_config",
    "get_config_string",
    "run_kernel",
    "store_metadata_file",
    "store_output_file",
    "tune_kernel",
]


def __dir__() -> list[str]:
    return __all__


_LANGUAGES = ("CUDA", "CUPY", "NVCUDA", "PYCUDA")
_SEARCHES = {
    "brute_force": "exhaustive", "random_sample": "random", "bayes_opt": "auto", "skopt": "auto",
    "genetic_algorithm": "nsgaii", "nsga2": "nsgaii", "nsga3": "nsgaii", "diff_evo": "tpe", "pso": "tpe",
    "firefly_algorithm": "tpe", "adaptive_tabu_greywolf": "tpe", "hybrid_vndx": "tpe", "minimize": "auto",
    "basinhopping": "auto", "dual_annealing": "auto", "simulated_annealing": "auto", "mls": "auto",
    "greedy_mls": "auto", "ordered_greedy_mls": "auto", "greedy_ils": "auto",
}  # fmt: skip
_FORBIDDEN = ("grid_size_x", "grid_size_y", "grid_size_z", "time")
_RELATIVE = 1e-5  # that of numpy.allclose, by which Kernel Tuner compares
_TIMES = {"compile_time": "compile", "verification_time": "verify", "benchmark_time": "measure"}


def tune_kernel(
    kernel_name: str,
    kernel_source: Any,
    problem_size: Any,
    arguments: Sequence[Any],
    tune_params: Mapping[str, Sequence[Any]],
    grid_div_x: Any = None,
    grid_div_y: Any = None,
    grid_div_z: Any = None,
    restrictions: Any = None,
    answer: Sequence[Any] | None = None,
    atol: float = 1e-6,
    verify: Callable[..., bool] | None = None,
    verbose: bool = False,
    lang: str | None = None,
    device: int | str = "auto",
    platform: int = 0,
    smem_args: Mapping[str, Any] | None = None,
    cmem_args: Mapping[str, Any] | None = None,
    texmem_args: Mapping[str, Any] | None = None,
    compiler: str | None = None,
    compiler_options: Sequence[str] | None = None,
    defines: Mapping[str, Any] | None = None,
    log: Any = None,
    iterations: int | None = None,
    block_size_names: Sequence[str] | None = None,
    quiet: bool = False,  # noqa: ARG001 - nothing is printed
    strategy: str | None = None,
    strategy_options: Mapping[str, Any] | None = None,
    cache: str | os.PathLike[str] | None = None,
    metrics: Mapping[str, Any] | None = None,
    simulation_mode: bool | None = None,
    parallel: bool | int | None = None,  # noqa: ARG001 - compiling is, measuring is not
    observers: Sequence[Any] | None = None,
    objective: str | None = None,
    objective_higher_is_better: bool | None = None,
    objectives: Mapping[str, bool] | None = None,
    seed: int | None = None,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Tune a CUDA kernel: (a dict for each configuration with its parameters, ``time`` in milliseconds, ``times``,
    the metrics and what it took; what is known of the device, with ``best_config``).

    As Kernel Tuner's function of this name, but for these: ``time`` is the median by which autotune ranks, and what
    failed has an ``__error__`` and no ``time``; without an ``answer`` each configuration is held against its own first
    run; without ``iterations`` samples are taken until the median is known; without ``device`` it is the first GPU, or
    the cpu where there is none. Nothing is printed; ``verbose`` shows a bar on a terminal. Raises AutotuneError.
    """
    began = time.perf_counter()
    _refuse(
        platform=platform, texmem_args=texmem_args, compiler=compiler, log=log, simulation_mode=simulation_mode,
        observers=observers, objectives=objectives,
    )  # fmt: skip
    search = _search(strategy, strategy_options or {}, seed)
    _check_objective(objective, objective_higher_is_better, metrics or {}, search)
    for name in tune_params:
        if name in _FORBIDDEN:
            raise UsageError(f"tune parameter {name} has a name that Kernel Tuner forbids: take another one")
    parameters = Parameters(
        {name: list(values) for name, values in tune_params.items()}, restrictions=_listed(restrictions)
    )
    asked = _asked(
        kernel_name, kernel_source, arguments, parameters, problem_size, (grid_div_x, grid_div_y, grid_div_z),
        block_size_names, lang, smem_args, cmem_args, compiler_options, defines,
    )  # fmt: skip
    place, compared = _device(device), verify is None and answer is not None
    roles = _roles(asked, _answers(answer), verify, place)
    kernel = asked.kernel(roles, {"relative": _RELATIVE, "absolute": atol} if compared else None)
    search = _ending(search, kernel.family.space)
    with ExitStack() as held:
        folder = (
            _store(cache) if cache is not None else Path(held.enter_context(TemporaryDirectory("autotune")))
        )
        study = sweep(
            kernel, inputs=asked.inputs(roles), device=place, samples=iterations, progress=verbose, out=folder,
            compiler="nvcc" if asked.needs_nvcc and _is_gpu(place) else "",
            expected={one.output: one.expected for one in _written(roles)} if compared else None, **search,
        )  # fmt: skip
    trials = study.record.selection
    wrong = set() if verify is None else _refused(asked, roles, trials, verify, answer, atol, place)
    results = [_result(parameters, trial, metrics or {}, wrong) for trial in trials]
    if cache is not None:
        write_cache(study.record, _json(cache))
    best = get_best_config(results, objective or "time", bool(objective_higher_is_better))
    return results, _environment(study.record.about.device_name, results, best, began)


def run_kernel(
    kernel_name: str,
    kernel_source: Any,
    problem_size: Any,
    arguments: Sequence[Any],
    params: Mapping[str, Any],
    grid_div_x: Any = None,
    grid_div_y: Any = None,
    grid_div_z: Any = None,
    lang: str | None = None,
    device: int | str = "auto",
    platform: int = 0,
    smem_args: Mapping[str, Any] | None = None,
    cmem_args: Mapping[str, Any] | None = None,
    texmem_args: Mapping[str, Any] | None = None,
    compiler: str | None = None,
    compiler_options: Sequence[str] | None = None,
    defines: Mapping[str, Any] | None = None,
    block_size_names: Sequence[str] | None = None,
    quiet: bool = False,  # noqa: ARG001 - nothing is printed
    log: Any = None,
) -> list[Any]:
    """Compile and run a CUDA kernel once, in this process: the arguments as they are afterwards. Raises
    AutotuneError."""
    _refuse(platform=platform, texmem_args=texmem_args, compiler=compiler, log=log)
    asked = _asked(
        kernel_name, kernel_source, arguments, Parameters({name: [value] for name, value in params.items()}),
        problem_size, (grid_div_x, grid_div_y, grid_div_z), block_size_names, lang, smem_args, cmem_args,
        compiler_options, defines,
    )  # fmt: skip
    (after,) = _runs(asked, kept(asked.arguments()), [{}], _device(device))
    return after


# -- what is asked for ------------------------------------------------------------------------------------------

_NO_COUNTERPART = {
    "platform": "it names an OpenCL platform, and only CUDA is tuned",
    "texmem_args": "texture references are gone from CUDA 12; an array in a texture is a memory policy of a family",
    "compiler": "it names a host compiler for lang='C', and only CUDA is tuned; the environment's CXX names the cpu "
    "device's",
    "log": "what a sweep does is in its record; Python's logger 'autotune' has what a person should know",
    "simulation_mode": "import the cache file (autotune import) and look at it, or give it to Kernel Tuner",
    "observers": "power and clocks are not observed; hardware counters: autotune profile",
    "objectives": "results are ranked by one figure: time, or one of metrics",
}


def _refuse(**given: Any) -> None:
    for name, value in given.items():
        if value:
            raise UsageError(f"{name} has no counterpart in autotune: {_NO_COUNTERPART[name]}; leave it out")


def _asked(
    name: str, source: Any, arguments: Sequence[Any], parameters: Parameters, problem_size: Any, divisors: Any,
    block_size_names: Sequence[str] | None, lang: str | None, smem_args: Mapping[str, Any] | None,
    cmem_args: Mapping[str, Any] | None, compiler_options: Sequence[str] | None, defines: Mapping[str, Any] | None,
) -> AskedKernel:  # fmt: skip
    if lang is not None and lang.upper() not in _LANGUAGES:
        raise UsageError(
            f"lang {lang!r} has no counterpart in autotune, which tunes CUDA kernels: leave it out, or say CUDA"
        )
    if unknown := [key for key in smem_args or {} if key != "size"]:
        raise UsageError(f"smem_args: {unknown[0]!r} has no counterpart in autotune: size has")
    return AskedKernel(
        name=name, source=source, given=tuple(map(_on_host, arguments)), parameters=parameters,
        problem_size=problem_size, divisors=divisors, block_names=_block_names(block_size_names, parameters.values),
        shared_bytes=(smem_args or {}).get("size", 0),
        symbols={key: np.atleast_1d(_on_host(value)) for key, value in (cmem_args or {}).items()},
        options=tuple(compiler_options or ()), defines=defines,
    )  # fmt: skip


def _device(device: int | str) -> str:
    return f"cuda:{device}" if isinstance(device, int) else device


def _is_gpu(device: str) -> bool:
    if device != "auto":
        return device != "cpu"
    with closing(open_backend(device)) as backend:
        return backend.device.kind != "cpu"


def _search(strategy: Any, options: Mapping[str, Any], seed: int | None) -> dict[str, Any]:
    """The sweep's words for it."""
    name = strategy or "brute_force"
    if not isinstance(name, str) or name not in _SEARCHES:
        raise UsageError(
            f"strategy {name!r} has no counterpart in autotune: {', '.join(_SEARCHES)} have (docs/from-kernel-tuner.md)"
        )
    for option in options:
        if option not in ("max_fevals", "time_limit"):
            raise UsageError(
                f"strategy option {option!r} has no counterpart in autotune (max_fevals, time_limit have): leave it out"
            )
    search: dict[str, Any] = {"search": _SEARCHES[name], "seed": seed or 0}
    if options.get("max_fevals") is not None:
        search["trials"] = int(options["max_fevals"])
    if options.get("time_limit") is not None:
        search["time"] = float(options["time_limit"])
    return search


def _ending(search: dict[str, Any], space: Space) -> dict[str, Any]:
    """The search, which tries all of a space only where that can be listed. Raises UsageError."""
    if search["search"] != "exhaustive" or can_be_listed(space):
        return search
    if "trials" not in search and "time" not in search:
        raise UsageError(
            "the space is too large to try all of it: give strategy_options={'max_fevals': …} or a time_limit, "
            "or take another strategy"
        )
    return {**search, "search": "random"}  # nothing tells it from a walk that ends long before the space does


def _check_objective(
    objective: Any, higher: Any, metrics: Mapping[str, Any], search: Mapping[str, Any]
) -> None:
    if objective in (None, "time"):
        return
    if objective not in metrics or not isinstance(higher, bool):
        raise UsageError(
            f"objective {objective!r}: it is time, or one of metrics ({', '.join(metrics) or 'none given'}) with "
            "objective_higher_is_better"
        )
    if search["search"] != "exhaustive":
        raise UsageError(
            f"objective {objective!r}: a search goes by time; take strategy='brute_force', which tries all"
        )


def _listed(restrictions: Any) -> list[Any]:
    if restrictions is None:
        return []
    given = [restrictions] if isinstance(restrictions, str) or callable(restrictions) else list(restrictions)
    for one in given:
        if not isinstance(one, str) and not callable(one):
            raise UsageError(
                f"restriction {one!r} has no counterpart in autotune: texts and functions of the parameters have"
            )
    return given


def _block_names(names: Sequence[str] | None, params: Mapping[str, Any]) -> tuple[str, ...]:
    """Those given, else the usual ones in whatever case the parameters are written."""
    if names is None:
        cased = {name.lower(): name for name in params}
        return tuple(cased.get(name, name) for name in BLOCK_NAMES)
    return (*names, *BLOCK_NAMES[len(names) :])[:3]


def _store(cache: str | os.PathLike[str]) -> Path:
    """Where the record of a sweep lies: beside the cache file, so that the next call goes on from it."""
    path = _json(cache)
    folder = path.with_suffix(".autotune")
    if path.exists() and not folder.is_dir():
        raise UsageError(
            f"cache {path} was written by Kernel Tuner, and times of two tuners are not put together: name another file"
        )
    return folder


def _json(path: str | os.PathLike[str]) -> Path:
    text = os.fspath(path)
    return Path(text if text.endswith(".json") else f"{text}.json")


def _runs(
    asked: AskedKernel, arguments: Sequence[KernelArgument], chosen: Sequence[Mapping[str, Any]], device: str
) -> list[list[Any]]:
    """The arguments after one run, in this process, of each of ``chosen``; what is not named is as in control."""
    family = asked.kernel(arguments).family
    inputs, cache, after = bind(family, asked.inputs(arguments), {}, {}), Cache(default_root()), []
    configurations = [Configuration({**family.space.control, **policies}) for policies in chosen]
    with closing(open_backend(device)) as backend:
        for outputs in run_each(family, configurations, inputs, backend, cache):
            after.append(
                [
                    outputs[one.output].reshape(one.value.shape) if one.output in outputs else one.value
                    for one in arguments
                ]
            )
    return after


def _on_host(value: Any) -> Any:
    """An array or number of numpy. Raises UsageError."""
    if isinstance(value, np.ndarray | np.generic):
        return value
    if hasattr(value, "__cuda_array_interface__") or hasattr(value, "__dlpack__"):
        seen = foreign.view(value)
        return np.asarray(foreign.as_host(value) if seen is None else seen.to_host())
    if isinstance(value, bool | int | float):
        raise UsageError(f"argument {value!r} has no type: give numpy.int32({value!r}) or the like")
    raise UsageError(
        f"an argument is a {type(value).__name__}, which has no counterpart in autotune: arrays and numbers of numpy, "
        "torch and cupy have"
    )


def _answers(answer: Sequence[Any] | None) -> list[Any] | None:
    if answer is None:
        return None
    return [None if one is None else np.asarray(one) if np.isscalar(one) else _on_host(one) for one in answer]


def _roles(
    asked: AskedKernel, answer: Sequence[Any] | None, verify: Any, device: str
) -> list[KernelArgument]:
    """The arguments with what each is for. Where the text hands a pointer on, one run shows whether it is written; for
    a ``verify`` of the caller's, what is not written keeps what it held before."""
    found = asked.arguments(answer)
    if not all(one.is_certain for one in found):
        found = _seen(asked, found, device)
    if verify is not None:
        found = kept(found)
    if not _written(found):
        raise UsageError(
            f"kernel {asked.name} writes to none of its arguments, as far as its text tells: say which with answer="
        )
    return found


def _seen(asked: AskedKernel, arguments: Sequence[KernelArgument], device: str) -> list[KernelArgument]:
    """What a run shows of the pointers that the text hands on; where there can be none, they are taken for written."""
    every = kept(arguments)
    try:
        (after,) = _runs(asked, every, [{}], device)
    except CompilerError:  # by the compiler that is a library; nvcc may have the headers
        return every
    is_written = [
        one.role == "inout" or (not one.is_certain and one.value.tobytes() != then.tobytes())
        for one, then in zip(arguments, after, strict=True)
    ]
    return [
        one if one.is_certain else replace(one, role="inout" if written else "input", is_certain=True)
        for one, written in zip(arguments, is_written, strict=True)
    ]


def _written(arguments: Sequence[KernelArgument]) -> list[KernelArgument]:
    return [one for one in arguments if one.role in ("output", "inout")]


# -- what came of it --------------------------------------------------------------------------------------------


def _refused(
    asked: AskedKernel, arguments: Sequence[KernelArgument], trials: Sequence[Trial], verify: Callable[..., bool],
    answer: Sequence[Any] | None, atol: float, device: str,
) -> set[str]:  # fmt: skip
    """The ids of what the caller's function refuses: each that was measured is run once more for it, here."""
    named = {"atol": atol} if "atol" in inspect.signature(verify).parameters else {}
    measured = [trial.configuration for trial in trials if trial.measurement]
    after = _runs(asked, arguments, measured, device)
    return {one.id for one, then in zip(measured, after, strict=True) if not verify(answer, then, **named)}


def _result(
    parameters: Parameters, trial: Trial, metrics: Mapping[str, Any], wrong: set[str]
) -> dict[str, Any]:
    """One configuration as Kernel Tuner tells it; milliseconds."""
    result = parameters.given(trial.configuration)
    measured = trial.measurement
    is_right = trial.configuration.id not in wrong
    if measured and is_right:
        result["time"] = time_ms(trial)
        result["times"] = list(measured.times_ms) or [measured.median_ms]
        for name, metric in metrics.items():
            result[name] = metric(result) if callable(metric) else _metric(name, metric, result)
    else:
        result["__error__"] = "RuntimeFailedConfig" if measured else ERRORS[trial.state]
        result["reason"] = "refused by verify" if measured else trial.reason
    result |= {name: trial.phases_ms.get(phase, 0.0) for name, phase in _TIMES.items()}
    return result | {
        "strategy_time": 0.0,
        "framework_time": 0.0,
        "timestamp": time.strftime("%Y-%m-%d %H:%M:%S%z"),
    }


def _metric(name: str, text: Any, result: Mapping[str, Any]) -> Any:
    """A metric that is a text over parameters, figures and the metrics before it."""
    if not isinstance(text, str):
        raise UsageError(f"metric {name!r} is neither a text nor a function")
    words = {f"known_{number}": value for number, value in enumerate(result.values())}
    names = dict(zip(result, words, strict=True))
    written = "".join(names.get(part, part) for part in re.split(r"([A-Za-z_]\w*)", text))
    return evaluated(written, words, where=f"metric {name}")


def _environment(
    device_name: str, results: Sequence[Mapping[str, Any]], best: Mapping[str, Any], began: float
) -> dict[str, Any]:
    totals = {
        f"total_{name}": sum(one[name] for one in results)
        for name in (*_TIMES, "strategy_time", "framework_time")
    }
    elapsed_ms = (time.perf_counter() - began) * 1e3
    return {
        "device_name": device_name, "autotune_version": __version__, "best_config": dict(best), **totals,
        "overhead_time": elapsed_ms - sum(totals.values()),
    }  # fmt: skip


def get_best_config(
    results: Sequence[Mapping[str, Any]], objective: str, objective_higher_is_better: bool = False
) -> Mapping[str, Any]:
    """The result with the best figure. Raises UsageError where none has it."""
    known = [one for one in results if isinstance(one.get(objective), int | float)]
    if not known:
        raise UsageError(f"no configuration has a {objective}")
    return (max if objective_higher_is_better else min)(known, key=lambda one: float(one[objective]))


def get_config_string(
    params: Mapping[str, Any], keys: Sequence[str] | None = None, units: Mapping[str, str] | None = None
) -> str:
    """``name=value`` of each of ``keys``, floats to three places."""
    shown = {name: value for name, value in params.items() if not keys or name in keys}
    texts = {n: f"{v:.3f}" if isinstance(v, float) else str(v) for n, v in shown.items()}
    return ", ".join(f"{name}={text}{(units or {}).get(name, '')}" for name, text in texts.items())


def store_output_file(
    output_filename: str | os.PathLike[str],
    results: Sequence[Mapping[str, Any]],
    tune_params: Mapping[str, Any],
    objective: str = "time",
) -> None:
    """Write results as a T4 file. Raises StoreError."""
    content = results_t4(results, tune_params, objective)
    write_text(_json(output_filename), json.dumps(content, default=_plain) + "\n")


def store_metadata_file(metadata_filename: str | os.PathLike[str]) -> None:
    """Write what is known of this machine as T4 metadata. Raises StoreError."""
    write_text(_json(metadata_filename), json.dumps(metadata_t4(), indent=2) + "\n")


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not written as JSON")
