"""The article's four factors, measured: the time of each subclass of work-units on one GPU, the cost model fitted to
them, and what it then expects of the three allocations.

    python benchmarks/eri_subclasses.py --workload water27-jk --out eri-subclasses.csv
"""

import sys
from collections.abc import Sequence
from contextlib import closing
from statistics import median
from typing import Any

from harness import arguments, bound, check, inputs_of, module_of, variants_of
from result_files import write_rows

from autotune.declaration import Family, Inputs, load_family
from autotune.device import Backend, Resident, open_backend

BEST = (
    "granularity=block,order=place,pair_table=device,boys=loaded_rational,quotient_memory=constant,"
    "roots=inverse,split=2"
)


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__, "eri-subclasses.csv")
    parser.add_argument("--workload", default="water27-jk")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--configuration", default=BEST)
    given = parser.parse_args(words)
    family = load_family("eri")
    inputs = inputs_of(family, given.workload)
    if given.check:
        return check(family, [inputs], [given.configuration], device=given.device)
    with closing(open_backend(given.device)) as backend:
        rows, allocations = table(family, inputs, backend, given.configuration)
    for line in (*rows, *allocations):
        print("  ".join(f"{key} {value}" for key, value in line.items()))
    write_rows(given.out, rows)
    return 0


def table(
    family: Family, inputs: Inputs, backend: Backend, configuration: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(a row a subclass, measured and modelled; a row for 2, 4 and 8 GPUs, the efficiency that the model expects)."""
    model, measured = _measured(family, inputs, backend, configuration)
    module = module_of(family)
    total = sum(seconds for _, seconds in measured)
    rows = [
        {
            "components": share.components, "work_units": share.units, "measured_ms": round(seconds * 1e3, 5),
            "modelled_ms": round(model.seconds(share) * 1e3, 5), "share_of_all": round(seconds / total, 4),
            "components_per_s": f"{share.components * share.units / seconds:.4g}",
        }
        for share, seconds in measured
    ]  # fmt: skip
    shares = [share for share, _ in measured]
    allocations = []
    for gpus in (2, 4, 8):
        plans = {
            "equal_counts": module.equal_counts(shares, gpus),
            "whole_subclasses": module.whole_subclasses(shares, gpus, model),
            "chunked": module.chunked(shares, gpus, model),
        }
        found = {name: round(module.efficiency(model.predicted(plan)), 4) for name, plan in plans.items()}
        allocations.append({"gpus": gpus, **found})
    print(
        f"a component {model.component:.4g} s, a work-unit besides {model.transfer:.4g} s "
        f"({model.transfer / model.component:.2f} components), a start {model.start:.4g} s"
    )
    return rows, allocations


def _measured(family: Family, inputs: Inputs, backend: Backend, configuration: str) -> tuple[Any, list[Any]]:
    module = module_of(family)
    resident = Resident(backend, inputs)
    (execution,) = bound(resident, variants_of(family, [configuration], inputs.options))
    execution.run()  # tables are made
    found: dict[int, tuple[Any, float]] = {}
    for share, do in module.subclass_launches(execution):
        found[share.components] = share, median(backend.sample(do, 10, False)) / 1e3
    resident.close()
    return module.calibrated(list(found.values())), list(found.values())


if __name__ == "__main__":
    sys.exit(main())
