"""Everything that one process serves: projects by directory,
and which of them works on a session.
"""

import asyncio
import subprocess
from collections.abc import AsyncGenerator, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest

from codeloop.app.app import App
from codeloop.app.models.open_models import SingleModel
from codeloop.app.process_dispatch import carry_out
from codeloop.model.testing.replay import ScriptedModel
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.process import GLOBAL_DISPOSE, INSTANCE_DISPOSE
from codeloop.schema.api.session_inputs import (
    ABORT,
    PROMPT,
    MessageWithParts,
    Prompt,
    TextPartInput,
)
from codeloop.schema.api.session_requests import SESSION_CREATE, CreateSession, SessionId
from codeloop.schema.errors import CodeloopError, OperationError
from codeloop.schema.limits import OPEN_PROJECTS
from codeloop.schema.live_events import BranchUpdated
from codeloop.schema.message import Session
from codeloop.schema.operation import NoArguments
from codeloop.workspace.sandbox.launcher.descendants import list_descendants
from tests.support.scripted_project import (
    make_answer,
    make_call,
    make_startup,
    wait_for_result,
    wait_until,
)

SLOW = make_answer(make_call("bash", command="touch begun; while [ ! -e go ]; do sleep 0.02; done"))
DONE = ScriptedAnswer(text="Done.")


@asynccontextmanager
async def app(tmp_path: Path, answers: Sequence[ScriptedAnswer] = ()) -> AsyncGenerator[App]:
    """Open an App whose own directory is `tmp_path/work`,
    with a repository beside it in `tmp_path/repository`.
    """
    for name in ("work", "repository/inner"):
        (tmp_path / name).mkdir(parents=True)
    git = (
        "git",
        "-C",
        str(tmp_path / "repository"),
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@localhost",
    )
    for words in (("init", "-q"), ("commit", "-q", "--allow-empty", "-m", "first")):
        await asyncio.to_thread(subprocess.run, [*git, *words], check=True)
    one = App(
        make_startup(tmp_path / "home", tmp_path / "work"), SingleModel(ScriptedModel(answers))
    )
    try:
        yield one
    finally:
        await one.close()


async def made(app: App, directory: Path) -> Session:
    return await carry_out(app, SESSION_CREATE, CreateSession(title="one"), directory)


def saying(session: Session) -> Prompt:
    return Prompt(session_id=session.id, parts=[TextPartInput(text="go")])


async def test_a_directory_has_one_project_however_it_is_named_and_however_often_at_once(
    tmp_path: Path,
) -> None:
    async with app(tmp_path) as it:
        (tmp_path / "link").symlink_to(tmp_path / "work")
        named = [
            it.resolve_directory(None),
            it.resolve_directory(""),
            it.resolve_directory("."),
            tmp_path / "link",
            it.resolve_directory("../work"),
        ]
        found = await asyncio.gather(*(it.get_project(directory) for directory in named))
        assert len({id(project) for project in found}) == 1
        assert found[0].settings.project_root.directory == tmp_path / "work"


async def test_a_directory_that_is_missing_is_refused_and_tried_anew(tmp_path: Path) -> None:
    async with app(tmp_path) as it:
        with pytest.raises(CodeloopError, match="can't be used"):
            await it.get_project(tmp_path / "later")
        (tmp_path / "later").mkdir()
        assert await it.get_project(tmp_path / "later")
        with pytest.raises(CodeloopError, match="NUL"):
            it.resolve_directory("a\0b")


async def test_two_directories_of_a_repository_share_its_store(tmp_path: Path) -> None:
    async with app(tmp_path) as it:
        top = await it.get_project(tmp_path / "repository")
        inner = await it.get_project(tmp_path / "repository" / "inner")
        assert top is not inner
        assert top.store is inner.store
        other = await it.get_project(tmp_path / "work")
        assert other.store is not top.store
        assert len(it.stores.list_open_stores()) == 2


async def test_what_is_asked_of_a_session_is_done_in_its_own_directory_whatever_the_client_names(
    tmp_path: Path,
) -> None:
    async with app(tmp_path, [make_answer(make_call("bash", command="pwd")), DONE]) as it:
        session = await made(it, tmp_path / "repository" / "inner")
        await wait_for_result(carry_out(it, PROMPT, saying(session), tmp_path / "work"), 20)
        project = await it.get_project(tmp_path / "repository" / "inner")
        outputs = [
            str(part)
            for entry in project.store.read_conversation(session.id).entries
            for part in entry.parts
        ]
        assert any(str(tmp_path / "repository" / "inner") in output for output in outputs)


async def test_a_session_of_a_project_that_is_not_open_is_found(tmp_path: Path) -> None:
    async with app(tmp_path) as it:
        session = await made(it, tmp_path / "repository")
    (tmp_path / "second").mkdir()
    again = App(
        make_startup(tmp_path / "home", tmp_path / "second"), SingleModel(ScriptedModel([DONE]))
    )
    try:
        answer: MessageWithParts = await wait_for_result(
            carry_out(again, PROMPT, saying(session), tmp_path / "second"), 20
        )
        assert answer.info.session_id == session.id
        assert (
            await again.find_session_project(session.id, tmp_path / "second")
        ).settings.project_root.vcs == "git"
        with pytest.raises(CodeloopError, match="Session not found"):
            await carry_out(
                again, PROMPT, Prompt(session_id="ses_none", parts=[]), tmp_path / "second"
            )
    finally:
        await again.close()


@pytest.mark.slow
async def test_a_directory_that_is_read_anew_lets_its_turns_end_and_reaches_them(
    tmp_path: Path,
) -> None:
    async with app(tmp_path, [SLOW, DONE, SLOW, DONE]) as it:
        work = tmp_path / "work"
        session = await made(it, work)
        before = await it.get_project(work)
        turn = asyncio.create_task(carry_out(it, PROMPT, saying(session), work))
        await wait_until((work / "begun").exists)
        await carry_out(it, INSTANCE_DISPOSE, NoArguments(), work)
        assert await it.get_project(work) is not before
        assert await it.find_session_project(session.id, work) is before, (
            "it is still working on that session"
        )
        (work / "go").touch()
        assert (await wait_for_result(turn, 20)).stop.reason == "done"
        await wait_until(lambda: not before.is_busy)
        (work / "go").unlink()
        (work / "begun").unlink()
        second = asyncio.create_task(carry_out(it, PROMPT, saying(session), work))
        await wait_until((work / "begun").exists)
        assert await it.find_session_project(session.id, work) is not before
        await carry_out(it, GLOBAL_DISPOSE, NoArguments(), work)
        await carry_out(it, ABORT, SessionId(session_id=session.id), work)
        assert (await wait_for_result(second, 20)).stop.reason == "aborted"


@pytest.mark.slow
async def test_no_more_directories_stay_open_than_may_and_all_are_answered(tmp_path: Path) -> None:
    async with app(tmp_path) as it:
        directories = [tmp_path / f"work/{number}" for number in range(OPEN_PROJECTS.value + 20)]
        for directory in directories:
            directory.mkdir()
        sessions = await asyncio.gather(*(made(it, directory) for directory in directories))
        assert [session.directory for session in sessions] == [
            str(directory) for directory in directories
        ]
        assert len(it.projects) == OPEN_PROJECTS.value


@pytest.mark.slow
async def test_a_directory_is_refused_while_as_many_as_may_be_are_at_work(tmp_path: Path) -> None:
    async with app(tmp_path) as it:
        with ExitStack() as working:
            for number in range(OPEN_PROJECTS.value):
                directory = tmp_path / f"work/{number}"
                directory.mkdir()
                working.enter_context((await it.get_project(directory)).track_request())
            with pytest.raises(OperationError, match="at work"):
                await it.get_project(tmp_path / "repository")
        assert await it.get_project(tmp_path / "repository")


async def test_a_directory_that_is_closed_the_moment_it_has_opened_opens_again_for_who_waits(
    tmp_path: Path,
) -> None:
    async with app(tmp_path) as it:
        work = tmp_path / "work"
        waiting = asyncio.create_task(made(it, work))
        while not it.projects:
            await asyncio.sleep(0)
        await it.reload(work)
        assert (await wait_for_result(waiting)).directory == str(work)


async def test_a_prompt_that_is_on_its_way_in_keeps_its_session_where_it_is(tmp_path: Path) -> None:
    async with app(tmp_path) as it:
        work = tmp_path / "work"
        session = await made(it, work)
        project = await it.get_project(work)
        with project.track_request():
            reading = asyncio.create_task(asyncio.sleep(30))
            coming = asyncio.create_task(project.runs.run_before_turn(session.id, reading))
            await asyncio.sleep(0)
            await carry_out(it, GLOBAL_DISPOSE, NoArguments(), work)
            assert await it.find_session_project(session.id, work) is project
            await carry_out(it, ABORT, SessionId(session_id=session.id), work)
            with pytest.raises(OperationError, match="Aborted"):
                await wait_for_result(coming)
        assert await it.find_session_project(session.id, work) is not project


async def test_directories_that_are_read_anew_by_many_at_once_are_closed_once(
    tmp_path: Path,
) -> None:
    async with app(tmp_path) as it:
        work = tmp_path / "work"
        for _ in range(5):
            for name in ("work", "repository", "repository/inner"):
                await it.get_project(tmp_path / name)
            ending = [carry_out(it, GLOBAL_DISPOSE, NoArguments(), work) for _ in range(10)]
            assert all(await asyncio.gather(*ending, *(made(it, work) for _ in range(10))))
        it.idle_seconds = 0
        await it.close_unused_projects()
        assert it.stores.list_open_stores() == ()


async def test_a_session_whose_directory_has_a_broken_configuration_is_not_worked_on_elsewhere(
    tmp_path: Path,
) -> None:
    async with app(tmp_path, [DONE]) as it:
        repository, inner = tmp_path / "repository", tmp_path / "repository/inner"
        session = await made(it, inner)
        await carry_out(it, INSTANCE_DISPOSE, NoArguments(), inner)
        (inner / "codeloop.json").write_text("{\n!")
        with pytest.raises(CodeloopError, match=r"inner/codeloop\.json:2:1"):
            await carry_out(it, PROMPT, saying(session), repository)
        (inner / "codeloop.json").unlink()
        inner.rmdir()
        answer: MessageWithParts = await carry_out(it, PROMPT, saying(session), repository)
        assert answer.stop
        assert answer.stop.reason == "done"


async def test_an_idle_project_is_closed_unless_somebody_follows_it_or_it_works(
    tmp_path: Path,
) -> None:
    async with app(tmp_path, [SLOW, DONE]) as it:
        work, repository, inner = (
            tmp_path / name for name in ("work", "repository", "repository/inner")
        )
        session = await made(it, work)
        for directory in (repository, inner):
            await it.get_project(directory)
        turn = asyncio.create_task(carry_out(it, PROMPT, saying(session), work))
        await wait_until((work / "begun").exists)
        watched = {inner}
        it.add_follower_check(lambda directory: directory in watched)
        it.idle_seconds = 0
        await it.close_unused_projects()
        assert {project.settings.project_root.directory for project in it.projects} == {work, inner}
        (work / "go").touch()
        await wait_for_result(turn, 20)
        await wait_until(lambda: not any(project.is_busy for project in it.projects))
        watched.clear()
        it.idle_seconds = 3600
        await it.close_unused_projects()
        assert len(it.projects) == 2
        it.idle_seconds = 0
        await it.close_unused_projects()
        assert it.projects == ()
        assert it.stores.list_open_stores() == ()
        assert await it.get_project(work), "it opens again by itself"


async def test_a_turn_that_checks_another_branch_out_tells_it(tmp_path: Path) -> None:
    async with app(
        tmp_path, [make_answer(make_call("bash", command="git checkout -q -b feature")), DONE]
    ) as it:
        project = await it.get_project(tmp_path / "repository")
        heard: list[str | None] = []

        async def listen() -> None:
            async for stamped in project.store.follow():
                if isinstance(stamped.event, BranchUpdated):
                    heard.append(stamped.event.properties.branch)
                    assert stamped.directory == str(tmp_path / "repository")

        listening = asyncio.create_task(listen())
        session = await made(it, tmp_path / "repository")
        await wait_for_result(carry_out(it, PROMPT, saying(session), tmp_path / "repository"), 20)
        await wait_until(lambda: heard == ["feature"])
        listening.cancel()


async def test_an_idle_project_that_is_followed_keeps_no_process(tmp_path: Path) -> None:
    kept = f"/tmp/{tmp_path.name}-kept"
    first = make_answer(make_call("bash", command=f"echo $((20 + 3)) | tee {kept} > made"))
    second = make_answer(make_call("bash", command=f"cat {kept} > made; rm {kept}"))
    async with app(tmp_path, [first, DONE, second, DONE]) as it:
        work, before = tmp_path / "work", list_descendants()
        session = await made(it, work)
        await carry_out(it, PROMPT, saying(session), work)
        assert (work / "made").read_text() == "23\n"
        (project,) = it.projects
        await wait_until(lambda: not project.is_busy)
        assert list_descendants() - before
        it.add_follower_check(lambda _: True)
        it.idle_seconds = 0
        await it.close_unused_projects()
        assert it.projects == (project,)
        await wait_until(lambda: not list_descendants() - before)
        (work / "made").unlink()
        await carry_out(it, PROMPT, saying(session), work)
        assert (work / "made").read_text() == "23\n", "its processes start again, with their files"
