"""Formats edited files and reports the errors that an edit introduced,
before the model reads the result.

All editing tools use `EditFinisher`, through `commit_changes` of `file_changes.py`.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from codeloop.kit.text.diff import make_unified_diff
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.wire import JSON, replace
from codeloop.workspace.edit.syntax import find_syntax_problem
from codeloop.workspace.files.encoding import decode_text
from codeloop.workspace.files.safe_open import FileStamp, LoadedFile
from codeloop.workspace.format.formatters import FormattedFile
from codeloop.workspace.sandbox.paths.denied_paths import DenyRules
from codeloop.workspace.workspace import ResolvedPath

_MAX_NAME_CHARS = 100
MayRead = Callable[[Path], bool]
"""Takes a resolved path; returns whether the session may read that file without a question."""


class FileChange(Struct, frozen=True):
    """A change of one file: its content before (None: a new file) and after (None: a deletion).

    `text_before` and `text_after` are the decoded contents, for diffs;
    `mode` is the mode of a new file.
    """

    target: ResolvedPath
    before: LoadedFile | None
    after: bytes | None
    text_before: str
    text_after: str
    mode: int | None = None


class FormatFiles(Protocol):
    """Formats files that were just written; see `workspace.format`."""

    async def __call__(
        self, files: Sequence[Path], rules: DenyRules | None, /
    ) -> dict[Path, FormattedFile]:
        """Format the files (resolved paths) that have a formatter; return the result of each.
        Bounded in time.

        `rules`: those that bind the formatters.
        """
        ...


class Diagnoser(Protocol):
    """Finds the errors that changes introduce;
    implemented with language servers (`app.language`).
    """

    async def record_errors(self, changes: Sequence[FileChange]) -> None:
        """Record the current errors: the files are about to be changed."""
        ...

    async def find_new_errors(
        self, session_id: str, changes: Sequence[FileChange], may_read: MayRead
    ) -> tuple[str, JSON]:
        """Return new diagnostics after changes: text for the model, and `metadata["diagnostics"]`.
        Bounded in time.
        """
        ...


class FinishedChanges(Struct, frozen=True):
    """Changes that were written, formatted and checked.
    `changes`: in the given order, as the formatters left them.

    `notes`: one for each change, which ends its line in the tool's result.
    `text`: lines that are added below.
    `stamps`: the new states of the files that were formatted.
    """

    changes: tuple[FileChange, ...]
    notes: tuple[str, ...]
    text: str = ""
    diagnostics: JSON = {}
    stamps: dict[Path, FileStamp] = {}


class EditFinisher:
    """Formats and checks files after edits in one work tree."""

    def __init__(
        self, format_files: FormatFiles | None = None, diagnoser: Diagnoser | None = None
    ) -> None:
        self._format_files = format_files
        self._diagnoser = diagnoser
        self._broken_files: set[tuple[str, Path]] = set()
        """Pairs of a session and a file whose syntax it has broken and not repaired yet."""

    async def prepare(self, changes: Sequence[FileChange]) -> None:
        """Record the errors that the files have now. Call it when the changes are
        permitted and not written yet.
        """
        if self._diagnoser is not None:
            await self._diagnoser.record_errors(changes)

    async def finish(
        self,
        session_id: str,
        changes: Sequence[FileChange],
        may_read: MayRead,
        rules: DenyRules | None = None,
        *,
        directory: Path | None = None,
    ) -> FinishedChanges:
        """Format and check the written files. The caller holds the locks of the files.

        `rules`: the session's. `directory`: the one that the paths in the text are relative to;
        None: names alone.
        """
        result = await self._format_changes(changes, rules)
        if self._diagnoser is not None:
            text, diagnostics = await self._diagnoser.find_new_errors(
                session_id, result.changes, may_read
            )
            lines = "\n".join(each for each in (result.text, text) if each)
            result = replace(result, text=lines, diagnostics=diagnostics)
        # Parsing a large file would block the event loop.
        problems = await asyncio.to_thread(
            self.describe_broken_syntax,
            session_id,
            result.changes,
            directory,
            only_old=bool(result.diagnostics),
        )
        return replace(result, text="\n".join(each for each in (result.text, *problems) if each))

    def describe_broken_syntax(
        self,
        session_id: str,
        changes: Sequence[FileChange],
        directory: Path | None,
        *,
        only_old: bool = False,
    ) -> list[str]:
        """Return a line for each file whose syntax the session broke,
        by these changes or by earlier ones.

        `directory`: as in `finish`. `only_old`: leave out what these changes broke, because the
        language server's diagnostics say it already.
        """
        lines: list[str] = []
        for change in changes:
            real = change.target.real
            problem = (
                None
                if change.after is None
                else find_syntax_problem(real, change.text_before, change.text_after)
            )
            if problem is None:
                self._broken_files.discard((session_id, real))
                continue
            if problem.is_new:
                self._broken_files.add((session_id, real))
            elif (session_id, real) not in self._broken_files:
                # Another session or program broke it: the model is only told of its own mistakes.
                continue
            path = change.target.path
            shown = (
                path.relative_to(directory)
                if directory and path.is_relative_to(directory)
                else path.name
            )
            name, where = (
                one_line(str(shown), _MAX_NAME_CHARS),
                f"line {problem.line}: {problem.reason}",
            )
            if not problem.is_new:
                lines.append(f"The syntax of {name} is still broken: {where}")
            elif not only_old:
                lines.append(f"This broke the syntax of {name}: {where}")
        return lines

    async def _format_changes(
        self, changes: Sequence[FileChange], rules: DenyRules | None
    ) -> FinishedChanges:
        paths = [change.target.real for change in changes if change.after is not None]
        formatted_files = (
            await self._format_files(paths, rules)
            if self._format_files is not None and paths
            else {}
        )
        if not formatted_files:
            return skip_formatting(changes)
        pairs = await asyncio.to_thread(
            lambda: [
                _apply_formatting(change, formatted_files.get(change.target.real))
                for change in changes
            ]
        )
        return FinishedChanges(
            tuple(change for change, _ in pairs),
            tuple(note for _, note in pairs),
            "\n".join(
                dict.fromkeys(
                    problem for each in formatted_files.values() for problem in each.problems
                )
            ),
            stamps={
                real: each.file.stamp for real, each in formatted_files.items() if each.changed_by
            },
        )


def skip_formatting(changes: Sequence[FileChange]) -> FinishedChanges:
    """Return the changes as finished, without formatting or checks."""
    return FinishedChanges(tuple(changes), ("",) * len(changes))


def _apply_formatting(
    change: FileChange, formatted: FormattedFile | None
) -> tuple[FileChange, str]:
    """Return a change with the formatted content,
    and a note that says which lines the formatters changed.
    """
    if formatted is None or not formatted.changed_by:
        return change, ""
    text = decode_text(formatted.file.data).content
    where, by = (
        make_unified_diff("", change.text_after, text).changed_lines,
        " and ".join(formatted.changed_by),
    )
    note = f"; {by}: {where}" if where.startswith("lines removed") else f"; {by} changed {where}"
    return replace(change, after=formatted.file.data, text_after=text), note
