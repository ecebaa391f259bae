"""The latest messages of a session as a few rows, for a preview. Pure."""

from collections.abc import Sequence

from rich.segment import Segment

from codeloop.kit.terminal_text import inert_answer
from codeloop.schema.api.session_inputs import MessageWithParts
from codeloop.schema.message import UserMessage
from codeloop.schema.part import TextPart, ToolPart
from codeloop.tui.dialogs.parts.rows import wrap
from codeloop.tui.render.canvas import Row
from codeloop.tui.themes.styles import Styles

_MOST = 2_000


def said(message: MessageWithParts) -> str:
    """Return the text that a person or the model wrote in a message."""
    parts = (part for part in message.parts if isinstance(part, TextPart) and not part.synthetic and not part.ignored)
    return "\n".join(part.text for part in parts).strip()


def message_rows(messages: Sequence[MessageWithParts], styles: Styles, width: int) -> list[Row]:
    """Return messages as rows: prompts with a bar, answers, and how many calls were made between."""
    rows: list[Row] = []
    for message in messages:
        is_prompt = isinstance(message.info, UserMessage)
        bar = Segment("▎ " if is_prompt else "  ", styles.of("primary"))
        text = inert_answer(said(message)[-_MOST:])
        calls = sum(isinstance(part, ToolPart) for part in message.parts)
        lines = wrap(text, width - 2) if text else []
        rows += [[bar, Segment(line, styles.of("text", "bold" if is_prompt else ""))] for line in lines]
        if calls:
            tools = f"  {calls} tool call{'' if calls == 1 else 's'}"
            rows.append([Segment(tools, styles.of("text_muted"))])
        if lines or calls:
            rows.append([])
    return rows[:-1]
