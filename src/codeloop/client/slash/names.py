"""What is a command, and which slash command a mistyped one may have meant: by spelling, or by what others call it."""

import re
from collections.abc import Collection

from codeloop.kit.suggest import MAX_SUGGESTIONS, find_similar

MEANINGS: dict[str, tuple[str, ...]] = {
    "approvals": ("permissions",),
    "auth": ("connect",),
    "bug": ("help",),
    "commands": ("help",),
    "config": ("settings",),
    "credits": ("cost",),
    "history": ("timeline", "sessions"),
    "keybinds": ("help",),
    "keys": ("help",),
    "login": ("connect",),
    "logout": ("connect",),
    "mode": ("profile",),
    "plan": ("profile",),
    "providers": ("connect",),
    "q": ("exit",),
    "quit": ("exit",),
    "reset": ("new",),
    "revert": ("undo", "rewind"),
    "rewind": ("undo",),
    "search": ("find",),
    "session": ("sessions",),
    "stats": ("cost",),
    "summarize": ("compact",),
    "tokens": ("context", "cost"),
    "usage": ("cost", "context"),
    "variants": ("effort",),
    "vim": ("settings",),
    "window": ("context",),
}
"""By what people type, the commands that do it; those that a terminal does not have are left out."""


_COMMAND = re.compile(r"/[A-Za-z][\w:.-]*(\s|$)|!\s*\S")


def is_command(line: str) -> bool:
    """Return whether a line is a `/command` or a `!command` for the shell, and not a path such as `/etc/hosts`."""
    return _COMMAND.match(line) is not None


def similar_names(name: str, known_names: Collection[str], also: Collection[str] = ()) -> list[str]:
    """Return the known commands that an unknown one may mean, best first. `also`: their other names."""
    candidates = [each for each in MEANINGS.get(name.lower(), ()) if each in known_names]
    return list(dict.fromkeys([*candidates, *find_similar(name, [*known_names, *also])]))[:MAX_SUGGESTIONS]
