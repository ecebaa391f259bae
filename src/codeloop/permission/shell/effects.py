"""Commands that are sure to change nothing, and those that may delete files, as rows of data."""

import re

from msgspec import Struct

from codeloop.permission.shell.command import Simple
from codeloop.permission.shell.wrappers import Wrapper, operand


class ReadOnlyCommand(Struct, frozen=True):
    """A program, or one subcommand of it, that only reads unless an argument matches `forbidden` (whole words)."""

    program: str
    subcommand: str = ""
    forbidden: str = ""


GIT_WRITES = r"--output(=.*)?|--ext-diff|--textconv|-O.*|--open-files-in-pager.*|--exec-path=.*|--paginate|-p=.*"
_ALWAYS_READ = """
basename cat cmp column comm cut df dirname du echo egrep expr false fgrep grep head id ls md5sum nl printenv pwd
readlink realpath seq sha256sum stat strings tac tail test tr true type uname wc which whoami
"""
ROWS = (
    *map(ReadOnlyCommand, _ALWAYS_READ.split()),
    ReadOnlyCommand("diff", forbidden=r"--output.*"),
    ReadOnlyCommand("file", forbidden=r"-C|--compile|-\w*C\w*"),
    ReadOnlyCommand("find", forbidden=r"-(delete|exec|execdir|ok|okdir|fls|fprint|fprint0|fprintf)"),
    ReadOnlyCommand("git", "blame", GIT_WRITES),
    ReadOnlyCommand("git", "cat-file", r"--textconv|--filters"),
    ReadOnlyCommand("git", "describe"),
    ReadOnlyCommand("git", "diff", GIT_WRITES),
    ReadOnlyCommand("git", "grep", GIT_WRITES),
    ReadOnlyCommand("git", "log", GIT_WRITES),
    ReadOnlyCommand("git", "ls-files"),
    ReadOnlyCommand("git", "ls-tree"),
    ReadOnlyCommand("git", "merge-base"),
    ReadOnlyCommand("git", "rev-list"),
    ReadOnlyCommand("git", "rev-parse"),
    ReadOnlyCommand("git", "shortlog", GIT_WRITES),
    ReadOnlyCommand("git", "show", GIT_WRITES),
    ReadOnlyCommand("git", "status"),
    ReadOnlyCommand("jq", forbidden=r"-n?i|--in-place"),
    ReadOnlyCommand("printf", forbidden=r"-v.*"),
    ReadOnlyCommand("rg", forbidden=r"--pre(=.*)?|--hostname-bin.*|-z|--search-zip"),
    ReadOnlyCommand("sort", forbidden=r"-\w*o.*|--o.*|--compress-program.*|-T.*|--temporary-directory.*"),
    ReadOnlyCommand("tree", forbidden=r"-\w*o.*|--output.*|-R"),
    ReadOnlyCommand("uniq", forbidden=r"[^-].*"),
)
TABLE = {(row.program, row.subcommand): row.forbidden for row in ROWS}
WITH_SUBCOMMANDS = frozenset(row.program for row in ROWS if row.subcommand)
READS = frozenset({"<", "<<", "<<<"})
DESTRUCTIVE = frozenset({"rm", "rmdir", "shred", "truncate", "dd"})
GIT = Wrapper(
    "-C -c --git-dir --work-tree --namespace --config-env",
    "-p -P --paginate --no-pager --bare --no-replace-objects --literal-pathspecs --no-optional-locks --version --help",
)
"""The options of git itself, before its subcommand."""
DESTRUCTIVE_GIT = frozenset({"clean", "reset", "checkout", "restore", "stash", "switch"})


def only_reads(command: Simple) -> bool:
    """Return whether a command is sure to change nothing: in the table, all words known, no redirection into a file."""
    if command.assigns or not all(word.is_known for word in command.words):
        return False
    for redirect in command.redirects:
        if redirect.is_file and redirect.operator not in READS and redirect.target.value != "/dev/null":
            return False
    name, *rest = [word.value for word in command.words]
    subcommand = rest.pop(0) if name in WITH_SUBCOMMANDS and rest else ""
    forbidden = TABLE.get((name, subcommand))
    return forbidden is not None and not any(re.fullmatch(forbidden or "(?!)", word, re.DOTALL) for word in rest)


def is_destructive(command: Simple) -> bool:
    """Return whether a command may delete or overwrite files wholesale, those that git ignores included."""
    name, *rest = [word.value for word in command.words]
    if name == "find":
        return any("-delete" in word or "-exec" in word for word in rest)
    if name == "git":
        at = operand(command.words, GIT)
        return at is None or (at <= len(rest) and rest[at - 1] in DESTRUCTIVE_GIT)
    return name in DESTRUCTIVE
