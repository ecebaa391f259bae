"""Watches a project's git directories, so that unchanged ones are not read again after each command."""

from collections.abc import Iterable

from codeloop.workspace.files.path_states import PathStates
from codeloop.workspace.watch.inotify import InotifyWatch


class GitFolderWatch:
    """Watches folders that are read: call `begin_reading` before they are read and `finish_reading` after that.

    The watch covers the entries of folders. Some paths lie in folders that are not watched, such as the `.git` file of
    a linked work tree: their change times (`states`) are compared.
    """

    def __init__(self) -> None:
        self._watch: InotifyWatch | None = None
        self._states: PathStates | None = None

    @property
    def is_unchanged(self) -> bool:
        """Whether nothing has changed since the last reading began; False if that can't be known."""
        states, watch = self._states, self._watch
        return states is not None and watch is not None and not watch.has_events and states.are_unchanged()

    def begin_reading(self) -> None:
        """Forget earlier changes; those from now on count."""
        self._states = None
        if self._watch is not None:
            self._watch.take_changed_folders()
        if self._watch is None or self._watch.is_broken:
            self.close()
            try:
                self._watch = InotifyWatch()
            except OSError:
                # Then `is_unchanged` stays False, and everything is read again after each command.
                self._watch = None

    def finish_reading(self, folders: Iterable[str], states: PathStates | None) -> None:
        """End a reading of these folders, and of the files whose `states` were taken before it."""
        watch = self._watch
        if watch is None:
            return
        new = [folder for folder in folders if not watch.has(folder)]
        try:
            for folder in new:
                watch.add(folder, folder)
        except OSError:
            self.close()  # no more can be watched
        else:
            # A folder that is watched only now may have changed after it was read, so this reading proves nothing.
            self._states = None if new else states

    def reset(self) -> None:
        """Forget the last reading: the git directories are about to be changed by the caller."""
        self._states = None

    def close(self) -> None:
        """Stop watching."""
        self._states = None
        if self._watch is not None:
            self._watch.close()
            self._watch = None
