"""A source that is edited while it is compiled: nothing false is cached or recorded."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from fakes import SOURCE, FakeBackend, FakeToolchain, sweep, write_family

from autotune.compile.batches import compile_batch
from autotune.compile.cache import Cache
from autotune.compile.hostcxx import HostCxx, find_compiler
from autotune.compile.nvcc import Nvcc
from autotune.compile.toolchain import Batch, BuildError, Built, Compiled
from autotune.compile.variant import Variant, batch
from autotune.declaration import family as families
from autotune.errors import FamilyError
from autotune.record.store import Store


@dataclass(frozen=True)
class Editing(FakeToolchain):
    """What happens in its first call after ``calm`` ones, before the compiler has read a file."""

    during: Callable[[], None] = lambda: None
    calm: int = 0
    read: tuple[Path, ...] = ()
    fails: bool = False
    calls: list[int] = field(default_factory=list)

    def build(self, batch: Batch) -> Built:
        self.calls.append(len(batch.variants))
        if len(self.calls) == self.calm + 1:
            self.during()
        if self.fails:
            raise BuildError("error: in what was being written")
        return replace(super().build(batch), read=self.read)


def two(folder: Path) -> Batch:
    family = families.load_family(folder)
    return batch(family, tuple(Variant(family, c) for c in family.space.configurations()[:2]))


@pytest.mark.parametrize("fails", [False, True])
def test_an_edited_source_ends_it_and_nothing_is_cached(folder: Path, tmp_path: Path, fails: bool) -> None:
    cache, asked, source = Cache(tmp_path / "cache"), two(folder), folder / "doubler.cu"
    editing = Editing(during=lambda: _written(source, SOURCE + "\n"), fails=fails)
    with pytest.raises(FamilyError, match=r"doubler\.cu was edited while .* Run the same command again"):
        compile_batch(asked, editing, cache)
    assert not list(cache.root.rglob("*.json"))
    assert all(isinstance(made, Compiled) for made in compile_batch(two(folder), FakeToolchain(), cache))


def test_a_source_that_was_edited_before_is_not_compiled_at_all(folder: Path, tmp_path: Path) -> None:
    asked, toolchain = two(folder), Editing()
    (folder / "doubler.cu").unlink()
    with pytest.raises(FamilyError, match="was edited"):
        compile_batch(asked, toolchain, Cache(tmp_path / "cache"))
    assert toolchain.calls == []


def test_a_source_that_was_edited_and_put_back_is_compiled_again(folder: Path, tmp_path: Path) -> None:
    source = folder / "doubler.cu"

    def there_and_back() -> None:
        _written(source, SOURCE + "// edited")
        _written(source, SOURCE)

    toolchain = Editing(during=there_and_back)
    made = compile_batch(two(folder), toolchain, Cache(tmp_path / "cache"))
    assert all(isinstance(one, Compiled) for one in made)
    assert toolchain.calls == [2, 2]


def _written(path: Path, text: str) -> None:
    """As editors do: another file in its place."""
    beside = path.with_suffix(".new")
    beside.write_text(text)
    beside.replace(path)


def test_a_sweep_ends_with_what_was_measured_before(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autotune.engine.jobs.BATCH_SIZE", 4)
    source = folder / "doubler.cu"
    tools = Editing(during=lambda: _written(source, SOURCE.replace("2 *", "3 *")), calm=1)
    with pytest.raises(FamilyError, match="was edited"):
        sweep(folder, tmp_path, FakeBackend(tools=tools)).run()
    recorded = [trial for study in Store(tmp_path / "out").studies() for trial in study.trials]
    assert len(tools.calls) == 2
    assert len(recorded) <= tools.calls[0]
    _written(source, SOURCE)
    assert all(t.state == "measured" for t in sweep(folder, tmp_path, FakeBackend()).run().trials)


def test_python_that_is_edited_meanwhile_is_not_measured_under_the_old_identity(
    folder: Path, tmp_path: Path
) -> None:
    from autotune.declaration.workload import load_workload as load
    from autotune.engine.messages import Setting, load_inputs
    from autotune.measure.sampling import CPU

    family = families.load_family(folder)
    setting = Setting(
        family=folder, space_digest=family.space_digest, host_digest="0" * 64, workload=load(family), arrays=tmp_path,
        sizes={}, options={}, scalars={}, protocol=CPU,
    )  # fmt: skip
    with pytest.raises(FamilyError, match=r"the Python of .* was edited during the sweep"):
        load_inputs(setting)


def test_a_file_that_only_the_compiler_found_is_refused(folder: Path, tmp_path: Path) -> None:
    read = (folder / "doubler.cu", tmp_path / "hidden.hpp")
    with pytest.raises(
        FamilyError, match=r"the compiler read .*hidden\.hpp, which nothing includes by a name"
    ):
        compile_batch(two(folder), Editing(read=read), Cache(tmp_path / "cache"))
    with pytest.raises(FamilyError, match=r"default\.cuh, which only editors should: .*AUTOTUNE_VARIANTS"):
        compile_batch(two(folder), Editing(read=(folder / "default.cuh",)), Cache(tmp_path / "cache"))


def _compilers() -> list[object]:
    return [HostCxx(find_compiler()), pytest.param(Nvcc("sm_90"), marks=pytest.mark.nvcc)]


@pytest.mark.parametrize("toolchain", _compilers(), ids=lambda t: type(t).__name__)
def test_a_real_compiler_says_what_it_read(tmp_path: Path, toolchain: HostCxx) -> None:
    (tmp_path / "by name.hpp").write_text("#pragma once\n")
    text = f'#include "../by name.hpp"\n#include <math.h>\n{SOURCE}'
    folder = write_family(tmp_path / "doubler", source=text)
    asked = two(folder)
    known = {path for path, _ in asked.sources}
    assert tmp_path / "by name.hpp" in known
    assert {folder / "doubler.cu", tmp_path / "by name.hpp"} <= set(toolchain.build(asked).read) <= known

    hidden = f'#/* a remark that hides it */include "hidden.hpp"\n{SOURCE}'
    folder = write_family(tmp_path / "hiding", source=hidden)
    (folder / "hidden.hpp").write_text("#define FACTOR 2\n")
    with pytest.raises(FamilyError, match=r"the compiler read .*hidden\.hpp"):
        compile_batch(two(folder), toolchain, Cache(tmp_path / "cache"))
