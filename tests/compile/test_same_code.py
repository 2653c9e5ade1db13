"""Same code, whatever its name and the other code in its module; and which policies change no code."""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from fakes import FAMILY, SOURCE, write_family

from autotune.compile import same_code as machine_code
from autotune.compile.batches import compile_batch
from autotune.compile.cache import Cache
from autotune.compile.nvrtc import Nvrtc
from autotune.compile.same_code import compute_sameness, digest, idle_policies, kernel_digests
from autotune.compile.toolchain import Batch, Compiled, VariantSource
from autotune.compile.variant import Variant, batch
from autotune.declaration import family as families
from autotune.declaration.space import Configuration, Policy
from autotune.layout import Data, Field, Layout

KERNEL = """\
__device__ int first[64] = {1}, second[64] = {2};
__constant__ int near[16], far[16];
__device__ const char* const words_of_one[2] = {"same", "first"};
__device__ const char* const words_of_two[2] = {"same", "other"};
__device__ __noinline__ int sum(const int* p, int n) {
  int s = 0;
  for (int i = 0; i < n; ++i) s += p[i] * s + 1;
  return s;
}
__device__ __noinline__ int product(const int* p, int n) {
  int s = 1;
  for (int i = 0; i < n; ++i) s *= p[i] + s;
  return s;
}
template <class Policy> __global__ void k(int* out, int i) {
  __shared__ int tile[Policy::size];
  tile[threadIdx.x] = i;
  __syncthreads();
  if constexpr (Policy::what == 0) out[i] = tile[63 - threadIdx.x];
  if constexpr (Policy::what == 1) out[i] = first[i];
  if constexpr (Policy::what == 2) out[i] = second[i];
  if constexpr (Policy::what == 3) out[i] = near[5];
  if constexpr (Policy::what == 4) out[i] = far[5];
  if constexpr (Policy::what == 5) out[i] = sum(out, i);
  if constexpr (Policy::what == 6) out[i] = product(out, i);
  if constexpr (Policy::what == 7) out[i] = "a literal"[i];
  if constexpr (Policy::what == 8) out[i] = "a liberal"[i];
  if constexpr (Policy::what == 9) out[i] = words_of_one[i][i];
  if constexpr (Policy::what == 10) out[i] = words_of_two[i][i];
}
"""


@dataclass(frozen=True)
class Compiler:
    folder: Path

    def __call__(self, *bodies: str, arch: str = "sm_90") -> list[Compiled]:
        """A binary of all ``bodies`` in this order; each is the inside of a policy struct."""
        source = self.folder / "k.cu"
        source.write_text(KERNEL)
        names = [
            f"V{hashlib.sha256(repr((i, bodies)).encode()).hexdigest()[:16]}" for i in range(len(bodies))
        ]
        variants = [
            VariantSource(name, name, f"struct {name} {{ {body} }};\n", ("k",))
            for name, body in zip(names, bodies, strict=True)
        ]
        made = compile_batch(
            Batch(source, (), tuple(variants)), Nvrtc(arch), Cache(self.folder / f"cache-{arch}")
        )
        assert all(isinstance(c, Compiled) for c in made), made
        return made  # type: ignore[return-value]


@pytest.fixture
def compiled(tmp_path: Path) -> Compiler:
    return Compiler(tmp_path)


def body(what: int, size: int = 64, extra: str = "") -> str:
    return f"static constexpr int what = {what}, size = {size}; {extra}"


@pytest.mark.nvrtc
def test_names_and_neighbours_do_not_count(compiled):
    (alone,) = compiled(body(0))
    renamed, other, again = compiled(body(0, extra="typedef int unused;"), body(1), body(0))
    assert alone.symbols != renamed.symbols
    assert digest(alone) == digest(renamed) == digest(again) != digest(other)
    assert len(digest(alone)) == 64


@pytest.mark.nvrtc
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"])
@pytest.mark.parametrize(("one", "two"), [(1, 2), (3, 4), (5, 6), (7, 8), (9, 10)])
def test_the_same_instructions_on_another_variable_are_other_code(compiled, arch, one, two):
    # Each alone in its module: the variable's place there may be the same, and with it every instruction.
    (a,), (b,) = compiled(body(one), arch=arch), compiled(body(two), arch=arch)
    assert digest(a)
    assert digest(a) != digest(b)


@pytest.mark.nvrtc
def test_equal_text_is_not_enough(compiled):
    """The case that ``_collect_references`` is for: instructions equal to the last bit, another variable behind
    them."""
    (near,), (far,) = compiled(body(3)), compiled(body(4))
    near_module, far_module = modules(near, far)
    found = [
        machine_code._collect_references(m, m.sections[f".text.{c.symbols['k']}"][0])
        for m, c in ((near_module, near), (far_module, far))
    ]
    assert "near+20" in found[0][0]
    assert "far+20" in found[1][0]


def modules(*binaries):
    return [machine_code._read(c.image, c.image.stat().st_mtime_ns, c.image.stat().st_size) for c in binaries]


@pytest.mark.nvrtc
def test_shared_memory_and_figures_count(compiled):
    (small,), (large,) = compiled(body(0, 64)), compiled(body(0, 128))
    assert digest(small) != digest(large)
    more = {"k": {**small.figures["k"], "registers": small.figures["k"]["registers"] + 1}}
    assert digest(replace(small, figures=more)) != digest(small)


@pytest.mark.nvrtc
def test_what_cannot_be_read_is_unknown(compiled, tmp_path):
    (good,) = compiled(body(0))
    content = good.image.read_bytes()
    for damaged in (
        b"",
        b"\x7fELF",
        content[:200],
        content[: len(content) // 2],
        b"\x7fELF\x01" + content[5:],
    ):
        image = tmp_path / "damaged.cubin"
        image.write_bytes(damaged)
        assert digest(replace(good, image=image)) == ""
    assert digest(replace(good, image=tmp_path / "missing")) == ""
    assert digest(replace(good, symbols={"k": "another"})) == ""
    assert kernel_digests(replace(good, image=tmp_path / "missing")) == {}


def test_a_cpu_library_is_unknown(tmp_path):
    image = tmp_path / "a.so"
    image.write_bytes(b"\x7fELF\x02\x01" + bytes(60))
    assert digest(Compiled("key", image, {"k": "k_V1"})) == ""


# -- the whole variant --------------------------------------------------------------------------------------

ORDERS = "import numpy as np\norders = {'turned': lambda arrays: np.arange(1000)[::-1]}\n"


@pytest.fixture
def doubler(tmp_path):
    text = FAMILY.replace(
        "  block_size:",
        "  speed: {values: [slow, fast], default: slow}\n"
        "  x_order: {layout: order, data: [n], values: [plain, given, turned], default: plain}\n  block_size:",
    )
    source = SOURCE.replace("template", "enum class Speed { slow, fast };\ntemplate", 1)
    folder = write_family(tmp_path / "doubler", text, source)
    (folder / "family.py").write_text(ORDERS)
    return families.load_family(folder)


def key_of(family, compiled, **values):
    configuration = Configuration({**family.space.control, **values})
    variant = Variant(family, configuration)
    names = {"n": 1000, **configuration}
    return compute_sameness(variant, compiled, dict(names))


def test_data_and_geometry_count_beside_the_code(doubler, tmp_path, monkeypatch):
    monkeypatch.setattr(machine_code, "digest", lambda compiled: "code")
    some = Compiled("key", tmp_path / "x", {})
    control = key_of(doubler, some)
    assert control
    assert key_of(doubler, some, memory="readonly") == control  # the same buffer; the load is in the code
    assert key_of(doubler, some, speed="fast") == control
    assert key_of(doubler, some, x_order="given") == control  # names no permutation
    assert key_of(doubler, some, x_order="turned") != control
    assert key_of(doubler, some, memory="texture") != control
    assert key_of(doubler, some, block_size=64) != control
    monkeypatch.setattr(machine_code, "digest", lambda compiled: "")
    assert key_of(doubler, some) == ""


def test_a_plan_may_look_at_any_plain_policy(doubler, tmp_path, monkeypatch):
    monkeypatch.setattr(machine_code, "digest", lambda compiled: "code")
    monkeypatch.setattr(doubler.module, "plan", lambda execution: None, raising=False)
    some = Compiled("key", tmp_path / "x", {})
    assert key_of(doubler, some, speed="fast") != key_of(doubler, some)
    assert key_of(doubler, some, memory="readonly") == key_of(doubler, some)
    policies = tuple(replace(p, constant=p.name == "memory") for p in doubler.space.policies)
    known = replace(doubler, space=replace(doubler.space, policies=policies))
    assert key_of(known, some, memory="readonly") != key_of(known, some)


@pytest.mark.nvrtc
def test_a_policy_that_nothing_reads_is_idle(doubler, tmp_path):
    """From source to result: speed reaches no instruction, a still order moves nothing."""
    configurations = [c for c in doubler.space.configurations() if c["block_size"] in (64, 128)]
    variants = tuple(Variant(doubler, c) for c in configurations)
    made = compile_batch(batch(doubler, variants), Nvrtc("sm_90"), Cache(tmp_path / "cache"))
    known = {
        v.configuration: compute_sameness(v, c, {"n": 1000, **v.configuration})
        for v, c in zip(variants, made, strict=True)
        if isinstance(c, Compiled)
    }
    assert len(known) == len(configurations) == 3 * 2 * 3 * 2
    assert idle_policies(doubler.space.policies, known) == ("speed",)


A = Policy("a", (1, 2, 3), 1)
B = Policy("b", ("x", "y"), "x")


def known(**same: str) -> dict[Configuration, str]:
    return {Configuration({"a": int(k[1]), "b": k[0]}): v for k, v in same.items()}


def test_one_value_that_differs_from_those_that_never_did_is_enough_to_matter():
    assert idle_policies([A, B], known(x1="p", x2="p", x3="q", y1="r", y2="r", y3="s")) == ()


def test_one_pair_that_differs_is_enough_to_matter():
    assert idle_policies([A], known(x1="p", x2="p", y1="r", y2="s")) == ()


def test_an_idle_policy_never_made_a_difference():
    same = known(x1="p", y1="p", x2="q", y2="q")
    assert idle_policies([A, B], same) == ("b",)


def test_nothing_to_compare_is_no_verdict():
    assert idle_policies([A, B], known(x1="p", y2="p")) == ()
    assert idle_policies([A], known(x1="p", x2="p", y2="q", y3="q")) == ()  # 1 and 3 never met
    assert idle_policies([A, B], known(x1="", y1="", x2="", y2="")) == ()
    assert idle_policies([A, B], {}) == ()


def test_an_image_that_no_texture_reads_is_arranged_as_a_line():
    pixels = Data(name="a", role="input", fields=(Field("", "uint8"),), shape=("i", "j"))
    line = machine_code._arrangement(Layout(data=pixels))
    for dims in ("image", "image_pitched"):
        assert machine_code._arrangement(Layout(data=pixels, memory="readonly", dims=dims)) == line
        read = machine_code._arrangement(Layout(data=pixels, memory="texture", dims=dims))
        assert (read.memory, read.dims) == ("texture", dims)
    written = machine_code._arrangement(Layout(data=replace(pixels, role="output"), dims="image"))
    assert written.dims == "image"
