"""Watches a project's files while a client follows its events."""

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from codeloop.kit.git import find_git_folder
from codeloop.schema.bounds.language_tools import WATCH_POLL, WATCH_POLLED_FILES
from codeloop.schema.live_events import FileWatched, LiveEvent, Toast, ToastShown, WatchedFile
from codeloop.workspace.watch.ignored_files import IgnoredFiles
from codeloop.workspace.watch.tree_watch import FileEvent, RootGone, TreeWatch
from codeloop.workspace.workspace import Workspace

_TOO_MANY = (
    "{root} has more folders than can be watched here, so only its branch and the files that were read are looked at. "
    "On Linux, a larger fs.inotify.max_user_watches (sysctl) helps, and so do patterns in `watcher.ignore`."
)
_NOT_HERE = "Files can't be watched on this system, so only the branch and the files that were read are looked at."


class ProjectWatch:
    """Reports changed files of a project to its followers while it is switched on.

    `ignored`: further ignore patterns. `look_at_branch` is called when the branch may have changed.
    """

    def __init__(
        self,
        workspace: Workspace,
        ignored: Sequence[str],
        tell: Callable[[LiveEvent], None],
        look_at_branch: Callable[[], None],
    ) -> None:
        self._workspace = workspace
        self._patterns = ignored
        self._tell = tell
        self._look_at_branch = look_at_branch
        self._root = Path(os.path.realpath(workspace.root))
        self._task: asyncio.Task[None] | None = None
        self._has_told = False

    @property
    def is_busy(self) -> bool:
        """Return False: watching keeps no project open."""
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
            except RootGone:
                await asyncio.sleep(WATCH_POLL.seconds)
            except OSError as error:
                self._tell_once(error)
                await self._poll()

    async def _watch_by_events(self) -> None:
        git = find_git_folder(self._root)
        ignored = IgnoredFiles(self._root, git, self._patterns, self._workspace.environment)
        tree = TreeWatch(self._root, git, ignored)
        try:
            await tree.scan()
            self._look_at_branch()
            while True:
                self._tell_all(await tree.wait_for_changes(), git)
        finally:
            tree.close()

    async def _poll(self) -> None:
        """Poll the branch and the files that any session has read."""
        stamps: dict[Path, tuple[int, int] | None] = {}
        while True:
            now = await asyncio.to_thread(lambda: dict(_read_states(self._workspace.read_log.list_files())))
            self._tell_all([event for path, state in now.items() if (event := _make_event(path, stamps, state))], None)
            stamps = now
            self._look_at_branch()
            await asyncio.sleep(WATCH_POLL.seconds)

    def _tell_all(self, events: Iterable[FileEvent], git: Path | None) -> None:
        for event in events:
            if git is not None and event.path.parent == git:
                self._look_at_branch()
            else:
                self._tell(FileWatched(properties=WatchedFile(file=str(event.path), event=event.what)))

    def _tell_once(self, error: OSError) -> None:
        if not self._has_told:
            self._has_told = True
            text = _TOO_MANY.format(root=self._root) if error.errno else _NOT_HERE
            self._tell(ToastShown(properties=Toast(message=text, variant="warning")))


def _read_states(paths: Iterable[Path]) -> Iterator[tuple[Path, tuple[int, int] | None]]:
    for path in islice(paths, WATCH_POLLED_FILES.value):
        state = None
        with suppress(OSError):
            status = path.stat()
            state = (status.st_mtime_ns, status.st_size)
        yield path, state


def _make_event(
    path: Path, stamps: dict[Path, tuple[int, int] | None], state: tuple[int, int] | None
) -> FileEvent | None:
    if path not in stamps or stamps[path] == state:
        return None
    return FileEvent(path, "unlink" if state is None else "change" if stamps[path] else "add")
