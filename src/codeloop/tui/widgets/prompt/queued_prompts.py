"""The widget of the queued prompts, above the editor: shown while the model works,
and taken back by the user.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.geometry import Size
from textual.strip import Strip

from codeloop.client.client import Client
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.api.session_inputs import FilePartInput, MessageWithParts
from codeloop.schema.api.session_messages import MESSAGE_DELETE, SESSION_QUEUED, MessageId
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.errors import CodeloopError
from codeloop.schema.part import FilePart, TextPart
from codeloop.tui.terminal.textual_private import request_layout
from codeloop.tui.widgets.base_widgets import CachedWidget, find_faint_style
from codeloop.tui.widgets.prompt.history.prompt_store import PromptStore
from codeloop.tui.widgets.prompt.prompt_entry import PromptEntry

_MAX_ROWS = 4
"""Rows that are shown; the last one counts the prompts that have none."""
SEND_OFFER = ", enter to stop it and send what waits"
"""What the hint of the first Escape adds while prompts wait."""
_NEXT_STEP, _AFTER_TURN = "at the next step", "after this turn"
_WHEN_BACK = "when the server is back"


class QueuedPrompts(CachedWidget):
    """The prompts that wait: `server_prompts` for the running turn's next step, then
    `local_prompts` for its end.

    Those of `local_prompts` are kept here and in a file until the app sends them, see `pop_next`.
    `edit` is called with a prompt that the user takes back into the editor.
    """

    ALLOW_SELECT = False
    COMPONENT_CLASSES = {"queued--muted"}
    DEFAULT_CSS = """
    QueuedPrompts {
        display: none;
        height: auto;
        width: 1fr;
        padding: 0 1 0 2;
        & > .queued--muted { color: $text-muted; }
    }
    """

    def __init__(
        self,
        store: PromptStore,
        edit: Callable[[PromptEntry], None],
        run_in_background: Callable[[Awaitable[None]], object],
        show_note: Callable[[str], None],
    ) -> None:
        super().__init__()
        self.server_prompts: list[MessageWithParts] = []
        self.local_prompts: list[PromptEntry] = []
        self._store = store
        self._edit = edit
        self._run_in_background = run_in_background
        self._show_note = show_note
        self._client: Client | None = None
        self._session_id = ""
        self._unsent_prompts: Sequence[PromptEntry] = ()
        self._drawn_rows: list[tuple[str, str]] = []

    def open_session(self, client: Client, session_id: str) -> None:
        """Show a session's queue: this process's prompts, or those left by an ended process,
        and the server's.
        """
        self._client, self._session_id = client, session_id
        self.server_prompts = []
        self.local_prompts = self._store.drafts.load_queue(session_id)
        self._show()
        self._run_in_background(self.reload())

    async def reload(self) -> None:
        """Ask the server which prompts wait; called after a prompt, a step, and a turn."""
        if self._client is None:
            return
        session_id = self._session_id
        # Without an answer nothing is shown: a list that may be out of date would offer
        # prompts that were read.
        try:
            messages = await self._client.call(SESSION_QUEUED, SessionId(session_id=session_id))
        except CodeloopError:
            messages = []
        # The tab may show another session by now.
        if session_id == self._session_id:
            self.server_prompts = messages
            self._show()

    def show_unsent(self, entries: Sequence[PromptEntry]) -> None:
        """Show the prompts that are sent when the lost server is back."""
        self._unsent_prompts = entries
        self._show()

    @property
    def has_prompts(self) -> bool:
        """Whether any prompt waits."""
        return self._editable_count > 0

    @property
    def _editable_count(self) -> int:
        """How many prompts, the first rows, can be taken back."""
        return len(self.server_prompts) + len(self.local_prompts)

    def add(self, entry: PromptEntry) -> None:
        """Queue a prompt until the turn is over."""
        self._replace_local([*self.local_prompts, entry])

    def pop_next(self) -> PromptEntry | None:
        """Remove and return the prompt to send next, after a turn."""
        if not self.local_prompts:
            return None
        entry = self.local_prompts[0]
        self._replace_local(self.local_prompts[1:])
        return entry

    def take_back(self, index: int = -1) -> bool:
        """Move a queued prompt (by default the last) back to the editor;
        return whether there was one.
        """
        count = self._editable_count
        if not count:
            return False
        position = index if index >= 0 else count - 1
        if position >= len(self.server_prompts):
            local_prompts = [*self.local_prompts]
            entry = local_prompts.pop(position - len(self.server_prompts))
            self._replace_local(local_prompts)
            self._edit(entry)
        else:
            self._run_in_background(self._withdraw_to_editor(self.server_prompts[position]))
        return True

    async def withdraw_unread(
        self, messages: Sequence[MessageWithParts], *, to_editor: bool
    ) -> None:
        """Withdraw the prompts that waited for a stopped turn, which will not answer them.

        They are put into the editor, or unless `to_editor` into the queue of this process. If
        another session is shown by then, they are put into the queue of their own session.
        """
        client = self._client
        if client is None or not messages:
            return
        session_id = messages[0].info.session_id
        entries: list[PromptEntry] = []
        for message in messages:
            # A prompt that can't be withdrawn stays in the conversation.
            with suppress(CodeloopError):
                await client.call(
                    MESSAGE_DELETE, MessageId(session_id=session_id, message_id=message.info.id)
                )
                entries.append(restore_entry(message))
        if entries and session_id != self._session_id:
            self._save(session_id, [*entries, *self._store.drafts.load_queue(session_id)])
        elif entries and to_editor:
            files = tuple(file for entry in entries for file in entry.files)
            self._edit(PromptEntry("\n\n".join(entry.text for entry in entries), files=files))
        elif entries:
            self._replace_local([*entries, *self.local_prompts])
        await self.reload()

    async def _withdraw_to_editor(self, message: MessageWithParts) -> None:
        if self._client is None:
            return
        try:
            ids = MessageId(session_id=message.info.session_id, message_id=message.info.id)
            await self._client.call(MESSAGE_DELETE, ids)
        except CodeloopError as error:
            self._show_note(f"The prompt can't be taken back any more: {error}")
        else:
            self._edit(restore_entry(message))
        await self.reload()

    def _replace_local(self, entries: list[PromptEntry]) -> None:
        """Replace the prompts that wait for the end of the turn, here and in their file."""
        self.local_prompts = entries
        self._save(self._session_id, entries)
        self._show()

    def _save(self, session_id: str, entries: list[PromptEntry]) -> None:
        """Write the queue of a session to its file; the user is told of a failure."""
        try:
            self._store.drafts.save_queue(session_id, entries)
        except OSError as error:
            self._show_note(
                f"The waiting prompts can't be stored in {self._store.folder}: {error.strerror or error}."
            )

    def _list_rows(self) -> list[tuple[str, str]]:
        return [
            *((_NEXT_STEP, restore_entry(message).text) for message in self.server_prompts),
            *(
                (_AFTER_TURN, ("! " if entry.mode == "shell" else "") + entry.text)
                for entry in self.local_prompts
            ),
            *((_WHEN_BACK, entry.text) for entry in self._unsent_prompts),
        ]

    def _show(self) -> None:
        if (rows := self._list_rows()) != self._drawn_rows:
            self._drawn_rows = rows
            self.display = bool(rows)
            request_layout(self)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the number of rows, at most `_MAX_ROWS`."""
        del container, viewport, width
        return min(len(self._drawn_rows), _MAX_ROWS)

    def on_click(self, event: events.Click) -> None:
        """Move the clicked prompt back to the editor."""
        offset = event.get_content_offset(self)
        if offset is not None and offset.y < self._editable_count:
            self.take_back(offset.y)

    def render_line(self, y: int) -> Strip:
        """Draw a row: when it takes effect, and its text."""
        base, cells = self.rich_style, self.content_size.width
        faint = find_faint_style(self, "queued--muted", base)
        rows = self._drawn_rows
        if y >= len(rows):
            return Strip.blank(cells, base)
        if y == _MAX_ROWS - 1 and len(rows) > _MAX_ROWS:
            return Strip([Segment(f"and {len(rows) - y} more", faint)]).adjust_cell_length(
                cells, base
            )
        when, text = rows[y]
        hint = "  ↑ edits" if y == self._editable_count - 1 and cells >= 60 else ""
        label = f"{when}  " if cells >= 40 else ""
        room = cells - cell_len(label) - cell_len(hint)
        words = Strip([Segment(one_line(text, room), base)]).adjust_cell_length(room, base)
        return Strip([Segment(label, faint), *words, Segment(hint, faint)]).adjust_cell_length(
            cells, base
        )


def restore_entry(message: MessageWithParts) -> PromptEntry:
    """Return the own text and files of a prompt of the conversation,
    to be edited and sent again.
    """
    text = "\n".join(
        part.text for part in message.parts if isinstance(part, TextPart) and not part.synthetic
    )
    files = tuple(
        FilePartInput(mime=part.mime, url=part.url, filename=part.filename, source=part.source)
        for part in message.parts
        if isinstance(part, FilePart)
    )
    return PromptEntry(text, "prompt", files)
