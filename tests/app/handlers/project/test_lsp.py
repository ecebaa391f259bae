"""The routes of language servers: which run, the symbols that they know, and the events."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from codeloop.kit.limit import Limit
from codeloop.lsp import server_pool
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.files import FIND_SYMBOLS, FindSymbols
from codeloop.schema.api.project import LSP_STATUS
from codeloop.schema.api.session_undo import SESSION_REVERT, RevertSession
from codeloop.schema.live_events import LspDiagnosed, LspUpdated
from codeloop.schema.operation import NoArguments
from codeloop.schema.part import TextPart, ToolStateCompleted
from tests.lsp.world import SERVER
from tests.support.language_waits import lengthen_language_waits
from tests.support.scripted_project import (
    ScriptedProject,
    make_answer,
    make_call,
    open_scripted_project,
    wait_until,
)


async def test_servers_that_run_are_shown_and_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengthen_language_waits(monkeypatch)
    traces = tmp_path / "traces"
    traces.mkdir()
    command = [sys.executable, str(SERVER), str(traces), "knows"]
    script = [
        make_answer(make_call("write", filePath="a.x", content="def double(n)\n  bad1\n")),
        ScriptedAnswer(text="Done."),
    ]
    servers = {"mine": {"command": command, "extensions": [".x"]}}
    async with open_scripted_project(tmp_path, script, lsp=servers, sandbox={"mode": "off"}) as it:
        assert await it.client.call(LSP_STATUS, NoArguments()) == []
        assert await it.client.call(FIND_SYMBOLS, FindSymbols(query="dou")) == []
        assert not (traces / "trace").exists(), "asking starts nothing"
        updated, spoken = 0, set[str]()

        async def follow() -> None:
            nonlocal updated
            async for stamped in it.project.store.follow(None):
                match stamped.event:
                    case LspUpdated():
                        updated += 1
                    case LspDiagnosed(properties=told):
                        spoken.add(f"{told.server_id} {Path(told.path).name}")
                    case _:
                        pass

        following = asyncio.create_task(follow())
        await it.prompt("go")
        assert "a.x:2: bad1 is not good" in it.results()[0]
        (row,) = await it.client.call(LSP_STATUS, NoArguments())
        assert (row.id, row.name, row.root, row.status) == ("mine", "mine", "", "connected")
        (symbol,) = await it.client.call(FIND_SYMBOLS, FindSymbols(query="dou"))
        assert (symbol.name, symbol.kind) == ("double", 12)
        assert symbol.location["range"]["start"] == {"line": 0, "character": 4}
        await wait_until(lambda: updated >= 2 and spoken == {"mine a.x"})
        following.cancel()


DONE = ScriptedAnswer(text="Done.")


def scripted(folder: Path, *orders: str) -> dict[str, Any]:
    traces = folder / "traces"
    traces.mkdir()
    return {
        "mine": {
            "command": [sys.executable, str(SERVER), str(traces), *orders],
            "extensions": [".x"],
        }
    }


def write(text: str, number: int) -> ScriptedAnswer:
    return make_answer(make_call("write", call_id=f"w{number}", filePath="a.x", content=text))


async def speak(it: ScriptedProject) -> None:
    """Have the server say what it held back, and wait until that was heard."""
    servers = it.project.services.languages
    assert servers is not None
    (news,) = servers.trackers.values()
    assert news.server.client is not None
    news.server.client.connection.notify("scripted/speak", {})
    await servers.wait_idle()


@pytest.mark.slow
async def test_a_rename_shows_its_diffs_and_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengthen_language_waits(monkeypatch)
    asked = make_call("lsp", operation="rename", filePath="a.x:1", symbol="double", newName="twice")
    script = [make_answer(make_call("read", filePath="a.x"), asked), DONE]
    texts = {"a.x": "def double(n)\n", "b.x": "double(2)\n"}
    (tmp_path / "work").mkdir()
    for name, text in texts.items():
        (tmp_path / "work" / name).write_text(text)
    async with open_scripted_project(
        tmp_path, script, lsp=scripted(tmp_path, "knows"), sandbox={"mode": "off"}
    ) as it:
        await it.prompt("go")
        state = it.calls()[-1].state
        assert isinstance(state, ToolStateCompleted)
        assert [each["relativePath"] for each in state.metadata["files"]] == ["a.x", "b.x"]
        assert [(each["additions"], each["deletions"]) for each in state.metadata["files"]] == [
            (1, 1),
            (1, 1),
        ]
        assert "+twice(2)" in state.metadata["diff"]
        assert (it.work / "b.x").read_text() == "twice(2)\n"
        prompt = it.view().entries[0].info.id
        await it.client.call(
            SESSION_REVERT, RevertSession(session_id=it.session_id, message_id=prompt)
        )
        assert {name: (it.work / name).read_text() for name in texts} == texts


@pytest.mark.slow
async def test_what_a_server_says_late_goes_with_the_next_prompt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = "Earlier edits brought 1 new error:\na.x:1: bad1 is not good (scripted B1)"
    script = [
        write("fine\n", 1),
        DONE,
        write("bad1\n", 2),
        DONE,
        make_answer(make_call("glob", pattern="*.x")),
        DONE,
        DONE,
    ]
    async with open_scripted_project(
        tmp_path, script, lsp=scripted(tmp_path, "held"), sandbox={"mode": "off"}
    ) as it:
        await it.prompt("one")
        servers = it.project.services.languages
        assert servers is not None
        await servers.wait_idle()
        monkeypatch.setattr(
            server_pool, "LSP_DIAGNOSTICS_TIME", Limit("test", 300, "ms", "for a test")
        )
        await it.prompt("two")
        assert "error" not in it.results()[1]
        await speak(it)
        await it.prompt("three")
        told = [
            part.text
            for each in it.view().entries
            for part in each.parts
            if isinstance(part, TextPart)
        ]
        assert told.count(late) == 1
        assert "error" not in it.results()[2], "once"
