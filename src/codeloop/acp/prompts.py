"""Turns an editor's prompt into our parts, or as the command that it names."""

from base64 import b64encode
from collections.abc import Callable, Coroutine, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from codeloop.acp.connection import AUTH_REQUIRED, INVALID_PARAMS, RpcError
from codeloop.acp.params import EditorAudio, EditorImage, EditorLink, EditorResource, EditorText, PromptBlock
from codeloop.client.client import Client
from codeloop.client.undo_redo import redo_last, undo_last
from codeloop.schema.api.session_inputs import FilePartInput, Summarize, TextPartInput
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.message import ModelRef
from codeloop.schema.operation import SESSION_GET, SUMMARIZE

OWN_COMMANDS = {
    "compact": "Put a summary in the place of the conversation so far.",
    "undo": "Undo the last turn, with its changes of files.",
    "redo": "Redo the turn that was undone.",
}
_TEXT = "text/plain"


def text_of(blocks: Sequence[PromptBlock]) -> str:
    """Return the typed text; a link stands in it by its name, as the editor shows it."""
    return "".join(
        block.text if isinstance(block, EditorText) else f"@{block.name}" if isinstance(block, EditorLink) else ""
        for block in blocks
    )


def files_of(blocks: Sequence[PromptBlock]) -> list[FilePartInput]:
    """Return the attachments. Raises RpcError for what no model of ours takes."""
    files: list[FilePartInput] = []
    for block in blocks:
        match block:
            case EditorText():
                pass
            case EditorImage():
                files.append(FilePartInput(mime=block.mime_type, url=_data(block.mime_type, block.data)))
            case EditorLink():
                if block.uri.startswith("file://"):
                    files.append(FilePartInput(mime=block.mime_type or _TEXT, url=block.uri, filename=_name(block.uri)))
            case EditorResource(resource=resource):
                mime = resource.mime_type or _TEXT
                content = resource.blob
                if content is None:
                    content, mime = b64encode((resource.text or "").encode()).decode(), _TEXT
                files.append(FilePartInput(mime=mime, url=_data(mime, content), filename=_name(resource.uri)))
            case EditorAudio():
                raise RpcError(INVALID_PARAMS, "Audio can't be sent: `promptCapabilities` says so.")
    return files


def parts_of(blocks: Sequence[PromptBlock]) -> list[TextPartInput | FilePartInput]:
    """Return the parts of a prompt. Raises RpcError for an empty one."""
    text, files = text_of(blocks), files_of(blocks)
    if not text.strip() and not files:
        raise RpcError(INVALID_PARAMS, "The prompt is empty.")
    return [TextPartInput(text=text), *files]


async def run_own_command(client: Client, session_id: str, name: str, model: ModelRef | None) -> str:
    """Carry out a command of the program's own and return what came of it, in words. Raises CodeloopError."""
    if name == "compact":
        if model is None:
            raise RpcError(AUTH_REQUIRED, "No model can be used yet, so nothing can be summarized.")
        summarize = Summarize(session_id=session_id, provider_id=model.provider_id, model_id=model.model_id)
        await client.call(SUMMARIZE, summarize)
        return "The conversation goes on from a summary."
    lines: list[str] = []
    session = await client.call(SESSION_GET, SessionId(session_id=session_id))
    move: Callable[..., Coroutine[Any, Any, int]] = redo_last if name == "redo" else undo_last
    await move(client, session, dry_run=False, say=lines.append, warn=lines.append)
    return "\n".join(lines)


def _data(mime: str, content: str) -> str:
    return f"data:{mime};base64,{content}"


def _name(uri: str) -> str:
    return unquote(urlsplit(uri).path).rpartition("/")[2] or uri
