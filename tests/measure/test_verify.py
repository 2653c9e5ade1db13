"""What the verifier catches: each way in which a kernel may be wrong without its outputs' differing at first sight."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import careless
import numpy as np
import pytest
from fakes import FAMILY, PROTOCOL, FakeBackend, write_family
from numpy.typing import NDArray

from autotune.compile.batches import compile_batch
from autotune.compile.cache import Cache
from autotune.compile.toolchain import Compiled
from autotune.compile.variant import Geometry, Variant, batch
from autotune.declaration import family as families
from autotune.declaration import workload as workloads
from autotune.device.backend import LaunchError
from autotune.device.cpu.backend import CpuBackend
from autotune.device.execution import Execution
from autotune.engine import measurer as worker
from autotune.engine.measurer import Measurer
from autotune.engine.messages import Job, Tried
from autotune.layout.arrays import Data, Field
from autotune.layout.layout import Layout
from autotune.layout.order import find_gaps
from autotune.measure.verify import GUARD_BYTES

WITH_SCRATCH = FAMILY.replace(
    "\nkernels:", "\n  kept: {role: scratch, type: float32, shape: [n]}\nkernels:"
).replace("[x, y]", "[x, y, kept]")
ONE = WITH_SCRATCH.replace("values: [32, 64, 128, 256]", "values: [128]").replace(
    "values: [global, readonly, texture]", "values: [global]"
)


RUNS = 6  # the last run of a configuration of ONE


@dataclass
class Kernel:
    """What a careless kernel sees of its arrays: ``x``, ``y`` and ``kept`` as floats, and ``rooms`` with the guards."""

    rooms: Mapping[str, NDArray[np.float32]]
    run: int  # how many ran before
    configuration: Mapping[str, Any]

    def __getattr__(self, name: str) -> NDArray[np.float32]:
        guard = GUARD_BYTES // 4
        return self.rooms[name][guard:-guard]

    def right(self) -> None:
        self.y[:] = 2 * self.x


@dataclass
class Careless(FakeBackend):
    """Runs ``does`` as the kernel."""

    does: Callable[[Kernel], None] = Kernel.right
    runs: int = 0
    constants: list[tuple[Any, int]] = field(default_factory=list)

    def launch(self, module: Any, kernel: str, geometry: Geometry, arguments: Sequence[bytes]) -> None:
        configuration = self.configurations[module.compiled.key]
        self.clock_ms += self.costs(configuration)
        rooms = dict(
            zip(("x", "y", "kept"), (self._placed[a].room.view(np.float32) for a in arguments), strict=True)
        )
        self.does(Kernel(rooms, self.runs, configuration))
        self.runs += 1


class Bench:
    """A Measurer on the careless device, and the jobs of the family's configurations."""

    def __init__(
        self, folder: Path, does: Callable[[Kernel], None], family: str = ONE, outputs: Any = None
    ) -> None:
        write_family(folder / "doubler", family)
        self.family = families.load_family(folder / "doubler")
        self.backend = Careless(does=does)
        variants = [Variant(self.family, c) for c in self.family.space.configurations()]
        self.backend.know(variants)
        built = compile_batch(
            batch(self.family, tuple(variants)), self.backend.tools, Cache(folder / "cache")
        )
        self.jobs = [
            Job(variant.configuration, binary)
            for variant, binary in zip(variants, built, strict=True)
            if isinstance(binary, Compiled)
        ]
        workload = workloads.load_workload(self.family)
        self.inputs = workloads.prepare(self.family, workload, folder)
        expected = None if self.family.is_own_reference else outputs or {"y": 2 * self.inputs.arrays["x"]}
        self.measurer = Measurer(self.backend, self.family, workload, self.inputs, expected, PROTOCOL)

    def tried(self, **policies: Any) -> Tried:
        (job,) = (job for job in self.jobs if policies.items() <= dict(job.configuration).items())
        return self.measurer.try_job(job)


def adds(kernel: Kernel) -> None:
    kernel.y[:] += 2 * kernel.x


def forgets(kernel: Kernel) -> None:
    kernel.y[:-1] = 2 * kernel.x[:-1]


def leaves_a_zero(kernel: Kernel) -> None:
    kernel.y[1:] = 2 * kernel.x[1:]


def writes_behind(kernel: Kernel) -> None:
    kernel.right()
    kernel.rooms["y"][GUARD_BYTES // 4 + 1000] = 1.0


def writes_sixteen_behind_scratch(kernel: Kernel) -> None:
    kernel.right()
    at = GUARD_BYTES // 4 + 1000
    kernel.rooms["kept"][at : at + 16] = 1.0


def writes_before(kernel: Kernel) -> None:
    kernel.right()
    kernel.rooms["x"][GUARD_BYTES // 4 - 3] = 1.0


def uses_what_is_behind_the_input(kernel: Kernel) -> None:
    kernel.right()
    kernel.y[-1] += 1e-3 * kernel.rooms["x"][GUARD_BYTES // 4 + 1000]


def takes_the_larger_behind_the_input(kernel: Kernel) -> None:
    """As fmaxf does: NaN is passed over."""
    kernel.right()
    kernel.y[-1] = np.fmax(kernel.y[-1], kernel.rooms["x"][GUARD_BYTES // 4 + 1000])


def reads_scratch_first(kernel: Kernel) -> None:
    kernel.right()
    kernel.y[:] += kernel.kept


def is_wrong_from_the_second_call_on(kernel: Kernel) -> None:
    kernel.right()
    kernel.y[0] += kernel.run > 0


def is_wrong_once_it_is_timed(kernel: Kernel) -> None:
    kernel.right()
    kernel.y[0] += kernel.run > 2


def is_wrong_in_the_last_run(kernel: Kernel) -> None:
    kernel.right()
    kernel.y[0] += kernel.run == RUNS


def is_wrong_in_the_run_before_that(kernel: Kernel) -> None:
    kernel.right()
    kernel.y[0] += kernel.run == RUNS - 1


def is_wrong_in_every_second_run(kernel: Kernel) -> None:
    """By what the run before left in scratch."""
    kernel.right()
    kernel.y[0] += kernel.kept[0] == 4711.0
    kernel.kept[0] = 0.0 if kernel.kept[0] == 4711.0 else 4711.0


def writes_its_input(kernel: Kernel) -> None:
    kernel.right()
    kernel.x[3] = 7.0


@pytest.mark.parametrize(
    ("does", "said"),
    [
        (adds, "y: 1000 of 1000 elements differ, the first at [0]: nan"),
        (forgets, "y: 1 of 1000 elements differ, the first at [999]: nan"),
        (leaves_a_zero, "y: 1 of 1000 elements differ, the first at [0]: nan"),
        (writes_behind, "writes outside of y: 4 bytes after its end, the nearest 0 and the furthest 3 bytes from it"),
        (writes_sixteen_behind_scratch, "writes outside of kept: 64 bytes after its end, the nearest 0"),
        (writes_before, "writes outside of x: 4 bytes before its beginning, the nearest 8 and the furthest 11 bytes"),
        (uses_what_is_behind_the_input, "y: 1 of 1000 elements differ, the first at [999]: nan"),
        (takes_the_larger_behind_the_input, "y: 1 of 1000 elements differ, the first at [999]: 8.4"),
        (reads_scratch_first, "y: 1000 of 1000 elements differ, the first at [0]: nan"),
        (is_wrong_from_the_second_call_on, "y: 1 of 1000 elements differ"),
        (is_wrong_once_it_is_timed, "right when first verified, wrong when it was timed: y: 1 of 1000"),
        (is_wrong_in_the_last_run, "right when first verified, wrong when it was timed: y: 1 of 1000"),
        (is_wrong_in_the_run_before_that, "right when first verified, wrong when it was timed: y: 1 of 1000"),
        (is_wrong_in_every_second_run, "y: 1 of 1000 elements differ"),
        (writes_its_input, "writes its input x: 1 of 1000 elements differ, the first at [3]: 7.0, expected"),
    ],
)  # fmt: skip
def test_a_careless_kernel_is_a_wrong_result_though_it_is_the_only_configuration(
    tmp_path: Path, does: Callable[[Kernel], None], said: str
) -> None:
    trial = Bench(tmp_path, does).tried().trial
    assert trial.state == "wrong_result"
    assert said in trial.reason


def test_a_right_kernel_is_measured_and_the_first_run_begins_with_nan_and_the_second_does_not(
    tmp_path: Path,
) -> None:
    seen: list[float] = []

    def remembers(kernel: Kernel) -> None:
        seen.append(float(kernel.y[0]))
        assert float(kernel.kept[0]) == (7.0 if len(seen) > 2 else seen[-1]) or np.isnan(seen[-1])
        kernel.kept[0] = 7.0
        kernel.right()

    assert Bench(tmp_path, remembers).tried().trial.state == "measured"
    assert np.isnan(seen[0])
    assert seen[1] > 1e37
    assert seen[2] == seen[1]  # and finds in scratch what the run before left
    assert set(seen[3:]) == {seen[3]}  # timed runs find what the run before left


def test_integers_that_equal_the_pattern_are_not_taken_for_written(tmp_path: Path) -> None:
    whole = ONE.replace("y: {role: output, type: float32", "y: {role: output, type: uint32")
    bench = Bench(tmp_path, lambda kernel: None, whole)
    for byte in (0xFF, 0x7E, 0xFE):
        expected = np.full(1000, int.from_bytes(bytes([byte] * 4)), np.uint32)
        bench.measurer._verifier.expected = {"y": expected}
        bench.measurer._verifier._resident.clear()
        assert bench.tried().trial.state == "wrong_result"


def test_who_writes_its_input_is_named_and_the_others_find_it_as_it_was(tmp_path: Path) -> None:
    def careless(kernel: Kernel) -> None:
        kernel.right()
        if kernel.configuration["block_size"] == 64:
            kernel.x[:] = 0.0

    bench = Bench(tmp_path, careless, WITH_SCRATCH)
    given = bench.inputs.arrays["x"].copy()
    states = [bench.measurer.try_job(job).trial for job in bench.jobs]
    wrong = {trial.configuration["block_size"] for trial in states if trial.state == "wrong_result"}
    assert wrong == {64}
    assert sum(trial.state == "measured" for trial in states) == 9
    assert all("writes its input x" in t.reason for t in states if t.state == "wrong_result")
    np.testing.assert_array_equal(bench.inputs.arrays["x"], given)


def test_what_the_device_finds_equal_is_not_fetched_and_what_it_does_not_is_told_by_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[Any] = []
    download = FakeBackend.download

    def noted(backend: FakeBackend, placed: Any, *more: Any) -> Any:
        if placed.stored.nbytes != GUARD_BYTES:
            fetched.append(placed)
        return download(backend, placed, *more)

    monkeypatch.setattr(FakeBackend, "download", noted)
    bench = Bench(tmp_path, Kernel.right, WITH_SCRATCH)
    assert bench.tried(memory="global", block_size=64).trial.state == "measured"
    assert not fetched
    bench.backend.does = forgets
    trial = bench.tried(memory="global", block_size=32).trial
    assert trial.reason.startswith("y: 1 of 1000 elements differ, the first at [999]: nan, expected")
    assert len(fetched) == 1


def test_a_kernel_that_writes_to_the_reference_is_held_against_what_it_was(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Kernel.right, WITH_SCRATCH)

    def writes_zeros_everywhere(kernel: Kernel) -> None:
        kernel.y[:] = 0.0
        for right in bench.measurer._verifier._resident.values():
            assert right is not None
            right.placed.buffer[:] = 0

    assert bench.tried(memory="global", block_size=64).trial.state == "measured"
    bench.backend.does = writes_zeros_everywhere
    trial = bench.tried(memory="global", block_size=32).trial
    assert trial.state == "wrong_result" and "of 1000 elements differ" in trial.reason
    bench.backend.does = Kernel.right
    assert bench.tried(memory="global", block_size=128).trial.state == "measured"


def test_in_a_race_a_long_kernel_that_is_slower_is_run_as_often_as_it_takes_to_see_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Kernel.right, WITH_SCRATCH)
    bench.measurer.protocol = replace(PROTOCOL.fix_samples(7), race=1.02)
    costs = {32: 100.0, 64: 101.3, 128: 101.9, 256: 103.0}
    bench.backend.costs = lambda c: costs[c["block_size"]]
    runs = []
    for size in costs:
        before = bench.backend.runs
        tried = bench.tried(memory="texture", block_size=size).trial
        runs.append(bench.backend.runs - before)
        assert tried.measurement is not None and tried.measurement.abandoned == (size > 32)
    assert runs == [9, 3, 3, 1]  # three of them verified, where there are three, and the third timed


def test_a_hopelessly_slow_configuration_is_run_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Kernel.right, WITH_SCRATCH)
    bench.backend.costs = lambda c: 100.0 if c["memory"] == "texture" else 1.0
    bench.tried(memory="global", block_size=64)
    before = bench.backend.runs
    tried = bench.tried(memory="texture", block_size=64)
    assert tried.trial.measurement is not None and tried.trial.measurement.abandoned
    assert bench.backend.runs == before + 1


def test_a_finalist_that_is_wrong_in_one_turn_is_found(tmp_path: Path) -> None:
    def slips(kernel: Kernel) -> None:
        kernel.right()
        kernel.y[5] += kernel.run == 0

    bench = Bench(tmp_path, slips, WITH_SCRATCH)
    first, second = bench.jobs[:2]
    wrong = bench.measurer.retime((first, second), frozenset(), 1.0).wrong
    assert "y: 1 of 1000 elements differ, the first at [5]" in wrong[first.configuration]
    assert wrong[second.configuration] == ""


def test_a_finalist_is_not_blamed_for_an_input_that_another_wrote_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def careless_64(kernel: Kernel) -> None:
        kernel.right()
        if kernel.configuration["block_size"] == 64:
            kernel.x[:] = 0.0

    monkeypatch.setattr(worker, "_CHECKED_SHARE", math.inf)  # after each turn
    bench = Bench(tmp_path, careless_64, WITH_SCRATCH)
    jobs = [job for job in bench.jobs if job.configuration["memory"] == "global"]
    wrong = bench.measurer.retime(jobs, frozenset(), 1.0).wrong
    assert {c["block_size"] for c, reason in wrong.items() if reason} == {64}
    assert all("writes its input x" in reason for reason in wrong.values() if reason)


def test_an_input_is_mended_after_a_kernel_that_wrote_to_it_and_failed(tmp_path: Path) -> None:
    def fails(kernel: Kernel) -> None:
        if kernel.configuration["block_size"] == 64:
            kernel.x[:] = 0.0
            raise LaunchError("the kernel trapped")
        kernel.right()

    bench = Bench(tmp_path, fails, WITH_SCRATCH)
    assert bench.tried(memory="global", block_size=64).trial.state == "launch_failed"
    assert bench.tried(memory="global", block_size=32).trial.state == "measured"


def test_finalists_of_one_binary_keep_their_own_constant_memory(tmp_path: Path) -> None:
    with CpuBackend(1) as backend:
        assert careless.wrong_finalists(backend, tmp_path) == ["", ""]


def test_faults_on_the_host(tmp_path: Path) -> None:
    with CpuBackend(1) as backend:
        reasons = careless.reasons(backend, tmp_path)
    assert reasons.keys() == careless.SAID.keys()
    for fault, reason in reasons.items():
        assert reason.startswith(careless.SAID[fault])
        assert bool(reason) == bool(fault)


@pytest.mark.parametrize(
    ("choice", "free"),
    [
        ({}, ()),
        ({"padding": 4}, ((12, 16), (28, 32))),
        ({"padding": 4, "axes": (1, 0)}, ((8, 16), (24, 32), (40, 48))),
        ({"dims": "2d"}, ((24, 4 * 4096),)),
    ],
)
def test_slack_is_what_is_no_element(choice: dict[str, Any], free: tuple[tuple[int, int], ...]) -> None:
    data = Data(name="a", role="input", fields=(Field("", "float32"),), shape=("i", "j"))
    assert find_gaps([Layout(data=data, **choice)], (2, 3)) == free


def test_slack_of_a_group_is_what_no_member_has() -> None:
    data = Data(name="a", role="input", fields=(Field("", "float32"),), shape=("i",))
    pair = [Layout(data=data, group=(2, member), padding=4) for member in range(2)]
    assert find_gaps(pair, (3,)) == ((24, 32),)


def test_slack_of_an_input_differs_between_runs_and_is_no_write_to_it(tmp_path: Path) -> None:
    padded = ONE.replace(
        "x: {role: input, type: float32", "x: {role: input, layout: {padding: 64}, type: float32"
    )
    seen: list[float] = []

    def looks(kernel: Kernel) -> None:
        seen.append(float(kernel.x[1000]))
        kernel.y[:] = 2 * kernel.x[:1000]

    assert Bench(tmp_path, looks, padded).tried().trial.state == "measured"
    assert np.isnan(seen[0])
    assert seen[1] > 1e37


def test_what_is_not_compared_costs_the_host_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is fetched where a NaN stands in for most of what is right; what is compared still counts."""
    lenient = f"{ONE}tolerance:\n  y: {{relative: 1.0e-6, nan: ignore}}\n"

    def wrong_in(places: slice) -> Callable[[Kernel], None]:
        def does(kernel: Kernel) -> None:
            kernel.right()
            kernel.y[places] += 1

        return does

    def state(folder: str, does: Callable[[Kernel], None]) -> str:
        (tmp_path / folder).mkdir()
        expected = np.full(1000, np.nan, np.float32)
        bench = Bench(tmp_path / folder, does, lenient, {"y": expected})
        expected[::100] = 2 * bench.inputs.arrays["x"][::100]
        return bench.tried().trial.state

    assert state("compared", wrong_in(slice(100, 101))) == "wrong_result"
    monkeypatch.setattr(Execution, "restore", lambda *_: pytest.fail("fetched"))
    assert state("right", Kernel.right) == state("not compared", wrong_in(slice(1, 100))) == "measured"
