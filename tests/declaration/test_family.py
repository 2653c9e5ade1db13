"""A family read from its folder: the shipped ones, what a declaration becomes, and its family.py."""

import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from demo_family import Change, at, load, refusal

from autotune.declaration import family
from autotune.errors import FamilyError, UnknownName
from autotune.layout.arrays import Data, Field

# -- what is read -----------------------------------------------------------------------------------------


def test_allpairs() -> None:
    allpairs = family.load_family("allpairs")
    assert allpairs.name == "allpairs"
    assert allpairs.source.name == "allpairs.cu"
    assert [d.name for d in allpairs.inputs] == ["genotypes"]
    assert [d.name for d in allpairs.outputs] == ["distance"]
    assert allpairs.extents == {"attributes": None, "instances": None}
    assert allpairs.data["distance"].index_bits == 64
    assert allpairs.choose_options({}) == {"missing": "category"}
    assert allpairs.choose_options({"missing": "masked"}) == {"missing": "masked"}
    assert len(allpairs.space.configurations("ladder")) == 6
    assert allpairs.module is not None
    assert callable(allpairs.module.reference)


def test_every_shipped_family_loads() -> None:
    found = family.families()
    assert "allpairs" in found
    for name in found:
        assert family.load_family(name).name == name


def test_declaration(tmp_path: Path) -> None:
    demo = load(tmp_path)
    assert demo.data["x"] == Data(
        name="x",
        role="input",
        fields=(Field("", "int32"),),
        shape=("n", "m"),
        packed="m",
        low=0,
        high=3,
    )
    assert demo.data["tree"].fields == (Field("next", "int32", "n"), Field("score", "float32"))
    assert demo.sizes({"x": (9, 5), "tree": (9,)}) == {"n": 9, "m": 5, "half": 4}
    assert demo.space.preset_names == ("control", "full", "tex", "wide")
    assert [c.id for c in demo.space.configurations("wide")] == [
        "block=64,memory=global",
        "block=128,memory=global",
    ]
    assert demo.module is None


def test_numbers_of_a_launch_are_not_the_callers(tmp_path: Path) -> None:
    demo = load(tmp_path, at("launch", value={"first": {"type": "int32", "default": 0}}))
    assert [*demo.scalars] == ["limit", "double", "first"]
    assert [*demo.callers_scalars] == ["limit", "double"]
    assert (demo.number_type("first"), demo.scalars["first"].of_launch) == ("int32", True)


def test_families_in_a_second_root(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "family.yaml").touch()
    assert family.families(tmp_path)["mine"] == tmp_path / "mine"


# -- the folder and its Python ----------------------------------------------------------------------------


def test_unknown_family() -> None:
    with pytest.raises(
        UnknownName, match=r"^unknown family 'allpair'; did you mean 'allpairs'\? \(allowed: "
    ):
        family.load_family("allpair")


def test_folder_without_declaration(tmp_path: Path) -> None:
    with pytest.raises(FamilyError, match=rf"^{tmp_path} holds no family.yaml: name a family \(.*allpairs"):
        family.load_family(tmp_path)
    with pytest.raises(FamilyError, match=r"^no/such holds no family.yaml"):
        family.load_family("no/such")


def test_python_beside_the_declaration(tmp_path: Path) -> None:
    (tmp_path / "family.py").write_text("from . import near\nanswer = near.answer\n")
    (tmp_path / "near.py").write_text("answer = 42\n")
    demo = load(tmp_path)
    assert demo.module is not None
    assert demo.module.answer == 42
    assert load(tmp_path).module is demo.module  # one import a process


@pytest.mark.parametrize("file", ["family.py", "near.py"])
def test_python_that_was_edited_is_imported_again(tmp_path: Path, file: str) -> None:
    """In one process, as a notebook's: a family that was loaded before keeps what it had."""
    (tmp_path / "family.py").write_text("from . import near\nanswer = near.answer\n")
    (tmp_path / "near.py").write_text("answer = 42\n")
    before = load(tmp_path)
    assert before.module is not None and before.module.answer == 42
    text = "from . import near\nanswer = near.answer + 1\n" if file == "family.py" else "answer = 42 + 1\n"
    (tmp_path / file).write_text(text)
    after = load(tmp_path)
    assert after.module is not None and after.module.answer == 43
    assert before.module.answer == 42
    (tmp_path / "near.py").unlink()
    with pytest.raises(FamilyError, match=r"cannot be imported: ImportError"):
        _ = load(tmp_path).module


def test_a_second_thread_waits_until_all_of_family_py_has_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []
    other = load(tmp_path)
    thread = threading.Thread(target=lambda: seen.append(hasattr(other.module, "answer")))

    def meet() -> None:
        thread.start()
        thread.join(0.5)  # without a lock it has ended by then, with half a module

    monkeypatch.setitem(sys.modules, "meeting", SimpleNamespace(meet=meet))
    (tmp_path / "family.py").write_text("import meeting\nmeeting.meet()\nanswer = 43\n")
    module = load(tmp_path).module
    thread.join()
    assert module is not None and module.answer == 43 and seen == [True]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1 / 0\n", "ZeroDivisionError: division by zero"),
        ("import nothing_of_that_name\n", "ModuleNotFoundError: No module named 'nothing_of_that_name'"),
        ("def f(:\n", "SyntaxError"),
    ],
)
def test_python_that_raises_at_import(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "family.py").write_text(text)
    demo = load(tmp_path)
    for _ in range(2):  # not half imported the second time
        with pytest.raises(FamilyError) as caught:
            _ = demo.module
        assert str(caught.value).startswith(f"{tmp_path / 'family.py'} cannot be imported: {problem}")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mod": "fast"}, "unknown option 'mod' in family demo; did you mean 'mode'? (allowed: mode)"),
        (
            {"mode": "exat"},
            "unknown value of option mode 'exat'; did you mean 'exact'? (allowed: fast, exact)",
        ),
    ],
)
def test_unknown_option(tmp_path: Path, given: dict[str, str], message: str) -> None:
    with pytest.raises(UnknownName) as caught:
        load(tmp_path).choose_options(given)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.pop("policies"),
        lambda content: content.pop("data"),
        at("policies", value=["block"]),
        at("policies", "block", value={"values": 64, "default": 64}),
        at("data", "x", "shape", value=3),
        at("data", "x", "range", value=[]),
        at("data", "x", value=None),
        at("kernels", "demo", "block", value="block"),
        at("kernels", "demo", "arguments", value=None),
        at("presets", "tex", "set", value=[1]),
        at("extents", value="n"),
        at("source", value=None),
    ],
)
def test_malformed_reads_alike_at_run_time(tmp_path: Path, change: Change) -> None:
    checked = refusal(tmp_path, change)
    assert str(tmp_path / "family.yaml") in checked
    with pytest.raises(FamilyError) as caught:
        load(tmp_path, change, check=False)
    assert str(caught.value) == checked
