"""Advice on a family: what its arrays cost, which layouts are tried, and what they save; and the layout receipt."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from report_pages import Page

from autotune.advise import Advice, find_changes, make_advice
from autotune.advise.receipt import RECEIPT, describe_policies, make_blocks, write_receipts
from autotune.advise.report import Said, as_json, write_page
from autotune.declaration import Configuration, Family, load_family, load_workload, prepare
from autotune.errors import StoreError
from autotune.record import Provenance, Study, Trial, write_results
from autotune.record.trial import Measurement

FAMILY = """\
schema: 1
family: weigher
title: y = 2 p.x
source: weigher.cu
default_workload: small
data:
  p: {role: input, record: P, fields: {x: float32, y: float32, z: float32, w: float32}, shape: [n]}
  y: {role: output, type: float32, shape: [n]}
kernels:
  weigher: {arguments: [p, y], grid: ["ceil_div(n, 128)"], block: ["128"]}
policies:
  p_records: {layout: records, data: [p], values: [aos, soa, aosoa32], default: aos}
  p_memory: {layout: memory, data: [p], values: [global, readonly, texture], default: global}
  tail: {values: [1, 32], default: 1}
constraints:
  - require: p_records != 'aosoa32' or tail == 32
    reason: 32 at a time take whole tails
  - {require: p_memory != 'texture', reason: never}
reference: control
"""
SOURCE = """\
#include "autotune/array.cuh"
struct P { float x, y, z, w; };
template <class Policy>
__global__ void weigher(typename Policy::p p, typename Policy::y y) {
  const unsigned i = blockIdx.x * 128 + threadIdx.x;
  if (i < y.extent(0)) y.store(2 * p.load(i).x, i);
}
"""
MODULE = """\
import numpy as np

P = np.dtype([(name, np.float32) for name in "xyzw"])


def inputs(parameters, root):
    return {"p": np.zeros(parameters["n"], P)}
"""
WORKLOAD = "schema: 1\nworkload: small\nfamily: weigher\nparameters: {n: 1024}\n"
WARPS = 1024 // 32


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Family:
    folder = tmp_path_factory.mktemp("families") / "weigher"
    (folder / "workloads").mkdir(parents=True)
    for name, text in {"family.yaml": FAMILY, "weigher.cu": SOURCE, "family.py": MODULE}.items():
        (folder / name).write_text(text)
    (folder / "workloads" / "small.yaml").write_text(WORKLOAD)
    return load_family(str(folder))


@pytest.fixture(scope="module")
def advice(family: Family, tmp_path_factory: pytest.TempPathFactory) -> Advice:
    return make_advice(family, "small", tmp_path_factory.mktemp("data"))


def test_each_layout_is_tried_with_what_it_needs(family: Family, tmp_path: Path) -> None:
    inputs = prepare(family, load_workload(family, "small"), tmp_path)
    found = find_changes(family, inputs)
    control = family.space.control
    assert [(one.name, one.configuration.changes(control)) for one in found.traced] == [
        ("p_records=soa", "p_records=soa"),
        ("p_records=aosoa32", "p_records=aosoa32, tail=32"),
    ]
    assert set(found.left_out) == {"p_memory=readonly", "p_memory=texture"}
    assert "no sector" in found.left_out["p_memory=readonly"]
    assert found.left_out["p_memory=texture"] == "never"


@pytest.mark.clang
@pytest.mark.tracing
def test_what_arrays_cost_is_counted_for_all_blocks(advice: Advice) -> None:
    (kernel,) = advice.control.kernels
    assert (kernel.kernel, kernel.launches, kernel.blocks, kernel.traced) == ("weigher", 1, 8, 4)
    p, y = kernel.arrays
    assert (p.name, p.requests, p.sectors) == ("p", WARPS, 16 * WARPS)
    assert p.ideal <= 8 * WARPS  # a field, or the half of a record that has it
    assert (y.asked_bytes, y.written_bytes) == (128 * WARPS,) * 2
    assert (y.name, y.sectors, y.ideal) == ("y", 4 * WARPS, 4 * WARPS)


@pytest.mark.clang
@pytest.mark.tracing
def test_the_layout_that_moves_less_comes_first_and_names_its_array(advice: Advice) -> None:
    best = advice.suggestions[0]
    assert best.values == {"p_records": "soa"}
    assert best.save("missed") == pytest.approx(1 - 8 / 20)
    assert best.most >= best.save("missed")
    assert best.ratio < 1
    assert advice.arrays == ("p",)
    assert best in advice.advised
    assert advice.failed == {}


@pytest.mark.clang
@pytest.mark.tracing
def test_a_suggestion_that_saves_nothing_is_not_advised(advice: Advice) -> None:
    best = advice.suggestions[0]
    same = replace(best, costs=best.control)
    alone = replace(advice, suggestions=(same,))
    assert (same.most, same.ratio, alone.advised, alone.arrays) == (0, 1, (), ())
    assert "should be faster" in Said("weigher", alone).verdict


@pytest.mark.clang
@pytest.mark.tracing
def test_text_json_and_page_say_the_same(advice: Advice, tmp_path: Path) -> None:
    said = Said("weigher", advice, pointers={"q": "it is moved <here>"})
    told = json.loads(as_json(said))
    assert told["verdict"] == said.verdict
    assert said.verdict.startswith("p matters most: p_records=soa saves at most")
    assert told["suggestions"][0]["saves_moved"] == advice.suggestions[0].save("missed")
    assert told["not_tried"]["q stays as it is"] == "it is moved <here>"
    assert told["kernels"][0]["arrays"][0]["sectors"] == 16 * WARPS
    page = write_page(said, tmp_path / "advice.html").read_text(encoding="utf-8")
    assert said.verdict in page and "it is moved &lt;here&gt;" in page
    assert "http" not in page.split("Content-Security-Policy")[1] and "<script" not in page
    assert 'name=viewport content="width=device-width' in page


@pytest.mark.clang
@pytest.mark.tracing
@pytest.mark.chromium
def test_the_page_fits_a_phone(advice: Advice, tmp_path: Path, browser: object) -> None:
    path = write_page(Said("weigher", advice), tmp_path / "advice.html")
    page = browser.new_page(viewport={"width": 360, "height": 800})  # type: ignore[attr-defined]
    page.goto(path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.close()


# -- the receipt ------------------------------------------------------------------------------------------


@pytest.fixture
def study(family: Family) -> Study:
    """Control and the other records, which are faster."""
    control = family.space.control
    trials = [
        Trial(
            family="weigher", workload="small", device="gpu-1", configuration=configuration, state="measured",
            measurement=Measurement(median_ms=ms, minimum_ms=ms, spread=0.001, samples=9),
        )
        for configuration, ms in ((control, 2.0), (Configuration({**control, "p_records": "soa"}), 1.0))
    ]  # fmt: skip
    about = {"source_digest": family.source_digest, "space_digest": family.space_digest, "counters": {
        control.id: {"weigher": {"l2_read_bytes": 5e6, "dram_bytes": 4e6}}}}  # fmt: skip
    return Study(
        family="weigher", workload="small", device="gpu-1", identity="a", control=control, presets={"control": control},
        about=Provenance.from_dict(about), trials=tuple(trials),
    )  # fmt: skip


def rows_of(study: Study, family: Family | None, folder: Path) -> tuple[str, list[dict[str, object]]]:
    (block,) = make_blocks(study, family, folder)
    if block.table is None:
        return block.text, []
    keys = [column.key for column in block.table.columns]
    return block.text, [dict(zip(keys, row, strict=True)) for row in block.table.rows]


@pytest.mark.clang
@pytest.mark.tracing
def test_a_receipt_is_traced_kept_and_shown(study: Study, family: Family, tmp_path: Path) -> None:
    write_results([study], tmp_path / "results.csv")
    made = write_receipts(family, tmp_path, tmp_path)
    assert [line.rpartition("/")[2] for line in made] == [RECEIPT, "report.html"]
    _, rows = rows_of(study, family, tmp_path)
    p = {row["role"]: row for row in rows if row["array"] == "p"}
    assert (p["winner"]["set_by"], p["control"]["set_by"]) == (
        "p_records=soa, p_memory=global",
        "p_records=aos, p_memory=global",
    )
    assert p["control"]["moved_bytes"] == 16 * WARPS * 32
    assert p["control"]["moved_over_asked"] >= 2
    assert p["winner"]["moved_over_asked"] == 1
    counted = [row for row in rows if row["array"] == "all"]
    assert [(row["role"], row["l2_read_bytes"], row["dram_bytes"]) for row in counted] == [
        ("control", 5e6, 4e6)
    ]
    page = Page()
    page.feed((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert len(page.tables["layout_receipt"]) == 1 + 4


def test_without_traces_the_policies_are_named_and_how_to_trace(
    study: Study, family: Family, tmp_path: Path
) -> None:
    text, rows = rows_of(study, family, tmp_path)
    assert "autotune advise weigher --record" in text
    named = [(row["role"], row["array"], row["set_by"]) for row in rows]
    assert ("winner", "p", "p_records=soa, p_memory=global") in named
    assert make_blocks(replace(study, trials=()), family, tmp_path) == []
    assert rows_of(study, None, tmp_path)[1][0]["array"] == "all"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "cannot be read"),
        ("[]", "cannot be read"),
        ('{"family": "weigher", "source_digest": "x", "space_digest": "y", "receipts": []}', "other sources"),
    ],
)
def test_a_receipt_that_is_torn_or_of_other_sources_is_left_out(
    text: str, told: str, study: Study, family: Family, tmp_path: Path
) -> None:
    (tmp_path / RECEIPT).write_text(text)
    assert told in rows_of(study, family, tmp_path)[0]


def test_a_receipt_needs_a_record_of_the_family(study: Study, tmp_path: Path) -> None:
    write_results([study], tmp_path / "results.csv")
    with pytest.raises(StoreError, match="no study of family allpairs"):
        write_receipts(load_family("allpairs"), tmp_path, tmp_path)


def test_an_order_lays_out_all_arrays_of_its_extent() -> None:
    family = load_family("mummergpu")
    control = family.space.control
    assert "tree_order=construction" in describe_policies(family, control, ["tails"])
    assert "tree_order" not in describe_policies(family, control, ["queries"])
