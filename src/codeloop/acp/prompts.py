"""Converts an editor's prompt to parts of a message, and runs the built-in commands `/compact`,
`/undo` and `/redo`.
"""

from base64 import b64encode
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from codeloop.acp.connection import AUTH_REQUIRED, INVALID_PARAMS, RpcError
from codeloop.acp.params import (
    EditorAudio,
    EditorImage,
    EditorLink,
    EditorResource,
    EditorText,
    PromptBlock,
)
from codeloop.client.client import Client
from codeloop.client.undo_redo import redo_last, undo_last
from codeloop.schema.api.agents import Command
from codeloop.schema.api.session_inputs import SUMMARIZE, FilePartInput, Summarize, TextPartInput
from codeloop.schema.api.session_requests import SESSION_GET, SessionId
from codeloop.schema.message import ModelRef

BUILT_IN_COMMANDS = {
    "compact": "Put a summary in the place of the conversation so far.",
    "undo": "Undo the last turn, with its changes of files.",
    "redo": "Redo the turn that was undone.",
}
_TEXT_MIME = "text/plain"


def join_text(blocks: Sequence[PromptBlock]) -> str:
    """Return the typed text; a mention without content is part of it as `@NAME`,
    as the editor shows it.
    """
    texts: list[str] = []
    for block in blocks:
        if isinstance(block, EditorText):
            texts.append(block.text)
        elif isinstance(block, EditorLink):
            texts.append(f"@{block.name}")
    return "".join(texts)


def list_files(blocks: Sequence[PromptBlock]) -> list[FilePartInput]:
    """Convert the attachments of a prompt. Raises RpcError for audio,
    which the result of `initialize` excludes.
    """
    files: list[FilePartInput] = []
    for block in blocks:
        match block:
            case EditorText():
                pass
            case EditorImage():
                files.append(
                    FilePartInput(
                        mime=block.mime_type, url=_make_data_url(block.mime_type, block.data)
                    )
                )
            case EditorLink():
                # Other addresses and files that are gone stay mentions in the text:
                # only files are read.
                if (
                    block.uri.startswith("file://")
                    and Path(unquote(urlsplit(block.uri).path)).exists()
                ):
                    files.append(
                        FilePartInput(
                            mime=block.mime_type or _TEXT_MIME,
                            url=block.uri,
                            filename=_find_file_name(block.uri),
                        )
                    )
            case EditorResource(resource=resource):
                mime = resource.mime_type or _TEXT_MIME
                # Texts are sent as `data:` URLs too: the editor's text may differ
                # from the file on disk.
                content = resource.blob
                if content is None:
                    content, mime = b64encode((resource.text or "").encode()).decode(), _TEXT_MIME
                files.append(
                    FilePartInput(
                        mime=mime,
                        url=_make_data_url(mime, content),
                        filename=_find_file_name(resource.uri),
                    )
                )
            case EditorAudio():
                raise RpcError(INVALID_PARAMS, "Audio can't be sent: `promptCapabilities` says so.")
    return files


def build_parts(blocks: Sequence[PromptBlock]) -> list[TextPartInput | FilePartInput]:
    """Convert a prompt to parts. Raises RpcError if it is empty."""
    text, files = join_text(blocks), list_files(blocks)
    if not text.strip() and not files:
        raise RpcError(INVALID_PARAMS, "The prompt is empty.")
    return [TextPartInput(text=text), *files]


async def run_built_in_command(
    client: Client, session_id: str, name: str, model: ModelRef | None
) -> str:
    """Run a built-in command and return its result as text. Raises CodeloopError."""
    if name == "compact":
        if model is None:
            raise RpcError(AUTH_REQUIRED, "No model can be used yet, so nothing can be summarized.")
        summarize = Summarize(
            session_id=session_id, provider_id=model.provider_id, model_id=model.model_id
        )
        await client.call(SUMMARIZE, summarize)
        return "The conversation goes on from a summary."
    lines: list[str] = []
    session = await client.call(SESSION_GET, SessionId(session_id=session_id))
    run_command: Callable[..., Coroutine[Any, Any, int]] = (
        redo_last if name == "redo" else undo_last
    )
    await run_command(client, session, dry_run=False, say=lines.append, warn=lines.append)
    return "\n".join(lines)


def _make_data_url(mime: str, content: str) -> str:
    return f"data:{mime};base64,{content}"


def _find_file_name(uri: str) -> str:
    return unquote(urlsplit(uri).path).rpartition("/")[2] or uri


async def explain_unknown_command(name: str, commands: Sequence[Command]) -> str:
    """Return the answer to a prompt that calls a command that does not exist."""
    names = (*BUILT_IN_COMMANDS, *(command.name for command in commands))
    return f"There is no command /{name}. There are: {', '.join(f'/{each}' for each in names)}."
