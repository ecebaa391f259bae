"""How sessions stand, of every project: what waits, runs, has failed or is done."""

import asyncio
from pathlib import Path

import pytest

from codeloop.model.testing.script import ScriptedAnswer, ScriptedCall
from tests.server.support.serving import Served, served

ASKS = ScriptedAnswer(calls=(ScriptedCall("bash", {"command": "touch made"}),))


async def states(it: Served) -> dict[str, tuple[str, str]]:
    rows = await it.get("/session/overview")
    return {row["id"]: (row["state"], row.get("detail", "")) for row in rows}


@pytest.mark.slow
async def test_each_state_is_told_apart(tmp_path: Path) -> None:
    answers = [ScriptedAnswer(text="Done."), ASKS, ScriptedAnswer(text="Made.")]
    async with served(tmp_path, answers, permission={"bash": "ask"}) as it:
        done, asking, new = [await it.session() for _ in range(3)]
        await it.prompt(done)
        turn = asyncio.create_task(it.prompt(asking))
        async with asyncio.timeout(60):
            while not await it.get("/permission"):
                await asyncio.sleep(0.02)
        found = await states(it)
        assert found[asking] == ("waits", "bash touch made")
        assert next(iter(found)) == asking, "what waits stands first"
        assert (found[done][0], found[new][0]) == ("finished", "new")
        (request,) = await it.get("/permission")
        await it.post(f"/permission/{request['id']}/reply", {"reply": "once"})
        await turn
        assert (await states(it))[asking][0] == "finished"
        await it.http.patch(f"/session/{done}", json={"time": {"archived": 1}})
        assert done not in await states(it)
        failed = await it.session()
        await it.http.post(
            f"/session/{failed}/message", json={"parts": [{"type": "text", "text": "go"}]}
        )
        state, detail = (await states(it))[failed]
        assert (state, bool(detail)) == ("failed", True)
