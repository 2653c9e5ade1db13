"""Policy files that are not what they should be: each is an error that says what is wrong, none a crash."""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from fakes import sweep
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autotune.declaration import yamlfile
from autotune.errors import PolicyFileError
from autotune.files import find_bundled
from autotune.policy.file import PolicyFile, parse
from autotune.policy.file import read_policy_file as read
from autotune.policy.merge import update

SMALL = """\
schema: 2
family: f
device: {kind: cuda, name: X, compute_capability: '9.0'}
default: {memory: global}
default_over: [w]
prediction:
  options: {}
  left_out: {nearest: 0.5, prediction: 0.1}
  reach: 1.5
  kept: {c1: {configuration: {memory: global}}}
entries:
  w:
    features: {n: 1000}
    options: {}
    configuration: {memory: global, block_size: 64}
    median_ms: 1.5
    spread: 0.01
    samples: 45
    needs: {k: {block_size: 64, registers: 32, shared_bytes: 0}}
"""


def refused(tmp_path: Path, text: str | bytes) -> str:
    path = tmp_path / "p.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(PolicyFileError) as caught:
        read(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_the_small_one_is_read(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(SMALL)
    found = read(path)
    assert found.entries["w"].median_ms == 1.5
    assert found.prediction is not None and found.prediction.is_better
    path.write_text(SMALL.replace("nearest: 0.5, prediction: 0.1", "nearest: 0.5"))
    half_known = read(path).prediction
    assert half_known is not None and not half_known.is_better


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "a mapping of key: value is needed"),
        ("# nothing\n", "a mapping of key: value is needed"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"\x00" * 64, "malformed YAML"),
        ("schema: 2", "'family' is a required property"),
        ("schema: 99\nfamily: x", "schema 99 is not 2, .* later autotune"),
        ("schema: 1\nfamily: x", "schema 1 is not 2, .*sweep again"),
        ("schema: two", "schema 'two' is not 2"),
        ("schema: true", "schema True is not 2"),
        ("family: f", "schema None is not 2"),
        ("a: &a [1]\nb: *a", "aliases"),
        ("a: &a [x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]", "aliases"),
        ("x: !!python/object/apply:os.system [true]", "tags"),
        ("schema: 2\nschema: 2", "appears twice"),
        ("schema: [\n", "line 2"),
        ("[" * 500, "nested deeper"),
        ("workload: small\nfamily: f\nschema: 2\nparameters: {}", "unknown key 'workload'"),
    ],
)
def test_what_is_not_a_policy_file_is_refused(text: str | bytes, said: str, tmp_path: Path) -> None:
    import re

    assert re.search(said, refused(tmp_path, text))


@pytest.mark.parametrize(
    ("right", "mistyped", "said"),
    [
        ("median_ms: 1.5", "median_ms: fast", "'fast' is not of type 'number'"),
        ("median_ms: 1.5", "median_ms: -1", "-1 is less than or equal to the minimum of 0"),
        ("median_ms: 1.5", "median_ms: .nan", "not a number"),
        ("median_ms", "medain_ms", "unknown key 'medain_ms'; did you mean 'median_ms'?"),
        ("samples: 45", "samples: 4.5", "4.5 is not of type 'integer'"),
        ("samples: 45", "samples: 0", "0 is less than the minimum of 1"),
        ("features: {n: 1000}", "features: {n: many}", "entries.w.features.n: 'many' is not of type 'number'"),
        ("features: {n: 1000}", "features: [n]", "is not of type 'object'"),
        ("memory: global, block", "memory: [global], block", "is not of type 'string', 'integer'"),
        ("default: {memory: global}", "default: global", "'global' is not of type 'object'"),
        ("registers: 32", "registers: some", "'some' is not of type 'integer'"),
        ("kept: {c1", "kept: all  # {c1", "'all' is not of type 'object'"),
        ("reach: 1.5", "reach: far", "'far' is not of type 'number'"),
        ("default_over: [w]", "default_over: w", "'w' is not of type 'array'"),
        ("  options: {}\n  left_out", "  accuracy: a\n  left_out", "prediction: 'options' is a required"),
        ("reach: 1.5", "raech: 1.5", "unknown key 'raech'; did you mean 'reach'?"),
        ("default_over:", "default_ovre:", "unknown key 'default_ovre'; did you mean 'default_over'?"),
        ("name: X", "name: 8800", "8800 is not of type 'string'"),
        ("kind: cuda", "kind: fpga", "'fpga' is not one of"),
        ("'9.0'", "'nine'", "device compute_capability is 'nine', not of the form 9.0"),
        ("entries:\n", "entries: []\nother:\n", "unknown key 'other'"),
        ("spread: 0.01", "spread: 0.01\n    date: 2026-01-01", "not a word|is not of type 'string'"),
    ],
)  # fmt: skip
def test_what_a_hand_mistyped_is_named(right: str, mistyped: str, said: str, tmp_path: Path) -> None:
    import re

    assert SMALL.count(right) == 1
    assert re.search(said, refused(tmp_path, SMALL.replace(right, mistyped)))


TOO_MUCH = ("1e400", ".inf", "-.inf", ".nan", "1" + "0" * 400, "1e-320", "1" + "0" * 5000)


@pytest.mark.parametrize("value", TOO_MUCH, ids=lambda text: text[:6])
@pytest.mark.parametrize(
    "right",
    ["median_ms: 1.5", "spread: 0.01", "samples: 45", "n: 1000", "registers: 32", "nearest: 0.5",
     "reach: 1.5", "block_size: 64, registers", "transform_ms: 9",
     "transfer_ms: 9", "runner_up_ms: 9", "margin_over_control: 9", "break_even: 9", "default_regret: 9"],
)  # fmt: skip
def test_an_absurd_number_is_refused(right: str, value: str, tmp_path: Path) -> None:
    """And not an error of arithmetic where something is computed from it."""
    key = right.split(":", maxsplit=1)[0]
    if right in SMALL:
        text = SMALL.replace(right, right.replace(right.split(": ")[1].split(",", maxsplit=1)[0], value, 1))
    elif key == "default_regret":
        text = SMALL + f"{key}: {value}\n"
    else:
        text = SMALL + f"    {key}: {value}\n"
    assert text != SMALL
    refused(tmp_path, text)


def test_a_file_of_a_hand_needs_no_entries(tmp_path: Path) -> None:
    head = SMALL.partition("prediction:")[0]
    path = tmp_path / "p.yaml"
    for entries in ("", "entries:\n", "entries: {}\n"):
        path.write_text(head + entries)
        assert read(path).entries == {}
    assert "is not of type" in refused(tmp_path, head + "entries: []\n")


@pytest.mark.parametrize("name", ["../evil", "/tmp/evil", "./evil", "evil\\n", "Evil", ""])
def test_a_family_is_a_name_and_no_path(name: str, tmp_path: Path) -> None:
    assert "family" in refused(tmp_path, SMALL.replace("family: f", f'family: "{name}"'))


def test_a_huge_file_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    with path.open("wb") as file:
        file.truncate(1 << 30)
    began = time.process_time()
    with pytest.raises(PolicyFileError, match="larger than"):
        read(path)
    assert time.process_time() - began < 5  # reading it all would take the memory, not only the time


def test_links_pipes_and_folders(tmp_path: Path) -> None:
    (tmp_path / "real.yaml").write_text(SMALL)
    link = tmp_path / "link.yaml"
    link.symlink_to(tmp_path / "real.yaml")
    assert read(link).entries["w"].samples == 45
    dangling = tmp_path / "dangling.yaml"
    dangling.symlink_to(tmp_path / "nothing.yaml")
    loop = tmp_path / "loop.yaml"
    loop.symlink_to(loop)
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    endless = tmp_path / "endless.yaml"
    endless.symlink_to("/dev/zero")
    for path in (dangling, loop, pipe, endless, tmp_path):
        with pytest.raises(PolicyFileError, match=r"cannot read|is not a file"):
            read(path)


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(SMALL)

    def denied(
        self: Path, *arguments: Any, **named: Any
    ) -> None:  # the superuser, who tests here, reads everything
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(PolicyFileError, match=r"cannot read .*: Permission denied"):
        read(path)


def test_every_truncation_is_read_or_refused(folder: Path, tmp_path: Path) -> None:
    whole = update(tmp_path / "policies", [sweep(folder, tmp_path).run()]).read_bytes()
    torn = tmp_path / "torn.yaml"
    for length in range(0, len(whole), 23):
        torn.write_bytes(whole[:length])
        try:
            assert isinstance(read(torn), PolicyFile)
        except PolicyFileError:
            pass


def paths_in(item: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    for key, value in (
        item.items() if isinstance(item, dict) else enumerate(item if isinstance(item, list) else ())
    ):
        found += paths_in(value, (*path, key))
    return found


WHOLE = yaml.safe_load(SMALL)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.dates(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.sampled_from(paths_in(WHOLE)), ANYTHING, st.booleans())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_stands_in_its_place_is_read_or_refused(
    path: tuple[Any, ...], value: Any, removed: bool
) -> None:
    content = yaml.safe_load(SMALL)
    item = content
    for key in path[:-1]:
        item = item[key]
    if removed:
        del item[path[-1]]
    else:
        item[path[-1]] = value
    try:
        found = parse(content, Path("p.yaml"))
    except PolicyFileError:
        return
    for entry in found.entries.values():
        assert entry.median_ms > 0
    with suppress(TypeError):  # it cannot order places where numbers and words are keys side by side
        yamlfile.check(content, "policy", Path("p.yaml"), PolicyFileError)


def test_the_committed_policy_files_are_read() -> None:
    paths = sorted(find_bundled("policies").glob("*/*.yaml"))
    assert paths
    for path in paths:
        found = read(path)
        assert found.entries
        assert path == find_bundled("policies") / found.family / path.name


# -- the document -------------------------------------------------------------------------------------------

DOCUMENT = (Path(__file__).parents[2] / "docs" / "reference" / "policy-files.md").read_text(encoding="utf-8")


def test_the_documented_file_is_one_and_its_rule_fits_in() -> None:
    import re

    whole, features, *rules = map(
        yaml.safe_load, re.findall(r"^```yaml\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
    )
    found = parse(whole, Path("policy-files.md"))
    yamlfile.check(whole, "policy", Path("policy-files.md"), PolicyFileError)
    assert found.entries["primer"].features == {"attributes": 512, "instances": 112}
    for rule in rules:
        with_rule = {**whole, **rule, "entries": {**whole["entries"], "hapmap3": whole["entries"]["primer"]}}
        yamlfile.check(with_rule, "policy", Path("policy-files.md"), PolicyFileError)
        assert parse(with_rule, Path("policy-files.md")).prediction is not None
    assert len(rules) == 1
    declared = yaml.safe_load((find_bundled("kernels") / "mummergpu" / "family.yaml").read_text())
    assert features == {"features": declared["features"]}


def test_every_key_is_described() -> None:
    import re

    properties = yamlfile.schema("policy")["properties"]
    keys = re.findall(r"^\| `(\w+)` \|", DOCUMENT, re.MULTILINE)
    assert keys == [*properties, *properties["entries"]["additionalProperties"]["properties"]]
