"""The host's C++ compiler as a toolchain: which one is taken, what it makes, how it fails."""

import os
import signal
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from import_path import import_path
from waiting import eventually

from autotune.compile import hostcxx
from autotune.compile.hostcxx import HostCxx, RuntimeCxx, find_compiler, runtime_batch
from autotune.compile.toolchain import Batch, BuildError, Compiled, VariantSource
from autotune.compile.variant import Geometry
from autotune.device.cpu.backend import CpuBackend
from autotune.errors import CompilerError, DeviceError, FamilyError
from autotune.files import include_dir

SOURCE = """
#include "autotune/array.cuh"
namespace scaling {
template <class V>
__global__ void scale(int* out, int by) {
  __shared__ int total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  atomicAdd(&total, __shfl_xor_sync(~0u, static_cast<int>(threadIdx.x), 1));
  __syncthreads();
  out[threadIdx.x] = total * by * V::factor * FACTOR;
}
}  // namespace scaling
"""


@pytest.fixture
def batch(tmp_path: Path) -> Batch:
    source = tmp_path / "scale.cu"
    source.write_text(SOURCE)
    variants = tuple(
        VariantSource(
            f"key{f}", f"V{f}", f"struct V{f} {{ static constexpr int factor = {f}; }};\n", (KERNEL,)
        )
        for f in (1, 2)
    )
    return Batch(source, (include_dir(),), variants, ("--use_fast_math", "-DFACTOR=10"))


KERNEL = "scaling::scale"


def run(image: bytes, symbol: str, folder: Path) -> list[int]:
    path = folder / f"{symbol}.so"
    path.write_bytes(image)
    backend = CpuBackend()
    module = backend.load(Compiled("key", path, {KERNEL: symbol}))
    out = np.zeros(64, np.int32)
    arguments = [struct.pack("P", out.ctypes.data), struct.pack("i", 3)]
    backend.launch(module, KERNEL, Geometry((1, 1, 1), (64, 1, 1)), arguments)
    module.unload()
    return list(set(out.tolist()))


def test_a_batch_is_one_library_with_a_symbol_for_each_variant(batch, tmp_path):
    built = HostCxx(find_compiler()).build(batch)
    assert built.symbols == {f"key{f}": {KERNEL: f"scaling_scale_V{f}"} for f in (1, 2)}
    assert built.figures == {}
    assert run(built.image, "scaling_scale_V1", tmp_path) == [2016 * 3 * 10]
    assert run(built.image, "scaling_scale_V2", tmp_path) == [2016 * 3 * 2 * 10]


def test_equal_sources_give_equal_bytes(batch):
    toolchain = HostCxx(find_compiler())
    assert toolchain.build(batch).image == toolchain.build(batch).image


def test_a_variant_that_does_not_compile_is_named(batch):
    broken = replace(batch.variants[0], struct="struct V1 {};\n")
    with pytest.raises(BuildError, match=r"error: .factor. is not a member of .V1.|no member named 'factor'"):
        HostCxx(find_compiler()).build(batch.select([broken]))


@pytest.mark.zig
def test_ziglang_compiles_kernels(batch, tmp_path):
    toolchain = HostCxx((sys.executable, "-m", "ziglang", "c++"))
    assert "clang version" in toolchain.identity
    assert run(toolchain.build(batch).image, "scaling_scale_V2", tmp_path) == [2016 * 3 * 2 * 10]


def test_the_runtime_needs_no_cxx_library(tmp_path):
    image = RuntimeCxx(find_compiler()).build(runtime_batch()).image
    assert b"_ZSt" not in image
    assert b"autotune_runtime" in image


def executable(path: Path, text: str = "#!/bin/sh\nexit 0\n") -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_compilers_are_looked_for_in_order(tmp_path, monkeypatch):
    folder = tmp_path / "bin"
    environment = {"PATH": str(folder)}
    monkeypatch.setattr(hostcxx, "find_spec", lambda name: object() if name == "ziglang" else None)
    assert find_compiler(environment=environment) == (sys.executable, "-m", "ziglang", "c++")
    clang = executable(folder / "clang++")
    assert find_compiler(environment=environment) == (str(clang),)
    gcc = executable(folder / "g++")
    assert find_compiler(environment=environment) == (str(gcc),)
    asked = {**environment, "CXX": "clang++ -stdlib=libc++"}
    assert find_compiler(environment=asked) == ("clang++", "-stdlib=libc++")
    assert find_compiler("g++ -m64", asked) == ("g++", "-m64")
    with pytest.raises(CompilerError, match="compiler asks for 'icpx -O1', and 'icpx' is not an executable"):
        find_compiler("icpx -O1", environment)
    with pytest.raises(CompilerError, match="CXX asks for 'icpx'"):
        find_compiler(environment={**environment, "CXX": "icpx"})


def test_no_compiler_at_all(monkeypatch, tmp_path):
    monkeypatch.setattr(hostcxx, "find_spec", lambda name: None)
    with pytest.raises(CompilerError, match=r"no C\+\+ compiler: CXX is not set.*, or pip install ziglang"):
        find_compiler(environment={"PATH": str(tmp_path)})


def test_what_is_no_command_or_no_compiler_says_so(batch):
    with pytest.raises(
        CompilerError, match=r"CXX asks for 'g\+\+ \"', which is no command: No closing quotation"
    ):
        find_compiler(environment={"CXX": 'g++ "', "PATH": os.environ["PATH"]})
    with pytest.raises(CompilerError, match=r"true exited with 0 and made no library.*CXX"):
        HostCxx(("true",)).build(batch)


@pytest.mark.parametrize("character", ['"', "\n"])
def test_a_path_that_no_include_can_name_is_refused(batch, tmp_path, character):
    folder = tmp_path / f"odd{character}one"
    folder.mkdir()
    source = batch.source.rename(folder / "scale.cu")
    with pytest.raises(FamilyError, match="which no #include can name"):
        HostCxx(find_compiler()).build(replace(batch, source=source))


SLOW = """#!/bin/sh
if [ "$1" = --version ]; then echo slow compiler 1; exit; fi
sh -c 'echo $$ >> {pids}; exec sleep 300' & echo $$ >> {pids}
wait
"""
COMPILES = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from fakes import write_family
from autotune.declaration import load_family
from autotune.compile.cache import Cache
from autotune.compile.batches import compile_many
from autotune.compile.hostcxx import HostCxx
from autotune.compile.variant import Variant, batch
if __name__ == "__main__":
    family = load_family(write_family(Path({folder!r})))
    variants = tuple(Variant(family, c) for c in family.space.configurations())
    toolchain = HostCxx(({compiler!r},))
    for _ in compile_many(batch(family, variants), toolchain, Cache(Path({cache!r})), {processes}, 2):
        pass
"""


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_compilers_end_with_the_sweep(tmp_path, processes, ending):
    """What a slow compiler has started is gone soon after the sweep is, whether a worker or the sweep itself asked."""
    pids = tmp_path / "pids"
    compiler = executable(tmp_path / "slow", SLOW.format(pids=pids))
    script = tmp_path / "script.py"
    places = {
        "folder": tmp_path / "doubler",
        "cache": tmp_path / "cache",
        "tests": Path(__file__).parents[1] / "support",
    }
    texts = {name: str(place) for name, place in places.items()}
    script.write_text(COMPILES.format(**texts, compiler=str(compiler), processes=processes))
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": import_path()}
    with subprocess.Popen([sys.executable, str(script)], env=environment, stdin=subprocess.DEVNULL) as sweep:
        assert eventually(lambda: pids.exists() and len(pids.read_text().split()) >= 2 * processes)
        sweep.send_signal(ending)
    started = [int(pid) for pid in pids.read_text().split()]
    assert eventually(lambda: not any(_alive(pid) for pid in started))
    if processes > 1:
        assert eventually(lambda: not list(tmp_path.glob("autotune-*")))


def _alive(pid):
    status = Path(f"/proc/{pid}/stat")
    try:
        return status.read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_compiler_that_does_not_run(tmp_path):
    broken = executable(tmp_path / "g++", "#!/bin/sh\necho no licence >&2\nexit 3\n")
    with pytest.raises(CompilerError, match=r"g\+\+ --version failed: no licence"):
        HostCxx((str(broken),)).identity  # noqa: B018
    with pytest.raises(CompilerError, match=r"cannot run .*: No such file"):
        HostCxx((str(tmp_path / "missing"),)).identity  # noqa: B018


def test_the_identity_names_what_decides_the_code(monkeypatch):
    toolchain = HostCxx(find_compiler())
    before = toolchain.identity
    assert "-O3" in before
    assert before == toolchain.identity
    monkeypatch.setattr(hostcxx, "_features", lambda: "flags: none")
    other_processor = toolchain.identity
    monkeypatch.setattr(hostcxx, "_shim_digest", lambda: "other headers")
    assert (
        len({before, other_processor, toolchain.identity, HostCxx((*toolchain.command, "-g")).identity}) == 4
    )


def test_threads_are_what_the_user_says(monkeypatch):
    monkeypatch.setenv("AUTOTUNE_CPU_THREADS", "3")
    assert CpuBackend().device.multiprocessors == 3
    monkeypatch.setenv("AUTOTUNE_CPU_THREADS", "many")
    with pytest.raises(DeviceError, match="AUTOTUNE_CPU_THREADS is 'many'"):
        CpuBackend()
    monkeypatch.delenv("AUTOTUNE_CPU_THREADS")
    assert CpuBackend().threads >= 1


def test_a_backend_describes_and_times_itself():
    with CpuBackend(1) as backend:
        assert (backend.device.kind, backend.device.arch) == ("cpu", os.uname().machine)
        about = backend.describe()
        assert (about["threads"], about["cpu"]) == (1, backend.device.name)
        runs = []
        for cold in (False, True):
            times = backend.sample(lambda: runs.append(1), 3, cold)
            assert len(times) == 3
            assert all(milliseconds >= 0 for milliseconds in times)
        assert len(runs) == 6
        backend.synchronize()
    backend.close()


def test_the_math_of_c_is_taken_though_the_environment_names_a_cxx_library(batch, monkeypatch, tmp_path):
    """libstdc++ wraps <math.h>, and its overloads are CUDA's too."""
    wrapper = (
        "#ifdef _GLIBCXX_INCLUDE_NEXT_C_HEADERS\n#include_next <math.h>\n#else\n#error wrapped\n#endif\n"
    )
    (tmp_path / "math.h").write_text(wrapper)
    monkeypatch.setenv("CPLUS_INCLUDE_PATH", str(tmp_path))
    assert HostCxx(find_compiler()).build(batch).image
