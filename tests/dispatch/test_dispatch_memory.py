"""Constant memory and textures at run time, on a device that lends (lending.py): what a call does besides its launch,
and that every call reads its own constants. On a real one: test_gpu_dispatch.py."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lending import Array, World, filtered, loaded, make_world, ramp, weights, write_filter

from autotune.device.cpu.native import images
from autotune.dispatch.launcher import Launcher
from autotune.dispatch.tuned_kernel import TunedKernel

ONE, OTHER = weights(1), weights(2)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return make_world(monkeypatch)


@pytest.fixture(params=["rows", "columns"])
def kernel(request: Any, world: World, tmp_path: Path) -> Iterator[TunedKernel]:
    """The weights lie as they are given, or have to be moved."""
    with loaded(write_filter(tmp_path / "filter", request.param)) as opened:
        yield opened


def zeros(count: int = 100) -> Array:
    return Array(np.zeros(count, np.float32))


def check(out: Array, x: Any, by: Any, scale: float = 1) -> None:
    np.testing.assert_array_equal(out.memory, filtered(x, by, scale))
    out.memory[:] = -1


@pytest.mark.parametrize("kind", [Array, np.asarray])
def test_a_prepared_call_does_nothing_but_launch(kind: Any, world: World, kernel: TunedKernel) -> None:
    x, outs = ramp(100), [zeros(), zeros()]
    handle = kernel.prepare(kind(x), kind(ONE))
    for out in outs:
        handle(out=out)
    world.gpu.seen.clear()
    for out in outs * 2:
        assert handle(out=out) is out
        check(out, x, ONE)
    assert world.gpu.seen == []
    handle(out=outs[0], scale=3)
    check(outs[0], x, ONE, 3)


def test_handles_of_one_module_fill_its_constants_in_turn(world: World, kernel: TunedKernel) -> None:
    """In the order of a stream; on another one, what reads them is waited for."""
    x, out = ramp(100), zeros()
    handles = [(kernel.prepare(Array(x), by), by) for by in (ONE, OTHER)]
    for handle, _ in handles:
        handle(out=out)
    world.gpu.seen.clear()
    for handle, by in handles * 2:
        handle(out=out)
        check(out, x, by)
    assert world.gpu.seen == [("constant", 0)] * 4
    for _ in range(2):
        world.gpu.seen.clear()
        for stream in (7, 0, 7):
            handle(out=out, stream=stream)
            check(out, x, OTHER)
    assert [what for what in world.gpu.seen if what != ("on", 7)] == []  # both streams wait for the copy once
    first, by = handles[0]
    first(out=out)
    check(out, x, by)
    assert world.gpu.seen[-2:] == ["synchronize", ("constant", 0)]
    handle(out=out, stream=7)
    check(out, x, OTHER)
    assert world.gpu.seen[-2:] == ["synchronize", ("constant", 7)]
    handle(out=out)
    check(out, x, OTHER)
    assert world.gpu.seen[-1] == "synchronize"  # the copy was queued on stream 7


def test_arrays_that_are_there_already(world: World, kernel: TunedKernel) -> None:
    """The latest content of the weights counts, and textures are made once for each array."""
    xs, by, out = [Array(ramp(100, k)) for k in range(3)], Array(ONE), zeros()
    for x in xs * 2:
        kernel(x, by, out=out)
    world.gpu.seen.clear()
    for change in (0, 2, 5):
        by.memory[0] += change
        for x in xs:
            assert kernel(x, by, out=out) is out
            check(out, x.memory, by.memory)
    assert world.gpu.seen == [("constant", 0)] * 9
    for _ in range(2):
        check(kernel(xs[0], by, scale=2), xs[0].memory, by.memory, 2)


def test_an_array_where_no_texture_can_begin_is_copied(world: World, kernel: TunedKernel) -> None:
    by, out = Array(ONE), zeros()
    for _ in range(2):
        for first in (0, 1, 4, 128):
            x = Array(ramp(300))
            x.memory = x.memory[first : first + 100]
            kernel(x, by, out=out)
            check(out, x.memory, ONE)


def test_textures_over_many_arrays(world: World, kernel: TunedKernel) -> None:
    by, out = Array(ONE), zeros()
    xs = [Array(ramp(100, k)) for k in range(70)]
    for x in [*xs, *xs[:3]]:
        kernel(x, by, out=out)
        check(out, x.memory, ONE)
    assert 70 < world.gpu.seen.count("texture") < 80


def test_constants_of_the_host_take_the_place_of_the_last(world: World, kernel: TunedKernel) -> None:
    x = ramp(100)
    for by in (ONE, OTHER, ONE):
        np.testing.assert_array_equal(kernel(x, by), filtered(x, by))
    assert world.gpu.seen.count("bound") == 1
    with kernel.prepare(x) as handle:
        for by in (ONE, OTHER, ONE):
            np.testing.assert_array_equal(handle(by), filtered(x, by))
            np.testing.assert_array_equal(handle(Array(by)).memory, filtered(x, by))
    with kernel.prepare(x, ONE) as handle:
        out = zeros()
        for by in (ONE, OTHER, ONE):
            handle.refill(weights=by)
            for _ in range(2):
                handle(out=out)
                check(out, x, by)


def test_eight_threads_with_constants_of_their_own(world: World, kernel: TunedKernel) -> None:
    """Half of them on a stream of their own, each other call with arrays that were not prepared."""

    def calls(thread: int) -> int:
        x, by, right = ramp(64, thread), weights(thread), 0
        expected, out, given = filtered(x, by), zeros(64), (Array(x), Array(by))
        with kernel.prepare(*given) as handle:
            for k in range(60):
                called = handle(out=out, stream=thread % 2 * thread) if k % 2 else kernel(*given, out=out)
                right += bool((called.memory == expected).all())
        return right

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(calls, range(8))) == [60] * 8


class Watched:
    """The lock of a module's constant memory. ``waits`` is set when a thread finds it taken."""

    def __init__(self) -> None:
        self._lock, self.waits = threading.RLock(), threading.Event()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self.waits.set()
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


@contextmanager
def interrupted(
    backend: Any, other: Callable[[], Any], watched: Watched, monkeypatch: Any
) -> Iterator[list[Any]]:
    """The first launch that the calling thread makes on ``backend`` in the block waits until ``other`` has run in
    another thread, or waits for this one. Its answer is in the list at the end of the block."""
    launch, caller, done, answers = backend.launch, threading.get_ident(), threading.Event(), []

    def call() -> None:
        try:
            answers.append(other())
        finally:
            done.set()
            watched.waits.set()

    thread = threading.Thread(target=call)

    def launched(*arguments: Any) -> None:
        if threading.get_ident() == caller and thread.ident is None:
            thread.start()
            assert watched.waits.wait(300)
        launch(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(backend, "launch", launched)
        yield answers
    thread.join(300)
    assert done.is_set()


def watch(kernel: TunedKernel) -> Watched:
    """In place of the locks of its modules, and of their libraries'."""
    watched: Any = Watched()
    for module in (*kernel._target._modules.values(), *images.loaded.values()):
        module.lock = watched
    return watched


def test_two_kernels_of_one_library_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the cpu device a library, and its constant memory, is one for all that load it."""
    folder, x = write_filter(tmp_path / "filter"), ramp(64)
    with loaded(folder, "cpu") as first:
        first(x, ONE)
        watched = watch(first)
        with loaded(folder, "cpu") as one, loaded(folder, "cpu") as two:
            two(x, OTHER)
            backend = one._target.backend
            with interrupted(backend, lambda: two(x, OTHER), watched, monkeypatch) as answers:
                np.testing.assert_array_equal(one(x, ONE), filtered(x, ONE))
            np.testing.assert_array_equal(answers[0], filtered(x, OTHER))


def test_libraries_share_no_constant_memory(tmp_path: Path) -> None:
    with (
        loaded(write_filter(tmp_path / "one"), "cpu") as one,
        loaded(write_filter(tmp_path / "two", "columns"), "cpu") as two,
    ):
        for kernel in (one, two):
            kernel(ramp(64), ONE)
        windows = [image.window.ctypes.data for image in images.loaded.values()]
        assert len(set(windows)) == len(windows) > 1


def test_a_call_that_the_host_drives_and_one_that_is_ready_take_turns(
    world: World, kernel: TunedKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one module, each of which fills its constants in its own way."""
    x = ramp(64)
    kernel(x, ONE)
    watched = watch(kernel)
    with kernel.prepare(Array(x), ONE) as one, kernel.prepare(Array(x), OTHER) as two:
        with monkeypatch.context() as patched:
            patched.setattr(Launcher, "_copies_images", lambda _: True)
            one(out=zeros(64))
        two(out=zeros(64))
        for first, second, ours, theirs in ((one, two, ONE, OTHER), (two, one, OTHER, ONE)):
            watched.waits.clear()
            outs = zeros(64), zeros(64)
            with interrupted(world.gpu, lambda h=second, o=outs[1]: h(out=o), watched, monkeypatch):
                first(out=outs[0])
            check(outs[0], x, ours)
            check(outs[1], x, theirs)


def test_a_kernel_that_is_bound_waits_for_a_call(
    world: World, kernel: TunedKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Binding fills the constants that a call of another thread is about to read."""
    x, out = ramp(64), zeros(64)
    kernel(x, ONE)
    watched = watch(kernel)
    with kernel.prepare(Array(x), ONE) as one, kernel.prepare(Array(x), OTHER) as two:
        one(out=out)
        with interrupted(world.gpu, lambda: two(out=zeros(64)), watched, monkeypatch) as answers:
            one(out=out)
        check(out, x, ONE)
        check(answers[0], x, OTHER)


def test_new_content_waits_for_a_call_of_the_handle(
    world: World, kernel: TunedKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The arrays that a call reads are the old ones to its end."""
    x, out = ramp(64), zeros(64)
    with kernel.prepare(x, ONE) as handle:
        handle(out=out)
        watched = handle._lock = Watched()
        with interrupted(world.gpu, lambda: handle.refill(x=x + 1), watched, monkeypatch):
            handle(out=out)
        check(out, x, ONE)
        handle(out=out)
        check(out, x + 1, ONE)
