"""A turn on the screen: it thinks, writes, waits, is tried again, fails, is compacted,
is taken back; every call.
"""

import base64
import time
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from codeloop.schema.errors import (
    APIError,
    APIErrorData,
    ContextOverflowError,
    ErrorText,
    MessageAbortedError,
    OverflowData,
    ProviderAuthData,
    ProviderAuthError,
)
from codeloop.schema.event import PartInfo, PartUpdated, SessionCreated, SessionInfo
from codeloop.schema.live_events import Retry, SessionState, StatusChanged
from codeloop.schema.message import Revert
from codeloop.schema.part import Part, ToolPart
from codeloop.schema.wire import replace
from codeloop.tui.commands import COMMANDS_BY_ID
from codeloop.tui.state.conversation_items import PromptItem, ReasoningItem, TextItem, ToolItem
from codeloop.tui.widgets.prompt.prompt_entry import PromptEntry
from tests.tui.gallery import CHILD, DIRECTORY, ITEMS, TASK, TEST_RUN
from tests.tui.parts import answer, failed, file, running, text, thought
from tests.tui.screens.album import SIZES, Album, told
from tests.tui.stored.client import PLACE, StoredClient
from tests.tui.stored.play import NOW, Stored, stored
from tests.tui.stored.stored_messages import Talk

ASKED = "Why does the test of the discount fail? Mend what is wrong, and run it."
GROWING = """The discount is taken from the **price**, not from the sum:

- `total` multiplies first
- then it takes the discount off

```python
def total(cart, discount=0):
    return sum(item.price * item.count for item in cart.items) * (1 -"""
CHILD_ID = "ses_00000000000000000000000009"
SIZE = (640).to_bytes(4) + (480).to_bytes(4)
PICTURE = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + SIZE + b"\x08\x02" + b"\0" * 1200


def busy(client: StoredClient) -> None:
    """Let a turn run when the session is opened, which asks nothing."""
    client.answers |= {
        "session.status": {client.main: {"type": "busy"}},
        "permission.list": [],
        "question.list": [],
    }


async def waiting(it: Stored) -> None:
    """Let a prompt wait for the next step, one for the end of the turn, and one be written,
    with chips.
    """
    prompt = it.ui.tab.prompt
    steered = it.client.messages()[0]
    queued = replace(steered, parts=[text("Leave the rounding as it is.")])
    it.client.answers["session.queued"] = msgspec.to_builtins([queued])
    await prompt.queue.reload()
    prompt.queue.add(
        PromptEntry(
            "Then write the release notes, in the style of the last ones, and say what is left."
        )
    )
    prompt.set_entry(PromptEntry("Here is the log: "))
    prompt.insert("\n".join(f"line {number} of a log" for number in range(120)))


@pytest.mark.slow
async def test_a_turn_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = told()
    busy(client)
    talk = Talk(client)
    talk.prompt(
        text(ASKED),
        file("receipt.png", url="data:image/png;base64," + base64.b64encode(PICTURE).decode()),
    )
    talk.answer(
        thought("I look at the test first, then at the code.", seconds=None).part, is_over=False
    )
    talk.keep()
    async with stored(tmp_path, size=SIZES[0], client=client) as it:
        assert it.ui.tab.view is not None
        begun = it.ui.tab.view.status_changed_at
        clock = SimpleNamespace(monotonic=lambda: begun, time=time.time)
        monkeypatch.setattr("codeloop.tui.widgets.status_bar.time", clock)
        album = Album(it)
        await album.take("thinking", "Thinking")
        test = running(
            "bash", {"command": "pytest -q tests/test_cart.py"}, {"output": TEST_RUN}, seconds=4
        ).part
        thoughts = thought("I look at the test first, then at the code.").part
        step = talk.answer(thoughts, test, is_over=False)
        it.message(step, step.parts)
        it.is_busy(busy=True)
        await album.take("running", "1 failed")
        talk.messages.pop()
        step = talk.answer(thoughts, answer(GROWING).part, is_over=False)
        it.message(step, [])
        for part in step.parts:
            it.say(PartUpdated(properties=PartInfo(session_id=client.main, part=part, time=0)))
        await waiting(it)
        await album.take("waiting", "after this turn", "return sum")
        it.ui.tab.prompt.clear()
        await a_subagent_works(it, talk)
        await album.take("working", "round(")
        retry = Retry(attempt=2, message="Overloaded (529)", next=int(NOW * 1000) + 12_000)
        it.say(StatusChanged(properties=SessionState(session_id=client.main, status=retry)))
        await album.take("retry", "retry 2 in 12 s")
        it.ui.choices.connection_problem = "http://127.0.0.1:4096 can't be reached; trying again"
        await album.take("lost", "can't be reached")
        monkeypatch.setattr("codeloop.tui.keys.repeated_key.CONFIRMATION_SECONDS", 600.0)
        await it.pilot.press("escape")
        await album.take("stopping", "again to stop")
    assert not album.wrong, "\n".join(album.wrong)


async def a_subagent_works(it: Stored, talk: Talk) -> None:
    """Let a call start a subagent, which works."""
    child = replace(
        it.client.session(),
        id=CHILD_ID,
        parent_id=it.client.main,
        title="Look for rounding",
        agent="explore",
    )
    it.say(SessionCreated(properties=SessionInfo(session_id=child.id, info=child)))
    talk.messages.pop()
    call = running("task", TASK, {"sessionId": CHILD_ID}, seconds=12).part
    step = talk.answer(call, is_over=False)
    it.message(step, step.parts)
    for part in CHILD.calls:
        own = replace(part, id=f"prt_{part.tool}", session_id=CHILD_ID)
        it.say(PartUpdated(properties=PartInfo(session_id=CHILD_ID, part=own, time=0)))


@pytest.mark.slow
async def test_how_turns_end(tmp_path: Path) -> None:
    client = told()
    talk = Talk(client)
    overloaded = APIError(
        data=APIErrorData(message="Overloaded (529)", is_retryable=True, status_code=529)
    )
    key = ProviderAuthError(
        data=ProviderAuthData(provider_id="anthropic", message="The service refused the key.")
    )
    full = ContextOverflowError(
        data=OverflowData(message="The conversation is longer than the model can take.")
    )
    for words, error in (("Mend it.", overloaded), ("Again.", key), ("Go on.", full)):
        talk.prompt(text(words))
        talk.answer(error=error)
    talk.prompt(text("Run the tests."))
    stopped = failed(
        "bash", {"command": "sleep 99"}, "Interrupted.", {"interrupted": True, "output": "1\n2"}
    ).part
    talk.answer(stopped, error=MessageAbortedError(data=ErrorText(message="Aborted")))
    talk.keep()
    async with stored(tmp_path, size=SIZES[0], client=client) as it:
        album = Album(it)
        await album.take("failed", "stopped")
        summary = talk.answer(
            text("## Done\n\nThe cart's total was mended; `cart.py` multiplies each price.")
        )
        it.message(replace(summary, info=replace(summary.info, summary=True)))
        await it.sees("conversation compacted")
        assert it.ui.tab.view is not None
        it.ui.tab.view.toggle(summary.info.id, summary.info.id)
        it.ui.tab.sync()
        await album.take("compacted", "multiplies each price")
        diff = "Index: cart.py\n===\n--- cart.py\n+++ cart.py\n@@ -1,1 +1,1 @@\n-a\n+b\n"
        it.session(revert=Revert(message_id=talk.messages[4].info.id, diff=diff))
        await album.take("undone", "Undone from here on")
    assert not album.wrong, "\n".join(album.wrong)


def every_call(client: StoredClient) -> list[Part]:
    """Let the session hold all that the gallery shows, but for what somebody is asked;
    return what is open there.
    """
    talk, opened = Talk(client), list[Part]()
    for item in ITEMS.values():
        match item:
            case PromptItem(is_undone=False):
                talk.prompt(*item.parts)
            case (
                TextItem(part=part)
                | ReasoningItem(part=part)
                | ToolItem(part=part, is_asking=False)
            ):
                said = talk.answer(part, finish="tool-calls")
                opened += said.parts if getattr(item, "is_open", False) else []
            case _:
                pass
    talk.keep()
    name = f"session.messages {client.main}"
    there = msgspec.json.encode(client.answers[name]).replace(DIRECTORY.encode(), PLACE.encode())
    client.answers[name] = msgspec.json.decode(there)
    return opened


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
async def test_every_kind_of_call(tmp_path: Path, size: tuple[int, int]) -> None:
    client = told()
    opened = every_call(client)
    async with stored(tmp_path, size=size, client=client) as it:
        album, tab = Album(it), it.ui.tab
        assert tab.view is not None
        for part in opened:
            tab.view.toggle(part.id, part.message_id)
        tab.sync()
        it.ui.run_command(COMMANDS_BY_ID["messages_first"])
        await it.sees("Fix the failing test")
        for page in range(1, 40):
            await album.take(f"calls-{page}", sizes=(size,))
            if tab.transcript.scroll_y >= tab.transcript.max_scroll_y:
                break
            it.ui.run_command(COMMANDS_BY_ID["messages_page_down"])
            await it.settle()
    assert not album.wrong, "\n".join(album.wrong)


def test_every_call_of_the_gallery_is_stored() -> None:
    client = told()
    every_call(client)
    tools = {
        part.tool
        for message in client.messages()
        for part in message.parts
        if isinstance(part, ToolPart)
    }
    shown = {item.part.tool for item in ITEMS.values() if isinstance(item, ToolItem)}
    assert tools == shown
