"""Whether all ranks of a program choose alike, start after start, where ties are planted.

    python benchmarks/equal_choices.py [--device cpu] [--ranks 2,4] [--starts 20] [--out equal-choices.csv]

Each start is new processes under mpiexec, with hash seeds of their own; on a GPU (``--device cuda``) every rank takes
another one. The policy file has entries that are equally near to what is asked, and configurations that are predicted
to take equally long. A way is how a program asks for equal choices:

    frozen           load(frozen=True): each rank chooses by itself, from equal files; by predictions
    frozen-nearest   the same by the nearest entry
    agreement        load(agreement=Agreement(comm.allgather)): the other ranks have a file that says something else
    torch            the same by torch.distributed, over gloo; left out where there is no torch
    spread           RankSpread, whose other ranks have the other file as well
    tuned            a decorated function with agreement=: the first rank tunes alternatives that take equally long

A row is one way in one start: what was chosen, how many different answers there were over the ranks (1 is right), and
whether the first start chose the same; ``tuned`` measures in each start, and need not. The exit code is 1 where the
ranks, or starts of another way, differ.
"""

import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from harness import arguments, check, python_path
from result_files import write_rows

import autotune
from autotune import Agreement
from autotune.declaration import Configuration, bind, load_family
from autotune.device import open_backend
from autotune.hardware import Device
from autotune.layout import layouts_digest
from autotune.policy import Entry, PolicyFile, file_name
from autotune.policy.file import Kept, Prediction, write

WAYS = ("frozen", "frozen-nearest", "agreement", "torch", "spread", "tuned")
FAMILY = """\
schema: 1
family: halves
source: halves.cu
scalars:
  row: {type: int32, default: 0}
  rows_now: {type: int32, value: rows}
data:
  x: {role: input, type: float32, shape: [rows, columns, layers]}
  y: {role: output, type: float32, shape: [rows, columns, layers]}
kernels:
  halves:
    arguments: [x, y, row]
    grid: ["ceil_div(columns * layers, block_size)", rows_now]
    block: [block_size]
policies:
  memory: {layout: memory, data: [x], values: [global, readonly], default: global}
  block_size: {values: [32, 64, 128], default: 128}
"""
SOURCE = """\
#include "autotune/array.cuh"
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size) halves(typename Policy::x x, typename Policy::y y, int row) {
  const unsigned k = blockIdx.x * Policy::block_size + threadIdx.x, i = row + blockIdx.y;
  const unsigned j = k / x.extent(2), l = k % x.extent(2);
  if (j < x.extent(1)) y.store(0.5f * x.load(i, j, l), i, j, l);
}
"""
PYTHON = """\
import numpy as np

from autotune.family import Units


def run(execution, first, count):
    execution.launch("halves", row=first, rows_now=count)


def units(arrays, names):
    row = names["columns"] * names["layers"]
    return Units(
        costs=np.full(names["rows"], float(row)), run=run, batch=4, parts={"y": np.arange(names["rows"] + 1) * row}
    )
"""
CONFIGURATIONS = [
    {"memory": memory, "block_size": size} for memory in ("readonly", "global") for size in (128, 32, 64)
]
ASKED = ((60, 60, 60), (61, 59, 60), (12, 300, 60), (90, 40, 60))
APART = ((0.5, 3.0, 2.0), (3.0, 2.0, 0.5), (2.0, 0.5, 3.0), (0.5, 2.0, 3.0), (2.0, 3.0, 0.5), (3.0, 0.5, 2.0))


def write_family(place: Path) -> Path:
    folder = place / "halves"
    folder.mkdir()
    for name, text in (("family.yaml", FAMILY), ("halves.cu", SOURCE), ("family.py", PYTHON)):
        (folder / name).write_text(text)
    return folder


def plant(folder: Path, place: Path, device: Device) -> None:
    """The policy file with ties, and one that says something else, in folders of ``place``."""
    family = load_family(folder)
    digests: dict[str, Any] = {
        "source_digest": family.source_digest, "layouts_digest": layouts_digest(), "space_digest": family.space_digest,
    }  # fmt: skip
    names = [f"c{number}" for number in range(len(CONFIGURATIONS))]
    for where, winners in (("ties", CONFIGURATIONS), ("other", [family.space.control] * len(APART))):
        entries = {}
        for number, factors in enumerate(APART):
            sizes = {n: round(60 * f) for n, f in zip(("rows", "columns", "layers"), factors, strict=True)}
            name = f"w{(5 * number + 3) % 7}"
            entries[name] = Entry(
                name=name, workload=name, features=sizes, options={}, configuration=dict(winners[number]),
                median_ms=1.0, spread=0.01, samples=9, times_ms=dict.fromkeys(names, 1.0), **digests,
            )  # fmt: skip
        kept = {n: Kept(name=n, configuration=c) for n, c in zip(names, CONFIGURATIONS, strict=True)}
        rule = Prediction(options={}, kept=kept, left_out={"nearest": 0.1, "prediction": 0.0})
        file = PolicyFile(
            family="halves", device=device, entries=entries, default=dict(family.space.control),
            prediction=rule if where == "ties" else None,
        )  # fmt: skip
        path = place / where / file_name("halves", device.slug)
        path.parent.mkdir(parents=True)
        write(path, file)


# -- a rank ---------------------------------------------------------------------------------------------------


def gather(value: Any) -> Any:
    """Of the ranks of this MPI program."""
    from mpi4py import MPI

    return MPI.COMM_WORLD.allgather(value)


@autotune.tuned(space={"parts": [1, 2, 3, 4]}, agreement=Agreement(gather), progress=False)
def halved(x: Any, *, parts: int) -> Any:  # noqa: ARG001 - all of them do the same
    """Alternatives that take equally long."""
    return 0.5 * x


def rank_main(place: Path, device: str, ways: Sequence[str]) -> None:
    """Print on the first rank, by way, what each rank chose."""
    from mpi4py import MPI

    from autotune.spread.ranks import Ranks, device_of

    number, count = MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.Get_size()
    name = device_of(device, Ranks(120.0).local)
    own = place / ("other" if number else "ties")
    answers: dict[str, Callable[[], list[str]]] = {
        "frozen": lambda: loaded(place, name, place / "ties", frozen=True),
        "frozen-nearest": lambda: loaded(
            place, name, place / "ties", frozen=True, objective="with-transform"
        ),
        "agreement": lambda: loaded(place, name, own, agreement=Agreement(gather)),
        "torch": lambda: by_torch(place, name, own, number, count),
        "spread": lambda: spread(place, name, own),
        "tuned": lambda: [str(halved.chosen(np.ones(1000 * size, np.float32))) for size in (1, 2)],
    }
    found = {way: gather(answers[way]()) for way in ways}
    if number == 0:
        print("RESULT" + json.dumps(found), flush=True)


def loaded(place: Path, device: str, policies: Path, **how: Any) -> list[str]:
    """The configurations that calls ran; their results are looked at."""
    found = []
    with autotune.load(place / "halves", device=device, policies=policies, **how) as kernel:
        for sizes in ASKED:
            x = np.ones(sizes, np.float32)
            taken, _ = kernel.explain(kernel.bind(x))
            assert taken.configuration is not None
            found.append(f"{taken.match}: {taken.configuration.id}")
            with kernel.prepare(x) as handle:
                assert handle.variant.configuration == taken.configuration
                np.testing.assert_array_equal(handle(), 0.5 * x)
    return found


def by_torch(place: Path, device: str, policies: Path, number: int, count: int) -> list[str]:
    from torch import distributed

    store = gather(tempfile.mkdtemp(dir=place))[0]
    distributed.init_process_group("gloo", init_method=f"file://{store}/store", rank=number, world_size=count)
    try:
        return loaded(place, device, policies, agreement=Agreement.of_torch())
    finally:
        distributed.destroy_process_group()


def spread(place: Path, device: str, policies: Path) -> list[str]:
    from autotune.spread import RankSpread

    family = load_family(place / "halves")
    inputs = bind(family, {"x": np.ones(ASKED[0], np.float32)}, {}, {})
    with RankSpread(family, inputs, device, policies=policies) as ranks:
        ranks.run("contiguous")
        if ranks.ranks.is_first:
            np.testing.assert_array_equal(ranks.outputs()["y"], 0.5 * np.ones(ASKED[0], np.float32))
        return [f"{ranks.match.partition(',')[0]}: {ranks.configuration.id}"]


# -- the program that starts them ------------------------------------------------------------------------------


def started(place: Path, asked: Any, count: int, ways: Sequence[str], start: int) -> Mapping[str, list[Any]]:
    """What the ranks of one start chose."""
    prefix = Path(sys.prefix)
    program = asked.mpiexec or str(prefix / "bin" / "mpiexec")
    environment = {
        **os.environ, "PYTHONPATH": python_path(), "PYTHONHASHSEED": "random", "AUTOTUNE_CACHE": str(place / "cache"),
        "AUTOTUNE_POLICIES": str(place / f"tuned-{count}-{start}"),
    }  # fmt: skip
    if (library := prefix / "lib" / "libmpi.so.12").exists():  # of the pip package
        environment.setdefault("MPI4PY_LIBMPI", str(library))
    words = [__file__, "--rank", str(place), "--device", asked.device, "--ways", ",".join(ways)]
    done = subprocess.run(
        [program, "-n", str(count), sys.executable, *words],
        cwd=place, env=environment, capture_output=True, text=True, timeout=asked.seconds, check=False,
    )  # fmt: skip
    found = [line.partition("RESULT")[2] for line in done.stdout.splitlines() if "RESULT" in line]
    if done.returncode or len(found) != 1:
        raise SystemExit(f"{count} ranks, start {start}, exit code {done.returncode}:\n{done.stderr[-4000:]}")
    chosen: dict[str, list[Any]] = json.loads(found[0])
    return chosen


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__, "equal-choices.csv")
    parser.add_argument("--device", default="cpu", help="cpu, or cuda: a GPU for each rank")
    parser.add_argument("--ranks", default="2,4", help="numbers of ranks, one after the other")
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--seconds", type=float, default=300.0, help="at most, of a start")
    parser.add_argument("--mpiexec", default="", help="default: that of the environment this runs in")
    parser.add_argument("--rank", type=Path, help="this is a rank: the folder of its files")
    asked = parser.parse_args(words)
    ways = [way for way in asked.ways.split(",") if way != "torch" or find_spec("torch")]
    if asked.rank:
        warnings.simplefilter("ignore")
        rank_main(asked.rank, asked.device, ways)
        return 0
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        folder = write_family(place)
        if asked.check:
            family = load_family(folder)
            inputs = bind(family, {"x": np.ones(ASKED[0], np.float32)}, {}, {})
            chosen = [Configuration(one) for one in CONFIGURATIONS]
            return check(family, [inputs], chosen, peers=("mpi4py", "torch"), device=asked.device)
        backend = open_backend(asked.device)
        device = backend.device
        backend.close()
        plant(folder, place, device)
        first: dict[str, Any] = {}
        for count in map(int, asked.ranks.split(",")):
            for start in range(1, asked.starts + 1):
                for way, answers in started(place, asked, count, ways, start).items():
                    different = len({json.dumps(one) for one in answers})
                    is_same = answers[0] == first.setdefault(way, answers[0])
                    rows.append({
                        "device": device.name, "ranks": count, "start": start, "way": way,
                        "different": different, "as_first_start": int(is_same), "chosen": "; ".join(answers[0]),
                    })  # fmt: skip
                    if different > 1:
                        print(f"{count} ranks, start {start}, {way}: {answers}")
                print(f"{count} ranks, start {start}: done", flush=True)
    write_rows(asked.out, rows)
    wrong = [r for r in rows if r["different"] > 1 or (not r["as_first_start"] and r["way"] != "tuned")]
    print(f"{len(rows) - len(wrong)} of {len(rows)} alike")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
