"""A kernel family: the folder that declares data, kernels and policies, read into frozen values.

``read_family`` is the only way in. What a family says is checked here once, so that nothing later meets a
misspelt name.
"""

import hashlib
import importlib.util
import json
import re
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from autotune.declaration import yamlfile
from autotune.declaration.content import baseline_content, name_extents, resolve_types
from autotune.declaration.expression import Expression, Value
from autotune.declaration.host_code import host_code, is_edited, texts
from autotune.declaration.orders import ORDERS, DeclaredOrder
from autotune.declaration.parse import BASELINE, ITSELF, FamilyKernel, FamilyOption, Scalar, parse
from autotune.declaration.shared import SharedData
from autotune.declaration.source_files import CONVERT, LIBRARY, combine, follow_includes, hash_files, sources
from autotune.declaration.space import AS_GIVEN, Policy, PolicyValue, Space
from autotune.declaration.tolerance import Tolerance, ToleranceRule, tolerances_of
from autotune.errors import AutotuneError, FamilyError, UnknownName, WorkloadError
from autotune.files import include_dir
from autotune.layout import DIMENSIONS, Data, Dimension, dimension_digest, orders_digest

_TEXTS = "__autotune_texts__"  # of a module: what it was loaded from
# family.py is imported by one thread at a time. Reentrant: it may load a family.
_LOADING = threading.RLock()


@dataclass(frozen=True, kw_only=True)
class Family:
    """``choices`` says how the source knows them: ``struct`` or ``macros``. ``accesses`` has the arrays that kernels do
    not find by accessors, ``symbols`` what the source calls those that are its own. ``beginnings`` has the input that
    an array is a copy of before the launches, ``zero`` the condition under which it has to be cleared first; ``used``
    that under which kernels read an input: where it is not met, there is room for the array and nothing is copied.
    ``compiled`` has the C++ of the numbers that only the compiled source knows.
    ``baseline`` is what it is held against; such a one has no Python, and ``held`` are its family's choices.
    ``typed_names`` have types that depend on the options ``typed_by``: those of the defaults, or of the options for
    which ``apply_types`` gave this family."""

    name: str
    folder: Path
    source: Path
    title: str = ""
    doc: str = ""
    default_workload: str = ""
    choices: str = "struct"
    compile_options: tuple[str, ...] = ()
    extents: Mapping[str, Expression | None]
    scalars: Mapping[str, Scalar]
    options: Mapping[str, FamilyOption]
    features: Mapping[str, Expression] = field(default_factory=dict)
    accuracy: tuple[str, ...] = ()
    data: Mapping[str, Data]
    shared: Mapping[str, SharedData] = field(default_factory=dict)
    accesses: Mapping[str, str] = field(default_factory=dict)
    symbols: Mapping[str, str] = field(default_factory=dict)
    extent_types: Mapping[str, str] = field(default_factory=dict)
    beginnings: Mapping[str, str] = field(default_factory=dict)
    windowed: Mapping[str, str] = field(default_factory=dict)
    zero: Mapping[str, Expression] = field(default_factory=dict)
    used: Mapping[str, Expression] = field(default_factory=dict)
    kernels: Mapping[str, FamilyKernel]
    compiled: Mapping[str, str] = field(default_factory=dict)
    space: Space
    means: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    declared_orders: Mapping[str, Mapping[str, DeclaredOrder]] = field(default_factory=dict)
    reference: str = ""
    tolerance_rules: Mapping[str, ToleranceRule] = field(default_factory=dict)
    bytes: Expression | None = None
    needs: Mapping[str, Expression] = field(default_factory=dict)
    baseline: "Family | None" = None
    has_python: bool = True
    held: Mapping[str, Any] = field(default_factory=dict)
    operations: Expression | None = None
    operation_unit: str = ""
    space_digest: str = ""
    typed_names: tuple[str, ...] = ()
    typed_by: tuple[str, ...] = ()
    by_types: Mapping[tuple[str | int, ...], "Family"] = field(
        default_factory=dict, compare=False, repr=False
    )

    def apply_types(self, options: Mapping[str, Any]) -> "Family":
        """Give every array and number the type that it has with ``options``; those not named have their defaults.
        Raises UnknownName."""
        if not self.typed_by:
            return self
        chosen = self.choose_options(options)
        return self.by_types[tuple(chosen[name] for name in self.typed_by)]

    @cached_property
    def inputs(self) -> tuple[Data, ...]:
        return tuple(d for d in self.data.values() if d.role == "input")

    @cached_property
    def outputs(self) -> tuple[Data, ...]:
        return tuple(d for d in self.data.values() if d.role == "output")

    @property
    def callers_scalars(self) -> Mapping[str, Scalar]:
        """The scalars that a caller may give: all but those that the plan gives to each launch."""
        return {name: scalar for name, scalar in self.scalars.items() if not scalar.of_launch}

    @property
    def is_own_reference(self) -> bool:
        """Whether nothing says what is right, and each configuration is held against its own first run."""
        return self.reference == ITSELF

    @property
    def reference_family(self) -> "Family":
        """What gives the reference where a kernel does: this family, or its baseline."""
        return self.baseline if self.baseline and self.reference == BASELINE else self

    @property
    def is_plain(self) -> bool:
        """Whether the source is compiled unmodified."""
        return self.choices == "macros"

    @property
    def accessors(self) -> tuple[Data, ...]:
        """The arrays that kernels find by accessors, whose layouts can be chosen."""
        return tuple(data for name, data in self.data.items() if name not in self.accesses)

    def number_type(self, argument: str) -> str:
        """The type of a kernel's argument that is a number, a scalar or an extent; empty for an array."""
        scalar = self.scalars.get(argument)
        return scalar.type if scalar else self.extent_types.get(argument, "")

    @cached_property
    def orders(self) -> Mapping[tuple[str, PolicyValue], DeclaredOrder | Callable[..., Any]]:
        """What makes the orders of order policies, by policy and value: what ``means`` says of the value, else the
        function of the inputs in ``orders`` of family.py. Raises FamilyError for a value that stands for no order, or
        for two."""
        policies = self.space.order_policies
        functions: Mapping[PolicyValue, Any] = getattr(self.module, "orders", {}) if policies else {}
        orders: dict[tuple[str, PolicyValue], DeclaredOrder | Callable[..., Any]] = {}
        for policy, value in ((each, value) for each in policies for value in each.values):
            place = f"family {self.name}: policy {policy.name}"
            declared = self.declared_orders.get(policy.name, {}).get(str(value))
            if declared and value in functions:
                raise FamilyError(
                    f"{place}: {value} is in means and in orders of family.py; delete one of them"
                )
            if not declared and not policy.is_order(value, functions):
                raise FamilyError(
                    f"{place}: {UnknownName('order', value, functions)}: write it in orders of family.py, or call the "
                    f"value {AS_GIVEN} if it stands for no order, or say in means which it is of {', '.join(ORDERS)}"
                )
            if made := declared or functions.get(value):
                orders[policy.name, value] = made
        return orders

    def list_cleared(self, names: Mapping[str, Any]) -> list[str]:
        """The arrays that a launch needs cleared first, with ``names`` bound."""
        return [name for name, condition in self.zero.items() if condition.evaluate(names)]

    def find_reordering(self, configuration: Mapping[str, Any]) -> list[Policy]:
        """The order policies whose value in ``configuration`` permutes something."""
        return [p for p in self.space.order_policies if (p.name, configuration[p.name]) in self.orders]

    @property
    def constants(self) -> frozenset[str]:
        """The extents that are the same for every input: their value reads nothing."""
        return frozenset(
            name for name, value in self.extents.items() if value is not None and not value.names
        )

    @property
    def has_links(self) -> bool:
        """Whether an input holds indices of another array."""
        return any(field.link for data in self.inputs for field in data.fields)

    def compute_known_sizes(self, chosen: Mapping[str, Value]) -> dict[str, int]:
        """The extents that what is ``chosen`` (options) gives, whatever the input: those of ``constants``, and those
        that are computed from options and from one another."""
        known: dict[str, int] = {}
        for name, value in self.extents.items():
            if value is not None and value.names <= {*chosen, *known}:
                known[name] = value.integer({**chosen, **known})
        return known

    def tolerances(self, names: Mapping[str, Any]) -> dict[str, Tolerance]:
        """How far each output may be off, each field of a record by itself (``hits.score``); ``names`` binds options,
        policies, extents and scalars. Raises FamilyError."""
        bound = {**self.held, **names}
        typed = self.apply_types({name: names[name] for name in self.options if name in names})
        return tolerances_of(typed.tolerance_rules, typed.outputs, bound, f"family {self.name}")

    @cached_property
    def module(self) -> ModuleType | None:
        """``family.py`` of the folder, loaded as a package so that it can import its neighbours; None when the
        family has no Python. Once a process, and again when it was edited, as a notebook lets one do."""
        file = self.folder / "family.py"
        if not (self.has_python and file.is_file()):
            return None
        with _LOADING:  # another thread finds the module in sys.modules before all of it has run
            return self._load(file)

    def _load(self, file: Path) -> ModuleType:
        name = f"autotune_family_{self.name}_{hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:8]}"
        if name in sys.modules:
            if not is_edited(getattr(sys.modules[name], _TEXTS, {})):
                return sys.modules[name]
            for loaded in [own for own in sys.modules if own == name or own.startswith(f"{name}.")]:
                del sys.modules[loaded]
        spec = importlib.util.spec_from_file_location(
            name, file, submodule_search_locations=[str(self.folder)]
        )
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except Exception as problem:
            del sys.modules[name]
            raise FamilyError(f"{file} cannot be imported: {type(problem).__name__}: {problem}") from problem
        setattr(module, _TEXTS, texts(self.folder, name))
        return module

    @property
    def reference_configuration(self) -> str:
        """The configuration whose result is the reference, or ``baseline``; empty where family.py computes it. Loads
        family.py."""
        is_computed = getattr(self.module, "reference", None) is not None
        return "" if is_computed or self.is_own_reference else self.reference

    @cached_property
    def sources(self) -> Mapping[str, tuple[Path, str]]:
        """The C++ files that decide the binaries (see ``sources``) with the sha256 of each, by name. Raises
        FamilyError."""
        ahead = [include_dir() / LIBRARY] if self.is_plain and self.accessors else []
        ahead += [include_dir() / header for header in self.layout_headers]
        if any(data.converted for data in self.data.values()):
            ahead.append(include_dir() / CONVERT)
        if self.reference == BASELINE and self.baseline:
            ahead.append(self.baseline.source)  # decides what is right
        return hash_files(sources(self.folder, include_dir(), ahead))

    @property
    def layout_headers(self) -> tuple[str, ...]:
        """Those of the layout library that some configuration's accessors need beyond ``array.cuh``."""
        arrays = {**self.data, **{name: array.data for name, array in self.shared.items()}}
        beyond = _find_uncommon_dimensions(self.space, self.means, arrays)
        own = ("autotune/shared_array.cuh",) if self.shared else ()
        return (*own, *(dimension.header for dimension in beyond if dimension.header))

    @cached_property
    def has_storage(self) -> bool:
        """Whether numbers of an array are, or can be, stored in fewer bits than a kernel reads."""
        return DIMENSIONS["storage"].header in self.layout_headers

    def names_record(self, record: str) -> bool:
        """Return whether the source or one of its headers has that name: unmodified sources may use another one."""
        return bool(record) and re.search(rf"\b{record}\b", self._text) is not None

    @cached_property
    def _text(self) -> str:
        """Of the source and of the folder's headers that it includes."""
        own = follow_includes([self.source], self.folder).values()
        return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in own)

    @cached_property
    def source_digest(self) -> str:
        """sha256 over names and contents of ``sources``."""
        return combine(self.sources)

    @cached_property
    def host_code(self) -> Mapping[str, tuple[Path, str]]:
        """The files behind ``family.py`` (see ``host_code``) with the sha256 of each, by name. Loads it. Raises
        FamilyError."""
        return hash_files(host_code(self.folder, self.module))

    @cached_property
    def host_digest(self) -> str:
        """sha256 over names and contents of ``host_code``, and over the orders that ``means`` declares and what the
        layout library makes of them."""
        declared = {
            f"{policy}={value}": [order.order, order.takes]
            for policy, orders in self.declared_orders.items()
            for value, order in orders.items()
        }
        if not declared:
            return combine(self.host_code)
        told = json.dumps(declared, sort_keys=True)
        return hashlib.sha256(f"{combine(self.host_code)} {told} {orders_digest()}".encode()).hexdigest()

    def choose_options(self, given: Mapping[str, Any]) -> dict[str, str | int]:
        """Every option's value: ``given`` where named, else the default. Raises UnknownName."""
        for name in given:
            if name not in self.options:
                raise UnknownName("option", name, self.options, f"family {self.name}")
        chosen: dict[str, str | int] = {}
        for name, option in self.options.items():
            value = given.get(name, option.default)
            match = [v for v in option.values if str(v) == str(value)]
            if not match:
                raise UnknownName(f"value of option {name}", value, option.values)
            chosen[name] = match[0]
        return chosen

    def sizes(
        self, shapes: Mapping[str, tuple[int, ...]], given: Mapping[str, Value] | None = None
    ) -> dict[str, int]:
        """Every extent's value from the shapes of the inputs and what is ``given``: options, and scalars that are not
        computed. Raises WorkloadError when two inputs disagree."""
        known = {**{name: option.default for name, option in self.options.items()}, **(given or {})}
        bound: dict[str, int] = {}
        giver: dict[str, str] = {}  # the first input that has the extent
        for data in self.inputs:
            for name, size in zip(data.shape, shapes[data.name], strict=True):
                giver.setdefault(name, data.name)
                if bound.setdefault(name, size) != size:
                    raise WorkloadError(
                        f"extent {name}: {data.name} gives {size}, another input gives {bound[name]}; they must agree"
                    )
        # What no input has first: an input's own size may be made of it.
        for name, value in sorted(self.extents.items(), key=lambda one: one[0] in giver):
            if (
                value is not None
                and bound.setdefault(name, computed := value.integer({**known, **bound})) != computed
            ):
                needed = str(computed) if name in self.constants else f"{value.text}, which is {computed}"
                raise WorkloadError(f"{giver[name]}: {name} is {bound[name]}, and must be {needed}")
        return bound


def read_family(folder: Path, check: bool = True) -> Family:
    """The family in ``folder``, which holds a family.yaml. With ``check`` off the declaration's schema is only
    consulted when it cannot be read without (run-time dispatch: files that a sweep has accepted). Raises
    FamilyError."""
    file = folder / "family.yaml"
    content = yamlfile.read(file, FamilyError)
    if check:
        yamlfile.check(content, "family", file, FamilyError)
    try:
        content = name_extents(content)
        typed_names, typed_by, contents = resolve_types(content)
        by_types: dict[tuple[str | int, ...], Family] = {}
        for values, told in contents.items():
            declared = parse(told, folder.resolve())
            baseline = _baseline(told, folder.resolve(), declared)
            by_types[values] = Family(
                **declared, space_digest=_space_digest(content, declared), baseline=baseline,
                typed_names=typed_names, typed_by=typed_by, by_types=by_types if typed_by else {},
            )  # fmt: skip
        return next(iter(by_types.values()))
    except (AutotuneError, KeyError, TypeError, AttributeError, ValueError):
        yamlfile.check(content, "family", file, FamilyError)
        raise


def _baseline(content: Mapping[str, Any], folder: Path, of: Mapping[str, Any]) -> Family | None:
    """The baseline as a family of one configuration, which no family.py drives. Raises FamilyError."""
    if "baseline" not in content:
        return None
    told = baseline_content(content)
    try:
        declared = {**parse(told, folder), "tolerance_rules": of["tolerance_rules"]}
        held = dict(of["space"].control)  # what a tolerance reads
        digest = _space_digest(told, declared)
        return Family(**declared, space_digest=digest, has_python=False, held=held)
    except FamilyError as problem:
        raise FamilyError(
            str(problem).replace(f"family {content['family']}:", f"family {content['family']}: baseline:")
        ) from None


_NOT_MEASURED = [
    "title", "presets", "explore", "default_workload", "features", "accuracy", "needs", "baseline",
]  # fmt: skip


def _space_digest(content: Mapping[str, Any], declared: Mapping[str, Any]) -> str:
    """sha256 over what decides a measurement: data, geometry, policies, constraints. Not over what only explains or
    names (docs, titles, reasons, presets, the default workload), nor over what only chooses what is measured (explore)
    or among measurements (features, accuracy) or is held against them (needs, the baseline where it is not the
    reference). What makes an order is host code, in ``means`` as in family.py (see ``Family.host_digest``)."""

    def strip_docs(item: Any) -> Any:
        if isinstance(item, dict):
            return {str(key): strip_docs(value) for key, value in item.items() if key != "doc"}
        return [strip_docs(value) for value in item] if isinstance(item, list) else item

    told = {key: value for key, value in content.items() if key not in _NOT_MEASURED}
    told["constraints"] = [item["require"] for item in content.get("constraints", ())]
    told["policies"] = {
        name: {
            key: value for key, value in policy.items() if key != "means" or policy.get("layout") != "order"
        }
        for name, policy in content["policies"].items()
    }
    beyond = _find_uncommon_dimensions(declared["space"], declared["means"], declared["data"])
    told |= {f"layout {dimension.name}": dimension_digest(dimension.name) for dimension in beyond}
    if content.get("reference") == BASELINE:
        told["baseline"] = content["baseline"]
    return hashlib.sha256(json.dumps(strip_docs(told), sort_keys=True).encode()).hexdigest()


def _find_uncommon_dimensions(
    space: Space, means: Mapping[str, Mapping[str, Any]], data: Mapping[str, Data]
) -> list[Dimension]:
    """The layout dimensions of which an array may have what not every family has."""
    chosen = [(kind, value) for array in data.values() for kind, value in array.fixed.items()]
    for policy in space.policies:
        meanings = means.get(policy.name, {})
        chosen += [(policy.layout, meanings.get(str(value), value)) for value in policy.values]
    found = {kind for kind, value in chosen if kind in DIMENSIONS and DIMENSIONS[kind].goes_beyond(value)}
    if any(array.sampling for array in data.values()):
        found.add("dims")  # an image, whatever its dims
    return [dimension for name, dimension in DIMENSIONS.items() if name in found]
