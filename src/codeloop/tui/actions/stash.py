"""Commands on the draft of a prompt: edit it in the user's editor, and stash it."""

from codeloop.tui.actions.show_dialog import show_dialog
from codeloop.tui.dialogs.stash import create_stash_picker
from codeloop.tui.ui import Ui


async def edit_prompt(ui: Ui, _words: str) -> None:
    """Change the prompt in the user's editor."""
    ui.tab.prompt.run("editor_open")


async def push_stash(ui: Ui, _words: str) -> None:
    """Push the prompt onto the stash."""
    if not ui.tab.prompt.run("stash_push"):
        ui.notify("There is nothing to stash: the prompt is empty.")


async def pop_stash(ui: Ui, _words: str) -> None:
    """Pop the latest prompt from the stash."""
    ui.tab.prompt.run("stash_pop")


async def choose_from_stash(ui: Ui, _words: str) -> None:
    """Choose among the stashed prompts."""
    prompt = ui.tab.prompt
    index = await show_dialog(ui, create_stash_picker(prompt.store, lambda: ui.appearance.styles))
    if index is not None:
        prompt.draft_keeper.pop_stash(index)
