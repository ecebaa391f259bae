"""Analyses a shell line without running it: its simple commands, the files it touches,
whether it only reads.

The entrance to this folder: `analyse` puts together what the other modules find, and `make_need`
makes it a question for the gate.
"""

import re
import time
from collections.abc import Sequence

from msgspec import Struct

from codeloop.kit.wildcard import ANY_TEXT
from codeloop.schema.limits import BASH_PARSE, BASH_SIZE
from codeloop.schema.permission import Need, Writes
from codeloop.shell.effects import is_destructive
from codeloop.shell.leading_options import find_operand
from codeloop.shell.options import parse_operands
from codeloop.shell.parser import LimitExceeded, Script
from codeloop.shell.plain_forms import write_plainly
from codeloop.shell.program_table import find_row
from codeloop.shell.proof import MachineFacts, Proof, prove
from codeloop.shell.remote_changes import (
    changes_remote,
    contains_remote_change,
    mentions_remote_change,
)
from codeloop.shell.simple_command import Redirect, SimpleCommand
from codeloop.shell.touched_paths import Touches, find_touches
from codeloop.shell.unwrap import is_runner, runs_later_word, unwrap
from codeloop.shell.word import Word, make_word
from codeloop.shell.wrapped_commands import NO_COMMANDS

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


# Characters that are shown of a line that could not be parsed.
_MAX_SHOWN_CHARS = 1_000
REMOTE_KEY = "remote"
"""Metadata key: the commands of the line that change something on another machine or service."""
# Characters of a text that are compared with rules: the time of a comparison grows
# with text times pattern.
_MAX_COMPARED_CHARS = 256
_WORD_SEPARATORS = r"[\s;|&()<>`'\"]+"


class Analysis(Struct, frozen=True):
    """The analysis of a shell line.

    `commands`: the text of every simple command, also of those inside others,
    one spelling for all ways of quoting.
    `always_patterns`: those that an "always" would allow, one a command.
    `touches`: the files that it reads and writes.
    `possible_commands`: further ones that it may run, with the marks of `kit.wildcard`.
    `spellings`: by command, the other texts by which rules may mean it. `proof`: what is certain
    about the line. `is_destructive`: it may delete files that git ignores.
    """

    commands: tuple[str, ...]
    always_patterns: tuple[str, ...]
    touches: Touches = Touches()
    possible_commands: tuple[str, ...] = ()
    spellings: dict[str, tuple[str, ...]] = {}
    proof: Proof = Proof()
    is_destructive: bool = False
    remote_commands: tuple[str, ...] = ()
    """Those of `commands` and of `possible_commands` that change something on
    another machine or service.
    """

    @property
    def reads(self) -> tuple[str, ...]:
        """The files and the folders that it reads, and the words that may be the name of a file."""
        return (
            *self.touches.reads,
            *self.touches.read_trees,
            *self.touches.visible_trees,
            *self.touches.possible_reads,
        )

    @property
    def writes(self) -> tuple[str, ...]:
        """The files that it writes, and the folders in which it writes files that
        the line does not name.
        """
        return (*self.touches.writes, *self.touches.filled_folders, *self.touches.changed_trees)

    @property
    def is_read_only(self) -> bool:
        """Whether it certainly changes nothing."""
        return self.proof.is_read_only


def analyse(command: str, facts: MachineFacts | None = None) -> Analysis:
    """Analyse a line of bash. Never fails: one that can't be parsed (too long, too deep,
    not shell) may run anything.

    `facts`: about the machine that it will run on; without them each name counts as
    the program of that name.
    """
    plain = write_plainly(command)
    if plain != command and not (analysis := _analyse(plain, facts)).proof.unproven:
        return analysis
    return _analyse(command, facts)


def _analyse(command: str, facts: MachineFacts | None) -> Analysis:
    script = Script(deadline=time.thread_time() + BASH_PARSE.seconds)
    is_incomplete = False
    try:
        if len(command) > BASH_SIZE.value:
            raise LimitExceeded
        script.read(command)
    except LimitExceeded:
        script.is_unknown = is_incomplete = True
    commands = script.commands
    texts = tuple(dict.fromkeys(simple.text for simple in commands)) or (
        command[:_MAX_SHOWN_CHARS].strip() or ":",
    )
    possible_commands = _list_marked_texts(commands)
    if script.is_unknown:
        possible_commands = tuple(dict.fromkeys((ANY_TEXT, *possible_commands)))
    # Two commands may have one text, of which only one has other spellings (`xargs git --no-pager;
    # git --no-pager`).
    spellings = [(simple.text, tuple(map(shorten, list_spellings(simple)))) for simple in commands]
    return Analysis(
        commands=texts,
        always_patterns=_make_always_patterns(commands),
        touches=find_touches(script),
        possible_commands=possible_commands,
        spellings={text: others for text, others in spellings if others},
        proof=prove(command, facts or MachineFacts()),
        is_destructive=any(map(is_destructive, commands)) or (script.is_unknown and not commands),
        remote_commands=_find_remote_commands(
            commands, texts, command if is_incomplete or not commands else ""
        ),
    )


def _find_remote_commands(
    simple_commands: Sequence[SimpleCommand], texts: Sequence[str], unparsed_text: str
) -> tuple[str, ...]:
    """Return the texts of the commands that act on other machines;
    all of them if one is in an unparsed part.

    `unparsed_text`: the line, if it was not parsed to its end.
    """
    if unparsed_text and mentions_remote_change(
        re.split(_WORD_SEPARATORS, unparsed_text[: BASH_SIZE.value])
    ):
        return tuple(texts)
    remote_commands = [simple for simple in simple_commands if _acts_remotely(simple)]
    return tuple(
        dict.fromkeys(
            [*(simple.text for simple in remote_commands), *_list_marked_texts(remote_commands)]
        )
    )


def _list_marked_texts(simple_commands: Sequence[SimpleCommand]) -> tuple[str, ...]:
    """Return the texts, with marks, of the commands that are not fully known, each once."""
    texts = [simple.marked_text for simple in simple_commands]
    return tuple(dict.fromkeys(shorten(text) for text in texts if text is not None))


def _acts_remotely(simple: SimpleCommand) -> bool:
    words = [word.value for word in simple.words]
    # What acts remotely in a container does so here.
    runs_others = is_runner(words[0]) or find_row(words[0]).is_container
    return changes_remote(words) or (runs_others and contains_remote_change(words))


def shorten(text: str) -> str:
    """Cut a text for comparison with rules; the rest becomes unknown."""
    return text if len(text) <= _MAX_COMPARED_CHARS else text[:_MAX_COMPARED_CHARS] + ANY_TEXT


def _make_always_patterns(simple_commands: Sequence[SimpleCommand]) -> tuple[str, ...]:
    """Return the patterns of an "always": for each command the words that identify it,
    and any arguments.

    No patterns if the line redirects to a file, or if a command in it runs another: `sudo
    *` would allow everything.
    """
    for simple in simple_commands:
        writes = any(
            redirect.is_file and not _is_harmless(redirect) for redirect in simple.redirects
        )
        if (
            writes
            or not all(word.is_known for word in simple.words)
            or unwrap(simple.words) != NO_COMMANDS
        ):
            return ()
    texts = ([word.text for word in simple.words] for simple in simple_commands)
    return tuple(dict.fromkeys(" ".join(find_leading_words(words)) + " *" for words in texts))


def _is_harmless(redirect: Redirect) -> bool:
    return "<" in redirect.operator or redirect.target.value == "/dev/null"


def make_need(command: str, analysis: Analysis) -> Need:
    """Make the need of an analysed line: the permission `bash`,
    with a pattern for each simple command.
    """
    return Need(
        permission="bash",
        patterns=analysis.commands,
        always=() if analysis.proof.unproven else analysis.always_patterns,
        metadata={
            "command": command,
            **({REMOTE_KEY: list(analysis.remote_commands)} if analysis.remote_commands else {}),
        },
        possible=analysis.possible_commands,
        spellings=analysis.spellings,
        traits=("read-only",) if analysis.is_read_only else (),
        remote=analysis.remote_commands,
        unproven=analysis.proof.unproven,
        writes=Writes(ignored=analysis.is_destructive),
    )
