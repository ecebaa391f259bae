"""A program that `program_sandboxes.py` started, with the checks of what mounts can't keep."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from codeloop.schema.limits import SHELL_TERM_TIME
from codeloop.workspace.sandbox.launched_process import LaunchedProcess
from codeloop.workspace.sandbox.protected_files import MovedFile, ProtectedFiles

_CHECK_SECONDS = 0.3
"""The time between a program's answer and the check that follows it, and between two checks."""
_MOVED_TEXT = (
    "{} appeared while a program in the sandbox ran, and decides what runs later. So it was moved to {}. If it was you "
    "who made it, move it back, and it stays."
)


class SandboxedProcess:
    """A started program, as LaunchedProcess. What its sandbox can't keep by mounts is
    checked when it has ended.

    `protected`: the files to check; None: it runs without a sandbox. `expected`: a file that the
    user moves back is added to these. `warn` shows a text to the user; `list_refused` returns a
    line for each connection that was refused since its last call. After `watch` it is also checked
    while it runs: at once when a watched name appears,
    and after each of its answers (`notice_answer`).
    """

    def __init__(
        self,
        process: LaunchedProcess,
        protected: ProtectedFiles | None = None,
        expected: set[Path] | None = None,
        warn: Callable[[str], None] = lambda _: None,
        list_refused: Callable[[], list[str]] = list,
    ) -> None:
        self._list_refused = list_refused
        self._process = process
        self._protected = protected
        self._expected = expected if expected is not None else set[Path]()
        self._warn = warn
        self._moved: dict[Path, MovedFile] = {}
        self._stop_watch: Callable[[], None] = lambda: None
        self._check: asyncio.Task[None] | None = None
        self._is_watched = False

    @property
    def pid(self) -> int:
        """Its process id, as its launcher sees it."""
        return self._process.pid

    @property
    def exited(self) -> "asyncio.Future[int]":
        """Its exit code (negative: the signal), once it has ended."""
        return self._process.exited

    @property
    def exceeded(self) -> str:
        """The bound for which it was ended, in words; ""."""
        return self._process.exceeded

    def watch(self) -> None:
        """Check it while it runs, too."""
        if self._protected is not None:
            self._is_watched = True
            self._stop_watch = self._protected.watch_names(self._move_new_paths)
            # Something may have appeared before the watch.
            self._move_new_paths()

    def notice_answer(self) -> None:
        """Check soon what the program did for an answer;
        later answers until then are covered by the same check.
        """
        if self._is_watched and (self._check is None or self._check.done()):
            self._check = asyncio.create_task(self._check_soon())

    async def end(self, grace_seconds: float = SHELL_TERM_TIME.seconds, /) -> None:
        """End it with all its processes as `LaunchedProcess.end`, and check what it left."""
        await self._process.end(grace_seconds)
        self._is_watched = False
        self._stop_watch()
        if self._check is not None:
            await asyncio.wait([self._check])
        await self._restore()
        self._protected = None

    def _move_new_paths(self) -> None:
        """Move away what may not appear, and tell the user; what the user has moved back stays."""
        if self._protected is None:
            return
        put_back = [path for path, moved in self._moved.items() if not os.path.lexists(moved.moved)]
        self._expected.update(path for path in put_back if os.path.lexists(path))
        self._protected.move_new_files()
        self._tell_moved()

    async def _check_soon(self) -> None:
        await asyncio.sleep(_CHECK_SECONDS)
        await self._restore()

    async def _restore(self) -> None:
        self._move_new_paths()
        protected = self._protected
        if protected is None:
            return
        notes = await protected.settle()
        self._tell_moved()
        refused = map(explain_refused_connection, self._list_refused())
        for note in (*notes, *protected.warnings, *refused):
            self._warn(note)
        protected.warnings.clear()

    def _tell_moved(self) -> None:
        if self._protected is None:
            return
        moved_files, self._protected.moved_files = self._protected.moved_files, []
        for each in moved_files:
            self._moved[each.path] = each
            self._warn(_MOVED_TEXT.format(each.path, each.moved))


def explain_refused_connection(line: str) -> str:
    """Return a line for the user on a connection that the proxy refused: which, and what allows it.

    `line`: as of `SessionProxy.list_refused`.
    """
    text = line.removeprefix("blocked: ")
    authority = text.removeprefix("connection to ").partition(",")[0]
    host = authority.removesuffix(":443").removesuffix(":80")
    setting = f'"sandbox": {{"hosts": ["{host}"]}}'
    return (
        f"A program in the sandbox was refused a {text}. To allow it: {setting} in codeloop.json."
    )
