"""Sessions move along when a folder gets another project,
but not from under a process that works with them.
"""

import asyncio
import subprocess
from pathlib import Path

from codeloop.app.app import App
from codeloop.app.models.open_models import SingleModel
from codeloop.app.process_dispatch import carry_out
from codeloop.app.project import open_project
from codeloop.model.testing.replay import ScriptedModel
from codeloop.schema.api.session_requests import (
    SESSION_CREATE,
    SESSION_GET,
    SESSION_LIST,
    CreateSession,
    ListSessions,
    SessionId,
)
from codeloop.schema.event import Todos, TodoUpdated
from codeloop.schema.message import Todo
from tests.support.scripted_project import make_startup


async def commit_first(folder: Path) -> None:
    git = ("git", "-C", str(folder), "-c", "user.name=t", "-c", "user.email=t@localhost")
    for words in (("init", "-q"), ("commit", "-q", "--allow-empty", "-m", "first")):
        await asyncio.to_thread(subprocess.run, [*git, *words], check=True)


async def test_sessions_that_another_process_has_open_stay_until_it_ends(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    startup = make_startup(tmp_path / "home", work)
    models = SingleModel(ScriptedModel([]))
    app = App(startup, models)
    try:
        session = await carry_out(app, SESSION_CREATE, CreateSession(title="one"), work)
        await commit_first(work)
        # Another process; a lock of this one counts as that of another.
        beside = await open_project(startup, models)
        assert beside.store.find_session(session.id) is None
        assert "open in another codeloop" in "".join(beside.services.warnings.messages)
        await beside.close()
        found = await carry_out(app, SESSION_GET, SessionId(session_id=session.id), work)
        assert found.project_id == "global"
    finally:
        await app.close()
    after = await open_project(startup, models)
    moved = after.store.get_session(session.id)
    assert moved.project_id == after.settings.project_root.project_id != "global"
    await after.close()


async def test_a_process_that_follows_sessions_goes_on_with_them_after_the_first_commit(
    tmp_path: Path,
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    app = App(make_startup(tmp_path / "home", work), SingleModel(ScriptedModel([])))
    try:
        session = await carry_out(app, SESSION_CREATE, CreateSession(title="one"), work)
        store = app.stores.open((await app.get_project(work)).store.path)
        await commit_first(work)
        await app.reload(work)
        assert [each.id for each in await carry_out(app, SESSION_LIST, ListSessions(), work)] == [
            session.id
        ]
        assert (await app.get_project(work)).store is store
        app.stores.release(store)
        await app.reload(work)
        # Nobody follows them any more, so they go to the folder's new project.
        assert [each.id for each in await carry_out(app, SESSION_LIST, ListSessions(), work)] == [
            session.id
        ]
        assert (await app.get_project(work)).settings.project_root.project_id != "global"
    finally:
        await app.close()


async def test_a_session_moves_with_its_subagents_and_its_list_of_tasks(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    startup = make_startup(tmp_path / "home", work)
    models = SingleModel(ScriptedModel([]))
    before = App(startup, models)
    session = await carry_out(before, SESSION_CREATE, CreateSession(title="one"), work)
    child = await carry_out(
        before, SESSION_CREATE, CreateSession(title="two", parent_id=session.id), work
    )
    todos = [Todo(content="x", status="pending", priority="low")]
    store = (await before.get_project(work)).store
    store.append(TodoUpdated(properties=Todos(session_id=session.id, todos=todos)))
    old_path = store.path
    await before.close()
    await commit_first(work)
    after = await open_project(startup, models)
    assert after.store.path != old_path
    assert {each.id for each in after.store.list_sessions()} == {session.id, child.id}
    assert after.store.list_todos(session.id) == todos
    await after.close()
