"""The results of the calls of `codeloop mcp serve`: reports as text and as structured values,
and errors.
"""

from typing import TYPE_CHECKING

import msgspec

from codeloop.client.formatting import format_cost
from codeloop.client.mcp_server.tools import Report
from codeloop.schema.wire import JSON

if TYPE_CHECKING:
    from mcp_types import CallToolResult


def make_result(report: Report) -> "CallToolResult":
    """Return the result of a call about one session."""
    from mcp_types import CallToolResult, TextContent

    text = TextContent(type="text", text=_format_report(report))
    return CallToolResult(
        content=[text],
        structured_content=_structure_report(report),
        is_error=report.status == "failed",
    )


def join_reports(reports: list[Report]) -> "CallToolResult":
    """Return the result of a call about all sessions."""
    from mcp_types import CallToolResult, TextContent

    values = [_structure_report(each) for each in reports]
    text = (
        "\n\n".join(map(_format_report, reports))
        or "No session was prompted through this server yet."
    )
    return CallToolResult(
        content=[TextContent(type="text", text=text)], structured_content={"sessions": values}
    )


def _structure_report(report: Report) -> JSON:
    """Return a report as a structured result: session and status always,
    other fields if they are not empty.
    """
    return {"session_id": report.session_id, "status": report.status, **msgspec.to_builtins(report)}


def _format_report(report: Report) -> str:
    """Return a report as text, for clients that do not read structured results."""
    totals = f"{report.steps} step{'' if report.steps == 1 else 's'}, {format_cost(report.cost)}"
    lines = [f"[session_id {report.session_id}: {report.status}; {totals}]"]
    lines += [f"It asks: {report.asks}"] if report.asks else []
    lines += [report.message] if report.message else []
    lines += [f"Changed: {', '.join(report.changed)}"] if report.changed else []
    return "\n".join([*([f"{report.answer}\n"] if report.answer else []), *lines])


def make_error_result(text: str) -> "CallToolResult":
    """Return the result of a call that failed; the calling model reads the text."""
    from mcp_types import CallToolResult, TextContent

    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)
