"""Views: a scratch array that kernels write, read through another accessor or a texture over the same memory."""

from pathlib import Path

import numpy as np
import pytest
from demo_family import Change, at, load, refusal
from hypothesis import given
from hypothesis import strategies as st
from lens import lens
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from autotune.compile.batches import compile_many
from autotune.compile.cache import Cache, default_root
from autotune.compile.toolchain import Compiled
from autotune.compile.variant import Variant, batch
from autotune.declaration.family import load_family
from autotune.declaration.workload import bind
from autotune.device.backend import Backend
from autotune.device.cpu.backend import CpuBackend
from autotune.device.resident import Resident
from autotune.errors import FamilyError
from autotune.hardware import Limits
from autotune.layout.arrays import Data, Field
from autotune.layout.layout import Layout
from autotune.layout.views import view_refusal, view_room

KINDS = ["uint8", "float32", "float64"]


def expected(x: NDArray[np.generic]) -> NDArray[np.generic]:
    padded = np.pad(x, 1, mode="edge")
    return (3 * (padded[:-2, 2:] + x)).astype(x.dtype)


def check(backend: Backend, folder: Path, kind: str) -> None:
    """Every memory, on several shapes, run after run, over scratch arrays that hold something else before."""
    family = lens(folder, kind)
    variants = tuple(Variant(family, c) for c in family.space.configurations())
    binaries = [
        b for chunk in compile_many(batch(family, variants), backend.toolchain(), Cache(default_root()), 1, 4)
        for b in chunk
    ]  # fmt: skip
    for shape in ((7, 33), (1, 5), (40, 1), (3, 64)):
        x = np.random.default_rng(7).integers(0, 40, shape).astype(kind)
        bound = bind(family, {"x": x}, {}, {})
        resident = Resident(backend, bound)
        footprints = set()
        for variant, binary in zip(variants, binaries, strict=True):
            assert isinstance(binary, Compiled), binary
            names = bound.names(variant.configuration)
            assert not variant.explain_exclusion(names, backend.device.limits)
            execution = resident.execution(variant, backend.load(binary))
            footprints.add(execution.footprint_bytes)
            for byte in (0xFF, 0xA5):
                backend.fill(execution.placed["kept"], byte)
                backend.fill(execution.placed["y"], byte)
                execution.run()
                np.testing.assert_array_equal(execution.restore("y", shape), expected(x))
            kept = execution.restore("kept", (shape[0], bound.sizes["pitch"]))
            np.testing.assert_array_equal(kept[:, : shape[1]], 2 * x)
            with pytest.raises(FamilyError, match="seen is a view of kept: restore that"):
                execution.restore("seen", shape)
        assert len(footprints) == 1  # a view takes no memory
        resident.close()


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_written_is_seen_on_the_cpu(kind: str, tmp_path: Path) -> None:
    with CpuBackend(2) as backend:
        check(backend, tmp_path, kind)


def test_an_array_may_be_stored_in_any_way_where_its_views_are_not_used(tmp_path: Path) -> None:
    lens(tmp_path, "float32")
    file = tmp_path / "family.yaml"
    moves = "  kept_padding: {layout: padding, data: [kept], values: [1, 64], default: 1}\n"
    text = file.read_text().replace("pitch: pitch}", "pitch: pitch, used: memory == 'texture'}") + moves
    file.write_text(text)
    with pytest.raises(FamilyError, match="data line: policy kept_padding moves the elements of kept"):
        load_family(tmp_path)
    file.write_text(text.replace("shape: [flat],", "shape: [flat], used: memory != 'global',"))
    family = load_family(tmp_path)

    def reason(text: str, columns: int) -> str:
        bound = bind(family, {"x": np.ones((3, columns), np.float32)}, {}, {})
        configuration = family.space.configuration(text)
        return Variant.make(family, configuration, {}).explain_exclusion(bound.names(configuration), Limits())

    assert reason("kept_padding=64", 33) == reason("memory=texture", 33) == ""
    assert reason("memory=texture,kept_padding=64", 33) == ""  # its rows are 64 long anyway
    told = "a layout moves the elements of kept, which a view has to find in order"
    assert reason("memory=texture,kept_padding=64", 32) == f"seen: {told}"
    assert reason("memory=readonly,kept_padding=64", 32) == f"line: {told}"


@pytest.mark.gpu
@pytest.mark.parametrize("kind", KINDS)
def test_what_was_written_is_seen_on_a_gpu(kind: str, tmp_path: Path) -> None:
    from autotune.device.cuda.backend import CudaBackend

    with CudaBackend(0) as backend:
        check(backend, tmp_path, kind)


# -- where its elements lie


def view(kind: str = "float32", rank: int = 2, pitch: str = "pitch") -> Data:
    names = ("i", "j", "k")[:rank]
    return Data(name="v", role="view", fields=(Field("", kind),), shape=names, of="s", pitch=pitch)


@given(
    st.sampled_from(KINDS), st.lists(st.integers(1, 6), min_size=2, max_size=3), st.integers(0, 4), st.booleans()
)  # fmt: skip
def test_a_view_ends_with_its_last_element(kind: str, shape: list[int], gap: int, has_pitch: bool) -> None:
    sizes = {**dict(zip("ijk", shape, strict=False)), "pitch": shape[-1] + gap}
    layout = Layout(data=view(kind, len(shape), "pitch" if has_pitch else ""))
    room = view_room(layout, sizes)
    dtype = np.dtype(kind)
    memory = np.arange(room.nbytes // dtype.itemsize, dtype=np.uint32).astype(dtype)
    seen = as_strided(memory, shape, [stride * dtype.itemsize for stride in room.strides])
    assert seen[tuple(n - 1 for n in shape)] == memory[-1]
    assert len(np.unique(np.array(room.strides) @ np.indices(shape).reshape(len(shape), -1))) == seen.size
    assert room.strides[-2] == shape[-1] + (gap if has_pitch else 0)


@pytest.mark.parametrize(
    ("sizes", "nbytes", "message"),
    [
        ({"i": 3, "j": 5, "pitch": 8}, 1 << 20, ""),
        ({"i": 3, "j": 5, "pitch": 4}, 1 << 20, "v: rows of 5 elements would overlap, 4 apart by extent pitch"),
        ({"i": 3, "j": 5, "pitch": 8}, 80, "v: 84 bytes are viewed, and s has 80"),
        ({"i": 3, "j": 5, "pitch": 12}, 1 << 20, "v: rows 48 bytes apart, and a texture needs a multiple of 32"),
        ({"i": 1, "j": 131073, "pitch": 131080}, 1 << 20, "passes the 2D texture limit of (131072, 65000)"),
        ({"i": 65001, "j": 1, "pitch": 8}, 1 << 30, "passes the 2D texture limit of (131072, 65000)"),
    ],
)  # fmt: skip
def test_a_texture_that_cannot_be_is_refused(sizes: dict[str, int], nbytes: int, message: str) -> None:
    layout = Layout(data=view(), memory="texture")
    scratch = Layout(data=Data(name="s", role="scratch", fields=(Field("", "uint8"),), shape=("n",)))
    found = view_refusal(layout, view_room(layout, sizes), scratch.room((nbytes,)), Limits())
    assert message in found
    assert bool(found) == bool(message)


def test_a_linear_texture_has_its_own_limit() -> None:
    layout = Layout(data=view(rank=1, pitch=""), memory="texture")
    scratch = Layout(data=Data(name="s", role="scratch", fields=(Field("", "uint8"),), shape=("n",)))
    room = view_room(layout, {"i": 100})
    limits = Limits(texture_1d_texels=99)
    assert "100 texels pass the 1D texture limit" in view_refusal(layout, room, scratch.room((4000,)), limits)


# -- its declaration

SCRATCH = {"role": "scratch", "type": "float64", "shape": ["half"]}
VIEW = {"role": "view", "of": "kept", "type": "float32", "shape": ["n", "m"], "pitch": "half"}


def viewing(scratch: dict[str, object] | None = None, policy: object = None, **changes: object) -> Change:
    def change(content: dict[str, object]) -> None:
        at("data", "kept", value={**SCRATCH, **(scratch or {})})(content)
        at("data", "seen", value={k: v for k, v in {**VIEW, **changes}.items() if v is not None})(content)
        if policy:
            at("policies", "p", value=policy)(content)

    return change


def policy(layout: str, name: str, *values: object, **more: object) -> dict[str, object]:
    return {"layout": layout, "data": [name], "values": [*values], "default": values[0], **more}


DEEP = {"shape": ["n", "m", "half"], "pitch": None}
REFUSED: list[tuple[str, Change, str]] = [
    ("of nothing", viewing(of=None, pitch=None), "data seen: role view and of go together"),
    ("of an input", viewing(of="x"), "unknown scratch array 'x' in family demo: data seen: of (allowed: kept)"),
    ("an input of something", at("data", "x", "of", value="y"), "data x: role view and of go together"),
    ("pitch of a line", viewing(shape=["n"]), "data seen: pitch is the distance between rows"),
    ("unknown pitch", viewing(pitch="hal"), "unknown extent 'hal' in family demo: data seen; did you mean 'half'?"),
    ("with a range", viewing(range=[0, 1]), "data seen: range is not for views"),
    ("cleared", viewing(zero="1"), "data seen: zero is not for views"),
    ("in constant memory", viewing(policy=policy("memory", "seen", "global", "constant")),
     "policy p: seen is a view of kept, whose elements stay where they are: only its memory can be chosen"),
    ("with axes", viewing(layout={"axes": ["m", "n"]}), "data seen: seen is a view of kept"),
    ("a texture of three extents", viewing(policy=policy("memory", "seen", "global", "texture"), **DEEP),
     "policy p: seen has 3 extents, and the texture of a view has one or two"),
    ("of what a layout moves", viewing(policy=policy("padding", "kept", 1, 8)),
     "data seen: policy p moves the elements of kept"),
    ("of what its own layout moves", viewing(scratch={"layout": {"padding": 8}}),
     "data seen: its own layout (padding) moves the elements of kept"),
    ("a plain policy that is constant", at("policies", "block", "constant", value=True),
     "policy block: constant is for layout policies"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED])
def test_a_view_that_cannot_be_is_refused(change: Change, message: str, tmp_path: Path) -> None:
    assert message in refusal(tmp_path, change)


def test_a_family_with_views_is_not_exported(tmp_path: Path) -> None:
    family = load(tmp_path, viewing())
    chosen = pytest.importorskip("autotune.export.choices").select_entries
    with pytest.raises(FamilyError, match="demo cannot be exported: seen is a view of kept"):
        chosen(family, [], "kernel")
