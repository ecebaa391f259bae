"""`ToolServices`: the services that the tools of a project share, such as notices, shown lines,
the fan-out limit.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec import field as struct_field

from codeloop.schema.editor import RunInEditor
from codeloop.workspace.workspace import ResolvedPath

if TYPE_CHECKING:
    from codeloop.lsp.server_pool import ServerPool
    from codeloop.tool.files.edit_finisher import EditFinisher
    from codeloop.workspace.git.ref_state import RefState

SaveBuffer = Callable[[str, Path], Awaitable[None]]
"""Takes a session and a file, and has the session's editor save its unsaved changes of that file.
Never raises.
"""

# Notices of one session; older ones are dropped.
_MAX_NOTICES = 20
# Files of all sessions together; the lines of those that were searched longest ago are forgotten.
_MAX_SEARCHED_FILES = 500


class Notices:
    """Notices that the model reads with a session's next tool result or prompt, each line once.

    `sources`: functions that take a session's id and return a notice when notices are delivered,
    "" for none.
    """

    def __init__(self) -> None:
        self.sources: list[Callable[[str], str]] = []
        self._waiting: dict[str, list[str]] = {}

    def add(self, session_id: str, line: str) -> None:
        """Queue a line for the session's next result or prompt."""
        waiting = self._waiting.setdefault(session_id, [])
        if line not in waiting:
            waiting.append(line)
            del waiting[:-_MAX_NOTICES]

    def take(self, session_id: str) -> str:
        """Return the queued notices as one text ("" for none), and clear them."""
        lines = [
            *self._waiting.pop(session_id, ()),
            *(source(session_id) for source in self.sources),
        ]
        return "\n".join(filter(None, lines))


class LineOfStep(NamedTuple):
    """A line that a search of the present step has shown.
    `search`: the name by which other calls refer to it.
    """

    text: str
    search: str


class _SearchedStep(NamedTuple):
    """The lines that the searches of one step have shown, by file and number.
    `message_id`: the step's message.
    """

    message_id: str
    lines: dict[Path, dict[int, LineOfStep]]


class ShownLines:
    """The lines of files that searches have shown: a session may change these although
    it has not read their file.
    """

    def __init__(self) -> None:
        self._lines: dict[tuple[str, Path], dict[int, str]] = {}
        """The text of each line by its number, for each session and file."""
        self._steps: dict[str, _SearchedStep] = {}
        """The latest step of each session."""

    def record(
        self, session_id: str, message_id: str, file: Path, lines: Mapping[int, str], search: str
    ) -> None:
        """Record lines of a file by their numbers. `message_id`: the step's message;
        `search`: see LineOfStep.
        """
        # Removed and inserted again, so that the file is the last in the order of the dictionary.
        shown = self._lines.pop((session_id, file), {})
        self._lines[session_id, file] = shown | dict(lines)
        for oldest in list(self._lines)[:-_MAX_SEARCHED_FILES]:
            del self._lines[oldest]
        step = self._steps.get(session_id)
        if step is None or step.message_id != message_id:
            step = self._steps[session_id] = _SearchedStep(message_id, {})
        # The search that showed a line first is the one that is referred to.
        new_lines = {number: LineOfStep(text, search) for number, text in lines.items()}
        step.lines[file] = new_lines | step.lines.get(file, {})

    def list_lines_of_step(
        self, session_id: str, message_id: str, file: Path
    ) -> Mapping[int, LineOfStep]:
        """Return the lines of a file that calls of a step have shown, by number."""
        step = self._steps.get(session_id)
        return (
            step.lines.get(file, {}) if step is not None and step.message_id == message_id else {}
        )

    def covers(self, session_id: str, file: Path, first: int, lines: Sequence[str]) -> bool:
        """Return whether searches have shown all these lines of a file,
        the first of which has the number `first`.
        """
        shown = self._lines.get((session_id, file), {})
        return all(shown.get(number) == line for number, line in enumerate(lines, first))


class FanOutLimit(Struct):
    """The limit on the subagents of one turn, and the user's answers about exceeding it.

    `max_subagents`: how many start without a question. `find_model`: returns a subagent's model by
    its agent's name; None: the model of the session.
    """

    max_subagents: int
    find_model: Callable[[str], str | None]
    locks: dict[str, asyncio.Lock] = struct_field(default_factory=dict[str, asyncio.Lock])
    """By session. Held while the user is asked, so that calls of one step ask a single question."""
    allowed_turns: dict[str, str] = struct_field(default_factory=dict[str, str])
    """By session, the id of the prompt whose turn may start any number: the user said yes."""
    refused_turns: dict[str, str] = struct_field(default_factory=dict[str, str])
    """By session, the id of the prompt whose turn may start no more: the user said no."""


class ToolServices:
    """The services that tools share. Its subclass `app.services.Services` adds language
    servers and formatters.

    `shown_lines`: the lines that searches have shown. `asked_elisions`: pairs of a session and an
    elided line that was refused once. `run_in_editor`: runs a command in an editor's terminal;
    None: no editor is connected. `fan_out`: None: any number of subagents may start. `takes_long`:
    whether a command line is a build, a test or an installation.
    `expand_prompt`: returns the prompt of a subagent in which a slash command is expanded.
    `ref_states`: by session, the references of the repository before the first command of its turn.
    """

    def __init__(
        self,
        save_buffer: SaveBuffer | None = None,
        run_in_editor: RunInEditor | None = None,
        fan_out: FanOutLimit | None = None,
    ) -> None:
        self.takes_long: Callable[[str], bool] = lambda _line: False
        self.expand_prompt: Callable[[str], str] = lambda prompt: prompt
        self.notices = Notices()
        self.shown_lines = ShownLines()
        self.asked_elisions: set[tuple[str, str]] = set()
        self.ref_states: dict[str, RefState | None] = {}
        self._save_buffer = save_buffer
        self.run_in_editor = run_in_editor
        self.fan_out = fan_out

    async def save_buffers(self, session_id: str, targets: Iterable[ResolvedPath]) -> None:
        """Have a connected editor save the files,
        so that tools read and edit the text that it shows.
        """
        if self._save_buffer is not None:
            for target in targets:
                await self._save_buffer(session_id, target.path)

    @cached_property
    def languages(self) -> "ServerPool | None":
        """The language servers; None: none may be used."""
        return None

    @cached_property
    def edit_finisher(self) -> "EditFinisher | None":
        """Formats and checks edited files; None: files stay as they were written."""
        return None
