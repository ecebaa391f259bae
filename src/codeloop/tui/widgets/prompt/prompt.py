"""The prompt widget: connects the editor with completion, history, drafts, pastes and sending."""

import asyncio
import os
import shlex
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from time import monotonic

from textual import on
from textual.app import App, ComposeResult, SuspendNotSupported

from codeloop.client.client import Client
from codeloop.kit.child_process import ChildProcess
from codeloop.kit.desktop_programs import TERMINAL, make_desktop_launch
from codeloop.kit.remove_tree import remove_tree
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.bounds.tui import PROMPT_DRAFT
from codeloop.schema.wire import replace
from codeloop.tui.editor.chips import collapse_chips, escape_chips, expand_chips
from codeloop.tui.editor.vim.grammar import SCROLL_COMMANDS
from codeloop.tui.keys.prompt_bindings import map_prompt_keys
from codeloop.tui.terminal.input.key_parser import register_keys
from codeloop.tui.widgets.base_widgets import EmptyWidget, get_app
from codeloop.tui.widgets.prompt.completion.candidates import Candidates
from codeloop.tui.widgets.prompt.completion.completer import Completer
from codeloop.tui.widgets.prompt.completion.completion_controller import CompletionController
from codeloop.tui.widgets.prompt.completion.completion_popup import CompletionPopup
from codeloop.tui.widgets.prompt.history.draft_keeper import NEW_SESSION, DraftKeeper
from codeloop.tui.widgets.prompt.history.history_browser import HistoryBrowser
from codeloop.tui.widgets.prompt.history.prompt_store import PromptStore
from codeloop.tui.widgets.prompt.history.stored_prompt import StoredPrompt
from codeloop.tui.widgets.prompt.paster import Paster
from codeloop.tui.widgets.prompt.prompt_editor import PromptEditor, copy_text, set_vim_mode
from codeloop.tui.widgets.prompt.prompt_entry import Delivery, PromptEntry
from codeloop.tui.widgets.prompt.prompt_messages import (
    CommandPressed,
    EmptySubmitted,
    PromptEmptied,
    PromptSlashCommand,
    PromptSubmitted,
    PromptTyped,
)
from codeloop.tui.widgets.prompt.prompt_preparer import (
    PromptPreparer,
    SlashCall,
    UnknownCommand,
    to_stored_prompt,
)
from codeloop.tui.widgets.prompt.prompt_settings import PromptSettings
from codeloop.tui.widgets.prompt.queued_prompts import QueuedPrompts


class EditorFailed(Exception):
    """The external editor could not be used; the message says why, and what to do.
    The prompt is as it was.
    """


def _find_editor(environment: Mapping[str, str]) -> list[str]:
    """Return the editor with its arguments. Raises EditorFailed."""
    line = environment.get("VISUAL") or environment.get("EDITOR") or ""
    if not line.strip():
        raise EditorFailed(
            "No editor is set. Set VISUAL or EDITOR, for example: export EDITOR=nano."
        )
    try:
        return shlex.split(line)
    except ValueError as error:
        raise EditorFailed(f"VISUAL or EDITOR can't be read as a command: {error}.") from error


async def _edit_externally(
    editor: PromptEditor, app: App[None], show_note: Callable[[str], None]
) -> None:
    """Edit the prompt in the external editor; the app is suspended meanwhile,
    the session's turn goes on.
    """
    prompt = editor.stored_prompt
    text: str | None = None
    with ExitStack() as stack:
        try:
            command = _find_editor(os.environ)
            # Without a terminal there is nothing to lend.
            with suppress(SuspendNotSupported):
                stack.enter_context(app.suspend())
            # The turn goes on meanwhile: what it changes must not be drawn over the editor.
            stack.enter_context(app.batch_update())
            text = await run_editor(expand_chips(prompt.chips, prompt.text), command)
        # Caught within the stack: Textual's `suspend` does not restore the terminal when
        # an error passes through it.
        except EditorFailed as error:
            show_note(str(error))
    app.refresh(layout=True)
    if text is not None:
        # Chips were written out for the editor: where their texts are unchanged,
        # they become chips again.
        collapsed_text = collapse_chips(prompt.chips, escape_chips(prompt.chips, text))
        editor.load(StoredPrompt(collapsed_text, prompt.mode, prompt.chips))


async def run_editor(text: str, command: list[str]) -> str:
    """Run the editor on this process's terminal and return the edited text. Raises EditorFailed.

    A final line feed is dropped: most editors add one.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix="prompt-"))
    except OSError as error:
        raise EditorFailed(
            f"No temporary file can be made: {error.strerror}. Set TMPDIR to a folder that can be written."
        ) from error
    # The text may hold secrets: the folder is readable by the user only, as `mkdtemp` makes it.
    path = folder / "prompt.md"
    try:
        path.write_text(text, encoding="utf-8", errors="replace", newline="\n")
        try:
            # Some editors take their configuration, which starts programs,
            # from the folder that they start in.
            launch = make_desktop_launch((*command, str(path)), str(folder))
            process = ChildProcess(replace(launch, descriptors=TERMINAL))
        except OSError as error:
            raise EditorFailed(
                f"{one_line(command[0], 60)} can't be started: {error.strerror}."
            ) from error
        code = await asyncio.shield(process.exited)
        if code != 0:
            raise EditorFailed(
                f"{one_line(command[0], 60)} ended with code {code}: the prompt is as it was."
            )
        return path.read_text(encoding="utf-8", errors="replace").removesuffix("\n")
    except OSError as error:
        raise EditorFailed(
            f"The edited text can't be read: {error.strerror}. The prompt is as it was."
        ) from error
    finally:
        remove_tree(folder)


class PromptInput(EmptyWidget):
    """The prompt: an editor, with the queued prompts and the completions above it."""

    command_submitted_at: float | None = None
    """When a command was submitted that has not started yet (monotonic seconds)."""
    DEFAULT_CSS = "PromptInput { height: auto; width: 1fr; layout: vertical; }"

    def __init__(
        self, completer: Completer, store: PromptStore, settings: PromptSettings | None = None
    ) -> None:
        super().__init__()
        self.settings = settings or PromptSettings()
        self.store = store
        self.editor = PromptEditor(
            # Without such an action, `bool()` returns False: it had no effect.
            map_prompt_keys(self.settings.keys),
            lambda name: self._actions.get(name, bool)(),
            self._on_change,
        )
        self.editor.placeholder = self.settings.placeholder
        set_vim_mode(self.editor, is_wanted=self.settings.vim)
        self._popup = CompletionPopup()
        self.queue = QueuedPrompts(store, self.set_entry, self._run_in_background, self._show_note)
        self._completions = CompletionController(
            self.editor, self._popup, Candidates(completer, store), store, self._run_in_background
        )
        self._history = HistoryBrowser(self.editor, self._popup, store)
        self.draft_keeper = DraftKeeper(
            self.editor,
            store,
            lambda call: self.set_timer(PROMPT_DRAFT.seconds, call),
            self._show_note,
        )
        self._preparer = PromptPreparer(completer, self._show_note)
        self._paster = Paster(
            self.editor,
            self.settings,
            self._run_in_background,
            self._show_note,
            lambda: get_app(self).clipboard,
        )
        self.editor.insert_paste = self._paster.paste
        self._actions = self._list_actions()

    def _list_actions(self) -> dict[str, Callable[[], bool]]:
        """Return the actions that are not edits, by id of `keys/prompt_bindings.py`;
        each returns whether it acted.
        """
        completing = self._completions.list_actions()
        searching: dict[str, Callable[[], bool]] = {
            "completion_enter": lambda: self._history.accept(self._popup.cursor),
            "completion_accept": lambda: self._history.accept(self._popup.cursor),
            "completion_close": self._history.cancel,
        }

        # The history search shows its matches in the list of completions,
        # and so takes over the keys of that list.
        def choose_action(name: str) -> Callable[[], bool]:
            """Return an action that acts on the history search while that is open,
            else on the completions.
            """
            return lambda: (
                searching if self._history.is_searching and name in searching else completing
            )[name]()

        def request_help() -> bool:
            self.command_submitted_at = monotonic()
            return self.post_message(CommandPressed("help"))

        return {
            **{name: choose_action(name) for name in completing},
            **self._history.list_actions(),
            **self.draft_keeper.list_actions(),
            "input_submit": lambda: self.submit(self.settings.delivery),
            "input_queue": lambda: self.submit(
                "queue" if self.settings.delivery == "steer" else "steer"
            ),
            "input_clear": self._clear_or_copy,
            "editor_open": lambda: self._run_in_background(
                _edit_externally(self.editor, get_app(self), self._show_note)
            ),
            "input_paste": self._paster.paste_clipboard,
            "queue_edit": lambda: not self.editor.buffer.text and self.queue.take_back(),
            **{
                name: lambda name=name: self.post_message(CommandPressed(name))
                for name in SCROLL_COMMANDS.values()
            },
            "help": request_help,
            "shell_leave": self._leave_shell,
            "shell_erase": lambda: self._leave_shell(at_start=True),
        }

    def compose(self) -> ComposeResult:
        """Yield the queued prompts, the completions, and the editor."""
        # Keys such as shift+enter are sent in sequences that Textual does not know.
        register_keys()
        yield self.queue
        yield self._popup
        yield self.editor

    def on_mount(self) -> None:
        """Restore the draft of a new session."""
        self.draft_keeper.switch_session(NEW_SESSION)

    def show_session(self, client: Client, session_id: str, *, is_new: bool) -> None:
        """Switch to a session: with its draft, or for one just created, keeping the content."""
        if is_new:
            self.draft_keeper.adopt_session(session_id)
        else:
            self.draft_keeper.switch_session(session_id)
        self.queue.open_session(client, session_id)

    def on_unmount(self) -> None:
        """Save the draft."""
        self.draft_keeper.write()

    def focus(self, scroll_visible: bool = True):
        """Focus the editor."""
        self.editor.focus(scroll_visible)
        return self

    @property
    def entry(self) -> PromptEntry:
        """The content with expanded chips; files and agents are found when it is sent."""
        prompt = self.editor.stored_prompt
        return PromptEntry(expand_chips(prompt.chips, prompt.text), prompt.mode)

    def set_entry(self, entry: PromptEntry, *, is_undone: bool = False) -> None:
        """Put a sent or queued prompt into the editor; the draft is stashed.

        `is_undone`: the prompt replaces the content, and a `/` typed next replaces the prompt: the
        user may go on with another `/undo`.
        """
        if is_undone:
            self.editor.load(to_stored_prompt(entry))
        else:
            self.draft_keeper.put_prompt(to_stored_prompt(entry))
        self.editor.buffer.restored_prompt = self.editor.buffer.text if is_undone else None

    def insert(self, text: str) -> None:
        """Insert a text at the cursor, as if it were pasted."""
        self._paster.paste(text)

    def clear(self) -> None:
        """Empty the prompt."""
        self.editor.load(StoredPrompt(""))

    def run(self, action: str) -> bool:
        """Run an action of `keys/prompt_bindings.py`, as its key does;
        return whether it had an effect.
        """
        return self.editor.run_key_action(action)

    def submit(self, delivery: Delivery) -> bool:
        """Submit the content; after a final backslash, begin a new line instead.
        Return True: the key is used up.
        """
        buffer, prompt = self.editor.buffer, self.editor.stored_prompt
        if (
            prompt.text.endswith("\\")
            and buffer.cursor == len(prompt.text)
            and prompt.mode == "prompt"
        ):
            buffer.replace(buffer.cursor - 1, buffer.cursor, "\n")
            self.editor.update()
            return True
        if not expand_chips(prompt.chips, prompt.text).strip():
            if self.queue.has_prompts:
                self.post_message(EmptySubmitted())
            return True
        try:
            self.store.add_to_history(StoredPrompt(prompt.text, prompt.mode, prompt.chips))
        except OSError as error:
            self._show_note(
                f"The history can't be written in {self.store.folder}: {error.strerror or error}."
            )
        self._history.reset()
        if self.editor.vim is not None:
            self.editor.vim.reset()
        # Emptied, in the file too, before the prompt is prepared: keys typed
        # meanwhile begin the next one.
        self.clear()
        self.draft_keeper.write()
        self.command_submitted_at = monotonic() if prompt.text.startswith("/") else None
        self._run_in_background(self._send(prompt, delivery))
        return True

    async def _send(self, prompt: StoredPrompt, delivery: Delivery) -> None:
        try:
            result = await self._preparer.prepare(prompt)
        except UnknownCommand as error:
            self.command_submitted_at = None
            self._show_note(str(error))
            self.draft_keeper.restore_unsent(prompt)
            return
        if isinstance(result, SlashCall):
            self.post_message(PromptSlashCommand(result.name, result.words, result.files))
        else:
            self.command_submitted_at = None
            self.post_message(PromptSubmitted(result, delivery))

    def _on_change(self) -> None:
        if self._history.is_searching:
            self._history.update()
        else:
            self._completions.update()
        self.draft_keeper.schedule_write()
        text = self.editor.buffer.text
        # A command may be typed again as the second press of its key.
        if text and not text.startswith("/"):
            self.post_message(PromptTyped())
        elif not text and self.editor.mode == "prompt":
            self.post_message(PromptEmptied())

    def _clear_or_copy(self) -> bool:
        if self._history.is_searching:
            return self._history.cancel()
        buffer = self.editor.buffer
        start, end = self.editor.selection
        if start < end:
            return copy_text(self.editor, buffer.text[start:end])
        if not buffer.text and self.editor.mode == "prompt":
            return False
        self.clear()
        return True

    def _leave_shell(self, *, at_start: bool = False) -> bool:
        if self.editor.mode != "shell" or (at_start and self.editor.buffer.cursor):
            return False
        self.editor.switch_mode("prompt")
        return True

    @on(CompletionPopup.Picked)
    def _accept_row(self, event: CompletionPopup.Picked) -> None:
        if self._history.is_searching:
            self._history.accept(event.index)
        else:
            self._completions.accept_row(event.index)

    def _run_in_background(self, work: Awaitable[None]) -> bool:
        self.run_worker(work, exit_on_error=True)
        return True

    def _show_note(self, text: str) -> None:
        self.notify(text, markup=False)
