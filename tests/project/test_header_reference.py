"""The reference of the C++ headers: every public type has an example, which compiles, and its cost."""

import importlib.util
import re
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from autotune.compile import Nvrtc
from autotune.files import include_dir

ROOT = Path(__file__).parents[2]


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generated = loaded(ROOT / "docs" / "reference" / "generated.py")


@pytest.fixture(scope="module")
def costs() -> ModuleType:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        return loaded(ROOT / "benchmarks" / "accessor_costs.py")
    finally:
        sys.path.pop(0)


def types() -> list[str]:
    """Those that the headers declare."""
    files = [*generated.INCLUDE.glob("*.cuh"), *(generated.INCLUDE / "interop").glob("*.cuh")]
    found = [text for path in files for text, _ in generated.declarations(path.read_text(encoding="utf-8"))]
    return [name for text in found if (name := generated.type_name(text))]


def test_every_public_type_has_one_example() -> None:
    known, examples = set(types()), generated.examples()
    assert len(known) > 60
    assert known >= generated.PARTS, "parts that no header declares any more"
    assert {*examples} == known - generated.PARTS
    titles = re.findall(r"^// == (.*)$", generated.EXAMPLES.read_text(encoding="utf-8"), re.MULTILINE)
    assert max(Counter(" ".join(titles).split()).values()) == 1
    for name, (_, text) in examples.items():
        written = generated.EXAMPLES.read_text(encoding="utf-8").partition(text)[0] + text
        assert re.search(rf"\b{name}\b", text) or re.search(rf"using \w+ =[^;]*\b{name}\b", written), name


def test_every_example_has_its_cost(costs: ModuleType) -> None:
    rows = costs.read_rows(generated.COSTS)
    texts = {re.findall(r"__global__ void (\w+)", text)[0]: text for _, text in generated.examples().values()}
    assert {(row["kernel"], row["arch"]) for row in rows} == {
        (kernel, arch) for kernel in texts for arch in ("sm_90", "sm_100")
    }
    stale = {row["kernel"] for row in rows if row["example"] != costs.digest(texts[row["kernel"]])}
    assert not stale, "python benchmarks/accessor_costs.py --types --out benchmarks/results/type-costs.csv"
    for kernel in texts:
        assert re.search(
            rf"`{kernel}`: \d+ registers, \d+ instructions on sm_90; \d+", generated.cost(kernel)
        )


def test_the_page_shows_them() -> None:
    page = generated.headers()
    for name, (first, text) in generated.examples().items():
        assert (f"```cpp\n{text}\n```" in page) if name == first else (f", with `{first}`" in page), name
    assert page.count("\nExample: `") == len(generated.examples())


def test_a_type_without_example_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    short = generated.EXAMPLES.read_text(encoding="utf-8").replace("// == Checked", "// == Array2")
    (tmp_path / "examples.cu").write_text(short, encoding="utf-8")
    monkeypatch.setattr(generated, "EXAMPLES", tmp_path / "examples.cu")
    with pytest.raises(KeyError, match="Checked"):
        generated.headers()


@pytest.mark.nvrtc
def test_the_examples_compile_to_what_the_page_says(costs: ModuleType) -> None:
    request = replace(costs.plain_batch(generated.EXAMPLES), include_dirs=(include_dir(),))
    compiled = costs.figures(request, "sm_90")
    compiler = Nvrtc("sm_90").identity.partition(" -")[0]
    rows = [row for row in costs.read_rows(generated.COSTS) if row["arch"] == "sm_90"]
    assert compiled.keys() == {row["kernel"] for row in rows}
    said = {row["kernel"]: (int(row["registers"]), int(row["instructions"])) for row in rows}
    assert compiled == said or compiler not in {row["compiler"] for row in rows}
