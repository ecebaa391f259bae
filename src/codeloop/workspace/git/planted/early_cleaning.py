"""Has the repositories that commands make looked through as soon as they change,
while these commands run.
"""

import asyncio
import time
from contextlib import suppress

from codeloop.workspace.git.planted.recovery import RunningMark
from codeloop.workspace.git.planted.repositories import ProjectRepositories

# After a look that finds nothing there is a rest, of this many times what it took: a command that
# makes folders all the time, as a build does, does not keep a processor busy with it.
_REST_FACTOR = 3
_MIN_REST_SECONDS = 0.002


class EarlyCleaning:
    """Watches one project, from `start` on until no command runs.
    `mark`: says that one runs, for a later process.
    """

    def __init__(self, repositories: ProjectRepositories, mark: RunningMark) -> None:
        self._repositories = repositories
        self._mark = mark
        self._fd = -1
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Watch from now on, unless that is done already. Called when a command begins."""
        if self._task is None or self._task.done():
            self._listen()

    def close(self) -> None:
        """Stop watching, before the project is closed."""
        self._mark.close()
        self._stop_listening()
        if self._task is not None:
            self._task.cancel()

    def _listen(self) -> None:
        # The descriptor is another one after all was searched again.
        if self._fd != self._repositories.fileno():
            self._stop_listening()
            self._fd = self._repositories.fileno()
            if self._fd >= 0:
                asyncio.get_running_loop().add_reader(self._fd, self._take_news)

    def _stop_listening(self) -> None:
        if self._fd >= 0:
            asyncio.get_running_loop().remove_reader(self._fd)
            self._fd = -1

    def _take_news(self) -> None:
        self._stop_listening()
        # Without a command these are the user's own changes, which wake nobody from now on.
        if self._repositories.running_since:
            self._task = asyncio.create_task(self._clean())

    async def _clean(self) -> None:
        began, is_changed = time.monotonic(), False
        if self._repositories.has_news():
            # A file that a command removes meanwhile is not an error.
            with suppress(OSError):
                is_changed = await asyncio.to_thread(self._repositories.clean_early)
        rest = 0 if is_changed else (time.monotonic() - began) * _REST_FACTOR
        await asyncio.sleep(max(rest, _MIN_REST_SECONDS))
        if self._repositories.running_since:
            self._listen()
