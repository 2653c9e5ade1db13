"""An option of a sweep is one field of SweepRequest, from which all that ask for a sweep have it."""

import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest

import autotune
from autotune.cli.options import sweep_options, words
from autotune.declaration import load_family
from autotune.engine import OPTIONS, SweepRequest, request_of
from autotune.errors import UsageError

OTHER: dict[str, Any] = {  # a value that is not the default, of each option
    "workloads": ("wide", "other"), "device": "cpu", "preset": "ladder", "narrowed": {"block_size": ["64", "128"]},
    "search": "random",
    "prior": ("a100", "there.yaml"),
    "trials": 7, "budget": "2.5s", "seed": 3, "objective": "with-transfer", "clocks": "1500",
    "samples": 4, "race": 1.02, "trial_seconds": 9.0, "sanitize": True, "bounds": True, "again": True, "retime": True,
    "compiler": "nvcc", "processes": 2, "out": Path("there"), "store": "here", "data": Path("files"),
}  # fmt: skip


@pytest.fixture
def request_(folder: Path) -> SweepRequest:
    return SweepRequest(family=load_family(folder), **OTHER)


def test_the_command_line_that_is_written_is_read_as_the_same_request(request_: SweepRequest) -> None:
    """What ``--on HOST`` runs there."""
    read: list[SweepRequest] = []

    @click.command()
    @sweep_options()
    def command(**asked: Any) -> None:
        read.append(SweepRequest(family=request_.family, **asked))

    command.main(list(words(request_)), standalone_mode=False)
    command.main([], standalone_mode=False)
    assert read == [request_, SweepRequest(family=request_.family)]
    assert set(OTHER) == set(OPTIONS)
    assert not list(words(read[1]))


def test_a_program_may_give_every_option_by_its_word() -> None:
    given = inspect.signature(autotune.sweep).parameters
    for option in OPTIONS.values():
        if option.name == "workloads":  # one at a time, which may be a Workload
            assert given["workload"].default is None
        else:
            assert given[option.argument].default == (None if option.is_many else option.default), option.name
    own = {"family", "workload", "inputs", "reference", "expected", "cold", "progress", "named"}
    assert set(given) - own == {option.argument for option in OPTIONS.values()} - {"workload"}


def test_a_worker_is_sent_what_is_shared(request_: SweepRequest) -> None:
    (case, *_) = replace(request_, workloads=()).cases()
    told = request_.serialise(case.workload)
    joined = request_of(told, "here", device="cpu", own=(str(request_.family.folder),))
    for option in OPTIONS.values():
        if option.shared:
            assert getattr(joined, option.name) == OTHER[option.name], option.name
    assert joined.joins and joined.data == Path("files").resolve()


@pytest.mark.parametrize("name", ["samples", "race", "trial_seconds", "processes"])
def test_a_number_below_the_least_is_refused(name: str, folder: Path) -> None:
    request = SweepRequest(family=load_family(folder), **{name: -1})
    with pytest.raises(UsageError, match=f"--{OPTIONS[name].word} -1: it is at least"):
        request.check()
