"""Edits the prompt's text in the editor from VISUAL or EDITOR."""

import asyncio
import os
import shlex
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

from textual.app import App, SuspendNotSupported

from codeloop.kit.child_process import ChildProcess
from codeloop.kit.desktop_programs import TERMINAL, make_desktop_launch
from codeloop.kit.remove_tree import remove_tree
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.wire import replace
from codeloop.tui.editor.chips import collapse_chips, escape_chips, expand_chips
from codeloop.tui.widgets.prompt.history.stored_prompt import StoredPrompt
from codeloop.tui.widgets.prompt.prompt_editor import PromptEditor


class EditorFailed(Exception):
    """The external editor could not be used; the message says why, and what to do. The prompt is as it was."""


def find_editor(environment: Mapping[str, str]) -> list[str]:
    """Return the editor with its arguments. Raises EditorFailed."""
    line = environment.get("VISUAL") or environment.get("EDITOR") or ""
    if not line.strip():
        raise EditorFailed("No editor is set. Set VISUAL or EDITOR, for example: export EDITOR=nano.")
    try:
        return shlex.split(line)
    except ValueError as error:
        raise EditorFailed(f"VISUAL or EDITOR can't be read as a command: {error}.") from error


async def edit_externally(editor: PromptEditor, app: App[None], show_note: Callable[[str], None]) -> None:
    """Edit the prompt in the external editor; the app is suspended meanwhile, the session's turn goes on."""
    prompt = editor.stored_prompt
    text: str | None = None
    with ExitStack() as stack:
        try:
            command = find_editor(os.environ)
            # Without a terminal there is nothing to lend.
            with suppress(SuspendNotSupported):
                stack.enter_context(app.suspend())
            # The turn goes on meanwhile: what it changes must not be drawn over the editor.
            stack.enter_context(app.batch_update())
            text = await run_editor(expand_chips(prompt.chips, prompt.text), command)
        # Caught within the stack: Textual's `suspend` does not restore the terminal when an error passes through it.
        except EditorFailed as error:
            show_note(str(error))
    app.refresh(layout=True)
    if text is not None:
        # Chips were written out for the editor: where their texts are unchanged, they become chips again.
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
            # Some editors take their configuration, which starts programs, from the folder that they start in.
            launch = make_desktop_launch((*command, str(path)), str(folder))
            process = ChildProcess(replace(launch, descriptors=TERMINAL))
        except OSError as error:
            raise EditorFailed(f"{one_line(command[0], 60)} can't be started: {error.strerror}.") from error
        code = await asyncio.shield(process.exited)
        if code != 0:
            raise EditorFailed(f"{one_line(command[0], 60)} ended with code {code}: the prompt is as it was.")
        return path.read_text(encoding="utf-8", errors="replace").removesuffix("\n")
    except OSError as error:
        raise EditorFailed(f"The edited text can't be read: {error.strerror}. The prompt is as it was.") from error
    finally:
        remove_tree(folder)
