"""Tests that a turn removed, skipped or edited after a check had failed. Pure: read from the diffs of its calls."""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from codeloop.agent.answer.check_commands import split_commands
from codeloop.schema.part import ToolPart, ToolStateCompleted
from codeloop.schema.wire import JSON
from codeloop.workspace.check_files import TESTS, compile_patterns

_FILES = compile_patterns((*TESTS, "**/conftest.py"))
_FOLDERS = frozenset(("test", "tests", "spec", "specs", "__tests__"))
_CODE = re.compile(
    r".+\.(?:py|[cm]?[jt]sx?|go|rs|rb|java|kt|cs|php|swift|exs?|scala|dart|lua|bats|c|cc|cpp|sh|vue|svelte)"
)
_START = re.compile(
    r"^\s*(?:async\s+)?def\s+(test\w*)"
    r"|^\s*(?:it|test|specify|scenario)(?:\.\w+)*\s*[( ]\s*(['\"`])(?P<title>.+?)\2"
    r"|^func\s+(Test\w+)"
    r"|^\s*(?:(?:public|private|internal|async|static|suspend|pub)\s+)*(?:fun|func|void|function|fn|Task)\s+(\w*[Tt]est\w*)"
)
_SKIP = re.compile(
    r"@(?:pytest\.mark|unittest)\.(?:skip|xfail|expectedFailure)|\bpytest\.(?:skip|xfail|importorskip)\(|\.skipTest\("
    r"|\bSkipTest\(|\b(?:it|test|describe|context|suite)\.(?:skip|todo|failing|fixme|only)\b"
    r"|\bx(?:it|describe|test|context)\(|\bf(?:it|describe)\(|\b[tb]\.Skip\w*\(|#\[ignore|@(?:Disabled|Ignore)\b|\[Ignore"
    r"|\(Skip ?=|markTestSkipped|collect_ignore|^\s*skip\b"
)
_OTHER = re.compile(r"(?:async )?(?:def|class|func|function|fn|const)\b")
_ASSERTION = re.compile(r"assert|expect|should|require|verify|raises|\bt\.(?:Error|Fatal)|\beq", re.IGNORECASE)
_FAILURE_LINE = re.compile(
    r"FAIL|ERROR|Failure|^_{3,} |^\s*(?:\u25cf|\u2715|\u2716|\u2717|\u00d7) |\bnot ok\b|^\s+\d+\) |^\d+\) ",
    re.MULTILINE,
)
_REMOVING = frozenset(("rm", "unlink", "mv", "truncate"))
_IN_PLACE = frozenset(("-i", "-pi", "-i.bak", "-ri", "-Ei", "--in-place"))
_RESTORING = frozenset(("checkout", "restore", "reset"))
_WHOLE_TREE = frozenset((".", "./", ":/", "--hard"))
"""Words with which git restores every file. Without them and without a file it only looks, or changes the branch."""
_MOST = 20
"""How many changes are named."""


class ChangedTests:
    """The changes to tests since the first check of a turn that failed.

    Tests that the turn itself has written do not count.
    """

    def __init__(self) -> None:
        self._failures: str | None = None
        self._created: set[tuple[str, str]] = set()
        self._changes: dict[tuple[str, str], str] = {}

    def list_all(self) -> list[str]:
        """Describe each: `tests/test_a.py::test_b removed`."""
        rows = [f"{file}{name and f'::{name}'} {what}" for (file, name), what in self._changes.items()]
        return rows[:_MOST]

    def take_failure(self, output: str) -> None:
        """Take the output of a check that failed."""
        lines = [line for line in output.splitlines() if _FAILURE_LINE.search(line)]
        self._failures = "\n".join([self._failures or "", *lines])

    def take_call(self, part: ToolPart, state: ToolStateCompleted) -> None:
        """Take a call that may have changed tests."""
        if part.tool == "bash":
            for words in split_commands(str(state.input.get("command"))):
                self._take_command(words)
        else:
            for file, patch in _list_patches(state):
                self._take_patch(file, patch.partition("\n@@")[2].split("\n"))

    def _take_patch(self, file: str, lines: Sequence[str]) -> None:
        if not _is_test_file(file):
            return
        before, after = _names(lines, "-"), _names(lines, "+")
        for name in after - before:
            if self._changes.pop((file, name), None) is None:
                self._created.add((file, name))
        if lines[0].startswith(" -0,0 "):
            self._created.add((file, ""))
        if self._failures is None:
            return
        for name in before - after:
            is_rename = len(after) >= len(before) and not self._has_failed(file, name)
            if not is_rename:
                self._note(file, name, "removed")
        for name, what in _find_changed_bodies(lines):
            if what == "skipped" or self._has_failed(file, name):
                self._note(file, name, what)

    def _take_command(self, words: Sequence[str]) -> None:
        if not words:
            return
        program, files = words[0].rpartition("/")[2], [word for word in words[1:] if _is_test_file(word, folders=True)]
        if program == "git" and len(words) > 1:
            if words[1] in _RESTORING:
                is_whole = not _WHOLE_TREE.isdisjoint(words)
                paths = [each.removeprefix("./").rstrip("/") for each in files]
                for key in list(self._changes):
                    if is_whole or any(key[0] == each or key[0].startswith(f"{each}/") for each in paths):
                        del self._changes[key]
                return
            program = "rm" if words[1] == "rm" else program
        if self._failures is None:
            return
        for file in files:
            if program in _REMOVING:
                self._note(file.removeprefix("./"), "", "removed")
            elif program in {"sed", "perl"} and _IN_PLACE & set(words) and self._has_failed(file, ""):
                self._note(file.removeprefix("./"), "", "edited")

    def _has_failed(self, file: str, name: str) -> bool:
        """Return whether a test is among those that failed, as far as the outputs name any."""
        failures = self._failures or ""
        if name and name in failures:
            return True
        is_named = PurePath(file).name in failures
        return (is_named and not name) or not failures.strip()

    def _note(self, file: str, name: str, what: str) -> None:
        if not {(file, name), (file, "")} & self._created:
            self._changes[file, name] = self._changes.get((file, name), what) if what == "edited" else what


def _list_patches(state: ToolStateCompleted) -> list[tuple[str, str]]:
    """Return the files that an edit changed, relative to the project, each with its patch."""
    files: list[JSON] = state.metadata.get("files") or []
    if files:
        return [(str(each.get("relativePath")), str(each.get("patch"))) for each in files]
    return [(state.title, str(state.metadata.get("diff") or ""))]


def _names(lines: Sequence[str], sign: str) -> set[str]:
    return {name for line in lines if line.startswith(sign) and (name := _name_of(line[1:]))}


def _name_of(line: str) -> str:
    """Return the name of the test that a line begins; "": none."""
    match = _START.match(line)
    return "" if match is None else match["title"] or next(filter(None, (match[1], match[4], match[5])), "")


def _find_changed_bodies(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each test that a hunk changes within, with what happened to it; "" where the hunk does not name it."""
    name = ""
    for number, line in enumerate(lines):
        if line.startswith("@@"):
            name = ""
        name = _name_of(line[1:]) or ("" if _OTHER.match(line[1:]) else name)
        if line.startswith("+") and _SKIP.search(line[1:]):
            below = next(filter(None, (_name_of(each[1:]) for each in lines[number : number + 8])), name)
            yield (below if line[1:].lstrip().startswith(("@", "#[", "[")) else _name_of(line[1:]) or name), "skipped"
        elif line.startswith("-") and line[1:].strip() and (name or _ASSERTION.search(line)) and not _name_of(line[1:]):
            yield name, "edited"


def _is_test_file(path: str, *, folders: bool = False) -> bool:
    parts = PurePath(path).parts
    if not parts or "__pycache__" in parts or path.startswith(("-", "/")):
        return False
    if _CODE.fullmatch(parts[-1]) and any(each.fullmatch(path.removeprefix("./")) for each in _FILES):
        return True
    return folders and parts[-1] in _FOLDERS
