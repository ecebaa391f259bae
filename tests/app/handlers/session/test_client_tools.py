"""Tools that a client offers: the model calls them, the rules judge them,
the client carries them out.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from codeloop.extend import client_tools
from codeloop.kit.limit import Limit
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.permission.gate import Denied
from codeloop.schema.api.client_tools import (
    TOOL_ANSWER,
    TOOL_ASK,
    TOOL_REPORT,
    TOOLS_OFFER,
    TOOLS_WITHDRAW,
    AnswerToolCall,
    AskForToolCall,
    ClientTool,
    OfferTools,
    ReportToolCall,
    ToolsOffered,
    WithdrawTools,
)
from codeloop.schema.api.session_inputs import ABORT
from codeloop.schema.api.session_requests import SESSION_UPDATE, SessionId, UpdateSession
from codeloop.schema.errors import OperationError
from codeloop.schema.event import PartUpdated
from codeloop.schema.live_events import ClientToolChanged
from codeloop.schema.part import ToolPart, ToolStateCompleted, ToolStateRunning
from codeloop.schema.permission import NOBODY_MESSAGE, PermissionRule
from codeloop.schema.resources import ClientToolCall
from tests.support.scripted_project import (
    ScriptedProject,
    both_clients,
    make_answer,
    make_call,
    open_scripted_project,
    read_result,
    wait_until,
)

__all__ = ["both_clients"]
LEASE = "lease-of-a-test"
WEATHER = ClientTool(
    name="weather",
    description="Tell the weather of a town.",
    parameters={"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
)
ASKS_FOR_WEATHER = [make_answer(make_call("weather", town="Oslo")), ScriptedAnswer(text="Done.")]
ASK = {"permission": {"weather": "ask"}}


@pytest.fixture(autouse=True)
def lasting_offers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no offer run out by itself: these clients do not renew theirs."""
    monkeypatch.setattr(client_tools, "CLIENT_TOOLS", Limit("test", 600_000, "ms", "for a test"))


class Heard:
    """What a client that offers tools hears of their calls."""

    def __init__(self, it: ScriptedProject) -> None:
        self._it = it
        self.events: list[ClientToolCall] = []
        self.reports: list[tuple[str | None, object]] = []

    async def follow(self) -> None:
        async for stamped in self._it.client.follow():
            if isinstance(stamped.event, ClientToolChanged):
                self.events.append(stamped.event.properties)
            elif isinstance(stamped.event, PartUpdated) and isinstance(
                stamped.event.properties.part, ToolPart
            ):
                state = stamped.event.properties.part.state
                if isinstance(state, ToolStateRunning) and state.title:
                    self.reports.append((state.title, state.metadata))

    async def called(self) -> ClientToolCall:
        await wait_until(lambda: self.events)
        return self.events[0]

    async def answer(self, **given: Any) -> bool:
        asked = await self.called()
        told = AnswerToolCall(
            session_id=self._it.session_id, lease_id=LEASE, request_id=asked.request_id, **given
        )
        return await self._it.client.call(TOOL_ANSWER, told)


def for_satellite(it: ScriptedProject, asked: ClientToolCall) -> AskForToolCall:
    return AskForToolCall(
        session_id=it.session_id,
        lease_id=LEASE,
        request_id=asked.request_id,
        permission="satellite",
        patterns=["north"],
    )


@asynccontextmanager
async def offering(
    tmp_path: Path, answers: list[ScriptedAnswer], *tools: ClientTool, **settings: Any
) -> AsyncGenerator[tuple[ScriptedProject, Heard]]:
    async with open_scripted_project(tmp_path, answers, **settings) as it:
        heard = Heard(it)
        following = asyncio.create_task(heard.follow())
        await asyncio.sleep(0)
        await offer(it, *(tools or (WEATHER,)))
        try:
            yield it, heard
        finally:
            following.cancel()


async def offer(it: ScriptedProject, *tools: ClientTool) -> ToolsOffered:
    return await it.client.call(
        TOOLS_OFFER, OfferTools(session_id=it.session_id, lease_id=LEASE, tools=list(tools))
    )


async def test_a_call_is_carried_out_by_the_client_and_its_answer_is_the_result(
    tmp_path: Path,
) -> None:
    async with offering(tmp_path, ASKS_FOR_WEATHER) as (it, heard):
        turn = asyncio.create_task(it.prompt())
        asked = await heard.called()
        assert (asked.tool, asked.arguments, asked.state) == ("weather", {"town": "Oslo"}, "called")
        assert (asked.session_id, asked.agent, asked.directory) == (
            it.session_id,
            "build",
            str(it.work),
        )
        waiting = await offer(it, WEATHER)
        assert [each.request_id for each in waiting.calls] == [asked.request_id]
        assert await heard.answer(output="4 degrees", title="Oslo", metadata={"source": "a test"})
        await turn
        spec = next(spec for spec in it.model.requests[0].tools if spec.name == "weather")
        assert spec.description == WEATHER.description
        assert spec.parameters == WEATHER.parameters
        assert it.results() == ["4 degrees"]
        state = it.calls()[0].state
        assert isinstance(state, ToolStateCompleted)
        assert state.metadata == {"source": "a test", "truncated": False}


async def test_an_error_of_the_client_is_what_the_model_reads(tmp_path: Path) -> None:
    async with offering(tmp_path, ASKS_FOR_WEATHER) as (it, heard):
        turn = asyncio.create_task(it.prompt())
        await heard.answer(error="There is no such town.")
        await turn
        assert it.results() == ["There is no such town."]
        with pytest.raises(OperationError, match="waits for an answer"):
            await heard.answer(output="late")


async def test_it_asks_first_as_a_tool_of_a_server_does(tmp_path: Path) -> None:
    async with offering(tmp_path, ASKS_FOR_WEATHER, **ASK) as (it, heard):
        turn = asyncio.create_task(it.prompt())
        question = await it.question()
        assert (question.permission, question.patterns) == ("weather", ["*"])
        assert heard.events == []
        await it.answer(question, "reject", NOBODY_MESSAGE)
        await turn
        assert it.results() == [
            f"{NOBODY_MESSAGE} Find another way or say in your answer what you could not do."
        ]
        assert heard.events == []


async def test_a_rule_denies_it_to_the_session_and_it_is_not_offered(tmp_path: Path) -> None:
    async with offering(tmp_path, ASKS_FOR_WEATHER, permission={"weather": "deny"}) as (it, heard):
        await it.prompt()
        assert "weather" not in {spec.name for spec in it.model.requests[0].tools}
        assert "denied" in it.results()[0].lower()
        assert heard.events == []


async def test_it_takes_the_place_of_a_tool_of_that_name_in_this_session_only(
    tmp_path: Path,
) -> None:
    own = ClientTool(name="read", description="Mine.", parameters={})
    answers = [make_answer(make_call("read", filePath="a")), ScriptedAnswer(text="Done.")]
    async with offering(tmp_path, answers, own) as (it, heard):
        turn = asyncio.create_task(it.prompt())
        await heard.answer(output="from the client")
        await turn
        assert it.results() == ["from the client"]
        assert [spec.description for spec in it.model.requests[0].tools if spec.name == "read"] == [
            "Mine."
        ]
        assert it.project.engine.toolbox.tools_by_name["read"].description != "Mine."


async def test_a_client_that_goes_is_told_to_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with offering(tmp_path, [*ASKS_FOR_WEATHER, ScriptedAnswer(text="Again.")]) as (
        it,
        heard,
    ):
        turn = asyncio.create_task(it.prompt())
        await heard.called()
        monkeypatch.setattr(
            client_tools, "CLIENT_TOOLS", client_tools.CLIENT_TOOLS.__class__("x", 20, "ms", "")
        )
        await offer(it, WEATHER)
        await turn
        assert it.results() == [client_tools.CLIENT_GONE_MESSAGE.format("weather")]
        await it.prompt("and now?")
        assert "weather" not in {spec.name for spec in it.model.requests[-1].tools}
        gone = WithdrawTools(session_id=it.session_id, lease_id=LEASE)
        assert not await it.client.call(TOOLS_WITHDRAW, gone)


async def test_what_is_withdrawn_in_the_middle_of_a_turn_fails_clearly(tmp_path: Path) -> None:
    async with offering(tmp_path, ASKS_FOR_WEATHER, **ASK) as (it, _):
        turn = asyncio.create_task(it.prompt())
        question = await it.question()
        assert await it.client.call(
            TOOLS_WITHDRAW, WithdrawTools(session_id=it.session_id, lease_id=LEASE)
        )
        await it.answer(question, "once")
        await turn
        assert it.results() == [client_tools.CLIENT_GONE_MESSAGE.format("weather")]


async def test_an_abort_tells_the_client_that_the_call_has_ended(tmp_path: Path) -> None:
    async with offering(tmp_path, ASKS_FOR_WEATHER) as (it, heard):
        turn = asyncio.create_task(it.prompt())
        asked = await heard.called()
        await it.client.call(ABORT, SessionId(session_id=it.session_id))
        await turn
        await wait_until(lambda: len(heard.events) == 2)
        assert (heard.events[1].request_id, heard.events[1].state) == (asked.request_id, "ended")
        assert (await offer(it, WEATHER)).calls == []


async def test_a_call_asks_and_shows_its_progress(tmp_path: Path) -> None:
    async with offering(tmp_path, ASKS_FOR_WEATHER, permission={"satellite": "ask"}) as (it, heard):
        turn = asyncio.create_task(it.prompt())
        named: dict[str, Any] = {
            "session_id": it.session_id,
            "lease_id": LEASE,
            "request_id": (await heard.called()).request_id,
        }
        await it.client.call(
            TOOL_REPORT, ReportToolCall(**named, title="Looking", metadata={"done": 1})
        )
        asking = asyncio.create_task(
            it.client.call(
                TOOL_ASK, AskForToolCall(**named, permission="satellite", patterns=["north"])
            )
        )
        question = await it.question()
        assert (question.permission, question.patterns) == ("satellite", ["north"])
        await it.answer(question, "once")
        assert (await asking).allowed
        await wait_until(lambda: heard.reports)
        assert heard.reports == [("Looking", {"done": 1})]
        await heard.answer(output="4 degrees")
        await turn
        assert it.results() == ["4 degrees"]


async def test_a_call_has_its_time_besides_what_a_person_takes(tmp_path: Path) -> None:
    async with offering(tmp_path, ASKS_FOR_WEATHER, permission={"satellite": "ask"}) as (it, heard):
        turn = asyncio.create_task(it.prompt())
        asked = await heard.called()
        asking = asyncio.create_task(it.client.call(TOOL_ASK, for_satellite(it, asked)))
        question = await it.question()
        (offered,) = it.project.services.client_tools._offers.values()
        (waiting,) = offered.calls.values()
        assert waiting.deadline.when() is None, "a person may take days"
        await it.answer(question, "once")
        assert (await asking).allowed
        assert waiting.deadline.when() is not None, "the client has its time again"
        await heard.answer(output="4 degrees")
        await turn
        assert it.results() == ["4 degrees"]


async def test_what_a_call_is_refused_ends_it(tmp_path: Path) -> None:
    async with offering(tmp_path, ASKS_FOR_WEATHER, permission={"satellite": "deny"}) as (
        it,
        heard,
    ):
        turn = asyncio.create_task(it.prompt())
        asked = await heard.called()
        told = await it.client.call(TOOL_ASK, for_satellite(it, asked))
        await turn
        assert not told.allowed
        assert it.results() == [f"{told.message} {Denied.advice}"]
        assert "satellite north" in told.message


HANDS_ON = [
    make_answer(
        make_call("task", description="weather", prompt="ask for it", subagent_type="general")
    ),
    *ASKS_FOR_WEATHER,
    ScriptedAnswer(text="Told."),
]


async def test_a_subagent_calls_it_too(tmp_path: Path) -> None:
    async with offering(tmp_path, HANDS_ON) as (it, heard):
        turn = asyncio.create_task(it.prompt())
        asked = await heard.called()
        assert (asked.session_id != it.session_id, asked.agent) == (True, "general")
        await heard.answer(output="4 degrees")
        await turn
        child = it.project.store.read_conversation(asked.session_id)
        assert [
            read_result(part)
            for entry in child.entries
            for part in entry.parts
            if isinstance(part, ToolPart)
        ] == ["4 degrees"]


async def test_a_subagent_may_not_call_what_its_parent_may_not(tmp_path: Path) -> None:
    async with offering(tmp_path, HANDS_ON) as (it, heard):
        denied = PermissionRule(permission="weather", pattern="*", action="deny")
        await it.client.call(
            SESSION_UPDATE, UpdateSession(session_id=it.session_id, permission=[denied])
        )
        await it.prompt()
        assert heard.events == []
        assert all(
            "weather" not in {spec.name for spec in request.tools} for request in it.model.requests
        )


@pytest.mark.parametrize(
    ("lease", "name", "why"),
    [("short", "ok", "leaseID"), (LEASE, "no name", "name"), (LEASE, "", "name")],
)
@pytest.mark.parametrize("both_clients", ["http"], indirect=True)
async def test_a_server_refuses_what_is_no_offer(
    tmp_path: Path, lease: str, name: str, why: str
) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        tool = ClientTool(name=name, description="", parameters={})
        with pytest.raises(OperationError, match=why):
            await it.client.call(
                TOOLS_OFFER, OfferTools(session_id=it.session_id, lease_id=lease, tools=[tool])
            )
