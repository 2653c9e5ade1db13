"""Policies, configurations and the space they span.

A policy is one axis of choice; a configuration gives every policy one value. What is *possible* is every configuration
that no constraint excludes; what is *explored* is what the rules of ``explore``, which spare a budget, leave of that.
A sweep tries what is explored; a policy file, a call or ``--set`` may name whatever is possible. Enumeration tests each
rule as soon as its names are bound, so a space of a million combinations with few survivors is cheap.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from autotune.declaration.expression import Expression
from autotune.errors import FamilyError, UnknownName, UsageError

PolicyValue = int | str
CONTROL, FULL, POSSIBLE = "control", "full", "possible"  # the presets that need no declaration
AS_GIVEN = "given"  # the value of an order policy that leaves the order as it is; its default may be called otherwise
_MOST_MEMBERS = 200_000  # of a list: some ten megabytes
_MOST_STEPS = 1_000_000  # values tried for one: some seconds


@dataclass(frozen=True)
class Policy:
    """One axis. ``layout`` names the layout dimension it drives and ``data`` the arrays it applies to; both are
    empty for a plain policy, which reaches the kernel as a compile-time constant. A layout policy does so too when it
    is ``constant``. ``adds`` has what a value adds to the compiler's command line, of a policy that does that alone.
    Where ``when`` does not hold the policy is inert: it changes nothing, and only its default is possible."""

    name: str
    values: tuple[PolicyValue, ...]
    default: PolicyValue
    layout: str = ""
    data: tuple[str, ...] = ()
    doc: str = ""
    constant: bool = False
    adds: Mapping[str, tuple[str, ...]] | None = field(default=None, hash=False)
    when: Expression | None = None

    @property
    def is_constant(self) -> bool:
        """Whether the kernel source knows its value."""
        return self.constant or not (self.layout or self.adds is not None)

    def is_order(self, value: PolicyValue, orders: Container[PolicyValue]) -> bool:
        """Whether ``value`` may stand in an order policy: one of ``orders``, or what leaves the order as it is."""
        return value in orders or value in (self.default, AS_GIVEN)

    def value(self, text: object) -> PolicyValue:
        """The declared value that prints as ``text``. Raises UnknownName."""
        for value in self.values:
            if str(value) == str(text):
                return value
        raise UnknownName(f"value of policy {self.name}", text, self.values)


class Configuration(Mapping[str, PolicyValue]):
    """One value for every policy; immutable, hashable, ordered by policy name.

    ``id`` is ``k=v`` pairs sorted by key and joined by commas: the same text in CSV, YAML, messages and URLs.
    """

    __slots__ = ("_values", "id")

    def __init__(self, values: Mapping[str, PolicyValue]) -> None:
        self._values = MappingProxyType(dict(sorted(values.items())))
        self.id = ",".join(f"{key}={value}" for key, value in self._values.items())

    def changes(self, control: Mapping[str, PolicyValue]) -> str:
        """What tells it from ``control``, short enough to read: ``policy=value`` pairs, which name it as the id does
        (see ``Space.configuration``); ``control`` where nothing does."""
        pairs = [f"{name}={value}" for name, value in self.items() if control.get(name) != value]
        return ", ".join(pairs) or "control"

    def __getitem__(self, name: str) -> PolicyValue:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(self.id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configuration) and self.id == other.id

    def __repr__(self) -> str:
        return f"Configuration({self.id})"

    def __reduce__(self) -> tuple[type["Configuration"], tuple[dict[str, PolicyValue]]]:
        return Configuration, (dict(self._values),)


@dataclass(frozen=True)
class Constraint:
    """``require`` must hold for a configuration to be possible, or to be explored; ``reason`` says why."""

    require: Expression
    reason: str


@dataclass(frozen=True)
class Preset:
    """A named configuration or sub-space: the union of ``presets`` when given, else the product of ``values``
    (a policy that is not named takes its default). One that ``explores_all`` has what is possible of it, and not only
    what is explored."""

    name: str
    values: Mapping[str, tuple[PolicyValue, ...]]
    presets: tuple[str, ...] = ()
    doc: str = ""
    explores_all: bool = False


@dataclass(frozen=True)
class Space:
    """The policies of one family with its constraints, the rules of what is explored, and presets.

    ``control`` (every default) and ``full`` (everything explored) exist for every family, and ``possible`` where not
    everything is explored.
    """

    policies: tuple[Policy, ...]
    constraints: tuple[Constraint, ...] = ()
    presets: Mapping[str, Preset] = field(default_factory=dict)
    explore: tuple[Constraint, ...] = ()

    def policy(self, name: str) -> Policy:
        for policy in self.policies:
            if policy.name == name:
                return policy
        raise UnknownName("policy", name, [p.name for p in self.policies])

    @property
    def order_policies(self) -> tuple[Policy, ...]:
        return tuple(policy for policy in self.policies if policy.layout == "order")

    @property
    def control(self) -> Configuration:
        """Every policy at its default."""
        return Configuration({p.name: p.default for p in self.policies})

    @property
    def preset_names(self) -> tuple[str, ...]:
        return (CONTROL, FULL, *((POSSIBLE,) if self.explore else ()), *self.presets)

    @property
    def possible(self) -> "Space":
        """The same space with everything explored that is possible."""
        return replace(self, explore=())

    @property
    def rules(self) -> tuple[Constraint, ...]:
        """What has to hold for a configuration to be explored."""
        return self.constraints + self.explore

    def explain_exclusion(self, configuration: Mapping[str, Any]) -> str:
        """Why ``configuration`` is not possible: the first failing constraint's reason, else empty."""
        return _find_broken(self.constraints, configuration)

    def explain_unexplored(self, configuration: Mapping[str, Any]) -> str:
        """Why no sweep tries ``configuration``: it is not possible, or the rules of ``explore`` leave it out. Empty for
        one that is explored."""
        return _find_broken(self.rules, configuration)

    def find_inert(self, configuration: Mapping[str, Any]) -> tuple[str, ...]:
        """The policies that change nothing in ``configuration``, as far as the names that it binds tell."""
        told = [(p.name, p.when) for p in self.policies if p.when and p.when.names <= configuration.keys()]
        return tuple(name for name, when in told if not when.evaluate(configuration))

    def configurations(
        self, preset: str = "full", narrowed: Mapping[str, Sequence[PolicyValue]] | None = None
    ) -> tuple[Configuration, ...]:
        """Every configuration of ``preset`` that is explored, with the policies in ``narrowed`` held to the given
        values, in a stable order and without repeats; where the rules of ``explore`` leave nothing of those values,
        what is possible. Raises UnknownName, and UsageError when nothing is left."""
        held_to = self.select_values(narrowed or {})
        steps = Steps(_MOST_STEPS)
        configurations: dict[Configuration, None] = {}
        for configuration in self._members(preset, held_to, steps):
            configurations[configuration] = None
            if len(configurations) > _MOST_MEMBERS:
                break
        if steps.are_spent or len(configurations) > _MOST_MEMBERS:
            raise UsageError(
                f"preset {preset!r} has too many combinations to list (over {_MOST_MEMBERS:,} configurations, or too "
                "few among too many); narrow it with --set, or sweep with --search"
            )
        if not configurations and held_to and self.explore:
            return self.possible.configurations(preset, narrowed)
        if not configurations:
            held = "; ".join(f"{k}={','.join(map(str, v))}" for k, v in held_to.items()) or "nothing set"
            reasons = sorted({c.reason for c in self.rules})
            raise UsageError(
                f"no configuration is left of preset {preset!r} with {held}: every combination breaks a constraint "
                f"({' | '.join(reasons)}); widen --set or take another preset"
            )
        return tuple(configurations)

    def select_values(self, narrowed: Mapping[str, Sequence[object]]) -> dict[str, tuple[PolicyValue, ...]]:
        """The declared values that ``narrowed`` has, as values or as their text. Raises UnknownName."""
        return {name: tuple(self.policy(name).value(v) for v in values) for name, values in narrowed.items()}

    def get_single(self, preset: str) -> Configuration | None:
        """The configuration of a preset that has one; None when it has more, without listing them."""
        steps = Steps(_MOST_STEPS)
        members = self._members(preset, {}, steps)
        first = next(members, None)
        is_only = all(other == first for other in members)  # ends at the first other one
        return first if is_only and not steps.are_spent else None

    def _members(
        self, preset: str, held_to: Mapping[str, tuple[PolicyValue, ...]], steps: "Steps"
    ) -> Iterator[Configuration]:
        """Of the preset, in order, until ``steps`` are spent."""
        for product in self._products(preset):
            space = self.possible if product.explores_all else self
            values = {p.name: product.values.get(p.name, (p.default,)) for p in self.policies}
            yield from space.walk({**values, **held_to}, steps)

    def _products(self, preset: str) -> list[Preset]:
        if preset in (FULL, POSSIBLE):
            values = {p.name: p.values for p in self.policies}
            return [Preset(preset, values, explores_all=preset == POSSIBLE)]
        if preset == CONTROL:
            return [Preset(preset, {})]
        if preset not in self.presets:
            raise UnknownName("preset", preset, self.preset_names)
        chosen = self.presets[preset]
        parts = [product for name in chosen.presets for product in self._products(name)] or [chosen]
        return [replace(part, explores_all=True) for part in parts] if chosen.explores_all else parts

    def walk(
        self, values: Mapping[str, tuple[PolicyValue, ...]] | None = None, steps: "Steps | None" = None
    ) -> Iterator[Configuration]:
        """The configurations of ``values`` (by default, of everything) that are explored, value by value in declared
        order, leaving a branch as soon as a rule fails; until ``steps`` are spent."""
        order, choices = [p.name for p in self.policies], values or {p.name: p.values for p in self.policies}
        known = [c.require for c in self.rules if c.require.names <= set(order)]
        last = {r: max(map(order.index, r.names), default=0) for r in known}
        due = [[_remember(r) for r in known if last[r] == i] for i in range(len(order))]
        chosen: dict[str, PolicyValue] = {}

        def descend(depth: int) -> Iterator[Configuration]:
            if depth == len(order):
                yield Configuration(chosen)
                return
            for value in choices[order[depth]]:
                if steps is not None and not steps.take():
                    return
                chosen[order[depth]] = value
                if all(holds(chosen) for holds in due[depth]):
                    yield from descend(depth + 1)
            chosen.pop(order[depth], None)

        yield from descend(0)

    def configuration(self, text: str) -> Configuration:
        """The configuration that ``text`` names: a preset of one configuration, or ``k=v,k=v`` with defaults for
        what is not named. Raises UnknownName, and UsageError when it is outside the space."""
        if "=" not in text:
            members = self.configurations(text)
            if len(members) != 1:
                raise UsageError(
                    f"preset {text!r} holds {len(members)} configurations; name one as policy=value,…"
                )
            return members[0]
        named: dict[str, PolicyValue] = {}
        for pair in text.split(","):
            name, separator, value = (part.strip() for part in pair.partition("="))
            if not separator or name in named:
                raise UsageError(
                    f"cannot read {pair!r} in {text!r}; write each policy=value once, joined by commas"
                )
            named[name] = self.policy(name).value(value)
        chosen = Configuration({**self.control, **named})
        if reason := self.explain_exclusion(chosen):
            raise UsageError(f"{chosen.id} is outside the space: {reason}")
        return chosen

    def check(self) -> None:
        """Raise FamilyError when the control configuration or a preset is not explored."""
        if reason := self.explain_unexplored(self.control):
            raise FamilyError(
                f"the defaults ({self.control.id}) break a constraint: {reason}; change a default"
            )
        for name in self.presets:
            steps = Steps(_MOST_STEPS)
            if next(self._members(name, {}, steps), None) is None and not steps.are_spent:
                reasons = " | ".join(sorted({c.reason for c in self.rules}))
                raise FamilyError(
                    f"preset {name!r}: no configuration is left: every combination breaks a constraint ({reasons})"
                    f"{'; explore: all takes what is possible' if self.explore else ''}"
                )


def _remember(require: Expression) -> Callable[[Mapping[str, PolicyValue]], Any]:
    """What tells whether ``require`` holds: it reads few policies, whose values come together again and again."""
    names = tuple(require.names)
    evaluate = lru_cache(maxsize=4096)(
        lambda *values: require.evaluate(dict(zip(names, values, strict=True)))
    )
    return lambda chosen: evaluate(*map(chosen.__getitem__, names))


def _find_broken(rules: Iterable[Constraint], names: Mapping[str, Any]) -> str:
    """The reason of the first rule that ``names`` bind and that does not hold; empty where there is none."""
    for rule in rules:
        if rule.require.names <= names.keys() and not rule.require.evaluate(names):
            return rule.reason
    return ""


@dataclass
class Steps:
    """How many values may still be tried; they are spent when one more is asked for."""

    left: int

    def take(self) -> bool:
        self.left -= 1
        return self.left >= 0

    @property
    def are_spent(self) -> bool:
        return self.left < 0


def find_single_presets(space: Space) -> dict[str, Configuration]:
    """The presets that hold one configuration, in declared order."""
    found = {name: space.get_single(name) for name in space.preset_names if name not in (FULL, POSSIBLE)}
    return {name: configuration for name, configuration in found.items() if configuration is not None}
