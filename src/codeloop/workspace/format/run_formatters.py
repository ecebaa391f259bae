"""Runs formatters on files after an edit: whatever a formatter does,
the edit itself is never lost.
"""

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from codeloop.kit.child_process import Launch
from codeloop.schema.bounds.language_tools import FORMAT_FILE
from codeloop.schema.limits import FILE_EDIT
from codeloop.schema.wire import replace
from codeloop.workspace.files.atomic_write import FileChanged, Replacement, replace_file
from codeloop.workspace.files.encoding import NotText, decode_text
from codeloop.workspace.files.safe_open import (
    FileRefused,
    FileStamp,
    LoadedFile,
    open_file,
    read_file,
)
from codeloop.workspace.format.formatters import FormattedFile, Formatter
from codeloop.workspace.process.program_sandboxes import ProgramSandbox, choose_program_sandbox
from codeloop.workspace.sandbox.paths.denied_paths import DenyRules
from codeloop.workspace.workspace import Workspace

# Formatters that run at the same time.
_MAX_PROGRAMS = 4
# A text with this many letters and digits must keep between half and twice as
# many when it is formatted.
_MIN_COMPARED_LETTERS = 400
# Of ASCII, what is neither a letter nor a digit.
_NOT_LETTERS = bytes(code for code in range(128) if not chr(code).isalnum())


class _FormatterFailed(Exception):
    """A formatter failed; the message is a clause that says why."""


async def format_files(
    workspace: Workspace,
    formatters: Mapping[Path, Sequence[Formatter]],
    seconds: float,
    rules: DenyRules | None = None,
) -> dict[Path, FormattedFile]:
    """Run formatters on files that were just written, within `seconds` in all.
    `rules`: those that bind the formatters.

    The caller holds the files' locks. A file that somebody else changes meanwhile is left alone.
    """
    deadline = asyncio.get_running_loop().time() + seconds
    slots = asyncio.Semaphore(_MAX_PROGRAMS)

    async def format_file(real: Path) -> FormattedFile:
        async with slots:
            return await _format(
                workspace, formatters[real], read_file(real), real, deadline, rules
            )

    return dict(zip(formatters, await asyncio.gather(*map(format_file, formatters)), strict=True))


async def _format(
    workspace: Workspace,
    formatters: Sequence[Formatter],
    loaded: LoadedFile,
    real: Path,
    deadline: float,
    rules: DenyRules | None,
) -> FormattedFile:
    result = FormattedFile(loaded)
    if len(loaded.data) > FORMAT_FILE.value:
        return result
    for formatter in formatters:
        try:
            formatted = await _run_formatter(
                workspace, formatter, result.file, real, deadline, rules
            )
        except _FormatterFailed as error:
            result = replace(result, problems=(*result.problems, f"{formatter.name} {error}"))
        else:
            if formatted.data != result.file.data:
                result = replace(
                    result, file=formatted, changed_by=(*result.changed_by, formatter.name)
                )
    return result


async def _run_formatter(
    workspace: Workspace,
    formatter: Formatter,
    before: LoadedFile,
    real: Path,
    deadline: float,
    rules: DenyRules | None,
) -> LoadedFile:
    """Run one formatter, and return the file as it is then. Raises _FormatterFailed;
    what it did is undone then.
    """
    if formatter.obstacle:
        raise _FormatterFailed(f"did not run: {formatter.obstacle}")
    launch = Launch(
        formatter.command,
        formatter.folder,
        formatter.environment,
        named_variables=formatter.named_variables,
        stdin=before.data if formatter.is_filter else b"",
        max_bytes=FILE_EDIT.value,
    )
    output, is_complete = b"", False
    try:
        async with asyncio.timeout_at(deadline):
            # Whoever sets `sandbox` to False answers for the program: it then runs without one.
            confinement = choose_program_sandbox(
                workspace, formatter.name, formatter.sandbox, launch, ProgramSandbox(rules=rules)
            )
            result = await workspace.program_sandboxes.run(launch, confinement)
        if result.stop_reason:
            raise _FormatterFailed("returned far too much")
        if result.code not in formatter.success_codes:
            said = result.error_text or result.stdout.decode("utf-8", "replace")
            # Imported late: most formatters don't fail.
            from codeloop.workspace.process.program_refusals import Said, explain_run

            allowing = f"codeloop formatter allow {formatter.name}"
            note = explain_run(
                workspace.program_sandboxes, launch, confinement, Said(said), allowing
            )
            raise _FormatterFailed(
                f"failed: {_find_reason(said, result.code)}{note and f'. {note}'}"
            )
        output, is_complete = result.stdout, True
    except TimeoutError:
        raise _FormatterFailed("took too long and was ended") from None
    except OSError as error:
        raise _FormatterFailed(f"can't be started: {error.strerror or error}") from error
    finally:
        if not formatter.is_filter and not is_complete:
            _restore_edit(workspace, real, before)
    if formatter.is_filter:
        return _write_output(workspace, real, before, output)
    return _read_result(workspace, real, before)


def _write_output(workspace: Workspace, real: Path, before: LoadedFile, data: bytes) -> LoadedFile:
    """Write a filter's output to the file."""
    if data == before.data:
        return before
    _check_plausible(data, before.data)
    try:
        stamp = replace_file(Replacement(real, before, data), workspace.write_records_folder)
    except FileChanged:
        raise _FormatterFailed("came too late: the file was changed meanwhile") from None
    except (FileRefused, OSError) as error:
        raise _FormatterFailed(f"was no use: {error}") from error
    # Only a deletion has no stamp.
    return replace(before, data=data, stamp=stamp or FileStamp(0, 0))


def _read_result(workspace: Workspace, real: Path, before: LoadedFile) -> LoadedFile:
    """Read a file that a formatter changed in place;
    undo that when the result can't be its text.
    """
    try:
        now = read_file(real)
        if now.data != before.data:
            _check_plausible(now.data, before.data)
    except _FormatterFailed:
        _restore_edit(workspace, real, before)
        raise
    except (FileRefused, OSError) as error:
        _restore_edit(workspace, real, before)
        raise _FormatterFailed("took the file away") from error
    if now.mode != before.mode:
        with suppress(FileRefused, OSError), open_file(real) as fd:
            os.fchmod(fd, before.mode)
        now = replace(now, mode=before.mode)
    return now


def _restore_edit(workspace: Workspace, real: Path, before: LoadedFile) -> None:
    """Write the bytes of the edit back to the file, whatever has taken its path."""
    with suppress(FileRefused, OSError):
        try:
            now = read_file(real)
        except FileNotFoundError:
            now = None
        except FileRefused:
            now = None
            _remove_obstacle(real)
        if now is None or now.data != before.data:
            restored = Replacement(real, before=now, data=before.data, mode=before.mode)
            replace_file(restored, workspace.write_records_folder)


def _remove_obstacle(real: Path) -> None:
    """Remove a link, pipe or the like; a folder may hold files of the user,
    so it is renamed instead.
    """
    if real.is_dir() and not real.is_symlink():
        real.rename(real.with_name(f"{real.name}.{time.time_ns()}"))
    else:
        real.unlink()


def _check_plausible(data: bytes, before: bytes) -> None:
    """Raise _FormatterFailed when bytes can't be the formatted text of a file."""
    try:
        encoding = decode_text(data).encoding
        encoding_before = decode_text(before).encoding
    except NotText:
        raise _FormatterFailed("returned something that is not text") from None
    if len(data) > FILE_EDIT.value or (before.strip() and not data.strip()):
        raise _FormatterFailed("returned nothing" if not data.strip() else "returned far too much")
    # A formatter changes layout and may wrap comments, but does not halve or double the text.
    old, new = (len(text.translate(None, _NOT_LETTERS)) for text in (before, data))
    if encoding != encoding_before or (
        old >= _MIN_COMPARED_LETTERS and not old // 2 <= new <= old * 2
    ):
        raise _FormatterFailed("returned another text")


def _find_reason(text: str, code: int) -> str:
    line = next((line.strip() for line in text.splitlines() if line.strip()), f"exit code {code}")
    return line if len(line) <= 200 else f"{line[:200]}..."
