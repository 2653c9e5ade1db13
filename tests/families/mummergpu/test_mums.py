"""MUMmer's format: written in bulk, and read back for comparison."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mem_oracle import Mem
from mummergpu_helpers import mems_of, mums, written

from autotune.errors import WorkloadError


def reference_of(names: list[str], starts: list[int]) -> Any:
    return SimpleNamespace(names=names, starts=np.array(starts, np.int64))


def plainly(reference: Any, headers: list[str], *strands: list[Mem]) -> str:
    """The same text, a line at a time."""
    widest = max(len(name.encode()) for name in reference.names)
    lines = []
    for number, header in enumerate(headers):
        name = b"".join(header.encode().split()[:1]).decode()
        for strand, mems in enumerate(strands):
            lines.append(f"> {name}" + " Reverse" * strand)
            for mem in mems:
                if mem.read == number:
                    record = max(k for k, start in enumerate(reference.starts) if start <= mem.position)
                    label = reference.names[record]
                    column = f"  {label}{' ' * (widest - len(label.encode()))}  " * (len(reference.names) > 1)
                    position = mem.position - reference.starts[record] + 1
                    lines.append(f"{column}{position:8d}  {mem.start + 1:8d}  {mem.length:8d}")
    return "".join(line + "\n" for line in lines)


# ---- the format


ONE = reference_of(["chromosome"], [0])


def test_both_strands() -> None:
    forward, reverse = mems_of([Mem(0, 4, 0, 4)]), mems_of([Mem(0, 1, 2, 5), Mem(1, 0, 0, 9)])
    assert written(ONE, ["q1", "q2"], forward, reverse) == (
        "> q1\n"
        "       5         1         4\n"
        "> q1 Reverse\n"
        "       2         3         5\n"
        "> q2\n"
        "> q2 Reverse\n"
        "       1         1         9\n"
    )


def test_names_that_are_not_ascii() -> None:
    reference = reference_of(["Ä", "bc"], [0, 10])
    assert written(reference, ["\udcff x", "", "ö x"], mems_of([Mem(2, 0, 0, 1)])) == (
        "> \udcff\n> \n> ö\n  Ä         1         1         1\n"
    )


MEMS = st.lists(
    st.builds(
        Mem,
        st.integers(0, 4),
        st.one_of(st.integers(0, 99), st.integers(0, 2**31 - 1)),
        st.integers(0, 20_000),
        st.integers(1, 20_000),
    ),
    max_size=30,
).map(lambda found: sorted(found, key=lambda mem: mem.read))


@given(MEMS, st.one_of(st.none(), MEMS), st.booleans(), st.sampled_from([1, 3, 10, 1 << 16]))
def test_equals_plain_formatting(
    forward: list[Mem], reverse: list[Mem] | None, several: bool, at_once: int
) -> None:
    reference = reference_of(["x", "yzö", "z"], [0, 50, 10_000]) if several else ONE
    headers = ["a", "b c", "", "ä\u2028 x", "e"]
    strands = [forward] if reverse is None else [forward, reverse]
    with patch.object(mums, "_LINES_AT_ONCE", at_once):
        assert written(reference, headers, *map(mems_of, strands)) == plainly(reference, headers, *strands)


# ---- reading it back


def test_parse(tmp_path: Path) -> None:
    path = tmp_path / "out.mems"
    path.write_text(
        "> b\n       5         1         4\n       1         1         7\n> b Reverse\n"
        "       2         1         7\n> a\n> \n  r2   3  1  6\n>  Reverse\n  r2   3  1  6\n> Reverse\n 1 2 3\n"
    )
    assert mums.parse(path) == [
        mums.Match("", False, "r2", 3, 1, 6),
        mums.Match("", True, "r2", 3, 1, 6),
        mums.Match("Reverse", False, "", 1, 2, 3),
        mums.Match("b", False, "", 1, 1, 7),
        mums.Match("b", False, "", 5, 1, 4),
        mums.Match("b", True, "", 2, 1, 7),
    ]


def test_programs_that_write_it_differently(tmp_path: Path) -> None:
    mummer, other = tmp_path / "mummer", tmp_path / "other"
    mummer.write_text("> a\n> b\n       5         1         4\n       9         1         4\n> b Reverse\n")
    other.write_text(
        ">b with words  Len = 7\r\n\t9\t1\t4\r\n               5               1               4\r\n\r\n"
    )
    assert mums.parse(mummer) == mums.parse(other) != []
    other.write_bytes(b"> \xff\xc2\xa0c\n  \xc2\xa0r  1  2  3\n")
    assert mums.parse(other) == [mums.Match("\udcff\xa0c", False, "\xa0r", 1, 2, 3)]
    (tmp_path / "nothing").write_text("")
    assert mums.parse(tmp_path / "nothing") == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1 2 3\n", "line 1 is b'1 2 3'"),
        ("> a\n1 2\n", "line 2"),
        ("> a\n1 2 3\n1 2 x\n", "line 3"),
        ("> a\nr 1 2 3 4\n", "line 2"),
        ("> a\n1 -2 3\n", "line 2"),
    ],
)
def test_lines_of_another_kind(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "out.mems"
    path.write_text(content)
    with pytest.raises(WorkloadError, match=message):
        mums.parse(path)


def test_parse_of_no_file(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="No such file"):
        mums.parse(tmp_path / "nowhere")
