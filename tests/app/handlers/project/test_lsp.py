"""The routes of language servers: which run, the symbols that they know, and the events."""

import asyncio
import sys
from pathlib import Path

from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.files import FindSymbols
from codeloop.schema.live_events import LspDiagnosed, LspUpdated
from codeloop.schema.operation import FIND_SYMBOLS, LSP_STATUS, NoArguments
from tests.lsp.world import SERVER
from tests.support.project import call, calls, rig, until


async def test_servers_that_run_are_shown_and_asked(tmp_path: Path) -> None:
    traces = tmp_path / "traces"
    traces.mkdir()
    command = [sys.executable, str(SERVER), str(traces), "knows"]
    script = [calls(call("write", filePath="a.x", content="def double(n)\n  bad1\n")), ScriptedAnswer(text="Done.")]
    servers = {"mine": {"command": command, "extensions": [".x"]}}
    async with rig(tmp_path, script, lsp=servers, sandbox={"mode": "off"}) as it:
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
        await until(lambda: updated >= 2 and spoken == {"mine a.x"})
        following.cancel()
