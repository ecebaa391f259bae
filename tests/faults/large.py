"""A session of many messages, put into a desk's database directly, as years of work would have left it."""

from pathlib import Path

from codeloop.schema.event import (
    MessageInfo,
    MessageUpdated,
    PartInfo,
    PartUpdated,
    SessionCreated,
    SessionInfo,
    StoredEvent,
)
from codeloop.schema.ids import new_id
from codeloop.schema.message import AssistantTime, CacheTokens, SessionModel, Tokens, UserTime
from codeloop.schema.part import StepFinishPart, StepStartPart, ToolCompleted, ToolPart, ToolTime
from codeloop.schema.wire import replace
from codeloop.store.store import Store
from tests.store.states import assistant, session, text, user

BATCH = 500


def fill(database: Path, directory: Path, messages: int) -> str:
    """Store a session of `messages` messages: prompts, and answers of which every one made a call; gives its id."""
    store = Store(database)
    one = session(title="Long")
    one = replace(one, directory=str(directory), model=SessionModel(id="m", provider_id="local"), agent="build")
    events: list[StoredEvent] = [SessionCreated(properties=SessionInfo(session_id=one.id, info=one))]
    for number in range(messages // 2):
        events += turn(one.id, number)
        if len(events) > BATCH:
            store.append(*events)
            events = []
    store.append(*events)
    store.close()
    return one.id


def turn(session_id: str, number: int) -> list[StoredEvent]:
    """Give a prompt and its answer."""
    at = 1_000 + number * 10
    asked = replace(user(session_id), time=UserTime(created=at))
    tokens = Tokens(input=100, output=20, cache=CacheTokens())
    time = AssistantTime(created=at + 1, completed=at + 5)
    said = replace(assistant(session_id), parent_id=asked.id, time=time, finish="stop", tokens=tokens)
    ids = {"session_id": session_id, "message_id": said.id}
    state = ToolCompleted(
        input={"command": f"echo {number}"},
        output=f"{number}\n" * 20,
        title="echo",
        metadata={},
        time=ToolTime(start=at + 2, end=at + 3),
    )
    made = ToolPart(id=new_id("prt"), call_id=f"call_{number}", tool="bash", state=state, **ids)
    parts = [
        text(asked, f"prompt {number}"),
        StepStartPart(id=new_id("prt"), **ids),
        made,
        text(said, f"answer {number} " * 10),
        StepFinishPart(id=new_id("prt"), reason="stop", cost=0, tokens=tokens, **ids),
    ]
    messages = [MessageUpdated(properties=MessageInfo(session_id=session_id, info=info)) for info in (asked, said)]
    return [*messages, *(PartUpdated(properties=PartInfo(session_id=session_id, part=p, time=at)) for p in parts)]
