"""Output while a turn runs: the last line of a terminal says what is waited for;
a slow reader stops nothing.
"""

import asyncio
import io
import os

from codeloop.cli.output.progress_line import ProgressLine
from codeloop.cli.output.streams import OutputQueue, OutputStream
from codeloop.schema.event import make_part_updated
from codeloop.schema.part import ToolPart, ToolStart, ToolStateRunning


def test_progress_of_a_servers_tool_is_on_it() -> None:
    activity = ProgressLine(OutputStream(io.StringIO(), OutputQueue()))
    state = ToolStateRunning(
        input={"upTo": 30},
        time=ToolStart(start=1),
        title="page 5 of 30",
        metadata={"progress": 5, "total": 30},
    )
    activity.handle_event(
        make_part_updated(
            ToolPart(
                id="prt_1",
                session_id="ses_1",
                message_id="msg_1",
                call_id="c",
                tool="slow_count",
                state=state,
            )
        )
    )
    assert activity.format_line(80).startswith("… slow_count")
    assert activity.format_line(80).endswith("page 5 of 30")


async def test_who_waits_for_a_reader_goes_on_when_it_is_given_up() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading), os.fdopen(writing, "w") as stream:
        queue = OutputQueue(asyncio.get_running_loop())
        output = OutputStream(stream, queue)
        output.write("x" * 1_000_000)
        draining = asyncio.create_task(output.drain())
        await asyncio.sleep(0)
        assert queue.is_waiting
        queue.abandon()
        await asyncio.wait_for(draining, 30)
        assert output.has_lost
