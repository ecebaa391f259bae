"""Terminals of a project: what clients are told, and what they keep open."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest

from codeloop.app.app import App
from codeloop.app.models.open_models import SingleModel
from codeloop.client.local import LocalClient
from codeloop.model.testing.replay import ScriptedModel
from codeloop.schema.api.pty import (
    PTY_CREATE,
    PTY_GET,
    PTY_LIST,
    PTY_REMOVE,
    PTY_SHELLS,
    PTY_TICKET,
    PTY_UPDATE,
    CreatePty,
    PtyId,
    PtySize,
    UpdatePty,
)
from codeloop.schema.errors import OperationError
from codeloop.schema.live_events import PtyCreated, PtyDeleted, PtyExited, PtyUpdated
from codeloop.schema.operation import AnyOperation, NoArguments
from codeloop.schema.resources import Pty
from tests.support.scripted_project import (
    ScriptedProject,
    make_startup,
    open_scripted_project,
    wait_for_result,
    wait_until,
)

Told = PtyCreated | PtyUpdated | PtyExited | PtyDeleted


@asynccontextmanager
async def hearing(desk: ScriptedProject) -> AsyncGenerator[list[Told]]:
    """Collect what is told of terminals, and check that it is told of this directory."""
    told: list[Told] = []

    async def listen() -> None:
        async for stamped in desk.project.store.follow():
            if isinstance(stamped.event, Told):
                assert stamped.directory == str(desk.work)
                told.append(stamped.event)

    task = asyncio.create_task(listen())
    await asyncio.sleep(0)
    yield told
    task.cancel()


async def opened(desk: ScriptedProject, *command: str) -> Pty:
    return await desk.client.call(PTY_CREATE, CreatePty(command=command[0], args=list(command[1:])))


async def test_every_change_is_told(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as desk, hearing(desk) as told:
        made = await opened(desk, "cat")
        renamed = await desk.client.call(
            PTY_UPDATE, UpdatePty(pty_id=made.id, title="mine", size=PtySize(rows=5, cols=6))
        )
        assert renamed.title == "mine"
        assert await desk.client.call(PTY_REMOVE, PtyId(pty_id=made.id)) is True
        next_one = await opened(desk, "cat")
        await wait_until(
            lambda: isinstance(told[-1], PtyCreated) and told[-1].properties.info == next_one
        )
        created, updated, deleted, _ = told
        assert isinstance(created, PtyCreated)
        assert created.properties.info == made
        assert isinstance(updated, PtyUpdated)
        assert updated.properties.info == renamed
        assert isinstance(deleted, PtyDeleted)
        assert deleted.properties.id == made.id


async def test_an_exit_is_told_and_the_terminal_is_gone(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as desk, hearing(desk) as told:
        made = await opened(desk, "/usr/bin/env", "sh", "-c", "exit 5")
        await wait_until(lambda: len(told) == 2)
        ended = told[1]
        assert isinstance(ended, PtyExited)
        assert (ended.properties.id, ended.properties.exit_code) == (made.id, 5)
        assert await desk.client.call(PTY_LIST, NoArguments()) == []
        rows: list[AnyOperation] = [PTY_GET, PTY_UPDATE, PTY_REMOVE, PTY_TICKET]
        for row in rows:
            with pytest.raises(OperationError, match=made.id) as caught:
                await desk.client.call(row, row.takes(pty_id=made.id))
            assert caught.value.kind == "PtyNotFoundError"


async def test_the_users_shell_runs_without_keys_where_the_project_is(tmp_path: Path) -> None:
    secret = "sk-ant-0123456789abcdef"
    one = make_startup(tmp_path / "home", tmp_path)
    environment = {
        **one.environment,
        "ANTHROPIC_API_KEY": secret,
        "MINE": "kept",
        "SHELL": "/bin/sh",
    }
    app = App(
        type(one)(directory=tmp_path, environment=environment), SingleModel(ScriptedModel([]))
    )
    try:
        project = await app.get_project(tmp_path)
        made = await LocalClient(project).call(PTY_CREATE, CreatePty())
        assert (made.command, made.args, made.cwd) == ("/bin/sh", ["-l"], str(tmp_path))
        terminal = project.workspace.terminals.get(made.id)
        assert terminal
        watcher = terminal.watch()
        await terminal.send_input(b"env > found; exit\n")
        while await wait_for_result(watcher.wait_for_output()):
            pass
        found = (tmp_path / "found").read_text()
        assert "MINE=kept" in found
        assert secret not in found
    finally:
        await app.close()


async def test_a_terminal_keeps_its_project_open(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as desk:
        assert not desk.project.is_busy
        made = await opened(desk, "cat")
        assert desk.project.is_busy
        await desk.client.call(PTY_REMOVE, PtyId(pty_id=made.id))
        assert not desk.project.is_busy


async def test_a_project_that_is_read_anew_has_its_terminals_still(tmp_path: Path) -> None:
    app = App(make_startup(tmp_path / "home", tmp_path), SingleModel(ScriptedModel([])))
    try:
        first = await app.get_project(tmp_path)
        made = await LocalClient(first).call(PTY_CREATE, CreatePty(command="cat"))
        for _ in range(3):
            await app.reload(tmp_path)
            project = await app.get_project(tmp_path)
            assert project is not first
            assert [
                each.id for each in await LocalClient(project).call(PTY_LIST, NoArguments())
            ] == [made.id]
            assert not first.is_busy
            first = project
    finally:
        await app.close()


async def test_a_terminal_goes_to_the_newest_project_of_a_directory_while_older_ones_still_work(
    tmp_path: Path,
) -> None:
    app = App(make_startup(tmp_path / "home", tmp_path), SingleModel(ScriptedModel([])))
    try:
        project = await app.get_project(tmp_path)
        made = await LocalClient(project).call(PTY_CREATE, CreatePty(command="cat"))
        with ExitStack() as working:
            for _ in range(3):
                working.enter_context(project.track_request())
                await app.reload(tmp_path)
                project = await app.get_project(tmp_path)
                assert [
                    each.id for each in await LocalClient(project).call(PTY_LIST, NoArguments())
                ] == [made.id]
    finally:
        await app.close()


async def test_a_terminal_that_can_not_be_opened_says_why(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as desk, hearing(desk) as told:
        for asked, message in (
            (CreatePty(command="nothing"), "'nothing' is not a program"),
            (CreatePty(cwd="nowhere"), "no directory"),
            (CreatePty(title="x" * 201), "longer than 200"),
            (CreatePty(args=["x" * 5_000_000]), "too long"),
        ):
            with pytest.raises(OperationError, match=message) as caught:
                await desk.client.call(PTY_CREATE, asked)
            assert caught.value.kind == "BadRequest"
        assert told == []


async def test_the_shells_of_the_machine_are_listed(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as desk:
        found = await desk.client.call(PTY_SHELLS, NoArguments())
        assert any(shell.name == "sh" and shell.acceptable for shell in found)
