"""docs/guides/run-time.md: its programs run, on the cpu where they name no device, and its figures were measured."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guides" / "run-time.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("program", PROGRAMS, ids=["calls", "data that stay"])
def test_a_program_of_the_page_runs(program: str) -> None:
    names: dict[str, Any] = {}
    here = program.replace('load("allpairs")', 'load("allpairs", device="cpu", policies="no-such-folder")')
    assert here != program
    with pytest.warns(UserWarning, match="no usable policy file"):
        exec(here, names)
    genotypes = names["genotypes"]
    np.testing.assert_array_equal(names["D"], (genotypes[:, None] != genotypes[None]).sum(-1))
