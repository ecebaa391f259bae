"""Publishes the changed files of a project and reports changes of its branch,
while it is switched on.

It is for clients while they follow the project's events (`app/services.py`), and for language
servers that want to know of changed files (`app/language/servers.py`).
"""

import asyncio
import errno
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from codeloop.kit.git import find_git_folder
from codeloop.schema.bounds.watch import WATCH_FOLDERS, WATCH_POLL, WATCH_POLLED_FILES
from codeloop.schema.live_events import FileWatched, LiveEvent, Toast, ToastShown, WatchedFile
from codeloop.workspace.watch.ignored_files import IgnoredFiles
from codeloop.workspace.watch.tree_watch import (
    RootFolderMissing,
    TooManyFolders,
    TreeWatch,
    WatchedFileChange,
)
from codeloop.workspace.workspace import Workspace

_TOO_MANY_FOLDERS_TEXT = (
    "{root} has more than {limit:,} folders, so only its branch and the files that were read are looked at. "
    "Patterns in `watcher.ignore` help."
)
_NO_MORE_WATCHES_TEXT = (
    "{root} has more folders than can be watched here, so only its branch and the files that were read are looked at. "
    "On Linux, a larger fs.inotify.max_user_watches (sysctl) helps, and so do patterns in `watcher.ignore`."
)
_FAILED_TEXT = "Files can't be watched here ({reason}), so only the branch and the files that were read are looked at."
_NO_INOTIFY_TEXT = (
    f"{_FAILED_TEXT} On Linux, a larger fs.inotify.max_user_instances (sysctl) may help."
)
_NO_WATCHING_TEXT = (
    "Files can't be watched on this system, so only the branch and the files "
    "that were read are looked at."
)


class ProjectWatch:
    """Publishes changed files of a project while it is switched on.

    `extra_patterns`: further patterns of ignored files. `publish` is called with each event,
    `report_branch_change` when the branch may have changed.
    """

    def __init__(
        self,
        workspace: Workspace,
        extra_patterns: Sequence[str],
        publish: Callable[[LiveEvent], None],
        report_branch_change: Callable[[], None],
    ) -> None:
        self._workspace = workspace
        self._extra_patterns = extra_patterns
        self._publish = publish
        self._report_branch_change = report_branch_change
        self._root = Path(os.path.realpath(workspace.root))
        self._task: asyncio.Task[None] | None = None
        self._has_warned = False

    @property
    def is_busy(self) -> bool:
        """Always False: watching keeps no project open."""
        return False

    def switch(self, *, on: bool) -> None:
        """Start or stop watching."""
        if on and self._task is None:
            self._task = asyncio.create_task(self._run())
        elif not on and self._task is not None:
            self._task.cancel()
            self._task = None

    async def close(self) -> None:
        """Stop watching."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _run(self) -> None:
        while True:
            try:
                await self._watch_by_events()
            except RootFolderMissing:
                # A work tree may be removed and made again.
                await asyncio.sleep(WATCH_POLL.seconds)
            except OSError as error:
                self._warn_once(error)
                await self._poll()

    async def _watch_by_events(self) -> None:
        git = find_git_folder(self._root)
        ignored = IgnoredFiles(self._root, git, self._extra_patterns, self._workspace.environment)
        tree = TreeWatch(self._root, git, ignored)
        try:
            await tree.scan()
            self._report_branch_change()
            while True:
                self._publish_all(await tree.wait_for_changes(), git)
        finally:
            tree.close()

    async def _poll(self) -> None:
        """Poll the branch, and the files that any session has read,
        where folders can't be watched.
        """
        earlier_stamps: dict[Path, tuple[int, int] | None] = {}
        while True:
            files = self._workspace.read_log.list_files()
            stamps = await asyncio.to_thread(_read_file_stamps, files)
            changes = (_make_change(path, earlier_stamps, stamp) for path, stamp in stamps.items())
            self._publish_all((change for change in changes if change is not None), None)
            earlier_stamps = stamps
            self._report_branch_change()
            await asyncio.sleep(WATCH_POLL.seconds)

    def _publish_all(self, changes: Iterable[WatchedFileChange], git: Path | None) -> None:
        for change in changes:
            if git is not None and change.path.parent == git:
                self._report_branch_change()
            else:
                self._publish(
                    FileWatched(properties=WatchedFile(file=str(change.path), event=change.kind))
                )

    def _warn_once(self, error: OSError) -> None:
        if not self._has_warned:
            self._has_warned = True
            text = describe_watch_error(self._root, error)
            self._publish(ToastShown(properties=Toast(message=text, variant="warning")))


def describe_watch_error(root: Path, error: OSError) -> str:
    """Return the warning that a work tree can't be watched, with what may help."""
    if isinstance(error, TooManyFolders):
        return _TOO_MANY_FOLDERS_TEXT.format(root=root, limit=WATCH_FOLDERS.value)
    match error.errno:
        case errno.ENOSPC:
            return _NO_MORE_WATCHES_TEXT.format(root=root)
        # The error of a system without inotify has no number.
        case None:
            return _NO_WATCHING_TEXT
        # No inotify instance is left to the user, or no file to this process.
        case errno.EMFILE | errno.ENFILE as code:
            return _NO_INOTIFY_TEXT.format(reason=os.strerror(code))
        case code:
            return _FAILED_TEXT.format(reason=os.strerror(code))


def _read_file_stamps(paths: Iterable[Path]) -> dict[Path, tuple[int, int] | None]:
    """Return the modification time and size of at most WATCH_POLLED_FILES files;
    None for a missing one.
    """
    stamps: dict[Path, tuple[int, int] | None] = {}
    for path in islice(paths, WATCH_POLLED_FILES.value):
        stamps[path] = None
        with suppress(OSError):
            status = path.stat()
            stamps[path] = (status.st_mtime_ns, status.st_size)
    return stamps


def _make_change(
    path: Path, earlier_stamps: dict[Path, tuple[int, int] | None], stamp: tuple[int, int] | None
) -> WatchedFileChange | None:
    """Return the change of a file since it had its earlier stamp;
    None if there is none, or it is new in the list.
    """
    if path not in earlier_stamps or earlier_stamps[path] == stamp:
        return None
    if stamp is None:
        return WatchedFileChange(path, "unlink")
    return WatchedFileChange(path, "change" if earlier_stamps[path] else "add")
