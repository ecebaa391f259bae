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
    """Completes the word at the cursor. `spawn` runs slow work in the background, so that typing never waits."""

    def __init__(
        self,
        editor: PromptEditor,
        popup: CompletionPopup,
        candidates: Candidates,
        store: PromptStore,
        spawn: Callable[[Awaitable[None]], object],
    ) -> None:
        self._editor = editor
        self._popup = popup
        self._candidates = candidates
        self._store = store
        self._spawn = spawn
        self._trigger: Trigger | None = None
        """The text at the cursor that can be completed; None: there is none."""
        self._last_trigger: Trigger | None = None
        """The trigger whose candidates were requested last; an answer for any other is out of date."""
        self._is_waiting = False
        """Whether the answer for `_last_trigger` is still to come."""
        self._is_closed = False
        """Whether the user closed the list; it opens again for another word."""
        self._is_moved = False
        """Whether the user moved the cursor in the list, which then stays on its row."""
        self._takes_first = False
        """Whether Tab was pressed before an answer came: then its first candidate is inserted."""

    def actions(self) -> dict[str, Callable[[], bool]]:
        """Return the actions of keys, by their id in `keys/prompt_bindings.py`."""
        return {
            "completion_enter": self._enter,
            "completion_accept": self._accept,
            "completion_previous": lambda: self._move(-1),
            "completion_next": lambda: self._move(1),
            "completion_close": self._close,
        }

    def update(self) -> None:
        """Find the trigger at the cursor, request its candidates, and show those that are known already."""
        buffer = self._editor.buffer
        now = None
        if self._editor.mode == "prompt" and self._editor.is_writing and buffer.anchor is None and buffer.text:
            now = find_trigger(buffer.text, buffer.cursor)
        before, self._trigger = self._trigger, now
        if now is not None:
            if before is None or (before.kind, before.start) != (now.kind, now.start):
                self._is_closed = self._is_moved = self._takes_first = False
                self._last_trigger = None
                self._candidates.forget()
                self._spawn(self._load(now))
            elif (now.query, now.arguments) != (before.query, before.arguments):
                self._is_moved = False
            if now.kind == "arguments" and now != self._last_trigger:
                self._last_trigger = now
                self._spawn(self._complete(now))
            if now.kind == "mention" and (self._last_trigger is None or self._last_trigger.query != now.query):
                self._last_trigger, self._is_waiting = now, True
                self._spawn(self._search(now))
        self._show()

    def _show(self) -> None:
        if self._trigger is None or self._is_closed:
            self._popup.show(())
            return
        rows, index = self._candidates.rows(self._trigger)
        if self._is_moved and self._popup.rows and self._popup.cursor >= 0:
            row = self._popup.rows[self._popup.cursor]
            index = rows.index(row) if row in rows else 0
        self._popup.show(rows, index)

    async def _load(self, now: Trigger) -> None:
        await self._candidates.load(now)
        if self._trigger is not None and self._trigger.kind == now.kind:
            self._show()

    async def _search(self, now: Trigger) -> None:
        await asyncio.sleep(PROMPT_DEBOUNCE.seconds)
        if self._last_trigger is not now:
            return
        await self._candidates.search(now.query)
        if self._last_trigger is not now:
            return
        self._is_waiting = False
        if self._trigger is not None and self._trigger.kind == "mention":
            self._show()
            if self._takes_first and self._popup.rows:
                self._insert(self._popup.rows[0])

    async def _complete(self, now: Trigger, *, is_wanted: bool = False) -> None:
        """Load the values of the typed argument."""
        await asyncio.sleep(PROMPT_DEBOUNCE.seconds)
        if self._last_trigger is now and self._candidates.is_completed(now):
            await self._candidates.values(now, is_wanted=is_wanted)
            if self._last_trigger is now and self._trigger is not None and self._trigger.kind == "arguments":
                self._show()

    def _move(self, step: int) -> bool:
        if not self._popup.rows or (self._popup.cursor < 0 and self._popup.rows[0].kind != "argument"):
            return False
        self._is_moved = True
        self._popup.move(step)
        return True

    def _close(self) -> bool:
        if not self._popup.rows:
            return False
        self._is_closed, self._takes_first = True, False
        self._popup.show(())
        return True

    def _accept(self) -> bool:
        """Insert the row under the cursor.

        Without one, load an argument's values, or have the first candidate of a running search inserted.
        """
        if self._popup.rows and self._popup.cursor >= 0:
            return self.take(self._popup.cursor)
        if self._trigger is not None and self._trigger.kind == "arguments" and not self._is_closed:
            if self._popup.rows and self._popup.rows[0].kind == "argument":
                return self.take(0)
            self._last_trigger = self._trigger
            self._spawn(self._complete(self._trigger, is_wanted=True))
            return True
        if self._is_waiting and self._trigger is not None and self._trigger.kind == "mention" and not self._is_closed:
            self._takes_first = True
            return True
        return self._trigger is not None and self._trigger.kind == "arguments"

    def _enter(self) -> bool:
        """Insert the row under the cursor; return whether the key is used up, so that the prompt is not sent.

        It is sent if the row was already typed in full, or is a command without required arguments.
        """
        now, index = self._trigger, self._popup.cursor
        if now is None or not self._popup.rows or index < 0:
            return False
        row = self._popup.rows[index]
        if not self._is_moved and self._editor.buffer.text[now.start : now.end] == row.text:
            return False
        command = next((each for each in self._candidates.commands if f"/{each.name}" == row.text), None)
        self.take(index)
        return command is None or bool(command.arguments and not command.arguments.startswith("["))

    def take(self, index: int) -> bool:
        """Insert a row of the list."""
        self._insert(self._popup.rows[index])
        return True

    def _insert(self, row: CompletionRow) -> None:
        now, buffer = self._trigger, self._editor.buffer
        if now is None:
            return
        text = row.text
        if row.kind == "folder":
            text = text.removesuffix('"')  # its files are completed next, before the closing quote
        elif not buffer.text[now.end : now.end + 1].isspace():
            text += " "
        buffer.replace(now.start, now.end, text)
        self._takes_first = False
        if row.kind in {"file", "agent"}:
            with suppress(OSError):  # all that is lost is the order of the next list
                self._store.mention(row.label)
        self._editor.update()
