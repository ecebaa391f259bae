"""The routes of MCP servers: what they are doing, switched on and off, added, their resources,
events.
"""

import asyncio
import sys
from pathlib import Path

import pytest

from codeloop.extend.mcp.tools import prompts
from codeloop.kit.limit import Limit
from codeloop.model.testing.script import ScriptedAnswer, TokenCount
from codeloop.schema.api.agents import COMMAND_LIST
from codeloop.schema.api.mcp import (
    MCP_ADD,
    MCP_COMPLETE,
    MCP_CONNECT,
    MCP_DISCONNECT,
    MCP_STATUS,
    RESOURCE_LIST,
    AddMcp,
    CompleteMcpPrompt,
    McpName,
    McpPromptCompletion,
    McpResource,
    MCPStatus,
)
from codeloop.schema.api.session_inputs import COMMAND, InvokeCommand, RunLimits
from codeloop.schema.errors import OperationError
from codeloop.schema.live_events import McpToolsChanged
from codeloop.schema.message import UserMessage
from codeloop.schema.operation import NoArguments
from codeloop.schema.part import TextPart
from codeloop.schema.wire import replace
from tests.extend.mcp.world import PLAIN
from tests.server.support.serving import served
from tests.support.patient_limits import LONG_LIMIT
from tests.support.scripted_project import make_answer, make_call, open_scripted_project, wait_until

WORKS = {"type": "local", "command": [sys.executable, str(PLAIN)]}
FAILS = {"type": "local", "command": ["false"]}


@pytest.mark.slow
async def test_servers_are_shown_switched_on_and_off(tmp_path: Path) -> None:
    servers = {
        "p": WORKS,
        "off": {**WORKS, "enabled": False},
        "bad": {"type": "local"},
        "fails": FAILS,
    }
    async with open_scripted_project(tmp_path, [], mcp=servers) as it:
        heard: set[str] = set()

        async def follow() -> None:
            async for stamped in it.project.store.follow(None):
                if isinstance(stamped.event, McpToolsChanged):
                    heard.add(stamped.event.properties.server)

        following = asyncio.create_task(follow())
        now = await it.client.call(MCP_STATUS, NoArguments())
        assert now["p"] == MCPStatus(status="disabled", state="configured")
        assert now["off"] == MCPStatus(status="disabled")
        assert now["bad"].status == "failed"
        assert "command" in (now["bad"].error or "")
        assert await it.client.call(MCP_CONNECT, McpName(name="p"))
        assert not await it.client.call(MCP_CONNECT, McpName(name="fails"))
        now = await it.client.call(MCP_STATUS, NoArguments())
        assert now["p"] == MCPStatus(status="connected")
        assert now["fails"] == MCPStatus(status="failed", error="it ended with exit code 1")
        assert await it.client.call(RESOURCE_LIST, NoArguments()) == {
            "p:plain://note": McpResource(
                name="note",
                uri="plain://note",
                client="p",
                description="A note.",
                mime_type="text/plain",
            )
        }
        assert await it.client.call(MCP_DISCONNECT, McpName(name="p"))
        now = await it.client.call(MCP_STATUS, NoArguments())
        assert now["p"] == MCPStatus(status="disabled")
        await wait_until(lambda: {"p", "fails"} <= heard)
        following.cancel()


@pytest.mark.slow
async def test_the_tools_of_a_server_that_is_added_are_offered_in_the_next_request(
    tmp_path: Path,
) -> None:
    script = [
        ScriptedAnswer(text="none"),
        make_answer(make_call("new_echo", "a", text="hi")),
        ScriptedAnswer(text="done"),
    ]
    async with open_scripted_project(tmp_path, script) as it:
        await it.prompt()
        await it.client.call(MCP_ADD, AddMcp(name="new", config=WORKS))
        await it.prompt()
        before, after, _ = (
            {tool.name for tool in request.tools} for request in it.model.requests if request.tools
        )
        assert {name for name in before if "new" in name} == set()
        assert {"new_echo", "mcp_resource"} <= after
        assert before <= after
        assert it.results() == ["echo: hi"]


@pytest.mark.slow
async def test_a_server_is_added_for_as_long_as_the_project_is_open(tmp_path: Path) -> None:
    script = [
        make_answer(make_call("mcp", "a", tool="new_echo", arguments={"text": "hi"})),
        make_answer(make_call("mcp", "b", tool="p_echo", arguments={"text": "off"})),
        ScriptedAnswer(text="done"),
    ]
    async with open_scripted_project(tmp_path, script, mcp={"p": WORKS}) as it:
        now = await it.client.call(MCP_ADD, AddMcp(name="new", config=WORKS))
        assert now["new"] == MCPStatus(status="connected")
        await it.client.call(MCP_DISCONNECT, McpName(name="p"))
        await it.prompt()
        assert it.results()[0] == "echo: hi"
        with pytest.raises(
            OperationError, match=r"mcp\.odd is not a server: Expected `array`, got `int`"
        ) as raised:
            await it.client.call(
                MCP_ADD, AddMcp(name="odd", config={"type": "local", "command": 1})
            )
        assert raised.value.kind == "BadRequest"


@pytest.mark.parametrize("action", ["connect", "disconnect"])
async def test_an_unknown_mcp_server_is_named_as_such(tmp_path: Path, action: str) -> None:
    async with served(tmp_path) as it:
        refused = await it.post(f"/mcp/no one/{action}", status=404)
    assert refused == {
        "_tag": "McpServerNotFoundError",
        "name": "no one",
        "message": "MCP server not found: no one",
    }


@pytest.mark.slow
async def test_a_servers_prompt_is_a_command(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [], mcp={"p": WORKS}) as it:
        await it.client.call(MCP_CONNECT, McpName(name="p"))
    async with open_scripted_project(
        tmp_path, [ScriptedAnswer(text="Hello.")] * 3, mcp={"p": WORKS}
    ) as it:
        listed = {each.name: each for each in await it.client.call(COMMAND_LIST, NoArguments())}
        assert listed["p:greet"].source == "mcp"
        assert listed["p:greet"].description == "Greets somebody. (who [how])"
        assert listed["p:greet"].hints == ["$1", "$2"]
        for typed, text in (
            ("Ada", "Greet Ada kindly."),
            ("Ada very warmly", "Greet Ada very warmly."),
            ("how=loudly Ada", "Greet Ada loudly."),
        ):
            invoked = InvokeCommand(session_id=it.session_id, command="p:greet", arguments=typed)
            await it.client.call(COMMAND, invoked)
            prompts = [entry for entry in it.view().entries if isinstance(entry.info, UserMessage)]
            shown, part = prompts[-1].parts
            assert isinstance(shown, TextPart)
            assert (shown.text, shown.ignored) == (f"/p:greet {typed}", True)
            assert isinstance(part, TextPart)
            assert (part.text, part.synthetic) == (text, True)
        with pytest.raises(OperationError, match="/p:greet was not sent: /p:greet needs who"):
            await it.client.call(
                COMMAND, InvokeCommand(session_id=it.session_id, command="p:greet", arguments="")
            )


COMPLETED = (
    ("", "who", "", ["Ada", "Alan", '"Grace Hopper"', "'the \"Hopper\"'"]),
    ("A", "who", "A", ["Ada", "Alan"]),
    ('"Grace H', "who", '"Grace H', ['"Grace Hopper"']),
    ("how=lo", "how", "lo", ["loudly"]),
    ("how=loudly Al", "who", "Al", ["Alan"]),
    ("who=Ada ", "how", "", ['"like Ada"', "loudly"]),
    ("Ada ", "how", "", ['"like Ada"', "loudly"]),
    ("Ada like A", "how", "like A", ['"like Ada"']),
    ("who=Ada how=x y", "", "", []),
    ("hang", "who", "hang", []),
)
"""What is typed behind `/p:greet`, which argument that is, what of it is replaced, and by what."""


@pytest.mark.slow
async def test_arguments_of_prompts_are_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_scripted_project(tmp_path, [], mcp={"p": WORKS}) as it:
        await it.client.call(MCP_CONNECT, McpName(name="p"))
        for typed, argument, replaces, values in COMPLETED:
            limit = Limit("test", 300 if typed == "hang" else 60_000, "ms", "for a test")
            monkeypatch.setattr(prompts, "MCP_COMPLETE", limit)
            found = await it.client.call(
                MCP_COMPLETE, CompleteMcpPrompt(command="p:greet", typed=typed)
            )
            expected = McpPromptCompletion(argument=argument, replaces=replaces, values=values)
            assert found == expected, typed


@pytest.mark.slow
async def test_typing_starts_no_server_unless_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompts, "MCP_COMPLETE", LONG_LIMIT)
    async with open_scripted_project(tmp_path, [], mcp={"p": WORKS}) as it:
        await it.client.call(MCP_CONNECT, McpName(name="p"))
    async with open_scripted_project(tmp_path, [], mcp={"p": WORKS}) as it:
        typed = CompleteMcpPrompt(command="p:greet", typed="Al")
        assert (await it.client.call(MCP_COMPLETE, typed)).values == []
        assert (await it.client.call(MCP_STATUS, NoArguments()))["p"].state == "known"
        wanted = replace(typed, connect=True)
        assert (await it.client.call(MCP_COMPLETE, wanted)).values == ["Alan"]
        assert (await it.client.call(MCP_COMPLETE, typed)).values == ["Alan"]
        await it.client.call(MCP_DISCONNECT, McpName(name="p"))
        assert (await it.client.call(MCP_COMPLETE, wanted)).values == [], "it was switched off"
        for other in ("p:none", "q:greet", "init"):
            assert (
                await it.client.call(MCP_COMPLETE, CompleteMcpPrompt(command=other))
                == McpPromptCompletion()
            )


@pytest.mark.slow
async def test_a_model_that_a_server_asks_for_costs_what_it_costs_within_the_limits(
    tmp_path: Path,
) -> None:
    sample = make_answer(make_call("mcp", "a", tool="p_sample"))
    said = ScriptedAnswer(text="Hi!", kind="side", tokens=TokenCount(input=1_000, output=500))
    script = [
        sample,
        said,
        ScriptedAnswer(text="done"),
        sample,
        said,
        said,
        ScriptedAnswer(text="done"),
    ]
    async with open_scripted_project(
        tmp_path, script, mcp={"p": WORKS}, permission={"mcp_sampling": "allow"}
    ) as it:
        await it.prompt()
        assert '"text": "Hi!"' in it.results()[0]
        tokens = it.project.store.get_session(it.session_id).tokens
        assert tokens is not None
        assert tokens.output >= 500, "the session's sums include it"
        await it.prompt(limits=RunLimits(tokens=100))
        assert "Hi!" not in it.results()[1]
        assert "Not run: the limit of 100 tokens is reached" in it.results()[1]
