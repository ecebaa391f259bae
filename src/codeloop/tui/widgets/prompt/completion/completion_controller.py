"""Drives completion: updates the list above the editor, and inserts the chosen candidate."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from codeloop.schema.bounds.tui import PROMPT_DEBOUNCE
from codeloop.tui.widgets.prompt.completion.candidates import Candidates
from codeloop.tui.widgets.prompt.completion.completer import CompletionRow
from codeloop.tui.widgets.prompt.completion.completion_popup import CompletionPopup
from codeloop.tui.widgets.prompt.completion.trigger import Trigger, find_trigger
from codeloop.tui.widgets.prompt.history.prompt_store import PromptStore
from codeloop.tui.widgets.prompt.prompt_editor import PromptEditor


class CompletionController:
    """Completes the word at the cursor. `run_in_background` starts slow work,
    so that typing never waits.
    """

    def __init__(
        self,
        editor: PromptEditor,
        popup: CompletionPopup,
        candidates: Candidates,
        store: PromptStore,
        run_in_background: Callable[[Awaitable[None]], object],
    ) -> None:
        self._editor = editor
        self._popup = popup
        self._candidates = candidates
        self._store = store
        self._run_in_background = run_in_background
        self._trigger: Trigger | None = None
        """The text at the cursor that can be completed; None: there is none."""
        self._requested_trigger: Trigger | None = None
        """The trigger of the last search for a mention or load of an argument's values;
        None: none for this word yet.

        An answer for any other trigger is out of date.
        """
        self._is_searching = False
        """Whether a search for a mention has begun, and none has been answered since."""
        self._is_closed = False
        """Whether the user closed the list; it opens again for another word."""
        self._has_moved_cursor = False
        """Whether the user moved the cursor in the list, which then stays on its row."""
        self._inserts_first = False
        """Whether Tab was pressed before an answer came: then its first candidate is inserted."""

    def list_actions(self) -> dict[str, Callable[[], bool]]:
        """Return the actions of keys, by their id in `keys/prompt_bindings.py`."""
        return {
            "completion_enter": self._accept_with_enter,
            "completion_accept": self._accept_with_tab,
            "completion_previous": lambda: self._move_cursor(-1),
            "completion_next": lambda: self._move_cursor(1),
            "completion_close": self._close_list,
        }

    def update(self) -> None:
        """Find the trigger at the cursor, request its candidates,
        and show those that are known already.
        """
        buffer = self._editor.buffer
        trigger = None
        if (
            self._editor.mode == "prompt"
            and self._editor.is_writing
            and buffer.anchor is None
            and buffer.text
        ):
            trigger = find_trigger(buffer.text, buffer.cursor)
        before, self._trigger = self._trigger, trigger
        if trigger is not None:
            # Another word: nothing that was known about the last one holds.
            if before is None or (before.kind, before.start) != (trigger.kind, trigger.start):
                self._is_closed = self._has_moved_cursor = self._inserts_first = False
                self._requested_trigger = None
                self._candidates.clear()
                self._run_in_background(self._load_candidates(trigger))
            elif (trigger.query, trigger.arguments) != (before.query, before.arguments):
                self._has_moved_cursor = False
            if trigger.kind == "arguments" and trigger != self._requested_trigger:
                self._requested_trigger = trigger
                self._run_in_background(self._load_values(trigger))
            if trigger.kind == "mention" and (
                self._requested_trigger is None or self._requested_trigger.query != trigger.query
            ):
                self._requested_trigger, self._is_searching = trigger, True
                self._run_in_background(self._search(trigger))
        self._show_rows()

    def _show_rows(self) -> None:
        if self._trigger is None or self._is_closed:
            self._popup.show(())
            return
        rows, index = self._candidates.list_rows(self._trigger)
        if self._has_moved_cursor and self._popup.rows and self._popup.cursor >= 0:
            row = self._popup.rows[self._popup.cursor]
            # An answer that arrives must not move the cursor to another row.
            index = rows.index(row) if row in rows else 0
        self._popup.show(rows, index)

    async def _load_candidates(self, trigger: Trigger) -> None:
        await self._candidates.load(trigger)
        if self._trigger is not None and self._trigger.kind == trigger.kind:
            self._show_rows()

    async def _search(self, trigger: Trigger) -> None:
        # Debounced: of letters typed in a row only the last one starts a search.
        await asyncio.sleep(PROMPT_DEBOUNCE.seconds)
        if self._requested_trigger is not trigger:
            return
        await self._candidates.search(trigger.query)
        if self._requested_trigger is not trigger:
            return
        self._is_searching = False
        if self._trigger is not None and self._trigger.kind == "mention":
            self._show_rows()
            if self._inserts_first and self._popup.rows:
                self._insert(self._popup.rows[0])

    async def _load_values(self, trigger: Trigger, *, may_start_server: bool = False) -> None:
        """Load the values of the typed argument."""
        await asyncio.sleep(PROMPT_DEBOUNCE.seconds)
        if self._requested_trigger is trigger and self._candidates.has_completable_argument(
            trigger
        ):
            await self._candidates.load_values(trigger, may_start_server=may_start_server)
            if (
                self._requested_trigger is trigger
                and self._trigger is not None
                and self._trigger.kind == "arguments"
            ):
                self._show_rows()

    def _move_cursor(self, step: int) -> bool:
        if not self._popup.rows or (
            self._popup.cursor < 0 and self._popup.rows[0].kind != "argument"
        ):
            return False
        self._has_moved_cursor = True
        self._popup.move(step)
        return True

    def _close_list(self) -> bool:
        if not self._popup.rows:
            return False
        self._is_closed, self._inserts_first = True, False
        self._popup.show(())
        return True

    def _accept_with_tab(self) -> bool:
        """Insert the row under the cursor.

        Without one, load an argument's values, or have the first candidate of a
        running search inserted.
        """
        if self._popup.rows and self._popup.cursor >= 0:
            return self.accept_row(self._popup.cursor)
        if self._trigger is not None and self._trigger.kind == "arguments" and not self._is_closed:
            if self._popup.rows and self._popup.rows[0].kind == "argument":
                return self.accept_row(0)
            self._requested_trigger = self._trigger
            self._run_in_background(self._load_values(self._trigger, may_start_server=True))
            return True
        if (
            self._is_searching
            and self._trigger is not None
            and self._trigger.kind == "mention"
            and not self._is_closed
        ):
            self._inserts_first = True
            return True
        # While arguments are typed, Tab has no other meaning, such as to switch the agent.
        return self._trigger is not None and self._trigger.kind == "arguments"

    def _accept_with_enter(self) -> bool:
        """Insert the row under the cursor; return whether the key is used up,
        so that the prompt is not sent.

        It is sent if the row was already typed in full, or is a command without required arguments.
        """
        trigger, index = self._trigger, self._popup.cursor
        if trigger is None or not self._popup.rows or index < 0:
            return False
        row = self._popup.rows[index]
        if (
            not self._has_moved_cursor
            and self._editor.buffer.text[trigger.start : trigger.end] == row.text
        ):
            return False
        # Arguments in brackets are optional.
        command = next(
            (each for each in self._candidates.commands if f"/{each.name}" == row.text), None
        )
        self.accept_row(index)
        return command is None or bool(command.arguments and not command.arguments.startswith("["))

    def accept_row(self, index: int) -> bool:
        """Insert a row of the list. Return True: the key is used up."""
        self._insert(self._popup.rows[index])
        return True

    def _insert(self, row: CompletionRow) -> None:
        trigger, buffer = self._trigger, self._editor.buffer
        if trigger is None:
            return
        text = row.text
        if row.kind == "folder":
            # Its files are completed next, before the closing quote.
            text = text.removesuffix('"')
        elif not buffer.text[trigger.end : trigger.end + 1].isspace():
            text += " "
        buffer.replace(trigger.start, trigger.end, text)
        self._inserts_first = False
        if row.kind in {"file", "agent"}:
            # Without it, only the order of the next list is lost.
            with suppress(OSError):
                self._store.add_mention(row.label)
        self._editor.update()
