"""What every backend keeps of the protocol `Backend`: the two fakes that tests run on, the cpu, and a GPU."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import FAMILY, FakeBackend, write_family
from lending import Gpu
from numpy.typing import NDArray

from autotune.compile import Cache, Compiled, Geometry, Variant, batch, compile_batch, default_root
from autotune.declaration import load_family
from autotune.device import Backend, Copy, CopyQueue, Module, Placed
from autotune.layout import Stored
from autotune.layout.stored import Known

MEMORIES = ("global", "readonly", "texture", "constant")
DOUBLER = FAMILY.replace("[global, readonly, texture]", f"[{', '.join(MEMORIES)}]")
X = np.random.default_rng(5).random(100, np.float32)
ONE_BLOCK = Geometry((1, 1, 1), (128, 1, 1))


@pytest.fixture(params=["fake", "lending", "cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    if request.param == "fake":
        yield FakeBackend(costs=lambda configuration: 1.0)
    elif request.param == "lending":
        yield Gpu()
    elif request.param == "cpu":
        from autotune.device.cpu.backend import CpuBackend

        with CpuBackend(2) as cpu:
            yield cpu
    else:
        from autotune.device.cuda.backend import CudaBackend

        with CudaBackend(0) as cuda, cuda.current():
            yield cuda


@dataclass
class Doubler:
    """y = 2 x, loaded, with an x in the memory of the variant and a y, in which nothing is right yet."""

    backend: Backend
    variant: Variant
    module: Module
    x: Placed
    y: Placed

    def launch(self) -> None:
        self.backend.launch(self.module, "doubler", ONE_BLOCK, [self.x.argument, self.y.argument])

    def found(self) -> NDArray[np.float32]:
        return self.backend.download(self.y).view(np.float32)

    def check(self, launched: Callable[[], object], expected: Any = 2 * X) -> None:
        self.backend.fill(self.y, 0)
        launched()
        self.backend.synchronize()
        np.testing.assert_array_equal(self.found(), expected)


def doubler(backend: Backend, folder: Path, memory: str = "global") -> Doubler:
    family = load_family(write_family(folder / "doubler", DOUBLER))
    variant = Variant(family, family.space.configuration(f"memory={memory},block_size=128"))
    if isinstance(backend, FakeBackend):
        backend.know([variant])
    (compiled,) = compile_batch(batch(family, (variant,)), backend.toolchain(), Cache(default_root()))
    assert isinstance(compiled, Compiled), compiled
    module = backend.load(compiled)
    x = backend.place(variant.layouts["x"].apply(X), module)
    return Doubler(backend, variant, module, x, backend.place(room()))


def linear(array: NDArray[Any]) -> Stored:
    """As it is, in plain memory."""
    values = np.ascontiguousarray(array).view(np.uint8)
    return Stored(
        values, values.nbytes, array.itemsize, "global", array.shape, (1,), 0, known=Known((0,), (1,))
    )


def room() -> Stored:
    return replace(linear(X), buffer=None)


# -- memory


def test_what_is_placed_or_uploaded_is_what_is_downloaded(backend: Backend) -> None:
    placed = backend.place(linear(X))
    assert placed.stored.nbytes == X.nbytes
    assert placed.stored.buffer is None or placed.stored.buffer.nbytes == X.nbytes
    np.testing.assert_array_equal(backend.download(placed).view(np.float32), X)
    np.testing.assert_array_equal(backend.download(placed, 12).view(np.float32), X[:3])
    backend.upload(placed, linear(X[::-1]))
    copied = backend.download(placed)
    backend.fill(placed, 0)  # what was downloaded is a copy
    np.testing.assert_array_equal(copied.view(np.float32), X[::-1])
    placed.free()


def test_a_part_is_filled(backend: Backend) -> None:
    placed = backend.place(room())
    backend.fill(placed, 1)
    backend.fill(placed, 2, 5)
    backend.fill(placed, 3, 7, 4)
    assert backend.download(placed).tolist() == [1] * 5 + [2] * 2 + [3] * 4 + [2] * (X.nbytes - 11)


def test_guards_are_around_an_array_and_not_of_it(backend: Backend) -> None:
    placed, bare = backend.place(linear(X), guard=512), backend.place(linear(X))
    for guard in placed.guards:
        backend.fill(guard, 0xA5)
    around = [backend.download(guard) for guard in placed.guards]
    assert [part.size for part in around] == [512, 512]
    assert all((part == 0xA5).all() for part in around)
    np.testing.assert_array_equal(backend.download(placed).view(np.float32), X)
    backend.fill(placed, 0)
    assert all((backend.download(guard) == 0xA5).all() for guard in placed.guards)
    assert not bare.guards


def test_a_checksum_is_of_the_content(backend: Backend) -> None:
    placed = backend.place(linear(X))
    first = backend.checksum(placed)
    assert first == backend.checksum(placed)
    backend.fill(placed, 7, X.nbytes - 1, 1)
    assert backend.checksum(placed) != first


def test_mismatches_are_words(backend: Backend) -> None:
    """Of four bytes, however many of them differ."""
    changed = X.copy()
    changed[[0, 50, 99]] += 1
    placed, other = backend.place(linear(X)), backend.place(linear(changed))
    assert backend.count_mismatches(placed, other) == 3
    assert backend.count_mismatches(placed, placed) == 0


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("within", [(0.0, 0.0), (1e-5, 1e-8), (0.0, 0.5), (0.1, 0.0)])
def test_numbers_are_apart_where_numpy_says_so(
    backend: Backend, kind: type, within: tuple[float, float]
) -> None:
    """At the edge of the tolerance, on either side, and for what is no number."""
    edge = [0.0, -0.0, 1.0, -1.0, 1e30, 3e-39, math.inf, -math.inf, math.nan]
    right = np.array([one for one in edge for _ in edge] + [1.0, 2.0, 3.0] * 200, kind)
    reach = (within[1] + within[0] * np.abs(right[len(edge) ** 2 :])).astype(kind)
    near = right[len(edge) ** 2 :] + reach
    near[1::3] = np.nextafter(near[1::3], kind(10))
    got = np.concatenate([np.array(edge * len(edge), kind), near])
    places = [backend.place(linear(one)) for one in (got, right)]
    expected = ~np.isclose(got, right, rtol=within[0], atol=within[1], equal_nan=True)
    assert backend.count_mismatches(*places, np.dtype(kind), within) == np.count_nonzero(expected) > 0
    but_nan = np.count_nonzero(expected & ~np.isnan(right))
    assert (
        backend.count_mismatches(*places, np.dtype(kind), within, True)
        == but_nan
        < np.count_nonzero(expected)
    )
    assert backend.count_mismatches(places[1], places[1], np.dtype(kind), within) == 0


def test_a_view_is_the_same_memory(backend: Backend) -> None:
    placed = backend.place(linear(X))
    view = backend.view(replace(room(), nbytes=40, extents=(10,)), placed)
    np.testing.assert_array_equal(backend.download(view, 40).view(np.float32), X[:10])
    backend.fill(placed, 0, 0, 4)
    np.testing.assert_array_equal(backend.download(view, 40).view(np.float32), [0, *X[1:10]])
    view.free()
    placed.free()


# -- launches


@pytest.mark.parametrize("memory", MEMORIES)
def test_a_kernel_reads_what_was_placed(memory: str, backend: Backend, tmp_path: Path) -> None:
    made = doubler(backend, tmp_path, memory)
    for _ in range(2):
        made.check(made.launch)
    for placed in (made.x, made.y):
        placed.free()
    made.module.unload()


def test_constants_are_filled_and_windows_copied_into_them(backend: Backend, tmp_path: Path) -> None:
    made = doubler(backend, tmp_path, "constant")
    backend.fill_constants(made.module, 0)
    made.check(made.launch, np.zeros_like(X))
    both = backend.place(linear(np.concatenate([X, -X])))
    window = replace(made.variant.layouts["x"].apply(X), buffer=None)
    for begin, expected in ((X.nbytes, -2 * X), (0, 2 * X)):
        backend.fill_window(made.module, both, begin, window)
        made.check(made.launch, expected)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_right_in_any_order_stays_right(seed: int, backend: Backend, tmp_path: Path) -> None:
    made = doubler(backend, tmp_path)
    with backend.shuffle(seed):
        made.check(made.launch)
    made.check(made.launch)


def test_blocks_that_all_run_at_once(backend: Backend, tmp_path: Path) -> None:
    made = doubler(backend, tmp_path)
    arguments = [made.x.argument, made.y.argument]
    made.check(lambda: backend.launch_cooperative(made.module, "doubler", ONE_BLOCK, arguments))


def test_an_order_of_execution_of_its_own(backend: Backend, tmp_path: Path) -> None:
    made = doubler(backend, tmp_path)
    with backend.current(), backend.current(), backend.stream():
        made.check(made.launch)
        backend.upload(made.x, linear(-X))
        made.check(made.launch, -2 * X)
    np.testing.assert_array_equal(made.found(), -2 * X)


def test_what_is_recorded_runs_at_each_call(backend: Backend, tmp_path: Path) -> None:
    made = doubler(backend, tmp_path)

    def steps() -> None:
        backend.fill(made.y, 0)
        made.launch()

    replay = backend.record(steps)
    for sign in (1, -1):
        backend.upload(made.x, linear(sign * X))
        made.check(replay, sign * 2 * X)


# -- times


@pytest.mark.parametrize("cold", [False, True])
def test_a_sample_has_as_many_times_as_were_asked_for(cold: bool, backend: Backend, tmp_path: Path) -> None:
    made, runs = doubler(backend, tmp_path), []

    def plan() -> None:
        runs.append(1)
        made.launch()

    times = backend.sample(plan, 3, cold)
    assert len(times) == 3 and min(times) > 0
    assert len(runs) >= 3  # more, where some were not good enough
    np.testing.assert_array_equal(made.found(), 2 * X)


def test_times_of_one_run_by_kernel_and_stage(backend: Backend, tmp_path: Path) -> None:
    made, streams = doubler(backend, tmp_path), []

    def plan() -> None:
        made.launch()
        backend.stage("library", streams.append)
        made.launch()

    times = backend.kernel_times(plan)
    assert times.keys() == {"doubler", "library"}
    assert times["doubler"] > 0 and times["library"] >= 0
    assert [type(stream) for stream in streams] == [int]
    assert backend.kernel_times(made.launch).keys() == {"doubler"}


def test_results_leave_in_chunks(backend: Backend, tmp_path: Path) -> None:
    made = doubler(backend, tmp_path)
    copy_queue, host = CopyQueue(backend), np.zeros(40, np.uint8)
    assert copy_queue.pin(host) in (True, False)
    started = copy_queue.start()
    made.launch()
    rows = [Copy(made.y, 8, 8, 40, host[:24]), Copy(made.y, 0, 16, 16, host[24:])]
    seconds = copy_queue.wait(copy_queue.finish(started, rows))
    assert len(seconds) == 2 and min(seconds) >= 0
    doubled = 2 * X
    expected = [*doubled[2:4], *doubled[12:14], *doubled[22:24], *doubled[:4]]
    np.testing.assert_array_equal(host.view(np.float32), np.array(expected, np.float32))
    copy_queue.close()


def test_a_device_says_what_it_is(backend: Backend) -> None:
    assert backend.device.kind in ("cpu", "cuda") and backend.device.name and backend.device.slug
    assert backend.describe()
    assert backend.toolchain().identity and backend.toolchain().suffix.startswith(".")
