"""What keys do in the prompt: rows that a person's `keybinds` replace by their id."""

from collections.abc import Mapping

from msgspec import Struct


class PromptBinding(Struct, frozen=True):
    """An action, its default keys with commas between them, and what it does, for the help."""

    id: str
    keys: str
    text: str


BINDINGS: tuple[PromptBinding, ...] = (
    PromptBinding("completion_enter", "enter", "Take the chosen completion; a command without arguments runs"),
    PromptBinding("completion_accept", "tab", "Take the chosen completion"),
    PromptBinding("completion_previous", "up,ctrl+p", "Choose the completion above"),
    PromptBinding("completion_next", "down,ctrl+n", "Choose the completion below"),
    PromptBinding("completion_close", "escape", "Close the completions"),
    PromptBinding("shell_leave", "escape,backspace", "Leave shell mode"),
    PromptBinding("input_submit", "enter", "Send the prompt"),
    PromptBinding("input_queue", "ctrl+s", "Send the prompt the other way: after the turn, or into it"),
    PromptBinding("input_newline", "shift+enter,ctrl+enter,alt+enter,ctrl+j", "Begin a new line"),
    PromptBinding("input_clear", "ctrl+c", "Clear the prompt, or copy what is selected"),
    PromptBinding("input_paste", "ctrl+v", "Paste, images too"),
    PromptBinding("history_search", "ctrl+r", "Search the history"),
    PromptBinding("history_previous", "up", "The prompt before, from the first line"),
    PromptBinding("history_next", "down", "The prompt after, from the last line"),
    PromptBinding("editor_open", "<leader>e", "Change the prompt in $VISUAL or $EDITOR"),
    PromptBinding("stash_push", "alt+s", "Put the prompt aside"),
    PromptBinding("stash_pop", "alt+shift+s", "Take back what was put aside last"),
    PromptBinding("input_undo", "ctrl+-,super+z", "Undo"),
    PromptBinding("input_redo", "ctrl+.,alt+_,super+shift+z", "Redo"),
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
    PromptBinding("input_select_line_home", "ctrl+shift+a,shift+home", "Select to the start of the line"),
    PromptBinding("input_select_line_end", "ctrl+shift+e,shift+end", "Select to the end of the line"),
    PromptBinding("input_visual_line_home", "alt+a", "To the start of the row"),
    PromptBinding("input_visual_line_end", "alt+e", "To the end of the row"),
    PromptBinding("input_select_visual_line_home", "alt+shift+a", "Select to the start of the row"),
    PromptBinding("input_select_visual_line_end", "alt+shift+e", "Select to the end of the row"),
    PromptBinding("input_buffer_home", "ctrl+home,alt+<", "To the start of the prompt"),
    PromptBinding("input_buffer_end", "ctrl+end,alt+>", "To the end of the prompt"),
    PromptBinding("input_select_buffer_home", "ctrl+shift+home", "Select to the start of the prompt"),
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
    PromptBinding("input_select_word_forward", "alt+shift+f,alt+shift+right,ctrl+shift+right", "Select a word"),
    PromptBinding("input_select_word_backward", "alt+shift+b,alt+shift+left,ctrl+shift+left", "Select a word back"),
    PromptBinding("input_delete_word_forward", "alt+d,alt+delete,ctrl+delete", "Cut the word to the right"),
    PromptBinding("input_delete_word_backward", "ctrl+w,ctrl+backspace,alt+backspace", "Cut the word to the left"),
)
"""Of several actions on one key, the first one that has something to do is taken."""

_NAMES = {
    "return": "enter",
    "esc": "escape",
    "del": "delete",
    "pgup": "pageup",
    "pgdn": "pagedown",
    "pgdown": "pagedown",
    "-": "minus",
    "_": "underscore",
    ".": "full_stop",
    ",": "comma",
    "/": "slash",
    "\\": "backslash",
    "<": "less_than_sign",
    ">": "greater_than_sign",
    "[": "left_square_bracket",
    "]": "right_square_bracket",
    "'": "apostrophe",
    ";": "semicolon",
    "=": "equals_sign",
    "+": "plus",
    "?": "question_mark",
    "!": "exclamation_mark",
    "@": "at",
    "#": "number_sign",
}
_MODIFIERS = {"option": "alt", "meta": "alt", "cmd": "super", "win": "super", "control": "ctrl"}
_SAME = {"ctrl+minus": "ctrl+underscore", "ctrl+enter": "ctrl+j"}
"""What terminals without a newer protocol say for a key."""


def pressed(key: str) -> tuple[str, ...]:
    """Return the names under which a key of a binding (`ctrl+return`, `alt+-`) arrives."""
    *modifiers, name = key.split("+") if not key.endswith("+") else [*key[:-1].rstrip("+").split("+"), "+"]
    held = sorted(_MODIFIERS.get(each.lower(), each.lower()) for each in modifiers if each)
    name = _NAMES.get(name.lower(), name.lower() if len(name) > 1 else name)
    found = ["+".join([*held, name])]
    if "shift" in held and len(name) == 1 and name.isalpha():  # a letter arrives as a capital, too
        found.append("+".join([*(each for each in held if each != "shift"), name.upper()]))
    return tuple(found + [_SAME[each] for each in found if each in _SAME])


def keymap(chosen: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the actions of each key as it arrives; `chosen`: a person's keys by action, `none` for no key.

    Keys after the leader are not here: who reads the leader runs the action.
    """
    found: dict[str, tuple[str, ...]] = {}
    for row in BINDINGS:
        keys = chosen.get(row.id, row.keys)
        for key in keys.split(",") if keys != "none" else ():
            if key.strip() and "<leader>" not in key:
                for name in pressed(key.strip()):
                    if row.id not in found.get(name, ()):
                        found[name] = (*found.get(name, ()), row.id)
    return found
