"""The key bindings of the prompt: a table whose keys the user's `keybinds` can replace,
by the row's id.
"""

from collections.abc import Mapping

from msgspec import Struct

from codeloop.tui.keys.keymap import Keymap


class PromptBinding(Struct, frozen=True):
    """An action: its id, its default keys separated by commas, and its description for the help."""

    id: str
    keys: str
    description: str


PROMPT_BINDINGS: tuple[PromptBinding, ...] = (
    PromptBinding(
        "completion_enter", "enter", "Take the chosen completion; a command that needs no more runs"
    ),
    PromptBinding("completion_accept", "tab", "Take the chosen completion"),
    PromptBinding("completion_previous", "up,ctrl+p", "Choose the completion above"),
    PromptBinding("completion_next", "down,ctrl+n", "Choose the completion below"),
    PromptBinding("completion_close", "escape", "Close the completions"),
    PromptBinding("shell_leave", "escape", "Leave shell mode"),
    PromptBinding("shell_erase", "backspace", "Leave shell mode, at its start"),
    PromptBinding("input_submit", "enter", "Send the prompt"),
    PromptBinding(
        "input_queue", "ctrl+s", "Send the prompt the other way: after the turn, or into it"
    ),
    PromptBinding("input_newline", "shift+enter,ctrl+enter,alt+enter,ctrl+j", "Begin a new line"),
    PromptBinding("input_clear", "ctrl+c", "Clear the prompt, or copy what is selected"),
    PromptBinding("input_paste", "ctrl+v", "Paste, images too"),
    PromptBinding("history_search", "ctrl+r", "Search the history"),
    PromptBinding("queue_edit", "up", "Take back the last waiting prompt, from an empty one"),
    PromptBinding("history_previous", "up", "The prompt before, from the first line"),
    PromptBinding("history_next", "down", "The prompt after, from the last line"),
    PromptBinding("editor_open", "<leader>e", "Change the prompt in $VISUAL or $EDITOR"),
    PromptBinding("stash_push", "alt+s", "Stash the prompt"),
    PromptBinding("stash_pop", "alt+shift+s", "Restore the latest stashed prompt"),
    PromptBinding("input_undo", "ctrl+-,ctrl+_,super+z", "Undo"),
    PromptBinding("input_redo", "ctrl+.,alt+r,super+shift+z", "Redo"),
    PromptBinding("input_move_left", "left,ctrl+b", "Left"),
    PromptBinding("input_move_right", "right,ctrl+f", "Right"),
    PromptBinding("input_move_up", "up", "Up"),
    PromptBinding("input_move_down", "down", "Down"),
    PromptBinding("input_select_left", "shift+left", "Select to the left"),
    PromptBinding("input_select_right", "shift+right", "Select to the right"),
    PromptBinding("input_select_up", "shift+up", "Select upwards"),
    PromptBinding("input_select_down", "shift+down", "Select downwards"),
    PromptBinding("input_line_home", "ctrl+a,home", "To the start of the line"),
    PromptBinding("input_line_end", "ctrl+e,end", "To the end of the line"),
    PromptBinding(
        "input_select_line_home", "ctrl+shift+a,shift+home", "Select to the start of the line"
    ),
    PromptBinding(
        "input_select_line_end", "ctrl+shift+e,shift+end", "Select to the end of the line"
    ),
    PromptBinding("input_visual_line_home", "alt+a", "To the start of the row"),
    PromptBinding("input_visual_line_end", "alt+e", "To the end of the row"),
    PromptBinding("input_select_visual_line_home", "alt+shift+a", "Select to the start of the row"),
    PromptBinding("input_select_visual_line_end", "alt+shift+e", "Select to the end of the row"),
    PromptBinding("input_buffer_home", "ctrl+home", "To the start of the prompt"),
    PromptBinding("input_buffer_end", "ctrl+end", "To the end of the prompt"),
    PromptBinding(
        "input_select_buffer_home", "ctrl+shift+home", "Select to the start of the prompt"
    ),
    PromptBinding("input_select_buffer_end", "ctrl+shift+end", "Select to the end of the prompt"),
    PromptBinding("input_select_all", "super+a", "Select all"),
    PromptBinding("input_delete_line", "ctrl+shift+d", "Delete the line"),
    PromptBinding("input_delete_to_line_end", "ctrl+k", "Cut to the end of the line"),
    PromptBinding("input_delete_to_line_start", "ctrl+u", "Cut to the start of the line"),
    PromptBinding("input_yank", "ctrl+y", "Put back what was cut last"),
    PromptBinding("input_backspace", "backspace,shift+backspace,ctrl+h", "Delete to the left"),
    PromptBinding("input_delete", "ctrl+d,delete,shift+delete", "Delete to the right"),
    PromptBinding("input_word_forward", "alt+f,alt+right,ctrl+right", "A word to the right"),
    PromptBinding("input_word_backward", "alt+b,alt+left,ctrl+left", "A word to the left"),
    PromptBinding(
        "input_select_word_forward", "alt+shift+f,alt+shift+right,ctrl+shift+right", "Select a word"
    ),
    PromptBinding(
        "input_select_word_backward",
        "alt+shift+b,alt+shift+left,ctrl+shift+left",
        "Select a word back",
    ),
    PromptBinding(
        "input_delete_word_forward", "alt+d,alt+delete,ctrl+delete", "Cut the word to the right"
    ),
    PromptBinding(
        "input_delete_word_backward",
        "ctrl+w,ctrl+backspace,alt+backspace",
        "Cut the word to the left",
    ),
)
"""The bindings, in order: of several actions on one key, the first that has an effect is used.

`editor_open` and the stash's rows are commands as well,
whose keys then work also while the prompt has no focus.
"""


def map_prompt_keys(custom: Mapping[str, object]) -> dict[str, tuple[str, ...]]:
    """Return the ids of each key's actions; `custom`: the user's `keybinds`.

    Keys after the leader are in it under names that no key event has: the dispatcher handles those.
    """
    # A keymap of its own: here several actions share a key,
    # and its problems are found by `keybind_problems.py`.
    keys = Keymap({row.id: row.keys for row in PROMPT_BINDINGS}, custom).keys
    bindings: dict[str, tuple[str, ...]] = {}
    for action, names in keys.items():
        for name in names:
            bindings[name] = (*bindings.get(name, ()), action)
    return bindings
