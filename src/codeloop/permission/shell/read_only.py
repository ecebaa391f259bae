"""Commands that are sure to change nothing, as rows of data."""

import re

from msgspec import Struct

from codeloop.permission.shell.command import Simple


class Row(Struct, frozen=True):
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
    *map(Row, _ALWAYS_READ.split()),
    Row("diff", forbidden=r"--output.*"),
    Row("file", forbidden=r"-C|--compile|-\w*C\w*"),
    Row("find", forbidden=r"-(delete|exec|execdir|ok|okdir|fls|fprint|fprint0|fprintf)"),
    Row("git", "blame", GIT_WRITES),
    Row("git", "cat-file", r"--textconv|--filters"),
    Row("git", "describe"),
    Row("git", "diff", GIT_WRITES),
    Row("git", "grep", GIT_WRITES),
    Row("git", "log", GIT_WRITES),
    Row("git", "ls-files"),
    Row("git", "ls-tree"),
    Row("git", "merge-base"),
    Row("git", "rev-list"),
    Row("git", "rev-parse"),
    Row("git", "shortlog", GIT_WRITES),
    Row("git", "show", GIT_WRITES),
    Row("git", "status"),
    Row("jq", forbidden=r"-n?i|--in-place"),
    Row("printf", forbidden=r"-v.*"),
    Row("rg", forbidden=r"--pre(=.*)?|--hostname-bin.*|-z|--search-zip"),
    Row("sort", forbidden=r"-\w*o.*|--o.*|--compress-program.*|-T.*|--temporary-directory.*"),
    Row("tree", forbidden=r"-\w*o.*|--output.*|-R"),
    Row("uniq", forbidden=r"[^-].*"),
)
TABLE = {(row.program, row.subcommand): row.forbidden for row in ROWS}
WITH_SUBCOMMANDS = frozenset(row.program for row in ROWS if row.subcommand)
READS = frozenset({"<", "<<", "<<<"})


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
