"""autotune.callables.triton: Triton's decorator with another engine behind it, on Triton's interpreter."""

import importlib
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from autotune.record import read_record

pytestmark = [pytest.mark.triton, pytest.mark.filterwarnings("default")]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compile_cache: str) -> None:
    monkeypatch.setenv("AUTOTUNE_CACHE", compile_cache)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def kernels() -> ModuleType:
    sys.modules.pop("triton_kernels", None)
    return importlib.import_module("triton_kernels")


def grid(n: int) -> Any:
    return lambda meta: (-(-n // meta["BLOCK"]),)


def trials(family: str) -> dict[str, str]:
    return {
        trial.configuration.id: trial.state
        for study in read_record(f"autotune-results/{family}")
        for trial in study.trials
    }


def test_a_kernel_is_tuned_once_for_a_key_and_gives_what_it_gives(kernels: ModuleType) -> None:
    import torch

    n = 300
    x, y = torch.arange(n, dtype=torch.float32), torch.ones(n)
    out = torch.empty(n)
    kernels.add[grid(n)](x, y, out, n)
    assert torch.equal(out, x + y)
    assert sorted(trials("add_float32").values()) == ["measured"] * 2
    best = kernels.add.best_config
    assert best in kernels.CONFIGS
    kernels.add[grid(n)](x, y, out.zero_(), n)
    assert torch.equal(out, x + y) and kernels.add.best_config is best
    assert (Path("policies") / "add_float32" / "call.json").is_file()


def test_a_wrong_configuration_and_one_that_does_not_compile_are_one_failed_trial_each(
    kernels: ModuleType,
) -> None:
    import torch

    x = torch.arange(100, dtype=torch.float32)
    kernels.doubled[grid(100)](x, 100)
    assert torch.equal(x, 2 * torch.arange(100))
    states = trials("doubled_float32")
    assert [states[name] for name in sorted(states)] == ["measured", "wrong_result", "launch_failed"]


def test_the_first_configuration_that_works_gives_the_reference(kernels: ModuleType) -> None:
    """Triton tries a first configuration that does not run, and goes on."""
    import torch
    import triton

    from autotune.callables.triton import autotune

    configs = [triton.Config({"BLOCK": 64, "HOW": how}) for how in (2, 0)]
    kernel = autotune(configs, ["n"], restore_value=["x"], progress=False)(kernels.doubled.fn)
    x = torch.arange(100, dtype=torch.float32)
    with warnings.catch_warnings(action="error"):
        kernel[grid(100)](x, 100)
    assert torch.equal(x, 2 * torch.arange(100)) and kernel.best_config is configs[1]
    assert sorted(trials("doubled_float32").values()) == ["launch_failed", "measured"]

    never = [triton.Config({"BLOCK": 64, "HOW": 2}, num_warps=warps) for warps in (2, 4)]
    kernel = autotune(never, ["n"], progress=False, policies="others")(kernels.doubled.fn)
    with (
        pytest.warns(UserWarning, match="doubled_float32 fails with each configuration"),
        pytest.raises(Exception, match="no such block"),
    ):
        kernel[grid(100)](x, 100)


def test_a_module_that_asks_for_the_device_is_imported_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiling imports it. The process that forks those that compile does not: CUDA that a parent opened cannot be
    opened by its children."""
    from autotune.callables import triton as ours
    from autotune.callables.functions import Importable

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    monkeypatch.delenv("TRITON_INTERPRET")
    monkeypatch.delitem(sys.modules, "triton_asking", raising=False)
    launch = ours.TritonLaunch(
        Importable("halved", module="triton_asking"), ("x", "n"), ("BLOCK",), (((64,), (2,)),), {"x": ((100,), (1,))},
        {"x": "float32"}, "", "halved",
    )  # fmt: skip
    launch.import_libraries()
    assert "triton_asking" not in sys.modules
    launch.build("sm_90", x=None, n=100, BLOCK=64)
    module = sys.modules.pop("triton_asking")
    assert str(module.DEVICE) == "cuda:0" and module.CAPABILITY == (9, 0)
    assert [*(tmp_path / "triton").rglob("halved.cubin")]


def test_processes_start_with_the_decorator_where_the_first_call_will_tune(
    kernels: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    from autotune.callables import functions
    from autotune.callables import triton as ours

    asked: list[Any] = []
    monkeypatch.setattr(ours, "keep_spares", lambda *given: asked.append(given))

    def count(configs: Any = kernels.CONFIGS, **given: Any) -> int:
        asked.clear()
        ours.autotune(configs, ["n"], **given)(kernels.add.fn)
        return len(asked)

    assert count() == 1 and asked == [(3, "autotune.callables.triton:prepare")]
    assert [count(kernels.CONFIGS[:1]), count(frozen=True), count(agreement=object())] == [0, 0, 0]
    with monkeypatch.context() as frozen:
        frozen.setenv("AUTOTUNE_FROZEN", "1")
        assert [count(), count(frozen=False)] == [0, 1]
    for name in ("_measuring", "_loading"):
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr(functions, name, ["add"])
            assert not count()
    place = Path("policies", "add_float32", "call.json")
    place.parent.mkdir(parents=True)
    place.write_text("{}")
    assert [count(), count(policies="others")] == [0, 1]


def test_heuristics_may_stand_around_it_and_strides_stay_as_they_are(kernels: ModuleType) -> None:
    import torch

    wide = torch.arange(40, dtype=torch.float32).reshape(4, 10)
    x, sums = wide[:, 2:8], torch.full((4,), 7.0)
    rows = lambda meta: (4, -(-6 // meta["BLOCK"]))  # noqa: E731
    sums.zero_()
    kernels.row_sums[rows](x, sums, x.stride(0), 6)
    assert torch.equal(sums, x.sum(dim=1))
    assert sorted(trials("row_sums_float32").values()) == ["measured"] * 2


def test_what_prunes_is_asked_as_triton_asks_it(kernels: ModuleType) -> None:
    import torch
    import triton

    from autotune.callables.triton import autotune

    asked = []

    def prune(configs: Any, named: dict[str, Any], **kwargs: Any) -> Any:
        asked.append(sorted(named))
        return configs[1:]

    kernel = autotune(kernels.CONFIGS, ["n"], prune_configs_by={"early_config_prune": prune})(kernels.add.fn)
    x = torch.ones(10)
    kernel[grid(10)](x, x, torch.empty(10), 10)
    assert asked == [["n", "out", "x", "y"]]
    assert kernel.best_config is kernels.CONFIGS[1]

    def cost(BLOCK: int, **_: Any) -> float:
        return float(BLOCK)

    ranked = autotune(kernels.CONFIGS, ["n"], prune_configs_by={"perf_model": cost, "top_k": 1})(
        kernels.add.fn
    )
    ranked[grid(10)](x, x, torch.empty(10), 10)
    assert ranked.best_config is kernels.CONFIGS[0]
    assert isinstance(triton.Config({}), triton.Config)


def test_what_has_no_counterpart_is_left_out_with_a_word() -> None:
    from autotune.callables.triton import autotune

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        autotune([], ["n"], warmup=25, rep=100, use_cuda_graph=True)
    assert [str(one.message).partition(" ")[0] for one in said] == ["warmup", "rep", "use_cuda_graph"]


def test_a_kernel_that_cannot_be_tuned_runs_its_first_configuration_and_says_why(kernels: ModuleType) -> None:
    import torch

    from autotune.callables.triton import autotune

    local = autotune(kernels.CONFIGS, ["n"], frozen=True)(kernels.add.fn)
    x, out = torch.ones(10), torch.empty(10)
    with pytest.warns(
        UserWarning, match=r"add is not tuned: add_float32 has not been tuned.*it runs the first"
    ):
        local[grid(10)](x, x, out, 10)
    assert torch.equal(out, 2 * x) and local.best_config is kernels.CONFIGS[0]
