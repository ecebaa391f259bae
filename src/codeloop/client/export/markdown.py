"""Exports a session as Markdown: texts as they are, thinking and calls folded.
The HTML export uses its helpers.
"""

import json
from collections.abc import Iterator, Sequence

from codeloop.client.formatting import format_time
from codeloop.kit.text.terminal_text import escape_answer_controls, escape_controls, one_line
from codeloop.schema.api.session_inputs import MessageWithParts
from codeloop.schema.errors import get_error_message
from codeloop.schema.message import AssistantMessage, Session, UserMessage
from codeloop.schema.part import (
    FilePart,
    Part,
    ReasoningPart,
    TextPart,
    ToolPart,
    ToolStateCompleted,
    ToolStateError,
)


def export_markdown(session: Session, messages: Sequence[MessageWithParts]) -> str:
    """Return the Markdown text of a session."""
    pieces = [
        f"# {_escape_markdown(session.title)}",
        f"{format_time(session.time.created)} · `{session.id}`",
    ]
    speaker = ""
    for message in messages:
        answer = "\n\n".join(piece for part in message.parts for piece in _render_part(part))
        if isinstance(message.info, AssistantMessage) and message.info.error is not None:
            answer = f"{answer}\n\n> **Error:** {_escape_markdown(get_error_message(message.info.error))}".strip()
        if not answer:
            continue
        author = "You" if isinstance(message.info, UserMessage) else message.info.model_id
        # Messages of the same author that follow each other get one heading.
        if author != speaker:
            pieces.append(f"## {_escape_markdown(author)}")
            speaker = author
        pieces.append(answer)
    return "\n\n".join(pieces) + "\n"


def summarize_call(part: ToolPart) -> str:
    """Return one line about a call: its title, or its arguments."""
    title = part.state.title if isinstance(part.state, ToolStateCompleted) else ""
    return one_line(title or json.dumps(part.state.input, ensure_ascii=False), 160)


def format_call_result(part: ToolPart) -> str:
    """Return the result of a call as the user saw it; "": the call has not ended."""
    match part.state:
        # The notes of a command, such as how it ended, are not part of its output.
        case ToolStateCompleted(for_user=output, metadata=metadata) if part.tool in {
            "bash",
            "bash_output",
        }:
            return escape_controls("\n".join([output, *map(str, metadata.get("notes", ()))]))
        case ToolStateCompleted(for_user=output):
            return escape_controls(output)
        case ToolStateError(error=error):
            return escape_controls(error)
        case _:
            return ""


def make_code_block(text: str, language: str = "") -> str:
    """Return a text as a code block whose fence does not occur in it."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def _render_part(part: Part) -> Iterator[str]:
    match part:
        case TextPart(text=text) if not part.synthetic and text.strip():
            yield escape_answer_controls(text.strip())
        case ReasoningPart(text=text) if text.strip():
            yield _render_folded("Thinking", escape_answer_controls(text.strip()))
        case FilePart():
            yield f"*Attached: {_escape_markdown(part.filename or part.mime)}*"
        case ToolPart():
            code_block = make_code_block(
                escape_controls(json.dumps(part.state.input, indent=2, ensure_ascii=False)), "json"
            )
            result = format_call_result(part)
            block = f"{code_block}\n\n{make_code_block(result)}" if result else code_block
            yield _render_folded(
                f"<b>{_escape_html(part.tool)}</b> {_escape_html(summarize_call(part))}", block
            )
        case _:
            pass


def _render_folded(title: str, text: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"


def _escape_markdown(text: str) -> str:
    return one_line(text, 200).replace("*", "\\*").replace("_", "\\_").replace("<", "&lt;")


def _escape_html(text: str) -> str:
    return one_line(text, 200).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
