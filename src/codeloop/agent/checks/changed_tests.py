"""Finds the existing tests that a turn changed, and how, in the diffs of its files. Pure.

A model can make a check pass by weakening its tests, so an answer has to mention such changes.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import Literal

from msgspec import Struct

from codeloop.agent.checks.file_kinds import CODE_FILE, is_collected, is_settings_file, is_test_file
from codeloop.schema.message import SnapshotFileDiff
from codeloop.shell.check_commands import find_checks
from codeloop.shell.line_steps import split_line

# Matches the line that begins a test: `def test_a`, `it("adds")`, `func TestAdd`,
# `public void addTest`.
_TEST_START = (
    r"^\s*(?:async\s+)?def\s+(test\w*)"
    r"|^\s*(?:it|test|specify|scenario)(?:\.\w+)*\s*[( ]\s*(['\"`])(?P<title>.+?)\2"
    r"|^func\s+(Test\w+)"
    r"|^\s*(?:(?:public|private|internal|async|static|suspend|pub)\s+)*(?:fun|func|void|function"
    r"|fn|Task)\s+(\w*[Tt]est\w*)"
)
# Matches a line that keeps a test from running: `@pytest.mark.skip`, `it.only(`, `t.Skip(`,
# a bare `return`.
_SKIP_LINE = (
    r"@(?:pytest\.mark|unittest)\.(?:skip|xfail|expectedFailure)|\bpytest\.(?:skip|xfail|importorskip)\(|\.skipTest\("
    r"|\bSkipTest\(|\b(?:it|test|describe|context|suite)\.(?:skip|todo|failing|fixme|only)\b"
    r"|\bx(?:it|describe|test|context)\(|\bf(?:it|describe)\(|\b[tb]\.Skip\w*\(|#\[ignore"
    r"|@(?:Disabled|Ignore)\b|\[Ignore"
    r"|\(Skip ?=|markTestSkipped|collect_ignore|^\s*skip\b"
    r"|^    return\s*(?:#.*)?$|\bpytestmark\s*=.*\.(?:skip|xfail)|\b__test__ *= *False"
)
# Matches a line of settings that leaves tests out (`--ignore=tests/slow`),
# or makes a failed run pass (`|| true`).
_SELECTION_LINE = (
    r"collect_ignore|\bdef pytest_(?:collection_modifyitems|ignore_collect|collect_file|runtest_\w+|pyfunc_call)\b"
    r"|\bexitstatus *=|--(?:deselect|ignore(?:-glob)?|collect-only|co|passWithNoTests)\b"
    r"|\baddopts\b.*\s-[km]\b|^\s*['\"]?-[km][ '\"=]"
    r"|^\s*(?:testpaths|norecursedirs|python_(?:files|classes|functions))\s*="
    r"|\b(?:testPathIgnorePatterns|modulePathIgnorePatterns|testMatch|testRegex|testNamePattern|passWithNoTests)\b"
    r"|\|\|\s*(?:true|:|exit 0)\s*['\"]?,?\s*$"
)
# Matches the name of a test runner, which settings that no longer have it may not call any more.
_RUNNER_NAME = r"\b(?:pytest|unittest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|(?:go|cargo|npm|make) test)\b"
# Matches a line that does nothing where a runner stood: `true` in a Makefile,
# `"test": "echo none"` in a package.json.
_IDLE_LINE = (
    r"^\s*(?:[\w -]+: *;? *)?[@-]*(?:true|:|exit 0|echo\b.*)\s*;?$"
    r"|^\s*['\"]?[\w:.-]*['\"]?\s*[:=]\s*\[?['\"](?:true|:|exit 0|echo\b.*|)['\"]\]?,?\s*$"
)
# Files that Python runs at every start: code in them can change how tests run.
_STARTUP_FILES = frozenset(("sitecustomize.py", "usercustomize.py"))
# Matches a file name that speaks of tests.
_TEST_NAME = r"(?i)test|spec"
# Matches a definition at the top level, with which a test that began above it has ended.
_OTHER_DEFINITION = r"(?:async )?(?:def|class|func|function|fn|const)\b"
# Matches an import, a comment or a closing bracket: without such a line a test checks the same.
_IMPORT_LINE = r"\s*(?:import|from|use|using|require|package|#|//|/?\*|[)\]}]+[;,]?\s*$)"
# The most lines from a decorator to the first line of its test.
_MAX_DECORATOR_LINES = 8
# Matches a line that checks something, in the words of most frameworks.
_ASSERTION = r"(?i)assert|expect|should|require|verify|raises|\bt\.(?:Error|Fatal)|\beq"

Effect = Literal[
    "removed", "skipped", "edited", "replaced", "changed", "deleted", "changes which tests run"
]
"""What happened.

- removed: a test, or a file of tests, is gone; deleted: another file in a folder of tests,
  or one of settings, is.
- replaced: the first line of a test is gone, but at least as many tests came;
  it may have been renamed.
- skipped: a line came that keeps a test from running.
- edited: lines of a test were removed or changed,
  or an assertion outside of the tests that the patch names.
- changed: other lines were, or data of tests, or a file too large for a patch,
  or settings that named a test runner.
- changes which tests run: settings leave tests out, or let failures pass.
"""


class ChangedTest(Struct, frozen=True):
    """A change of a test, of a file of tests (`name` is ""),
    or of settings that decide which tests run.

    `needs_reason`: fewer tests run than before, or one that failed was edited,
    so an answer has to say why.
    """

    file: str
    name: str
    effect: Effect
    needs_reason: bool

    def __str__(self) -> str:
        """Return it as a phrase: `tests/test_a.py::test_b removed`."""
        return f"{self.file}{self.name and f'::{self.name}'} {self.effect}"


def find_test_changes(
    diffs: Iterable[SnapshotFileDiff], failures: str | None = None
) -> list[ChangedTest]:
    """Return the changes of tests that existed before the turn.

    `diffs`: of the turn, oldest first. `failures`: the lines of failed checks that may name tests;
    None: none failed.
    """
    reader = _ChangeReader(failures)
    for diff in diffs:
        reader.add_diff(diff)
    return reader.list_changes()


def find_exported_options(commands: Iterable[str]) -> list[ChangedTest]:
    """Return one change if a command exports options with which pytest runs fewer tests;
    else an empty list.

    For example `export PYTEST_ADDOPTS="-k fast"`, which holds for all later commands of the shell.
    """
    prefix = "PYTEST_ADDOPTS="
    values = [
        word.removeprefix(prefix)
        for command in commands
        if prefix in command
        for words, _ in split_line(command)
        if words[:1] in (["export"], ["declare"], ["typeset"])
        for word in words
        if word.startswith(prefix)
    ]
    has_filters = any(
        check.filters
        for value in values
        for check in find_checks(f"{prefix}{shlex.quote(value)} pytest")
    )
    if not has_filters:
        return []
    return [
        ChangedTest(
            file="PYTEST_ADDOPTS", name="", effect="changes which tests run", needs_reason=True
        )
    ]


class _ChangeReader:
    """Collects the changes of tests from diffs."""

    def __init__(self, failures: str | None) -> None:
        self._failures = failures
        self._created: set[tuple[str, str]] = set()
        """File and name of each new test, and file and "" of each new file: later
        changes of these don't count.
        """
        self._deleted: dict[str, set[str]] = {}
        """The names of the tests in each file that was deleted."""
        self._changes: dict[tuple[str, str], Effect] = {}
        """By file and name of the test; the name is "" for the file itself."""

    def list_changes(self) -> list[ChangedTest]:
        """Return the changes, but for tests that were moved to another file."""
        moved = {name for file, name in self._created if name and is_collected(file)}
        changes: dict[tuple[str, str], Effect] = {}
        for (file, name), effect in self._changes.items():
            names_in_deleted_file = self._deleted.get(file, set())
            has_moved_whole = bool(names_in_deleted_file) and names_in_deleted_file <= moved
            if effect != "removed" or not (name in moved or has_moved_whole):
                changes[file, name] = effect
        # An edit of an unnamed part of a file adds nothing where the file's
        # changed tests are named.
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
        if is_settings_file(file):
            self._add_settings(file, diff, lines)
        if not is_test_file(file):
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
            is_test = re.fullmatch(CODE_FILE, file) and (
                before or re.search(_TEST_NAME, PurePath(file).name) or not diff.patch
            )
            self._record(file, "", "removed" if is_test else "deleted")
            self._deleted[file] = before
        # The file is data, or too large for a patch.
        elif not re.fullmatch(CODE_FILE, file) or len(lines) < 2:
            self._record(file, "", "changed")
        else:
            self._add_edit(file, lines, before, after)

    def _add_edit(self, file: str, lines: Sequence[str], before: set[str], after: set[str]) -> None:
        """Add the changes of an edited file. `before`, `after`: the tests whose first
        lines were removed and added.
        """
        for name in sorted(before - after):
            is_rename = len(after) >= len(before) and not self._has_failed(file, name)
            self._record(file, name, "replaced" if is_rename else "removed")
        for name, effect in _find_changed_bodies(lines):
            self._record(file, name, effect)

    def _add_settings(self, file: str, diff: SnapshotFileDiff, lines: Sequence[str]) -> None:
        added = [line[1:] for line in lines if line.startswith("+")]
        removed = [line[1:] for line in lines if line.startswith("-")]
        if PurePath(file).name in _STARTUP_FILES or any(
            re.search(_SELECTION_LINE, line) for line in added
        ):
            self._record(file, "", "changes which tests run")
        elif diff.status == "deleted":
            self._record(file, "", "deleted")
        elif any(re.search(_RUNNER_NAME, line) for line in removed):
            runs_still = any(re.search(_RUNNER_NAME, line) for line in added)
            is_idle = not runs_still and any(re.search(_IDLE_LINE, line) for line in added)
            self._record(file, "", "changes which tests run" if is_idle else "changed")

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
        """Record a change, unless the test or its file is new.
        A mere edit doesn't replace what is known already.
        """
        if {(file, name), (file, "")} & self._created:
            return
        if effect in {"edited", "changed"}:
            self._changes.setdefault((file, name), effect)
        else:
            self._changes[file, name] = effect


def _list_test_names(lines: Sequence[str], sign: str) -> set[str]:
    """Return the names of the tests that begin in a patch's removed (`sign`
    "-") or added ("+") lines.
    """
    return {name for line in lines if line.startswith(sign) and (name := _find_test_name(line[1:]))}


def _find_test_name(line: str) -> str:
    """Return the name of the test that a line begins; "": none."""
    match = re.match(_TEST_START, line)
    if match is None:
        return ""
    return match["title"] or match[1] or match[4] or match[5] or ""


def _find_changed_bodies(lines: Sequence[str]) -> Iterator[tuple[str, Effect]]:
    """Yield the name of each test whose body a patch changes, with what happened to it;
    "" where no name is shown.
    """
    name = ""
    for index, line in enumerate(lines):
        code = line[1:]
        if line.startswith("@@"):
            name = ""
        own_name = _find_test_name(code)
        if own_name or re.match(_OTHER_DEFINITION, code):
            name = own_name
        if line.startswith("+") and re.search(_SKIP_LINE, code):
            if code.lstrip().startswith(("@", "#[", "[")):
                # A decorator or an attribute: the test that it skips begins a few lines below.
                names_below = (
                    _find_test_name(each[1:])
                    for each in lines[index : index + _MAX_DECORATOR_LINES]
                )
                yield next(filter(None, names_below), name), "skipped"
            else:
                yield name, "skipped"
        elif (
            line.startswith("-")
            and code.strip()
            and (not own_name or _is_whole_test(line, lines))
            and not re.match(_IMPORT_LINE, code)
        ):
            yield name, "edited" if name or re.search(_ASSERTION, line) else "changed"


def _is_whole_test(line: str, lines: Sequence[str]) -> bool:
    """Return whether a removed line is a test of one line, which is not only moved."""
    return re.search(_ASSERTION, line) is not None and f"+{line[1:]}" not in lines
