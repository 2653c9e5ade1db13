"""Whether all ranks of a program choose alike, start after start, where ties are planted.

    python benchmarks/equal_choices.py [--device cpu] [--ranks 2,4] [--starts 20] [--by mpiexec,gloo]
    python benchmarks/equal_choices.py --device cuda --ranks 2 --at-once 4 --within 150

Each start is new processes, with hash seeds of their own; on a GPU (``--device cuda``) every rank takes another one.
``--by`` says what starts the ranks and how they talk: ``mpiexec`` and MPI with numpy arrays, or torchrun and
torch.distributed with tensors, over ``gloo`` or ``nccl``; what is not installed is left out. The policy file has
entries that are equally near to what is asked, and configurations that are predicted to take equally long. A way is
how a program asks for equal choices:

    frozen           load(frozen=True): each rank chooses by itself, from equal files; by predictions
    frozen-nearest   the same by the nearest entry
    agreement        load(agreement=...): the other ranks have a file that says something else
    spread           RankSpread, whose other ranks have the other file as well; by MPI alone
    tuned            a decorated function with agreement=: the first rank tunes alternatives that take equally long

A row is one way in one start: what was chosen, how many different answers there were over the ranks (1 is right, 0
where the start failed), and whether the first start chose the same; ``tuned`` measures in each start, and need not.
The exit code is 1 where the ranks, or starts of another way, differ, or a start failed. No start begins later than
``--within`` seconds after the first, and none goes on longer than ``--seconds``.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import product
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

FAILED = "failed: "
BY = ("mpiexec", "gloo", "nccl")
WAYS = ("frozen", "frozen-nearest", "agreement", "spread", "tuned")
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


IS_TORCH = "TORCHELASTIC_RUN_ID" in os.environ  # which torchrun sets
AGREEMENT = Agreement.of_torch() if IS_TORCH else Agreement(gather)


@autotune.tuned(space={"parts": [1, 2, 3, 4]}, agreement=AGREEMENT, progress=False)
def halved(x: Any, *, parts: int) -> Any:  # noqa: ARG001 - all of them do the same
    """Alternatives that take equally long."""
    return 0.5 * x


@contextmanager
def joined(by: str, device: str) -> Iterator[tuple[int, int]]:
    """This process among the others: its number, and its number on this host."""
    if not IS_TORCH:
        from autotune.spread.ranks import Ranks

        ranks = Ranks(120.0)
        yield ranks.number, ranks.local
        return
    from torch import cuda, distributed

    number, local = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    if device != "cpu":
        cuda.set_device(local)
    distributed.init_process_group(by)
    try:
        yield number, local
    finally:
        distributed.destroy_process_group()


def rank_main(place: Path, device: str, by: str, ways: Sequence[str]) -> None:
    """Print on the first rank, by way, what each rank chose."""
    from autotune.spread.ranks import device_of

    with joined(by, device) as (number, local):
        name = device_of(device, local)
        ties, own = place / "ties", place / ("other" if number else "ties")
        answers: dict[str, Callable[[], list[str]]] = {
            "frozen": lambda: loaded(place, name, ties, frozen=True),
            "frozen-nearest": lambda: loaded(place, name, ties, frozen=True, objective="with-transform"),
            "agreement": lambda: loaded(place, name, own, agreement=AGREEMENT),
            "spread": lambda: spread(place, name, own),
            "tuned": lambda: [str(halved.chosen(make_ones((1000 * size,), name))) for size in (1, 2)],
        }
        found = {way: AGREEMENT.gather(answer(answers[way])) for way in ways}
    if number == 0:
        print("RESULT" + json.dumps(found), flush=True)


def answer(ask: Callable[[], list[str]]) -> list[str]:
    """What it gives, or why it failed: the other ways go on."""
    try:
        return ask()
    except Exception as problem:  # noqa: BLE001 - a row of the table says it
        traceback.print_exc()
        return [f"{FAILED}{type(problem).__name__}: {problem}"]


def make_ones(sizes: Sequence[int], device: str) -> Any:
    """An array, or a tensor there in a program of torch."""
    if not IS_TORCH:
        return np.ones(sizes, np.float32)
    import torch

    return torch.ones(*sizes, device=device)


def loaded(place: Path, device: str, policies: Path, **how: Any) -> list[str]:
    """The configurations that calls ran; their results are looked at."""
    found = []
    with autotune.load(place / "halves", device=device, policies=policies, **how) as kernel:
        for sizes in ASKED:
            x = make_ones(sizes, device)
            taken, _ = kernel.explain(kernel.bind(np.ones(sizes, np.float32)))
            assert taken.configuration is not None
            found.append(f"{taken.match}: {taken.configuration.id}")
            with kernel.prepare(x) as handle:
                assert handle.variant.configuration == taken.configuration
                assert bool((handle() == 0.5 * x).all())
    return found


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


@dataclass(frozen=True)
class Start:
    """One start of a number of ranks, and what is asked of them."""

    number: int
    ranks: int
    by: str
    ways: Sequence[str]
    device: str
    mpiexec: str

    def __str__(self) -> str:
        return f"start {self.number}, {self.ranks} ranks, {self.by}"

    def command(self, place: Path) -> list[str]:
        words = [__file__, "--rank", str(place), "--device", self.device, "--ways", ",".join(self.ways)]
        words += ["--by", self.by]
        if self.by == "mpiexec":
            return [self.mpiexec, "-n", str(self.ranks), sys.executable, *words]
        program = Path(sys.executable).with_name("torchrun")
        torchrun = [str(program)] if program.exists() else [sys.executable, "-m", "torch.distributed.run"]
        one_host = ["--standalone", "--local-addr", "127.0.0.1"]
        return [*torchrun, *one_host, "--nproc-per-node", str(self.ranks), *words]

    def make_folder(self, place: Path) -> Path:
        """Of this start alone, with its records: else only the first one would tune."""
        folder = place / f"{self.by}-{self.ranks}-{self.number}"
        folder.mkdir()
        return folder

    def environment(self, place: Path, policies: Path) -> dict[str, str]:
        found = {
            "GLOO_SOCKET_IFNAME": "lo",
            "NCCL_SOCKET_IFNAME": "lo",
            **os.environ,
        }  # one host, without a name too
        found |= {"PYTHONPATH": python_path(), "PYTHONHASHSEED": "random"}
        found |= {"AUTOTUNE_CACHE": str(place / "cache"), "AUTOTUNE_POLICIES": str(policies)}
        library = Path(self.mpiexec).resolve().parents[1] / "lib" / "libmpi.so.12"
        if self.by == "mpiexec" and library.exists():  # of the pip package
            found.setdefault("MPI4PY_LIBMPI", str(library))
        return found


def run(start: Start, place: Path, seconds: float, end: float) -> Mapping[str, list[Any]] | str:
    """What the ranks of one start chose, by way; or why it failed, empty where it was too late for it."""
    if time.monotonic() > end:
        return ""
    folder = start.make_folder(place)
    with subprocess.Popen(
        start.command(place), cwd=folder, env=start.environment(place, folder / "policies"), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    ) as program:  # fmt: skip
        try:
            out, problems = program.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            for sent in (signal.SIGTERM, signal.SIGKILL):  # the first ends torchrun's ranks, too
                with suppress(subprocess.TimeoutExpired, ProcessLookupError):
                    os.killpg(program.pid, sent)
                    program.communicate(timeout=10)
            return f"no end within {seconds:g} s"
    found = [line.partition("RESULT")[2] for line in out.splitlines() if "RESULT" in line]
    if program.returncode or len(found) != 1:
        print(problems[-4000:], file=sys.stderr, flush=True)
        return f"exit code {program.returncode}"
    chosen: dict[str, list[Any]] = json.loads(found[0])
    return chosen


def find_mpiexec() -> str:
    """That of the environment this runs in, else of PATH; empty where there is none."""
    own = Path(sys.prefix, "bin", "mpiexec")
    return str(own) if own.exists() else shutil.which("mpiexec") or ""


def explain_absence(by: str, device: str, mpiexec: str) -> str:
    """What is not there to start ranks so; empty where they can be."""
    if by == "mpiexec":
        missing = "" if mpiexec else "no mpiexec"
        return missing or ("" if find_spec("mpi4py") else "no mpi4py")
    if not find_spec("torch"):
        return "no torch"
    return "a backend for GPUs alone" if by == "nccl" and device == "cpu" else ""


def plan(asked: Any) -> list[Start]:
    """All starts, in turns: where time runs out each way has had as many. Raises SystemExit where there are none."""
    mpiexec, chosen = asked.mpiexec or find_mpiexec(), []
    for by in asked.by.split(","):
        ways = [way for way in asked.ways.split(",") if way != "spread" or by == "mpiexec"]
        if why := explain_absence(by, asked.device, mpiexec):
            print(f"{by} is left out: {why}")
        elif ways:
            chosen.append((by, ways))
    counts, numbers = [int(one) for one in asked.ranks.split(",")], range(1, asked.starts + 1)
    starts = [
        Start(number, count, by, ways, asked.device, mpiexec)
        for number, (by, ways), count in product(numbers, chosen, counts)
    ]
    if not starts:
        raise SystemExit("there is nothing to start ranks with: install mpi4py and mpich, or torch")
    return starts


def judge(
    start: Start, found: Mapping[str, list[Any]] | str, first: dict[str, Any], device: str
) -> list[dict[str, Any]]:
    """A row for each way of a start; ``first`` is what was chosen first, by way, and is added to."""
    about = {"device": device, "by": start.by, "ranks": start.ranks, "start": start.number}
    rows = []
    for way in start.ways:
        answers = [[FAILED + found]] if isinstance(found, str) else found[way]
        has_failed = any(one[0].startswith(FAILED) for one in answers)
        different = 0 if has_failed else len({json.dumps(one) for one in answers})
        is_same = different > 0 and answers[0] == first.setdefault(way, answers[0])
        rows.append({
            **about, "way": way, "different": different, "as_first_start": int(is_same),
            "chosen": "; ".join(answers[0]),
        })  # fmt: skip
        if different != 1:
            print(f"{start}, {way}: {answers}")
    print(f"{start}: done", flush=True)
    return rows


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__, "equal-choices.csv")
    parser.add_argument("--device", default="cpu", help="cpu, or cuda: a GPU for each rank")
    parser.add_argument("--ranks", default="2,4", help="numbers of ranks, one after the other")
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--by", default=",".join(BY), help="what starts the ranks, one after the other")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--at-once", type=int, default=1, help="starts that run together")
    parser.add_argument("--within", type=float, default=3600.0, help="seconds after which none begins")
    parser.add_argument("--seconds", type=float, default=300.0, help="at most, of a start")
    parser.add_argument(
        "--mpiexec", default="", help="default: that of the environment this runs in, or of PATH"
    )
    parser.add_argument("--rank", type=Path, help="this is a rank: the folder of its files")
    asked = parser.parse_args(words)
    if asked.rank:
        warnings.simplefilter("ignore")
        rank_main(asked.rank, asked.device, asked.by, asked.ways.split(","))
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
        starts = plan(asked)
        first: dict[str, Any] = {}
        backend = open_backend(asked.device)
        device = backend.device
        backend.close()
        plant(folder, place, device)
        end = time.monotonic() + asked.within
        one = partial(run, place=place, seconds=asked.seconds, end=end)
        with ThreadPoolExecutor(asked.at_once) as pool:
            for start, found in zip(starts, pool.map(one, starts), strict=True):
                if found:
                    rows += judge(start, found, first, device.name)
                    write_rows(asked.out, rows)
    return show(rows, starts)


def show(rows: Sequence[Mapping[str, Any]], starts: Sequence[Start]) -> int:
    """A line for each way; 1 where any is wrong."""
    is_right = {id(r): r["different"] == 1 and (r["as_first_start"] or r["way"] == "tuned") for r in rows}
    for by, count, way in dict.fromkeys((r["by"], r["ranks"], r["way"]) for r in rows):
        of = [is_right[id(r)] for r in rows if (r["by"], r["ranks"], r["way"]) == (by, count, way)]
        print(f"{by:8} {count} ranks  {way:15} {sum(of)} of {len(of)} alike")
    begun = {(r["by"], r["ranks"], r["start"]) for r in rows}
    print(f"{sum(is_right.values())} of {len(rows)} alike; {len(starts) - len(begun)} starts came too late")
    return 0 if rows and all(is_right.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
