"""Proves what a shell line does. Reads nothing from the disk: whatever depends on the
machine comes as `MachineFacts`.

Rules that allow particular commands count for proved lines only. A line is proved when it is in the
small language (`grammar.py`), each name in it is sure to be the program that it seems to be, and
whatever its commands run is proved.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from posixpath import join, normpath

from msgspec import Struct

from codeloop.kit.wildcard import ANY_TEXT
from codeloop.schema.limits import BASH_COMMANDS, BASH_NESTING
from codeloop.shell.builtin_checks import is_whole_variable
from codeloop.shell.effects import explain_change
from codeloop.shell.grammar import is_harmless_assignment, read_line
from codeloop.shell.harmless_checks import check_sed_runs_nothing
from codeloop.shell.harmless_words import Harmful
from codeloop.shell.leading_options import find_operand
from codeloop.shell.program_row import Builtin, ProgramRow
from codeloop.shell.program_table import find_row
from codeloop.shell.simple_command import SimpleCommand, strip_system_folder
from codeloop.shell.unwrap import is_runner, unwrap
from codeloop.shell.unwrappers import (
    SCRIPT_UNWRAPPERS,
    STDIN_PATH,
    unwrap_find,
    unwrap_sed,
    unwrap_shell,
)
from codeloop.shell.word import Word, make_word
from codeloop.shell.wrapped_commands import NO_COMMANDS

# The option of `sh -c SCRIPT`, also as `-ec`, `-euxc`.
_SCRIPT_OPTION = r"-[eux]*c"
_SUDO_OPTION = r"-[nEH]+|--non-interactive"
_UNCERTAIN_EFFECT = "what it does is not certain"
# Each `cd` may fail, so the folders that the shell may be in double with it;
# beyond this many nothing is proved.
_MAX_FOLDERS = 8


class GitFacts(Struct, frozen=True):
    """The repository that git would find from a directory.

    `foreign_reason`: why it may not be the project's own; "": it is, or there is none.
    `program_reason`: what in it may run programs; "": nothing. `is_below_top`: the directory lies
    below the top of the work tree, so a command could make another repository that git finds first.
    """

    foreign_reason: str = ""
    program_reason: str = ""
    is_below_top: bool = False


class ProgramFacts(Struct, frozen=True):
    """The program that a name runs. `path`: "" if it is not known;
    `doubt`: why it may not be the one of that name.

    `is_shadowable`: a folder of the project comes before it on the PATH,
    so a command could put another program there.
    """

    path: str = ""
    doubt: str = ""
    is_shadowable: bool = False


def _assume_certain(_: str) -> ProgramFacts:
    return ProgramFacts()


def _assume_plain_repository(_: str) -> GitFacts:
    return GitFacts()


class MachineFacts(Struct, frozen=True):
    """The facts about the machine that a proof depends on.

    `directories`: the directory that the line runs in, in each spelling that the shell may know it
    by. `doubt`: the reason why no line can be proved; "": there is none. `find_program`: finds the
    facts about the program of a name.
    `find_repository`: finds those about the git repository of a directory.
    """

    directories: tuple[str, ...] = ("/",)
    home: str = "/"
    doubt: str = ""
    find_program: Callable[[str], ProgramFacts] = _assume_certain
    find_repository: Callable[[str], GitFacts] = _assume_plain_repository


class ProvedCommand(Struct, frozen=True):
    """A command of a proved line. `argv`: its words as bash makes them;
    marks of `kit.wildcard` for what varies.
    """

    argv: tuple[str, ...]
    command: SimpleCommand


class Proof(Struct, frozen=True):
    """The result for a line.

    `unproven`: why its meaning is uncertain; "": it is certain. `change_reason`: why it may change
    something; "": it does not. `commands`: the commands that bash itself starts, in order. Commands
    that these run are proved,
    too, but not listed.
    """

    unproven: str = ""
    change_reason: str = ""
    commands: tuple[ProvedCommand, ...] = ()

    @property
    def is_read_only(self) -> bool:
        """Whether it certainly changes nothing."""
        return not self.unproven and not self.change_reason


class _Unproven(Exception):
    """The meaning of a line, or of a command in it, is not certain; the text is the reason."""


def prove(line: str, facts: MachineFacts) -> Proof:
    """Prove a line, or explain why that is not possible.
    Takes time in proportion to its length, and never fails.
    """
    parsed_line = read_line(line)
    if parsed_line.refusal or facts.doubt:
        return Proof(unproven=parsed_line.refusal or facts.doubt, change_reason=_UNCERTAIN_EFFECT)
    prover = _Prover(facts)
    try:
        for command in parsed_line.commands:
            prover.prove_step(command)
        prover.check_shadowing(parsed_line.commands)
    except _Unproven as reason:
        return Proof(unproven=str(reason), change_reason=_UNCERTAIN_EFFECT)
    commands = tuple(
        ProvedCommand(tuple(_expand_home(word, facts.home) for word in command.words), command)
        for command in parsed_line.commands
    )
    return Proof(change_reason=prover.change_reason, commands=commands)


def _expand_home(word: Word, home: str) -> str:
    return home + word.value[1:] if word.source.startswith("~") else word.value


class _Prover:
    """Proves the commands of one line in order.

    `folders`: the directories that the shell may be in; `is_lost`: it may be elsewhere.
    `change_reason`: the first reason why something may be changed. `command_count`: the commands so
    far, those inside others included.
    `shadowed_program`: the first program that stands behind a folder of the project on the PATH.
    """

    def __init__(self, facts: MachineFacts) -> None:
        self.facts = facts
        self.folders = facts.directories
        self.change_reason = ""
        self.command_count = 0
        self.is_lost = False
        self.shadowed_program = ""

    def prove_step(self, command: SimpleCommand, depth: int = 0) -> None:
        """Judge a command that bash itself starts. Raises _Unproven."""
        self._prove_command(command.words, depth, is_started_by_shell=True)
        for redirect in command.redirects:
            if (
                redirect.is_file
                and redirect.operator != "<"
                and redirect.target.value != "/dev/null"
            ):
                self._note_change(f"it writes to {redirect.target.text}")
        if command.words[0].value == "cd":
            self._follow_cd(command)

    def check_shadowing(self, commands: Sequence[SimpleCommand]) -> None:
        """Refuse a program that the line itself could put another one in front of.

        `_prove_command` does so for changes before it; in a pipeline those after it count, too,
        since all run at once.
        """
        if (
            self.shadowed_program
            and self.change_reason
            and not all(command.is_plain_step for command in commands)
        ):
            raise _Unproven(_describe_shadowing(self.shadowed_program))

    def _note_change(self, reason: str) -> None:
        # The first reason is the one that a user reads.
        self.change_reason = self.change_reason or reason

    def _prove_command(
        self, words: Sequence[Word], depth: int, *, is_started_by_shell: bool
    ) -> None:
        """Judge a command and what it runs. `is_started_by_shell`: bash itself starts it,
        so it may be a builtin.
        """
        self.command_count += 1
        if self.command_count > BASH_COMMANDS.value or depth > BASH_NESTING.value:
            raise _Unproven("it runs too many commands")
        if not words[0].is_known:
            raise _Unproven("the name of a command is only known when it runs")
        name = strip_system_folder(words[0].value)
        is_bare = "/" not in words[0].value
        program_facts = ProgramFacts()
        builtin = find_row(name).builtin
        if is_started_by_shell and is_bare and name != "command" and builtin is not None:
            self._check_builtin(name, words, builtin)
            self._note_change("" if builtin.only_reads else f"`{name}` changes something")
            return
        # Bare names and programs in folders of the system are looked up. Any other path
        # (`./build.sh`) names a file.
        if name != "command" and (is_bare or name != words[0].value):
            program_facts = self.facts.find_program(words[0].value)
        if program_facts.doubt:
            raise _Unproven(program_facts.doubt)
        if program_facts.is_shadowable:
            self.shadowed_program = self.shadowed_program or name
            if self.change_reason:
                raise _Unproven(_describe_shadowing(name))
        self._check_variables(name, words)
        if name == "git":
            self._prove_git(words)
            return
        bare_name = name.rpartition("/")[2] or name
        program = find_row(bare_name)
        words = (make_word(bare_name), *words[1:])
        runs_others = program.unwrap is not None and program.unwrap not in SCRIPT_UNWRAPPERS
        if runs_others or program.wraps is not None or is_runner(bare_name):
            self._prove_runner(bare_name, program, words, depth)
        elif unwrap(words) != NO_COMMANDS:
            raise _Unproven(f"`{name}` runs another program with these options")
        elif program.unwrap is unwrap_sed:
            self._check_sed(words, program)
        self._note_change(explain_change(name, words[1:], program_facts.path))

    def _check_builtin(self, name: str, words: Sequence[Word], builtin: Builtin) -> None:
        if builtin.is_certain is None or not builtin.is_certain(words[1:]):
            raise _Unproven(
                f"`{name}` is the shell's own and may evaluate or change more than it says"
            )

    def _check_variables(self, name: str, words: Sequence[Word]) -> None:
        """Refuse a variable that could be an option: it has to come after `--`."""
        if name in {"echo", "printf"}:
            # An option of these changes only how they print.
            return
        for word in words[1:]:
            if word.value == "--":
                return
            if word.value == ANY_TEXT and is_whole_variable(word):
                raise _Unproven(f"{word.source} could be an option of `{name}`: put `--` before it")

    def _prove_runner(
        self, name: str, program: ProgramRow, words: Sequence[Word], depth: int
    ) -> None:
        """Follow a program into the commands that it runs."""
        options = [word.value for word in words[1:]]
        if program.unwrap is unwrap_find:
            # `-execdir` runs in the folder of each file, where a name may mean another program;
            # `-ok` asks first.
            if {"-execdir", "-ok", "-okdir"}.intersection(options) or any(
                map(is_whole_variable, words)
            ):
                raise _Unproven("where `find` runs its command, or whether, is not certain")
        elif program.is_followed and program.unwrap is unwrap_shell:
            self._prove_shell(name, words, depth)
            return
        elif not program.is_followed:
            raise _Unproven(f"what `{name}` runs is not followed")
        if name == "command" and any(
            option not in {"-v", "-V"} for option in _list_leading_options(options)
        ):
            raise _Unproven("`command` is given options that are not followed")
        if name == "env":
            self._check_env(words)
        if name == "sudo" and not all(
            re.fullmatch(_SUDO_OPTION, each) for each in _list_leading_options(options)
        ):
            raise _Unproven("`sudo` is given options that are not followed")
        inner = unwrap(words)
        if inner.is_unknown or inner.scripts:
            raise _Unproven(f"what `{name}` runs is only known when it runs")
        if name == "env" and not inner.commands:
            self._note_change("`env` prints the environment, which may hold secrets")
        for command in inner.commands:
            self._prove_command(command, depth + 1, is_started_by_shell=name == "command")

    def _check_sed(self, words: Sequence[Word], program: ProgramRow) -> None:
        try:
            check_sed_runs_nothing(words[1:], program)
        except Harmful as reason:
            raise _Unproven(f"`sed` may run a program: {reason}") from reason

    def _prove_shell(self, name: str, words: Sequence[Word], depth: int) -> None:
        match words[1:]:
            case [Word(value=flags), Word() as script] if (
                re.fullmatch(_SCRIPT_OPTION, flags) and script.is_known
            ):
                parsed_line = read_line(script.value)
                if parsed_line.refusal:
                    raise _Unproven(parsed_line.refusal)
                for command in parsed_line.commands:
                    self.prove_step(command, depth + 1)
            case [Word() as file, *_] if _names_script(file):
                self._note_change(f"`{name}` runs a script")
            case _:
                raise _Unproven(f"what `{name}` reads is not certain")

    def _check_env(self, words: Sequence[Word]) -> None:
        for word in words[1:]:
            variable, is_assignment, value = word.value.partition("=")
            if not is_assignment:
                if word.value.startswith("-"):
                    raise _Unproven("`env` is given options")
                return
            if not word.is_known or not is_harmless_assignment(variable, value):
                raise _Unproven(f"it assigns {variable}")

    def _follow_cd(self, command: SimpleCommand) -> None:
        """Follow `cd`, which may fail; within a pipeline it leads nowhere."""
        if not command.is_plain_step:
            return
        rest = [word for word in command.words[1:] if word.value != "--"]
        target = _expand_home(rest[0], self.facts.home) if rest else self.facts.home
        # `..` behind a folder, which may be a link: the shell goes up by the path as it was typed,
        # a program by the folder that the link leads to. Only in the first directory of the line a
        # leading `..` is behind none.
        climbs_from_folder = ".." in target.lstrip("./").split("/")
        climbs_after_cd = ".." in target.split("/") and self.folders != self.facts.directories
        self.is_lost = self.is_lost or climbs_from_folder or climbs_after_cd
        # The old folders stay possible, since `cd` may fail.
        targets = (normpath(join(folder, target)) for folder in self.folders)
        self.folders = tuple(dict.fromkeys((*self.folders, *targets)))
        if len(self.folders) > _MAX_FOLDERS:
            raise _Unproven("where it runs is not certain")

    def _prove_git(self, words: Sequence[Word]) -> None:
        """Judge git by the repository that it finds, and by its subcommand."""
        index = find_operand(words, find_row("git").known_options)
        if index is None or index > len(words) or not all(word.is_known for word in words[:index]):
            raise _Unproven(
                "`git` is given options that choose another repository or configuration"
            )
        if self.is_lost:
            raise _Unproven("in which folder `git` runs is not certain")
        folders = self.folders
        for option, value in pairwise(words[:index]):
            # git follows links before `..`, so the path must not be normalised.
            if option.value == "-C":
                folders = tuple(
                    join(folder, _expand_home(value, self.facts.home)) for folder in folders
                )
        git_facts = [self.facts.find_repository(folder) for folder in folders]
        for facts in git_facts:
            if facts.foreign_reason:
                raise _Unproven(facts.foreign_reason)
            if facts.is_below_top and self.change_reason:
                raise _Unproven("what comes before it may change which repository git finds")
        if unwrap(words) != NO_COMMANDS:
            raise _Unproven("`git` runs another program with these options")
        self._note_change(
            explain_change("git", words[index:])
            or next((facts.program_reason for facts in git_facts if facts.program_reason), "")
        )


def _describe_shadowing(name: str) -> str:
    return f"the line may put another `{name}` into a folder of the project that comes first on the PATH"


def _names_script(file: Word) -> bool:
    return (
        file.is_known
        and file.value[:1] not in {"", "-", "+"}
        and not re.fullmatch(STDIN_PATH, file.value, re.DOTALL)
    )


def _list_leading_options(options: Sequence[str]) -> Iterator[str]:
    """Yield the options before the first other word."""
    for option in options:
        if not option.startswith("-"):
            return
        yield option
