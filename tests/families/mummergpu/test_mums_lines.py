"""Lines in bulk: columns as a device gives them, numbers of every width, ranges of reads and rows in threads."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from mem_oracle import Mem
from mummergpu_helpers import _load, mems_of, mums, written

lines = _load("app.lines")

ONE: Any = SimpleNamespace(names=["chromosome"], starts=np.zeros(1, np.int64))
RECORD = np.dtype([(name, np.uint32) for name in ("query", "position", "start", "length")])


def columns_of(records: Any) -> Any:
    return mums.Mems(*(records[name] for name in ("query", "position", "start", "length")))


def random_records(reads: int, rows: int) -> Any:
    generator = np.random.default_rng(rows)
    records = np.empty(rows, RECORD)
    records["query"] = np.sort(generator.integers(0, reads, rows))
    for name, high in (("position", 3_000_000_000), ("start", 100), ("length", 36)):
        records[name] = generator.integers(1, high, rows)
    return records


# ---- columns


@pytest.mark.parametrize("dtype", [np.uint32, np.int64, np.uint64, ">u4", ">i8"])
def test_columns_of_any_kind(dtype: Any) -> None:
    records = random_records(50, 2_000)
    plain = [np.ascontiguousarray(records[name]).astype(dtype) for name in RECORD.names or ()]
    names = [f"q{number}" for number in range(50)]
    strided = written(ONE, names, columns_of(records))
    assert strided == written(ONE, names, mums.Mems(*plain))
    backwards = [values[::-1].copy()[::-1] for values in plain]
    assert strided == written(ONE, names, mums.Mems(*backwards))
    assert strided.count("\n") == 2_050


def test_columns_of_a_device_are_not_copied() -> None:
    records = random_records(5, 100)
    for name in RECORD.names or ():
        column, values = lines._column(records[name])
        assert values.base is not None and np.shares_memory(values, records)
        assert (column.values, column.stride, column.bytes) == (records[name].ctypes.data, 16, 4)


# ---- numbers


def test_numbers_of_every_width() -> None:
    numbers = sorted(
        {10**digits + more for digits in range(19) for more in (-1, 0, 1)} - {0}
        | {int("1234567890123456789"[:digits]) for digits in range(1, 20)}
        | {7 * 10**digits for digits in range(18)}
    )
    rows = written(ONE, ["q"], mems_of([Mem(0, number - 1, number - 1, number) for number in numbers]))
    assert rows.splitlines()[1:] == [f"{number:8d}  {number:8d}  {number:8d}" for number in numbers]


def test_many_records() -> None:
    lengths = np.random.default_rng(2).integers(1, 9, 300)
    starts = np.concatenate(([0], np.cumsum(lengths + 1)[:-1]))
    reference: Any = SimpleNamespace(names=[f"r{number}" for number in range(300)], starts=starts)
    positions = np.random.default_rng(3).permutation(int(starts[-1] + lengths[-1]))
    rows = written(reference, ["q"], mems_of([Mem(0, int(position), 0, 1) for position in positions]))
    for line, position in zip(rows.splitlines()[1:], positions.tolist(), strict=True):
        record = int(np.flatnonzero(starts <= position)[-1])
        assert line == f"  {f'r{record}':<4}  {position - starts[record] + 1:8d}         1         1"


# ---- ranges


@pytest.mark.parametrize("rows", [0, 1, 2, 500])
@pytest.mark.parametrize("reads", [1, 3, 800])
def test_ranges_make_no_difference(reads: int, rows: int) -> None:
    records = random_records(reads, rows)
    names = [f"q{number} of many" for number in range(reads)]
    expected = written(ONE, names, columns_of(records), columns_of(records[::2]))
    for at_once in (1, 3, 100):
        with patch.object(lines, "_ROWS_AT_ONCE", at_once), patch.object(mums, "_LINES_AT_ONCE", at_once):
            assert written(ONE, names, columns_of(records), columns_of(records[::2])) == expected


@pytest.mark.parametrize("reads", [[0, 1, 0, 2], [0, 0, 2, 1], [1, 0, 0, 0], [0, 3, 3, 3], [-1, -1, -1, -1]])
@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_faults_between_ranges(reads: list[int], at_once: int) -> None:
    with patch.object(lines, "_ROWS_AT_ONCE", at_once), pytest.raises(AssertionError, match="matches"):
        written(ONE, ["a", "b", "c"], mems_of([Mem(read, 0, 0, 1) for read in reads]))


def test_no_reads() -> None:
    assert written(ONE, [], mems_of([])) == ""


@pytest.mark.parametrize("at_once", [1, 40, 1 << 15])
def test_a_file_gets_what_a_stream_in_memory_gets(tmp_path: Path, at_once: int) -> None:
    """Whatever is in front of it; one read has more text than a thread keeps."""
    records = random_records(60, 200_000)
    records["query"][1_000:120_000] = records["query"][1_000]
    records["query"].sort()
    names = [f"q{number} of many" * (number % 3) for number in range(60)]
    expected = written(ONE, names, columns_of(records), columns_of(records[::3]))
    with patch.object(mums, "_LINES_AT_ONCE", at_once), (tmp_path / "file").open("wb") as file:
        file.write(b"before\n")
        mums.Lines(ONE, names, columns_of(records), columns_of(records[::3])).write(file)
        file.write(b"behind\n")
    assert (tmp_path / "file").read_text() == f"before\n{expected}behind\n"


def test_a_full_disk_is_told() -> None:
    records = random_records(60, 200_000)
    block = mums.Lines(ONE, [f"q{number}" for number in range(60)], columns_of(records))
    with Path("/dev/full").open("r+b", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        block.write(file)  # type: ignore[arg-type]
