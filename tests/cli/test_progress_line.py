"""The last line of a terminal says what is waited for."""

import io

from codeloop.cli.output.progress_line import ProgressLine
from codeloop.cli.output.streams import OutputQueue, OutputStream
from codeloop.schema.event import make_part_updated
from codeloop.schema.part import ToolPart, ToolStart, ToolStateRunning


def test_progress_of_a_servers_tool_is_on_it() -> None:
    activity = ProgressLine(OutputStream(io.StringIO(), OutputQueue()))
    state = ToolStateRunning(
        input={"upTo": 30}, time=ToolStart(start=1), title="page 5 of 30", metadata={"progress": 5, "total": 30}
    )
    activity.handle_event(
        make_part_updated(
            ToolPart(id="prt_1", session_id="ses_1", message_id="msg_1", call_id="c", tool="slow_count", state=state)
        )
    )
    assert activity.format_line(80).startswith("… slow_count")
    assert activity.format_line(80).endswith("page 5 of 30")
