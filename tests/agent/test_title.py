"""A session's title: the prompt's first line, then the small model's words."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from codeloop.agent.title import MAX_TITLE_CHARS, is_untitled, shorten_to_line
from codeloop.app.models.open_models import SingleModel
from codeloop.app.project import Project, open_project
from codeloop.client.local import LocalClient
from codeloop.model.chat import ChatModel, ModelEvent, ModelRequest, Prices
from codeloop.model.testing.replay import SCRIPT_INFO, ScriptedModel
from codeloop.model.testing.script import ScriptedAnswer, TokenCount
from codeloop.schema.api.session_inputs import ABORT, PROMPT, Prompt, TextPartInput
from codeloop.schema.api.session_requests import (
    SESSION_CREATE,
    SESSION_UPDATE,
    CreateSession,
    SessionId,
    UpdateSession,
)
from codeloop.schema.errors import APIError, APIErrorData
from codeloop.schema.limits import TITLE_DELAY
from codeloop.schema.wire import replace
from tests.support.scripted_project import make_startup, wait_until

SLOW = ScriptedAnswer(text="Done.", deltas=5, delay_ms=10)


class WithSmall(SingleModel):
    """One model that is its own small model."""

    def find_small_model(self, ref: str) -> str | None:
        return ref


class WithCheap(SingleModel):
    """One model that is not a small one, but the only one of its provider.
    `asked`: what it was sent.
    """

    def __init__(self, model: ScriptedModel) -> None:
        super().__init__(model)
        self.asked = list[ModelRequest]()
        self._script = model

    def find_cheapest_model(self, ref: str) -> str | None:
        return ref

    def open(self, ref: str) -> ChatModel:
        return self

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        self.asked.append(request)
        return self._script.stream(request)


@asynccontextmanager
async def opened(
    tmp_path: Path, answers: Sequence[ScriptedAnswer], models: SingleModel | None = None
) -> AsyncGenerator[tuple[Project, str]]:
    """Open a project with a new session."""
    work = tmp_path / "work"
    work.mkdir()
    project = await open_project(
        make_startup(tmp_path / "home", work), models or WithSmall(ScriptedModel(answers))
    )
    try:
        yield project, (await LocalClient(project).call(SESSION_CREATE, CreateSession())).id
    finally:
        await project.close()


async def titled(
    tmp_path: Path, answers: Sequence[ScriptedAnswer], prompt: str, title: str | None = None
) -> str:
    """Return the title of a session right after its first prompt is answered."""
    work = tmp_path / "work"
    work.mkdir()
    project = await open_project(
        make_startup(tmp_path / "home", work), WithSmall(ScriptedModel(answers))
    )
    client = LocalClient(project)
    session = await client.call(SESSION_CREATE, CreateSession(title=title))
    assert is_untitled(session.title) is (title is None)
    await client.call(PROMPT, Prompt(session_id=session.id, parts=[TextPartInput(text=prompt)]))
    given = project.store.get_session(session.id).title
    await project.close()
    return given


async def test_the_small_model_gives_the_title_while_the_turn_runs(tmp_path: Path) -> None:
    side = ScriptedAnswer(kind="side", text='"Fixing the\nparser"')
    assert await titled(tmp_path, [SLOW, side], "the parser is broken") == "Fixing the"


async def test_until_the_small_model_answers_the_first_line_is_the_title(tmp_path: Path) -> None:
    side = ScriptedAnswer(kind="side", text="too late", deltas=8, delay_ms=400)
    assert (
        await titled(tmp_path, [ScriptedAnswer(text="Done."), side], "\n  fix the bug \nplease")
        == "fix the bug"
    )


async def test_a_turn_and_its_process_end_without_waiting_for_a_title(tmp_path: Path) -> None:
    side = ScriptedAnswer(kind="side", text="far too late", deltas=2, delay_ms=30_000)
    given = titled(tmp_path, [ScriptedAnswer(text="Done."), side], "fix it")
    assert await asyncio.wait_for(given, 60) == "fix it"


async def test_a_title_that_comes_after_its_turn_is_taken_while_the_process_lives(
    tmp_path: Path,
) -> None:
    side = ScriptedAnswer(kind="side", text="just in time", deltas=4, delay_ms=40)
    async with opened(tmp_path, [ScriptedAnswer(text="Done."), side]) as (project, session_id):
        await LocalClient(project).call(
            PROMPT, Prompt(session_id=session_id, parts=[TextPartInput(text="fix it")])
        )
        assert project.store.get_session(session_id).title == "fix it"
        assert not project.runs.is_running(session_id)
        await wait_until(lambda: project.store.get_session(session_id).title == "just in time")


async def test_without_a_small_model_the_title_comes_from_the_provider_once_the_turn_is_over(
    tmp_path: Path,
) -> None:
    title = ScriptedAnswer(kind="side", text="Parser fixed", deltas=2, delay_ms=20)
    failed = ScriptedAnswer(
        kind="side", error=APIError(data=APIErrorData(message="no", is_retryable=False))
    )
    models = WithCheap(
        ScriptedModel([ScriptedAnswer(text="One."), failed, ScriptedAnswer(text="Two."), title])
    )
    async with opened(tmp_path, [], models) as (project, session_id):
        client = LocalClient(project)
        for number, words in enumerate(("fix the parser", "and go on"), 1):
            await client.call(
                PROMPT, Prompt(session_id=session_id, parts=[TextPartInput(text=words)])
            )
            assert project.store.get_session(session_id).title == "fix the parser"
            assert not project.is_busy
            await wait_until(lambda wanted=2 * number: len(models.asked) == wanted)
        await wait_until(lambda: project.store.get_session(session_id).title == "Parser fixed")


async def test_a_process_that_ends_after_its_turn_asks_for_no_title_of_a_large_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codeloop.agent.title.TITLE_DELAY", replace(TITLE_DELAY, value=60_000))
    models = WithCheap(ScriptedModel([ScriptedAnswer(text="Done.")]))
    async with opened(tmp_path, [], models) as (project, session_id):
        await LocalClient(project).call(
            PROMPT, Prompt(session_id=session_id, parts=[TextPartInput(text="fix it")])
        )
    assert len(models.asked) == 1


async def test_the_agent_title_may_be_switched_off(tmp_path: Path) -> None:
    (tmp_path / "home" / "config").mkdir(parents=True)
    (tmp_path / "home" / "config" / "codeloop.json").write_text(
        '{"agent": {"title": {"disable": true}}}'
    )
    side = ScriptedAnswer(kind="side", text="another")
    assert await titled(tmp_path, [SLOW, side], "fix it") == "fix it"


async def test_a_title_does_not_take_the_place_of_a_person_s(tmp_path: Path) -> None:
    side = ScriptedAnswer(kind="side", text="another", deltas=4, delay_ms=40)
    async with opened(tmp_path, [ScriptedAnswer(text="Done."), side]) as (project, session_id):
        client = LocalClient(project)
        await client.call(
            PROMPT, Prompt(session_id=session_id, parts=[TextPartInput(text="fix it")])
        )
        await client.call(SESSION_UPDATE, UpdateSession(session_id=session_id, title="mine"))
        await wait_until(lambda: not project.runs.is_any_running)
        assert project.store.get_session(session_id).title == "mine"


async def test_what_a_title_costs_is_in_the_sums_of_its_session(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    side = ScriptedAnswer(kind="side", text="A title", tokens=TokenCount(input=100, output=10))
    main = ScriptedAnswer(
        text="Done.", deltas=5, delay_ms=10, tokens=TokenCount(input=1_000, output=100)
    )
    priced = msgspec.structs.replace(SCRIPT_INFO, prices=Prices(input=1.0, output=2.0))
    project = await open_project(
        make_startup(tmp_path / "home", work), WithSmall(ScriptedModel([main, side], priced))
    )
    client = LocalClient(project)
    session = await client.call(SESSION_CREATE, CreateSession())
    await client.call(PROMPT, Prompt(session_id=session.id, parts=[TextPartInput(text="go")]))
    await wait_until(lambda: not project.runs.is_any_running)
    after = project.store.get_session(session.id)
    await project.close()
    assert after.tokens is not None
    assert (after.title, after.tokens.input, after.tokens.output) == ("A title", 1_100, 110)
    assert after.cost == pytest.approx((1_100 * 1.0 + 110 * 2.0) / 1e6)


async def test_an_abort_ends_the_making_of_a_title(tmp_path: Path) -> None:
    side = ScriptedAnswer(kind="side", text="slow", deltas=4, delay_ms=30_000)
    async with opened(tmp_path, [ScriptedAnswer(text="Done."), side]) as (project, session_id):
        client = LocalClient(project)
        await client.call(PROMPT, Prompt(session_id=session_id, parts=[TextPartInput(text="go")]))
        assert project.runs.is_any_running
        await asyncio.wait_for(client.call(ABORT, SessionId(session_id=session_id)), 30)
        assert not project.runs.is_any_running
        assert project.store.get_session(session_id).title == "go"


async def test_a_failing_small_model_does_no_harm(tmp_path: Path) -> None:
    error = APIError(data=APIErrorData(message="no", is_retryable=False))
    assert (
        await titled(tmp_path, [SLOW, ScriptedAnswer(kind="side", error=error)], "fix it")
        == "fix it"
    )


async def test_a_title_that_a_person_gave_stays(tmp_path: Path) -> None:
    side = ScriptedAnswer(kind="side", text="another")
    assert await titled(tmp_path, [SLOW, side], "fix it", title="mine") == "mine"


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("", ""),
        (" \n\t\n", ""),
        ("one", "one"),
        ("x" * MAX_TITLE_CHARS, "x" * MAX_TITLE_CHARS),
        ("x" * (MAX_TITLE_CHARS + 1), "x" * (MAX_TITLE_CHARS - 1) + "…"),
    ],
)
def test_first_lines(prompt: str, title: str) -> None:
    assert shorten_to_line(prompt) == title
