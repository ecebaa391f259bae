"""The keymap of the terminal UI's commands, and the names of keys as users write them and as they are displayed.

The keys of the prompt's own actions are in `prompt_bindings.py`.
"""

import time
from collections.abc import Iterable, Mapping

from msgspec import Struct

from codeloop.tui.keys.early_keys import TypingRhythm

LEADER = "<leader>"
"""The prefix of a key that is pressed after the leader key."""
DEFAULT_LEADER = "ctrl+x"
KEY_ALIASES = {
    "return": "enter",
    "esc": "escape",
    "pgup": "pageup",
    "pgdown": "pagedown",
    "pgdn": "pagedown",
    "del": "delete",
    "ins": "insert",
    "space": "space",
    "control": "ctrl",
    "meta": "alt",
    "option": "alt",
    "cmd": "super",
    "command": "super",
    "win": "super",
}
"""Other names of keys and modifiers that users may write in `keybinds`."""
TEXTUAL_KEY_NAMES = {
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
_NAMED_KEYS = [
    "backspace",
    "down",
    "end",
    "escape",
    "home",
    "left",
    "pagedown",
    "pageup",
    "right",
    "space",
    "tab",
    "up",
    "enter",
    "delete",
    "insert",
]
_LONG_KEY_NAMES = frozenset({*TEXTUAL_KEY_NAMES.values(), *_NAMED_KEYS, *(f"f{number}" for number in range(1, 25))})
"""All names of more than one character that a key may have."""
DISPLAY_NAMES = {
    "escape": "esc",
    "pageup": "pgup",
    "pagedown": "pgdn",
    **{name: key for key, name in TEXTUAL_KEY_NAMES.items()},
}
"""The displayed names of keys, where they differ from Textual's."""


class UiCommand(Struct, frozen=True):
    """A command of the UI. `id`: its name in `keybinds`; `keys`: its default keys; `slash`: its name after `/`.

    `run`: `module:function` below `codeloop.tui`, loaded at the first call; the function is called with the app and the
    words typed after the name. `aliases`: other names after `/`. `is_early`: its keys are handled before the focused
    widget gets them.
    """

    id: str
    title: str
    group: str
    run: str
    keys: str = "none"
    slash: str = ""
    arguments: str = ""
    aliases: tuple[str, ...] = ()
    is_early: bool = False


class KeyMeaning(Struct, frozen=True):
    """The meaning of a key: the ids of commands, of which the first that exists runs.

    `begins_sequence`: it is the leader key, so the next key completes a sequence.
    """

    commands: tuple[str, ...] = ()
    begins_sequence: bool = False


class Keymap:
    """The keys of every command. `problems`: errors in the user's `keybinds`."""

    def __init__(self, defaults: Mapping[str, str], custom: Mapping[str, object], leader_timeout: float = 2.0) -> None:
        """Take the default keys of commands, and the user's `keybinds`; the leader waits `leader_timeout` seconds."""
        self.problems: list[str] = []
        self.keys: dict[str, tuple[str, ...]] = {}
        """The keys of each command, as Textual names them; those after the leader begin with `<leader>`."""
        leader_key = custom.get("leader")
        self.leader = _to_textual_name(leader_key if isinstance(leader_key, str) and leader_key else DEFAULT_LEADER)
        for name, keys in custom.items():
            if name not in defaults and name != "leader":
                continue
            if not isinstance(keys, str) and keys is not False:
                self.problems.append(f'keybinds.{name} is not a text such as "ctrl+p" or "<leader>n,f2".')
            self.problems += [f"keybinds.{name}: there is no key {key}." for key in find_unknown_keys(keys)]
        self.rhythm = TypingRhythm()
        """How fast the user types, in whatever tab."""
        self._leader_timeout, self._waits_until = leader_timeout, 0.0
        self._commands: dict[str, tuple[str, ...]] = {}
        for name, keys in defaults.items():
            choice = custom.get(name, keys)
            # `false` takes the keys away, like "none".
            if choice is False:
                choice = "none"
            self.keys[name] = tuple(_parse_keys(choice if isinstance(choice, str) else keys))
            for key in self.keys[name]:
                self._commands[key] = (*self._commands.get(key, ()), name)

    @property
    def is_leader_active(self) -> bool:
        """Whether the leader key was pressed and a sequence may follow."""
        return time.monotonic() < self._waits_until

    def press(self, key: str) -> KeyMeaning:
        """Return the meaning of a key, by its name in Textual; after the leader, of the sequence that it completes."""
        if self.is_leader_active:
            # Also a key without a command ends the sequence: who mistyped begins again with the leader.
            self._waits_until = 0.0
            return KeyMeaning(self._commands.get(LEADER + key, ()))
        if key == self.leader:
            self._waits_until = time.monotonic() + self._leader_timeout
            return KeyMeaning(begins_sequence=True)
        return KeyMeaning(self._commands.get(key, ()))

    def extend_wait(self, seconds: float) -> None:
        """Let the leader wait for another `seconds` from now on."""
        self._waits_until = time.monotonic() + seconds

    def list_leader_keys(self) -> list[tuple[str, str]]:
        """Return the keys that follow the leader as displayed, each with its command."""
        bindings = self._commands.items()
        return [(_display_key(key.removeprefix(LEADER)), names[0]) for key, names in bindings if key.startswith(LEADER)]

    def format_key(self, name: str) -> str:
        """Return the first key of a command as it is displayed; "" if it has none."""
        return next(iter(self.format_keys(name)), "")

    def format_keys(self, name: str) -> list[str]:
        """Return all keys of a command as they are displayed."""
        return [self._display_binding(key) for key in self.keys.get(name, ())]

    def _display_binding(self, key: str) -> str:
        before = f"{self.leader} " if key.startswith(LEADER) else ""
        return before + _display_key(key.removeprefix(LEADER))


def _display_key(key: str) -> str:
    """Return a key as it is displayed, such as `ctrl+pgup`."""
    *modifiers, last = key.split("+")
    parts = [*sorted(modifiers, key=_MODIFIER_ORDER.index), last]
    return "+".join(DISPLAY_NAMES.get(part, part) for part in parts)


def find_unknown_keys(keys: object) -> list[str]:
    """Return those of comma-separated keys that do not exist; none for a value of another type."""
    # A comma alone is the key, not the separator.
    if not isinstance(keys, str) or keys == ",":
        return []
    names = [each.strip() for each in keys.split(",")]
    return [name for name in names if name and name != "none" and not _is_known_key(name.removeprefix(LEADER))]


def _is_known_key(name: str) -> bool:
    """Return whether a keyboard can have a key, by the name that the user wrote."""
    # In `ctrl++` the last plus is the key, not the separator.
    if name.endswith("+"):
        modifiers = name.removesuffix("++").removesuffix("+").lower().split("+")
    else:
        modifiers = name.lower().split("+")[:-1]
    has_known_modifiers = {KEY_ALIASES.get(each, each) for each in modifiers if each} <= {*_MODIFIER_ORDER}
    last = _to_textual_name(name).split("+")[-1]
    return bool(name) and has_known_modifiers and (len(last) == 1 or last in _LONG_KEY_NAMES)


def _parse_keys(keys: str) -> Iterable[str]:
    """Yield comma-separated keys under their names in Textual, those after the leader with the prefix `<leader>`."""
    for each in keys.split(",") if keys != "," else [","]:
        name = each.strip()
        if name and name != "none":
            yield (
                LEADER + _to_textual_name(name.removeprefix(LEADER))
                if name.startswith(LEADER)
                else _to_textual_name(name)
            )


def _to_textual_name(name: str) -> str:
    """Return a key's name in Textual, such as `alt+ctrl+full_stop` for `Ctrl+Option+.`."""
    *modifiers, key = name.strip().split("+") if not name.endswith("+") else [*name[:-2].split("+"), "+"]
    modifiers = [KEY_ALIASES.get(each.lower(), each.lower()) for each in modifiers if each]
    key = key if len(key) == 1 else KEY_ALIASES.get(key.lower(), key.lower())
    # A terminal reports shift with a letter as the capital, so a capital by itself is a key of its own.
    if len(key) == 1 and key.isupper() and not modifiers:
        return key
    # Textual sorts modifiers by name.
    order = [each for each in ("alt", "ctrl", "shift", "super") if each in modifiers]
    return "+".join([*order, TEXTUAL_KEY_NAMES.get(key, key.lower() if modifiers else key)])
