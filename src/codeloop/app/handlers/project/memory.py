"""Handler that lists the notes in a project's memory, and says which of them are stale."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

from codeloop.app.project import Project
from codeloop.extend.pages.memory_notes import NOTES_FOLDER, Note, read_notes
from codeloop.kit.small_files import read_start
from codeloop.schema.api.project import MemoryNote
from codeloop.schema.bounds.session import MEMORY_NOTE_FILE_BYTES, MEMORY_NOTE_FILES
from codeloop.schema.operation import NoArguments
from codeloop.workspace.git.repository import Git, GitFailed


async def list_notes(project: Project, _args: NoArguments) -> list[MemoryNote]:
    """Return the notes of the project by name; `stale` describes the changes of a note's
    files since it was written.
    """
    notes = await asyncio.to_thread(read_notes, project.workspace.root)
    stale = await describe_stale_notes(project, notes)
    return [
        MemoryNote(
            name=note.name,
            file=f"{NOTES_FOLDER}/{note.name}.md",
            about=[*note.about],
            commit=note.commit,
            stale=stale.get(note.name, ""),
            problem=note.problem,
            text=note.text,
        )
        for note in notes
    ]


async def describe_stale_notes(project: Project, notes: Iterable[Note]) -> dict[str, str]:
    """Return descriptions of the changes of files since a note's commit,
    by the names of the stale notes.
    """
    git = Git(project.workspace.root, project.workspace.environment)
    stale: dict[str, str] = {}
    for note in notes:
        change = await _describe_change(git, note) if note.about and note.commit else ""
        if change:
            stale[note.name] = change
    return stale


async def _describe_change(git: Git, note: Note) -> str:
    """Return the changes of a note's files since its commit, as text; "" if there are none."""
    try:
        commit = await git.resolve_commit(note.commit)
        if commit is None:
            return f"its commit {note.commit[:12]} is not in this repository"
        changed: list[str] = []
        for path in note.about[: MEMORY_NOTE_FILES.value]:
            before = await git.read_blob(commit, path, MEMORY_NOTE_FILE_BYTES.value)
            now = await asyncio.to_thread(_read_if_exists, git.root / path)
            if before != now:
                changed.append(f"{path} is gone" if now is None else f"{path} has changed")
    except GitFailed as error:
        return f"it can't be compared: {error}"
    return f"{', '.join(changed)} since {commit[:12]}" if changed else ""


def _read_if_exists(file: Path) -> bytes | None:
    try:
        return read_start(file, MEMORY_NOTE_FILE_BYTES.value)
    except (OSError, ValueError):
        return None
