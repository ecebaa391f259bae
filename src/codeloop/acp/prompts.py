"""Turns an editor's prompt into our parts, or as the command that it names."""

from base64 import b64encode
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from codeloop.acp.connection import INVALID_PARAMS, RpcError
from codeloop.acp.params import EditorAudio, EditorImage, EditorLink, EditorResource, EditorText, PromptBlock
from codeloop.schema.api.session_inputs import FilePartInput, TextPartInput

_TEXT = "text/plain"


def text_of(blocks: Sequence[PromptBlock]) -> str:
    """Return the typed text; a link stands in it by its name, as the editor shows it."""
    return "".join(
        block.text if isinstance(block, EditorText) else f"@{block.name}" if isinstance(block, EditorLink) else ""
        for block in blocks
    )


def files_of(blocks: Sequence[PromptBlock]) -> list[FilePartInput]:
    """Return the attachments. Raises RpcError for what no model of ours takes."""
    found: list[FilePartInput] = []
    for block in blocks:
        match block:
            case EditorText():
                pass
            case EditorImage():
                found.append(FilePartInput(mime=block.mime_type, url=_data(block.mime_type, block.data)))
            case EditorLink():
                if block.uri.startswith("file://"):
                    found.append(FilePartInput(mime=block.mime_type or _TEXT, url=block.uri, filename=_name(block.uri)))
            case EditorResource(resource=resource):
                mime = resource.mime_type or _TEXT
                content = resource.blob
                if content is None:
                    content, mime = b64encode((resource.text or "").encode()).decode(), _TEXT
                found.append(FilePartInput(mime=mime, url=_data(mime, content), filename=_name(resource.uri)))
            case EditorAudio():
                raise RpcError(INVALID_PARAMS, "Audio can't be sent: `promptCapabilities` says so.")
    return found


def parts_of(blocks: Sequence[PromptBlock]) -> list[TextPartInput | FilePartInput]:
    """Return the parts of a prompt. Raises RpcError for an empty one."""
    text, files = text_of(blocks), files_of(blocks)
    if not text.strip() and not files:
        raise RpcError(INVALID_PARAMS, "The prompt is empty.")
    return [TextPartInput(text=text), *files]


def _data(mime: str, content: str) -> str:
    return f"data:{mime};base64,{content}"


def _name(uri: str) -> str:
    return unquote(urlsplit(uri).path).rpartition("/")[2] or uri
