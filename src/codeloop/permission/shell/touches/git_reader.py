"""Reads the words of `git`: which files its global options and its subcommand use.

The letters of a use's role are explained in `path_rows`; a path that begins with `:/` is relative to the work tree.
"""

import re
from collections.abc import Sequence
from posixpath import basename, join

from codeloop.permission.shell.touches.arguments import Arguments, Use, parse_row
from codeloop.permission.shell.touches.git_paths import CONFIGURES, GIT, GIT_ROWS, list_printed_files
from codeloop.permission.shell.touches.spelling import ANYWHERE


def read_git(words: Sequence[str]) -> list[Use]:
    """Return the uses of a `git` command: those of its global options, then those of its subcommand."""
    global_arguments = Arguments(parse_row(GIT), words)
    folders = [value for option, value in global_arguments.option_values if option in {"-C", "--work-tree"}]
    global_uses: list[Use] = [("n", folder) for folder in folders]
    global_uses += [("n", value) for option, value in global_arguments.option_values if option == "--git-dir"]
    if not global_arguments.operands:
        return global_uses
    name, rest = global_arguments.operands[0][0], list(words[global_arguments.rest :])
    if name == ANYWHERE:
        return [*global_uses, ("b", ANYWHERE)]
    if any(word.partition("=")[0] in CONFIGURES.get(name, "").split() for word in rest):
        global_uses.append(("w", ":/.git/config"))
    pair = " ".join([name, *rest[:1]])
    if pair in GIT_ROWS:
        name, rest = pair, rest[1:]
    uses = _read_git_config(rest) if name == "config" else _read_git_subcommand(name, rest)
    folder = join("", *folders)
    return [
        *global_uses,
        *((role, path if path.startswith((":/", "~")) else join(folder, path)) for role, path in uses),
    ]


def _read_git_subcommand(name: str, rest: list[str]) -> list[Use]:
    if name not in GIT_ROWS:
        return [("p", word.rpartition("=")[2]) for word in rest]
    arguments = Arguments(parse_row(GIT_ROWS[name]), rest)
    uses = [*arguments.uses, *list_printed_files(name, rest, arguments)]
    if name == "init" and any(option == "--template" for option, _ in arguments.option_values):
        uses += [("W", join(text, ".git", "hooks")) for text in [t for t, _ in arguments.operands] or [""]]
    if name == "clone":
        source = [text for text, _ in arguments.operands[:1]]
        uses += [("R", text) for text in source if "://" not in text and not re.match(r"[\w.@-]+:", text)]
        uses += [
            ("W", basename(text.rstrip("/")).removesuffix(".git")) for text in source if len(arguments.operands) == 1
        ]
    if name in {"checkout", "restore"} and not arguments.operands:
        uses.append(("-" if "none" in arguments.changes else "W", ":/"))
    elif (  # without `--` the operand may be a branch, whose files replace those of the work tree
        name == "checkout"
        and not any(is_ended for _, is_ended in arguments.operands)
        and "none" not in arguments.changes
    ):
        uses.append(("W", ":/"))
    for text in (
        *(text for text, _ in arguments.operands),
        *(value for option, value in arguments.option_values if option == "-L"),
    ):
        of_revision = re.fullmatch(r"[^:]*:(?:[0-3]:)?(?!/)(.+)", text)
        if of_revision and "://" not in text and name in _OBJECT_READERS:
            uses += [("r", of_revision[1]), ("r", join(":/", of_revision[1]))]
    return uses


_OBJECT_READERS = frozenset(
    {"show", "cat-file", "diff", "log", "blame", "archive", "grep", "rev-parse", "ls-tree", "annotate"}
)
"""Subcommands of git whose operands may be `REVISION:PATH`."""
_CONFIG = """- -f=b --file=b --blob=- --type=- --default=- -t=- --comment=- --value=- --url=- --get!see --get-all!see
--get-regexp!see --get-urlmatch!see --get-color!see --get-colorbool!see --list!see -l!see --name-only!see"""


def _read_git_config(rest: list[str]) -> list[Use]:
    arguments = Arguments(parse_row(_CONFIG), rest)
    operands = [text for text, _ in arguments.operands]
    scopes = {"--global": "~/.gitconfig", "--system": "/etc/gitconfig", "--worktree": ":/.git/config.worktree"}
    file = next((scopes[word] for word in rest if word in scopes), ":/.git/config")
    sets = len(operands) > 1 or any(re.match(r"--(un|add|rep|ren|rem|ed)|-e$", word) for word in rest)
    reads = "see" in arguments.changes or operands[:1] in (["get"], ["list"])
    if reads or not (sets or operands[:1] == ["edit"]):
        return [("r", path) for role, path in arguments.values if role == "b"]
    return arguments.values if any(role == "b" for role, _ in arguments.values) else [("w", file)]
