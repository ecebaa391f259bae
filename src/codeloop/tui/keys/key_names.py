"""The names of keys: as users write them in `keybinds`, as Textual reports them,
and as they are displayed.
"""

import re
from collections.abc import Iterable

LEADER = "<leader>"
"""The prefix of a key that is pressed after the leader key."""
_ALIASES = {
    "return": "enter",
    "esc": "escape",
    "pgup": "pageup",
    "pgdown": "pagedown",
    "pgdn": "pagedown",
    "del": "delete",
    "ins": "insert",
    "control": "ctrl",
    "meta": "alt",
    "option": "alt",
    "cmd": "super",
    "command": "super",
    "win": "super",
}
"""Other names of keys and modifiers that users may write in `keybinds`."""
_TEXTUAL_NAMES = {
    "/": "slash",
    "\\": "backslash",
    ".": "full_stop",
    ",": "comma",
    "[": "left_square_bracket",
    "]": "right_square_bracket",
    "?": "question_mark",
    "-": "minus",
    "=": "equals_sign",
    "+": "plus",
    ";": "semicolon",
    "'": "apostrophe",
    "_": "underscore",
}
"""Textual's names of keys that users write as the character."""
_MODIFIER_ORDER = ("ctrl", "alt", "shift", "super")
"""The order in which modifiers are displayed."""
_NAMED_KEYS = frozenset(
    {"backspace", "delete", "down", "end", "enter", "escape", "home", "insert"}
    | {"left", "pagedown", "pageup", "right", "space", "tab", "up"}
)
_LONG_KEY_NAMES = frozenset(
    {*_TEXTUAL_NAMES.values(), *_NAMED_KEYS, *(f"f{number}" for number in range(1, 25))}
)
"""All names of more than one character that a key may have."""
_DISPLAY_NAMES = {
    "escape": "esc",
    "pageup": "pgup",
    "pagedown": "pgdn",
    **{name: key for key, name in _TEXTUAL_NAMES.items()},
}
"""The displayed names of keys, where they differ from Textual's."""
# `ctrl+A`, which some terminals report for ctrl+shift+a;
# not `A` alone, which is a letter that was typed.
_KEY_WITH_CAPITAL = r"(.+\+)([A-Z])\Z"


def normalise_key(key: str) -> str:
    """Return the canonical name of a key that terminals report in several ways,
    such as shift with a capital.
    """
    # Enter with a modifier may be named by its character.
    key = key.replace("\r", "enter")
    capital = re.match(_KEY_WITH_CAPITAL, key)
    if capital is None:
        return key
    modifiers = sorted({*capital[1].rstrip("+").split("+"), "shift"})
    return "+".join([*modifiers, capital[2].lower()])


def display_key(key: str) -> str:
    """Return a key as it is displayed, such as `ctrl+pgup`."""
    *modifiers, last = key.split("+")
    parts = [*sorted(modifiers, key=_MODIFIER_ORDER.index), last]
    return "+".join(_DISPLAY_NAMES.get(part, part) for part in parts)


def find_unknown_keys(keys: object) -> list[str]:
    """Return those of comma-separated keys that do not exist; none for a value of another type."""
    # A comma alone is the key, not the separator.
    if not isinstance(keys, str) or keys == ",":
        return []
    names = [each.strip() for each in keys.split(",")]
    return [
        name
        for name in names
        if name and name != "none" and not _is_known_key(name.removeprefix(LEADER))
    ]


def _is_known_key(name: str) -> bool:
    """Return whether a keyboard can have a key, by the name that the user wrote."""
    modifiers, _ = _split_key(name)
    key = to_textual_name(name).split("+")[-1]
    return {*modifiers} <= {*_MODIFIER_ORDER} and (len(key) == 1 or key in _LONG_KEY_NAMES)


def parse_keys(keys: str) -> Iterable[str]:
    """Yield comma-separated keys under their names in Textual,
    those after the leader with the prefix `<leader>`.
    """
    # A comma alone is the key, not the separator.
    for each in [","] if keys == "," else keys.split(","):
        name = each.strip()
        if name and name != "none":
            prefix = LEADER if name.startswith(LEADER) else ""
            yield prefix + to_textual_name(name.removeprefix(LEADER))


def to_textual_name(name: str) -> str:
    """Return a key's name in Textual, such as `alt+ctrl+full_stop` for `Ctrl+Option+.`."""
    modifiers, key = _split_key(name)
    key = key if len(key) == 1 else _ALIASES.get(key.lower(), key.lower())
    # A terminal reports shift with a letter as the capital,
    # so a capital by itself is a key of its own.
    if len(key) == 1 and key.isupper() and not modifiers:
        return key
    # Textual sorts modifiers by name.
    order = [each for each in ("alt", "ctrl", "shift", "super") if each in modifiers]
    return "+".join([*order, _TEXTUAL_NAMES.get(key, key.lower() if modifiers else key)])


def _split_key(name: str) -> tuple[list[str], str]:
    """Return the modifiers of a key, by their usual names,
    and the key itself as the user wrote it.
    """
    name = name.strip()
    # In `ctrl++` the last plus is the key, not the separator.
    if name == "+" or name.endswith("++"):
        words, key = name[:-1].split("+"), "+"
    else:
        *words, key = name.split("+")
    return [_ALIASES.get(word.lower(), word.lower()) for word in words if word], key
