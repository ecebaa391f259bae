"""Sessions as a client sees them: lists, changes, what they are doing, and deleting."""

import asyncio
import gc
import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from codeloop.app.project import open_project
from codeloop.client.local import LocalClient
from codeloop.model.chat import ModelEvent, ModelRequest, RetryScheduled
from codeloop.model.testing.replay import SCRIPT_INFO
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_inputs import ABORT, PROMPT_ASYNC, Prompt, TextPartInput
from codeloop.schema.api.session_requests import (
    SESSION_CHILDREN,
    SESSION_CREATE,
    SESSION_DELETE,
    SESSION_EVERYTHING,
    SESSION_GET,
    SESSION_LIST,
    SESSION_STATUS,
    SESSION_TODO,
    SESSION_UPDATE,
    ArchiveTime,
    CreateSession,
    ListAllSessions,
    ListSessions,
    SessionId,
    UpdateSession,
)
from codeloop.schema.errors import OperationError
from codeloop.schema.live_events import Busy, Retry
from codeloop.schema.message import Session, Todo
from codeloop.schema.operation import NoArguments
from codeloop.schema.permission import PermissionRule
from tests.cli.program import UNCONFINED
from tests.support.scripted_project import (
    ScriptedProject,
    both_clients,
    make_answer,
    make_call,
    make_startup,
    open_scripted_project,
    wait_until,
)

__all__ = ["both_clients"]

SLEEP = make_answer(make_call("bash", command="touch begun; sleep 77"))


def titles(sessions: list[Session]) -> list[str]:
    return [each.title for each in sessions]


async def refused(wait: Any) -> OperationError:
    with pytest.raises(OperationError) as raised:
        await wait
    return raised.value


async def begin(it: ScriptedProject) -> None:
    await it.client.call(
        PROMPT_ASYNC, Prompt(session_id=it.session_id, parts=[TextPartInput(text="go")])
    )
    await wait_until((it.work / "begun").exists)


async def test_what_is_given_changes_and_nothing_else(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        before = await it.client.call(SESSION_GET, SessionId(session_id=it.session_id))
        rules = [PermissionRule(permission="bash", pattern="*", action="deny")]
        for change in (
            UpdateSession(session_id=it.session_id, title="a new name"),
            UpdateSession(session_id=it.session_id, metadata={"a": [1]}),
            UpdateSession(session_id=it.session_id, permission=rules),
            UpdateSession(session_id=it.session_id, time=ArchiveTime(archived=77)),
        ):
            await it.client.call(SESSION_UPDATE, change)
        after = await it.client.call(SESSION_GET, SessionId(session_id=it.session_id))
        assert (after.title, after.metadata, after.permission) == ("a new name", {"a": [1]}, rules)
        assert after.time.archived == 77
        assert (after.time.updated, after.slug, after.cost) == (
            before.time.updated,
            before.slug,
            before.cost,
        )
        back = await it.client.call(
            SESSION_UPDATE, UpdateSession(session_id=it.session_id, time=ArchiveTime())
        )
        assert back.time.archived is None
        assert (
            await refused(
                it.client.call(SESSION_UPDATE, UpdateSession(session_id=it.session_id, title=" "))
            )
        ).kind == "BadRequest"
        assert (
            await refused(
                it.client.call(SESSION_UPDATE, UpdateSession(session_id="ses_x", title="a"))
            )
        ).kind == "NotFoundError"


async def test_a_name_given_while_a_turn_runs_stays(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path,
        [
            make_answer(make_call("bash", command="until [ -e go ]; do sleep 0.01; done")),
            ScriptedAnswer(text="Done."),
        ],
    ) as it:
        turn = asyncio.create_task(it.prompt())
        await wait_until(it.calls)
        await it.client.call(SESSION_UPDATE, UpdateSession(session_id=it.session_id, title="mine"))
        (it.work / "go").touch()
        await turn
        assert it.view().session.title == "mine"


async def test_a_list_is_filtered_as_asked(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        await it.client.call(
            SESSION_UPDATE, UpdateSession(session_id=it.session_id, title="100% of Ärger")
        )
        await it.client.call(SESSION_CREATE, CreateSession(title="child", parent_id=it.session_id))
        await asyncio.sleep(0.002)
        last = await it.client.call(SESSION_CREATE, CreateSession(title="last_one"))
        assert titles(await it.client.call(SESSION_LIST, ListSessions()))[0] == "last_one"
        assert len(await it.client.call(SESSION_LIST, ListSessions())) == 3
        assert "child" not in titles(await it.client.call(SESSION_LIST, ListSessions(roots=True)))
        assert titles(await it.client.call(SESSION_LIST, ListSessions(limit=1))) == ["last_one"]
        assert titles(
            await it.client.call(SESSION_LIST, ListSessions(start=last.time.updated))
        ) == ["last_one"]
        for search, found in (
            ("ärger", ["100% of Ärger"]),
            ("0% O", ["100% of Ärger"]),
            ("t_o", ["last_one"]),
            ("_%", []),
            ("ö", []),
        ):
            assert titles(await it.client.call(SESSION_LIST, ListSessions(search=search))) == found
        assert (
            await refused(it.client.call(SESSION_LIST, ListSessions(limit=0)))
        ).kind == "BadRequest"


async def test_directories_of_a_repository_are_told_apart(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "sub" / "deep").mkdir(parents=True)
    (work / "subway").mkdir()
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    who = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    subprocess.run(
        ["git", "-C", str(work), *who, "commit", "-q", "--allow-empty", "-m", "x"], check=True
    )
    for name in (".", "sub", "sub/deep", "subway"):
        project = await open_project(make_startup(tmp_path / "home", work / name))
        await LocalClient(project).call(SESSION_CREATE, CreateSession(title=name))
        await project.close()
    project = await open_project(make_startup(tmp_path / "home", work / "sub"))
    client = LocalClient(project)

    async def found(**query: Any) -> set[str]:
        return set(titles(await client.call(SESSION_LIST, ListSessions(**query))))

    everything = {".", "sub", "sub/deep", "subway"}
    try:
        assert await found(directory=str(work / "sub")) == {"sub"}
        assert await found(directory=str(work)) == everything
        assert await found(directory=str(work / "sub"), path="") == everything
        assert await found(directory=str(work / "sub"), scope="project") == everything
        assert await found(path="sub") == {"sub", "sub/deep"}
        assert await found(path="sub/deep/") == {"sub/deep"}
        assert await found(path="s_b") == set()
        assert await found(directory="/elsewhere") == set()
    finally:
        await project.close()


async def test_sessions_of_other_projects_are_listed_only_when_all_are_asked_for(
    tmp_path: Path,
) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        other = it.project.settings.paths.get_project_folder("0" * 40)
        damaged = it.project.settings.paths.get_project_folder("1" * 40)
        damaged.mkdir(parents=True)
        (damaged / "codeloop.db").write_text(
            "not a database, but long enough to be looked at as one" * 9
        )
        (tmp_path / "else").mkdir()
        project = await open_project(make_startup(tmp_path / "second", tmp_path / "else"))
        await LocalClient(project).call(SESSION_CREATE, CreateSession(title="elsewhere"))
        path = project.store.path
        await project.close()
        other.mkdir(parents=True)
        path.rename(other / "codeloop.db")
        assert "elsewhere" not in titles(
            await it.client.call(SESSION_LIST, ListSessions(scope="project"))
        )
        assert titles(await it.client.call(SESSION_EVERYTHING, ListAllSessions(limit=1))) == [
            "elsewhere"
        ]
        assert len(await it.client.call(SESSION_EVERYTHING, ListAllSessions())) == 2
        assert titles(
            await it.client.call(SESSION_EVERYTHING, ListAllSessions(search="LSEWH"))
        ) == ["elsewhere"]


async def test_children_and_the_task_list_are_given(tmp_path: Path) -> None:
    todo = {"content": "a", "status": "pending", "priority": "low"}
    async with open_scripted_project(
        tmp_path, [make_answer(make_call("todowrite", todos=[todo])), ScriptedAnswer(text="Done.")]
    ) as it:
        child = await it.client.call(SESSION_CREATE, CreateSession(parent_id=it.session_id))
        assert await it.client.call(SESSION_CHILDREN, SessionId(session_id=it.session_id)) == [
            child
        ]
        assert await it.client.call(SESSION_TODO, SessionId(session_id=it.session_id)) == []
        await it.prompt()
        assert await it.client.call(SESSION_TODO, SessionId(session_id=it.session_id)) == [
            Todo(content="a", status="pending", priority="low")
        ]
        nobody = SessionId(session_id="ses_x")
        assert (await refused(it.client.call(SESSION_CHILDREN, nobody))).kind == "NotFoundError"
        assert (await refused(it.client.call(SESSION_TODO, nobody))).kind == "NotFoundError"


async def test_only_what_is_not_idle_has_a_status(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [SLEEP]) as it:
        assert await it.client.call(SESSION_STATUS, NoArguments()) == {}
        await begin(it)
        assert await it.client.call(SESSION_STATUS, NoArguments()) == {it.session_id: Busy()}
        await it.client.call(ABORT, SessionId(session_id=it.session_id))
        assert await it.client.call(SESSION_STATUS, NoArguments()) == {}


class Overloaded:
    """A model whose service asks to wait, for ever."""

    info = SCRIPT_INFO

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        yield RetryScheduled(attempt=1, message="overloaded", at=123)
        await asyncio.Event().wait()


async def test_waiting_for_another_try_shows_when_it_comes(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, Overloaded()) as it:
        await it.client.call(
            PROMPT_ASYNC, Prompt(session_id=it.session_id, parts=[TextPartInput(text="go")])
        )
        retry = Retry(attempt=1, message="overloaded", next=123)
        await wait_until(lambda: it.project.store.statuses.get(it.session_id) == retry)
        gc.collect()  # nothing but the turn itself holds what it waits for
        assert await it.client.call(SESSION_STATUS, NoArguments()) == {it.session_id: retry}
        await it.client.call(ABORT, SessionId(session_id=it.session_id))
        assert await it.client.call(SESSION_STATUS, NoArguments()) == {}


async def test_a_subagent_is_busy_while_it_works_and_then_idle(tmp_path: Path) -> None:
    task = make_call("task", description="d", prompt="p", subagent_type="general")
    async with open_scripted_project(
        tmp_path,
        [make_answer(task), SLEEP, ScriptedAnswer(text="Child."), ScriptedAnswer(text="Done.")],
    ) as it:
        turn = asyncio.create_task(it.prompt())
        await wait_until((it.work / "begun").exists)
        (child,) = await it.client.call(SESSION_CHILDREN, SessionId(session_id=it.session_id))
        assert set(await it.client.call(SESSION_STATUS, NoArguments())) == {it.session_id, child.id}
        await it.client.call(ABORT, SessionId(session_id=it.session_id))
        await turn
        assert await it.client.call(SESSION_STATUS, NoArguments()) == {}


async def test_a_session_whose_subagent_works_is_not_deleted(tmp_path: Path) -> None:
    # Above it is a session that has no agent yet: the person's rules hold there all the same.
    async with open_scripted_project(tmp_path, [SLEEP], **UNCONFINED) as it:
        parent = await it.client.call(SESSION_CREATE, CreateSession())
        child = await it.client.call(SESSION_CREATE, CreateSession(parent_id=parent.id))
        await it.client.call(
            PROMPT_ASYNC, Prompt(session_id=child.id, parts=[TextPartInput(text="go")])
        )
        await wait_until((it.work / "begun").exists)
        assert (
            await refused(it.client.call(SESSION_DELETE, SessionId(session_id=parent.id)))
        ).kind == "SessionBusyError"
        await it.client.call(ABORT, SessionId(session_id=child.id))
        assert await it.client.call(SESSION_DELETE, SessionId(session_id=parent.id)) is True
        assert it.project.store.find_session(child.id) is None
