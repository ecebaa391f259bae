"""Tells at once when something appears in folders of a project where a sandboxed program may not make everything."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from codeloop.workspace.watch.inotify import NEW_NAMES_MASK, InotifyWatch


class NameWatch:
    """Watches for all programs of a project, as long as one of them runs. Without inotify it tells nothing."""

    # One for all: to end a watch takes the kernel up to tens of milliseconds.

    def __init__(self) -> None:
        self._watch: InotifyWatch | None = None
        self._is_listening = False
        self._callbacks: dict[object, tuple[frozenset[str], Callable[[], object]]] = {}

    def start(self, folders: Iterable[Path], on_change: Callable[[], object]) -> Callable[[], None]:
        """Call a function when something appears in one of the folders. Returns what ends that."""
        key, names = object(), frozenset(map(str, folders))
        self._callbacks[key] = names, on_change
        # Where this fails, the check after the program finds the same later.
        with suppress(OSError):
            if self._watch is None:
                self._watch = InotifyWatch(NEW_NAMES_MASK)
            if not self._is_listening:
                self._watch.take_changed_folders()
                asyncio.get_running_loop().add_reader(self._watch.fileno(), self._take_events)
                self._is_listening = True
        self._add(names)
        return lambda: self._end(key)

    def close(self) -> None:
        """Stop watching."""
        self._stop_listening()
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def _end(self, key: object) -> None:
        self._callbacks.pop(key, None)

    def _add(self, folders: Iterable[str]) -> None:
        if self._watch is not None:
            # Also a known one: a new folder may have taken its place.
            for folder in folders:
                with suppress(OSError):
                    self._watch.add(folder, folder)

    def _stop_listening(self) -> None:
        if self._watch is not None and self._is_listening:
            asyncio.get_running_loop().remove_reader(self._watch.fileno())
            self._is_listening = False

    def _take_events(self) -> None:
        if not self._callbacks:
            # The user's own changes wake nobody.
            self._stop_listening()
        elif self._watch is not None and self._watch.take_changed_folders():
            for folders, on_change in [*self._callbacks.values()]:
                # One of them may just have been made.
                self._add(folders)
                on_change()
