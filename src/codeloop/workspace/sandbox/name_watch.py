"""Tells at once when something appears in folders of a project where a sandboxed
program may not make everything.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress

from codeloop.workspace.watch.inotify import NEW_NAMES_MASK, InotifyWatch


class NameWatch:
    """Watches for all programs of a project, as long as one of them runs.
    Without inotify it tells nothing.
    """

    # One for all: to end a watch takes the kernel up to tens of milliseconds.

    def __init__(self) -> None:
        self._watch: InotifyWatch | None = None
        self._is_listening = False
        self._callbacks: dict[object, tuple[Callable[[], Iterable[str]], Callable[[], object]]] = {}

    def start(
        self, list_folders: Callable[[], Iterable[str]], on_change: Callable[[], object]
    ) -> Callable[[], None]:
        """Call a function when something appears in one of the folders. Returns what ends that.

        `list_folders` is asked again after each change: folders may have come to be watched, too.
        """
        key = object()
        self._callbacks[key] = list_folders, on_change
        # Where this fails, the check after the program finds the same later.
        with suppress(OSError):
            if self._watch is None:
                self._watch = InotifyWatch(NEW_NAMES_MASK)
            if not self._is_listening:
                self._watch.take_changed_folders()
                asyncio.get_running_loop().add_reader(self._watch.fileno(), self._take_events)
                self._is_listening = True
        self._add(list_folders())
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
            for list_folders, on_change in [*self._callbacks.values()]:
                # Watched before it is looked at: what comes in between is told of next.
                self._add(list_folders())
                on_change()
