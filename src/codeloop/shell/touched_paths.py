"""Finds the paths that the simple commands of a line read, write or only look up.

This is not a security boundary: a program may touch more files than its words name.
How each program uses its
words is in its row; here they are put together for a whole line, with its variables,
its redirections and `cd`.
"""

import re
from collections.abc import Iterator, Sequence
from posixpath import join, normpath
from typing import NamedTuple

from msgspec import Struct

from codeloop.kit.wildcard import ANY_TEXT
from codeloop.shell.git_reader import ELSEWHERE_VARIABLES
from codeloop.shell.options import Use
from codeloop.shell.parser import Script
from codeloop.shell.program_table import find_row
from codeloop.shell.simple_command import Redirect
from codeloop.shell.unknown_program import read_words_of_unknown_program
from codeloop.shell.unwrap import is_runner
from codeloop.shell.unwrappers import unwrap_fd, unwrap_find
from codeloop.shell.word import Word
from codeloop.shell.word_paths import ANYWHERE, MAX_EXPANSIONS, expand_word

GIT_TOP = ":/"
"""The top of the work tree, independent of the folder."""
_HARMLESS_DEVICE = (
    r"/dev/(null|zero|full|tty|random|urandom|std(in|out|err)|fd/\d+)|/proc/self/fd/\d+"
)
# A URL other than `file://`, or `host:path` as `scp` and `rsync` write it.
_REMOTE_ADDRESS = r"(?a)(?!file://)[a-zA-Z][\w+.-]*://|[\w.@-]+:(?!/?$)|rsync:"
# `cd` in branches and pipelines leaves several folders possible;
# beyond this many the folder counts as unknown.
_MAX_FOLDERS = 8
# Commands that are looked for among the words of a runner.
_MAX_RUN_COMMANDS = 4
# `>`, `2>>`, `&>`, `{fd}>`
_WRITE_OPERATOR = r"(\d*|&|\{\w+\})(>|>>|>\||<>|>&)"


class Touches(Struct, frozen=True):
    """The paths that a line touches, as text: absolute, beginning with `~` or `:/`,
    or relative to where the line runs.

    In them `kit.wildcard.ANY_TEXT` is a run of one name's characters, and ANYWHERE a path that is
    only known when the line runs.

    - `reads`: files that are read; `read_trees`: folders that are read with everything below them;
      `visible_trees`: the same, without hidden files
    - `writes`: files and folders that are written; `filled_folders`: folders in which
      any file may be written;
      `unpack_folders`: folders in which the input decides the names of the files written;
      `changed_trees`: folders of which everything is changed or removed
    - `lookups`: paths that are only looked up or entered;
      `possible_reads`: words that are a file to read, if it exists
    - `git_trees`: paths whose tracked contents git prints;
      `git_changes`: paths whose changes it prints;
      `git_limits`: words that limit either to a path of this name, if it exists
    """

    reads: tuple[str, ...] = ()
    read_trees: tuple[str, ...] = ()
    visible_trees: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    filled_folders: tuple[str, ...] = ()
    unpack_folders: tuple[str, ...] = ()
    changed_trees: tuple[str, ...] = ()
    lookups: tuple[str, ...] = ()
    possible_reads: tuple[str, ...] = ()
    git_trees: tuple[str, ...] = ()
    git_changes: tuple[str, ...] = ()
    git_limits: tuple[str, ...] = ()


# Builtins that may set a variable whose name is among their words.
_VARIABLE_SETTERS = frozenset(
    [
        *(
            "declare",
            "export",
            "getopts",
            "let",
            "local",
            "mapfile",
            "printf",
            "read",
            "readarray",
            "readonly",
        ),
        *("select", "typeset", "unset", "wait"),
    ]
)
# `find ROOT -exec cmd {}` runs for everything below ROOT.
_ROLES_BELOW_ROOT = str.maketrans("rwb", "RDM")
# By role of a path, as explained in `options.py`: the fields of Touches that the path is added to.
_FIELDS_BY_ROLE = {
    "r": ("reads",),
    "R": ("read_trees",),
    "V": ("visible_trees",),
    "w": ("writes",),
    "W": ("filled_folders",),
    "X": ("filled_folders", "unpack_folders"),
    "D": ("writes", "changed_trees"),
    "M": ("read_trees", "writes", "changed_trees"),
    "b": ("reads", "writes"),
    "u": ("writes",),
    "t": ("lookups",),
    "n": ("lookups",),
    "p": ("possible_reads",),
    "g": ("possible_reads",),
    "f": ("reads",),
    "l": (),
    "o": ("git_trees",),
    "c": ("git_changes",),
    "v": ("git_limits",),
}


def find_touches(script: Script) -> Touches:
    """Find the paths that a script's commands touch, in the order of the line;
    each `cd` in it is followed.
    """
    touches: dict[str, dict[str, None]] = {field: {} for field in Touches.__struct_fields__}
    folders: list[str] = [""]
    roots: tuple[str, ...] = (ANYWHERE,)
    variables = _Variables(script)
    if script.is_unknown:
        touches["reads"][ANYWHERE] = touches["writes"][ANYWHERE] = None
    links: list[_Link] = []
    has_order = all(command.is_plain_step for command in script.commands)
    for number, command in enumerate(script.commands):
        words = [
            text
            for word in command.words[1:]
            for text in variables.expand_word(word, roots, number)
        ]
        name = command.words[0].value if command.words[0].is_known else ANYWHERE
        command_uses = find_uses(name, words)
        if roots != (ANYWHERE,) and any(word.source == "{}" for word in command.words):
            command_uses = [
                (role.translate(_ROLES_BELOW_ROOT), path) for role, path in command_uses
            ]
        all_uses = [*_find_redirect_uses(command.redirects, variables, number), *command_uses]
        uses = [
            (role, joined_path)
            for role, text in all_uses
            for folder in folders
            if (joined_path := _join_path(folder, variables.check_variables(text)))
        ]
        for role, path in uses:
            for field in _FIELDS_BY_ROLE.get(role, ()):
                touches[field][path] = None
        links.append(_Link(uses))
        if find_row(name).unwrap in {unwrap_find, unwrap_fd}:
            roots = tuple(dict.fromkeys(path for role, path in command_uses if role == "n")) or (
                ".",
            )
        if name == "git" and not ELSEWHERE_VARIABLES.isdisjoint(variables.set_names):
            touches["git_trees"][GIT_TOP] = None
        new_folder = _find_new_folder(name, words)
        if new_folder is not None:
            new_folder = variables.check_variables(new_folder, enters=True)
            new_folders = [_join_path(folder, new_folder) for folder in folders]
            # In a pipeline or a subshell `cd` ends with it: later commands may
            # run in either folder.
            is_certain = command.is_plain_step and name in {"cd", "pushd"}
            folders = new_folders if is_certain else list(dict.fromkeys([*folders, *new_folders]))
            folders = folders if len(folders) <= _MAX_FOLDERS else [ANYWHERE]
    for link in _find_written_links(links, has_order=has_order):
        for field in ("writes", "filled_folders"):
            touches[field] |= dict.fromkeys(link.targets)
    return Touches(**{field: tuple(paths) for field, paths in touches.items()})


class _Link:
    """What a command writes, and the files to which it gives another name by that
    (`targets`): links, mounts.
    """

    def __init__(self, uses: Sequence[Use]) -> None:
        self.targets = [path for role, path in uses if role == "l"]
        self.written = {
            normpath(path) for role, path in uses if "writes" in _FIELDS_BY_ROLE.get(role, ())
        }
        self.filled = {
            normpath(path)
            for role, path in uses
            if "filled_folders" in _FIELDS_BY_ROLE.get(role, ())
        }

    def may_be_written_by(self, other: "_Link") -> bool:
        """Return whether another command may write one of the targets by its new name,
        or below it.
        """
        if not self.targets:
            return False
        names = self.written | self.filled
        writes = other.written | other.filled
        return any(
            write == name
            or write.startswith(f"{name}/")
            or (write in other.filled and (write == "." or name.startswith(f"{write}/")))
            or not {ANY_TEXT, ANYWHERE}.isdisjoint(write + name)
            for name in names
            for write in writes
        )


def _find_written_links(links: Sequence[_Link], *, has_order: bool) -> list[_Link]:
    """Return the links by whose new names the commands of a line write.
    `links`: of each command; `has_order`: they run one after the other.
    """
    waiting = {number: link for number, link in enumerate(links) if link.targets}
    # What is written through a link of a link is written by that one's name, too.
    writers = list(enumerate(links))
    for writer_number, writer in writers:
        for number, link in tuple(waiting.items()):
            # Commands of a pipeline or a loop run in no certain order.
            is_later = writer_number > number if has_order else writer is not link
            if is_later and link.may_be_written_by(writer):
                del waiting[number]
                writers.append((writer_number, _Link([("w", path) for path in link.targets])))
    return [link for number, link in enumerate(links) if link.targets and number not in waiting]


class _AssignedVariable(NamedTuple):
    """A variable and the texts that it may become,
    for the commands from the number `first_command` on.
    """

    name: str
    first_command: int
    texts: tuple[str, ...]


class _Variables:
    """The values of a script's variables, where each is assigned once and
    nothing else can set it.
    """

    def __init__(self, script: Script) -> None:
        setters = [
            command for command in script.commands if command.words[0].value in _VARIABLE_SETTERS
        ]
        words = [word for command in setters for word in command.words[1:]]
        matches = (re.match(r"\w+", word.value) for word in words)
        self.set_names = {match[0] for match in matches if match} | set(script.variables)
        self._assigned: list[_AssignedVariable] = []
        if script.is_unknown or not all(word.is_known for word in words):
            return
        for name, assignment in script.variables.items():
            if assignment is not None and not any(
                re.match(rf"{name}\b", word.value) for word in words
            ):
                texts = [text for word in assignment.words for text in expand_word(word)]
                if texts and ANYWHERE not in texts and len(texts) <= MAX_EXPANSIONS:
                    self._assigned.append(
                        _AssignedVariable(name, assignment.command_count, tuple(texts))
                    )

    def expand_word(self, word: Word, roots: Sequence[str], number: int) -> tuple[str, ...]:
        """Return the paths of a word in the command with this number,
        which sees the assignments before it only.
        """
        if "PWD" in self.set_names and "PWD" in word.source:
            return (ANYWHERE,)
        if word.source.startswith(("<(", ">(")) and word.source.endswith(")"):
            # bash passes the pipe of a process substitution under such a name.
            return ("/dev/fd/63",)
        values = {
            variable.name: variable.texts
            for variable in self._assigned
            if variable.first_command <= number
        }
        return expand_word(word, roots, values)

    def check_variables(self, path: str, *, enters: bool = False) -> str:
        """Return a path; ANYWHERE when the line sets HOME or, for `cd` (`enters`), CDPATH,
        on which it depends.
        """
        if path.startswith("~") and "HOME" in self.set_names:
            return ANYWHERE
        if enters and "CDPATH" in self.set_names and not path.startswith(("/", "~", "./", "../")):
            return ANYWHERE
        return path


def find_uses(name: str, words: Sequence[str]) -> list[Use]:
    """Return how a program uses the paths in its words."""
    if name == ANYWHERE:
        return [("b", ANYWHERE), *read_words_of_unknown_program(words)]
    program = find_row(name)
    if program.read_words is not None:
        uses = program.read_words(words, program)
    elif program.operands:
        arguments = program.read_arguments(words)
        uses = arguments.uses
        if program.find_more_uses is not None:
            uses += program.find_more_uses(arguments)
    else:
        uses = list(read_words_of_unknown_program(words))
        # Its command is somewhere among the following words, and no row says where.
        if is_runner(name):
            starts = [index for index, word in enumerate(words) if _has_row(word)]
            for start in starts[:_MAX_RUN_COMMANDS]:
                uses += find_uses(words[start], words[start + 1 :])
    return [(role, path) for role, text in uses if (path := _normalise_path(text, role))]


def _has_row(word: str) -> bool:
    return find_row(word).operands != "" or find_row(word).read_words is not None


def _normalise_path(text: str, role: str) -> str:
    """Return a word as a path; "" if it is none: a URL, a device,
    or a text that the role does not take for a path.

    The roles are explained in `options.py`.
    """
    if text in {"", "-"} or re.fullmatch(_HARMLESS_DEVICE, text):
        return ""
    if text.startswith("file://"):
        return text.removeprefix("file://")
    if role == "f" or (role == "g" and ":" in text):
        return ""
    if role in "pgnRMWX" and (
        "\n" in text or (re.match(_REMOTE_ADDRESS, text) and not text.startswith(":/"))
    ):
        return ""
    if role == "r" and "://" in text:
        return ""
    # No path has a NUL in it.
    return text.partition("\0")[0]


def _join_path(folder: str, path: str) -> str:
    """Join a path to the folder it is relative to.
    `..` stays: its meaning depends on links before it.
    """
    if ANYWHERE in path or (ANYWHERE in folder and not path.startswith(("/", "~", GIT_TOP))):
        return ANYWHERE
    full_path = path if path.startswith(("/", "~", GIT_TOP)) or not folder else join(folder, path)
    return full_path if full_path == GIT_TOP else full_path.rstrip("/") or "/"


def _find_new_folder(name: str, words: Sequence[str]) -> str | None:
    """Return the folder that a command changes to or runs another command in; None: unchanged."""
    match name:
        case "cd" | "pushd":
            target = next((word for word in words if not re.match(r"-[LPe@n]+$|--$", word)), "~")
            # `cd -` and `pushd +2` go to folders of earlier commands.
            return ANYWHERE if re.match(r"-$|[-+]\d", target) or not target else target
        case "popd":
            return ANYWHERE
        case "env":
            option_values = find_row("env").read_arguments(words).option_values
            return next(
                (value for option, value in option_values if option in {"-C", "--chdir"}), None
            )
        case "sudo":
            return next(
                (
                    words[index + 1]
                    for index, word in enumerate(words[:-1])
                    if word in {"-D", "--chdir"}
                ),
                None,
            )
        case _:
            return None


def _find_redirect_uses(
    redirects: Sequence[Redirect], variables: _Variables, number: int
) -> Iterator[Use]:
    for redirect in redirects:
        if not redirect.is_file or redirect.operator.endswith(("<<", "<<-", "<<<")):
            continue
        role = "w" if re.match(_WRITE_OPERATOR, redirect.operator) else "r"
        role = "b" if "<>" in redirect.operator else role
        for path in variables.expand_word(redirect.target, (ANYWHERE,), number):
            if path and not re.fullmatch(_HARMLESS_DEVICE, path):
                yield role, path
