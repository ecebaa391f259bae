"""Pieces of calls that a service streams."""

from codeloop.model.chat import CallDelta, CallReady
from codeloop.model.wire.tool_calls import ToolCallAssembler
from codeloop.schema.limits import TOOL_ARGUMENTS


def test_of_arguments_that_are_too_long_no_more_is_kept_and_the_call_is_ready_all_the_same() -> (
    None
):
    calls = ToolCallAssembler()
    events = calls.add_piece(0, "a", "write", '{"content": "')
    piece = "x" * (TOOL_ARGUMENTS.value // 4)
    for _ in range(40):
        events += calls.add_piece(0, "", "", piece)
    shown = sum(len(event.text) for event in events if isinstance(event, CallDelta))
    (ready,) = [
        event for event in calls.finish_calls(complete=False) if isinstance(event, CallReady)
    ]
    assert TOOL_ARGUMENTS.value < len(ready.arguments) == shown <= TOOL_ARGUMENTS.value * 2
