"""Puts earlier prompts into the editor: one after the other with the arrow keys,
or by search (ctrl+r).
"""

from collections.abc import Callable

from codeloop.kit.text.terminal_text import one_line
from codeloop.tui.editor.chips import Chip, expand_chips
from codeloop.tui.widgets.prompt.completion.completer import CompletionRow
from codeloop.tui.widgets.prompt.completion.completion_popup import CompletionPopup
from codeloop.tui.widgets.prompt.history.prompt_store import PromptStore
from codeloop.tui.widgets.prompt.history.stored_prompt import StoredPrompt
from codeloop.tui.widgets.prompt.prompt_editor import PromptEditor

SEARCH_STATUS, NO_MATCH_STATUS = "history", "nothing in the history fits"
_MAX_MATCHES = 50
"""Prompts that a search lists."""


class HistoryBrowser:
    """Puts earlier prompts into the editor. Edits of them are kept, like the draft,
    until a prompt is sent.
    """

    def __init__(self, editor: PromptEditor, popup: CompletionPopup, store: PromptStore) -> None:
        self.is_searching = False
        self._editor = editor
        self._popup = popup
        self._store = store
        self._history: list[StoredPrompt] = []
        self._steps_back = 0
        """How many prompts back the one in the editor is; 0: it is the draft."""
        self._edits: dict[int, StoredPrompt] = {}
        """The edited prompts that were left for another, by how many back they are."""
        self._matches: list[StoredPrompt] = []
        self._draft_before_search: StoredPrompt | None = None
        """The draft from before the search."""

    def list_actions(self) -> dict[str, Callable[[], bool]]:
        """Return the actions of keys, by their id in `keys/prompt_bindings.py`."""
        return {
            "history_previous": lambda: self._is_in_first_row() and self._step(1),
            "history_next": lambda: self._is_in_last_row() and self._step(-1),
            "history_search": self._search,
        }

    def reset(self) -> None:
        """Begin with the draft again, and forget edits of earlier prompts,
        after a prompt was sent.
        """
        self._steps_back = 0
        self._edits.clear()
        self.end_search()

    def _is_in_first_row(self) -> bool:
        """Return whether the cursor is in the first row, where `up` can't move it."""
        return self._editor.text_layout.locate(self._editor.buffer.cursor)[0] == 0

    def _is_in_last_row(self) -> bool:
        """Return whether the cursor is in the last row, where `down` can't move it."""
        layout = self._editor.text_layout
        return layout.locate(self._editor.buffer.cursor)[0] == layout.row_count - 1

    def _step(self, step: int) -> bool:
        """Go `step` prompts further back (1), or towards the draft (-1);
        return whether there is one.
        """
        if self.is_searching:
            return False
        # Read when browsing begins: prompts that other processes add meanwhile must
        # not shift the positions.
        if self._steps_back == 0:
            self._history = self._store.list_history()
        if not 0 <= self._steps_back + step <= len(self._history):
            return False
        self._edits[self._steps_back] = self._editor.stored_prompt
        self._steps_back += step
        prompt = self._edits.get(self._steps_back) or self._store.chip_contents.unpack(
            self._history[-self._steps_back]
        )
        self._editor.load(StoredPrompt(prompt.text, prompt.mode, prompt.chips))
        return True

    def _search(self) -> bool:
        """Search for the prompt's text; while the search is open, move to the next match."""
        if self.is_searching:
            if self._popup.rows:
                self._popup.move(1)
            return True
        self._draft_before_search = self._editor.stored_prompt
        self._history = self._store.list_history()
        self.is_searching = True
        self.update()
        return True

    def update(self) -> None:
        """Show the matching prompts."""
        query_text = self._editor.buffer.text.lower()
        words = query_text.split()
        matches: dict[str, StoredPrompt] = {}
        for prompt in reversed(self._history):
            text = expand_chips(_label_chips(prompt), prompt.text)
            if text not in matches and all(word in text.lower() for word in words):
                matches[text] = prompt
                if len(matches) == _MAX_MATCHES:
                    break
        self._matches = list(matches.values())
        rows = [
            CompletionRow("", "prompt", ("! " if each.mode == "shell" else "") + _join_lines(text))
            for text, each in matches.items()
        ]
        self._popup.show(rows)
        self._editor.status = SEARCH_STATUS if rows else NO_MATCH_STATUS
        self._editor.refresh()

    def accept(self, index: int) -> bool:
        """Put a match into the editor, without sending it; without one, the typed text stays.
        Return True: done.
        """
        prompt = (
            self._store.chip_contents.unpack(self._matches[max(index, 0)])
            if self._matches
            else None
        )
        self.end_search()
        if prompt is not None:
            self._editor.load(StoredPrompt(prompt.text, prompt.mode, prompt.chips))
        return True

    def cancel(self) -> bool:
        """Restore the draft from before the search. Return True: done."""
        before = self._draft_before_search
        self.end_search()
        if before is not None:
            self._editor.load(before)
        return True

    def end_search(self) -> None:
        """Close the list of matches."""
        if self.is_searching:
            self.is_searching = False
            self._matches = []
            self._popup.show(())
            self._editor.status = ""
            self._editor.refresh()


def _label_chips(prompt: StoredPrompt) -> dict[str, Chip]:
    # Searching needs no contents, which would have to be read from files.
    return {char: Chip(chip.label, chip.label) for char, chip in prompt.chips.items()}


def _join_lines(text: str) -> str:
    return one_line(" ⏎ ".join(line.strip() for line in text.splitlines() if line.strip()), 400)
