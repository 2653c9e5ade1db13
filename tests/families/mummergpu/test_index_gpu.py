"""The index made on a real CUDA device: node for node the host's, and read where it was made in every layout."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from index_oracle import INDEX, STEPS, assert_is_the_index, program_on, repeats
from lending import tuned
from mummergpu_helpers import _load, sequences
from shared_data import SHARED
from suffix_tree_oracle import Text, codes, texts

from autotune.device import DeviceProgram, open_backend

pytestmark = pytest.mark.gpu

ROOT = Path(__file__).parents[3]
FAMILY, TABLES = _load("family"), _load("tables")
SMALL = {"block_size": 64, "items": 2}


@pytest.fixture(scope="module", params=[SMALL, dict(STEPS.SIZES)], ids=["small", "shipped"])
def program(request: pytest.FixtureRequest) -> Iterator[DeviceProgram]:
    with open_backend("cuda") as backend:  # type: ignore[attr-defined]  # a context manager in fact
        yield program_on(backend, request.param)


def drawn(letters: int, codes_below: int = 4) -> Text:
    return np.append(np.random.default_rng(1).integers(0, codes_below, letters), 4).astype(np.uint8)


@settings(deadline=None, max_examples=100)
@given(texts())
def test_texts_of_a_few_characters(program: DeviceProgram, text: Text) -> None:
    assert_is_the_index(program, text)


@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        drawn(1_000_000), drawn(300_000, 5), np.append(np.zeros(600_000), 4).astype(np.uint8),
        np.append(np.arange(400_001) % 2, 4).astype(np.uint8), repeats(2_000_000, 6000),
        np.append(np.tile(drawn(999)[:-1], 300), 4).astype(np.uint8), np.tile(drawn(37), 9000), codes("A-"),
    ],
    ids=["random", "others", "one-letter", "period-2", "repeats", "tandem", "equal-records", "smallest"],
)  # fmt: skip
def test_texts_of_every_kind(program: DeviceProgram, text: Text, merged: bool) -> None:
    assert_is_the_index(program, text, merged)


def test_phages_and_both_at_once(program: DeviceProgram) -> None:
    found = [
        sequences.read_reference(ROOT / "workloads" / "data" / name).codes
        for name in ("phiX174_dada2.fa.gz", "lambda_NC_001416.1.fa.gz")
    ]
    for text in (*found, np.concatenate(found * 3)):
        assert_is_the_index(program, text)


@pytest.mark.shared
@pytest.mark.parametrize("name", ["lmono_EGDe_NC_003210.1.fa.gz", "hs_GRCh37_chr20_60001-16060000.fa.gz"])
def test_genomes(program: DeviceProgram, name: str) -> None:
    assert_is_the_index(program, sequences.read_reference(SHARED / "data" / "genomes" / name).codes, True)


LAYOUTS = [
    *itertools.product(
        ("global", "texture"), ("1d", "2d"), ("construction", "reordered"), ("split", "merged")
    ),
    ("readonly", "1d", "construction", "split"),
    ("readonly", "1d", "construction", "merged"),
]


CONFIGURATIONS = [
    *(
        {
            "tree_memory": memory,
            "tree_dims": dims,
            "tree_order": order,
            "tree_grouping": grouping,
            "emit": emit,
        }
        for (memory, dims, order, grouping), emit in itertools.product(LAYOUTS, ("walk", "ranges"))
    ),
    {"search": "coarse_table", "emit": "ranges", "leaf_records": "soa"},
    *(
        {"search": "fine_table", "emit": "ranges", "leaf_memory": m}
        for m in ("global", "readonly", "texture")
    ),
]


@pytest.mark.parametrize("chosen", CONFIGURATIONS, ids=lambda chosen: "-".join(chosen.values()))
def test_kernels_read_it_in_every_layout(chosen: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = repeats(60_000, 900)
    queries, offsets = FAMILY._simulated(text, 700, {"read_length": [60, 90], "substitutions": 0.02})
    arrays: dict[str, Any] = FAMILY.arrays_of(text, queries, offsets, 15)
    with tuned("mummergpu") as kernel:
        control = kernel.family.space.configuration("control")
        configuration = type(control)({**control, **chosen})
        first = kernel._target
        explained = first.explain
        monkeypatch.setattr(
            first,
            "explain",
            lambda inputs: (replace(explained(inputs)[0], configuration=configuration), []),
        )
        expected = kernel.prepare(kernel.bind(**arrays))()
        letters = TABLES.table_letters(text.size, 15)
        wanted = INDEX.wanted_for(
            configuration, dict(zip(("coarse_table", "fine_table"), letters, strict=True))
        )
        with INDEX.build_index(kernel, text, wanted) as index:
            made = {name: array for name, array in index.arrays.items() if name in arrays}
            on_gpu = kernel.prepare(kernel.bind(**{**arrays, **made}))
            beside = on_gpu.prepare_other(kernel.bind(**{**arrays, **made}))
            for handle in (on_gpu, beside):
                np.testing.assert_array_equal(handle(), expected)
            is_plane = configuration["tree_dims"] == "2d"
            is_plain = (configuration["tree_memory"], configuration["tree_grouping"]) == ("global", "split")
            through_host = configuration["tree_order"] == "reordered" or (is_plane and not is_plain)
            is_on_host = isinstance(on_gpu._kept.arrays["nodes"], np.ndarray)
            assert is_on_host == (through_host or not wanted.tree)
            beside.close()
            on_gpu.close()
