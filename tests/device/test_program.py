"""A family's kernels that are not tuned, on a device."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from autotune.compile import Cache
from autotune.device import CpuBackend, DeviceProgram, LaunchError
from autotune.errors import CompilerError, FamilyError
from autotune.layout import Stored

SOURCE = """\
#include "autotune/device.cuh"
#include "step.cuh"
struct Pair {
  unsigned first, second;
};
template <class Policy>
__global__ void add(const unsigned* from, unsigned* to, unsigned count, Pair pair) {
  const unsigned i = blockIdx.x * Policy::block_size + threadIdx.x;
  if (i < count) to[i] = (from ? from[i] : 100) + step * pair.first + Policy::extra + pair.second;
}
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "step.cuh").write_text("constexpr unsigned step = 10;\n")
    path = tmp_path / "add.cu"
    path.write_text(SOURCE)
    return path


def program(source: Path, **constants: int) -> DeviceProgram:
    cache = Cache(source.parent / "cache")
    return DeviceProgram(CpuBackend(1), cache, source, ("add",), {"block_size": 4, "extra": 0, **constants})


def test_kernels_run_on_memory_by_the_byte(source: Path) -> None:
    made = program(source, extra=1000)
    content = np.arange(12, dtype=np.uint32)
    with made.room(content.nbytes, content) as given, made.room(6 * 4) as found:
        found.fill(255)
        pair = np.array([2, 3], np.uint32).tobytes()
        made.launch("add", 5, given, found, 5, pair)
        made.synchronize()
        assert found.fetch(np.uint32, 6).tolist() == [1023, 1024, 1025, 1026, 1027, 2**32 - 1]
        made.launch("add", 1, None, found, 1, pair)
        assert found.fetch(np.uint32, 1).tolist() == [1123]
        assert (found.nbytes, given.nbytes, given.address % 16) == (24, 48, 0)
    given.close()


def test_a_header_that_changes_is_compiled_anew(source: Path) -> None:
    zero = np.zeros(2, np.uint32).tobytes()
    one = np.array([1, 0], np.uint32).tobytes()
    for step, expected in ((10, 110), (20, 120)):
        source.with_name("step.cuh").write_text(f"constexpr unsigned step = {step};\n")
        made = program(source)
        with made.room(4) as found:
            made.launch("add", 1, None, found, 1, one)
            assert found.fetch(np.uint32, 1)[0] == expected
            made.launch("add", 1, None, found, 1, zero)
            assert found.fetch(np.uint32, 1)[0] == 100


def test_more_than_there_is(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = program(source)

    def place(*_: object) -> None:
        raise LaunchError("cannot place 64 bytes: out of memory")

    monkeypatch.setattr(made._backend, "place", place)
    with pytest.raises(MemoryError, match=r": cannot place 64 bytes: out of memory"):
        made.room(64)


def test_content_may_be_shorter_than_its_room_but_not_longer(source: Path) -> None:
    made, content = program(source), np.arange(3, dtype=np.uint32)
    with made.room(40, content) as room:
        assert room.nbytes == 40 and room.fetch(np.uint32, 3).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="a room of 11 bytes for content of 12: give it as many or more"):
        made.room(11, content)


def test_memory_beyond_what_an_array_can_have(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = program(source)

    def place(stored: Stored) -> object:
        return SimpleNamespace(argument=stored.argument(4096), free=lambda: None)

    monkeypatch.setattr(made._backend, "place", place)
    with made.room(100 << 30) as room:
        assert (room.address, room.nbytes) == (4096, 100 << 30)


def test_sources_that_cannot_be_used(source: Path) -> None:
    source.with_name("step.cuh").write_text("#error no step today\n")
    with pytest.raises(CompilerError, match=r"(?s)add\.cu does not compile: .*no step today"):
        program(source)
    with pytest.raises(FamilyError, match=r"missing\.cu cannot be read"):
        program(source.with_name("missing.cu"))
