"""Whether a project's git directories are unchanged, so that they are not read again after each command."""

from collections.abc import Iterable

from codeloop.workspace.files.path_states import PathStates
from codeloop.workspace.watch.inotify import Watch


class GitFolderWatch:
    """Watches the folders of git directories that were read. `begin` before they are read, `finish` after that."""

    def __init__(self) -> None:
        self._watch: Watch | None = None
        self._states: PathStates | None = None

    @property
    def is_same(self) -> bool:
        """Whether all is as it was when the last reading began; False, too, where that can't be known."""
        states, watch = self._states, self._watch
        return states is not None and watch is not None and not watch.has_events and states.are_same()

    def begin(self) -> None:
        """Begin a reading."""
        self._states = None
        if self._watch is not None:
            self._watch.take_changed_folders()
        if self._watch is None or self._watch.broken:
            self.close()
            try:
                self._watch = Watch()
            except OSError:
                self._watch = None  # then each reading counts for itself

    def finish(self, folders: Iterable[str], states: PathStates | None) -> None:
        """End a reading of these folders, and of the files whose `states` were looked at before it.

        It stays valid until a change if all folders were watched before it; otherwise only a later reading does.
        """
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
            self._states = None if new else states

    def reset(self) -> None:
        """Forget the last reading: what was found since then is not what it was."""
        self._states = None

    def close(self) -> None:
        """Stop watching."""
        self._states = None
        if self._watch is not None:
            self._watch.close()
            self._watch = None
