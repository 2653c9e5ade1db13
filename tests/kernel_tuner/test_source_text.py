"""What goes with the text of a kernel: headers, and macros ahead of it."""

from pathlib import Path

import pytest

from autotune.errors import FamilyError
from autotune.kernel_tuner.source_text import headers, prologue


def test_headers_beside_a_source_come_with_theirs(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text('#include "sub/b.h"\n')
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.h").write_text("// b\n")
    (tmp_path.parent / "outside.h").write_text("// outside\n")
    text = '#include "a.h"\n#include <cuda_fp16.h>\n#include "../outside.h"\n#include "not-there.h"\n'
    assert headers(text, [tmp_path]) == {"a.h": '#include "sub/b.h"\n', "sub/b.h": "// b\n"}


def test_the_grid_is_a_macro_where_the_source_reads_it() -> None:
    grid = ["ceil_div(1000, block_size_x * tile)", "7", "1"]
    ahead = prologue(
        "n = grid_size_x * grid_size_y;", {"kernel_tuner": "1", "tile": "1"}, grid, ["block_size_x", "tile"]
    )
    assert ahead.splitlines() == [
        "#define kernel_tuner 1",
        "#define grid_size_x ((1000 + (block_size_x * tile) - 1) / (block_size_x * tile))",
        "#define grid_size_y 7",
        "#line 1",
    ]
    with pytest.raises(FamilyError, match=r"the source reads grid_size_x, .* take gridDim in the source"):
        prologue("grid_size_x", {}, ["ceil_div(10, 2 if a == 1 else 3)"], ["a"])
