"""Work spread over worker processes on the cpu: right however it is allocated, whatever happens to workers."""

import os
import random
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import walker
from numpy.typing import NDArray

from autotune.declaration import family, workload
from autotune.declaration.family import Family
from autotune.declaration.workload import Inputs
from autotune.errors import AutotuneError, DeviceError, FamilyError, UsageError
from autotune.spread.plan import ALLOCATIONS, Chunk
from autotune.spread.spread import Spread
from autotune.spread.team import Member

CONSTANT = {"memory": "constant", "padding": 8}
pytestmark = pytest.mark.filterwarnings("ignore:no usable policy file")


def opened(
    folder: Path, python: str = walker.PYTHON, text: str = walker.FAMILY, rows: int = 41
) -> tuple[Family, Inputs]:
    made = walker.write(folder, items=5000, rows=rows)
    (made / "family.py").write_text(python)
    (made / "family.yaml").write_text(text)
    loaded = family.load_family(made)
    return loaded, workload.prepare(loaded, workload.load_workload(loaded, "small"), folder)


def expected(loaded: Family, inputs: Inputs) -> Mapping[str, NDArray[Any]]:
    found: Mapping[str, NDArray[Any]] = loaded.module.reference(inputs.arrays, {})  # type: ignore[union-attr]
    return found


def check(spread: Spread, right: Mapping[str, NDArray[Any]]) -> None:
    outputs = spread.outputs()
    assert outputs.keys() == right.keys()
    for name, array in right.items():
        np.testing.assert_array_equal(outputs[name], array, name)


def test_every_allocation_gives_the_result(tmp_path: Path) -> None:
    loaded, inputs = opened(tmp_path / "walker")
    right = expected(loaded, inputs)
    with Spread(loaded, inputs, ["cpu"] * 3, configuration=CONSTANT) as spread:
        assert spread.is_pinned
        with pytest.raises(UsageError, match="nothing is gathered"):
            spread.outputs()
        first = spread.run("dynamic", batch=1, gather=False)
        assert np.isnan(first.predicted_s)
        with pytest.raises(UsageError, match="nothing is gathered"):
            spread.outputs()
        with pytest.raises(UsageError, match="fetch them before"):
            spread.calibrate()
        np.testing.assert_array_equal(spread.fetch()["total"], right["total"])
        spread.calibrate()
        np.testing.assert_array_equal(spread.fetch()["total"], right["total"])  # not spoilt by it
        for allocation in ALLOCATIONS:
            spread.outputs()["y"][...] = -7  # each element is written again
            report = spread.run(allocation)
            check(spread, right)
            assert report.allocation == allocation
            assert sum(share.units for share in report.shares) == 41
            assert report.predicted_s > 0
            assert all(share.device_s > 0 for share in report.shares if share.units)
        assert report.configuration == "memory=constant,padding=8,records=aos,rows_at_once=4"
        two = spread.run("automatic", gather=False)  # nobody takes another's only chunks
        assert all(share.chunks for share in two.shares)
        single = spread.run("dynamic", batch=1)
        assert [(share.units, share.units) for share in single.shares] == [
            (share.units, share.chunks) for share in single.shares
        ]
        assert spread.run("contiguous", batch=2).batch == 2
        table = single.lines()
        assert table[0].startswith("dynamic, at most 1 units a chunk")
        assert len({len(line) for line in table[1:]}) == 1
    check(spread, right)  # the arrays outlive the workers
    assert not [member for member in spread.members if member.process.poll() is None]


def test_sums_leave_behind_the_last_chunk(tmp_path: Path) -> None:
    """Nobody waits to be asked: they are asked for before the chunks are done."""
    loaded, inputs = opened(tmp_path / "walker")
    with Spread(loaded, inputs, ["cpu"] * 2, configuration=CONSTANT) as spread:
        seen: list[bool] = []
        spread.run("contiguous", batch=1, watch=lambda member, _: seen.append(member.has_left))
        assert len(seen) == 41 and all(seen)
        check(spread, expected(loaded, inputs))
        spread.run("automatic", gather=False, watch=lambda member, _: seen.append(not member.has_left))
        assert all(seen)
        spread.fetch()
        check(spread, expected(loaded, inputs))


class Killer:
    """Kills workers by SIGKILL when that many chunks are done in all."""

    def __init__(self, spread: Spread, when: Mapping[int, int]) -> None:
        self.spread, self.when, self.done = spread, when, 0

    def __call__(self, member: Member, chunk: Chunk) -> None:
        self.done += 1
        if self.done in self.when:
            os.kill(self.spread.members[self.when[self.done]].process.pid, signal.SIGKILL)


@pytest.mark.parametrize("seed", range(3))
def test_workers_killed_at_any_moment_change_nothing(tmp_path: Path, seed: int) -> None:
    loaded, inputs = opened(tmp_path / "walker")
    right = expected(loaded, inputs)
    chosen = random.Random(seed)
    gather = seed != 1
    with Spread(loaded, inputs, ["cpu"] * 3, configuration=CONSTANT) as spread:
        first, second = chosen.sample(range(3), 2)
        at = sorted(chosen.sample(range(1, 40), 2))
        allocation = ("contiguous", "dynamic", "automatic")[seed]
        killer = Killer(spread, {at[0]: first, at[1]: second} if gather else {at[0]: first})
        with pytest.warns(UserWarning, match="was ended by SIGKILL.*run by the others"):
            report = spread.run(allocation, 1, gather=gather, watch=killer)
            if not gather:  # and what a lost device has not handed over is run again
                os.kill(spread.members[second].process.pid, signal.SIGKILL)
                spread.fetch()
        check(spread, right)
        # only what is in the result counts: units run by lost workers, and those run again
        assert sum(share.units for share in report.shares) >= 41
        again = spread.run("automatic")
        check(spread, right)
        lost = [share for share in again.shares if share.lost]
        assert {share.units for share in lost} == {0} and 1 <= len(lost) <= 2
        assert sum(share.units for share in again.shares) == 41
        assert "was lost: its process was ended by SIGKILL" in again.lines()[-1]


ONCE = """

import os
from pathlib import Path

from autotune.device import LaunchError


def fails(execution, first, count):
    if first >= 20:
        try:
            os.close(os.open(Path(__file__).with_name("failed"), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            pass
        else:
            {action}
    run(execution, first, count)


def faulty(made):
    def units(arrays, names):
        from dataclasses import replace
        return replace(made(arrays, names), run=fails)
    return units


units = faulty(units)
"""


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ("raise LaunchError('an illegal memory access was encountered')", "an illegal memory access"),
        ("import time; time.sleep(3600)", "no response for 6 s; its process was killed"),
    ],
)
def test_a_device_that_fails_or_hangs_is_left_out(tmp_path: Path, action: str, reason: str) -> None:
    loaded, inputs = opened(tmp_path / "walker", walker.PYTHON + ONCE.format(action=action))
    right = expected(loaded, inputs)
    with Spread(loaded, inputs, ["cpu"] * 2, configuration=CONSTANT) as spread:
        for member in spread.members:
            member.chunk_seconds = 6.0
        with pytest.warns(UserWarning, match=reason):
            report = spread.run("contiguous")
        check(spread, right)
        lost, other = sorted(report.shares, key=lambda share: not share.lost)
        assert reason in lost.lost and not other.lost
        assert other.redone > 0


def test_when_none_is_left_it_says_why(tmp_path: Path) -> None:
    always = ONCE.format(action="pass").replace(
        "        try:", "        raise LaunchError('no')\n        try:"
    )
    loaded, inputs = opened(tmp_path / "walker", walker.PYTHON + always)
    with (
        Spread(loaded, inputs, ["cpu"] * 2, configuration=CONSTANT) as spread,
        pytest.warns(UserWarning, match="run by the others"),
        pytest.raises(DeviceError, match=r"no device of 2 is left: cpu: no; cpu: no\. Check"),
    ):
        spread.run()


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        (("def units", "def pieces"), UsageError, "has no units function"),
        (('"y": np.arange(rows + 1) * width', ""), FamilyError, "output y must be in parts or in sums"),
        (("    for start, items", "    1 / 0\n    for start, items"), FamilyError, "ZeroDivisionError"),
        (('execution.windows("items")', 'execution.windows("item")'), UsageError, "did you mean 'items'"),
    ],
)
def test_a_family_that_is_wrong_is_refused(
    tmp_path: Path, change: tuple[str, str], kind: type[AutotuneError], message: str
) -> None:
    loaded, inputs = opened(tmp_path / "walker", walker.PYTHON.replace(*change))
    with pytest.raises(kind, match=message), Spread(loaded, inputs, ["cpu"], configuration={}):
        pass


AXES = """\
  axes:
    layout: axes
    data: [y]
    values: [rows, columns]
    default: columns
    means: {rows: [rows, width], columns: [width, rows]}
"""


def test_layouts_that_scatter_a_part_are_gathered_too(tmp_path: Path) -> None:
    loaded, inputs = opened(tmp_path / "axes", text=walker.FAMILY + AXES)
    with Spread(loaded, inputs, ["cpu"] * 2, configuration={"padding": 8}) as spread:
        spread.run("dynamic")
        check(spread, expected(loaded, inputs))


ORDER = "  order: {layout: order, data: [rows], values: [given, turned], default: given}\n"
TURNED = "\n\norders = {'turned': lambda arrays: np.arange(len(arrays['scale']))[::-1]}\n"


def test_an_order_of_the_units_own_extent_is_refused(tmp_path: Path) -> None:
    loaded, inputs = opened(tmp_path / "order", walker.PYTHON + TURNED, walker.FAMILY + ORDER)
    with (
        pytest.raises(FamilyError, match="no order policy may move rows, width"),
        Spread(loaded, inputs, ["cpu"], configuration={"order": "turned"}),
    ):
        pass


LINKED = "  order: {layout: order, data: [items], values: [given, turned], default: given}\n"
OF_ITEMS = "\n\norders = {'turned': lambda arrays: np.arange(len(arrays['w']))[::-1]}\n"


def test_links_in_a_part_are_renumbered(tmp_path: Path) -> None:
    """What the kernel writes as numbers of items is by the items' order on the device."""
    text = walker.FAMILY.replace(
        "y: {role: output, type: int32,", "y: {role: output, type: int32, link: items,"
    )
    small = walker.PYTHON.replace("integers(-3, 4,", "integers(0, 2,").replace(
        "integers(-5, 6,", "integers(0, 1,"
    )
    loaded, inputs = opened(tmp_path / "links", small + OF_ITEMS, text + LINKED)
    right = dict(expected(loaded, inputs))
    items = inputs.sizes["items"]
    inside = (right["y"] >= 0) & (right["y"] < items)
    assert 0 < inside.mean() < 1
    right["y"] = np.where(inside, items - 1 - right["y"], right["y"])
    with Spread(loaded, inputs, ["cpu"] * 2, configuration={"order": "turned"}) as spread:
        spread.run("dynamic")
        check(spread, right)


SUMS = (
    walker.PYTHON.replace('        parts={"y": np.arange(rows + 1) * width},\n', "").replace(
        '"y": y.astype(np.int32), ', ""
    )
    + "\n\norders = {'turned': lambda arrays: np.arange(arrays['scale'].shape[1])[::-1]}\n"
)
OF_SUMS = """\
  order: {layout: order, data: [width], values: [given, turned], default: given}
  sum_padding: {layout: padding, data: [total], values: [1, 8], default: 1}
"""


@pytest.mark.parametrize("order", ["given", "turned"])
@pytest.mark.parametrize("padding", [1, 8])
def test_sums_are_gathered_in_every_layout(tmp_path: Path, order: str, padding: int) -> None:
    """Copied as they lie, or put back in their order first."""
    text = walker.FAMILY.replace("y: {role: output", "y: {role: scratch") + OF_SUMS
    loaded, inputs = opened(tmp_path / "sums", SUMS, text)
    with Spread(
        loaded, inputs, ["cpu"] * 2, configuration={"order": order, "sum_padding": padding}
    ) as spread:
        for _ in range(2):
            spread.run("contiguous")
            check(spread, expected(loaded, inputs))
        spread.run("contiguous", gather=False)
        spread.fetch()
        check(spread, expected(loaded, inputs))


@pytest.mark.parametrize(
    ("given", "message"),
    [({"device": "gpu"}, "unknown device"), ({"configuration": {"memory": "constnat"}}, "did you mean")],
)
def test_bad_names_are_refused(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    loaded, inputs = opened(tmp_path / "walker")
    device, configuration = given.get("device", "cpu"), given.get("configuration", {})
    with (
        pytest.raises(UsageError, match=message),
        Spread(loaded, inputs, [device], configuration=configuration),
    ):
        pass


DIE = """

import os

PARENT = {}


def die():
    if os.getpid() != PARENT:
        os._exit(3)
"""


def test_a_worker_that_dies_while_it_starts(tmp_path: Path) -> None:
    deadly = walker.PYTHON.replace("def units(arrays, names):", "def units(arrays, names):\n    die()")
    deadly += DIE.format(os.getpid())
    loaded, inputs = opened(tmp_path / "walker", deadly)
    with (
        pytest.raises(DeviceError, match="cpu: its process ended with exit code 3 while it started"),
        Spread(loaded, inputs, ["cpu"], configuration={}),
    ):
        pass
