"""Which tool is rendered how."""

from collections.abc import Callable

from rich.segment import Segment

from codeloop.tui.render.calls.call import MARGIN, CallBody, ToolCall, failure, heading
from codeloop.tui.render.calls.generic import generic
from codeloop.tui.render.canvas import Canvas, Row
from codeloop.tui.render.layout import framed
from codeloop.tui.state.items import ToolItem

_TOOLS: dict[str, Callable[[ToolCall], CallBody]] = {}


def call_rows(item: ToolItem, canvas: Canvas, now: int) -> list[Row]:
    """Return a call as rows; `now`: ms since the epoch, for how long it has been running."""
    call = ToolCall(item, canvas, now)
    body = _TOOLS.get(call.tool, generic)(call)
    first = heading(call, body)
    if not canvas.details and not call.is_open:
        return [first]
    return [first, *framed([*body.rows, *failure(call)], Segment(" " * MARGIN))]
