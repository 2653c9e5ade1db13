"""On a real CUDA device: every memory, every configuration, the occupancy table, and what is left behind."""

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import careless
import numpy as np
import pytest
from fakes import write_family
from local_worker import LocalWorker

import autotune
from autotune.compile.batches import compile_many
from autotune.compile.cache import Cache, default_root
from autotune.compile.toolchain import Compiled
from autotune.compile.variant import Variant, batch
from autotune.declaration import family as families
from autotune.declaration import workload as workloads
from autotune.engine.request import SweepRequest
from autotune.engine.sweep import Sweep
from autotune.layout.arrays import Data, Field
from autotune.layout.layout import Layout
from autotune.layout.stored import Stored
from autotune.measure.sampling import Protocol
from autotune.record.store import Store

pytestmark = pytest.mark.gpu

QUICK = Protocol(least=2, most=2, seconds=0.01, finalists=2, rounds=1, round_samples=1)


@pytest.mark.parametrize("workload", ["primer", "ragged", "ragged-masked"])
def test_every_configuration_is_exact(workload: str, tmp_path: Path) -> None:
    from autotune.device.cuda.backend import CudaBackend

    family = families.load_family("allpairs")
    loaded = workloads.load_workload(family, workload)
    inputs = workloads.prepare(family, loaded, tmp_path)
    with CudaBackend(0) as backend, closing(LocalWorker(backend)) as worker:
        worker.start()
        study = Sweep(
            request=SweepRequest(family=family, processes=8), workers=[worker], workload=loaded, inputs=inputs,
            protocol=QUICK, store=Store(tmp_path), cache=Cache(default_root()),
        ).run()  # fmt: skip
    assert set(study.states()) <= {"measured", "excluded"}
    excluded = {t.reason for t in study.trials if t.state == "excluded"}
    assert all("constant memory" in reason for reason in excluded)


def test_occupancy_and_registers_are_the_drivers(tmp_path: Path) -> None:
    from autotune.compile.profile import profiles
    from autotune.device.cuda.backend import CudaBackend

    family = families.load_family("allpairs")
    variants = tuple(Variant(family, c, (("missing", "category"),)) for c in family.space.configurations())
    with CudaBackend(0) as backend:
        chunks = compile_many(batch(family, variants), backend.toolchain(), Cache(default_root()), 8, 24)
        for variant, compiled in zip(variants, (c for chunk in chunks for c in chunk), strict=True):
            assert isinstance(compiled, Compiled)
            names = {**variant.configuration, **dict(variant.options)}
            (profile,) = profiles(variant, compiled, names, backend.device)
            module = backend.load(compiled)
            assert module.functions["allpairs"].num_regs == profile.registers
            with backend.current():
                blocks = active_blocks(compiled, profile.block_size, profile.dynamic_shared_bytes)
            assert blocks == profile.blocks_per_sm, variant.configuration.id


def active_blocks(compiled: Compiled, block_size: int, shared_bytes: int) -> int:
    """The driver's own word. PyCUDA shows no function handle, so the binary is loaded a second time."""
    from cuda.bindings import driver as bindings

    from autotune.device.cuda.driver import call

    module = call("cuModuleLoadData", compiled.image.read_bytes())
    function = call("cuModuleGetFunction", module, compiled.symbols["allpairs"].encode())
    if shared_bytes > 48 << 10:
        attribute = bindings.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        call("cuFuncSetAttribute", function, attribute, shared_bytes)
    blocks = call("cuOccupancyMaxActiveBlocksPerMultiprocessor", function, block_size, shared_bytes)
    call("cuModuleUnload", module)
    return int(blocks)


@pytest.mark.parametrize("dims", ["1d", "2d", "2d_pitched"])
@pytest.mark.parametrize("memory", ["global", "readonly", "texture"])
@pytest.mark.parametrize("kind", ["uint8", "uint16", "float32", "float64"])
def test_every_memory_and_plane_reads_what_was_stored(
    memory: str, dims: str, kind: str, tmp_path: Path
) -> None:
    source = """\
#include "autotune/array.cuh"
template <class Policy>
__global__ void doubler(typename Policy::x x, typename Policy::y y) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < x.extent(0)) y.store(x.load(i) + x.load(i), i);
}
"""
    declaration = f"""\
schema: 1
family: doubler
source: doubler.cu
data:
  x: {{role: input, type: {kind}, shape: [n], plane: {{width: 64, rows: 4}}}}
  y: {{role: output, type: {kind}, shape: [n]}}
kernels:
  doubler: {{arguments: [x, y], grid: ["ceil_div(n, 128)"], block: [128]}}
policies:
  memory: {{layout: memory, data: [x], values: [{memory}], default: {memory}}}
  dims: {{layout: dims, data: [x], values: ["{dims}"], default: "{dims}"}}
"""
    folder = write_family(tmp_path / "doubler", declaration, source)
    x = (np.arange(1000) % 100).astype(kind)
    with pytest.warns(UserWarning, match="no usable policy file"):
        kernel = autotune.load(folder, device="cuda")
    with kernel:
        np.testing.assert_array_equal(kernel(x), x + x)


def test_the_layouts_type_and_size_agree_on_the_device() -> None:
    data = Data(name="x", role="input", fields=(Field("", "float32"),), shape=("n",))
    assert "Global<const autotune::Texel<4>>" in Layout(data=data).cpp


def test_dispatch_leaves_no_context_and_no_abort() -> None:
    program = """
import numpy as np, warnings, autotune
warnings.simplefilter("ignore")
x = np.random.default_rng(0).integers(0, 3, (50, 77))
kernel = autotune.load("allpairs", device="cuda")
d = kernel(x)
assert (d == (x[:, None] != x[None]).sum(-1)).all()
import pycuda.driver as driver
assert driver.Context.get_current() is None if hasattr(driver.Context, "get_current") else True
print("fine")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "fine"


def test_what_is_around_an_array_on_the_device_is_filled_and_read_back() -> None:
    from autotune.device.cuda.backend import CudaBackend

    given = np.arange(1003, dtype=np.uint8)
    with CudaBackend(0) as backend, backend.current():
        placed = backend.place(Stored(given, 1003, 1, "global", (1003,), (1,), 0), guard=65536)
        for guard in placed.guards:
            backend.fill(guard, 0xFF)
        before, behind = map(backend.download, placed.guards)
        assert (before.size, behind.size) == (65536, 65536)
        assert (before == 0xFF).all() and (behind == 0xFF).all()
        known = backend.checksum(placed)
        assert known and backend.checksum(placed) == known
        backend.fill(placed, 7, 1002, 1)  # the tail, taken by bytes
        changed = backend.checksum(placed)
        assert changed != known
        backend.upload(placed, Stored(given[::-1].copy(), 1003, 1, "global", (1003,), (1,), 0))
        assert backend.checksum(placed) not in (known, changed)
        backend._driver.memset_d8(placed.address + 1003, 1, 2)
        backend._driver.memset_d8(placed.address - 4, 2, 1)
        before, behind = map(backend.download, placed.guards)
        assert np.flatnonzero(behind != 0xFF).tolist() == [0, 1]
        assert np.flatnonzero(before != 0xFF).tolist() == [65532]
        assert not backend.place(Stored(None, 16, 1, "global", (16,), (1,), 0)).guards


def test_faults_on_the_device(tmp_path: Path) -> None:
    from autotune.device.cuda.backend import CudaBackend

    with CudaBackend(0) as backend, backend.current():
        reasons = careless.reasons(backend, tmp_path)
    assert reasons.keys() == careless.SAID.keys()
    for fault, reason in reasons.items():
        assert reason.startswith(careless.SAID[fault])
        assert bool(reason) == bool(fault)


def test_finalists_of_one_binary_keep_their_own_constant_memory(tmp_path: Path) -> None:
    from autotune.device.cuda.backend import CudaBackend

    with CudaBackend(0) as backend, backend.current():
        assert careless.wrong_finalists(backend, tmp_path) == ["", ""]
