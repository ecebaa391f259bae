"""The keymap of the terminal UI: which keys run which commands.

The keys of the prompt's own actions are in `prompt_bindings.py`.
"""

import time
from collections.abc import Mapping

from msgspec import Struct

from codeloop.tui.keys.key_names import LEADER, display_key, find_unknown_keys, parse_keys

DEFAULT_LEADER = "ctrl+x"


def find_key_problems(name: str, keys: object) -> list[str]:
    """Return the problems of one value of `keybinds`: it is not text,
    or names keys that do not exist.
    """
    # `false` takes the keys away.
    if not isinstance(keys, str) and keys is not False:
        return [f'keybinds.{name} is not a text such as "ctrl+p" or "<leader>n,f2".']
    return [f"keybinds.{name}: there is no key {key}." for key in find_unknown_keys(keys)]


def _choose_keys(choice: object, default: str) -> tuple[str, ...]:
    """Return the keys of a value of `keybinds`, as Textual names them.
    `false` takes the keys away, like "none".
    """
    return (
        () if choice is False else tuple(parse_keys(choice if isinstance(choice, str) else default))
    )


class KeyMeaning(Struct, frozen=True):
    """The meaning of a key: the ids of its commands, of which the first runs.

    `begins_sequence`: it is the leader key, so the next key completes a sequence.
    """

    commands: tuple[str, ...] = ()
    begins_sequence: bool = False


class Keymap:
    """The keys of every command. `problems`: errors in the user's `keybinds`."""

    def __init__(
        self, defaults: Mapping[str, str], custom: Mapping[str, object], leader_timeout: float = 2.0
    ) -> None:
        """Take the default keys of commands, and the user's `keybinds`; the leader waits
        `leader_timeout` seconds.
        """
        self.problems: list[str] = []
        self.keys: dict[str, tuple[str, ...]] = {}
        """The keys of each command, as Textual names them;
        those after the leader begin with `<leader>`.
        """
        leader = custom.get("leader")
        # A blank text stands for the default here, while it takes the keys of a command away.
        is_blank = isinstance(leader, str) and not leader.strip()
        self.leader = next(iter(_choose_keys(None if is_blank else leader, DEFAULT_LEADER)), "")
        """The leader key, as Textual names it: the first of several; "": there is none."""
        for name, keys in custom.items():
            if name not in defaults and name != "leader":
                continue
            self.problems += find_key_problems(name, keys)
        self._leader_timeout, self._waits_until = leader_timeout, 0.0
        self._commands: dict[str, tuple[str, ...]] = {}
        for name, keys in defaults.items():
            self.keys[name] = _choose_keys(custom.get(name, keys), keys)
            for key in self.keys[name]:
                self._commands[key] = (*self._commands.get(key, ()), name)

    @property
    def is_leader_active(self) -> bool:
        """Whether the leader key was pressed and a sequence may follow."""
        return time.monotonic() < self._waits_until

    def press(self, key: str) -> KeyMeaning:
        """Return the meaning of a key, by its name in Textual;
        after the leader, of the sequence that it completes.

        The leader begins a sequence, and the next key ends it.
        """
        if self.is_leader_active:
            # A key without a command ends the sequence, too: after a mistake,
            # one begins again with the leader.
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
        return [
            (display_key(key.removeprefix(LEADER)), names[0])
            for key, names in bindings
            if key.startswith(LEADER)
        ]

    def format_key(self, name: str) -> str:
        """Return the first key of a command as it is displayed; "" if it has none."""
        return next(iter(self.format_keys(name)), "")

    def format_keys(self, name: str) -> list[str]:
        """Return all keys of a command as they are displayed;
        without a leader, those after it are left out.
        """
        keys = self.keys.get(name, ())
        return [
            self._display_binding(key) for key in keys if self.leader or not key.startswith(LEADER)
        ]

    def _display_binding(self, key: str) -> str:
        before = f"{self.leader} " if key.startswith(LEADER) else ""
        return before + display_key(key.removeprefix(LEADER))
