"""What programs that refine end with, on inputs that the policy file does not know: real calls on the GPU.

    python benchmarks/selection_refine.py allpairs --taught taught.csv --each 6 --seed 60 --out refined.csv

A policy file is made of the taught sweeps. Each drawn input is prepared and called 30 times with ``refine=True``, once
what is tried is compiled; a row says what selection took, what stayed and after how many timed calls. A sweep of the
same inputs says what that is worth. Before each call ``--fill`` MB are filled by torch in the same stream, as another
part of a program would keep the GPU busy; without, it waits for each call. With ``--swept``, what
``selection_record.py`` wrote of the same inputs, the regrets of both are in the row.
"""

import argparse
import json
import logging
import os
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import selection_record
from harness import is_there
from result_files import write_rows
from selection_inputs import RANGES, drawn, write

import autotune
from autotune.declaration import Configuration, load_family, load_workload, prepare
from autotune.files import find_bundled
from autotune.hardware import Device
from autotune.policy import file_name, merge_winners, read_policy_file
from autotune.policy.file import write as write_policy
from autotune.policy.refined import refined_path

_CALLS = 30


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("family", choices=RANGES)
    parser.add_argument("--taught", type=Path, nargs="+", default=[])
    parser.add_argument("--each", type=int, default=6)
    parser.add_argument("--seed", type=int, default=60)
    parser.add_argument("--fill", type=int, default=0, help="MB that torch fills before each call")
    parser.add_argument("--swept", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, default=Path("selection-refined.csv"))
    parser.add_argument("--check", action="store_true", help="all that needs no GPU, then stop")
    options = parser.parse_args(words)
    if options.check:
        range_ = RANGES[options.family]
        with tempfile.TemporaryDirectory() as folder:
            paths = write(range_, drawn(range_, options.each, options.seed), Path(folder))
            family = load_family(range_.family)
            inputs = [
                prepare(family, load_workload(family, p), find_bundled("workloads") / "data") for p in paths
            ]
        print(f"{options.family}: {len(inputs)} inputs; {options.device}: {is_there(options.device)}")
        return
    logging.basicConfig(level=logging.WARNING)
    range_ = RANGES[options.family]
    family = load_family(range_.family)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_DATA_HOME"] = folder
        file = merge_winners(
            None, [study for path in options.taught for _, study in selection_record.read(path)[family.name]]
        )
        path = Path(folder) / "made" / file_name(family.name, file.device.slug)
        path.parent.mkdir(parents=True)
        write_policy(path, file)
        paths = write(range_, drawn(range_, options.each, options.seed), Path(folder) / "inputs")
        fill, stream = _filler(options.fill)
        rows = [
            _row(range_.family, each, Path(folder), file.device, options.device, fill, stream)
            for each in paths
        ]
    if options.swept:
        times = {
            study.workload: study.times for _, study in selection_record.read(options.swept)[range_.name]
        }
        rows = [{**row, **_regrets(row, times[str(row["input"])])} for row in rows]
    write_rows(options.out, rows)


def _regrets(row: Mapping[str, object], times: Mapping[Configuration, float]) -> dict[str, object]:
    """Of what was taken, and of what stayed: the same one where nothing was learnt."""
    swept = {configuration.id: ms for configuration, ms in times.items()}
    best = min(swept.values())
    taken, stays = str(row["taken"]), str(row["stays"] or row["taken"])
    return {
        f"{name}_regret": f"{swept[each] / best - 1:.6f}" if each in swept else ""
        for name, each in (("taken", taken), ("stays", stays))
    }


def _filler(megabytes: int) -> tuple[Callable[[], object], Any]:
    """Work for the GPU, and the stream that it is queued in."""
    if not megabytes:
        return lambda: None, None
    import torch

    room = torch.empty(megabytes * 2**20, dtype=torch.uint8, device="cuda")
    return room.zero_, torch.cuda.current_stream()


def _row(
    named: str, path: Path, folder: Path, device: Device, kind: str, fill: Callable[[], object], stream: Any
) -> dict[str, object]:  # fmt: skip
    family = load_family(named)
    workload = load_workload(family, path)
    inputs = prepare(family, workload, find_bundled("workloads") / "data")
    with autotune.load(named, device=kind, policies=folder / "made", refine=True) as kernel:
        taken, _ = kernel.explain(inputs)
        began = time.perf_counter()
        with kernel.prepare(inputs) as handle:
            handle(stream=stream)
            for thread in threading.enumerate():  # that compile the others
                if thread is not threading.current_thread() and thread.daemon:
                    thread.join(5)
            for _ in range(_CALLS):
                fill()
                handle(stream=stream)
        spent = time.perf_counter() - began
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(10)
    found = refined_path(folder / "autotune" / "policies", family.name, device)
    entries = read_policy_file(found).entries.values() if found.is_file() else ()
    features = {**inputs.sizes, **inputs.scalars}
    own = next((e for e in entries if all(features.get(n) == v for n, v in e.features.items())), None)
    assert taken.configuration is not None
    row = {
        "family": Path(named).name, "input": workload.name, "match": taken.match, "taken": taken.configuration.id,
        "stays": Configuration(own.configuration).id if own else "", "calls": own.refined["calls"] if own else 0,
        "tried": len(own.refined["times_ms"]) if own else 0, "seconds": f"{spent:.2f}",
        "times_ms": json.dumps(own.refined["times_ms"]) if own else "",
    }  # fmt: skip
    print(row, flush=True)
    return row


if __name__ == "__main__":
    main()
