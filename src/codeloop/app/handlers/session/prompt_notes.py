"""Makes the part of a prompt with the notes of the project's memory that concern it."""

import asyncio
from collections.abc import Iterable

from codeloop.app.handlers.project.memory import describe_stale_notes
from codeloop.app.project import Project
from codeloop.extend.pages.memory_notes import NOTES_FOLDER, find_relevant, format_notes, read_notes
from codeloop.schema.api.session_inputs import FilePartInput, PartInput, TextPartInput
from codeloop.schema.bounds.session import MEMORY_NOTES_PER_PROMPT
from codeloop.schema.part import MEMORY_KEY, TextPart


async def make_notes_part(
    project: Project, session_id: str, part_inputs: Iterable[PartInput]
) -> TextPartInput | None:
    """Return a part with the notes that concern a prompt and are new to its session;
    None: there are none.
    """
    if not (project.workspace.root / NOTES_FOLDER).is_dir():
        return None
    texts = [
        part.text for part in part_inputs if isinstance(part, TextPartInput) and not part.synthetic
    ]
    texts += [part.filename or part.url for part in part_inputs if isinstance(part, FilePartInput)]
    notes = find_relevant(
        await asyncio.to_thread(read_notes, project.workspace.root), "\n".join(texts)
    )
    # By the name of a note. The mark changes with the content,
    # so that a changed note is added again.
    sent_marks: dict[str, str] = {}
    # Of the notes that the session has already: all of them together are bounded.
    used_bytes = 0
    for entry in project.store.read_context(session_id).entries:
        for part in entry.parts:
            if isinstance(part, TextPart) and MEMORY_KEY in (part.metadata or {}):
                sent_marks |= (part.metadata or {})[MEMORY_KEY]
                used_bytes += len(part.text.encode())
    new_notes = [note for note in notes if sent_marks.get(note.name) != note.mark][
        : MEMORY_NOTES_PER_PROMPT.value
    ]
    if not new_notes:
        return None
    is_trusted = project.settings.trusted
    stale = await describe_stale_notes(project, new_notes) if is_trusted else {}
    offered_notes = format_notes(new_notes, stale, used_bytes, is_trusted=is_trusted)
    if offered_notes is None:
        return None
    return TextPartInput(
        text=offered_notes.text, synthetic=True, metadata={MEMORY_KEY: offered_notes.marks}
    )
