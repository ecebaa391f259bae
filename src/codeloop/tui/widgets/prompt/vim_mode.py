"""Switches the editor's vi mode, and copies from the editor to the clipboard."""

from codeloop.tui.editor.chips import expand_chips
from codeloop.tui.editor.vim.vim import Vim
from codeloop.tui.widgets.base import app_of
from codeloop.tui.widgets.prompt.editor import PromptEditor


def use_vim(editor: PromptEditor, *, is_wanted: bool) -> None:
    """Switch vi mode on or off."""
    if is_wanted != (editor.vim is not None):
        editor.vim = Vim(editor.buffer, editor.do, lambda text: copy_from(editor, text)) if is_wanted else None


def copy_from(editor: PromptEditor, text: str) -> bool:
    """Copy a piece of the editor's text to the clipboard, with expanded chips. Return True: the key is used up."""
    app_of(editor).copy_to_clipboard(expand_chips(editor.buffer.chips, text))
    return True
