"""Shares one Store for each file among the users in a process, so that live events reach all of them."""

from collections.abc import Callable
from pathlib import Path

from codeloop.store.store import Store


class SharedStores:
    """The open stores of a process. A store is closed once it was released as often as it was opened."""

    def __init__(self) -> None:
        self._open: dict[Path, tuple[Store, int]] = {}
        self._subscribers: list[Callable[[Store], None]] = []

    def subscribe(self, subscriber: Callable[[Store], None]) -> None:
        """Call `subscriber` with each open store, and with each store that is opened later."""
        self._subscribers.append(subscriber)
        for store in self.list_open_stores():
            subscriber(store)

    def open(self, path: Path) -> Store:
        """Return the store of a file, which is opened if needed. Raises StoreError."""
        open_store, users = self._open.get(path, (None, 0))
        store = open_store or Store(path)
        self._open[path] = (store, users + 1)
        if open_store is None:
            for subscriber in self._subscribers:
                subscriber(store)
        return store

    def release(self, store: Store) -> None:
        """Release a store; the last release closes it."""
        _, users = self._open[store.path]
        if users > 1:
            self._open[store.path] = (store, users - 1)
            return
        del self._open[store.path]
        store.close()

    def list_open_stores(self) -> tuple[Store, ...]:
        """Return the open stores."""
        return tuple(store for store, _ in self._open.values())
