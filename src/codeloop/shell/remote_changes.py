"""Whether a command changes something on another machine or service, as far as its words show.

A line of `ProgramRow.remote` is such a command, without the program's name: `push ! -n --dry-run`.
Options between its words are skipped. A word may list alternatives (`push,publish`) and contain
stars; `add~` means `add` and `add-*`; `**` stands for any words. After `!`: options with which the
command changes nothing there. After `+`: options, one of which it needs to change something. After
`>`: a pattern that its last operand must match.
`not` before a line: such a command changes nothing.
"""

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

from msgspec import Struct

from codeloop.kit.wildcard import MARKS
from codeloop.shell.program_table import find_row

_HELP_OPTIONS = ("--help", "-h", "--version")
# `--dry-run=client` and `--dry-run=server` of kubectl mean true as well.
_TRUE_VALUES = ("=true", "=1", "=client", "=server")
_FALSE_VALUES = ("false", "none", "0")
# Options without a value, so that the word after them is not taken for one.
_OPTION_WITHOUT_VALUE = (
    r"--(access|force|force-with-lease|tags|all|no-verify|verbose|quiet"
    r"|set-upstream)(=.*)?|-[ufqvy]+"
)
_PYTHON_NAME = r"python[\d.]*|py|pypy[\d.]*"
# Levels of commands inside one another that are judged: `npx uv run COMMAND` has three.
_MAX_LEVELS = 4
# Words of a command that is looked for within a text.
_MAX_WORDS = 20


class RemoteRow(Struct, frozen=True):
    """A parsed line of `ProgramRow.remote`.

    `harmless_options`: the options after `!`; `required_options`: those after `+`;
    `target_pattern`: the pattern after `>`; `is_change`: false for a row that begins with `not`.
    """

    words: tuple[tuple[str, ...], ...]
    harmless_options: tuple[str, ...]
    required_options: tuple[str, ...]
    target_pattern: str
    is_change: bool


def changes_remote(words: Sequence[str]) -> bool:
    """Return whether a command changes something on another machine or service.

    `words`: its name first, with the marks of `kit.wildcard` in them.
    """
    return _changes_remote(tuple(words), _MAX_LEVELS)


def _changes_remote(words: tuple[str, ...], levels: int) -> bool:
    """Do the work of `changes_remote`. `levels`: of commands inside one another,
    how many are still judged.
    """
    if not words or levels == 0:
        return False
    words = _normalise_program(words)
    name, arguments = words[0], words[1:]
    program = find_row(name)
    if program.changes_remote is not None and program.changes_remote(arguments, program):
        return True
    rows = _parse_rows(program.remote)
    if name == "git" and _defines_alias(arguments):
        return True
    # `not` rows first: they are exceptions from wider ones (`vercel` deploys,
    # `vercel build` does not).
    if any(not row.is_change and _matches(row, words) for row in rows):
        return False
    if any(row.is_change and _matches(row, words) for row in rows):
        return True
    return any(_changes_remote(words[index:], levels - 1) for index in _find_command_starts(words))


def mentions_remote_change(words: Sequence[str]) -> bool:
    """Return whether a command that changes something remote occurs in a text that
    can't be parsed as shell.
    """
    return any(
        _is_known_program(word)
        and len(words) > index + 1
        and _changes_remote(tuple(words[index : index + _MAX_WORDS]), _MAX_LEVELS)
        for index, word in enumerate(words)
    )


def contains_remote_change(words: Sequence[str]) -> bool:
    """Return whether a command that changes something remote occurs in the
    arguments of another one.
    """
    return mentions_remote_change([piece for word in words[1:] for piece in word.split()])


def _is_known_program(word: str) -> bool:
    program = find_row(_normalise_name(word))
    return program.remote != "" or program.changes_remote is not None


def _normalise_program(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command under the program name that the rows use."""
    name = _normalise_name(words[0])
    # `python -m twine upload` is `twine upload`.
    if re.fullmatch(_PYTHON_NAME, name):
        index = next((index for index, word in enumerate(words) if word == "-m"), 0)
        if index and len(words) > index + 1:
            return (_normalise_name(words[index + 1]), *words[index + 2 :])
        script = next((index for index, word in enumerate(words) if word.endswith("setup.py")), 0)
        return ("setup.py", *words[script + 1 :]) if script else words
    if name.startswith("git-") and not find_row(name).remote:
        return ("git", name.removeprefix("git-"), *words[1:])
    return (name, *words[1:])


@lru_cache(1_000)
def _normalise_name(word: str) -> str:
    name = word.rpartition("/")[2].lower()
    # `npx vercel@latest` runs `vercel`, and `npm.cmd` is `npm`.
    return re.sub(r"(?<=.)@[\w.^~-]*$|\.(exe|cmd|bat|sh)$", "", name)


def _defines_alias(arguments: Sequence[str]) -> bool:
    """Return whether git is given an alias (`-c alias.x=push`),
    which changes what its other words mean.
    """
    return any(
        word == "-c"
        and arguments[index + 1 : index + 2]
        and arguments[index + 1].lower().startswith("alias.")
        for index, word in enumerate(arguments)
    )


def _find_command_starts(words: tuple[str, ...]) -> Iterator[int]:
    """Yield where a package runner's command may begin."""
    for subcommand in filter(None, find_row(words[0]).runs_after.split(";")):
        positions = {1}
        for part in subcommand.replace("*", "").split():
            positions = {
                index + 1
                for position in positions
                for index in _find_operand_positions(words, position)
                if words[index] == part
            }
        for start in positions:
            yield from _find_operand_positions(words, start)


def _matches(row: RemoteRow, words: tuple[str, ...]) -> bool:
    """Return whether a command matches a row, in any reading: an option may or may
    not take the word after it.
    """
    positions = {1}
    for part in row.words:
        if part == ("**",):
            positions = {index for start in positions for index in range(start, len(words))}
            continue
        positions = {
            index + 1
            for start in positions
            for index in _find_operand_positions(words, start)
            if _may_be_one_of(words, index, part)
        }
        if not positions:
            return False
    if row.is_change and _has_harmless_option(row, words):
        return False
    if row.required_options and not any(
        word.partition("=")[0] in row.required_options or word in row.required_options
        for word in words
    ):
        return False
    return not row.target_pattern or _may_have_target(row.target_pattern, words)


def _may_have_target(pattern: str, words: tuple[str, ...]) -> bool:
    """Return whether the last operand may match a row's pattern, such as `s3://*`."""
    targets = _list_last_operands(words)
    if any(fnmatchcase(word, pattern) for word in targets):
        return True
    # One end of `aws s3 sync . "$DEST"` must be remote; when no other word is, it is the unknown
    # one. With a remote source, the target is taken for local. svn's subcommands (`*://*`) also
    # work with two local paths.
    begins_unknown = any(word[:1] in MARKS for word in targets)
    return (
        begins_unknown
        and not pattern.startswith("*")
        and not any(fnmatchcase(word, pattern) for word in words)
    )


def _list_last_operands(words: tuple[str, ...]) -> list[str]:
    """Return the words that may be the last operand: an option behind it may or may
    not take the word after it.
    """
    operands: list[str] = []
    index = len(words) - 1
    while index > 0:
        # A dash alone is an operand: the input or the output.
        if words[index].startswith("-") and words[index] != "-":
            index -= 1
            continue
        operands.append(words[index])
        if not words[index - 1].startswith("-") or "=" in words[index - 1]:
            break
        index -= 2
    return operands


def _may_be_one_of(words: tuple[str, ...], index: int, names: tuple[str, ...]) -> bool:
    """Return whether a word may be one of the names;
    an unknown one may, unless it can be an option's value.
    """
    if MARKS.intersection(words[index]):
        # Only a word that is not known at all: `pu$X` is not taken for `push`.
        return not words[index].strip("".join(MARKS)) and not words[index - 1].startswith("-")
    return any(fnmatchcase(words[index], name) for name in names)


def _find_operand_positions(words: tuple[str, ...], start: int) -> Iterator[int]:
    """Yield the possible indices of the next operand: each option before it may take a value.

    Of `-a x y`, that is the one of `x`, and if it is the value of `-a`, that of `y`.
    """
    index = start
    while index < len(words) and words[index].startswith("-"):
        index += 1
        has_value = (
            index < len(words) and not words[index].startswith("-") and "=" not in words[index - 1]
        )
        if has_value and index + 1 < len(words):
            yield index
            index += 1
            if not words[index].startswith("-"):
                break
    if index < len(words):
        yield index


def _has_harmless_option(row: RemoteRow, words: tuple[str, ...]) -> bool:
    """Return whether an option makes the row harmless (and is not another option's value)."""
    end = words.index("--") if "--" in words else len(words)
    harmless_options = (*row.harmless_options, *_HELP_OPTIONS)
    if not find_row(words[0]).has_short_help:
        harmless_options = tuple(option for option in harmless_options if option != "-h")
    # The opposite of `--dry-run`: `--no-dry-run`, which may be shortened, or `--dry-run=false`,
    # `=no`, `=0`.
    if any(
        word.startswith(("--no-d", "--dry-run=f", "--dry-run=n", "--dry-run=0")) for word in words
    ):
        return False
    for index in range(1, end):
        before, word = words[index - 1], words[index]
        after = words[index + 1] if index + 1 < end else ""
        is_value = (
            before.startswith("-")
            and "=" not in before
            and not re.fullmatch(_OPTION_WITHOUT_VALUE, before)
        )
        is_harmless = word in harmless_options or any(
            word == option + value for option in row.harmless_options for value in _TRUE_VALUES
        )
        if is_harmless and not is_value and after not in _FALSE_VALUES:
            return True
    return False


@lru_cache(256)
def _parse_rows(text: str) -> tuple[RemoteRow, ...]:
    rows: list[RemoteRow] = []
    for line in filter(None, text.split("\n")):
        is_change = not line.startswith("not ")
        head, *option_texts = re.split(r"(?:^| )(?=[!+>] )", line.removeprefix("not "))
        options = {each[0]: tuple(each[2:].split()) for each in option_texts}
        rows.append(
            RemoteRow(
                words=tuple(_expand_alternatives(word) for word in head.split()),
                harmless_options=options.get("!", ()),
                required_options=options.get("+", ()),
                target_pattern=" ".join(options.get(">", ())),
                is_change=is_change,
            )
        )
    return tuple(rows)


def _expand_alternatives(word: str) -> tuple[str, ...]:
    words: list[str] = []
    for each in word.split(","):
        words += [each[:-1], f"{each[:-1]}-*"] if each.endswith("~") else [each]
    return tuple(words)
