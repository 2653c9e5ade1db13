"""A layout dimension: one thing that a layout decides, with all that is asked of it anywhere."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from autotune.errors import FamilyError, UnknownName
from autotune.layout.arrays import Data
from autotune.layout.layout import Layout
from autotune.layout.mapping import Step

_MOST_TOGETHER = 2**31


@dataclass(frozen=True, kw_only=True)
class Dimension:
    """``name`` is its key in family.yaml, and ``usual`` its value where nothing is said, or a function of the array;
    ``values`` are all where they have names. ``read`` gives what a value stands for, where that is not itself, of
    (value, array, where that is said), and raises FamilyError or UnknownName for what is none, or not for this array;
    ``together`` is how many elements compiled code then counts, in 32 bits, as one tile, block, run or access.
    ``put`` is a layout with that, ``shown`` what ``autotune show`` says of a layout, empty where there is nothing to
    say, and ``exported`` the members of export/cpp/layout.h that it decides, which may raise FamilyError: by default
    the field of ``Layout`` of the same name, its text, and the member of that name.

    ``header`` is that of the layout library which the C++ type of a value needs, of those alone that ``is_more`` picks
    where not all do. What such values store is hashed on its own, by ``probes``, each of which suits some array.

    ``leaves_rows`` says whether a value leaves an element one texel with its neighbours next to it, as an image needs
    them (usual values do). ``is_of_views``: a converted view may choose it. ``needs`` names another dimension without
    which there is no choice; ``not_with`` those that the same array may not choose, and why."""

    name: str
    usual: Any
    values: tuple[str, ...] = ()
    together: Callable[[Any], int] = lambda _: 1
    read: Callable[[Any, Data, str], Any] = lambda value, _data, _where: value
    put: Callable[[Layout, Any], Layout] | None = None
    shown: Callable[[Layout], str] | None = None
    exported: Callable[[Layout], Mapping[str, Any]] | None = None
    header: str = ""
    is_more: Callable[[Any], bool] | None = None
    probes: tuple[Any, ...] = ()
    leaves_rows: Callable[[Any, Data], bool] | None = None
    is_of_views: bool = False
    needs: str = ""
    not_with: Mapping[str, str] = field(default_factory=dict)

    def get_usual(self, data: Data) -> Any:
        """The value of an array for which nothing is said."""
        return self.usual(data) if callable(self.usual) else self.usual

    def goes_beyond(self, value: Any) -> bool:
        """Whether a value needs the header, and a digest of its own."""
        return self.is_more(value) if self.is_more else self.header != ""

    def keeps_rows(self, value: Any, data: Data) -> bool:
        """Whether an image may have the value."""
        return self.leaves_rows(value, data) if self.leaves_rows else bool(value == self.get_usual(data))

    def meaning(self, value: Any, data: Data, where: str) -> Any:
        """What a value stands for. Raises FamilyError, UnknownName."""
        if self.values and value not in self.values:
            raise UnknownName(f"{self.name} layout", value, self.values, where)
        meaning = self.read(value, data, where)
        if (count := self.together(meaning)) >= _MOST_TOGETHER:
            raise FamilyError(
                f"{where}: {self.name} {value} joins {count} elements, and compiled code counts fewer than "
                f"{_MOST_TOGETHER}: take less"
            )
        return meaning

    def text(self, layout: Layout) -> str:
        """What ``autotune show`` says."""
        return self.shown(layout) if self.shown else str(getattr(layout, self.name))

    def host_members(self, layout: Layout) -> Mapping[str, Any]:
        """Those of an export's ``Layout``. Raises FamilyError for a layout that no export has."""
        return self.exported(layout) if self.exported else {self.name: getattr(layout, self.name)}

    def apply(self, layout: Layout, value: Any, where: str) -> Layout:
        """The layout with a value of this dimension. Raises FamilyError, UnknownName."""
        meaning = self.meaning(value, layout.data, where)
        return self.put(layout, meaning) if self.put else replace(layout, **{self.name: meaning})


def always(_value: Any, _data: Data) -> bool:
    """``leaves_rows`` of a dimension whose values all do."""
    return True


def step_dimension(
    name: str,
    kind: type[Step],
    read: Callable[[Any, Data, str], Step | None],
    header: str,
    probes: tuple[str, ...],
) -> Dimension:
    """That of a ``kind`` of step, whose text (``str``) is what is shown; the rest as in ``Dimension``."""

    def put(layout: Layout, step: Step | None) -> Layout:
        steps = [each for each in layout.steps if not isinstance(each, kind)] + ([step] if step else [])
        return replace(layout, steps=tuple(sorted(steps, key=lambda each: each.span)))

    return Dimension(
        name=name,
        usual="none",
        together=lambda step: step.span if step else 1,
        read=read,
        put=put,
        shown=lambda layout: next((str(each) for each in layout.steps if isinstance(each, kind)), ""),
        exported=lambda _: {},
        header=header,
        probes=probes,
        is_of_views=True,
    )
