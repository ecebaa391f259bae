"""After an edit: its files are formatted and new errors are reported, before the model reads the result."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from codeloop.kit.diff import unified_diff
from codeloop.kit.terminal_text import one_line
from codeloop.schema.wire import JSON, replace
from codeloop.workspace.edit.syntax import find_problem
from codeloop.workspace.files.encoding import decode
from codeloop.workspace.files.safe_open import LoadedFile, Stamp
from codeloop.workspace.format.formatters import FormattedFile
from codeloop.workspace.workspace import ResolvedPath

_NAME = 100
MayRead = Callable[[Path], bool]
"""Takes a resolved path; whether the session may read it without a question."""


class FileChange(Struct, frozen=True):
    """A change of one file that waits for permission. `after` is None for a deletion; `text_*` are for the diff."""

    target: ResolvedPath
    before: LoadedFile | None
    after: bytes | None
    text_before: str
    text_after: str
    mode: int | None = None


class FormatFiles(Protocol):
    """Formats files that were just written; see `workspace.format`."""

    async def __call__(self, files: Sequence[Path]) -> dict[Path, FormattedFile]:
        """Format the files (resolved paths) that have a formatter; return the result of each. Bounded in time."""
        ...


class Diagnose(Protocol):
    """Finds the errors in files; see `lsp`."""

    async def before(self, changes: Sequence[FileChange]) -> None:
        """Record the current errors: the files are about to be changed."""
        ...

    async def after(self, session_id: str, changes: Sequence[FileChange], may_read: MayRead) -> tuple[str, JSON]:
        """Return new diagnostics after changes: text for the model, and `metadata["diagnostics"]`. Bounded in time."""
        ...


class LandedChanges(Struct, frozen=True):
    """Completed changes. `changes`: in the given order, with the files' current content.

    `notes`: for each, the end of its line in the result; `text`: added below all lines of the result.
    `stamps`: of the files that were formatted.
    """

    changes: tuple[FileChange, ...]
    notes: tuple[str, ...]
    text: str = ""
    diagnostics: JSON = {}
    stamps: dict[Path, Stamp] = {}


class AfterEdit:
    """Formats and checks files after edits in one work tree."""

    def __init__(self, format_files: FormatFiles | None = None, diagnose: Diagnose | None = None) -> None:
        self._format = format_files
        self._diagnose = diagnose
        self._broken: set[tuple[str, Path]] = set()
        """Sessions and the files whose syntax they broke and have not repaired yet."""

    async def before(self, changes: Sequence[FileChange]) -> None:
        """Call when the changes are permitted and nothing is written yet."""
        if self._diagnose is not None:
            await self._diagnose.before(changes)

    async def after(self, session_id: str, changes: Sequence[FileChange], may_read: MayRead) -> LandedChanges:
        """Call when the changes are made, with the locks of the files held."""
        result = await self._format_changes(changes)
        if self._diagnose is not None:
            text, diagnostics = await self._diagnose.after(session_id, result.changes, may_read)
            lines = "\n".join(each for each in (result.text, text) if each)
            result = replace(result, text=lines, diagnostics=diagnostics)
        problems = await asyncio.to_thread(
            self._describe_broken_syntax, session_id, result.changes, only_old=bool(result.diagnostics)
        )
        return replace(result, text="\n".join(each for each in (result.text, *problems) if each))

    def _describe_broken_syntax(self, session_id: str, changes: Sequence[FileChange], *, only_old: bool) -> list[str]:
        """Return a line for each file whose syntax the session broke, by these changes or by earlier ones.

        `only_old`: what these changes broke is said already.
        """
        lines: list[str] = []
        for change in changes:
            real = change.target.real
            problem = None if change.after is None else find_problem(real, change.text_before, change.text_after)
            if problem is None:
                self._broken.discard((session_id, real))
                continue
            if problem.is_new:
                self._broken.add((session_id, real))
            elif (session_id, real) not in self._broken:
                continue  # others broke it
            name, where = one_line(real.name, _NAME), f"line {problem.line}: {problem.reason}"
            if not problem.is_new:
                lines.append(f"The syntax of {name} is still broken: {where}")
            elif not only_old:
                lines.append(f"This broke the syntax of {name}: {where}")
        return lines

    async def _format_changes(self, changes: Sequence[FileChange]) -> LandedChanges:
        paths = [change.target.real for change in changes if change.after is not None]
        formatted_files = await self._format(paths) if self._format is not None and paths else {}
        if not formatted_files:
            return skip_formatting(changes)
        pairs = await asyncio.to_thread(
            lambda: [_apply_formatting(change, formatted_files.get(change.target.real)) for change in changes]
        )
        return LandedChanges(
            tuple(change for change, _ in pairs),
            tuple(note for _, note in pairs),
            "\n".join(dict.fromkeys(problem for each in formatted_files.values() for problem in each.problems)),
            stamps={real: each.now.stamp for real, each in formatted_files.items() if each.by},
        )


def skip_formatting(changes: Sequence[FileChange]) -> LandedChanges:
    """Return changes without formatting or diagnostics."""
    return LandedChanges(tuple(changes), ("",) * len(changes))


def _apply_formatting(change: FileChange, file: FormattedFile | None) -> tuple[FileChange, str]:
    """Return a change with the formatted content, and a note of what the formatters changed."""
    if file is None or not file.by:
        return change, ""
    text = decode(file.now.data).content
    where, by = unified_diff("", change.text_after, text).where, " and ".join(file.by)
    note = f"; {by}: {where}" if where.startswith("lines removed") else f"; {by} changed {where}"
    return replace(change, after=file.now.data, text_after=text), note
