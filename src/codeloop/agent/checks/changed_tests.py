"""Finds the existing tests that a turn changed, and how, in the diffs of its files. Pure.

A model can make a check pass by weakening its tests, so an answer has to mention such changes.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import Literal

from msgspec import Struct

from codeloop.agent.checks.check_commands import find_checks, split_commands
from codeloop.schema.message import SnapshotFileDiff
from codeloop.schema.part import ToolPart, ToolStateCompleted
from codeloop.schema.wire import JSON
from codeloop.workspace.check_files import SETTINGS_GLOBS, TEST_GLOBS, compile_patterns

_TEST_FILE_PATTERNS = compile_patterns((*TEST_GLOBS, "**/conftest.py"))
_SETTINGS_PATTERNS = compile_patterns(SETTINGS_GLOBS)
_TOOL_FOLDERS = frozenset(("__pycache__", "node_modules", ".pytest_cache", ".venv", "venv"))
_TEST_FOLDERS = frozenset(("test", "tests", "spec", "specs", "__tests__"))
CODE_FILE = re.compile(
    r".+\.(?:py|[cm]?[jt]sx?|go|rs|rb|java|kts?|cs|php|swift|exs?|scala|dart|lua|bats|zig|c|cc|cpp|h|hpp|sh|vue|svelte)"
)
"""Matches files of code, which the checks of most projects look at."""
# Matches names of files whose tests a runner finds: pytest and unittest look at no other Python files.
_COLLECTED_FILE = re.compile(r"test.*\.py|.*_tests?\.py|.+\.(?!py$)\w+")
_TEST_START = re.compile(
    r"^\s*(?:async\s+)?def\s+(test\w*)"
    r"|^\s*(?:it|test|specify|scenario)(?:\.\w+)*\s*[( ]\s*(['\"`])(?P<title>.+?)\2"
    r"|^func\s+(Test\w+)"
    r"|^\s*(?:(?:public|private|internal|async|static|suspend|pub)\s+)*(?:fun|func|void|function|fn|Task)\s+(\w*[Tt]est\w*)"
)
_SKIP_LINE = re.compile(
    r"@(?:pytest\.mark|unittest)\.(?:skip|xfail|expectedFailure)|\bpytest\.(?:skip|xfail|importorskip)\(|\.skipTest\("
    r"|\bSkipTest\(|\b(?:it|test|describe|context|suite)\.(?:skip|todo|failing|fixme|only)\b"
    r"|\bx(?:it|describe|test|context)\(|\bf(?:it|describe)\(|\b[tb]\.Skip\w*\(|#\[ignore|@(?:Disabled|Ignore)\b|\[Ignore"
    r"|\(Skip ?=|markTestSkipped|collect_ignore|^\s*skip\b"
    r"|^    return\s*(?:#.*)?$|\bpytestmark\s*=.*\.(?:skip|xfail)|\b__test__ *= *False"
)
# Matches a line of settings that leaves tests out, or makes a run pass that failed.
_SELECTION_LINE = re.compile(
    r"collect_ignore|\bdef pytest_(?:collection_modifyitems|ignore_collect|collect_file|runtest_\w+|pyfunc_call)\b"
    r"|\bexitstatus *=|--(?:deselect|ignore(?:-glob)?|collect-only|co|passWithNoTests)\b"
    r"|\baddopts\b.*\s-[km]\b|^\s*['\"]?-[km][ '\"=]"
    r"|^\s*(?:testpaths|norecursedirs|python_(?:files|classes|functions))\s*="
    r"|\b(?:testPathIgnorePatterns|modulePathIgnorePatterns|testMatch|testRegex|testNamePattern|passWithNoTests)\b"
    r"|\|\|\s*(?:true|:|exit 0)\s*['\"]?,?\s*$"
)
_RUNNER_NAME = re.compile(
    r"\b(?:pytest|unittest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|(?:go|cargo|npm|make) test)\b"
)
_STARTUP_FILES = frozenset(("sitecustomize.py", "usercustomize.py"))
_TEST_NAME = re.compile(r"test|spec", re.IGNORECASE)
_OTHER_DEFINITION = re.compile(r"(?:async )?(?:def|class|func|function|fn|const)\b")
_IMPORT_LINE = re.compile(r"\s*(?:import|from|use|using|require|package|#|//|/?\*|[)\]}]+[;,]?\s*$)")
_ASSERTION = re.compile(r"assert|expect|should|require|verify|raises|\bt\.(?:Error|Fatal)|\beq", re.IGNORECASE)
_FAILURE_LINE = re.compile(
    r"FAIL|ERROR|Failure|^_{3,} |^\s*(?:\u25cf|\u2715|\u2716|\u2717|\u00d7) |\bnot ok\b|^\s+\d+\) |^\d+\) ",
    re.MULTILINE,
)
_REMOVERS = frozenset(("rm", "unlink", "mv", "truncate"))
_RESTORERS = frozenset(("checkout", "restore", "reset"))
# Words with which git restores every file. Without them and without a file it only looks, or changes the branch.
_WHOLE_TREE_WORDS = frozenset((".", "./", ":/", "--hard"))

Effect = Literal["removed", "skipped", "edited", "replaced", "changed", "deleted", "changes which tests run"]


class ChangedTest(Struct, frozen=True):
    """A change of a test, of a file of tests (`name` is ""), or of settings that decide which tests run.

    `needs_reason`: fewer tests run than before, or one that failed was edited, so an answer has to say why.
    """

    file: str
    name: str
    effect: Effect
    needs_reason: bool

    def __str__(self) -> str:
        """Return it as a phrase: `tests/test_a.py::test_b removed`."""
        return f"{self.file}{self.name and f'::{self.name}'} {self.effect}"


def find_test_changes(diffs: Iterable[SnapshotFileDiff], failures: str | None = None) -> list[ChangedTest]:
    """Return how tests changed that were there before.

    `diffs`: of the turn, oldest first. `failures`: what the checks that failed printed about it; None: none failed.
    """
    reader = _ChangeReader(failures)
    for diff in diffs:
        reader.add_diff(diff)
    return reader.list_changes()


def is_check_file(path: str) -> bool:
    """Return whether a file (relative to the project) holds tests or data of tests, or decides which tests run."""
    if not _TOOL_FOLDERS.isdisjoint(PurePath(path).parts):
        return False
    return any(each.fullmatch(path) for each in (*_TEST_FILE_PATTERNS, *_SETTINGS_PATTERNS))


def pick_failure_lines(output: str) -> str:
    """Return the lines of a failed check that may name tests."""
    return "\n".join(line for line in output.splitlines() if _FAILURE_LINE.search(line))


def find_exported_options(commands: Iterable[str]) -> list[ChangedTest]:
    """Return a change where a command exports options for pytest by which it runs fewer tests."""
    prefix = "PYTEST_ADDOPTS="
    values = [
        word.removeprefix(prefix)
        for command in commands
        if prefix in command
        for words in split_commands(command)
        if words[:1] in (["export"], ["declare"], ["typeset"])
        for word in words
        if word.startswith(prefix)
    ]
    narrow = any(check.filters for value in values for check in find_checks(f"{prefix}{shlex.quote(value)} pytest"))
    return [ChangedTest("PYTEST_ADDOPTS", "", "changes which tests run", needs_reason=True)] if narrow else []


def has_moved_commit(commands: Iterable[str]) -> bool:
    """Return whether a command made git check out another commit, which may have other tests."""
    return any(
        _moves_commit(words[1:])
        for command in commands
        if "git" in command
        for words in split_commands(command)
        if words and words[0] == "git"
    )


def _moves_commit(words: Sequence[str]) -> bool:
    match words:
        case ["switch" | "pull" | "merge" | "rebase" | "revert" | "cherry-pick" | "bisect", *rest]:
            return not {"-c", "-C", "--create"} & set(rest)
        case ["checkout", *rest]:
            plain = [word for word in rest if word != "-q"]
            return len(plain) == 1 and not _is_test_file(plain[0], folders=True) and plain[0] not in _WHOLE_TREE_WORDS
        case _:
            return False


def list_call_diffs(calls: Iterable[tuple[ToolPart, ToolStateCompleted]]) -> list[SnapshotFileDiff]:
    """Return the changes of tests as far as the calls themselves tell: by edits, and by commands that remove files.

    It is less than snapshots know, and serves where there are none.
    """
    diffs: list[SnapshotFileDiff] = []
    for part, state in calls:
        if part.tool == "bash":
            for words in split_commands(str(state.input.get("command"))):
                diffs = _apply_command(diffs, words)
        else:
            diffs += _list_edits(state)
    return diffs


class _ChangeReader:
    """Collects the changes of tests from diffs."""

    def __init__(self, failures: str | None) -> None:
        self._failures = failures
        self._created: set[tuple[str, str]] = set()
        self._deleted: dict[str, set[str]] = {}
        """The names of the tests in each file that was deleted."""
        self._changes: dict[tuple[str, str], Effect] = {}

    def list_changes(self) -> list[ChangedTest]:
        """Return the changes, but for tests that were moved to another file."""
        moved = {name for file, name in self._created if name and _is_collected(file)}
        changes: dict[tuple[str, str], Effect] = {
            key: effect
            for key, effect in self._changes.items()
            if not (effect == "removed" and key[1] in moved)
            and not (effect == "removed" and (names := self._deleted.get(key[0])) and names <= moved)
        }
        named_files = {file for file, name in changes if name}
        return [
            ChangedTest(file, name, effect, self._needs_reason(file, name, effect))
            for (file, name), effect in changes.items()
            if name or effect not in {"edited", "changed"} or file not in named_files
        ]

    def add_diff(self, diff: SnapshotFileDiff) -> None:
        """Add the changes of one file."""
        file = diff.file or ""
        lines = (diff.patch or "").partition("\n@@")[2].split("\n")
        if _is_settings_file(file):
            self._add_settings(file, diff, lines)
        if not _is_test_file(file):
            return
        before, after = _list_test_names(lines, "-"), _list_test_names(lines, "+")
        for name in sorted(after - before):
            if self._changes.pop((file, name), None) is None:
                self._created.add((file, name))
        if diff.status == "added":
            if self._deleted.pop(file, None) is not None:
                self._changes.pop((file, ""), None)
            else:
                self._created.add((file, ""))
        elif diff.status == "deleted":
            is_test = CODE_FILE.fullmatch(file) and (before or _TEST_NAME.search(PurePath(file).name) or not diff.patch)
            self._record(file, "", "removed" if is_test else "deleted")
            self._deleted[file] = before
        elif not CODE_FILE.fullmatch(file) or len(lines) < 2:  # it is data, or too large
            self._record(file, "", "changed")
        else:
            self._add_edit(file, lines, before, after)

    def _add_edit(self, file: str, lines: Sequence[str], before: set[str], after: set[str]) -> None:
        for name in sorted(before - after):
            is_rename = len(after) >= len(before) and not self._has_failed(file, name)
            self._record(file, name, "replaced" if is_rename else "removed")
        for name, effect in _find_changed_bodies(lines):
            self._record(file, name, effect)

    def _add_settings(self, file: str, diff: SnapshotFileDiff, lines: Sequence[str]) -> None:
        added = [line[1:] for line in lines if line.startswith("+")]
        removed = [line[1:] for line in lines if line.startswith("-")]
        if PurePath(file).name in _STARTUP_FILES or any(_SELECTION_LINE.search(line) for line in added):
            self._record(file, "", "changes which tests run")
        elif diff.status == "deleted":
            self._record(file, "", "deleted")
        elif any(_RUNNER_NAME.search(line) for line in removed):
            self._record(file, "", "changed")

    def _needs_reason(self, file: str, name: str, effect: Effect) -> bool:
        if effect == "edited":
            return self._has_failed(file, name)
        return effect in {"removed", "skipped", "changes which tests run"}

    def _has_failed(self, file: str, name: str) -> bool:
        """Return whether a test is among those that failed, as far as the outputs name any."""
        if self._failures is None:
            return False
        if name and name in self._failures:
            return True
        is_named = PurePath(file).name in self._failures
        return (is_named and not name) or not self._failures.strip()

    def _record(self, file: str, name: str, effect: Effect) -> None:
        if not {(file, name), (file, "")} & self._created:
            is_weak = effect in {"edited", "changed"}
            self._changes[file, name] = self._changes.get((file, name), effect) if is_weak else effect


def _apply_command(diffs: list[SnapshotFileDiff], words: Sequence[str]) -> list[SnapshotFileDiff]:
    """Return the diffs after a command that may have removed or restored files of tests."""
    if not words:
        return diffs
    program, files = words[0].rpartition("/")[2], [word for word in words[1:] if _is_test_file(word, folders=True)]
    paths = [each.removeprefix("./").rstrip("/") for each in files]
    if program == "git" and len(words) > 1:
        if words[1] in _RESTORERS:
            is_whole = not _WHOLE_TREE_WORDS.isdisjoint(words)
            return [each for each in diffs if not is_whole and not _is_below(each.file or "", paths)]
        program = "rm" if words[1] == "rm" else program
    if program not in _REMOVERS:
        return diffs
    created = {each.file for each in diffs if each.status == "added"}
    return [
        *diffs,
        *(
            SnapshotFileDiff(file=each, patch="", additions=0, deletions=0, status="deleted")
            for each in paths
            if each not in created
        ),
    ]


def _is_below(file: str, paths: Sequence[str]) -> bool:
    return any(file == each or file.startswith(f"{each}/") for each in paths)


def _list_edits(state: ToolStateCompleted) -> list[SnapshotFileDiff]:
    """Return the files that an edit changed, relative to the project."""
    files: list[JSON] = state.metadata.get("files") or []
    patches = [(str(each.get("relativePath")), str(each.get("patch"))) for each in files]
    return [
        SnapshotFileDiff(file=file, patch=patch, additions=0, deletions=0, status=_read_status(patch))
        for file, patch in patches or [(state.title, str(state.metadata.get("diff") or ""))]
    ]


def _read_status(patch: str) -> Literal["added", "deleted", "modified"]:
    header = patch.partition("\n@@")[2].partition("@@")[0]
    return "added" if header.startswith(" -0,0 ") else "deleted" if header.endswith(" +0,0 ") else "modified"


def _list_test_names(lines: Sequence[str], sign: str) -> set[str]:
    return {name for line in lines if line.startswith(sign) and (name := _find_test_name(line[1:]))}


def _find_test_name(line: str) -> str:
    """Return the name of the test that a line begins; "": none."""
    match = _TEST_START.match(line)
    return "" if match is None else match["title"] or next(filter(None, (match[1], match[4], match[5])), "")


def _find_changed_bodies(lines: Sequence[str]) -> Iterator[tuple[str, Effect]]:
    """Yield each test that a hunk changes within, with what happened to it; "" where the hunk does not name it."""
    name = ""
    for number, line in enumerate(lines):
        if line.startswith("@@"):
            name = ""
        name = _find_test_name(line[1:]) or ("" if _OTHER_DEFINITION.match(line[1:]) else name)
        if line.startswith("+") and _SKIP_LINE.search(line[1:]):
            below = next(filter(None, (_find_test_name(each[1:]) for each in lines[number : number + 8])), name)
            yield (
                (below if line[1:].lstrip().startswith(("@", "#[", "[")) else _find_test_name(line[1:]) or name),
                "skipped",
            )
        elif (
            line.startswith("-")
            and line[1:].strip()
            and not _find_test_name(line[1:])
            and not _IMPORT_LINE.match(line[1:])
        ):
            yield name, "edited" if name or _ASSERTION.search(line) else "changed"


def _is_settings_file(path: str) -> bool:
    return _TOOL_FOLDERS.isdisjoint(PurePath(path).parts) and any(each.fullmatch(path) for each in _SETTINGS_PATTERNS)


def _is_collected(file: str) -> bool:
    """Return whether a runner finds the tests of a file by its name."""
    return CODE_FILE.fullmatch(file) is not None and _COLLECTED_FILE.fullmatch(PurePath(file).name) is not None


def _is_test_file(path: str, *, folders: bool = False) -> bool:
    parts = PurePath(path).parts
    if not parts or not _TOOL_FOLDERS.isdisjoint(parts) or path.startswith(("-", "/")):
        return False
    is_below_tests = any(each.fullmatch(path.removeprefix("./")) for each in _TEST_FILE_PATTERNS)
    if not folders:
        return is_below_tests
    return parts[-1] in _TEST_FOLDERS or (is_below_tests and CODE_FILE.fullmatch(parts[-1]) is not None)
