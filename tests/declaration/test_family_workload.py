"""Workloads: files, generated arrays, and what is rejected before a kernel could see it."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from demo_family import at, load

from autotune.declaration import family, workload
from autotune.declaration.workload import Inputs, Workload
from autotune.errors import AutotuneError, UnknownName, UsageError, WorkloadError

NODE = np.dtype([("next", np.int32), ("score", np.float32)])


def plain(content: dict[str, Any]) -> None:
    """The demo family with plain arrays only."""
    del content["data"]["tree"]
    content["kernels"]["demo"]["arguments"].remove("tree")
    content["data"]["w"] = {"role": "input", "type": "float32", "shape": ["m"]}


def x(*shape: int, **more: Any) -> dict[str, Any]:
    return {"random": "integers", "shape": list(shape), "high": 4, **more}


def prepare(tmp_path: Path, arrays: dict[str, Any], **more: Any) -> Inputs:
    demo = load(tmp_path, plain)
    made = Workload(name="w", family="demo", path=tmp_path / "w.yaml", arrays=arrays, **more)
    return workload.prepare(demo, made, tmp_path)


def refusal(tmp_path: Path, arrays: dict[str, Any], **more: Any) -> str:
    with pytest.raises(AutotuneError) as caught:
        prepare(tmp_path, arrays, **more)
    assert isinstance(caught.value, (WorkloadError, UnknownName))
    return str(caught.value)


# -- files ------------------------------------------------------------------------------------------------


def write(folder: Path, **content: Any) -> Path:
    path = folder / "some.yaml"
    path.write_text(yaml.safe_dump({"schema": 1, "workload": "some", "family": "demo", **content}))
    return path


def test_load_by_name_path_and_default(tmp_path: Path) -> None:
    demo = load(tmp_path)
    path = write(tmp_path, parameters={"a": 1}, cache="warm")
    found = workload.load_workload(demo, path)
    assert (found.name, found.parameters, found.cold) == ("some", {"a": 1}, False)
    (tmp_path / "workloads").mkdir()
    path.rename(tmp_path / "workloads" / "some.yaml")
    assert workload.load_workload(demo, "some").name == "some"
    assert workload.load_workload(demo).name == "some"  # the only one


def test_load_shipped() -> None:
    allpairs = family.load_family("allpairs")
    assert workload.load_workload(allpairs).name == allpairs.default_workload
    assert workload.load_workload(allpairs, "ragged").cold


def test_no_default(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"^family demo has no workload of its own: add --workload"
    ) as raised:
        workload.load_workload(load(tmp_path))
    assert str(raised.value).endswith(f"or put the file into {tmp_path / 'workloads'}/")


def test_unknown_workload() -> None:
    with pytest.raises(
        UnknownName, match=r"unknown workload 'raged' in family allpairs; did you mean 'ragged'\?"
    ):
        workload.load_workload(family.load_family("allpairs"), "raged")


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=rf"^workload file {tmp_path}/no.yaml does not exist$"):
        workload.load_workload(load(tmp_path), tmp_path / "no.yaml")


def test_workload_of_another_family(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"some.yaml is a workload of family 'demo', not of 'allpairs'$"):
        workload.load_workload(family.load_family("allpairs"), write(tmp_path))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arrays": {"x": {}}}, "arrays.x: {} should be non-empty"),
        (
            {"arrays": {"x": {"random": "ints", "shape": [3]}}},
            "arrays.x.random: 'ints' is not one of ['integers', ",
        ),
        ({"arrays": {"x": {"random": "normal", "size": 3}}}, "arrays.x: unknown key 'size'"),
        ({"scalar": {}}, "top level: unknown key 'scalar'; did you mean 'scalars'?"),
    ],
)
def test_malformed_file(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        workload.load_workload(load(tmp_path), write(tmp_path, **change))
    assert f"some.yaml: {message}" in str(caught.value)


# -- arrays -----------------------------------------------------------------------------------------------


def test_prepare(tmp_path: Path) -> None:
    np.save(tmp_path / "w.npy", np.arange(3, dtype=np.float64))
    inputs = prepare(tmp_path, {"x": x(5, 3, seed=7), "w": {"npy": "w.npy"}}, options={"mode": "exact"})
    assert inputs.arrays["x"].dtype == np.int32
    np.testing.assert_array_equal(inputs.arrays["x"], np.random.default_rng(7).integers(0, 4, (5, 3)))
    assert inputs.arrays["w"].dtype == np.float32
    assert inputs.sizes == {"n": 5, "m": 3, "half": 2}
    assert inputs.options == {"mode": "exact"}
    assert inputs.scalars == {"limit": 3, "double": 6}


@pytest.mark.parametrize("kind", ["uniform", "normal"])
def test_random_fractions(tmp_path: Path, kind: str) -> None:
    made = prepare(tmp_path, {"x": x(5, 64), "w": {"random": kind, "shape": [64]}}).arrays["w"]
    assert made.shape == (64,)
    assert len(set(made.tolist())) == 64


ARRAYS = {"x": x(5, 3), "w": {"random": "uniform", "shape": [3]}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"x": {"random": "integers"}},
            "array x: give npy: FILE, or random: integers|uniform|normal with a shape",
        ),
        ({"x": {"shape": [5, 3]}}, "array x: give npy: FILE, or random"),
        ({"x": x(5, 3, low=4)}, "array x: high (4, exclusive) must be above low (4)"),
        (
            {"w": {"random": "uniform", "shape": [3], "low": 2}},
            "array w: high (1, exclusive) must be above low (2)",
        ),
        ({"x": x(5, 3, high=float("inf"))}, "array x: numpy cannot make it: cannot convert float infinity"),
        ({"x": x(5, 3, high=float("nan"))}, "array x: numpy cannot make it: cannot convert float NaN"),
        ({"x": x(5, 3, high=2**70)}, "array x: numpy cannot make it: high is out of bounds"),
        ({"x": x(2**40, 2**40)}, "array x: numpy cannot make it: "),
        ({"w": {"random": "uniform", "shape": [3], "high": float("inf")}}, "array w: numpy cannot make it: "),
        ({"x": {"npy": "no.npy"}}, "data file 'no.npy' does not exist (looked for "),
        ({"v": x(3)}, "unknown input 'v' in family demo (allowed: x, w, limit, double)"),
        ({"x": x(5, 3, high=5)}, "x: value 4 is outside the allowed 0..3"),
        ({"x": x(5, 3, low=-1)}, "x: value -1 is outside the allowed 0..3"),
        ({"x": {"random": "uniform", "shape": [5, 3]}}, "x: fractional or NaN values given, int32 needed"),
        ({"x": x(5)}, "x: 1 dimensions given, 2 needed (n, m)"),
        ({"w": x(4)}, "extent m: w gives 4, another input gives 3; they must agree"),
    ],
)
def test_array_mistake(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    assert message in refusal(tmp_path, {**ARRAYS, **change})


def test_missing_input(tmp_path: Path) -> None:
    assert refusal(tmp_path, {"x": x(5, 3)}) == "input 'w' of family demo is not given (needed: x, w)"


@pytest.mark.parametrize(
    "raw",
    [b"", b"no array", b"\x93NUMPY\x01\x00", b"PK\x03\x04 a broken archive", b"\x80\x04N."],
    ids=["empty", "text", "cut", "zip", "pickle"],
)
def test_file_that_is_no_array(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "x.npy").write_bytes(raw)
    message = refusal(tmp_path, {**ARRAYS, "x": {"npy": "x.npy"}})
    assert f"array x: {tmp_path}/x.npy is not a .npy array" in message


def test_objects_are_not_loaded(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([[{}]]), allow_pickle=True)
    assert "x.npy is not a .npy array: Object arrays cannot be loaded" in refusal(
        tmp_path, {**ARRAYS, "x": {"npy": "x.npy"}}
    )


def test_parameters_without_python(tmp_path: Path) -> None:
    message = refusal(tmp_path, {}, parameters={"size": 3})
    assert message.startswith(
        "workload w: parameters ['size'] need an inputs function in the family's family.py"
    )


@pytest.mark.parametrize(
    ("body", "problem"),
    [("int(parameters['size'])", "ValueError: invalid literal"), ("None", "TypeError: 'NoneType' object")],
)
def test_inputs_function_that_fails(tmp_path: Path, body: str, problem: str) -> None:
    (tmp_path / "family.py").write_text(f"def inputs(parameters, root):\n    return {body}\n")
    message = refusal(tmp_path, {}, parameters={"size": "x"})
    assert message.startswith(f"workload w: family.py's inputs function failed: {problem}")


# -- arrays and scalars from anywhere ---------------------------------------------------------------------


def bind(tmp_path: Path, x: Any = 0, tree: Any = None, scalars: dict[str, Any] | None = None) -> Inputs:
    given = {"x": [[x, 1]], "tree": np.zeros(1, NODE) if tree is None else tree}
    return workload.bind(load(tmp_path, at("data", "x", "type", value="int8")), given, {}, scalars or {})


def test_bind_converts(tmp_path: Path) -> None:
    inputs = bind(
        tmp_path, 3.0, np.array([(0, 2.5)], [("next", "i8"), ("score", "f8")]), {"limit": np.int64(9)}
    )
    assert inputs.arrays["x"].dtype == np.int8
    assert inputs.arrays["x"].tolist() == [[3, 1]]
    assert inputs.arrays["tree"].dtype == NODE
    assert inputs.arrays["tree"].tolist() == [(0, 2.5)]
    assert inputs.scalars == {"limit": 9, "double": 18}
    assert type(inputs.scalars["limit"]) is int


def test_names_give_everything_an_expression_may_read(tmp_path: Path) -> None:
    inputs = bind(tmp_path)
    expected = {**inputs.sizes, **inputs.options, "limit": 3, "double": 6, "block": 64}
    assert inputs.names({"block": 64}) == expected
    assert {"n", "mode"} <= expected.keys()


def test_scalars_given_or_computed(tmp_path: Path) -> None:
    assert bind(tmp_path).scalars == {"limit": 3, "double": 6}
    assert bind(tmp_path, scalars={"double": 1}).scalars == {"limit": 3, "double": 1}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"x": 1.5}, "x: fractional or NaN values given, int8 needed"),
        ({"x": float("nan")}, "x: fractional or NaN values given, int8 needed"),
        ({"x": float("inf")}, "x: fractional or NaN values given, int8 needed"),
        ({"x": 1j}, "x: dtype complex128 given, numbers (int8) needed"),
        ({"x": "a"}, "x: dtype <U21 given, numbers (int8) needed"),
        ({"x": None}, "x: dtype object given, numbers (int8) needed"),
        ({"x": [1]}, "x: not an array: setting an array element with a sequence"),
        ({"x": 300}, "x: value 300 is outside the range of int8, -128..127"),
        ({"x": -1}, "x: value -1 is outside the allowed 0..3"),
        ({"tree": np.zeros(0, NODE)}, "tree: shape (0,) is empty; every extent (n) must be at least 1"),
        ({"tree": np.zeros(1, np.int32)}, "tree: dtype int32 given, records of"),
        ({"tree": np.zeros(1, [("nxt", "i4"), ("score", "f4")])}, "records of"),
        (
            {"tree": np.full(1, 2**40, [("next", "i8"), ("score", "f4")])},
            "tree.next: value 1099511627776 is outside",
        ),
        ({"tree": np.zeros(2, NODE)}, "extent n: tree gives 2, another input gives 1; they must agree"),
        ({"scalars": {"limit": 2.5}}, "scalar limit: fractional or NaN values given, int32 needed"),
        ({"scalars": {"limit": 2**31}}, "scalar limit: value 2147483648 is outside the range of int32"),
        ({"scalars": {"limit": "3"}}, "scalar limit: dtype <U1 given, numbers (int32) needed"),
        ({"scalars": {"limt": 3}}, "unknown scalar 'limt' in family demo; did you mean 'limit'?"),
    ],
)
def test_refused_values(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    with pytest.raises((WorkloadError, UnknownName)) as caught:
        bind(tmp_path, **given)
    assert message in str(caught.value)


def test_nan_is_outside_every_range(tmp_path: Path) -> None:
    change = at("data", "x", value={"role": "input", "type": "float32", "shape": ["n"], "range": [0, 1]})
    demo = load(tmp_path, change)
    with pytest.raises(WorkloadError, match=r"^x: value nan is outside the allowed 0\.\.1$"):
        workload.bind(demo, {"x": [0.5, float("nan")], "tree": np.zeros(2, NODE)}, {}, {})


def test_a_range_holds_for_every_field_of_a_record(tmp_path: Path) -> None:
    record = {"role": "input", "record": "Point", "fields": {"a": "float32", "b": "float32"}, "shape": ["n"]}
    demo = load(tmp_path, at("data", "x", value={**record, "range": [-2, 3]}))
    points = np.array([(1, -2), (3, 0)], demo.data["x"].dtype)
    tree = np.zeros(2, NODE)
    assert workload.bind(demo, {"x": points, "tree": tree}, {}, {}).arrays["x"] is points
    points["b"][1] = 3.5
    with pytest.raises(WorkloadError, match=r"^x: value 3\.5 is outside the allowed -2\.\.3$"):
        workload.bind(demo, {"x": points, "tree": tree}, {}, {})


def test_computed_extent_and_shape_must_agree(tmp_path: Path) -> None:
    demo = load(tmp_path, at("extents", "m", value={"value": "n + 1"}))
    tree = np.zeros(2, NODE)
    assert workload.bind(demo, {"x": np.zeros((2, 3)), "tree": tree}, {}, {}).sizes == {
        "n": 2,
        "m": 3,
        "half": 1,
    }
    with pytest.raises(WorkloadError, match=r"^x: m is 4, and must be n \+ 1, which is 3$"):
        workload.bind(demo, {"x": np.zeros((2, 4)), "tree": tree}, {}, {})


def test_an_extent_that_never_changes(tmp_path: Path) -> None:
    """It is no feature and no parameter of an export; the message for another value names the right one."""
    demo = load(tmp_path, at("extents", "m", value={"value": 3}))
    assert demo.constants == {"m"}
    assert list(demo.features) == [name for name in demo.extents if name != "m"]
    tree = np.zeros(2, NODE)
    inputs = workload.bind(demo, {"x": np.zeros((2, 3)), "tree": tree}, {}, {})
    assert inputs.sizes["m"] == 3
    with pytest.raises(WorkloadError, match=r"^x: m is 4, and must be 3$"):
        workload.bind(demo, {"x": np.zeros((2, 4)), "tree": tree}, {}, {})


def test_an_extent_that_an_option_decides(tmp_path: Path) -> None:
    def table(content: dict[str, Any]) -> None:
        content["options"]["radius"] = {"values": [1, 3], "default": 3}
        content["extents"]["half"] = {"value": "2 * radius + 1"}

    demo = load(tmp_path, table)
    given = {"x": np.zeros((4, 5), np.int32), "tree": np.zeros(4, demo.data["tree"].dtype)}
    assert workload.bind(demo, given, {}, {}).sizes["half"] == 7
    assert workload.bind(demo, given, {"radius": 1}, {}).sizes["half"] == 3


def test_missing_scalar(tmp_path: Path) -> None:
    demo = load(tmp_path, at("scalars", "limit", value={"type": "int32"}))
    with pytest.raises(
        WorkloadError, match=r"^scalar 'limit' of family demo is not given and has no default$"
    ):
        workload.bind(demo, {"x": [[0]], "tree": np.zeros(1, NODE)}, {}, {})


def test_digest_follows_content(tmp_path: Path) -> None:
    first = prepare(tmp_path, ARRAYS).digest
    assert prepare(tmp_path, ARRAYS).digest == first
    others = [
        prepare(tmp_path, {**ARRAYS, "x": x(5, 3, seed=1)}),
        prepare(tmp_path, ARRAYS, options={"mode": "exact"}),
        prepare(tmp_path, ARRAYS, scalars={"limit": 4}),
    ]
    assert len({first, *(inputs.digest for inputs in others)}) == 4


# ---- data files


def arrays_of_file(tmp_path: Path) -> dict[str, Any]:
    np.save(tmp_path / "x.npy", np.ones((2, 3), np.uint8))
    return {"x": {"npy": "x.npy"}, "w": {"random": "uniform", "shape": [3]}}


def test_a_missing_data_file_is_named_with_its_checksum_and_source(tmp_path: Path) -> None:
    known = {"y.npy": {"sha256": "0" * 64, "from": "the moon"}}
    message = refusal(tmp_path, arrays_of_file(tmp_path), files=known)
    assert "'y.npy' does not exist" in message
    assert message.endswith(f"It comes from: the moon (sha256 {'0' * 64})")


def test_another_checksum_is_a_warning(tmp_path: Path) -> None:
    arrays = arrays_of_file(tmp_path)
    right = hashlib.sha256((tmp_path / "x.npy").read_bytes()).hexdigest()
    prepare(tmp_path, arrays, files={"x.npy": {"sha256": right, "from": "the moon"}})
    with pytest.warns(UserWarning, match="not 0000"):
        prepare(tmp_path, arrays, files={"x.npy": {"sha256": "0" * 64, "from": "the moon"}})
