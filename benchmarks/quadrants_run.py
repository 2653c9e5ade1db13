"""A family's configurations under Quadrants' perf_dispatch: the kernel text and inputs that helion_run.py gives Helion.

    python benchmarks/quadrants_run.py --family allpairs --workload hapmap3-slice --preset tiles --out quadrants.json

Each configuration is compiled by NVRTC through CuPy, its output is compared with the expected one, and it is registered
as a function that waits for the device. The dispatcher is then called until it has chosen: it calls each twice and
times the second call, with a warm L2 cache and by the host's clock, as it does. It verifies nothing itself, so the
comparison is this script's; Quadrants' own runtime is that of the host, which has nothing to wait for.

Needs quadrants, torch and CuPy, and a family of one kernel with one output that no policy stores in another way.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any

from harness import check
from helion_run import compiler_of
from kernel_tuner_run import INDEX, read_task


def chosen_of(
    run: Callable[..., Any], functions: Sequence[Callable[[], Any]]
) -> tuple[str, dict[str, list[float]]]:
    """The name of the function that the dispatcher ``run`` chooses, and the seconds that it took of each, by name."""
    for function in functions:
        run.register(function)  # type: ignore[attr-defined]
    for _ in range(2 * len(functions)):
        run()
    (times,) = run._times_by_dispatch_impl_by_geometry_hash.values()  # type: ignore[attr-defined]  # noqa: SLF001
    (chosen,) = run._fastest_dispatch_impl_by_geometry_hash.values()  # type: ignore[attr-defined]  # noqa: SLF001
    seconds = {one.get_implementation2().__name__: list(taken) for one, taken in times.items()}
    return chosen.get_implementation2().__name__, seconds


def prototype() -> None:
    """What the dispatcher's functions take, which is nothing."""


def waiting(name: str, launch: Callable[[Any], Any], wait: Callable[[], None]) -> Callable[[], None]:
    """A function of that name that launches a kernel and waits for it."""

    def run() -> None:
        launch(None)
        wait()

    run.__name__ = name
    return run


def main(words: Sequence[str] | None = None) -> int:
    asked, family, inputs, configurations, work = read_task(__doc__, "quadrants.json", words)
    if asked.check:
        print(f"Quadrants: {len(work.configurations)} configurations, {len(work.parts)} arguments")
        return check(family, [inputs], configurations, peers=("quadrants", "torch", "cupy"))

    began = time.perf_counter()
    quadrants, torch, cupy = (import_module(name) for name in ("quadrants", "torch", "cupy"))
    quadrants.init(arch=quadrants.x64)
    compile_one, expected = compiler_of(work)

    run = quadrants.perf_dispatch(get_geometry_hash=lambda: 0)(prototype)
    wait = cupy.cuda.get_current_stream().synchronize
    functions = []
    for number, configuration in enumerate(work.configurations):
        launch = compile_one({INDEX: number})
        made = launch(None)
        wait()
        if torch.equal(made, expected):
            functions.append(waiting(configuration.id, launch, wait))
        else:
            print(f"{configuration.id}: left out: its output is not the expected one")
    chosen, seconds = chosen_of(run, functions)
    wall_s = time.perf_counter() - began
    rows = [
        {"configuration": name, "times_ms": [1e3 * one for one in taken]} for name, taken in seconds.items()
    ]
    about = {"quadrants": version("quadrants"), "device": torch.cuda.get_device_name(), "wall_s": wall_s}
    asked.out.write_text(
        json.dumps({**about, "given": len(work.configurations), "chosen": chosen, "rows": rows})
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
