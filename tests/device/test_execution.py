"""A variant bound to data: what its launches say, and that nothing is parsed a second time."""

import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fakes import FakeBackend, FakeModule
from lending import Gpu

from autotune.compile import Compiled
from autotune.compile.cache import Cache, default_root
from autotune.compile.variant import Variant
from autotune.declaration import expression
from autotune.declaration import family as families
from autotune.declaration import workload as workloads
from autotune.declaration.expression import Expression
from autotune.declaration.workload import Inputs, bind
from autotune.device import orders
from autotune.device.resident import Resident, compile_module
from autotune.files import data_root

ALLPAIRS = families.load_family("allpairs")
CONFIGURATION = ALLPAIRS.space.control


def inputs() -> Inputs:
    return bind(ALLPAIRS, {"genotypes": np.arange(12).reshape(3, 4) % 3}, {}, {})


def variant(given: Inputs) -> Variant:
    return Variant.make(ALLPAIRS, CONFIGURATION, given.options)


def test_launches_and_fills_carry_the_names_of_their_arrays() -> None:
    module = FakeModule(Compiled("", Path(), {}))
    given, backend = inputs(), FakeBackend()
    execution = Resident(backend, given).execution(variant(given), module)
    (launch,) = execution.launches
    assert launch.addresses == (("genotypes", 0, 0), ("distance", 1, 0))
    assert launch.arguments == tuple(execution.placed[name].argument for name, _, _ in launch.addresses)
    assert (launch.kernel, launch.geometry.grid) == ("allpairs", (9, 1, 1))
    assert list(execution.fills) == ["distance"]  # atomics add to it


def test_what_a_plan_makes_once_is_kept_as_long_as_its_execution() -> None:
    module = FakeModule(Compiled("", Path(), {}))
    given = inputs()
    one, other = (Resident(FakeBackend(), given).execution(variant(given), module) for _ in range(2))
    made = one.make_once("steps", lambda: [1])
    assert one.make_once("steps", lambda: [2]) is made
    assert one.make_once("rest", lambda: [3]) == [3] and other.make_once("steps", lambda: [4]) == [4]


def test_a_bound_launch_is_worked_out_once_and_goes_where_its_arrays_are() -> None:
    module = FakeModule(Compiled("", Path(), {}))
    given, backend = inputs(), FakeBackend()
    execution = Resident(backend, given).execution(variant(given), module)
    geometry, arguments = execution.bind("allpairs")
    assert (geometry, arguments) == (execution.launches[0].geometry, list(execution.launches[0].arguments))
    execution.placed["distance"] = execution.placed["genotypes"]
    again, moved = execution.bind("allpairs")
    assert again is geometry and moved == [arguments[0]] * 2


def test_a_second_execution_parses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    module = FakeModule(Compiled("", Path(), {}))
    given = inputs()
    Resident(FakeBackend(), given).execution(variant(given), module)

    def parse(*_: Any, **__: Any) -> Any:
        raise AssertionError("an expression was parsed again")

    monkeypatch.setattr(expression.ast, "parse", parse)
    again = Resident(FakeBackend(), given).execution(variant(given), module)
    assert list(again.fills) == ["distance"]


def test_an_expression_still_travels_when_it_was_evaluated() -> None:
    made = Expression("ceil_div(n, 4) * (2 if n > 8 else 1)")
    assert [made.evaluate({"n": n}) for n in (8, 9)] == [2, 6]
    copied: Expression = pickle.loads(pickle.dumps(made))
    assert copied.evaluate({"n": 9}) == 6


def test_a_bound_call_gives_what_run_gives(tmp_path: Path) -> None:
    given, gpu = inputs(), Gpu()
    chosen = variant(given)
    resident = Resident(gpu, given)
    execution = resident.execution(chosen, compile_module(gpu, Cache(default_root()), chosen))
    gpu.fill(execution.placed["distance"], 255)
    execution.run()
    expected = execution.restore("distance", (3, 3))
    gpu.fill(execution.placed["distance"], 255)
    gpu.bind(execution.fills, execution.launches)()
    np.testing.assert_array_equal(execution.restore("distance", (3, 3)), expected)
    x = given.arrays["genotypes"]
    np.testing.assert_array_equal(expected, (x[:, None] != x[None]).sum(-1))
    resident.close()
    gpu.close()


def test_a_layout_costs_what_its_order_costs_though_another_has_it_already(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = FakeModule(Compiled("", Path(), {}))
    family = families.load_family("mummergpu")
    given = workloads.prepare(family, workloads.load_workload(family, "phix"), data_root(None))

    def slow(*arguments: Any, move: Any = orders.reorder) -> Any:
        seconds[0] += 0.02
        return move(*arguments)

    seconds = [0.0]
    for module_ in ("orders", "resident"):
        clock = SimpleNamespace(perf_counter=lambda: seconds[0])
        monkeypatch.setattr(f"autotune.device.{module_}.time", clock)

    monkeypatch.setattr(orders, "reorder", slow)
    arrays = Resident(FakeBackend(), given)
    for dims in ("1d", "2d"):
        chosen = Variant(family, family.space.configuration(f"tree_order=reordered,tree_dims={dims}"))
        assert arrays.execution(chosen, module).transform_ms > 3 * 20 - 1e-6  # nodes, children, tails
