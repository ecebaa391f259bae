"""A sum over a sequence that grows at its end, such as a conversation: what was
counted is not counted again.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

Item = TypeVar("Item")


class GrowingSum(Generic[Item]):
    """Adds up what `measure` returns for each item of a sequence;
    only items that are new are measured.
    """

    def __init__(self, measure: Callable[[Item], int]) -> None:
        self._measure = measure
        self._items: tuple[Item, ...] = ()
        self._sum = 0

    def update(self, items: tuple[Item, ...]) -> int:
        """Return the sum over `items`. If they do not begin with the earlier ones,
        all of them are measured.
        """
        count = len(self._items)
        # Comparing tuples looks at the identity of the members first,
        # in C: the usual case costs no Python code.
        if items[:count] != self._items:
            count = self._sum = 0
        self._sum += sum(map(self._measure, items[count:]))
        self._items = items
        return self._sum
