"""`EditorBuffers`: has the editor save a file with unsaved changes before a tool reads it."""

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
    """Access to the texts of files as the editor has them, with unsaved changes.

    `is_offered`: the editor lets agents read and write them. `connection`, `sessions`: to the
    editor, and the ids of the sessions that are open in it, for `EditorTerminals`, too.
    """

    def __init__(self) -> None:
        self.connection: EditorConnection | None = None
        self.is_offered = False
        # A dict as an ordered set: the last session is the latest.
        self.sessions: dict[str, None] = {}

    def choose_session_id(self, session_id: str) -> str | None:
        """Return the id of the session to name in a request to the editor;
        None: no session is open.

        The editor does not know the sessions of subagents;
        their requests name the session that was opened last.
        """
        return session_id if session_id in self.sessions else next(reversed(self.sessions), None)

    async def save(self, session_id: str, path: Path) -> None:
        """Have the editor save a file if its text differs from the file on disk.
        A failure is logged, not raised.
        """
        session = self.choose_session_id(session_id)
        if self.connection is None or not self.is_offered or session is None:
            return
        file = {"sessionId": session, "path": str(path)}
        try:
            async with asyncio.timeout(EDITOR_ANSWER.seconds):
                answer = await self.connection.request("fs/read_text_file", file)
                text = answer.get("content") if is_object(answer) else None
                # The protocol has no request to save; an editor saves a buffer when its
                # own text is written to it.
                if isinstance(text, str) and not await asyncio.to_thread(_has_text, path, text):
                    await self.connection.request("fs/write_text_file", {**file, "content": text})
        # The editor refuses files that are not text,
        # or hangs: the tool then reads the file on disk.
        except (CodeloopError, TimeoutError) as error:
            _log.info("The editor has no text of %s: %s", path, error)


def _has_text(path: Path, text: str) -> bool:
    """Return whether a file has this text, ignoring line ends;
    True as well if it must not be written.
    """
    try:
        content = read_bounded(path, EDITOR_FILE.value).decode()
    except FileNotFoundError:
        return not text
    except (OSError, UnicodeDecodeError):
        # Not UTF-8 or too large: the editor's text may be incomplete or converted,
        # and writing it would do damage.
        return True
    return _normalize(content) == _normalize(text)


def _normalize(text: str) -> str:
    # An editor may leave out the byte order mark, and convert line ends.
    return text.removeprefix("\ufeff").replace("\r\n", "\n")
