"""A finished call as lines for a person."""

from typing import Any

import msgspec
import pytest

from codeloop.cli.output.tool_call import format_call
from codeloop.schema.part import ToolPart, ToolStateError, ToolTime
from codeloop.schema.wire import JSON, replace


def finished(tool: str, **metadata: Any) -> ToolPart:
    """Return a call that took a minute, the wait for its permission included."""
    state = {
        "status": "completed",
        "input": {"command": "ls"},
        "output": "",
        "title": "ls",
        "metadata": metadata,
    }
    state["time"] = {"start": 1_000, "end": 61_000}
    part = {
        "id": "prt_1",
        "sessionID": "ses_1",
        "messageID": "msg_1",
        "callID": "c",
        "tool": tool,
        "state": state,
    }
    return msgspec.convert(part | {"type": "tool"}, ToolPart)


@pytest.mark.parametrize(
    ("part", "took"),
    [
        (finished("bash", duration=1_500), "1.5 s"),
        (finished("bash"), "1 min 0 s"),
        (finished("bash", duration="long"), "1 min 0 s"),
        (finished("read"), "1 min 0 s"),
    ],
    ids=["a command's own time", "an older one", "an imported one", "another tool"],
)
def test_the_time_of_a_command_is_its_own(part: ToolPart, took: str) -> None:
    assert format_call(part, colour=False)[0].endswith(took)


@pytest.mark.parametrize(
    ("metadata", "rows"),
    [
        ({"rejected": True}, []),
        ({"denied": True, "said": "use pip"}, ["  “use pip”"]),
        ({"declined": True}, []),
    ],
)
def test_words_for_the_model_are_not_shown_to_the_user_who_said_no(
    metadata: JSON, rows: list[str]
) -> None:
    state = ToolStateError(
        input={"filePath": "a.py"},
        error="The user rejected this edit call and said: use pip",
        time=ToolTime(start=1, end=2),
        metadata=metadata,
    )
    part = replace(finished("write"), state=state)
    assert format_call(part, colour=False) == ["■ write  a.py  you said no", *rows]
