"""A tuned kernel as an operator of torch, on the host. On a GPU: test_gpu_torch.py."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import write_family
from lending import write_adder

import autotune
from autotune.declaration import load_family
from autotune.dispatch import TunedKernel
from autotune.errors import UsageError, WorkloadError
from autotune.export.torch import schema

ROOT = Path(__file__).parents[2]
HALVES = """\
schema: 1
family: halves
source: halves.cu
extents:
  half: {value: count // parts}
scalars:
  parts: {type: int32}
  scale: {type: float32, default: 0.5}
  offset: {type: int32, value: half - 1}
options:
  mode: {values: [up, down], default: down}
data:
  x: {role: input, type: float32, shape: [count]}
  low: {role: output, record: Pair, fields: {at: int32, value: float32}, shape: [half]}
  sums: {role: output, type: float64, shape: [half]}
kernels:
  halves: {arguments: [x, low, sums, scale, offset], grid: ["1"], block: [32]}
policies:
  memory: {layout: memory, data: [x], values: [global, readonly], default: global}
"""


def loaded(family: Path | str) -> TunedKernel:
    with pytest.warns(UserWarning, match="no usable policy file"):
        return autotune.load(family, device="cpu", policies="/nowhere")


def test_the_signature_is_the_declarations(tmp_path: Path) -> None:
    (tmp_path / "family.yaml").write_text(HALVES)
    (tmp_path / "halves.cu").touch()
    assert schema(load_family(tmp_path)) == (
        '(Tensor x, *, str mode="down", int parts, float scale=0.5, int? offset=None) -> (Tensor, Tensor)'
    )
    assert schema(load_family(write_adder(tmp_path / "adder"))) == (
        "(Tensor table, Tensor shift, *, int sign=1, int bias=0) -> Tensor"
    )
    assert schema(load_family(ROOT / "examples" / "spmv")).startswith("(Tensor ")


def test_it_is_an_attribute_that_loads_torch_when_it_is_used() -> None:
    program = """
import sys
import autotune
assert not [name for name in sys.modules if name.startswith("autotune.")]
assert autotune.torch.op.__name__ == "op"
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


@pytest.fixture
def adder(tmp_path: Path) -> Iterator[TunedKernel]:
    with loaded(write_adder(tmp_path / "adder")) as kernel:
        yield kernel


def tensors(rows: int = 3) -> Any:
    import torch

    table = torch.arange(4 * rows, dtype=torch.int32).reshape(rows, 4)
    return table, torch.arange(4, dtype=torch.int32)


@pytest.mark.torch
def test_tensors_of_the_host_are_outputs(adder: TunedKernel) -> None:
    import torch

    table, shift = tensors()
    out = torch.zeros_like(table)
    wide = torch.zeros(3, 8, dtype=torch.int32)
    for target in (out, wide[:, ::2]):
        assert adder(table, shift, out=target) is target
        assert torch.equal(target, table + shift)
    assert adder(table, shift, out={"total": out}, sign=-1) is out
    assert torch.equal(out, table - shift)
    assert torch.equal(wide[:, 1::2], torch.zeros(3, 4, dtype=torch.int32))
    with pytest.raises(WorkloadError, match=r"total is int32 of shape \(3, 4\), an array of int64"):
        adder(table, shift, out=out.long())
    with pytest.raises(WorkloadError, match=r"out: total: it requires a gradient.*tensor\.detach\(\)"):
        adder(table, shift, out=torch.zeros(3, 4, requires_grad=True))


@pytest.mark.torch
def test_tensors_that_no_kernel_can_take_are_refused(adder: TunedKernel) -> None:
    import torch

    table, shift = tensors()
    for given, told in (
        (torch.zeros(4, requires_grad=True), r"shift: it requires a gradient.*give tensor\.detach\(\)"),
        (torch.nn.Parameter(torch.zeros(4)), r"shift: it requires a gradient.*give tensor\.detach\(\)"),
        (shift.to_sparse(), r"shift: its layout is torch\.sparse_coo: give tensor\.to_dense\(\)"),
        (shift.to("meta"), "shift: it is on meta, where no kernel runs"),
    ):
        for call in (adder, adder.bind, adder.prepare):
            with pytest.raises(WorkloadError, match=told):
                call(table, given)
        with adder.prepare(table, shift) as handle, pytest.raises(WorkloadError, match=told):
            handle.refill(shift=given)
    for other in (shift.float(), shift.half(), shift.bfloat16()):
        assert torch.equal(adder(table, other), table + shift)  # whole numbers, in another type


@pytest.mark.torch
def test_records_are_tensors_of_their_parts() -> None:
    import torch

    with loaded(ROOT / "examples" / "nbody") as kernel:
        bodies = torch.rand(33, 4)
        expected = kernel(bodies.numpy().view(kernel.family.data["bodies"].dtype)[:, 0])
        for parts in (bodies, bodies.view(torch.uint8), bodies.repeat(1, 2)[:, :4], bodies.numpy()):
            np.testing.assert_array_equal(kernel(parts), expected)
        assert torch.equal(autotune.torch.op(kernel, "host_nbody")(bodies), torch.from_numpy(expected))
        for wrong in (bodies.double(), bodies[:, :3], bodies.repeat(1, 2)[:, ::2]):
            with pytest.raises(WorkloadError, match="bodies: 2 dimensions given, 1 needed"):
                kernel(wrong)


@pytest.mark.torch
def test_torch_finds_nothing_wrong_with_the_operator(adder: TunedKernel) -> None:
    import torch

    operator = autotune.torch.op(adder)
    torch.library.opcheck(operator, tensors(), {"sign": -1, "bias": 2})
    assert operator is autotune.torch.op(adder)
    assert torch.equal(torch.ops.autotune.adder(*tensors(), bias=5), sum(tensors()) + 5)


@pytest.mark.torch
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_whole_graph_is_compiled_around_it(adder: TunedKernel, dynamic: bool) -> None:
    import torch

    operator, graphs = autotune.torch.op(adder), []

    def backend(graph: Any, _: Any) -> Any:
        graphs.append(graph)
        return graph

    def program(table: Any, shift: Any) -> Any:
        return operator(table + 1, shift, sign=-1).sum(0) * 2

    compiled = torch.compile(program, fullgraph=True, dynamic=dynamic, backend=backend)
    for rows in (3, 5, 6):
        assert torch.equal(compiled(*tensors(rows)), program(*tensors(rows)))
    if dynamic:
        assert len(graphs) == 1  # the shapes follow from the declaration, whatever the sizes


@pytest.mark.torch
def test_several_outputs_and_shapes_that_are_computed(tmp_path: Path) -> None:
    """Shapes alone: what torch asks for before anything runs."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    (tmp_path / "family.yaml").write_text(HALVES)
    (tmp_path / "halves.cu").touch()
    with loaded(tmp_path) as kernel, FakeTensorMode():
        low, sums = autotune.torch.op(kernel, "mine::halves")(torch.zeros(9), parts=2)
        assert (tuple(low.shape), low.dtype) == ((4, 8), torch.uint8)  # records are bytes
        assert (tuple(sums.shape), sums.dtype) == ((4,), torch.float64)
        with pytest.raises(WorkloadError, match="x: 2 dimensions given, 1 needed"):
            torch.ops.mine.halves(torch.zeros(9, 2), parts=2)


@pytest.mark.torch
def test_gradients_end_at_the_operator_unless_a_formula_is_given(tmp_path: Path) -> None:
    import torch

    with loaded(write_family(tmp_path / "doubler")) as kernel:
        operator = autotune.torch.op(kernel)
        x = torch.arange(5.0, requires_grad=True)
        with pytest.raises(RuntimeError, match="register_autograd"):
            operator(x).sum().backward()
        operator.register_autograd(lambda _, gradient: 2 * gradient)
        operator(x).sum().backward()
        assert x.grad is not None and torch.equal(x.grad, torch.full((5,), 2.0))


@pytest.mark.torch
def test_a_name_stands_for_one_kernel(adder: TunedKernel, tmp_path: Path) -> None:
    autotune.torch.op(adder, "mine::adder")
    with loaded(write_adder(tmp_path / "another")) as other:
        with pytest.raises(UsageError, match=r"torch has an operator mine::adder, of <TunedKernel adder"):
            autotune.torch.op(other, "mine::adder")
        for wrong in ("two words", "a::b::c", "::a"):
            with pytest.raises(UsageError, match="is no operator's name"):
                autotune.torch.op(other, wrong)
        adder.close()
        made = autotune.torch.op(other, "mine::adder")
        table, shift = tensors()
        assert bool((made(table, shift) == table + shift).all())
