"""Values of any kind as policies: each has a word, by which records, reports and policy files know it."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

from autotune.declaration import Configuration
from autotune.errors import UsageError

_WORD = re.compile(r"[\w.+-]+")
_NAME = re.compile(r"[A-Za-z_]\w*")
_MOST_LISTED = 200_000

Space = Mapping[str, Iterable[Any]] | Sequence[Mapping[str, Any]]
Condition = Callable[[Mapping[str, Any]], bool]


@dataclass(frozen=True)
class Alternatives:
    """``values`` by name, the default first. ``listed`` are the configurations where not all combinations are meant,
    the default first; as they were given."""

    values: Mapping[str, tuple[Any, ...]]
    listed: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def read(cls, space: Space, where: Condition | None = None) -> "Alternatives":
        """All combinations of a mapping of lists, or the mappings of a list; of those what meets ``where``. Raises
        UsageError."""
        if isinstance(space, Mapping):
            choices = cls({name: _list_values(name, some) for name, some in space.items()})
            listed = [] if where is None else choices._list_all()
        else:
            listed = [dict(one) for one in space]
            names = listed[0].keys() if listed else ()
            if any(one.keys() != names for one in listed):
                raise UsageError(
                    f"the listed configurations name different arguments: {list(names)} is of the first"
                )
            choices = cls({name: _remove_duplicates(one[name] for one in listed) for name in names})
        if where is not None:
            listed = [one for one in listed if where(one)]
        if not choices.values or (not listed and (where is not None or not isinstance(space, Mapping))):
            why = "" if where is None else ", or where= admits none"
            raise UsageError(f"there is nothing to choose: space= has no configuration{why}")
        for name in choices.values:
            if not _NAME.fullmatch(name):
                raise UsageError(f"{name!r} in space= is not an argument's name")
        values = choices.values
        if listed:  # the first configuration has the defaults
            values = {name: _remove_duplicates((listed[0][name], *some)) for name, some in values.items()}
        return cls(values, tuple(listed))

    def _list_all(self) -> list[dict[str, Any]]:
        configurations = []
        for one in product(*self.values.values()):
            configurations.append(dict(zip(self.values, one, strict=True)))
            if len(configurations) > _MOST_LISTED:
                raise UsageError(
                    f"where= is called for each combination, and there are more than {_MOST_LISTED:,}: list fewer "
                    "values"
                )
        return configurations

    @cached_property
    def words(self) -> Mapping[str, tuple[int | str, ...]]:
        """What stands for each value."""
        return {name: _words(some) for name, some in self.values.items()}

    @cached_property
    def _given(self) -> Mapping[str, Mapping[int | str, Any]]:
        return {name: dict(zip(self.words[name], some, strict=True)) for name, some in self.values.items()}

    @property
    def default(self) -> dict[str, Any]:
        return {name: some[0] for name, some in self.values.items()}

    def get_values(self, configuration: Mapping[str, Any]) -> dict[str, Any]:
        """The values that a configuration of words stands for; policies of other names are left out."""
        return {name: some[configuration[name]] for name, some in self._given.items()}

    def configuration(self, values: Mapping[str, Any]) -> Configuration:
        """The configuration of those values."""
        return Configuration(
            {name: self.words[name][_index(some, values[name])] for name, some in self.values.items()}
        )

    def configurations(self) -> Iterator[Configuration]:
        """Of those that are listed."""
        return map(self.configuration, self.listed)


def _list_values(name: str, some: Iterable[Any]) -> tuple[Any, ...]:
    if isinstance(some, str) or not isinstance(some, Iterable):
        raise UsageError(
            f"{name}={some!r} in space= is not a list of values: list the values to try, the default first"
        )
    if not (found := _remove_duplicates(some)):
        raise UsageError(f"{name} in space= has no values: list the values to try, the default first")
    return found


def _remove_duplicates(some: Iterable[Any]) -> tuple[Any, ...]:
    distinct: list[Any] = []
    for value in some:
        if not any(_is_same(value, other) for other in distinct):
            distinct.append(value)
    return tuple(distinct)


def _is_same(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) and bool(one == other))


def _index(some: Sequence[Any], value: Any) -> int:
    return next(i for i, other in enumerate(some) if _is_same(value, other))


def _words(some: Sequence[Any]) -> tuple[int | str, ...]:
    found = [_word(value, number) for number, value in enumerate(some)]
    texts = [str(word) for word in found]
    return tuple(
        word if texts.count(str(word)) == 1 else f"{word}_{number}" for number, word in enumerate(found)
    )


def _word(value: Any, number: int) -> int | str:
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    text = str(value).lower() if value is None or isinstance(value, bool) else str(value)
    if _WORD.fullmatch(text):
        return text
    cleaned = re.sub(r"[^\w.+-]+", "_", text).strip("_")
    return cleaned if cleaned and len(cleaned) <= 40 else f"value_{number}"
