"""Reads the words of `git`: which files its global options and its subcommand use.

The rows are in `programs/git.py`, and `options.py` explains the letters of a use's role. A path
that begins with `:/` is relative to the top of the work tree, whatever folder git runs in.
"""

import re
from collections.abc import Sequence
from posixpath import basename, dirname, join

from codeloop.shell.arguments import Arguments
from codeloop.shell.options import Use
from codeloop.shell.program_row import NOT_KNOWN, ProgramRow
from codeloop.shell.unknown_program import is_written_outside
from codeloop.shell.word_paths import ANYWHERE

# Options with which `git diff` lists files and prints no contents,
# and those with which it prints them nevertheless.
_LISTING_OPTION = (
    r"--(stat|shortstat|numstat|name-only|name-status|no-patch|summary|raw|dirstat|quiet|compact-summary|check)\b.*"
    r"|-s|-q"
)
_PATCH_OPTION = (
    r"-[pucmLUW].*|--(patch|cc|dd|unified|function-context|binary|word-diff|color-words|remerge-diff|diff-merges)\b.*"
    r"|--pat?"
)
# Subcommands whose operands may be `REVISION:PATH`, or `:STAGE:PATH` for a file in the index.
_OBJECT_READERS = frozenset(
    {
        "show",
        "cat-file",
        "diff",
        "log",
        "blame",
        "archive",
        "grep",
        "rev-parse",
        "ls-tree",
        "annotate",
    }
)
_OBJECT_PATH = r"[^:]*:(?:[0-3]:)?(?!/)(.+)"
# Subcommands that take files which are not tracked,
# and those that copy from or to another repository.
_ADDING_SUBCOMMANDS = frozenset({"add", "stage", "update-index"})
_TRANSFERS = {"fetch": "R", "pull": "R", "push": "W", "remote": "R"}
_DIFF_SUBCOMMANDS = frozenset({"diff", "show", "difftool"})
_LOG_SUBCOMMANDS = frozenset(
    {
        "log",
        "reflog",
        "whatchanged",
        "stash show",
        "stash list",
        "diff-tree",
        "diff-files",
        "diff-index",
    }
)
_PRINTING_SUBCOMMANDS = frozenset({"archive", "fast-export", "format-patch", "range-diff"})
# Subcommands that write tracked files to the work tree: to another folder if one is named.
_WRITING_SUBCOMMANDS = frozenset(
    {"checkout", "restore", "switch", "reset", "read-tree", "checkout-index", "stash pop"}
)
ELSEWHERE_VARIABLES = frozenset({"GIT_WORK_TREE", "GIT_DIR"})
"""Variables with which git writes tracked files to a folder that is not the project's."""


def _list_printed_files(name: str, words: Sequence[str], arguments: Arguments) -> list[Use]:
    """Return the folders whose tracked files a subcommand prints: role `o` as git has them,
    `c` where they changed.

    Role `v`: a word that is a folder if there is one of that name, and a revision otherwise.
    """
    options = [word for word in words if word.startswith("-")]
    shows = any(map(re.compile(_PATCH_OPTION).fullmatch, options))
    if name in _DIFF_SUBCOMMANDS:
        shows = shows or not any(map(re.compile(_LISTING_OPTION).fullmatch, options))
    elif name == "grep":
        shows = len(arguments.operands) > 1 or "--cached" in options
    elif name == "cat-file":
        shows = (
            any(option.startswith("--batch") and "check" not in option for option in options)
            or "-p" in options
        )
    elif name not in _LOG_SUBCOMMANDS:
        shows = name in _PRINTING_SUBCOMMANDS
    # The first operand of `grep` is its pattern.
    first = 1 if name == "grep" else 0
    words_before = arguments.operands[first : arguments.plain_count]
    paths = arguments.operands[max(first, arguments.plain_count) :]
    # `HEAD:file` prints this file alone, see `_read_git_subcommand`.
    has_only_objects = bool(words_before or paths) and all(
        ":" in text for text in (*words_before, *paths)
    )
    if not shows or "--no-index" in options or has_only_objects:
        return []
    role = (
        "c"
        if name == "diff" and not {"--cached", "--staged", "--merge-base"}.intersection(options)
        else "o"
    )
    folders: list[Use] = [(role, path) for path in paths] or [(role, ":/")]
    return [*folders, *(("v", word) for word in words_before)]


def read_git(words: Sequence[str], program: ProgramRow) -> list[Use]:
    """Return the uses of a `git` command: those of its global options,
    then those of its subcommand.
    """
    global_arguments = program.read_arguments(words)
    folders = [
        value for option, value in global_arguments.option_values if option in {"-C", "--work-tree"}
    ]
    global_uses: list[Use] = [("n", folder) for folder in folders]
    global_uses += [
        ("n", value) for option, value in global_arguments.option_values if option == "--git-dir"
    ]
    if not global_arguments.operands:
        return global_uses
    name, rest = global_arguments.operands[0], list(words[global_arguments.rest_index :])
    if name == ANYWHERE:
        return [*global_uses, ("b", ANYWHERE)]
    row = program.subcommands.get(name, NOT_KNOWN)
    if any(word.partition("=")[0] in row.configures.split() for word in rest):
        global_uses.append(("w", ":/.git/config"))
    # `git stash list` has a row of its own, other than `git stash`.
    two_words = " ".join([name, *rest[:1]])
    if two_words in program.subcommands:
        name, rest, row = two_words, rest[1:], program.subcommands[two_words]
    uses = (
        _read_git_config(rest, row) if name == "config" else _read_git_subcommand(name, rest, row)
    )
    is_elsewhere = any(
        option in {"--work-tree", "--git-dir"} for option, _ in global_arguments.option_values
    )
    if _copies_tracked_files(name, rest) or (is_elsewhere and name in _WRITING_SUBCOMMANDS):
        global_uses.append(("o", ":/"))
    folder = join("", *folders)
    return [
        *global_uses,
        *(
            (role, path if path.startswith((":/", "~")) else join(folder, path))
            for role, path in uses
        ),
    ]


def _copies_tracked_files(name: str, rest: Sequence[str]) -> bool:
    """Return whether a subcommand writes what git has of tracked files to other paths,
    at which no rule knows them.
    """
    match name:
        case "worktree":
            return rest[:1] == ["add"]
        case "checkout-index" | "read-tree":
            return any(word.startswith(("--prefix", "--temp")) for word in rest)
        case _:
            return name == "bundle create"


def _read_git_subcommand(name: str, rest: list[str], row: ProgramRow) -> list[Use]:
    if not row.operands:
        return [("p", word.rpartition("=")[2]) for word in rest]
    arguments = row.read_arguments(rest)
    uses = [*arguments.uses, *_list_printed_files(name, rest, arguments)]
    if name == "init" and any(option == "--template" for option, _ in arguments.option_values):
        uses += [("W", join(folder, ".git", "hooks")) for folder in arguments.operands or [""]]
    if name in _ADDING_SUBCOMMANDS:
        # Once it is in the index, a later command of the line prints it.
        is_forced = any(re.fullmatch(r"-[a-zA-Z]*f[a-zA-Z]*|--force", word) for word in rest)
        uses += [("R" if is_forced else "p", path) for path in arguments.operands]
    if name in _TRANSFERS:
        uses += [
            (_TRANSFERS[name], path) for path in arguments.operands if is_written_outside(path)
        ]
    if name == "checkout-index":
        prefixes = [value for option, value in arguments.option_values if option == "--prefix"]
        uses += [("W", dirname(prefix) or ".") for prefix in prefixes]
    if name == "clone":
        uses += _list_cloned_folders(arguments.operands)
    if name in {"checkout", "restore"} and not arguments.operands:
        uses.append(("-" if "none" in arguments.changes else "W", ":/"))
    # Without `--` the operand of `checkout` may be a branch,
    # whose files replace those of the work tree.
    elif (
        name == "checkout"
        and arguments.plain_count == len(arguments.operands)
        and "none" not in arguments.changes
    ):
        uses.append(("W", ":/"))
    if name in _OBJECT_READERS:
        # `git log -L 1,5:file` names a file as `git show HEAD:file` does.
        line_ranges = [value for option, value in arguments.option_values if option == "-L"]
        for text in (*arguments.operands, *line_ranges):
            object_path = re.fullmatch(_OBJECT_PATH, text)
            if object_path and "://" not in text:
                uses += [("r", object_path[1]), ("r", join(":/", object_path[1]))]
    return uses


def _list_cloned_folders(operands: Sequence[str]) -> list[Use]:
    """Return the local repository that is cloned, and the folder that is named after
    it unless another is given.
    """
    if not operands:
        return []
    source = operands[0]
    uses: list[Use] = [] if "://" in source or re.match(r"[\w.@-]+:", source) else [("R", source)]
    if len(operands) == 1:
        uses.append(("W", basename(source.rstrip("/")).removesuffix(".git")))
    return uses


def _read_git_config(rest: list[str], row: ProgramRow) -> list[Use]:
    """Return the file of settings that `git config` reads or writes."""
    arguments = row.read_arguments(rest)
    operands = arguments.operands
    scopes = {
        "--global": "~/.gitconfig",
        "--system": "/etc/gitconfig",
        "--worktree": ":/.git/config.worktree",
    }
    file = next((scopes[word] for word in rest if word in scopes), ":/.git/config")
    sets = len(operands) > 1 or any(
        re.match(r"--(un|add|rep|ren|rem|ed)|-e$", word) for word in rest
    )
    reads = "see" in arguments.changes or operands[:1] in (["get"], ["list"])
    if reads or not (sets or operands[:1] == ["edit"]):
        return [("r", path) for role, path in arguments.option_uses if role == "b"]
    return (
        arguments.option_uses
        if any(role == "b" for role, _ in arguments.option_uses)
        else [("w", file)]
    )
