"""Exports a session as one HTML page without scripts and external resources,
for light and dark screens.
"""

from collections.abc import Iterator, Sequence
from html import escape

import msgspec

from codeloop.client.export.markdown import format_call_result, summarize_call
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
from codeloop.schema.wire import encode_json

_STYLE = """
:root { color-scheme: light dark; --text: #23262b; --muted: #6b7280; --ground: #fdfdfb; --panel: #f1f1ed;
  --line: #3b7dd8; --added: #22863a; --removed: #b31d28; }
@media (prefers-color-scheme: dark) { :root { --text: #d8dce4; --muted: #8b93a1; --ground: #101216; --panel: #1a1d24;
  --line: #6ea8f0; --added: #6fc07a; --removed: #ef7b77; } }
body { margin: 0 auto; max-width: 52rem; padding: 2rem 1rem; background: var(--ground); color: var(--text);
  font: 16px/1.55 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .2rem; } .about, summary, .who { color: var(--muted); font-size: .9rem; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; margin: .6rem 0; }
.prompt { border-left: 3px solid var(--line); padding: .1rem .9rem; background: var(--panel); margin: 1.6rem 0 1rem; }
pre { background: var(--panel); padding: .7rem .9rem; overflow-x: auto; font: 13px/1.45 ui-monospace, monospace; }
pre code { font: inherit; } details { margin: .4rem 0; } summary { cursor: pointer; } .error { color: var(--removed); }
.added { color: var(--added); } .removed { color: var(--removed); }
"""
# The page shows texts of models and files. Should one escape the escaping,
# the browser still runs and loads nothing.
_SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def export_html(session: Session, messages: Sequence[MessageWithParts]) -> str:
    """Return the page of a session."""
    title = escape(one_line(session.title, 200))
    body = "\n".join(piece for message in messages for piece in _render_message(message))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_SECURITY_POLICY}">\n'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>\n'
        f'<body><h1>{title}</h1><p class="about">{format_time(session.time.created)} · {escape(session.id)}</p>\n'
        f"{body}\n</body></html>\n"
    )


def _render_message(message: MessageWithParts) -> Iterator[str]:
    pieces = [piece for part in message.parts for piece in _render_part(part)]
    if isinstance(message.info, AssistantMessage) and message.info.error is not None:
        pieces.append(
            f'<p class="error">{escape(escape_controls(get_error_message(message.info.error)))}</p>'
        )
    if pieces and isinstance(message.info, UserMessage):
        yield f'<section class="prompt">{"".join(pieces)}</section>'
    elif pieces:
        yield f"<section>{''.join(pieces)}</section>"


def _render_part(part: Part) -> Iterator[str]:
    match part:
        case TextPart(text=text) if not part.synthetic and text.strip():
            yield _render_text(escape_answer_controls(text.strip()))
        case ReasoningPart(text=text) if text.strip():
            yield _render_folded(
                "Thinking",
                f'<div class="text">{escape(escape_answer_controls(text.strip()))}</div>',
            )
        case FilePart():
            yield f'<p class="who">Attached: {escape(one_line(part.filename or part.mime, 200))}</p>'
        case ToolPart():
            yield _render_folded(
                f"<b>{escape(one_line(part.tool, 80))}</b> {escape(summarize_call(part))}",
                _render_call(part),
            )
        case _:
            pass


def _render_call(part: ToolPart) -> str:
    """Render the arguments of a call, its diff, and its result."""
    arguments = msgspec.json.format(encode_json(part.state.input), indent=2).decode()
    block = f"<pre>{escape(escape_controls(arguments))}</pre>"
    metadata = (
        part.state.metadata if isinstance(part.state, ToolStateCompleted | ToolStateError) else None
    )
    diff = (metadata or {}).get("diff")
    if isinstance(diff, str) and diff:
        block += f"<pre>{''.join(map(_render_diff_line, escape_controls(diff).splitlines()))}</pre>"
    result = format_call_result(part)
    return block + (f"<pre>{escape(result)}</pre>" if result else "")


def _render_diff_line(line: str) -> str:
    name = {"+": "added", "-": "removed"}.get(line[:1], "")
    return f'<span class="{name}">{escape(line)}</span>\n' if name else f"{escape(line)}\n"


def _render_text(text: str) -> str:
    """Render an answer: fenced code as code blocks, the rest as plain text,
    without other Markdown.
    """
    pieces: list[str] = []
    block: list[str] = []
    fence = ""
    # None marks the end, where the last block is written, even if its fence was never closed.
    for line in [*text.split("\n"), None]:
        mark = (line or "").lstrip()[:3]
        is_end = line is None or (mark == fence if fence else mark in {"```", "~~~"})
        if not is_end and line is not None:
            block.append(line)
            continue
        body = escape("\n".join(block).strip("\n"))
        if body:
            pieces.append(
                f"<pre><code>{body}</code></pre>" if fence else f'<div class="text">{body}</div>'
            )
        block, fence = [], "" if fence else mark
    return "".join(pieces)


def _render_folded(title: str, body: str) -> str:
    return f"<details><summary>{title}</summary>{body}</details>"
