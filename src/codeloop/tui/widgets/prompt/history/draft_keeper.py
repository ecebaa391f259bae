"""Keeps what is in the editor: saves the draft while it is typed, for after a crash,
and moves prompts to the stash.
"""

from collections.abc import Callable

from codeloop.kit.text.terminal_text import one_line
from codeloop.tui.editor.chips import adopt_chips
from codeloop.tui.widgets.prompt.history.prompt_store import PromptStore
from codeloop.tui.widgets.prompt.history.stored_prompt import StoredPrompt
from codeloop.tui.widgets.prompt.prompt_editor import PromptEditor

NEW_SESSION = "new"
"""The key of the draft of a session that does not exist yet."""
_EMPTY_PROMPT = StoredPrompt("")
RESTORE_NOTE = "What you were typing when the program ended is back."


class DraftKeeper:
    """Keeps the draft of the shown session in a file.

    `call_later` calls a function after a short delay; `show_note` shows a message.
    """

    def __init__(
        self,
        editor: PromptEditor,
        store: PromptStore,
        call_later: Callable[[Callable[[], None]], object],
        show_note: Callable[[str], None],
    ) -> None:
        self.session: str = NEW_SESSION
        """The id of the shown session, or NEW_SESSION."""
        self._editor = editor
        self._store = store
        self._call_later = call_later
        self._show_note = show_note
        self._written_draft = _EMPTY_PROMPT
        """The draft in the file."""
        self._initial_draft = _EMPTY_PROMPT
        """The draft that was in the editor when the session was shown."""
        self._is_write_scheduled = False
        self._has_failed = False
        """Whether writing has failed: the user is told only once."""

    def list_actions(self) -> dict[str, Callable[[], bool]]:
        """Return the actions of keys, by their id in `keys/prompt_bindings.py`."""
        return {"stash_push": self.push_stash, "stash_pop": self.pop_stash}

    def schedule_write(self) -> None:
        """Schedule writing of the draft."""
        if not self._is_write_scheduled:
            self._is_write_scheduled = True
            self._call_later(self.write)

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
                self._show_note(
                    f"Your draft can't be stored in {self._store.folder}: {error.strerror or error}."
                )
            self._has_failed = True

    def switch_session(self, session: str) -> None:
        """Save this session's draft, and show another session's.

        Text typed before a session existed (while one is opened at the start) is carried over.
        """
        prompt = self._editor.stored_prompt
        is_edited = (prompt.text, prompt.mode) != (
            self._initial_draft.text,
            self._initial_draft.mode,
        )
        is_carried = is_edited and session != self.session == NEW_SESSION
        if is_carried:
            # The text moves on to the other session, so the draft of the new session is as it was.
            self._editor.load(self._initial_draft)
        self.write()
        self.session = session
        was_abandoned = self._store.drafts.adopt(session)
        draft = self._store.drafts.load(session)
        self._written_draft = _EMPTY_PROMPT
        self._initial_draft = draft or _EMPTY_PROMPT
        self._editor.load(self._initial_draft)
        if was_abandoned and draft is not None:
            self._show_note(RESTORE_NOTE)
        if is_carried:
            # The session may have a draft of its own, which goes to the stash.
            self.push_stash()
            self._editor.load(prompt)

    def adopt_session(self, session: str) -> None:
        """Keep the draft under the id of the session that was just created."""
        if session != self.session:
            try:
                self._store.drafts.save(self.session, None)
            except OSError:
                self._has_failed = True
            self.session, self._written_draft = session, _EMPTY_PROMPT
            self.write()

    def push_stash(self) -> bool:
        """Push the draft onto the stash; return whether there is one."""
        prompt = self._editor.stored_prompt
        if not prompt.text.strip():
            return False
        if self._stash(prompt):
            self._editor.load(_EMPTY_PROMPT)
        return True

    def pop_stash(self, index: int = -1) -> bool:
        """Pop a prompt from the stash; the current draft is stashed instead.
        Return True: the key is used up.
        """
        try:
            prompt = self._store.pop_stash(index)
        except OSError as error:
            self._show_note(
                f"The stashed prompt can't be taken from {self._store.folder}: {error.strerror or error}."
            )
            return True
        if prompt is None:
            self._show_note("No prompt is stashed.")
            return True
        self.put_prompt(StoredPrompt(prompt.text, prompt.mode, prompt.chips))
        return True

    def put_prompt(self, prompt: StoredPrompt) -> None:
        """Put a prompt into the editor. The draft is stashed, or if that fails,
        follows the prompt.
        """
        self.push_stash()
        if self._editor.buffer.text.strip():
            self._insert_before(prompt)
        else:
            self._editor.load(prompt)

    def restore_unsent(self, prompt: StoredPrompt) -> None:
        """Put a prompt that could not be sent back into the editor;
        if there is a draft, the prompt is stashed.
        """
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
            self._store.push_stash(prompt)
        except OSError as error:
            self._show_note(
                f"The prompt can't be stashed in {self._store.folder}: {error.strerror or error}."
            )
            return False
        self._show_note(f"Stashed: {one_line(prompt.text, 40)}")
        return True
