"""Exports a session to a file: HTML or Markdown for reading, JSON for `codeloop import`."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec

from codeloop.client.export.html import export_html
from codeloop.client.export.markdown import export_markdown
from codeloop.kit.paths import expand_user_path
from codeloop.schema.api.session_inputs import MessageWithParts
from codeloop.schema.api.session_requests import SESSION_GET, SessionId
from codeloop.schema.errors import UsageProblem
from codeloop.schema.message import Session
from codeloop.schema.wire import encode_json
from codeloop.tui.dialogs.parts.confirm import Confirm
from codeloop.tui.dialogs.parts.dialog import DialogContext
from codeloop.tui.dialogs.parts.pick import Pick, PickSource
from codeloop.tui.dialogs.parts.session_messages import read_messages
from codeloop.tui.dialogs.parts.text_input import TextInput
from codeloop.tui.dialogs.picker import Picker

EXPORT_FORMATS = (
    ("html", "HTML", "one page for a browser, without scripts"),
    ("md", "Markdown", "for an issue or a wiki, with calls folded"),
    ("json", "JSON", "everything, for codeloop import"),
)
"""The file ending, the name and the description of each format."""


async def export_session(context: DialogContext, session_id: str, folder: Path) -> Path | None:
    """Ask for a format and a file name, and write the file; return its path; None: cancelled.
    Raises CodeloopError.
    """

    async def list_formats() -> Sequence[Pick[str]]:
        return [Pick(*row) for row in EXPORT_FORMATS]

    session = await context.client.call(SESSION_GET, SessionId(session_id=session_id))
    ending = await context.ask(
        Picker(PickSource(title="Export as", load=list_formats), context.get_styles)
    )
    if ending is None:
        return None
    about = "The file to write; a relative path begins in the project."
    name = await context.ask(
        TextInput("Export to", context.get_styles, f"{session.slug}.{ending}", about=about)
    )
    if not name or not name.strip():
        return None
    file = folder / expand_user_path(name.strip())
    if file.exists():
        ask = Confirm(
            "Overwrite the file?", f"{file} exists already.", "overwrite", context.get_styles
        )
        if not await context.ask(ask):
            return None
    messages = await read_messages(context.client, session_id)
    # In threads: a long session takes seconds, in which the screen must be drawn.
    data = await asyncio.to_thread(_encode_session, session, messages, ending)
    try:
        await asyncio.to_thread(file.write_bytes, data)
    except OSError as error:
        raise UsageProblem(f"{file} can't be written: {error.strerror}.") from error
    return file


def _encode_session(session: Session, messages: Sequence[MessageWithParts], ending: str) -> bytes:
    if ending == "json":
        return msgspec.json.format(encode_json({"info": session, "messages": messages}), indent=2)
    # A file name or an output may hold bytes that are not UTF-8, which Python keeps as surrogates.
    return (export_html if ending == "html" else export_markdown)(session, messages).encode(
        "utf-8", "backslashreplace"
    )
