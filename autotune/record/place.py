"""What a store asks of the place that its studies are kept in."""

from collections.abc import Mapping
from typing import Any, Protocol

from autotune.declaration import Policy


class Claims(Protocol):
    """What this process is trying, by name; a name is one process's at a time, and free some time after that process
    ended. ``holds`` says whether a name that was taken is still this process's: one that stood still for long may have
    been taken for dead."""

    def take(self, name: str) -> bool: ...
    def holds(self, name: str) -> bool: ...
    def drop(self, name: str) -> None: ...
    def close(self) -> None: ...


class Place(Protocol):
    """Studies by name, each with what is said of it and its trials, as plain values. ``where`` is how messages call
    it. It may be away for ``patience_s``; then it raises one of ``away``."""

    where: str
    claims: Claims
    patience_s: float
    away: tuple[type[Exception], ...]

    def studies(self) -> dict[str, dict[str, Any]]:
        """What is said of each, in the order in which they were begun."""
        ...

    def begin(self, name: str) -> None:
        """Make the study, if it is not there."""
        ...

    def said(self, name: str) -> dict[str, Any]: ...

    def say(self, name: str, key: str, value: Any) -> None:
        """In place of what was said under that key."""
        ...

    def add(self, name: str, trial: Mapping[str, Any], policies: Mapping[str, Policy]) -> None:
        """A trial, on the disk when this returns."""
        ...

    def rows(self, name: str, behind: int) -> tuple[list[dict[str, Any]], int]:
        """The trials behind that mark (0 for all), in their order, and the next mark."""
        ...

    def close(self) -> None:
        """Give back every claim."""
        ...
