"""Saves the draft while it is typed, so that it survives a crash or a closed terminal; and handles the stash."""

from collections.abc import Callable

from codeloop.kit.terminal_text import one_line
from codeloop.tui.editor.chips import adopt_chips
from codeloop.tui.widgets.prompt.history.prompt_store import PromptStore
from codeloop.tui.widgets.prompt.history.stored_prompt import StoredPrompt
from codeloop.tui.widgets.prompt.prompt_editor import PromptEditor

NEW_SESSION_KEY = "new"
"""The key of the draft of a session that does not exist yet."""
_EMPTY = StoredPrompt("")
RESTORE_NOTE = "What you were typing when the program ended is back."


class DraftKeeper:
    """Keeps the draft of the shown session in a file.

    `later` calls a function after a short delay; `note` shows a message.
    """

    def __init__(
        self,
        editor: PromptEditor,
        store: PromptStore,
        later: Callable[[Callable[[], None]], object],
        note: Callable[[str], None],
    ) -> None:
        self.session: str = NEW_SESSION_KEY
        """The id of the shown session, or NEW_SESSION_KEY."""
        self._editor = editor
        self._store = store
        self._later = later
        self._note = note
        self._written_draft = _EMPTY
        """The draft in the file."""
        self._initial_draft = _EMPTY
        """The draft that was in the editor when the session was shown."""
        self._is_write_scheduled = False
        self._has_failed = False
        """Whether writing has failed: the user is told only once."""

    def actions(self) -> dict[str, Callable[[], bool]]:
        """Return the keys' actions, by name."""
        return {"stash_push": self.push, "stash_pop": self.pop}

    def schedule_write(self) -> None:
        """Schedule writing of the draft."""
        if not self._is_write_scheduled:
            self._is_write_scheduled = True
            self._later(self.write)

    def write(self) -> None:
        """Write the draft now, if it changed."""
        self._is_write_scheduled = False
        prompt = self._editor.stored_prompt
        if prompt == self._written_draft:
            return
        try:
            self._store.drafts.save(self.session, prompt)
            self._written_draft = prompt
        except OSError as error:
            if not self._has_failed:
                self._note(f"Your draft can't be stored in {self._store.folder}: {error.strerror or error}.")
            self._has_failed = True

    def enter(self, session: str) -> None:
        """Save this session's draft, and show another session's.

        Text typed before a session existed (while one is opened at the start) is carried over.
        """
        prompt = self._editor.stored_prompt
        is_new = (prompt.text, prompt.mode) != (self._initial_draft.text, self._initial_draft.mode)
        is_carried = is_new and session != self.session == NEW_SESSION_KEY
        if is_carried:
            self._editor.load(self._initial_draft)
        self.write()
        self.session = session
        was_left = self._store.drafts.adopt(session)
        draft = self._store.drafts.load(session)
        self._written_draft = _EMPTY
        self._initial_draft = draft or _EMPTY
        self._editor.load(self._initial_draft)
        if was_left and draft is not None:
            self._note(RESTORE_NOTE)
        if is_carried:
            self.push()
            self._editor.load(prompt)

    def rename(self, session: str) -> None:
        """Keep the draft under the id of the session that was just created."""
        if session != self.session:
            try:
                self._store.drafts.save(self.session, None)
            except OSError:
                self._has_failed = True
            self.session, self._written_draft = session, _EMPTY
            self.write()

    def push(self) -> bool:
        """Push the draft onto the stash."""
        prompt = self._editor.stored_prompt
        if not prompt.text.strip():
            return False
        if self._stash(prompt):
            self._editor.load(_EMPTY)
        return True

    def pop(self, index: int = -1) -> bool:
        """Pop a prompt from the stash; the current draft is stashed instead."""
        try:
            prompt = self._store.pop(index)
        except OSError as error:
            self._note(f"The stashed prompt can't be taken from {self._store.folder}: {error.strerror or error}.")
            return True
        if prompt is None:
            self._note("No prompt is stashed.")
            return True
        self.put(StoredPrompt(prompt.text, prompt.mode, prompt.chips))
        return True

    def put(self, prompt: StoredPrompt) -> None:
        """Put a prompt into the editor. The draft is stashed, or if that fails, follows the prompt."""
        self.push()
        if self._editor.buffer.text.strip():
            self._insert_before(prompt)
        else:
            self._editor.load(prompt)

    def give_back(self, prompt: StoredPrompt) -> None:
        """Put a prompt that could not be sent back into the editor; if there is a draft, the prompt is stashed."""
        if not self._editor.buffer.text.strip():
            self._editor.load(prompt)
        elif not self._stash(prompt):
            self._insert_before(prompt)

    def _insert_before(self, prompt: StoredPrompt) -> None:
        """Put a prompt before the draft, on a line of its own."""
        buffer = self._editor.buffer
        buffer.replace(0, 0, adopt_chips(buffer.chips, prompt.text, prompt.chips) + "\n")
        self._editor.update()

    def _stash(self, prompt: StoredPrompt) -> bool:
        """Stash a prompt; return whether it was stored."""
        try:
            self._store.push(prompt)
        except OSError as error:
            self._note(f"The prompt can't be stashed in {self._store.folder}: {error.strerror or error}.")
            return False
        self._note(f"Stashed: {one_line(prompt.text, 40)}")
        return True
