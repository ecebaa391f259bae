"""Takes the files that others changed since the model read them from the log of reads,
for its next request.
"""

import asyncio

from codeloop.agent.engine import Engine
from codeloop.agent.request.projection import CHANGED_FILES_KEY
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.ids import new_id
from codeloop.schema.message import AssistantMessage
from codeloop.schema.part import TextPart

_MAX_PATH_CHARS = 200


async def take_changed_files(engine: Engine, info: AssistantMessage) -> TextPart | None:
    """Return a part that lists the files that others changed since they were read,
    each change once; None: none did.

    The part has no text, so that no client shows it;
    the projection writes the line from its metadata.
    """
    changed = await asyncio.to_thread(engine.workspace.read_log.take_changed_files, info.session_id)
    if not changed:
        return None
    names = [
        one_line(engine.workspace.format_for_model(path), _MAX_PATH_CHARS)
        + ("" if exists else " (deleted)")
        for path, exists in sorted(changed.items())
    ]
    return TextPart(
        id=new_id("prt"),
        session_id=info.session_id,
        message_id=info.id,
        text="",
        synthetic=True,
        metadata={CHANGED_FILES_KEY: names},
    )
