"""Has the editor save its unsaved buffers before the agent reads a file."""

import asyncio
import logging
from pathlib import Path

from codeloop.acp.connection import EditorConnection
from codeloop.kit.jsonc import is_object
from codeloop.kit.small_files import read_bounded
from codeloop.schema.bounds.editor import EDITOR_ANSWER, EDITOR_FILE
from codeloop.schema.errors import CodeloopError

_log = logging.getLogger(__name__)


class EditorBuffers:
    """The editor's files. `is_offered`: whether it lets us read and write them; `sessions`: those that it has open."""

    def __init__(self) -> None:
        self.connection: EditorConnection | None = None
        self.is_offered = False
        self.sessions: dict[str, None] = {}

    def name_session(self, session_id: str) -> str | None:
        """Return under which session the editor is asked; None: it has none open.

        A subagent's session is not known to the editor, so it is asked in the name of the one that it has opened last.
        """
        return session_id if session_id in self.sessions else next(reversed(self.sessions), None)

    async def save(self, session_id: str, path: Path) -> None:
        """Have the editor save a file if it holds another text than the disk.

        What can't be asked, such as a file that is no text, is left as it is.
        """
        session = self.name_session(session_id)
        if self.connection is None or not self.is_offered or session is None:
            return
        file = {"sessionId": session, "path": str(path)}
        try:
            async with asyncio.timeout(EDITOR_ANSWER.seconds):
                answer = await self.connection.request("fs/read_text_file", file)
                text = answer.get("content") if is_object(answer) else None
                if isinstance(text, str) and not await asyncio.to_thread(_holds, path, text):
                    await self.connection.request("fs/write_text_file", {**file, "content": text})
        except (CodeloopError, TimeoutError) as error:
            _log.info("The editor has no text of %s: %s", path, error)


def _holds(path: Path, text: str) -> bool:
    """Return whether a file holds this text, line ends aside; also if it is none that an editor can give back whole."""
    try:
        content = read_bounded(path, EDITOR_FILE.value).decode()
    except FileNotFoundError:
        return not text
    except (OSError, UnicodeDecodeError):
        return True
    return _normalize(content) == _normalize(text)


def _normalize(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")
