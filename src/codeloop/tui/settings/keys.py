"""Which keys run which command: single keys, and keys after the leader key."""

import time
from collections.abc import Iterable, Mapping

from msgspec import Struct

from codeloop.tui.prompt.bindings import pressed

LEADER = "<leader>"
DEFAULT_LEADER = "ctrl+x"
SHOWN = {
    "escape": "esc",
    "pageup": "pgup",
    "pagedown": "pgdn",
    "slash": "/",
    "question_mark": "?",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
}


class Press(Struct, frozen=True):
    """What a key means: the commands that it may run, the first that is possible counts; `waits`: for another key."""

    commands: tuple[str, ...] = ()
    waits: bool = False


class Keymap:
    """The keys of every command. `problems`: what of the person's table can't be understood."""

    def __init__(self, defaults: Mapping[str, str], own: Mapping[str, object], patience: float = 2.0) -> None:
        """Take the default keys of each command, and the person's; the leader waits `patience` seconds."""
        self.problems: list[str] = []
        self.keys: dict[str, tuple[str, ...]] = {}
        """The keys of each command, as Textual names them; those after the leader begin with `<leader>`."""
        given = own.get("leader")
        self.leader = pressed(given if isinstance(given, str) and given else DEFAULT_LEADER)[0]
        for name, keys in own.items():
            if name not in defaults and name != "leader":
                continue
            if not isinstance(keys, str) and keys is not False:
                self.problems.append(f'keybinds.{name} is not a text such as "ctrl+p" or "<leader>n,f2".')
        self._patience, self._until = patience, 0.0
        self._commands: dict[str, tuple[str, ...]] = {}
        for name, keys in defaults.items():
            chosen = own.get(name, keys)
            chosen = "none" if chosen is False else chosen if isinstance(chosen, str) else keys
            self.keys[name] = tuple(_parsed(chosen))
            for key in self.keys[name]:
                self._commands[key] = (*self._commands.get(key, ()), name)

    @property
    def is_waiting(self) -> bool:
        """Whether the leader key was pressed, and what follows it may still come."""
        return time.monotonic() < self._until

    def press(self, key: str) -> Press:
        """Take a key, as Textual names it."""
        if self.is_waiting:
            self._until = 0.0
            return Press(self._commands.get(LEADER + key, ()))
        if key == self.leader:
            self._until = time.monotonic() + self._patience
            return Press(waits=True)
        return Press(self._commands.get(key, ()))

    def shown(self, name: str) -> str:
        """Return the first key of a command as a person reads it; "" if it has none."""
        key = next(iter(self.keys.get(name, ())), "")
        before = f"{self.leader} " if key.startswith(LEADER) else ""
        parts = key.removeprefix(LEADER).split("+")
        return before + "+".join(SHOWN.get(part, part) for part in parts) if key else ""


def _parsed(keys: str) -> Iterable[str]:
    for each in keys.split(","):
        name = each.strip()
        before = LEADER if name.startswith(LEADER) else ""
        if name and name != "none":
            yield from (before + key for key in pressed(name.removeprefix(LEADER)))
