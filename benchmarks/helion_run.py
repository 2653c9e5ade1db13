"""A family's configurations under Helion's tuner for kernels of others: the kernel text, inputs and expected outputs
that kernel_tuner_run.py gives Kernel Tuner.

    python benchmarks/helion_run.py --family allpairs --workload hapmap3 --preset tiles --out helion.json

``helion.autotuner.external.autotune`` is given one parameter, the number of a configuration, and ``FiniteSearch``,
which visits all of them: each is compiled by NVRTC through CuPy, its output is compared with the expected one, and it
is timed for 50 ms with a flushed L2 cache, as Helion does. Its processes for measurements are off, since a CuPy module
cannot be sent to them. Needs helion, torch and CuPy, and a family of one kernel with one output that no policy stores
in another way. Helion 1.5.0 is the newest that imports with PyTorch 2.11: 1.5.1 wants a name that is not there.
"""

import csv
import json
import re
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any

from harness import check
from kernel_tuner_run import INDEX, Task, read_task


def compiler_of(work: Task) -> tuple[Callable[[Any], Callable[..., Any]], Any]:
    """What compiles a configuration into a function of a tensor that gives the output, and the expected output."""
    cupy, torch = import_module("cupy"), import_module("torch")
    resident: dict[int, Any] = {}
    (place,) = (number for number, wanted in enumerate(work.answer) if wanted is not None)
    expected = torch.from_numpy(work.answer[place]).cuda()

    def placed(value: Any) -> Any:
        if not hasattr(value, "nbytes") or not value.shape:
            return value
        return resident.setdefault(id(value), cupy.asarray(value))

    def compile_one(config: Any) -> Callable[..., Any]:
        index = int(config[INDEX])
        macros = f"#define {INDEX} {index}\n#define block_size_x {work.blocks[index]}\n"
        module = cupy.RawModule(code=macros + work.source, options=tuple(work.options))
        kernel = module.get_function("plain")
        output = torch.zeros_like(expected)
        words = [placed(column[index]) for column in work.parts]
        words[place] = cupy.asarray(output)
        grid, block = tuple(work.grids[index]), (work.blocks[index],)

        def launch(_: Any) -> Any:
            kernel(grid, block, tuple(words))
            return output

        return launch

    return compile_one, expected


def main(words: Sequence[str] | None = None) -> int:
    asked, family, inputs, configurations, work = read_task(__doc__, "helion.json", words)
    if asked.check:
        print(f"Helion: {len(work.configurations)} configurations, {len(work.parts)} arguments")
        return check(family, [inputs], configurations, peers=("helion", "torch", "cupy"))

    began = time.perf_counter()
    torch, config = import_module("torch"), import_module("helion").Config
    fragment = import_module("helion.autotuner").EnumFragment
    compile_one, expected = compiler_of(work)
    numbers = range(len(work.configurations))
    log = asked.out.with_suffix(".log")
    import_module("helion.autotuner.external").autotune(
        {INDEX: fragment(tuple(numbers))},
        compile_one,
        (expected,),
        baseline_fn=torch.clone,
        algorithm="FiniteSearch",
        configs=[config.from_dict({INDEX: number}) for number in numbers],
        autotune_benchmark_subprocess=False,
        autotune_progress_bar=False,
        autotune_baseline_atol=0.0,
        autotune_baseline_rtol=0.0,
        autotune_log=str(log),
    )
    wall_s = time.perf_counter() - began
    times: dict[int, float] = {}
    with log.with_suffix(".csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            number = re.search(rf"{INDEX}\W+(\d+)", row["config"])
            if number and row["perf_ms"] and float(row["perf_ms"]) < float("inf"):
                times[int(number[1])] = float(row["perf_ms"])
    rows = [{"configuration": work.configurations[n].id, "times_ms": [ms]} for n, ms in times.items()]
    about = {"helion": version("helion"), "device": torch.cuda.get_device_name(), "wall_s": wall_s}
    asked.out.write_text(json.dumps({**about, "given": len(numbers), "rows": rows}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
