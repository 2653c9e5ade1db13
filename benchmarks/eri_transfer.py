"""The article's transfer table: for each of its schemes the bytes that a call sends and gets back, the time that takes,
and the time of the kernels.

    python benchmarks/eri_transfer.py --workload water8 --out benchmarks/results/eri-transfer.csv

``send`` and ``back`` are copies between the device and plain host memory, the transfer of the molecule and of tables
included; ``call`` is a whole call with its lists sent, on data that is resident otherwise. Scheme 1 sends nothing: it
is the loop on the host's cores, by the cpu device.
"""

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from statistics import median
from typing import Any

from harness import arguments, bound, check, inputs_of, module_of, variants_of
from result_files import write_rows

from autotune.compile import default_root
from autotune.declaration import Family, Inputs, load_family
from autotune.device import Backend, CpuBackend, Execution, Resident, open_backend
from autotune.measure import Verifier, compute_expected

SCHEMES = ("scheme-1", "scheme-2", "scheme-3", "scheme-4", "scheme-4-pairs")
_SECONDS = 3.0


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__, "eri-transfer.csv")
    parser.add_argument("--workload", default="water8")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--scheme", action="append", help="again for more; all five without it")
    parser.add_argument("--best", default="", help="a configuration to put beside the schemes")
    given = parser.parse_args(words)
    family = load_family("eri")
    inputs = inputs_of(family, given.workload)
    wanted = [*(given.scheme or SCHEMES), *([given.best] if given.best else [])]
    if given.check:
        return check(family, [inputs], wanted, device=given.device)
    with closing(open_backend(given.device)) as backend:
        rows = table(family, inputs, backend, wanted)
    for row in rows:
        print("  ".join(f"{key} {value}" for key, value in row.items()))
    write_rows(given.out, rows)
    return 0


def table(family: Family, inputs: Inputs, backend: Backend, schemes: Sequence[str]) -> list[dict[str, Any]]:
    """A row a scheme; each result is checked against the reference before it is timed."""
    expected, _ = compute_expected(family, inputs, default_root())
    rows = []
    for scheme in schemes:
        on_host = scheme == "scheme-1" and backend.device.kind != "cpu"
        runner = CpuBackend() if on_host else backend
        try:
            rows.append(_row(family, inputs, runner, scheme, expected))
        finally:
            if on_host:
                runner.close()
    return rows


def _row(family: Family, inputs: Inputs, backend: Backend, scheme: str, expected: Any) -> dict[str, Any]:
    module = module_of(family)
    (variant,) = variants_of(family, [scheme], inputs.options)
    configuration = variant.configuration
    resident, verifier = Resident(backend, inputs), Verifier(backend, family, expected)
    try:
        (execution,) = bound(resident, (variant,))
        reason, first_ms = verifier.run(execution, cold=False)
        assert not reason, f"{scheme}: {reason}"
        rounds = max(3, min(20, int(_SECONDS * 1e3 / max(first_ms, 1e-3))))
        call = median(backend.sample(execution.run, rounds, False))
        split = [backend.kernel_times(execution.run) for _ in range(min(rounds, 5))]
        kernels = median([sum(times.values()) for times in split])
        names = {**inputs.sizes, **inputs.scalars}
        moved = module.transfer(configuration, names)
        assert moved.sent == execution.transfer_bytes, (scheme, moved, execution.transfer_bytes)
        on_host = scheme == "scheme-1" and backend.device.kind == "cpu"
        send = 0.0 if on_host else _wall(_sending(execution, inputs, configuration), backend, rounds)
        back = 0.0 if on_host else _wall(lambda: _fetched(execution), backend, rounds)
    finally:
        verifier.close()
        resident.close()
    components = int(inputs.scalars["components"])
    return {
        "scheme": scheme, "device": backend.device.name, "sent_bytes": 0 if on_host else moved.sent,
        "molecule_bytes": 0 if on_host else moved.molecule, "tables_bytes": 0 if on_host else moved.tables,
        "lists_bytes": 0 if on_host else moved.lists, "back_bytes": 0 if on_host else moved.back,
        "send_ms": round(send, 4), "back_ms": round(back, 4), "kernels_ms": round(kernels, 4),
        "call_ms": round(call, 4), "send_kernels_back_ms": round(send + kernels + back, 4),
        "components_per_s_of_kernels": f"{components / kernels * 1e3:.4g}", "configuration": configuration.id,
    }  # fmt: skip


def _sending(execution: Execution, inputs: Inputs, configuration: Any) -> Callable[[], None]:
    """What a call sends when nothing is on the device yet: molecule, tables, lists."""
    module = module_of(execution.variant.family)
    names = ["shells", "primitives", "pairs"]
    if configuration["pair_table"] == "host" and configuration["pair_memory"] in ("global", "readonly"):
        names.append("host_table")
    small = [(execution.placed[n], execution.variant.layouts[n].apply(inputs.arrays[n])) for n in names]
    lists = module.sends(execution)

    def send() -> None:
        for placed, stored in small:
            execution.backend.upload(placed, stored)
        for do in lists:
            do()

    return send


def _fetched(execution: Execution) -> None:
    for name in ("integrals",) if execution.names["listed"] else ("coulomb", "exchange"):
        execution.backend.download(execution.placed[name])


def _wall(do: Callable[[], None], backend: Backend, rounds: int) -> float:
    """Median milliseconds from the call until the device is done."""
    times = []
    with backend.current():
        for _ in range(rounds):
            backend.synchronize()
            begin = time.perf_counter()
            do()
            backend.synchronize()
            times.append((time.perf_counter() - begin) * 1e3)
    return median(times)


if __name__ == "__main__":
    sys.exit(main())
