"""The grammar of vi's commands outside insert mode: patterns that match the keys of a command.

`vim.py` collects keys as long as they are the start of a command,
and executes what matches one of the patterns.
"""

import re

from codeloop.tui.editor.vim.text_objects import TEXT_OBJECT_KINDS

# The parts of the patterns below; each matches keys as they are collected, so Enter is a line feed.
_ANY = r"(?:.|\n)"
_NUMBER = r"[1-9]\d*(?!\d)"
_LINE = r"[/?][^\n]*"
_MOTION = rf"g[geE_]|[hjklwbeWBEG0^_$;,%{{}}()|+\-nN*# ]|[fFtT]{_ANY}|{_LINE}\n"
_OBJECT = rf"[ia][{re.escape(''.join(TEXT_OBJECT_KINDS))}]"
_OPERATOR = r"[dcy<>]|g[uU~]"
_PREFIX = rf'(?:"(?P<register>.))?(?P<count>{_NUMBER})?(?:"(?P<late_register>.))?'
"""The prefix of a command: a register and a count, in any order."""
# Without this, the last key of an unsupported command would be taken for another command: in `qa`,
# for append.
_UNSUPPORTED = r"(?P<unsupported>(?:[dcy<>]|g[uU~])?['`].|[mq@zZ\[\]].|g[^gGeE_uU~Jiv])"
"""Commands of vi that do nothing here."""
_COLON = r"(?P<colon>:[^\n]*\n)"
"""A colon command; only a line number after the colon does something here."""
# Such as `3dw`, `d2w`, `"ayy` or `ci(` (an operator), `5j` (a motion), `rx` or `p` (a command),
# `qa` (unsupported).
NORMAL_COMMAND = (
    rf"{_PREFIX}(?:(?P<operator>{_OPERATOR})(?P<second_count>{_NUMBER})?(?:(?P<target>{_MOTION}"
    rf"|{_OBJECT})|(?P<repeated>g?[dcy<>uU~]))"
    rf"|(?P<motion>{_MOTION})|(?P<command>r{_ANY}|g[Jiv]|[iaIAoOxXDCYsSpPuJ~vVR.])|{_COLON}|{_UNSUPPORTED})\Z"
)
"""A complete command in normal mode."""
# Such as `5j` (a motion), `i(` (an object), `d`, `rx` or `"ay` (a command), `qa` (unsupported).
VISUAL_COMMAND = (
    rf"{_PREFIX}(?:(?P<motion>{_MOTION})|(?P<object>{_OBJECT})"
    rf"|(?P<command>r{_ANY}|g[JuU~v]|[dxcsyopPJ~uUvVXDCSRY<>])|{_COLON}|{_UNSUPPORTED})\Z"
)
"""A complete command in visual mode."""
# Such as `"`, `"a`, `3`, `3d`, `ci`, `f`, `/tex` or `:1`.
COMMAND_START = (
    rf'(?:"|(?:".)?(?:[1-9]\d*)?(?:"|(?:".)?(?:{_OPERATOR})?(?:[1-9]\d*)?'
    rf"(?:[iagfFtTrmq@zZ\[\]'`]|{_LINE}|:[^\n]*)?))\Z"
)
"""Matches the start of a command. Keys that no pattern matches are dropped."""
# Such as `/tex`, `d?tex` or `:1`.
LINE_COMMAND_START = rf'(?:".)?(?:[1-9]\d*)?(?:".)?(?:{_OPERATOR})?(?:[1-9]\d*)?[/?:][^\n]*\Z'
"""Matches the start of a search or a colon command, which Enter ends."""

KEY_COMMANDS = {
    "up": "k",
    "down": "j",
    "backspace": "h",
    "left": "h",
    "right": "l",
    "home": "0",
    "end": "$",
    "delete": "x",
}
"""Keys without a character, and the command that each stands for."""
SCROLL_COMMANDS = {
    "ctrl+u": "messages_half_page_up",
    "ctrl+d": "messages_half_page_down",
    "ctrl+b": "messages_page_up",
    "ctrl+f": "messages_page_down",
    "ctrl+y": "messages_line_up",
    "ctrl+e": "messages_line_down",
}
"""Vi's keys for scrolling, and the commands of the UI that scroll the conversation."""
OPERATOR_SHORTHANDS = {
    "x": ("d", "l"),
    "X": ("d", "h"),
    "s": ("c", "l"),
    "D": ("d", "$"),
    "C": ("c", "$"),
    "S": ("c", ""),
    "Y": ("y", ""),
}
"""Commands that are short for an operator and a motion; an empty motion means whole lines."""
VISUAL_OPERATOR_NAMES = {
    "x": "d",
    "X": "d",
    "D": "d",
    "s": "c",
    "S": "c",
    "C": "c",
    "R": "c",
    "Y": "y",
    "u": "gu",
    "U": "gU",
    "~": "g~",
}
"""Commands of visual mode that are other names of operators."""
