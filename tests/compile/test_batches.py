"""Batching, bisection, order, crashes and cancelling, against a fake toolchain."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from children import children
from fake_toolchain import Fake, batch_of, run_script
from hypothesis import given
from hypothesis import strategies as st
from waiting import eventually

from autotune.compile import toolchain
from autotune.compile.batches import compile_batch, compile_many, compilers, split_into_chunks
from autotune.compile.cache import Cache
from autotune.compile.toolchain import (
    TOO_LONG,
    BuildError,
    Compiled,
    CompileFailure,
    run_compiler,
    translation_unit,
)
from autotune.errors import CompilerError

pytestmark = pytest.mark.usefixtures("fresh_children")


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    return Fake(tmp_path / "calls")


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def keys_of(results):
    return [result.key for result in results]


def test_translation_unit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert translation_unit(batch_of(2)).splitlines() == [
        "#define AUTOTUNE_VARIANTS",
        f'#include "{tmp_path.resolve()}/k.cu"',
        "struct V000 {};",
        "struct V001 {};",
    ]


def test_one_call_for_a_batch_and_none_for_a_cached_one(fake, cache):
    batch = batch_of(5)
    first = compile_batch(batch, fake, cache)
    assert fake.calls == [["V000", "V001", "V002", "V003", "V004"]]
    assert keys_of(first) == ["key000", "key001", "key002", "key003", "key004"]
    assert all(not result.cached and result.seconds > 0 for result in first)
    assert first[2].image.read_bytes() == b"V000 V001 V002 V003 V004"
    assert first[2].symbols == {"sum": "_key002"}
    assert first[2].figures == {"sum": {"registers": 8}}

    again = compile_batch(batch, fake, cache)
    assert len(fake.calls) == 1
    assert again == [replace(result, cached=True, seconds=0.0) for result in first]


def test_only_what_is_not_cached_is_compiled_and_each_key_once(fake, cache):
    batch = batch_of(4)
    compile_batch(batch.select(batch.variants[1:3]), fake, cache)
    results = compile_batch(batch.select([*batch.variants, batch.variants[0]]), fake, cache)
    assert fake.calls == [["V001", "V002"], ["V000", "V003"]]
    assert keys_of(results) == ["key000", "key001", "key002", "key003", "key000"]
    assert [result.cached for result in results] == [False, True, True, False, False]


def test_an_empty_batch_calls_nothing(fake, cache):
    assert compile_batch(batch_of(0), fake, cache) == []
    assert list(compile_many(batch_of(0), fake, cache, 4, 8)) == []
    assert fake.calls == []


def test_named_failures_are_separated_in_one_step(fake, cache):
    fake = replace(fake, bad=("V003", "V011"))
    results = compile_batch(batch_of(16), fake, cache)
    assert keys_of(results) == [f"key{i:03}" for i in range(16)]
    assert results[3] == CompileFailure("key003", "errors in V003")
    assert results[11] == CompileFailure("key011", "errors in V011")
    assert sum(isinstance(result, Compiled) for result in results) == 14
    # All, the two named, each alone, the others.
    assert sorted(len(names) for names in fake.calls) == [1, 1, 2, 14, 16]


def test_unnamed_failures_are_bisected(fake, cache):
    fake = replace(fake, bad=("V005",), quiet=True)
    results = compile_batch(batch_of(8), fake, cache)
    assert results[5] == CompileFailure("key005", "an error somewhere")
    assert sum(isinstance(result, Compiled) for result in results) == 7
    assert [len(names) for names in fake.calls] == [8, 4, 4, 2, 1, 1, 2]


def test_failures_are_not_cached(fake, cache):
    compile_batch(batch_of(1), replace(fake, bad=("V000",)), cache)
    assert isinstance(compile_batch(batch_of(1), fake, cache)[0], Compiled)


def test_a_long_message_keeps_its_first_error(fake, cache, monkeypatch):
    text = "k.cu(1): warning: unused\n" * 400 + "k.cu(2): error: no member\n" + "note\n" * 4000

    def fail(self, batch):
        raise BuildError(text)

    monkeypatch.setattr(Fake, "build", fail)
    (failure,) = compile_batch(batch_of(1), fake, cache)
    assert failure.message.startswith("k.cu(2): error: no member\nnote\n")
    assert len(failure.message) == 4000


def test_no_compiler_is_an_error_and_not_a_failure(fake, cache):
    fake = replace(fake, missing=True)
    with pytest.raises(CompilerError, match="no compiler"):
        compile_batch(batch_of(4), fake, cache)
    with pytest.raises(CompilerError, match="no compiler"):
        list(compile_many(batch_of(4), fake, cache, 2, 2))


def test_many_in_processes_keep_their_order(fake, cache):
    fake = replace(fake, slow=("V000",), enough=3, bad=("V004",))
    chunks = list(compile_many(batch_of(10), fake, cache, 2, 3))
    assert [keys_of(chunk) for chunk in chunks] == [
        *[[f"key{i:03}"] for i in range(4)],
        *[[f"key{i:03}", f"key{i + 1:03}"] for i in (4, 6, 8)],
    ]
    assert isinstance(chunks[4][0], CompileFailure)
    assert len(fake.processes) == 2
    assert os.getpid() not in fake.processes


def test_a_slow_chunk_does_not_hold_up_the_others(fake, cache):
    # One worker is done with the first chunk when the other one has begun the next three.
    fake = replace(fake, slow=("V000",), enough=4)
    chunks = compile_many(batch_of(8), fake, cache, 2, 1)
    next(chunks)
    assert [keys_of(chunk)[0] for chunk in chunks] == [f"key{i:03}" for i in range(1, 8)]


def test_a_few_chunks_a_process_are_ahead_and_no_more(fake, cache):
    chunks = compile_many(batch_of(40), fake, cache, 2, 1)
    next(chunks)
    assert eventually(lambda: len(fake.calls) >= 4 * 2)
    chunks.close()
    assert len(fake.calls) < 40  # those that end while others are handed out are not counted


def test_a_caller_that_is_slow_never_waits(fake, cache):
    """While the caller works on a chunk, as many again are begun as were taken: the next is always there."""
    chunks = compile_many(batch_of(24), fake, cache, 2, 1)
    for taken in range(1, 16):
        next(chunks)
        assert eventually(lambda: len(fake.calls) >= min(24, taken + 4)), taken  # noqa: B023
    chunks.close()


@pytest.mark.parametrize(("count", "processes", "batch_size"), [(6, 1, 2), (6, 0, 2), (4, 4, 100)])
def test_one_process_or_few_variants_stay_here(fake, cache, count, processes, batch_size):
    chunks = list(compile_many(batch_of(count), fake, cache, processes, batch_size))
    assert sum(map(len, chunks)) == count
    assert fake.processes == {os.getpid()}
    assert max(map(len, chunks)) <= batch_size


def test_cached_chunks_start_no_process(fake, cache):
    batch = batch_of(6)
    compile_batch(batch.select(batch.variants[:4]), fake, cache)
    chunks = list(compile_many(batch, fake, cache, 4, 2))
    assert [[result.cached for result in chunk] for chunk in chunks] == [[True] * 2, [True] * 2, [False] * 2]
    assert fake.processes == {os.getpid()}


def test_what_is_cached_is_there_before_anything_is_compiled(fake, cache):
    batch = batch_of(12)
    compile_batch(batch.select(batch.variants[:2]), fake, cache)
    fake = replace(fake, slow=tuple(f"V{i:03}" for i in range(2, 12)))
    chunks = compile_many(batch, fake, cache, 2, 24)
    assert [result.cached for result in next(chunks)] == [True, True]
    chunks.close()


def test_what_a_sweep_beside_this_one_compiled_is_not_compiled_again(fake, cache):
    batch = batch_of(40)
    chunks = compile_many(batch, fake, cache, 2, 1)
    next(chunks)
    compile_batch(batch.select(batch.variants[20:]), fake, cache)  # the other sweep
    rest = [result for chunk in chunks for result in chunk]
    assert keys_of(rest) == [f"key{i:03}" for i in range(1, 40)]
    assert all(result.cached for result in rest[19:])
    assert not any(result.cached for result in rest[:10])


# -- how many variants a call gets --------------------------------------------------------------------------


def cut(missing: int, processes: int, most: int, early: bool = True) -> list[int]:
    batch = batch_of(missing)
    return [
        len(c.variants)
        for c in split_into_chunks(batch, {v.key for v in batch.variants}, processes, most, early)
    ]


def test_the_first_calls_are_one_variant_and_then_grow_to_full_size():
    assert cut(96, 12, 24) == [1] * 24 + [2] * 6 + [3] * 20
    assert cut(1728, 4, 24)[:22] == [1] * 8 + [2, 2, 3, 3, 4, 5, 6, 8, 10, 12, 15, 19, 24, 24]
    assert max(cut(1728, 4, 24)) == 24
    assert cut(100, 1, 24) == [24, 24, 24, 24, 4]


def test_who_waits_for_all_gets_as_few_calls_as_keep_the_processes_busy():
    assert cut(12, 2, 24, early=False) == [6, 6]
    assert cut(100, 4, 24, early=False) == [24, 24, 24, 24, 4]
    assert cut(3, 8, 24, early=False) == [1, 1, 1]


@given(
    st.integers(0, 200), st.integers(1, 20), st.integers(1, 30), st.sets(st.integers(0, 199)), st.booleans()
)
def test_chunks_are_the_batch_in_order(count, processes, most, cached, early):
    batch = batch_of(count)
    uncached = {v.key for i, v in enumerate(batch.variants) if i not in cached}
    chunks = list(split_into_chunks(batch, uncached, processes, most, early))
    assert [v for c in chunks for v in c.variants] == list(batch.variants)
    assert all(0 < len(c.variants) <= most for c in chunks)
    if count and 0 in cached:
        assert not {v.key for v in chunks[0].variants} & uncached


# -- crashes and cancelling ---------------------------------------------------------------------------------


def test_a_variant_that_kills_the_compiler_is_found(fake, cache):
    fake = replace(fake, fatal=("V005",))
    results = [result for chunk in compile_many(batch_of(8), fake, cache, 2, 4) for result in chunk]
    assert keys_of(results) == [f"key{i:03}" for i in range(8)]
    assert results[5] == CompileFailure("key005", "the compiler process died")
    assert sum(isinstance(result, Compiled) for result in results) == 7
    assert not children()


def test_a_library_that_takes_too_long_ends_with_its_process(fake, cache):
    fake = replace(fake, late=("V005",))
    results = [result for chunk in compile_many(batch_of(8), fake, cache, 2, 4) for result in chunk]
    assert results[5] == CompileFailure("key005", TOO_LONG)
    assert sum(isinstance(result, Compiled) for result in results) == 7
    assert os.getpid() not in fake.processes


def test_a_program_that_takes_too_long_is_ended_and_its_variant_found(fake, cache, monkeypatch):
    monkeypatch.setattr(toolchain, "CALL_SECONDS", 0.05)
    built = Fake.build

    def build(self, batch):
        answer = built(self, batch)
        if "V005" in [variant.name for variant in batch.variants]:
            run_compiler(["sleep", "120"])
        return answer

    monkeypatch.setattr(Fake, "build", build)
    results = compile_batch(batch_of(8), fake, cache)
    assert results[5] == CompileFailure("key005", f"sleep: {TOO_LONG}")
    assert sum(isinstance(result, Compiled) for result in results) == 7
    assert [len(call) for call in fake.calls] == [8] + [
        1
    ] * 8  # halves would wait as long, one after the other
    with pytest.raises(CompilerError, match="did not finish within"):
        run_compiler(["sleep", "120"])  # who asks for a version


def test_a_first_chunk_that_kills_the_compiler(fake, cache):
    fake = replace(fake, fatal=("V000", "V001", "V002"))
    results = [result for chunk in compile_many(batch_of(6), fake, cache, 2, 2) for result in chunk]
    assert [isinstance(result, Compiled) for result in results] == [False] * 3 + [True] * 3
    assert os.getpid() not in fake.processes


def test_closing_leaves_no_process_and_does_not_wait(fake, cache):
    fake = replace(fake, slow=tuple(f"V{i:03}" for i in range(1, 20)))
    chunks = compile_many(batch_of(20), fake, cache, 2, 1)
    next(chunks)
    assert eventually(lambda: len(fake.calls) == 3)
    chunks.close()
    assert not children()
    assert len(fake.calls) == 3


def test_closing_ends_the_programs_that_compilers_run(fake, cache):
    fake = replace(fake, running=("V001", "V002"))
    chunks = compile_many(batch_of(5), fake, cache, 2, 1)
    next(chunks)
    assert eventually(lambda: len(fake.calls) == 5)
    chunks.close()
    assert eventually(lambda: not any(map(alive, fake.processes - {os.getpid()})))


def test_an_exception_in_the_caller_leaves_no_process(fake, cache):
    fake = replace(fake, slow=("V001", "V002", "V003", "V004", "V005"))  # still at work when it happens
    with pytest.raises(KeyboardInterrupt):
        interrupted_sweep(fake, cache)
    assert not children()


def interrupted_sweep(fake, cache):
    for _ in compile_many(batch_of(6), fake, cache, 2, 1):
        raise KeyboardInterrupt


def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    run_script(tmp_path, "for _ in chunks:\n    os.kill(os.getpid(), 9)")
    pids = Fake(tmp_path / "calls").processes
    assert pids
    assert eventually(lambda: not any(map(alive, pids)))
    # A process that had not begun a call yet is none of these, and tidies as they do.
    assert eventually(lambda: not list(tmp_path.glob("autotune-*")))


def test_a_script_without_a_guard_compiles_in_processes_that_do_not_run_it(tmp_path):
    done = run_script(tmp_path, "print(sum(len(chunk) for chunk in chunks), os.getpid())")
    assert (done.returncode, done.stderr) == (0, "")
    count, pid = done.stdout.split()
    assert count == "6"
    made = Fake(tmp_path / "calls")
    assert len(made.lines) == 6
    assert int(pid) not in made.processes


def test_where_no_process_starts_all_is_compiled_here(fake, cache, monkeypatch):
    monkeypatch.setattr("autotune.processes._BEGIN", "raise SystemExit(3)")
    with pytest.warns(UserWarning, match="worker processes do not start"):
        results = [result for chunk in compile_many(batch_of(6), fake, cache, 2, 1) for result in chunk]
    assert all(isinstance(result, Compiled) for result in results)
    assert fake.processes == {os.getpid()}


def alive(pid: int) -> bool:
    """Not gone, and no zombie that nobody waits for."""
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_processes_that_were_started_are_used_and_left_to_their_owner(fake, cache):
    workers = compilers(2)
    try:
        chunks = list(compile_many(batch_of(10), fake, cache, 2, 3, workers))
        assert [c.key for chunk in chunks for c in chunk] == [v.key for v in batch_of(10).variants]
        assert workers.submit(os.getpid).result() != os.getpid()
    finally:
        workers.stop()
