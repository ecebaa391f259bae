"""Decides whether a command certainly changes nothing, and whether it may delete many files."""

import re
from collections.abc import Sequence

from codeloop.shell.leading_options import LeadingOptions, find_operand
from codeloop.shell.read_only.git_commands import check_git
from codeloop.shell.read_only.programs import (
    ARGUMENT_CHECKS,
    FOLLOWED_WRAPPERS,
    PROGRAMS_WITH_SUBCOMMANDS,
    READ_ONLY_ROWS,
)
from codeloop.shell.read_only.read_only_row import Harmful, check_words
from codeloop.shell.simple_command import SimpleCommand
from codeloop.shell.word import Word

# Shim folders of version managers, whose programs a file of the project selects.
_SHIM_FOLDER = re.compile(r"/shims/|/\.volta/")
_DESTRUCTIVE_PROGRAMS = frozenset({"rm", "rmdir", "shred", "truncate", "dd"})
GIT_OPTIONS = LeadingOptions(
    "-C -c --git-dir --work-tree --namespace --config-env",
    "-p -P --paginate --no-pager --bare --no-replace-objects --literal-pathspecs --no-optional-locks --version --help",
)
"""The options of git itself, before its subcommand."""
_DESTRUCTIVE_GIT_SUBCOMMANDS = frozenset({"clean", "reset", "checkout", "restore", "stash", "switch"})


def explain_change(name: str, words: Sequence[Word], path: str = "") -> str:
    """Explain why a command may change something; "": it certainly changes nothing.

    `words`: the words behind its name (for git, behind git's own options); `path`: of the program, "" if not known.
    """
    if _SHIM_FOLDER.search(path):
        return f"what `{name}` runs is chosen by a file of the project"
    try:
        if name == "git":
            check_git(words)
        elif name in ARGUMENT_CHECKS:
            ARGUMENT_CHECKS[name](words)
        elif name not in FOLLOWED_WRAPPERS:
            subcommand = f"{name} {words[0].value}" if name in PROGRAMS_WITH_SUBCOMMANDS and words else ""
            row = READ_ONLY_ROWS.get(subcommand)
            rest = words[1:] if row else words
            row = row or READ_ONLY_ROWS.get(name)
            if row is None:
                return f"`{name}` is not known to only read"
            check_words(rest, row)
    except Harmful as reason:
        return f"`{name}`: {reason}"
    return ""


def is_destructive(command: SimpleCommand) -> bool:
    """Return whether a command may delete or overwrite many files at once, files that git ignores included."""
    name, *rest = [word.value for word in command.words]
    if name == "find":
        return any("-delete" in word or "-exec" in word for word in rest)
    if name == "git":
        index = find_operand(command.words, GIT_OPTIONS)
        if index is None:
            return True
        return index < len(command.words) and command.words[index].value in _DESTRUCTIVE_GIT_SUBCOMMANDS
    return name in _DESTRUCTIVE_PROGRAMS
