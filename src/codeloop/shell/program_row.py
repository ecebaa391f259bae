"""`ProgramRow`: the row of a program, all that is known about it. The rows stand in `programs/`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from codeloop.shell.arguments import Arguments
from codeloop.shell.options import Option, Use, parse_operands, parse_options
from codeloop.shell.word import Word
from codeloop.shell.wrapped_commands import WrappedCommands


class Wrapper(Struct, frozen=True):
    """Marks a program that runs the words behind its options as a command.

    `operand_count`: of its own operands before the command;
    `takes_assignments`: `A=b` may come before it, too;
    `exit_options`: with one of them as its first word it runs nothing;
    `starts_shell`: without a command, it does.
    """

    operand_count: int = 0
    takes_assignments: bool = False
    exit_options: str = ""
    starts_shell: bool = False


class Builtin(Struct, frozen=True):
    """Marks a builtin of bash.

    `only_reads`: once proved to evaluate nothing, it changes nothing that outlives the line.
    `is_certain`: whether its effect is certain with these arguments; None: never. `may_evaluate`:
    whether bash may run one of them as shell text.
    """

    only_reads: bool = False
    is_certain: Callable[[Sequence[Word]], bool] | None = None
    may_evaluate: Callable[[Sequence[Word]], bool] | None = None


class ProgramRow(Struct, frozen=True, kw_only=True):
    """A row: what a program does with its words, and what it does to the world.
    `options.py` explains the notation.

    Its words. `operands`: the roles of its operands; "": they are not known, each word may be a
    file. `options`: those that change nothing by themselves, in any version of the program;
    `risky`: the others that are worth knowing, for the files or the values that they take. An
    option in neither counts as a flag.

    Its files. `find_more_uses`: finds uses beyond those of operands and options. `read_words`:
    finds all uses, in place of the row.
    """

    operands: str = ""
    options: str = ""
    risky: str = ""
    find_more_uses: Callable[[Arguments], list[Use]] | None = None
    read_words: "Callable[[Sequence[str], ProgramRow], list[Use]] | None" = None

    reads: str | None = None
    """Not None: with its `options` alone it changes nothing. Words of the text limit that:

    `any`: words that are only known at run time may be options; `apart`: an option with a value
    stands alone, not behind other letters; `option`: it needs an option, since it would run what it
    reads from its input; `max:1`: it may have one operand.
    """
    operand_pattern: str = ""
    """A pattern that each operand must match for the program to only read;
    "": any operand may stand there.
    """
    check_harmless: "Callable[[Sequence[Word], ProgramRow], object] | None" = None
    """Checks what `reads` can't say. Raises Harmful."""
    is_plain: bool = False
    """Whether it only touches the files that its words name, and creates no link."""
    destroys: str = ""
    """Parts of the words with which it may delete or overwrite many files;
    `*`: whatever its words are.
    """

    builtin: Builtin | None = None
    wraps: Wrapper | None = None
    unwrap: "Callable[[Sequence[Word], ProgramRow], WrappedCommands] | None" = None
    """Finds the commands that it runs, where `wraps` can't say."""
    is_followed: bool = False
    """Whether a line with it can be proved by proving the command that it runs."""
    runs_words: Literal["", "command", "script"] = ""
    """Whether any of its words may begin a command that it runs;
    `script`: or it reads commands from elsewhere.
    """
    runs_by: str = ""
    """Options, and starts of words, by which it runs another program,
    though it otherwise runs none.
    """
    runs_after: str = ""
    """The subcommands, divided by `;`, behind which a command stands that it runs;
    `*`: right behind its options.
    """
    is_container: bool = False
    """Whether a command that it runs, in a container, may stand anywhere."""
    is_interpreter: bool = False

    groups: str | None = None
    """Not None: it has subcommands, so that two words identify a command;
    three with these subcommands.
    """
    subcommands: "Mapping[str, ProgramRow]" = {}
    """Rows of its subcommands, where they differ from its own;
    of git also of two words, as `stash list`.
    """
    configures: str = ""
    """The words with which a subcommand of git writes the configuration of the repository."""

    remote: str = ""
    """The commands that change something on another machine or service,
    one a line: see `remote_changes.py`.
    """
    changes_remote: "Callable[[Sequence[str], ProgramRow], bool] | None" = None
    """Checks arguments: whether they change something remote."""
    has_short_help: bool = True
    """Whether `-h` shows its help, rather than taking a value."""

    checks: str = ""
    """The kind of what it checks: `test`, or by subcommand `test: test, t; lint: clippy`."""
    tasks: str | None = None
    """Not None: it runs tasks of the project, by the word behind one of these; `?`: behind none;
    `*`: any number of words are; `jvm`: tasks of Gradle, or phases of Maven.
    """
    narrows: str = ""
    """Options by which it checks less than its project says, each with a value;
    `-k?`: which may be attached.
    """
    language: str = ""
    """The language of the tests that it runs; "": of any.
    Two runners of one language can run the same tests.
    """
    modes: str = ""
    """Words before its targets that are none: `run` of `vitest run`."""
    locates: str = ""
    """Options whose value is what it checks: `-s` of `unittest discover -s tests`."""
    enters: str = ""
    """Options whose value is the folder that it works in: `-C` of `make -C build test`."""
    picks: str = ""
    """Options whose value names a part of the project,
    by its folder or the end of that: `-w` of `npm -w web test`.
    """
    ignores: str = ""
    """Options with a value that changes nothing about what it checks,
    though that of other programs does.
    """

    @property
    def known_options(self) -> dict[str, Option]:
        """The options that change nothing by themselves."""
        return parse_options(self.options)

    @property
    def all_options(self) -> dict[str, Option]:
        """All options of the row. Those of `options` come last: git's subcommands share the others,
        and may differ.
        """
        return parse_options(self.risky, self.options)

    def read_arguments(self, words: Sequence[str]) -> Arguments:
        """Read the words behind the program's name by its row."""
        return Arguments(parse_operands(self.operands), self.all_options, words)


NOT_KNOWN = ProgramRow()
"""The row of a program of which nothing is known."""


def list_by_name(
    rows: Mapping[str, ProgramRow], separator: str | None = None
) -> dict[str, ProgramRow]:
    """Return rows by single names. `rows`: by names, divided by a separator or by blanks."""
    return {name.strip(): row for names, row in rows.items() for name in names.split(separator)}
