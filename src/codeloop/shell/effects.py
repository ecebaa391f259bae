"""Decides whether a command certainly changes nothing, and whether it may delete many files."""

import re
from collections.abc import Sequence

from codeloop.shell.harmless_words import Harmful, check_words
from codeloop.shell.leading_options import find_operand
from codeloop.shell.program_row import NOT_KNOWN
from codeloop.shell.program_table import find_row
from codeloop.shell.simple_command import SimpleCommand
from codeloop.shell.word import Word

# Shim folders of version managers, whose programs a file of the project selects.
_SHIM_FOLDER = r"/shims/|/\.volta/"


def explain_change(name: str, words: Sequence[Word], path: str = "") -> str:
    """Explain why a command may change something; "": it certainly changes nothing.

    `words`: the words behind its name (for git, behind git's own options);
    `path`: of the program, "" if not known.
    """
    if re.search(_SHIM_FOLDER, path):
        return f"what `{name}` runs is chosen by a file of the project"
    program = find_row(name)
    if program.reads is None:
        return f"`{name}` is not known to only read"
    try:
        if program.check_harmless is not None:
            program.check_harmless(words, program)
        elif not program.is_followed:
            subcommand = program.subcommands.get(words[0].value) if words else None
            check_words(words[1:] if subcommand else words, subcommand or program)
    except Harmful as reason:
        return f"`{name}`: {reason}"
    return ""


def is_destructive(command: SimpleCommand) -> bool:
    """Return whether a command may delete or overwrite many files at once,
    files that git ignores included.
    """
    name, *rest = [word.value for word in command.words]
    program = find_row(name)
    if name == "git":
        index = find_operand(command.words, program.all_options)
        if index is None:
            return True
        subcommand = command.words[index].value if index < len(command.words) else ""
        return program.subcommands.get(subcommand, NOT_KNOWN).destroys != ""
    starts = program.destroys.split()
    return starts == ["*"] or any(start in word for start in starts for word in rest)
