"""How rules may spell a command: the words that an "always" for it allows, and its other spellings.

For example `git -C d push origin` is identified by `git push`,
and a rule for `git push *` is about it.
"""

from codeloop.shell.leading_options import find_operand
from codeloop.shell.options import parse_operands
from codeloop.shell.program_table import find_row
from codeloop.shell.simple_command import Redirect, SimpleCommand
from codeloop.shell.unwrap import runs_later_word
from codeloop.shell.word import Word, make_word

# The most words that are taken for a subcommand, and for the start of a command that a runner runs.
_MAX_SUBCOMMANDS = 8
_MAX_COMMAND_WORDS = 32


def find_leading_words(words: list[str]) -> list[str]:
    """Return the words that identify a command and that an "always" allows: `git commit`,
    `npm run build`, `ls`.
    """
    groups = find_row(words[0]).groups
    if groups is None:
        return words[:1]
    return words[: 3 if len(words) > 2 and words[1] in groups.split() else 2]


def list_spellings(command: SimpleCommand) -> tuple[str, ...]:
    """Return other spellings of a command, marks included,
    for rules that deny or ask about particular commands.

    `./bin/RM x` is also `rm x`, and `git -C d push` is also `git push`. If the options before a
    subcommand are not all known, each word that may be the subcommand makes a spelling. If the
    program runs the command after its options, each word that may begin that command does.
    """
    if not command.words[0].is_known:
        return ()
    lowered_command = _lower_program(command.words, command.redirects)
    name = lowered_command.words[0]
    spellings = [lowered_command]
    spellings += [
        SimpleCommand((name, *rest), command.redirects)
        for rest in _list_subcommands(name.value, command.words)
    ]
    if runs_later_word(lowered_command.words):
        last = min(len(command.words), _MAX_COMMAND_WORDS)
        spellings += [
            _lower_program(command.words[index:], command.redirects) for index in range(1, last)
        ]
    texts = dict.fromkeys(spelling.marked_text or spelling.text for spelling in spellings)
    texts.pop(command.marked_text or command.text, None)
    return tuple(texts)


def _lower_program(words: tuple[Word, ...], redirects: tuple[Redirect, ...]) -> SimpleCommand:
    """Return a command under the bare name of its program in small letters: some
    file systems ignore case.
    """
    name = words[0]
    short = (
        make_word(name.value.rpartition("/")[2].lower() or name.value) if name.is_known else name
    )
    return SimpleCommand((short, *words[1:]), redirects)


def _list_subcommands(name: str, words: tuple[Word, ...]) -> list[tuple[Word, ...]]:
    """Return the possible subcommands behind the options of a program,
    each with all words after it.
    """
    program = find_row(name)
    if program.groups is None or len(words) < 3 or not _may_be_option(words[1]):
        return []
    # `cargo +nightly build`: the toolchain is an option that no row lists.
    # A row of operands between which options may stand is about its files,
    # and does not list all options.
    lists_options = program.options and (
        not program.operands or parse_operands(program.operands).stops_options
    )
    if lists_options and not words[1].value.startswith("+"):
        index = find_operand(words, program.all_options)
        if index is not None:
            return [words[index:]]
    # The options are unknown: the subcommand may be behind any of them, or behind its value.
    starts = [
        index
        for index in range(2, len(words))
        if any(map(_may_be_option, words[max(1, index - 2) : index]))
    ]
    return [words[index:] for index in starts if not words[index].value.startswith("-")][
        :_MAX_SUBCOMMANDS
    ]


def _may_be_option(word: Word) -> bool:
    return not word.is_known or word.value[:1] in {"-", "+"}
