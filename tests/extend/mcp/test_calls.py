"""Calls of a local server's tools: asked about, answered,
and what comes of servers that do not behave.
"""

import asyncio
import json
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from codeloop.permission.gate import Denied
from codeloop.schema.bounds.extension import MCP_CALL_LONGEST
from codeloop.schema.limits import MCP_CALL, MCP_STOP
from codeloop.schema.wire import replace
from codeloop.tool.tool import ToolFailure
from tests.cli.program import lives
from tests.extend.mcp.world import plain, world
from tests.support.scripted_project import advance_clock, wait_until


async def test_a_server_is_started_at_its_first_call_and_ended_with_the_table(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as it:
        assert it.server().status.state == "configured"
        assert it.started() == 0
        assert (await it.call("echo", text="hi")).output == "echo: hi"
        assert (await it.call("echo", text="again")).output == "echo: again"
        assert it.server().status.state == "connected"
        assert it.started() == 1
    pid = int((it.traces / "started").read_text())
    assert not lives(pid)


async def test_what_it_offers_is_remembered_and_it_is_not_started_for_that(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        await it.server().connect()
    async with world(tmp_path) as it:
        specs = {spec.name: spec for spec in it.toolbox.list_specs("m")}
        assert specs["p_echo"].description == "Does echo."
        assert specs["p_echo"].parameters == {
            "type": "object",
            "properties": {"text": {"type": "string"}},
        }
        assert it.server().status.state == "known"
        assert it.started() == 1
        assert (await it.call("echo", text="hi")).output == "echo: hi"
        assert it.started() == 2


async def test_a_call_is_asked_about_under_its_own_name_before_the_server_is_started(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as it:
        await it.server().connect()
        await it.server().disconnect()
        it.ctx.deny = ("p_echo",)
        with pytest.raises(Denied):
            await it.call("echo", text="hi")
        need = it.ctx.asked[-1]
        assert (need.permission, need.patterns, need.always) == ("p_echo", ("*",), ("*",))
        assert need.metadata == {"server": "p", "tool": "echo", "input": {"text": "hi"}}
        assert need.writes is not None
        assert it.started() == 1


async def test_a_read_only_hint_allows_nothing(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        await it.server().connect()
        it.ctx.deny = ("p_pixel",)
        with pytest.raises(Denied):
            await it.call("pixel")
        assert it.ctx.asked[-1].traits == ()


async def test_content_of_every_kind_is_given_to_the_model(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        result = await it.call("blocks")
        lines = result.output.splitlines()
        assert lines[0] == "one"
        assert lines[1].startswith("[image/png attached, ")
        assert lines[2].startswith("[audio/wav attached, 9 bytes]")
        saved = lines[3].rpartition(" saved in ")[2].rstrip("]")
        assert it.ctx.workspace.resolve(saved).path.read_bytes() == b"RIFFsound"
        assert lines[4] == "a note"
        assert lines[5].startswith("[application/zip of 4 bytes saved in ")
        assert (
            lines[6] == "[resource plain://other (other): Another one.; read it with mcp_resource]"
        )
        assert [part.mime for part in result.attachments] == ["image/png", "audio/wav"]
        assert result.metadata == {"server": "p", "tool": "blocks"}


async def test_a_block_of_an_unknown_kind_is_shown_as_it_came(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        result = await it.call("unheard")
        assert '{"type":"hologram"}' in result.output


async def test_structured_content_is_kept_and_shown_when_there_is_no_text(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        result = await it.call("structured")
        assert json.loads(result.output) == {"sum": 3}
        assert result.metadata["structured"] == {"sum": 3}


async def test_an_error_of_the_server_is_told(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        with pytest.raises(ToolFailure, match="The server says that the call failed: it is broken"):
            await it.call("fail")


async def test_progress_is_shown_and_puts_the_deadline_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(tmp_path, {"p": plain(tmp_path, timeout=60_000)}) as it:

        def report(**given: Any) -> None:
            it.ctx.reports.append(given)
            advance_clock(monkeypatch, 40)

        monkeypatch.setattr(it.ctx, "report", report)
        result = await it.call("slow", steps=5)
        assert result.output == "slow is done"
        assert it.ctx.reports[0] == {
            "title": "step 1",
            "metadata": {"progress": 1, "total": 3, "message": "step 1"},
        }
        assert len(it.ctx.reports) == 5


async def test_progress_for_ever_does_not_keep_a_call_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    longest = replace(MCP_CALL_LONGEST, value=400)
    monkeypatch.setattr("codeloop.extend.mcp.transport.connection.MCP_CALL_LONGEST", longest)
    monkeypatch.setattr("codeloop.extend.mcp.mcp_server.MCP_CALL", replace(MCP_CALL, value=300))
    async with world(tmp_path) as it:
        async with asyncio.timeout(60):
            with pytest.raises(ToolFailure, match="it did not answer in time"):
                await it.call("slow", steps=40_000, seconds=0.01)


@pytest.mark.slow
async def test_a_flood_of_changed_lists_is_taken_up_together(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        assert (await it.call("new_tool", times=3_000)).output == "one more"
        assert (await it.call("echo", text="hi")).output == "echo: hi"
        listing = it.server().listing
        assert listing is not None
        assert "extra" in [tool.name for tool in listing.tools]
        assert (it.traces / "listed").stat().st_size < 20


async def test_a_call_without_an_answer_ends_at_its_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codeloop.extend.mcp.mcp_server.MCP_CALL", replace(MCP_CALL, value=200))
    async with world(tmp_path) as it:
        with pytest.raises(ToolFailure, match="it did not answer in time"):
            await it.call("hang")


async def test_a_cancelled_call_is_cancelled_at_the_server(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        await it.call("echo", text="x")
        calling = asyncio.create_task(it.call("slow", steps=40_000))
        await wait_until(lambda: it.ctx.reports)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        (it.traces / "enough").touch()
        await wait_until((it.traces / "cancelled").exists)
        assert (await it.call("echo", text="still there")).output == "echo: still there"
        assert it.started() == 1


async def test_a_server_that_dies_in_a_call_is_told_with_its_last_words_and_started_again(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as it:
        with pytest.raises(ToolFailure) as failed:
            await it.call("die")
        assert str(failed.value) == (
            "The MCP server p is gone: it ended with exit code 3. Its last line: I can't go on "
            "The next call starts it again."
        )
        assert it.server().status.state == "failed"
        assert (await it.call("echo", text="back")).output == "echo: back"
        assert it.started() == 2


@pytest.mark.slow
async def test_a_server_that_closes_its_output_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(tmp_path) as it:
        monkeypatch.setattr("codeloop.extend.mcp.transport.transports.MCP_STOP", MCP_STOP)
        with pytest.raises(ToolFailure, match="it closed its output"):
            await it.call("closes")


@pytest.mark.slow
async def test_an_endless_answer_ends_the_connection_and_not_us(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        await it.server().connect()
        with pytest.raises(ToolFailure, match="a message of more than 33,554,432 bytes"):
            await it.call("big", size=100_000_000)


async def test_what_is_no_message_is_passed_over_and_kept_in_the_log(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        assert (await it.call("garbage")).output == "after garbage"
        assert "[not a message on stdout: Hello!]" in it.server().log.read()


async def test_a_flood_on_stderr_is_kept_in_a_log_of_bounded_size(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        assert (await it.call("flood")).output == "flooded"
        await wait_until(lambda: it.server().log.last_line == "the last line")
        assert sum(file.stat().st_size for file in (tmp_path / "logs").iterdir()) <= 2 * 256 * 1024
        await it.call("log")
        assert "[info] a line for the log" in it.server().log.read()


async def test_the_environment_is_a_list_of_names_and_what_the_definition_sets(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, {"p": plain(tmp_path, environment={"MINE": "1"})}) as it:
        it.ctx.workspace.environment.update(
            AWS_SECRET_ACCESS_KEY="x", LC_ALL="C.UTF-8", SOME_TOKEN="y"
        )
        seen = json.loads((await it.call("environment")).output)
        assert {"MINE", "LC_ALL", "PATH", "HOME"} <= seen.keys()
        assert not {"AWS_SECRET_ACCESS_KEY", "SOME_TOKEN"} & seen.keys()


@pytest.mark.parametrize("session", [False, True])
async def test_nothing_that_a_server_started_outlives_it(tmp_path: Path, *, session: bool) -> None:
    async with world(tmp_path) as it:
        pid = int((await it.call("child", session=session)).output)
        assert lives(pid)
        began = time.monotonic()
    assert not lives(pid)
    assert time.monotonic() - began < 60, "it would have slept for five minutes"


async def test_it_works_in_the_directory_that_is_configured(tmp_path: Path) -> None:
    (tmp_path / "work" / "inner").mkdir(parents=True)
    async with world(tmp_path, {"p": plain(tmp_path, cwd="inner")}) as it:
        assert (await it.call("where")).output == os.path.realpath(tmp_path / "work" / "inner")


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (
            {"type": "local", "command": ["no-such-program-x"]},
            "There is no program 'no-such-program-x' on the PATH",
        ),
        (
            {"type": "local", "command": ["sh", "-c", "echo no >&2; exit 4"]},
            "exit code 4; its last line: no",
        ),
        ({"type": "local", "command": ["true"], "cwd": "gone"}, "gone does not exist"),
        (
            {"type": "local", "command": "npx x"},
            "mcp.p is not a server: its `command` is one text, and has to be a list of words",
        ),
        ({"type": "remote", "url": "ftp://x"}, "mcp.p is not a server"),
        ({"type": "remote", "url": "http://127.0.0.1:9/mcp"}, "(?i)connect"),
        ({"enabled": False}, "`enabled` is false"),
    ],
)
async def test_a_server_that_can_not_be_used_says_why(
    tmp_path: Path, entry: dict[str, object], reason: str
) -> None:
    async with world(tmp_path, {"p": entry}) as it:
        with pytest.raises(Exception, match=reason):
            await it.server().connect()
        assert it.server().status.state in {"failed", "disabled"}


async def test_a_server_that_never_answers_is_waited_for_once(tmp_path: Path) -> None:
    entry = {"type": "local", "command": ["sleep", "600"], "timeout": 3_000}
    async with world(tmp_path, {"p": entry}) as it:
        with pytest.raises(Exception, match="no start within"):
            await it.server().request(lambda *_: asyncio.sleep(0), None)
        with pytest.raises(Exception, match="It is not started again within"):
            await it.server().request(lambda *_: asyncio.sleep(0), None)


async def test_after_a_failure_it_is_not_started_again_at_once_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(monotonic=lambda: 0.0, time=time.time)
    monkeypatch.setattr("codeloop.extend.mcp.server_status.time", clock)
    async with world(tmp_path, {"p": {"type": "local", "command": ["false"]}}) as it:
        for _ in range(2):
            with pytest.raises(Exception, match="exit code 1"):
                await it.server().request(lambda *_: asyncio.sleep(0), None)
        with pytest.raises(Exception, match="It is not started again within 2 s"):
            await it.server().request(lambda *_: asyncio.sleep(0), None)
