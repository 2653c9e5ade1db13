"""Reading YAML: every file that is not a small plain mapping is one clear error, never a crash or a hang."""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from autotune.declaration import yamlfile
from autotune.errors import AutotuneError, FamilyError, WorkloadError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "some.yaml"


def refusal(file: Path, text: str | bytes) -> str:
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(FamilyError) as caught:
        yamlfile.read(file, FamilyError)
    message = str(caught.value)
    assert str(file) in message
    return message.replace(str(file), "FILE")


def test_read(file: Path) -> None:
    file.write_text("a: 1\nb: [x, 2.5, true, null]\nc: {d: 'é'}\n", encoding="utf-8")
    assert yamlfile.read(file, FamilyError) == {"a": 1, "b": ["x", 2.5, True, None], "c": {"d": "é"}}


def test_words_are_what_pyyaml_makes_of_them(file: Path) -> None:
    words = "0x1f 017 1_000 1:30 1e3 1.0e+3 -.5 .inf yes Off ~ Null 2020-01-01 2020-01-01T10:00:00Z a-b 1.2.3"
    plain, quoted = ", ".join(words.split()), ", ".join(f"'{word}'" for word in words.split())
    text = f"plain: [{plain}]\nquoted: [{quoted}]\n1: {{2.5: a, true: [], ~: {{}}, 2020-01-01: ''}}\n"
    text += "folded: >\n  two\n  lines\nkept: |\n  two\n  lines\n"
    file.write_text(text)
    assert repr(yamlfile.read(file, FamilyError)) == repr(yaml.safe_load(text))
    file.write_text("<<: {a: =}\n")  # words here, as in YAML 1.2
    assert yamlfile.read(file, FamilyError) == {"<<": {"a": "="}}


@pytest.mark.parametrize("error", [FamilyError, WorkloadError])
def test_missing_raises_the_callers_error(file: Path, error: type[AutotuneError]) -> None:
    with pytest.raises(error, match=rf"^cannot read {file}: No such file or directory$"):
        yamlfile.read(file, error)


def test_directory(tmp_path: Path) -> None:
    with pytest.raises(FamilyError, match=rf"^cannot read {tmp_path}: it is no file$"):
        yamlfile.read(tmp_path, FamilyError)


@pytest.mark.parametrize(
    ("text", "kind"),
    [("", "NoneType"), ("# nothing\n", "NoneType"), ("- 1\n", "list"), ("hello\n", "str"), ("3\n", "int")],
)
def test_not_a_mapping(file: Path, text: str, kind: str) -> None:
    assert refusal(file, text) == f"FILE: a mapping of key: value is needed, found {kind}"


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("a: [1,\nb: }\n", "line 2 column 4", "did not find expected node content"),
        ("a:\n\tb: 1\n", "line 2 column 1", "found character that cannot start any token"),
        ("a: 1\n---\nb: 2\n", "line 2 column 1", "another document"),
        ("a: 'open\n", "line 2 column 1", "unexpected end"),
        ("a: 1\nb: 2\na: 3\n", "line 3 column 1", "key 'a' appears twice"),
        ("x:\n  - {a: 1, 'a': 2}\n", "line 2 column 12", "key 'a' appears twice"),
        ("? [a]\n: 1\n", "line 1 column 3", "a key must be a plain word"),
        ("? {a: 1}\n: 1\n", "line 1 column 3", "a key must be a plain word"),
    ],
)
def test_malformed_with_line_and_column(file: Path, text: str, place: str, problem: str) -> None:
    message = refusal(file, text)
    assert message.startswith(f"FILE {place}: malformed YAML: ")
    assert problem in message


@pytest.mark.parametrize("text", ["a: 2020-99-99\n", "a: " + "9" * 5000 + "\n", "a: 1\nb: \a\n"])
def test_scalar_that_is_no_value(file: Path, text: str) -> None:
    assert "malformed YAML" in refusal(file, text)


# -- aliases, tags, nesting, size -------------------------------------------------------------------------


def test_alias(file: Path) -> None:
    assert refusal(file, "a: &x [1]\nb: *x\n") == (
        "FILE line 2 column 4: malformed YAML: aliases (*name) are not allowed"
    )


@pytest.mark.parametrize(
    "text",
    [
        "a0: &a0 [1]\n" + "".join(f"a{i}: &a{i} [{f'*a{i - 1},' * 9}]\n" for i in range(1, 12)),
        "a: &a [" + "1," * 30_000 + "]\nb: [" + "*a," * 30_000 + "]\n",
        "a: &a [*a]\n",
        "a: &a {b: 1}\nc: {<<: *a}\n",
    ],
    ids=["deep", "wide", "recursive", "merge"],
)
def test_alias_bomb(file: Path, text: str) -> None:
    assert "aliases (*name) are not allowed" in refusal(file, text)


@pytest.mark.parametrize("name", ["object:os.system", "object/apply:os.system", "name:os.system", "tuple"])
def test_python_tag(file: Path, name: str) -> None:
    assert refusal(file, f"a: !!python/{name} {{}}\n") == (
        f"FILE line 1 column 4: malformed YAML: tags (tag:yaml.org,2002:python/{name}) are not allowed"
    )


@pytest.mark.parametrize("tag", ["!mine", "!!set", "!!int", "!!bool", "!!float", "!!timestamp", "!!binary"])
def test_tag(file: Path, tag: str) -> None:
    message = refusal(file, f"a: 1\nb: {tag} {{}}\n")
    assert message.startswith("FILE line 2 column 4: malformed YAML: tags (")


@pytest.mark.parametrize("tag", ["!!int", "!!bool", "!!float", "!!timestamp", "!!set"])
def test_tag_with_a_value_its_constructor_fails_on(file: Path, tag: str) -> None:
    assert "are not allowed" in refusal(file, f"a: {tag} ''\n")
    assert "are not allowed" in refusal(file, f"? {tag} {{}}\n: 1\n")


def test_nothing_runs(file: Path, tmp_path: Path) -> None:
    witness = tmp_path / "ran"
    refusal(file, f"a: !!python/object/apply:pathlib.Path.touch [{witness}]\n")
    assert not witness.exists()


def test_nesting_up_to_20(file: Path) -> None:
    file.write_text("a: " + "[" * 19 + "1" + "]" * 19)
    assert list(yamlfile.read(file, FamilyError)) == ["a"]


@pytest.mark.parametrize(
    "text",
    [
        "a: " + "[" * 20 + "]" * 20,
        "a: " + "[" * 1_000_000,
        "{a: " * 100_000,
        "a:\n" + "- " * 100_000 + "1",
        "".join(" " * i + "a:\n" for i in range(1500)),
        "? " + "[" * 30,
    ],
    ids=["21", "list", "mapping", "block", "indent", "key"],
)
def test_nested_too_deep(file: Path, text: str) -> None:
    assert "nested deeper than 20 levels, or more than 200000 items" in refusal(file, text)


def test_too_many_items(file: Path) -> None:
    assert "more than 200000 items" in refusal(file, "a: [" + "1," * 200_001 + "]")


def test_same_rules_without_libyaml(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # PyYAML's own parser stands in where its C extension was not built.
    monkeypatch.setattr(yamlfile, "_Base", yaml.SafeLoader)
    assert "line 2 column 4: malformed YAML: aliases" in refusal(file, "a: &x [1]\nb: *x\n")
    assert "line 1 column 4: malformed YAML: tags" in refusal(file, "a: !!set {}\n")
    assert "nested deeper than 20" in refusal(file, "a: " + "[" * 5000)


def test_larger_than_4_mib(file: Path) -> None:
    file.touch()
    os.truncate(file, 1 << 40)  # sparse: a terabyte that takes no room
    with pytest.raises(FamilyError, match="is larger than 4194304 bytes"):
        yamlfile.read(file, FamilyError)


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (bytes(range(256)), "is not UTF-8 text"),
        (b"\x7fELF\x02\x01\x01\0\0", "malformed YAML"),
        (b"a: 1\0", "malformed YAML"),
        ("a: é\n".encode("latin-1"), "is not UTF-8 text"),
    ],
)
def test_binary(file: Path, raw: bytes, problem: str) -> None:
    assert problem in refusal(file, raw)


# -- schemas ----------------------------------------------------------------------------------------------


def check(content: dict[Any, Any], schema: str = "workload") -> str:
    with pytest.raises(WorkloadError) as caught:
        yamlfile.check(content, schema, Path("w.yaml"), WorkloadError)
    return str(caught.value)


WORKLOAD = {"schema": 1, "workload": "w", "family": "f"}


def test_check_passes() -> None:
    yamlfile.check(WORKLOAD, "workload", Path("w.yaml"), WorkloadError)


def test_unknown_key_with_suggestion() -> None:
    assert check({**WORKLOAD, "parametres": {}}) == (
        "w.yaml: top level: unknown key 'parametres'; did you mean 'parameters'? (allowed: "
        "arrays, cache, doc, family, files, options, parameters, scalars, schema, workload)"
    )


def test_unknown_key_below_the_top() -> None:
    message = check({**WORKLOAD, "arrays": {"x": {"random": "uniform", "shap": [3]}}})
    assert message.startswith("w.yaml: arrays.x: unknown key 'shap'; did you mean 'shape'?")


def test_unknown_key_that_is_no_text() -> None:
    assert "unknown key '1'" in check({**WORKLOAD, 1: 2})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 2}, "w.yaml: schema: 1 was expected"),
        ({"cache": "hot"}, "w.yaml: cache: 'hot' is not one of ['cold', 'warm']"),
        ({"scalars": {"s": "x"}}, "w.yaml: scalars.s: 'x' is not of type 'number'"),
        ({"arrays": {"x": {"shape": [0]}}}, "w.yaml: arrays.x.shape.0: 0 is less than the minimum of 1"),
        ({"workload": "Not a name"}, "w.yaml: workload: 'Not a name' does not match"),
    ],
)
def test_wrong_value_with_its_place(change: dict[str, Any], message: str) -> None:
    assert check({**WORKLOAD, **change}).startswith(message)


def test_missing_key() -> None:
    assert check({"schema": 1, "family": "f"}) == "w.yaml: top level: 'workload' is a required property"


@pytest.mark.parametrize("name", ["family", "policy", "workload"])
def test_schemas_are_valid(name: str) -> None:
    import jsonschema

    jsonschema.Draft202012Validator.check_schema(yamlfile.schema(name))
