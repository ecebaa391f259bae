"""Turns that are aborted, whenever that comes."""

import asyncio
from pathlib import Path

import pytest

from codeloop.app.models import OneModel
from codeloop.app.project import Project
from codeloop.client.local import LocalClient
from codeloop.model.answers import Answer
from codeloop.model.scripted import ScriptedModel
from codeloop.schema.errors import OperationError
from codeloop.schema.operation import ABORT, PROMPT, SESSION_CREATE, SUMMARIZE
from codeloop.schema.prompts import TextInput
from tests.agent.harness import rig, startup, until, within


async def test_a_turn_that_is_aborted_at_any_moment_has_an_end_that_is_told(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    hello = Answer(text="Hello. " * 500, deltas=500)
    answers = [hello, Answer(kind="side", text="A title", delay_ms=1)] * 100
    project = Project(startup(tmp_path / "home", tmp_path / "work"), OneModel(ScriptedModel(answers)))
    client = LocalClient(project)
    ends: set[str] = set()
    try:
        for moment in range(60):
            session = await client.call(SESSION_CREATE)
            said = client.call(PROMPT, session_id=session.id, parts=[TextInput(text="go")])
            turn = asyncio.create_task(said)
            while not project.runs.is_running(session.id):
                await asyncio.sleep(0)
            for _ in range(moment):
                await asyncio.sleep(0)
            await within(client.call(ABORT, session_id=session.id), 5)
            ends.add((await within(turn, 5)).stop.reason)
            assert not project.runs.any_running
    finally:
        await project.close()
    assert ends == {"aborted", "done"}, "the moments of a whole turn were tried"


async def test_a_summary_that_is_aborted_is_no_fault_of_the_server(tmp_path: Path) -> None:
    async with rig(tmp_path, [Answer(text="Hello."), Answer(kind="side", text="slow", delay_ms=20_000)]) as it:
        await it.prompt()
        summary = it.client.call(SUMMARIZE, session_id=it.session_id, provider_id="scripted", model_id="script")
        working = asyncio.create_task(summary)
        await until(lambda: it.project.runs.is_running(it.session_id))
        await it.client.call(ABORT, session_id=it.session_id)
        with pytest.raises(OperationError, match="not summarised: Aborted") as caught:
            await within(working, 5)
        assert caught.value.kind == "BadRequest"
