"""Time every shipped entry and the winners of examples again, with the headers of two trees by turns.

    python benchmarks/entries_again.py --before TREE --out OUT --seconds 500
    python benchmarks/entries_again.py --before TREE --out OUT --seconds 500 --part 0/2
    python benchmarks/entries_again.py --check --before TREE

Part 1/2 is for another GPU. Without a GPU, --check makes the inputs and configurations, and with --compile their code.
TREE is an earlier commit's autotune, kernels, examples and workloads. Each tree has a process of its own, which makes
the inputs and compiles the winner and control of each entry while others are timed. Both run the same configurations by
turns, a few samples each, under the entry's protocol (cold or warm). Without --before only this tree is timed.

A row for each entry is in OUT/entries-again.csv as soon as it is timed: the recorded time, those of both trees, the
median of the rounds' ratios with its 95 % interval, whether the machine code is the same but for where arguments lie,
and whether the results have the same bits. ``verdict`` compares the winner in this tree with the earlier one, or, where
there is none, with the record: "same within noise" where the interval has a ratio within 1 % of 1 (2 % beside a
record), "undecided" where it is wider than 5 %, else "faster" or "slower". Control is timed too where it is recorded to
take less than --control ms. ``reason`` is why a tree did not time an entry.
"""

import argparse
import contextlib
import hashlib
import json
import math
import os
import select
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = (
    "bilateral", "forest", "hash_grid", "lattice_boltzmann", "lookup", "nbody", "recursive_filter", "spmv", "stencil",
)  # fmt: skip
SAMPLES = 3  # of a configuration in a round
ROUNDS = 5, 40  # at least, at most
NOISE, RECORDED_NOISE = 0.01, 0.02
WIDE = 0.05  # an interval that says nothing
VERDICTS = "faster", "same within noise", "slower", "undecided", "not timed"
AHEAD = 6  # workloads whose inputs are made before their turn
COLUMNS = (
    "family", "workload", "what", "recorded_ms", "before_ms", "now_ms", "now_over_before", "low", "high",
    "now_over_recorded", "verdict", "code", "results", "control_recorded_ms", "control_before_ms", "control_now_ms",
    "control_now_over_before", "rounds", "cold", "recorded", "device", "clock_mhz", "configuration", "part",
    "reason",
)  # fmt: skip


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--before", type=Path, help="folder of the earlier tree")
    parser.add_argument("--out", type=Path, default=Path("entries-again"))
    parser.add_argument("--seconds", type=float, default=500, help="of all; no entry begins after these")
    parser.add_argument("--each", type=float, default=1.5, help="seconds of an entry's samples, about")
    parser.add_argument("--control", type=float, default=20, help="ms that a control may take to be timed")
    parser.add_argument("--part", default="0/1", help="K/N: each N-th workload from the K-th on")
    parser.add_argument(
        "--data", type=Path, default=ROOT / "workloads" / "data", help="folder of the data files"
    )
    parser.add_argument("--families", nargs="*", default=(), help="these alone, examples by their names")
    parser.add_argument("--workloads", nargs="*", default=(), help="these alone")
    parser.add_argument(
        "--threads", type=int, default=max(1, (os.cpu_count() or 2) // 2), help="of each tree"
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--slug", default="nvidia-h200", help="of the device whose entries are timed")
    parser.add_argument("--check", action="store_true", help="all that needs no GPU, without compiling")
    parser.add_argument(
        "--compile", metavar="ARCH", default="", help="with --check: compile for it, such as sm_90"
    )
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    if given.serve:
        return serve(given.serve, given.threads)
    with tempfile.TemporaryDirectory() as folder:
        entries = list(recorded(given.slug, Path(folder)))
        entries = [
            one
            for one in entries
            if (not given.families or Path(one["family"]).name in given.families)
            and (not given.workloads or one["workload"] in given.workloads)
        ]
        number, parts = map(int, given.part.split("/"))
        names = list(dict.fromkeys((one["family"], one["path"]) for one in entries))[number::parts]
        entries = [one for one in entries if (one["family"], one["path"]) in names]
        return timed(entries, given)


# -- what is recorded -------------------------------------------------------------------------------------------------


def recorded(slug: str, folder: Path) -> Iterator[dict[str, Any]]:
    """Each entry with its family, its workload's file, its winner and times; what takes the host longest comes last.
    Files of inputs that were only drawn are written to ``folder``."""
    found = [*shipped(slug, folder), *of_examples(slug)]
    return iter(sorted(found, key=lambda one: (not one["drawn"], one["control_ms"] + one["recorded_ms"])))


def shipped(slug: str, folder: Path) -> Iterator[dict[str, Any]]:
    from autotune.declaration import load_family, workloads
    from autotune.policy import read_policy_file

    for path in sorted((ROOT / "policies").glob(f"*/{slug}.yaml")):
        file = read_policy_file(path)
        known = workloads(load_family(file.family))
        for item in file.entries.values():
            is_drawn = item.workload not in known
            yield {
                "family": file.family, "workload": item.workload, "what": item.name, "drawn": is_drawn,
                "path": str(drawn_file(file.family, item.workload, folder) if is_drawn else known[item.workload]),
                "configuration": dict(item.configuration), "options": dict(item.options),
                "recorded_ms": item.median_ms, "control_ms": item.median_ms * item.margin_over_control,
                "recorded": (item.renewed_from or {"date": item.date})["date"][:16],
                "digest": item.workload_digest, "warm": item.protocol.get("cache") == "warm",
            }  # fmt: skip


def drawn_file(family: str, workload: str, folder: Path) -> Path:
    """The workload file of an input whose name tells its numbers."""
    from selection_inputs import RANGES, write

    numbers = map(int, workload.split("-"))
    (path,) = write(RANGES[family], [dict(zip(RANGES[family].numbers, numbers, strict=True))], folder)
    return path


def of_examples(slug: str) -> Iterator[dict[str, Any]]:
    """The fastest configuration of each workload in an example's table that its space still has."""
    from result_files import RESULTS, read_rows

    from autotune.declaration import load_family, load_workload, workloads
    from autotune.errors import AutotuneError

    for name in EXAMPLES:
        stem = f"{name}-{slug.removeprefix('nvidia-')}.csv"
        table = RESULTS / stem if (RESULTS / stem).exists() else RESULTS / f"{stem}.xz"
        if not table.exists():
            print(f"{name}: no table {stem}")
            continue
        family = load_family(str(ROOT / "examples" / name))
        known = workloads(family)
        rows: dict[str, list[tuple[float, dict[str, str]]]] = {}
        for row in read_rows(table):
            if ms := row.get("retimed_ms") or row.get("time_ms"):
                rows.setdefault(row["workload"], []).append((float(ms), row))
        for workload, timings in rows.items():
            control = next((ms for ms, row in timings if "control" in row["preset"].split()), 0.0)
            for best, of in sorted(timings, key=lambda one: one[0]) if workload in known else ():
                try:
                    configuration = family.space.configuration(of["configuration"])
                except AutotuneError:
                    continue
                yield {
                    "family": f"examples/{name}", "workload": workload, "what": workload, "drawn": False,
                    "path": str(known[workload]), "configuration": dict(configuration), "options": {},
                    "recorded_ms": best, "control_ms": control, "recorded": of["date"][:16], "digest": "",
                    "warm": not load_workload(family, workload).cold,
                }  # fmt: skip
                break
            else:
                print(f"{name} {workload}: no such workload, or no recorded configuration is in the space")


# -- a tree's process -------------------------------------------------------------------------------------------------


def serve(folder: str, threads: int) -> int:
    """Answer commands of standard input, one JSON object a line, about the tasks of FOLDER/tasks.json, with the
    autotune that PYTHONPATH names."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what else is printed goes to the other
    from autotune.declaration import load_family, load_workload
    from autotune.device import open_backend

    tasks = json.loads((Path(folder) / "tasks.json").read_text(encoding="utf-8"))
    tree = tree_here()
    families: dict[str, Any] = {}
    for task in tasks["entries"]:
        name = task["family"]
        try:
            if name not in families:
                families[name] = load_family(str(tree / name) if "/" in name else name)
                _ = families[name].module  # an earlier tree's threads find it while it is still being loaded
            task["loaded"] = load_workload(families[name], task["path"])
        except Exception as problem:  # noqa: BLE001 - a tree need not have the family
            task["problem"] = f"{type(problem).__name__}: {problem}"[:200]
    backend = open_backend(tasks["device"]) if tasks["device"] else None
    answers.write(json.dumps({"device": backend.device.name if backend else ""}) + "\n")
    answers.flush()
    with contextlib.ExitStack() as stack:
        if backend:
            stack.enter_context(contextlib.closing(backend))
            stack.enter_context(backend.current())
        pools = [stack.enter_context(ThreadPoolExecutor(many)) for many in (threads, AHEAD)]
        work = Work(backend, families, tasks, pools)
        for line in sys.stdin:
            command = json.loads(line)
            try:
                answer = getattr(work, command.pop("do"))(**command)
            except Exception as problem:  # noqa: BLE001 - of this entry; the others are timed
                traceback.print_exc()
                answer = {"problem": f"{type(problem).__name__}: {problem}"[:300]}
            answers.write(json.dumps(answer) + "\n")
            answers.flush()
        work.stopped.set()
        for pool in pools:
            pool.shutdown(wait=False, cancel_futures=True)
    return 0


def tree_here() -> Path:
    """The tree whose autotune this process has."""
    import autotune

    return Path(str(autotune.__file__)).parents[1]


def named(what: Any, name: str, earlier: str) -> Any:
    """A member that an earlier tree has by another name."""
    return getattr(what, name, None) or getattr(what, earlier)


class Work:
    """The entries' inputs, compiled configurations and plans in one tree."""

    def __init__(
        self,
        backend: Any,
        families: Mapping[str, Any],
        asked: Mapping[str, Any],
        pools: Sequence[ThreadPoolExecutor],
    ):
        self.backend, self.families, self.tasks = backend, families, asked["entries"]
        self.data = Path(asked["data"])
        self.compiling, self.making = pools
        self.stopped, self.room = threading.Event(), threading.Semaphore(AHEAD)
        self.inputs: dict[str, Future[Any]] = {}
        self.compiled: dict[int, Future[Any]] = {}
        self.resident: Any = None
        self.executions: dict[str, Any] = {}
        self.toolchain = self.toolchain_for(asked["arch"])
        threading.Thread(target=self.begin, daemon=True).start()

    def toolchain_for(self, arch: str) -> Any:
        """None where nothing is compiled."""
        from autotune.compile.nvrtc import Nvrtc

        return self.backend.toolchain() if self.backend else Nvrtc(arch) if arch else None

    def begin(self) -> None:
        """Hand out the work in order, inputs not further ahead than ``AHEAD`` workloads."""
        for number, task in enumerate(self.tasks):
            if "problem" not in task:
                self.compiled[number] = self.compiling.submit(self.compile, task)
        for task in self.tasks:
            if task["path"] not in self.inputs and "problem" not in task:
                while not self.room.acquire(timeout=1):
                    if self.stopped.is_set():
                        return
                self.inputs[task["path"]] = self.making.submit(self.make, task)

    def make(self, task: Mapping[str, Any]) -> Any:
        """The inputs, and how long they took."""
        from autotune.declaration import prepare

        begin = time.monotonic()
        inputs = prepare(self.families[task["family"]], task["loaded"], self.data)
        return inputs, time.monotonic() - begin

    def compile(self, task: Mapping[str, Any]) -> dict[str, Any]:
        """By what it is: the variant, and the compiled one or why there is none."""
        from autotune.compile import Cache, Variant, batch, compile_batch, default_root

        family, space = self.families[task["family"]], self.families[task["family"]].space
        options = named(family, "choose_options", "chosen_options")(
            {**task["loaded"].options, **task["options"]}
        )
        policies = {policy.name for policy in space.policies}
        made = {}
        for what in task["configurations"]:
            if what == "control":
                configuration = space.control
            else:
                values = {k: v for k, v in task["configuration"].items() if k in policies}
                configuration = space.configuration(",".join(f"{k}={v}" for k, v in values.items()))
            variant = named(Variant, "make", "of")(family, configuration, options)
            compiled = None
            if self.toolchain:
                (compiled,) = compile_batch(batch(family, (variant,)), self.toolchain, Cache(default_root()))
            made[what] = variant, compiled
        return made

    def wait_for(self, number: int) -> tuple[Any, dict[str, Any], float]:
        """An entry's inputs, what is compiled, and the seconds that the inputs took."""
        task = self.tasks[number]
        if "problem" in task:
            raise ValueError(task["problem"])
        while number not in self.compiled or task["path"] not in self.inputs:
            time.sleep(0.01)
        inputs, seconds = self.inputs[task["path"]].result()
        return inputs, self.compiled[number].result(), seconds

    def check(self, number: int) -> dict[str, Any]:
        """What needs no device."""
        from autotune.compile import Compiled

        inputs, made, seconds = self.wait_for(number)
        code = {
            what: code_digest(one) if isinstance(one, Compiled) else str(one)[:200]
            for what, (_, one) in made.items()
        }
        wanted = self.tasks[number]["digest"]
        return {"digest": wanted and inputs.digest == wanted, "seconds": seconds, "code": code}

    def ready(self, number: int) -> dict[str, Any]:
        """Place an entry's inputs, run each configuration once, and tell what its code and results are."""
        from autotune.compile import Compiled
        from autotune.device import Resident

        self.close()
        task, (inputs, made, _) = self.tasks[number], self.wait_for(number)
        self.resident = Resident(self.backend, inputs, most=3)
        told: dict[str, Any] = {"code": {}, "results": {}, "ms": {}, "problems": {}, "digest": ""}
        if task["digest"]:
            told["digest"] = inputs.digest
        for what, (variant, compiled) in made.items():
            try:
                assert isinstance(compiled, Compiled), f"not compiled: {compiled}"
                told["code"][what] = code_digest(compiled) if self.backend.device.kind == "cuda" else ""
                execution = self.resident.execution(variant, self.backend.load(compiled))
                self.backend.sample(execution.run, 1, task["cold"])
                told["ms"][what] = min(self.backend.sample(execution.run, 1, task["cold"]))
                self.executions[what] = execution
                told["results"][what] = results_digest(variant, execution, inputs)
            except Exception as problem:  # noqa: BLE001 - control need not be for every option
                told["problems"][what] = f"{type(problem).__name__}: {problem}"[:200]
        return told

    def sample(self, what: str, count: int, cold: bool) -> dict[str, Any]:
        return {"ms": self.backend.sample(self.executions[what].run, count, cold)}

    def clock(self) -> dict[str, Any]:
        return {"mhz": self.backend.describe().get("clock_mhz", "")}

    def close(self, path: str = "") -> dict[str, Any]:
        """Free what an entry had; the inputs of ``path`` are not needed any more."""
        self.executions.clear()
        if self.resident is not None:
            self.resident.close()
            self.resident = None
        if path in self.inputs:
            self.inputs[path] = Future()
            self.room.release()
        return {}


def code_digest(compiled: Any) -> str:
    """Of a binary's instructions, without where in the constants of a launch its arguments lie."""
    from renew_alike import INSTRUCTION, OFFSET, has_constant

    from autotune.compile.same_code import _read

    module, digest = _read(compiled.image, 0, 0), hashlib.sha256()
    for kernel, symbol in sorted(compiled.symbols.items()):
        code = module.sections[f".text.{symbol}"][0]
        digest.update(kernel.encode())
        for at in range(0, len(code), INSTRUCTION):
            one = int.from_bytes(code[at : at + INSTRUCTION], "little")
            digest.update((one & ~OFFSET if has_constant(one) else one).to_bytes(INSTRUCTION, "little"))
    return digest.hexdigest()[:16]


def results_digest(variant: Any, execution: Any, inputs: Any) -> str:
    """Of the outputs, where they are not large."""
    digest = hashlib.sha256()
    outputs = variant.family.outputs
    if sum(math.prod(data.shape_for(inputs.sizes)) * data.dtype.itemsize for data in outputs) > 64 << 20:
        return ""
    for data in outputs:
        digest.update(execution.restore(data.name, data.shape_for(inputs.sizes)).tobytes())
    return digest.hexdigest()[:16]


# -- timing -----------------------------------------------------------------------------------------------------------


class Tree:
    """The process of one tree."""

    def __init__(self, name: str, root: Path, folder: Path, threads: int, end: float):
        self.name, self.end = name, end
        paths = os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH"))))
        environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve", str(folder), "--threads", str(threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=root,
        )  # fmt: skip

    def tell(self, **command: Any) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def hear(self) -> Any:
        """The next answer. Raises RuntimeError where the process or the entry failed, or its time is over."""
        assert self.process.stdout
        if not select.select([self.process.stdout], [], [], max(1.0, self.end - time.monotonic()))[0]:
            self.process.kill()
        line = self.process.stdout.readline()
        answer = json.loads(line) if line else {"problem": "its process ended"}
        if "problem" in answer:
            raise RuntimeError(f"{self.name}: {answer['problem']}")
        return answer

    def ask(self, **command: Any) -> Any:
        self.tell(**command)
        return self.hear()

    def end_process(self) -> None:
        self.process.kill()
        with contextlib.suppress(BrokenPipeError):
            self.process.communicate()


def timed(entries: list[dict[str, Any]], given: argparse.Namespace) -> int:
    """Time the entries until their seconds are over; how many were not."""
    from result_files import write_rows

    end = time.monotonic() + given.seconds
    for one in entries:
        one["cold"] = not one["warm"]
        is_fast = 0 < one["control_ms"] <= given.control
        one["configurations"] = ["winner", *(["control"] if is_fast else [])]
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asked = {"device": "" if given.check else given.device, "arch": given.compile, "entries": entries}
        asked["data"] = str(given.data.resolve())
        (folder / "tasks.json").write_text(json.dumps(asked), encoding="utf-8")
        roots = {"now": ROOT, **({"before": given.before.resolve()} if given.before else {})}
        trees = {
            what: Tree(what, root, folder, given.threads, end + 2 * given.each)
            for what, root in roots.items()
        }
        device = next(iter([tree.hear() for tree in trees.values()]))
        if given.check:
            return checked(entries, trees)
        for number, one in enumerate(entries):
            if time.monotonic() > end:
                print(f"{len(entries) - number} entries did not begin in their time", flush=True)
                break
            begin = time.monotonic()
            try:
                row = time_one(number, one, trees, given.each)
                rows.append({**row, "device": device["device"], "part": given.part})
                write_rows(given.out / "entries-again.csv", rows, COLUMNS)
                print("{family:24} {what:24} recorded {recorded_ms:10.5f}  before {before_ms:>10}  now {now_ms:10.5f}  "
                      "{now_over_before:>7}  {verdict}, code {code}, results {results}".format(**row)
                      + f" ({time.monotonic() - begin:.1f} s)", flush=True)  # fmt: skip
            except Exception as problem:  # noqa: BLE001 - of this entry; the others are timed
                print(f"{one['family']} {one['what']}: {problem}", flush=True)
                rows.append(
                    {**known_of(one), "verdict": "not timed", "part": given.part, "reason": str(problem)}
                )
                write_rows(given.out / "entries-again.csv", rows, COLUMNS)
                if any(tree.process.poll() is not None for tree in trees.values()):
                    break
            is_last = is_last_of(number, entries)
            for tree in trees.values():
                with contextlib.suppress(RuntimeError, OSError):
                    tree.ask(do="close", path=one["path"] if is_last else "")
        for tree in trees.values():
            tree.end_process()
    print(table(rows))
    return len(entries) - len([row for row in rows if row["verdict"] != "not timed"])


def known_of(one: Mapping[str, Any]) -> dict[str, Any]:
    """What a row says of an entry before it is timed, and nothing of its times."""
    return {
        **dict.fromkeys(COLUMNS, ""),
        **{name: one[name] for name in ("family", "workload", "what", "recorded_ms", "cold", "recorded")},
        "control_recorded_ms": round(one["control_ms"], 6) or "",
        "configuration": ",".join(f"{k}={v}" for k, v in one["configuration"].items()),
    }


def time_one(
    number: int, one: Mapping[str, Any], trees: Mapping[str, Tree], seconds: float
) -> dict[str, Any]:
    """The row of one entry."""
    for tree in trees.values():
        tree.tell(do="ready", number=number)
    answers, problems = {}, []
    for name, tree in trees.items():  # each is heard, whatever the other says
        try:
            answers[name] = tree.hear()
        except RuntimeError as problem:
            problems.append(str(problem))
    if "now" not in answers or "winner" not in answers["now"]["ms"]:
        raise RuntimeError("; ".join([*problems, *(answers.get("now", {}).get("problems", {}).values())]))
    for name, answer in answers.items():
        problems += [f"{name}, {what}: {why}" for what, why in answer["problems"].items()]
    for why in problems:
        print(f"   {why}", flush=True)
    at = {name: tree for name, tree in trees.items() if "winner" in answers.get(name, {"ms": {}})["ms"]}
    times: dict[tuple[str, str], list[float]] = {}
    shares = {"winner": 0.6, "control": 0.4}
    for what in one["configurations"]:
        told = {name: tree for name, tree in at.items() if what in answers[name]["ms"]}
        limit, rounds = time.monotonic() + seconds * shares[what], 0
        while rounds < ROUNDS[0] or (rounds < ROUNDS[1] and time.monotonic() < limit):
            for name in list(told)[:: 1 if rounds % 2 else -1]:
                taken = told[name].ask(do="sample", what=what, count=SAMPLES, cold=one["cold"])["ms"]
                times.setdefault((name, what), []).append(median(taken))
            rounds += 1
            if rounds >= 3 and time.monotonic() > limit + seconds:  # a long one
                break
    now = median(times["now", "winner"])
    row = {
        **known_of(one),
        "now_ms": round(now, 6), "now_over_recorded": round(now / one["recorded_ms"], 4),
        "rounds": len(times["now", "winner"]), "clock_mhz": at["now"].ask(do="clock")["mhz"],
        "reason": "; ".join(problems),
    }  # fmt: skip
    for name in at:
        if (name, "control") in times:
            row[f"control_{name}_ms"] = round(median(times[name, "control"]), 6)
    if all((name, "control") in times for name in ("now", "before")):
        ratio, _, _ = interval(times["now", "control"], times["before", "control"])
        row["control_now_over_before"] = round(ratio, 4)
    if answers["now"]["digest"] not in ("", one["digest"]):
        row["recorded"] += " (other inputs)"
    if ("before", "winner") in times:
        row["before_ms"] = round(median(times["before", "winner"]), 6)
        ratio, low, high = interval(times["now", "winner"], times["before", "winner"])
        row |= {"now_over_before": round(ratio, 4), "low": round(low, 4), "high": round(high, 4)}
        row["verdict"] = verdict(low, high, NOISE)
        for field in ("code", "results"):
            pair = [answers[name][field].get("winner", "") for name in ("now", "before")]
            row[field] = "" if not all(pair) else "same" if pair[0] == pair[1] else "other"
    else:
        row["verdict"] = verdict(row["now_over_recorded"], row["now_over_recorded"], RECORDED_NOISE)
    return row


def interval(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float, float]:
    """The median of the rounds' ratios and its 95 % interval."""
    ratios = sorted(one / other for one, other in zip(ours, theirs, strict=False))
    count = len(ratios)
    away = 0.98 * math.sqrt(count)
    return (
        median(ratios),
        ratios[max(0, int(count / 2 - away))],
        ratios[min(count - 1, math.ceil(count / 2 + away))],
    )


def verdict(low: float, high: float, noise: float) -> str:
    if high - low > WIDE:
        return "undecided"
    return "slower" if low > 1 + noise else "faster" if high < 1 - noise else "same within noise"


def checked(entries: Sequence[Mapping[str, Any]], trees: Mapping[str, Tree]) -> int:
    """Print what each tree makes of each entry; how many could not be timed."""
    failed = 0
    for number, one in enumerate(entries):
        told: dict[str, Any] = {}
        for name, tree in trees.items():
            try:
                told[name] = tree.ask(do="check", number=number)
            except RuntimeError as problem:
                told[name] = str(problem)
            tree.ask(do="close", path=one["path"] if is_last_of(number, entries) else "")
        failed += any(isinstance(answer, str) for answer in told.values())
        print(f"{one['family']:24} {one['what']:24} {one['recorded_ms']:10.5f} ms  {told}", flush=True)
    for tree in trees.values():
        tree.end_process()
    print(f"{len(entries)} entries, {failed} failed")
    return failed


def is_last_of(number: int, entries: Sequence[Mapping[str, Any]]) -> bool:
    """Whether no later entry has the workload of this one."""
    return all(other["path"] != entries[number]["path"] for other in entries[number + 1 :])


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The table, and by family how many of each verdict."""
    lines = [
        "| family | workload | recorded, ms | before, ms | now, ms | now / before | now / recorded | verdict | code |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda one: (one["family"], one["what"])):
        lines.append(
            "| {family} | {what} | {recorded_ms:.5f} | {before_ms} | {now_ms} | {now_over_before} "
            "| {now_over_recorded} | {verdict} | {code} |".format(**row)
        )
    families: dict[str, list[str]] = {}
    for row in rows:
        families.setdefault(str(row["family"]), []).append(str(row["verdict"]))
    for family, verdicts in sorted(families.items()):
        counts = {one: verdicts.count(one) for one in VERDICTS}
        lines.append(
            f"{family}: {len(verdicts)} entries, " + ", ".join(f"{n} {what}" for what, n in counts.items())
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
