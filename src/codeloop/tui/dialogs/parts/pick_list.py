"""The model of a picker, without a screen: all picks, those that match the filter, and the cursor."""

from collections.abc import Sequence
from typing import Generic

from codeloop.tui.dialogs.parts.fuzzy import FuzzyIndex
from codeloop.tui.dialogs.parts.pick_rows import PickRows
from codeloop.tui.dialogs.parts.picks import Pick, T


class PickList(Generic[T]):
    """`found`: the matching picks, as indices of `picks`; `rows` draws them. `finds_groups`: searches headings too."""

    def __init__(self, *, finds_groups: bool) -> None:
        self.picks: list[Pick[T]] = []
        self.found: list[int] = []
        self.rows = PickRows((), (), "")
        self._finds_groups = finds_groups
        self._more = 0
        """How many picks at the end are search results from elsewhere."""
        self._index = FuzzyIndex(())

    @property
    def current(self) -> Pick[T] | None:
        """The pick under the cursor."""
        return self.picks[self.found[self.rows.cursor]] if self.found else None

    def set_picks(self, picks: Sequence[Pick[T]], more: Sequence[Pick[T]] = ()) -> None:
        """Set the picks, and after them results from elsewhere, which always match."""
        self.picks, self._more = [*picks, *more], len(more)
        groups = [pick.group if self._finds_groups else "" for pick in self.picks]
        pairs = zip(self.picks, groups, strict=True)
        self._index = FuzzyIndex([f"{pick.title} {pick.detail} {group} {pick.also}" for pick, group in pairs])

    def drop_more(self) -> None:
        """Drop the results from elsewhere: the filter has changed."""
        if self._more:
            self.set_picks(self.picks[: len(self.picks) - self._more])

    def filter(self, query: str, keep: T | None) -> None:
        """Filter by a query; the cursor goes to the first row, or to a value to keep."""
        self.found = self._index.search(query)
        if self._more:
            count = len(self.picks) - self._more
            self.found = [at for at in self.found if at < count] + list(range(count, len(self.picks)))
        self.rows = PickRows(self.picks, self.found, query, tells_groups=self._finds_groups)
        places = (number for number, at in enumerate(self.found) if self.picks[at].value == keep)
        self.rows.cursor = next(places, 0) if keep is not None else 0

    def move_to(self, index: int) -> None:
        """Move the cursor to a matching row, or to the last one."""
        self.rows.cursor = max(0, min(index, len(self.found) - 1))
