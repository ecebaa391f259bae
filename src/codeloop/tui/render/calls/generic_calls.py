"""Renders calls of tools without a renderer of their own,
such as those of MCP servers: their arguments and output.
"""

from codeloop.kit.text.readable_json import format_arguments, format_json
from codeloop.kit.text.terminal_text import one_line
from codeloop.tui.render.calls.tool_call import CallBody, ToolCall


def render_generic(call: ToolCall) -> CallBody:
    """Render a call of any tool: its arguments on one line, and its output."""
    return CallBody(
        subject=format_arguments(call.input),
        notes=[*_describe_progress(call), *call.list_duration_notes()],
        rows=call.draw_output(),
    )


def render_data_answer(call: ToolCall) -> CallBody:
    """Render an answer that was requested as structured data: its JSON."""
    return CallBody(
        notes=call.list_duration_notes(),
        rows=call.fold_rows(call.draw_text(format_json(call.input)), 30) if call.input else [],
    )


def _describe_progress(call: ToolCall) -> list[str]:
    """Return the progress that an MCP server has reported, as a note."""
    progress = call.title if call.status == "running" and "progress" in call.metadata else ""
    return [one_line(progress, 60)] if progress else []
