"""The sweep engine, Kernel Tuner 1.5.0, Helion and Quadrants in one run: the same kernel text, configurations and
inputs.

    python benchmarks/engine_peers.py --out benchmarks/results/engine-peers

Kernel Tuner and ours take as many samples; Helion, with ``--peers nvcuda,helion``, times each for 50 ms, and Quadrants
(``quadrants``) one call of each, as they do. Ours comes first, so that a run that is ended from outside has what the
peers compare with; a peer that takes longer than ``--seconds`` is left out.
Each tuner runs in a process of its own, cold: no driver JIT cache, empty caches; all verify every configuration.
``wall_s`` is that process from start to end: reading the input, computing the expected output, tuning, reports.
``sweep_s`` is the tuning alone: of Kernel Tuner its import and tune_kernel, with every layout of the input and the
expected output at hand; of ours the sweep, with both still to be made. ``--device cpu`` leaves Kernel Tuner out, and
shows that the script works.

    python benchmarks/engine_peers.py --family convolution_milo.json --draw 2000 --seconds 450 --gpus 0,0 --peers nvcuda

With ``--draw`` that many configurations are drawn from the whole space, but no more than Kernel Tuner needs
``--seconds`` for, by the pace of its first 8 (0: all of them, and no such trial). They then run at the same time on two
GPUs, on one one after the other; ours once for each of ``--races``: 0 is as many samples of every configuration, 1.02
is what ``autotune sweep --race 1.02`` does.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness import arguments, check, inputs_of, python_path
from result_files import write_rows

from autotune.declaration import load_family
from autotune.record import Store

HERE = Path(__file__).resolve().parent
SCRIPTS = {"helion": "Helion {}, FiniteSearch", "quadrants": "Quadrants {}, perf_dispatch"}
_FIRST = 8  # configurations that tell Kernel Tuner's pace


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What all tuners are given. ``samples`` each; 0: our full protocol. ``limit_s``: of a peer's process; 0: none."""

    family: str
    workload: str
    preset: str
    narrowed: tuple[str, ...]
    device: str
    samples: int
    data: Path | None = None
    drawn: Path | None = None
    race: float = 0.0
    limit_s: float = 0.0

    @property
    def common(self) -> list[str]:
        command = ["--drawn", str(self.drawn)] if self.drawn else ["--preset", self.preset]
        for text in self.narrowed:
            command += ["--set", text]
        command += ["--workload", self.workload] if self.workload else []
        return command + (["--data", str(self.data)] if self.data else [])


@dataclass(frozen=True)
class Run:
    """One tuner's sweep. ``wall_s`` and ``sweep_s`` as said above; ``compile_s`` is what it waited for a compiler,
    ``kernel_s`` the device time of the plans it ran, ``measuring_s`` the wall seconds of verifying and measuring.
    ``times_ms`` by configuration: the figure it ranks by."""

    tuner: str
    wall_s: float
    sweep_s: float
    compile_s: float
    measuring_s: float
    kernel_s: float
    samples: float
    times_ms: Mapping[str, float] = field(default_factory=dict)
    about: str = ""
    given: int = 0  # configurations, of which some have no time

    @property
    def busy_share(self) -> float:
        return self.kernel_s / self.measuring_s if self.measuring_s else 0.0

    @property
    def best(self) -> str:
        return min(self.times_ms, key=lambda c: (self.times_ms[c], c))

    def row(self, peers: Sequence["Run"]) -> dict[str, Any]:
        """``…_times_faster`` is against the better of ``peers``."""
        wall_s, sweep_s = (min(getattr(p, name) for p in peers) for name in ("wall_s", "sweep_s"))
        return {
            "tuner": self.tuner, "wall_s": round(self.wall_s, 3), "sweep_s": round(self.sweep_s, 3),
            "wall_times_faster": round(wall_s / self.wall_s, 2),
            "sweep_times_faster": round(sweep_s / self.sweep_s, 2),
            "compile_s": round(self.compile_s, 3), "measuring_s": round(self.measuring_s, 3),
            "kernel_s": round(self.kernel_s, 4), "busy_share": round(self.busy_share, 3),
            "sweep_over_measuring": round(self.sweep_s / self.measuring_s, 2) if self.measuring_s else "",
            "configurations": len(self.times_ms), "samples": round(self.samples, 2),
            "given": self.given or len(self.times_ms),
            "wall_s_each": round(self.wall_s / (self.given or len(self.times_ms)), 4),
            "best_ms": round(self.times_ms[self.best], 6), "best": self.best, "about": self.about,
        }  # fmt: skip


def cold(folder: Path) -> dict[str, str]:
    """An environment in which nothing was ever compiled."""
    caches = ("AUTOTUNE_CACHE", "CUPY_CACHE_DIR", "CUDA_CACHE_PATH", "XDG_CACHE_HOME", "AUTOTUNE_POLICIES")
    return {
        **os.environ,
        "PYTHONPATH": python_path(),
        "CUDA_CACHE_DISABLE": "1",
        **{name: str(folder / name.lower()) for name in caches},
    }


def call(command: Sequence[str], folder: Path, gpu: str = "", limit_s: float = 0) -> float:
    """Wall seconds of a command, which is ended after ``limit_s``; its output is kept in the folder. Raises
    RuntimeError with the end of it."""
    began = time.perf_counter()
    with (folder / "output.txt").open("w") as output:
        try:
            status = subprocess.run(
                command,
                cwd=folder,
                env=cold(folder) | ({"CUDA_VISIBLE_DEVICES": gpu} if gpu else {}),
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=limit_s or None,
                check=False,
            ).returncode
            ended = f"exited with {status}" if status else ""
        except subprocess.TimeoutExpired:
            ended = f"was ended after {limit_s:g} s"
    wall_s = time.perf_counter() - began
    if ended:
        text = (folder / "output.txt").read_text(errors="replace")[-3000:]
        raise RuntimeError(f"{' '.join(command)} {ended}:\n{text}")
    return wall_s


def kernel_tuner(asked: Asked, backend: str, folder: Path, gpu: str = "") -> Run:
    """Kernel Tuner on one of its backends; its figure is the mean of its samples."""
    out = folder / "kernel-tuner.json"
    command = [sys.executable, str(HERE / "kernel_tuner_run.py"), backend, "--family", asked.family]
    command += [*asked.common, "--samples", str(asked.samples), "--out", str(out)]
    wall_s = call(command, folder, gpu, asked.limit_s)
    result = json.loads(out.read_text())
    rows = [row for row in result["rows"] if row["times_ms"]]
    seconds = {
        name: sum(row[f"{name}_ms"] for row in rows) / 1e3 for name in ("compile", "verify", "benchmark")
    }
    return Run(
        f"Kernel Tuner {result['kernel_tuner']} {backend}",
        wall_s,
        result["wall_s"],
        seconds["compile"],
        seconds["verify"] + seconds["benchmark"],
        sum(sum(row["times_ms"]) for row in rows) / 1e3,
        asked.samples,
        {row["configuration"]: statistics.fmean(row["times_ms"]) for row in rows},
        result["device"],
        len(result["rows"]),
    )


def one_process(asked: Asked, script: str, name: str, folder: Path) -> Run:
    """Helion's tuner for kernels of others, or Quadrants' perf_dispatch, on all configurations: ``script`` writes no
    time but theirs of each."""
    out = folder / f"{script}.json"
    command = [sys.executable, str(HERE / f"{script}_run.py"), "--family", asked.family, *asked.common]
    wall_s = call([*command, "--out", str(out)], folder, limit_s=asked.limit_s)
    result = json.loads(out.read_text())
    times = {row["configuration"]: statistics.median(row["times_ms"]) for row in result["rows"]}
    if not times:
        raise RuntimeError(f"{script} has no time of any configuration")
    title = name.format(result[script])
    return Run(title, wall_s, result["wall_s"], 0, 0, 0, 0, times, result["device"], result["given"])


def ours(asked: Asked, folder: Path, gpu: str = "") -> Run:
    """Run ``autotune sweep``; its figure is the median, of the interleaved re-timing if there was one. A control that
    the sweep times outside of its selection is left out: the peers do not have it."""
    program = [str(HERE / "drawn_sweep.py")] if asked.drawn else ["-m", "autotune", "sweep"]
    command = [sys.executable, *program, asked.family, *asked.common]
    command += ["--race", str(asked.race)] if asked.race else []
    command += ["--device", asked.device, "--out", str(folder / "out")]
    wall_s = call([*command, *(["--samples", str(asked.samples)] if asked.samples else [])], folder, gpu)
    (study,) = Store(folder / "out").studies()
    seconds = study.about.phases_s
    measured = [(t.configuration.id, t.measurement) for t in study.selection if t.measurement]
    return Run(
        f"autotune, {f'{asked.samples} samples' if asked.samples else 'full protocol'}"
        + (f", race {asked.race:g}" if asked.race else ""),
        wall_s,
        seconds["total"],
        seconds.get("compile", seconds.get("wait", 0.0)),
        seconds.get("verify", 0.0) + seconds.get("measure", 0.0) + seconds.get("finalists", 0.0),
        seconds.get("kernels", 0.0),
        statistics.fmean(m.samples for _, m in measured),
        {c: m.time_ms for c, m in measured},
        f"{study.about.device_name}; states {study.states()}; "
        f"floor {study.about.floor_ms or ''} ms, timer {study.about.timer_floor_ms or ''} ms; "
        f"seconds { ({k: round(v, 2) for k, v in seconds.items()}) }",
        len(study.selection),
    )


def write(runs: Sequence[Run], out: Path) -> list[dict[str, Any]]:
    """``<out>.csv``: a row a tuner; ``<out>-times.csv``: a row a configuration, a column a tuner. Returns the first."""
    peers = [run for run in runs if not run.tuner.startswith("autotune")]
    rows = [run.row(peers or runs[:1]) for run in runs]
    write_rows(out.with_name(f"{out.name}.csv"), rows)
    every = sorted({c for run in runs for c in run.times_ms})
    times: list[dict[str, object]] = [
        {"configuration": c, **{f"{run.tuner} ms": run.times_ms.get(c, "") for run in runs}} for c in every
    ]
    write_rows(out.with_name(f"{out.name}-times.csv"), times)
    return rows


def show(runs: Sequence[Run], rows: Sequence[Mapping[str, Any]]) -> None:
    """Print what ``write`` wrote."""
    for row in rows:
        print("  ".join(f"{key}={value}" for key, value in row.items() if key not in ("best", "about")))
        print(f"    best: {row['best']}\n    {row['about']}")
    own = [run for run in runs if run.tuner.startswith("autotune")]
    peers = [run for run in runs if run not in own]
    if peers and own:
        explain(peers[0], own[-1])


def explain(peer: Run, run: Run) -> None:
    """How far apart two tuners' figures for one configuration are, by how long it takes."""
    both = sorted(set(peer.times_ms) & set(run.times_ms), key=lambda c: run.times_ms[c])
    for name, part in (("shortest", both[: len(both) // 4]), ("longest", both[-(len(both) // 4) :])):
        if part:
            ratio = statistics.median(peer.times_ms[c] / run.times_ms[c] for c in part)
            apart = statistics.median((peer.times_ms[c] - run.times_ms[c]) * 1e3 for c in part)
            print(
                f"{peer.tuner} over {run.tuner}, {name} quarter: median {ratio:.2f} times, {apart:+.1f} us apart"
            )


def in_parallel(
    asked: Asked, backends: Sequence[str], root: Path, count: int, seconds: float, gpus: Sequence[str],
    races: Sequence[float],
) -> list[Run]:  # fmt: skip
    """Kernel Tuner and ours on configurations that are drawn from the whole space: at the same time on two GPUs, one
    after the other on one."""
    family = load_family(asked.family)
    every = list(family.space.configurations())
    random.Random(1).shuffle(every)

    def on(number: int, name: str) -> tuple[Asked, Path]:
        folder = root / name
        folder.mkdir()
        (folder / "drawn.txt").write_text("\n".join(c.id for c in every[:number]))
        return replace(asked, drawn=folder / "drawn.txt"), folder

    def theirs(number: int, name: str, backend: str) -> Run:
        drawn, folder = on(number, name)
        run = kernel_tuner(drawn, backend, folder, gpus[0])
        print(f"{run.tuner}, {number}: {run.wall_s:.1f} s, {run.sweep_s / number:.3f} s each", flush=True)
        return run

    def ours_as(race: float) -> Run:
        drawn, folder = on(number, f"ours-{race:g}")
        run = ours(replace(drawn, race=race), folder, gpus[-1])
        print(f"{run.tuner}: {run.wall_s:.1f} s, best {run.best}", flush=True)
        return run

    number = min(count, len(every))
    if seconds and backends:
        first = theirs(_FIRST, "first", backends[0])
        number = min(number, int(seconds / (first.sweep_s / _FIRST)))
    print(f"{number} of {len(every)} are drawn", flush=True)

    def every_race() -> list[Run]:
        return [ours_as(race) for race in races]

    with ThreadPoolExecutor(len(set(gpus))) as pool:  # on one GPU one after the other
        own = pool.submit(every_race)
        peers = [pool.submit(theirs, number, f"kernel-tuner-{name}", name) for name in backends]
        return [*(peer.result() for peer in peers), *own.result()]


def asked_of(given: argparse.Namespace) -> Asked:
    """What ``asking`` was given on the command line, with our full protocol."""
    return Asked(
        family=given.family, workload=given.workload, preset=given.preset,
        narrowed=tuple(given.set if given.set is not None else ["memory=global,readonly"]),
        device=given.device, samples=0, data=given.data and given.data.resolve(),
    )  # fmt: skip


def peers_of(given: argparse.Namespace) -> list[str]:
    return [] if given.device == "cpu" else [name for name in given.peers.split(",") if name]


def asking(doc: str | None, out: str) -> argparse.ArgumentParser:
    """The arguments that this script and winner_agreement.py share: what the tuners are given."""
    parser = arguments(doc, out)
    parser.add_argument("--family", default="allpairs")
    parser.add_argument("--workload", default="hapmap3-slice")
    parser.add_argument("--preset", default="tiles", help="with --set: 96 configurations of allpairs")
    parser.add_argument("--set", action="append", metavar="POLICY=V1,V2")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument(
        "--peers", default="nvcuda,cupy", help="Kernel Tuner's backends, helion, quadrants; none on a cpu"
    )
    parser.add_argument("--data", type=Path)
    return parser


def check_asked(asked: Asked) -> int:
    """``--check`` of both scripts."""
    family = load_family(asked.family)
    narrowed = {key: values.split(",") for key, _, values in (text.partition("=") for text in asked.narrowed)}
    configurations = family.space.configurations(asked.preset, narrowed)
    inputs = [inputs_of(family, asked.workload, asked.data)]
    return check(family, inputs, configurations, peers=("kernel_tuner", "cupy"), device=asked.device)


def main(words: Sequence[str] | None = None) -> list[Run]:
    parser = asking(__doc__, "engine-peers")
    parser.add_argument("--samples", type=int, default=7, help="of each configuration, for all tuners alike")
    parser.add_argument("--draw", type=int, default=0, help="so many configurations of the whole space")
    parser.add_argument(
        "--seconds", type=float, default=450, help="of each peer; with --draw of Kernel Tuner"
    )
    parser.add_argument("--gpus", default="0,1", help="with --draw: one for Kernel Tuner, one for ours")
    parser.add_argument("--races", default="1.02,0", help="with --draw: one sweep of ours for each")
    given = parser.parse_args(words)
    full = asked_of(given)
    if given.draw:
        asked = replace(full, samples=given.samples, narrowed=())
        with tempfile.TemporaryDirectory(prefix="engine-peers-") as place:
            runs = in_parallel(
                asked, peers_of(given), Path(place), given.draw, given.seconds, given.gpus.split(","),
                [float(race) for race in given.races.split(",")],
            )  # fmt: skip
            show(runs, write(runs, given.out))
        return runs
    if given.check:
        check_asked(full)
        return []
    asked = replace(full, samples=given.samples, limit_s=given.seconds)
    runs = []
    with tempfile.TemporaryDirectory(prefix="engine-peers-") as root:

        def folder(name: str) -> Path:
            path = Path(root, name)
            path.mkdir()
            return path

        # A script that is ended from outside keeps what it has: the table is written after each.
        for one_of_ours in (asked, full):
            runs.append(ours(one_of_ours, folder(f"ours-{len(runs)}")))
            write(runs, given.out)
        for name in peers_of(given):
            try:
                one = (
                    one_process(asked, name, SCRIPTS[name], folder(name))
                    if name in SCRIPTS
                    else kernel_tuner(asked, name, folder(name))
                )
            except RuntimeError as problem:  # a peer that fails must not cost the others
                print(f"{name}: left out: {problem}", flush=True)
                continue
            runs.append(one)
            write(runs, given.out)
    show(runs, write(runs, given.out))
    return runs


if __name__ == "__main__":
    main()
