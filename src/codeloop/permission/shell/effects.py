"""Decides whether a command certainly changes nothing, and whether it may delete many files."""

import re
from collections.abc import Sequence

from codeloop.permission.shell.command import SimpleCommand
from codeloop.permission.shell.git_read_only import check_git
from codeloop.permission.shell.read_only import ROWS, SPECIAL, WITH_SUBCOMMANDS, WRAPPERS_FOLLOWED, Harmful, check_words
from codeloop.permission.shell.words import Word
from codeloop.permission.shell.wrappers import Wrapper, find_operand

_SHIMS = re.compile(r"/shims/|/\.volta/")
"""Shim folders of version managers, whose programs a file of the project selects."""
DESTRUCTIVE = frozenset({"rm", "rmdir", "shred", "truncate", "dd"})
GIT = Wrapper(
    "-C -c --git-dir --work-tree --namespace --config-env",
    "-p -P --paginate --no-pager --bare --no-replace-objects --literal-pathspecs --no-optional-locks --version --help",
)
"""The options of git itself, before its subcommand."""
DESTRUCTIVE_GIT = frozenset({"clean", "reset", "checkout", "restore", "stash", "switch"})


def why_it_changes(name: str, words: Sequence[Word], path: str = "") -> str:
    """Return why a command may change something; "": it certainly changes nothing.

    `words`: those behind its name (for git, behind git's own options); `path`: where the program is, as far as known.
    """
    if _SHIMS.search(path):
        return f"what `{name}` runs is chosen by a file of the project"
    try:
        if name == "git":
            check_git(words)
        elif name in SPECIAL:
            SPECIAL[name](words)
        elif name not in WRAPPERS_FOLLOWED:
            subcommand = f"{name} {words[0].value}" if name in WITH_SUBCOMMANDS and words else ""
            allowed = ROWS.get(subcommand)
            rest = words[1:] if allowed else words
            allowed = allowed or ROWS.get(name)
            if allowed is None:
                return f"`{name}` is not known to only read"
            check_words(rest, allowed)
    except Harmful as reason:
        return f"`{name}`: {reason}"
    return ""


def is_destructive(command: SimpleCommand) -> bool:
    """Return whether a command may delete or overwrite files wholesale, those that git ignores included."""
    name, *rest = [word.value for word in command.words]
    if name == "find":
        return any("-delete" in word or "-exec" in word for word in rest)
    if name == "git":
        at = find_operand(command.words, GIT)
        return at is None or (at <= len(rest) and rest[at - 1] in DESTRUCTIVE_GIT)
    return name in DESTRUCTIVE
