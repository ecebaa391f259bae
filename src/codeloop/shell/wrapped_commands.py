"""`WrappedCommands`: what a command that runs other commands runs, as far as the line shows it."""

from collections.abc import Sequence

from msgspec import Struct

from codeloop.shell.word import Word


class WrappedCommands(Struct, frozen=True):
    """The commands (lists of words) and scripts that a wrapper runs.
    `is_unknown`: it may run others as well.
    """

    commands: tuple[tuple[Word, ...], ...] = ()
    scripts: tuple[str, ...] = ()
    is_unknown: bool = False


NO_COMMANDS = WrappedCommands()
UNKNOWN_COMMANDS = WrappedCommands(is_unknown=True)


def make_script(words: Sequence[Word]) -> WrappedCommands:
    """Return a script made of the words, joined by blanks; unknown if a word is."""
    if not all(word.is_known for word in words):
        return UNKNOWN_COMMANDS
    return (
        WrappedCommands(scripts=(" ".join(word.value for word in words),)) if words else NO_COMMANDS
    )
