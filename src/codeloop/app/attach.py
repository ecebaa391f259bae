"""What a prompt brings along becomes parts of its message: text as it is, text files as a read that has been done."""

import base64
import mimetypes
from pathlib import Path
from urllib.parse import unquote, urlsplit

from codeloop.schema.errors import OperationError
from codeloop.schema.ids import new_id
from codeloop.schema.limits import ATTACHED_FILE
from codeloop.schema.message import UserMessage
from codeloop.schema.operation import AgentInput, FileInput, PartInput, TextInput
from codeloop.schema.part import AgentPart, FilePart, Part, TextPart
from codeloop.schema.wire import replace
from codeloop.workspace.workspace import Workspace


def attached(workspace: Workspace, message: UserMessage, given: PartInput) -> list[Part]:
    """Give the parts of one piece of a prompt. Raises OperationError when a named file can't be read."""
    session_id, message_id = message.session_id, message.id
    match given:
        case TextInput():
            return [
                TextPart(
                    id=given.id or new_id("prt"),
                    text=given.text,
                    synthetic=given.synthetic,
                    ignored=given.ignored,
                    metadata=given.metadata,
                    session_id=session_id,
                    message_id=message_id,
                )
            ]
        case AgentInput():
            note = f"The user asks for the subagent {given.name}: hand this to it with the task tool."
            mention = AgentPart(
                id=given.id or new_id("prt"),
                session_id=session_id,
                message_id=message_id,
                name=given.name,
                source=given.source,
            )
            request = TextPart(
                id=new_id("prt"), session_id=session_id, message_id=message_id, text=note, synthetic=True
            )
            return [mention, request]
        case FileInput():
            part = FilePart(
                id=given.id or new_id("prt"),
                mime=given.mime,
                url=given.url,
                filename=given.filename,
                source=given.source,
                session_id=session_id,
                message_id=message_id,
            )
            return _file(workspace, part)


def _file(workspace: Workspace, part: FilePart) -> list[Part]:
    if not part.url.startswith("file://"):
        return [part]
    target = workspace.resolve(unquote(urlsplit(part.url).path))
    if part.mime.startswith("image/") or part.mime == "application/pdf":
        data = base64.b64encode(_read(target.path)).decode()
        return [replace(part, url=f"data:{part.mime};base64,{data}", filename=part.filename or target.path.name)]
    text = read_text(target.path)
    name = workspace.relative(target.path)
    told = TextPart(
        id=new_id("prt"),
        session_id=part.session_id,
        message_id=part.message_id,
        text=f"The user attached the file {name}:\n{text}",
        synthetic=True,
    )
    return [told, part]


def read_text(path: Path) -> str:
    """Give a file that a person attached, as text. Raises OperationError when it is missing, too large or no text."""
    try:
        return _read(path).decode()
    except UnicodeDecodeError:
        raise OperationError("BadRequest", f"The attached file {path} is not UTF-8 text.") from None


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > ATTACHED_FILE.value:
            raise OperationError("BadRequest", f"The attached file {path} is over {ATTACHED_FILE.value // 1024} KB.")
        return path.read_bytes()
    except OSError as error:
        raise OperationError("BadRequest", f"The attached file {path} can't be read: {error.strerror}.") from error


def mime_of(path: Path) -> str:
    """Guess a file's mime type from its name; text when there is nothing to go by."""
    return mimetypes.guess_type(path.name)[0] or "text/plain"
