"""torch on a real CUDA device: operators, compiled graphs, CUDA graphs of calls."""

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import write_family
from lending import filtered, tuned, weights, write_adder, write_filter

import autotune
from autotune.dispatch import TunedKernel
from autotune.errors import UsageError, WorkloadError

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.torch,
    *(
        pytest.mark.filterwarnings(f"ignore::{kind}:torch")
        for kind in ("DeprecationWarning", "FutureWarning")
    ),
]
NBODY = Path(__file__).parents[2] / "examples" / "nbody"


def loaded(family: Path | str) -> TunedKernel:
    with pytest.warns(UserWarning, match="no usable policy file"):
        return autotune.load(family, device="cuda", policies="/nowhere")


def genotypes(count: int = 70, seed: int = 0) -> Any:
    import torch

    drawn = np.random.default_rng(seed).integers(0, 3, (count, 333), np.int32)
    return torch.as_tensor(drawn, device="cuda")


def differences(x: Any) -> Any:
    import torch

    return (x[:, None] != x[None]).sum(-1).to(torch.int32)


@pytest.fixture(scope="module")
def allpairs() -> Iterator[TunedKernel]:
    """As the policy file says; for these sizes that may be packed, so that there is something to move."""
    with tuned("allpairs") as kernel:
        yield kernel


@pytest.fixture(scope="module")
def nbody() -> Iterator[TunedKernel]:
    with loaded(NBODY) as kernel:
        yield kernel


def captured(run: Any) -> tuple[Any, Any]:
    """The graph of one ``run`` and what it gives, made as torch's manual says: once before, on another stream."""
    import torch

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = run()
    return graph, made


def test_operators_are_what_torch_asks_for(allpairs: TunedKernel, nbody: TunedKernel) -> None:
    import torch

    x, bodies = genotypes(), torch.rand(100, 4, device="cuda")
    torch.library.opcheck(autotune.torch.op(allpairs), (x,), {"missing": "masked"})
    torch.library.opcheck(autotune.torch.op(nbody), (bodies,), {"softening": 0.1})
    assert torch.equal(torch.ops.autotune.allpairs(x), differences(x))
    host = torch.ops.autotune.nbody(bodies.cpu(), softening=0.1)
    assert (host.device.type, host.dtype) == ("cpu", torch.float32)
    torch.testing.assert_close(torch.ops.autotune.nbody(bodies, softening=0.1).cpu(), host)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_a_whole_graph_is_compiled(mode: str, allpairs: TunedKernel, nbody: TunedKernel) -> None:
    import torch

    distance, attraction = autotune.torch.op(allpairs), autotune.torch.op(nbody)

    def program(x: Any, bodies: Any) -> Any:
        pulled = attraction(bodies * 2, softening=0.1)
        return distance(x.clamp(max=1)).float().sum(), pulled.norm(dim=1)

    compiled = torch.compile(program, fullgraph=True, mode=mode)
    for seed in range(4):
        x, bodies = genotypes(seed=seed), torch.rand(100, 4, device="cuda")
        for got, wanted in zip(compiled(x, bodies), program(x, bodies), strict=True):
            torch.testing.assert_close(got, wanted)
    torch.compiler.reset()


@pytest.mark.parametrize("way", ["kernel", "operator", "out", "prepared"])
def test_a_graph_is_replayed(way: str, allpairs: TunedKernel) -> None:
    """With other content each time; what is called in between, and other graphs, change nothing."""
    import torch

    x, out = genotypes(), torch.zeros(70, 70, dtype=torch.int32, device="cuda")
    prepared = allpairs.prepare(genotypes(seed=9)) if way == "prepared" else None
    operator = autotune.torch.op(allpairs)
    run = {
        "kernel": lambda: allpairs(x), "operator": lambda: operator(x), "out": lambda: allpairs(x, out=out),
        "prepared": prepared,
    }[way]  # fmt: skip
    graphs = [captured(run) for _ in range(2)]
    for seed in (1, 2, 3):
        x.copy_(genotypes(seed=seed))
        for graph, made in graphs:
            made.fill_(-1)
            graph.replay()
            assert torch.equal(made, differences(genotypes(seed=9) if prepared else x))
        assert torch.equal(allpairs(genotypes(60)), differences(genotypes(60)))
        assert torch.equal(allpairs(x), differences(x))
    del graphs
    gc.collect()
    if prepared:
        prepared.close()


def test_a_graph_of_many_calls_needs_none_before_it(nbody: TunedKernel) -> None:
    """Of a size that was never called, and of one kernel many times."""
    import torch

    bodies = torch.rand(77, 4, device="cuda")
    expected = [nbody(bodies * k, softening=0.1) for k in range(1, 6)]
    with loaded(NBODY) as fresh:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            made = [fresh(bodies * k, softening=0.1) for k in range(1, 6)]
        graph.replay()
        for got, wanted in zip(made, expected, strict=True):
            torch.testing.assert_close(got, wanted, rtol=0, atol=0)


def test_two_streams_of_one_capture(nbody: TunedKernel) -> None:
    import torch

    bodies, side = torch.rand(500, 4, device="cuda"), torch.cuda.Stream()
    expected = nbody(bodies)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        side.wait_stream(torch.cuda.current_stream())
        first = nbody(bodies)
        with torch.cuda.stream(side):
            second = nbody(bodies)
        torch.cuda.current_stream().wait_stream(side)
        both = first + second
    assert torch.equal(nbody(bodies), expected)  # streams of a capture that is over are used again
    with torch.cuda.stream(side):
        assert torch.equal(nbody(bodies), expected)
    graph.replay()
    assert torch.equal(both, 2 * expected)


def test_constants_and_textures_in_a_graph(tmp_path: Path) -> None:
    """The graph, and each call after it, fills the window again; each array has a texture."""
    import torch

    x = torch.arange(100_000, dtype=torch.float32, device="cuda") % 64
    tables = [torch.as_tensor(weights(seed), device="cuda") for seed in (1, 2)]
    wanted = [torch.as_tensor(filtered(x.cpu().numpy(), by.cpu().numpy()), device="cuda") for by in tables]
    with loaded(write_filter(tmp_path / "filter")) as kernel, kernel.prepare(x, tables[0]) as handle:
        graph, made = captured(lambda: (kernel(x, tables[1]), kernel(x + 0, tables[1]), handle()))
        for _ in range(3):
            assert torch.equal(handle(), wanted[0])
            assert torch.equal(kernel(x, tables[1]), wanted[1])
            for each in made:
                each.fill_(-1)
            graph.replay()
            assert torch.equal(handle(), wanted[0])
            for got, right in zip(made, (wanted[1], wanted[1], wanted[0]), strict=True):
                assert torch.equal(got, right)


def test_a_graph_of_cupys(nbody: TunedKernel) -> None:
    cupy: Any = pytest.importorskip("cupy")
    bodies, out = cupy.random.default_rng(1).random((64, 4), cupy.float32), cupy.zeros((64, 3), cupy.float32)
    expected = nbody(bodies * 3)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        nbody(bodies, out=out)
        stream.begin_capture()
        nbody(bodies, out=out)
        graph = stream.end_capture()
        bodies *= 3
        out[:] = 0
        graph.launch(stream)
        assert bool((out == expected).all())


def test_what_the_host_has_a_part_in_is_no_part_of_a_graph(tmp_path: Path) -> None:
    import torch

    with loaded(write_adder(tmp_path / "adder")) as kernel:
        table = torch.ones(3, 4, dtype=torch.int32, device="cuda")
        shift = torch.ones(4, dtype=torch.int32, device="cuda")
        kernel(table, shift)
        for given, out, told in (
            ((table, shift.cpu()), None, "shift is an array of the host"),
            ((table, shift), np.zeros((3, 4), np.int32), "total comes to the host"),
            ((table.long(), shift), None, "table is copied through the host"),
        ):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                with pytest.raises(UsageError, match=told):
                    kernel(*given, out=out)
                made = kernel(table, shift)  # the capture goes on
            graph.replay()
            assert int(made.sum()) == 24
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            with pytest.raises(UsageError, match="prepare before a CUDA graph"):
                kernel.prepare(table)
            made = kernel(table, shift)
        graph.replay()
        assert torch.equal(made, table + shift)
        assert torch.equal(kernel(table, shift), table + shift)


def test_tensors_of_the_host_are_outputs(allpairs: TunedKernel) -> None:
    import torch

    x = genotypes()
    for given in (x, x.cpu(), x.cpu().numpy()):
        out = torch.zeros(70, 70, dtype=torch.int32)
        assert allpairs(given, out=out) is out
        assert torch.equal(out, differences(x).cpu())
    pinned = torch.zeros(70, 70, dtype=torch.int32, pin_memory=True)
    assert torch.equal(allpairs(x, out=pinned), out)


def test_what_no_kernel_can_take_is_refused_on_the_short_way_too(tmp_path: Path) -> None:
    import torch

    x, out = torch.rand(100, device="cuda"), torch.zeros(100, device="cuda")
    with loaded(write_family(tmp_path / "doubler")) as kernel:
        for _ in range(3):
            assert torch.equal(kernel(x, out=out), 2 * x)
            assert torch.equal(kernel(x), 2 * x)
            for wrong, told in (
                (x.clone().requires_grad_(), r"x: it requires a gradient.*tensor\.detach\(\)"),
                (torch.nn.Parameter(x), r"x: it requires a gradient.*tensor\.detach\(\)"),
                (x.to(torch.complex64), r"x: its elements are complex64.*a tensor of a declared type"),
            ):
                with pytest.raises(WorkloadError, match=told):
                    kernel(wrong)
            with pytest.raises(WorkloadError, match="out: y: it requires a gradient"):
                kernel(x, out=torch.zeros(100, device="cuda", requires_grad=True))
            for narrow in (x.half(), x.bfloat16()):  # widened on the way, exactly
                assert torch.equal(kernel(narrow), 2 * narrow.float())
