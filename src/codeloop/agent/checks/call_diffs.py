"""The changes of test files as far as a turn's calls show them: edits,
and commands that remove or restore files.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

from codeloop.agent.checks.file_kinds import is_test_code
from codeloop.schema.message import SnapshotFileDiff
from codeloop.schema.part import ToolPart, ToolStateCompleted
from codeloop.schema.wire import JSON
from codeloop.shell.line_steps import split_line

_REMOVING_PROGRAMS = frozenset(("rm", "unlink", "mv", "truncate"))
# Subcommands of git that bring files back.
_RESTORING_SUBCOMMANDS = frozenset(("checkout", "restore", "reset"))
# Words with which git restores every file. Without them and without a file it only looks,
# or changes the branch.
_WHOLE_TREE_WORDS = frozenset((".", "./", ":/", "--hard"))


def list_call_diffs(calls: Iterable[tuple[ToolPart, ToolStateCompleted]]) -> list[SnapshotFileDiff]:
    """Return the changes that calls made, oldest first: of files that they edited,
    and of tests that commands removed.

    `calls`: of edits and of `bash`. It is less than snapshots show,
    and serves where there are none.
    """
    diffs: list[SnapshotFileDiff] = []
    for part, state in calls:
        if part.tool == "bash":
            for words, _ in split_line(str(state.input.get("command"))):
                diffs = _apply_command(diffs, words)
        else:
            diffs += _list_edits(state)
    return diffs


def has_moved_commit(commands: Iterable[str]) -> bool:
    """Return whether a command made git check out another commit, which may have other tests."""
    return any(
        _moves_commit(words[1:])
        for command in commands
        if "git" in command
        for words, _ in split_line(command)
        if words and words[0] == "git"
    )


def _moves_commit(words: Sequence[str]) -> bool:
    """Return whether git checks out another commit with these words after `git`."""
    match words:
        case ["switch" | "pull" | "merge" | "rebase" | "revert" | "cherry-pick" | "bisect", *rest]:
            return not {"-c", "-C", "--create"} & set(rest)
        case ["checkout", *rest]:
            # `git checkout main` moves; `git checkout -- tests/test_a.py` and `git checkout
            # .` only restore files.
            targets = [word for word in rest if word != "-q"]
            return (
                len(targets) == 1
                and not is_test_code(targets[0])
                and targets[0] not in _WHOLE_TREE_WORDS
            )
        case _:
            return False


def _apply_command(diffs: list[SnapshotFileDiff], words: Sequence[str]) -> list[SnapshotFileDiff]:
    """Return the diffs after a command that may have removed or restored files of tests."""
    if not words:
        return diffs
    program = words[0].rpartition("/")[2]
    paths = [word.removeprefix("./").rstrip("/") for word in words[1:] if is_test_code(word)]
    if program == "git" and len(words) > 1:
        if words[1] in _RESTORING_SUBCOMMANDS:
            if not _WHOLE_TREE_WORDS.isdisjoint(words):
                return []
            return [diff for diff in diffs if not _is_below(diff.file or "", paths)]
        if words[1] == "rm":
            program = "rm"
    if program not in _REMOVING_PROGRAMS:
        return diffs
    created = {diff.file for diff in diffs if diff.status == "added"}
    removed = [path for path in paths if path not in created]
    return [
        *diffs,
        *(
            SnapshotFileDiff(file=path, patch="", additions=0, deletions=0, status="deleted")
            for path in removed
        ),
    ]


def _is_below(file: str, paths: Sequence[str]) -> bool:
    return any(file == each or file.startswith(f"{each}/") for each in paths)


def _list_edits(state: ToolStateCompleted) -> list[SnapshotFileDiff]:
    """Return the diff of each file that an edit changed, with its path relative to the project."""
    files: list[JSON] = state.metadata.get("files") or []
    patches = [(str(file.get("relativePath")), str(file.get("patch"))) for file in files]
    if not patches:
        # A tool that edits one file names it in the title.
        patches = [(state.title, str(state.metadata.get("diff") or ""))]
    return [
        SnapshotFileDiff(
            file=path, patch=patch, additions=0, deletions=0, status=_read_status(patch)
        )
        for path, patch in patches
    ]


def _read_status(patch: str) -> Literal["added", "deleted", "modified"]:
    """Read from the header of a patch's first hunk (`@@ -0,0 +1,9 @@`) what
    happened to the file.
    """
    header = patch.partition("\n@@")[2].partition("@@")[0]
    if header.startswith(" -0,0 "):
        return "added"
    return "deleted" if header.endswith(" +0,0 ") else "modified"
