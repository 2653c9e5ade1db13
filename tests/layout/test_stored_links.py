"""Links that are stored by how far they lead, or not at all: on the host, in a kernel, in a sweep and in a call."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cpu_results import backend, compiled, results
from hypothesis import given, settings
from hypothesis import strategies as st

import autotune
from autotune.compile.batches import compile_batch
from autotune.compile.cache import Cache
from autotune.compile.nvrtc import Nvrtc
from autotune.compile.toolchain import Compiled
from autotune.compile.variant import Variant, batch
from autotune.declaration import Family, bind, load_family
from autotune.device import content_refusal
from autotune.device.cpu.backend import CpuBackend
from autotune.errors import FamilyError, LayoutRefusal, UnknownName
from autotune.layout.arrays import Data, Field
from autotune.layout.layout import Layout
from autotune.layout.stored_links import StoredLinks, links_of

__all__ = ["backend"]

NODE = Data(
    name="nodes", role="input", record="Node", shape=("node",),
    fields=(Field("next", "uint32", "node"), Field("weight", "float32"), Field("jump", "int32", "node")),
)  # fmt: skip
PLAIN = Data(name="up", role="input", fields=(Field("", "int64", "node", 7),), shape=("node",))


def chain(count: int, jumps: list[int]) -> np.ndarray[Any, Any]:
    """Each leads to the one behind it, and ``jumps`` from it on; -1 for none."""
    nodes = np.zeros(count, NODE.dtype)
    nodes["next"] = np.arange(1, count + 1)
    nodes["next"][-1] = 0xFFFFFFFF
    nodes["weight"] = np.arange(count)
    nodes["jump"] = [-1 if not 0 <= i + jump < count else i + jump for i, jump in enumerate(jumps)]
    return nodes


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-9, 9), min_size=1, max_size=40), st.sampled_from(["next", "relative16", "absolute"])
)
def test_what_is_stored_gives_the_array_back(jumps: list[int], kind: str) -> None:
    nodes = chain(len(jumps), jumps)
    links = links_of({"next": kind, "jump": "relative16"}, NODE, "here")
    layout = Layout(data=NODE, links=links, padding=3)
    assert layout.value_bytes == {"next": 6, "relative16": 8, "absolute": 10}[kind]
    stored = layout.apply(nodes)
    assert layout.restore(stored, nodes.shape).tobytes() == nodes.tobytes()
    up = np.where(np.arange(len(jumps)) % 3 == 0, 7, np.arange(len(jumps))[::-1]).astype(np.int64)
    near = Layout(data=PLAIN, links=links_of("relative16", PLAIN, "here"))
    assert near.restore(near.apply(up), up.shape).tobytes() == up.tobytes()


def test_addresses_by_hand() -> None:
    """Weight and distance of each element, one behind the other: 6 bytes, in units of 2."""
    layout = Layout(data=NODE, links=StoredLinks((("next", "next"), ("jump", "relative16"))))
    assert (layout.texel_bytes, layout.parts) == (2, 3)
    assert [layout.address(1, part, 0) for part in range(3)] == [3, 4, 5]
    stored = layout.apply(chain(3, [2, 9, -2])).buffer
    assert stored is not None
    assert stored.reshape(3, 6)[:, 4:].copy().view(np.int16).reshape(-1).tolist() == [2, -32768, -2]
    assert stored.reshape(3, 6)[:, :4].copy().view(np.float32).reshape(-1).tolist() == [0, 1, 2]


def test_data_that_do_not_allow_it_are_refused_with_where() -> None:
    far = np.zeros(40_000, NODE.dtype)
    far["next"][3] = 39_000
    with pytest.raises(
        LayoutRefusal, match=r"nodes.next: the link of element 3 leads 38,997 further, .*-32,767 to"
    ):
        Layout(data=NODE, links=StoredLinks((("next", "relative16"),))).apply(far)
    nodes = chain(5, [0] * 5)
    nodes["next"][2] = 4
    with pytest.raises(
        LayoutRefusal, match=r"nodes.next: element 2 leads to 4, and links: next is for arrays in which"
    ):
        Layout(data=NODE, links=StoredLinks((("next", "next"),))).apply(nodes)
    nodes["jump"][1] = -5
    with pytest.raises(LayoutRefusal, match=r"nodes.jump: -5 stands for no link, .* is -1 where"):
        Layout(data=NODE, links=StoredLinks((("jump", "relative16"),))).apply(nodes)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("relativ16", r"unknown links layout 'relativ16'.*did you mean 'relative16'"),
        ({"nxt": "next"}, r"unknown link 'nxt'.*did you mean 'next'"),
        ({"weight": "next"}, "unknown link 'weight'"),
    ],
)
def test_what_is_no_way_to_store_links_is_refused(value: Any, said: str) -> None:
    with pytest.raises(UnknownName, match=said):
        links_of(value, NODE, "here")
    with pytest.raises(FamilyError, match="nothing but links"):
        links_of("next", PLAIN, "here")
    assert links_of("absolute", NODE, "here") is None


DECLARATION = """
schema: 1
family: jumper
source: jumper.cu
default_workload: small
reference: control
data:
  nodes:
    role: input
    record: Node
    fields: {next: {type: uint32, link: node}, weight: float32, jump: {type: int32, link: node}}
    shape: [node]
  sums: {role: output, type: float32, shape: [node]}
kernels:
  jumper: {arguments: [nodes, sums], grid: ["ceil_div(node, 32)"], block: [32]}
policies:
  links:
    layout: links
    data: [nodes]
    values: [absolute, relative16, compact]
    default: absolute
    means: {compact: {next: next, jump: relative16}}
  records: {layout: records, data: [nodes], values: [aos, soa], default: aos}
  memory: {layout: memory, data: [nodes], values: [global, texture], default: global}
  order: {layout: order, data: [node], values: [given, drawn], default: given, means: {drawn: {order: random, seed: 1}}}
"""
SOURCE = """
#include "autotune/field_access.cuh"

struct Node {
  unsigned next;
  float weight;
  int jump;
};

template <class Policy>
__global__ void jumper(typename Policy::nodes nodes, typename Policy::sums sums) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= nodes.extent(0)) return;
  const Node own = nodes.load(i);
  float sum = own.weight;
  if (own.next != 0xFFFFFFFFu) sum += 2 * nodes.load(own.next).weight;
  if (own.jump >= 0) sum += 4 * autotune::load_field<&Node::weight>(nodes, own.jump);
  sums.store(sum, i);
}
"""
JUMPS = [3, -2, 5, 0, 99, -1] * 12


@pytest.fixture
def jumper(tmp_path: Path) -> Family:
    folder = tmp_path / "jumper"
    (folder / "workloads").mkdir(parents=True)
    (folder / "family.yaml").write_text(DECLARATION)
    (folder / "jumper.cu").write_text(SOURCE)
    np.save(folder / "workloads" / "nodes.npy", chain(len(JUMPS), JUMPS))
    (folder / "workloads" / "small.yaml").write_text(
        "schema: 1\nworkload: small\nfamily: jumper\narrays: {nodes: {npy: nodes.npy}}\n"
    )
    return load_family(str(folder))


def allowed(family: Family) -> list[Any]:
    return [c for c in family.space.configurations() if c["order"] == "given" or c["links"] != "compact"]


def test_a_kernel_reads_the_links_as_they_were(jumper: Family, backend: CpuBackend) -> None:
    nodes = chain(len(JUMPS), JUMPS)
    expected = nodes["weight"].copy()
    expected[:-1] += 2 * nodes["weight"][1:]
    expected += np.where(nodes["jump"] >= 0, 4 * nodes["weight"][nodes["jump"]], 0)
    binaries = compiled(backend, [Variant(jumper, c) for c in allowed(jumper)], 16, optimize="-Og")
    for variant, found in results(backend, binaries, bind(jumper, {"nodes": nodes}, {}, {})):
        np.testing.assert_array_equal(found["sums"], expected, err_msg=variant.configuration.id)
    assert {c["records"] for c in jumper.space.configurations() if c["links"] != "absolute"} == {"aos"}


@pytest.mark.nvrtc
def test_a_gpu_s_compiler_takes_them(jumper: Family, tmp_path: Path) -> None:
    variants = tuple(Variant(jumper, c) for c in allowed(jumper))
    for made in compile_batch(batch(jumper, variants), Nvrtc("sm_90"), Cache(tmp_path / "cache")):
        assert isinstance(made, Compiled), made
        assert all(figures["local_bytes"] == 0 for figures in made.figures.values())


def test_a_sweep_excludes_what_the_data_do_not_allow_and_a_call_takes_another(
    jumper: Family, tmp_path: Path
) -> None:
    asked = {"device": "cpu", "progress": False, "set": {"memory": "global", "records": "aos"}}
    asked["set"] |= {"links": "compact"}  # type: ignore[operator]
    study = autotune.sweep(jumper.folder, samples=1, out=tmp_path / "out", **asked)
    states = {
        str(row["order"]): (row["state"], row["reason"]) for row in study.to_pandas().to_dict("records")
    }
    assert states["given"][0] == "measured"
    assert states["drawn"][0] == "excluded"
    assert "links: next is for arrays in which each leads to the one behind it" in states["drawn"][1]
    study.save_policy(tmp_path / "policies")
    variant = Variant(jumper, jumper.space.configuration("links=compact"))
    nodes = chain(len(JUMPS), JUMPS)
    assert not content_refusal(variant, {"nodes": nodes})
    nodes["next"][2] = 4
    assert "element 2 leads to 4" in content_refusal(variant, {"nodes": nodes})
    jump = nodes["jump"][2]
    for before in ([], [chain(len(JUMPS), JUMPS)]):
        with autotune.load(jumper.folder, device="cpu", policies=tmp_path / "policies") as kernel:
            for fitting in before:
                kernel(fitting)
            found = kernel(nodes)  # not by the winner, whose links these cannot be
        assert found[2] == nodes["weight"][2] + 2 * nodes["weight"][4] + 4 * nodes["weight"][jump]
