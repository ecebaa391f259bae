"""A session's title: the small model's words, else the prompt's first line."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from codeloop.agent.title import LONGEST, first_line, is_untitled, make_title
from codeloop.app.open_models import OneModel
from codeloop.app.project import Project
from codeloop.client.local import LocalClient
from codeloop.model.chat import Prices
from codeloop.model.testing.script import Answer, Count
from codeloop.model.testing.scripted import SCRIPTED, ScriptedModel
from codeloop.schema.api.session_inputs import Prompt, TextInput
from codeloop.schema.api.session_requests import CreateSession, OfOneSession
from codeloop.schema.errors import APIError, APIErrorData
from codeloop.schema.message import AssistantMessage
from codeloop.schema.operation import ABORT, PROMPT, SESSION_CREATE
from codeloop.store.conversation import Entry
from tests.support.project import startup, until

SLOW = Answer(text="Done.", deltas=5, delay_ms=10)


class WithSmall(OneModel):
    """One model that is its own small model."""

    def small(self, ref: str) -> str | None:
        return ref


async def titled(tmp_path: Path, answers: Sequence[Answer], prompt: str, title: str | None = None) -> str:
    work = tmp_path / "work"
    work.mkdir()
    project = Project(startup(tmp_path / "home", work), WithSmall(ScriptedModel(answers)))
    client = LocalClient(project)
    session = await client.call(SESSION_CREATE, CreateSession(title=title))
    assert is_untitled(session.title) is (title is None)
    await client.call(PROMPT, Prompt(session_id=session.id, parts=[TextInput(text=prompt)]))
    await until(lambda: not is_untitled(project.store.session(session.id).title), 2)
    given = project.store.session(session.id).title
    await project.close()
    return given


async def test_the_small_model_gives_the_title(tmp_path: Path) -> None:
    side = Answer(kind="side", text='"Fixing the\nparser"')
    assert await titled(tmp_path, [SLOW, side], "the parser is broken") == "Fixing the"


async def test_without_an_answer_in_time_the_first_line_is_the_title(tmp_path: Path) -> None:
    side = Answer(kind="side", text="too late", deltas=8, delay_ms=400)
    assert await titled(tmp_path, [Answer(text="Done."), side], "\n  fix the bug \nplease") == "fix the bug"


async def test_a_short_turn_waits_a_little_for_its_title(tmp_path: Path) -> None:
    side = Answer(kind="side", text="just in time", deltas=4, delay_ms=40)
    assert await titled(tmp_path, [Answer(text="Done."), side], "fix it") == "just in time"


async def test_what_a_title_costs_is_in_the_sums_of_its_session(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    side = Answer(kind="side", text="A title", tokens=Count(input=100, output=10))
    main = Answer(text="Done.", deltas=5, delay_ms=10, tokens=Count(input=1_000, output=100))
    priced = msgspec.structs.replace(SCRIPTED, prices=Prices(input=1.0, output=2.0))
    project = Project(startup(tmp_path / "home", work), WithSmall(ScriptedModel([main, side], priced)))
    client = LocalClient(project)
    session = await client.call(SESSION_CREATE, CreateSession())
    await client.call(PROMPT, Prompt(session_id=session.id, parts=[TextInput(text="go")]))
    after = project.store.session(session.id)
    await project.close()
    assert after.tokens is not None
    assert (after.title, after.tokens.input, after.tokens.output) == ("A title", 1_100, 110)
    assert after.cost == pytest.approx((1_100 * 1.0 + 110 * 2.0) / 1e6)


async def test_an_abort_does_not_wait_for_a_title(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    side = Answer(kind="side", text="slow", deltas=4, delay_ms=1_000)
    project = Project(startup(tmp_path / "home", work), WithSmall(ScriptedModel([Answer(text="Done."), side])))
    client = LocalClient(project)
    session = await client.call(SESSION_CREATE, CreateSession())
    turn = asyncio.create_task(client.call(PROMPT, Prompt(session_id=session.id, parts=[TextInput(text="go")])))
    await until(lambda: any(isinstance(entry.info, AssistantMessage) for entry in entries(project, session.id)), 2)
    await until(lambda: not project.runs.is_running(session.id), 2)
    assert not turn.done()
    await client.call(ABORT, OfOneSession(session_id=session.id))
    await asyncio.wait_for(turn, 0.2)
    assert project.store.session(session.id).title == "go"
    await project.close()


def entries(project: Project, session_id: str) -> Sequence[Entry]:
    return project.store.conversation(session_id).entries


async def test_a_failing_small_model_does_no_harm(tmp_path: Path) -> None:
    error = APIError(data=APIErrorData(message="no", is_retryable=False))
    assert await titled(tmp_path, [SLOW, Answer(kind="side", error=error)], "fix it") == "fix it"


async def test_a_title_that_a_person_gave_stays(tmp_path: Path) -> None:
    side = Answer(kind="side", text="another")
    assert await titled(tmp_path, [SLOW, side], "fix it", title="mine") == "mine"


async def test_a_cancelled_title_is_the_first_line(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    side = Answer(kind="side", text="slow", deltas=4, delay_ms=100)
    project = Project(startup(tmp_path / "home", work), WithSmall(ScriptedModel([side])))
    session = await LocalClient(project).call(SESSION_CREATE, CreateSession())
    task = asyncio.create_task(make_title(project.engine, session.id, "the first line\nmore", "any/model"))
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert project.store.session(session.id).title == "the first line"
    await project.close()


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("", ""),
        (" \n\t\n", ""),
        ("one", "one"),
        ("x" * LONGEST, "x" * LONGEST),
        ("x" * (LONGEST + 1), "x" * (LONGEST - 1) + "…"),
    ],
)
def test_first_lines(prompt: str, title: str) -> None:
    assert first_line(prompt) == title
