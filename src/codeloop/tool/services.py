"""Services that the tools of a project share, beside its work tree."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec import field as struct_field

from codeloop.schema.api.editor import RunInEditor
from codeloop.workspace.workspace import ResolvedPath

if TYPE_CHECKING:
    from codeloop.lsp.languages import Languages
    from codeloop.tool.after_edit import AfterEdit

SaveBuffer = Callable[[str, Path], Awaitable[None]]
"""Takes a session and a file: has the session's editor save its unsaved changes of the file, if any. Never raises."""

_MOST_NOTICES = 20
"""For each session; older notices are dropped."""
_MOST_FILES = 500
"""Of all sessions; the lines of those that were searched earlier are forgotten."""


class Notices:
    """Notices for a session's next result or prompt, each line once.

    `sources`: functions of a session that return a notice at the moment of delivery, "" for none.
    """

    def __init__(self) -> None:
        self.sources: list[Callable[[str], str]] = []
        self._waiting: dict[str, list[str]] = {}

    def add(self, session_id: str, line: str) -> None:
        """Queue a line for the session's next result or prompt."""
        waiting = self._waiting.setdefault(session_id, [])
        if line not in waiting:
            waiting.append(line)
            del waiting[:-_MOST_NOTICES]

    def take(self, session_id: str) -> str:
        """Return the queued notices as one text ("" for none), and clear them."""
        lines = [*self._waiting.pop(session_id, ()), *(source(session_id) for source in self.sources)]
        return "\n".join(filter(None, lines))


class ShownLines:
    """The lines of files that searches have shown: a session may change these although it has not read their file."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, Path], dict[int, str]] = {}
        self._steps: dict[str, tuple[str, dict[Path, dict[int, tuple[str, str]]]]] = {}

    def record(self, session_id: str, message_id: str, file: Path, lines: Mapping[int, str], search: str) -> None:
        """Record lines by their numbers. `message_id`: the step; `search`: what calls beside it call the search."""
        shown = self._lines.pop((session_id, file), {})
        self._lines[session_id, file] = shown | dict(lines)
        for oldest in list(self._lines)[:-_MOST_FILES]:
            del self._lines[oldest]
        step, files = self._steps.get(session_id, ("", {}))
        files = files if step == message_id else {}
        files[file] = {number: (line, search) for number, line in lines.items()} | files.get(file, {})
        self._steps[session_id] = message_id, files

    def list_beside(self, session_id: str, message_id: str, file: Path) -> Mapping[int, tuple[str, str]]:
        """Return the lines of a file that other calls of a step have shown, by number, each with its search."""
        step, files = self._steps.get(session_id, ("", {}))
        return files.get(file, {}) if step == message_id else {}

    def covers(self, session_id: str, file: Path, first: int, lines: Sequence[str]) -> bool:
        """Return whether these lines of a file, from number `first` on, were shown as they are."""
        shown = self._lines.get((session_id, file), {})
        return all(shown.get(number) == line for number, line in enumerate(lines, first))


class FanOut(Struct):
    """How many subagents a turn may start, and the user's answers about more.

    `most`: how many start without a question. `model_of`: returns a subagent's model by its agent's name; None: the
    model of the session.
    """

    most: int
    model_of: Callable[[str], str | None]
    locks: dict[str, asyncio.Lock] = struct_field(default_factory=dict[str, asyncio.Lock])
    """By session, held while the user is asked."""
    allowed: dict[str, str] = struct_field(default_factory=dict[str, str])
    """By session, the prompt whose turn may start any number (the user said yes)."""
    refused: dict[str, str] = struct_field(default_factory=dict[str, str])
    """By session, the prompt whose turn may start no more (the user said no)."""


class ToolServices:
    """The services that tools share. This class has those of a work tree alone, `app.services.Services` has all.

    `shown_lines`: what searches have shown. `asked_elisions`: pairs of a session and a text that was refused once.
    `run_in_editor`: runs a command in an editor's terminal; None without an editor. `fan_out`: None where any number of
    subagents may start.
    """

    def __init__(
        self,
        save_buffer: SaveBuffer | None = None,
        run_in_editor: RunInEditor | None = None,
        fan_out: FanOut | None = None,
    ) -> None:
        self.notices = Notices()
        self.shown_lines = ShownLines()
        self.asked_elisions: set[tuple[str, str]] = set()
        self._save_buffer = save_buffer
        self.run_in_editor = run_in_editor
        self.fan_out = fan_out

    async def save_buffers(self, session_id: str, targets: Iterable[ResolvedPath]) -> None:
        """Have the editor, if there is one, save the files, so that tools read and edit the text that it shows."""
        if self._save_buffer is not None:
            for target in targets:
                await self._save_buffer(session_id, target.path)

    @cached_property
    def languages(self) -> "Languages | None":
        """The language servers; None: no language server may be used."""
        return None

    @cached_property
    def after_edit(self) -> "AfterEdit | None":
        """Formats and checks edited files; None: edits are not followed by anything."""
        return None
