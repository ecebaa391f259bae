"""The grammar of vi's commands outside insert mode: patterns that match the keys of a command."""

import re

from codeloop.tui.editor.vim.text_objects import KINDS

_ANY = r"(?:.|\n)"
_NUMBER = r"[1-9]\d*(?!\d)"
_LINE = r"[/?][^\n]*"
_MOTION = rf"g[geE_]|[hjklwbeWBEG0^_$;,%{{}}()|+\-nN*# ]|[fFtT]{_ANY}|{_LINE}\n"
_OBJECT = rf"[ia][{re.escape(''.join(KINDS))}]"
_OPERATOR = r"[dcy<>]|g[uU~]"
_PREFIX = rf'(?:"(?P<register>.))?(?P<count>{_NUMBER})?(?:"(?P<late>.))?'
"""The prefix of a command: a register and a count, in any order."""
_UNSUPPORTED = r"(?P<nothing>(?:[dcy<>]|g[uU~])?['`].|[mq@zZ\[\]].|g[^gGeE_uU~Jiv]|:[^\n]*\n)"
"""Unsupported commands: they are recognised so that their last key is not taken for another command."""
NORMAL = re.compile(
    rf"{_PREFIX}(?:(?P<operator>{_OPERATOR})(?P<more>{_NUMBER})?(?:(?P<target>{_MOTION}|{_OBJECT})|(?P<twice>g?[dcy<>uU~]))"
    rf"|(?P<motion>{_MOTION})|(?P<command>r{_ANY}|g[Jiv]|[iaIAoOxXDCYsSpPuJ~vVR.])|{_UNSUPPORTED})\Z"
)
"""A complete command in normal mode."""
VISUAL = re.compile(
    rf"{_PREFIX}(?:(?P<motion>{_MOTION})|(?P<object>{_OBJECT})"
    rf"|(?P<command>r{_ANY}|g[JuU~v]|[dxcsyopPJ~uUvVXDCSRY<>])|{_UNSUPPORTED})\Z"
)
"""A complete command in visual mode."""
INCOMPLETE = re.compile(
    rf'(?:"|(?:".)?(?:[1-9]\d*)?(?:"|(?:".)?(?:{_OPERATOR})?(?:[1-9]\d*)?(?:[iagfFtTrmq@zZ\[\]\'`]|{_LINE}|:[^\n]*)?))\Z'
)
"""Matches the start of a command. Keys that no pattern matches are dropped."""
LINE = re.compile(rf'(?:".)?(?:[1-9]\d*)?(?:".)?(?:{_OPERATOR})?(?:[1-9]\d*)?[/?:][^\n]*\Z')
"""Matches the start of a search or a colon command, which Enter ends."""

KEYS = {"up": "k", "down": "j", "backspace": "h", "left": "h", "right": "l", "home": "0", "end": "$", "delete": "x"}
"""Keys without a character, and the command that each stands for."""
SCROLLS = {
    "ctrl+u": "messages_half_page_up",
    "ctrl+d": "messages_half_page_down",
    "ctrl+b": "messages_page_up",
    "ctrl+f": "messages_page_down",
    "ctrl+y": "messages_line_up",
    "ctrl+e": "messages_line_down",
}
"""Vi's keys for scrolling, and the commands of the UI that scroll the conversation."""
AS_OPERATORS = {
    "x": ("d", "l"),
    "X": ("d", "h"),
    "s": ("c", "l"),
    "D": ("d", "$"),
    "C": ("c", "$"),
    "S": ("c", ""),
    "Y": ("y", ""),
}
"""Commands that are short for an operator and a motion; an empty motion means whole lines."""
VISUAL_OPERATORS = {
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
