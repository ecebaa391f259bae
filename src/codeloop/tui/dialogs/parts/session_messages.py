"""Reads the messages of a session for dialogs, and draws them as the rows of a preview."""

import asyncio
from collections.abc import Sequence

from rich.segment import Segment

from codeloop.client.client import Client
from codeloop.kit.text.terminal_text import escape_answer_controls
from codeloop.schema.api.session_inputs import MessageWithParts
from codeloop.schema.api.session_messages import SESSION_MESSAGES, ListMessages, make_cursor_of_page
from codeloop.schema.message import UserMessage
from codeloop.schema.part import TextPart, ToolPart
from codeloop.tui.render.canvas import Row
from codeloop.tui.render.cells import wrap_text
from codeloop.tui.render.markdown.markdown_document import MarkdownDocument
from codeloop.tui.render.markdown.prose_styles import ProseStyles
from codeloop.tui.themes.styles import Styles

_MAX_PREVIEW = 2_000
"""Characters of a message that a preview shows; of a longer one, the end."""
_PAGE_SIZE = 500
"""Messages of one request."""


def join_text(message: MessageWithParts) -> str:
    """Return the text that the user or the model wrote in a message."""
    parts = (part for part in message.parts if isinstance(part, TextPart) and not part.synthetic)
    return "\n".join(part.text for part in parts).strip()


def draw_messages(messages: Sequence[MessageWithParts], styles: Styles, width: int) -> list[Row]:
    """Return messages as rows: prompts with a bar, answers,
    and the number of tool calls between them.
    """
    rows: list[Row] = []
    prose, bar = ProseStyles(styles), Segment("▎ ", styles.of("primary"))
    calls = 0
    for message in messages:
        is_prompt = isinstance(message.info, UserMessage)
        text = escape_answer_controls(join_text(message)[-_MAX_PREVIEW:])
        if text:
            rows += [*_count_row(calls, styles), *([[]] if rows or calls else [])]
            if is_prompt:
                rows += [
                    [bar, Segment(line, styles.of("text", "bold"))]
                    for line in wrap_text(text, width - 2)
                ]
            else:
                rows += MarkdownDocument(prose, max(width - 2, 2), Segment("  ")).render_complete(
                    text
                )
            calls = 0
        calls += sum(isinstance(part, ToolPart) for part in message.parts)
    return rows + _count_row(calls, styles)


def _count_row(count: int, styles: Styles) -> list[Row]:
    """Return a row with the number of tool calls, or no row for 0."""
    words = f"  {count} tool call{'' if count == 1 else 's'}"
    return [[Segment(words, styles.of("text_muted"))]] if count else []


async def read_messages(client: Client, session_id: str) -> list[MessageWithParts]:
    """Return all messages of a session, the oldest first;
    read in pages, so that the screen is drawn in between.
    """
    messages: list[MessageWithParts] = []
    cursor: str | None = None
    while True:
        page = await client.call(
            SESSION_MESSAGES, ListMessages(session_id=session_id, limit=_PAGE_SIZE, before=cursor)
        )
        messages[:0] = page
        if len(page) < _PAGE_SIZE:
            return messages
        cursor = make_cursor_of_page(page[0].info)
        # In this process a call may end without a pause, in which the screen would be drawn.
        await asyncio.sleep(0)
