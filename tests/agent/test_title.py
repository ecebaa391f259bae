"""A session's title: the small model's words, else the prompt's first line."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from codeloop.agent.title import LONGEST, first_line, is_untitled, make_title
from codeloop.app.models import OneModel
from codeloop.app.project import Project
from codeloop.client.local import LocalClient
from codeloop.model.answers import Answer
from codeloop.model.scripted import ScriptedModel
from codeloop.schema.errors import APIError, APIErrorData
from codeloop.schema.operation import PROMPT, SESSION_CREATE, TextInput
from tests.agent.harness import startup, until

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
    session = await client.call(SESSION_CREATE, title=title)
    assert is_untitled(session.title) is (title is None)
    await client.call(PROMPT, session_id=session.id, parts=[TextInput(text=prompt)])
    await until(lambda: not is_untitled(project.store.session(session.id).title), 2)
    given = project.store.session(session.id).title
    await project.close()
    return given


async def test_the_small_model_gives_the_title(tmp_path: Path) -> None:
    side = Answer(kind="side", text='"Fixing the\nparser"')
    assert await titled(tmp_path, [SLOW, side], "the parser is broken") == "Fixing the"


async def test_without_an_answer_in_time_the_first_line_is_the_title(tmp_path: Path) -> None:
    side = Answer(kind="side", text="too late", deltas=8, delay_ms=100)
    assert await titled(tmp_path, [Answer(text="Done."), side], "\n  fix the bug \nplease") == "fix the bug"


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
    session = await LocalClient(project).call(SESSION_CREATE)
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
