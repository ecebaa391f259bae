"""The dialogs about sessions, over a real project with stored ones."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_requests import (
    SESSION_CREATE,
    SESSION_FORK,
    SESSION_LIST,
    CreateSession,
    ForkSession,
    ListSessions,
)
from codeloop.schema.api.session_undo import FileConflict, FileDone, FilesOutcome
from codeloop.schema.message import Session, UserMessage
from codeloop.tui.dialogs.parts.dialog import DialogContext
from codeloop.tui.dialogs.sessions import ChildPicker, ForkPicker, SessionPicker
from codeloop.tui.dialogs.timeline import Timeline, TimelineStep, describe_outcome
from codeloop.tui.settings.session_pins import SessionPins
from tests.support.scripted_project import (
    ScriptedProject,
    make_answer,
    make_call,
    open_scripted_project,
    wait_until,
)
from tests.tui.stage import Stage, staged

WIDE = (140, 45)


def context(app: Stage, it: ScriptedProject) -> DialogContext:
    return DialogContext(it.client, app.colours, app.ask)


@asynccontextmanager
async def stored(tmp_path: Path) -> AsyncGenerator[tuple[ScriptedProject, Session]]:
    """Hold a session with two turns, the second of which writes a file, and another one."""
    script = [
        ScriptedAnswer(text="The parser is in parse.py."),
        make_answer(make_call("write", filePath="new.txt", content="x\n")),
        ScriptedAnswer(text="Written."),
    ]
    async with open_scripted_project(tmp_path, script) as it:
        (it.work / "parse.py").write_text("x = 1\n")
        await it.prompt("where is the parser?")
        await it.prompt("write a file")
        other = await it.client.call(SESSION_CREATE, CreateSession(title="Another matter"))
        yield it, other


async def sessions(it: ScriptedProject) -> dict[str, str]:
    listed = await it.client.call(SESSION_LIST, ListSessions(scope="project"))
    return {session.id: session.title for session in listed}


@pytest.mark.slow
async def test_sessions_are_found_renamed_forked_and_deleted(tmp_path: Path) -> None:
    app = Stage()
    async with stored(tmp_path) as (it, other), staged(app, WIDE) as pilot:
        app.open(SessionPicker(context(app, it), SessionPins(tmp_path), it.session_id))
        await app.sees("▎ write a file")
        assert "Today" in app.shown() or "Yesterday" in app.shown()  # midnight may be between
        assert "1 tool call" in app.shown()
        await pilot.press("down", "ctrl+t")
        await app.sees("Pinned")
        assert len(SessionPins(tmp_path).read()) == 1
        await pilot.press("ctrl+t", "up", *"parse.py")
        await app.sees("parser is in parse.py")
        await pilot.press(*["backspace"] * 8, *"another")
        await wait_until(lambda: "write a file" not in app.shown())
        await pilot.press("ctrl+r")
        await app.sees("Rename")
        await pilot.press("end", *" one", "enter")
        await wait_until(lambda: len(app.screen_stack) == 2)  # it stands in the line, too
        await app.sees("Another matter one")
        assert (await sessions(it))[other.id] == "Another matter one"
        await pilot.press("ctrl+d")
        await app.sees("Delete session?")
        await pilot.press("n")
        await wait_until(lambda: "Delete session?" not in app.shown())
        await pilot.press("ctrl+d")
        await app.sees("Delete session?")
        await pilot.press("y")
        await app.sees("Nothing matches")
        assert other.id not in await sessions(it)
        await pilot.press(*["backspace"] * 7)
        await app.sees("write a file")
        await pilot.press("ctrl+f")
        await wait_until(lambda: app.results)
        assert app.results[0] in await sessions(it)
        assert app.results[0] != it.session_id


async def test_a_fork_stands_below_what_it_was_made_from(tmp_path: Path) -> None:
    app = Stage()
    async with (
        open_scripted_project(
            tmp_path, [ScriptedAnswer(text="One."), ScriptedAnswer(text="Two.")]
        ) as it,
        staged(app) as pilot,
    ):
        await it.prompt("the first thing")
        await it.prompt("the second thing")
        second = it.view().entries[2].info.id
        await it.client.call(SESSION_FORK, ForkSession(session_id=it.session_id))
        part = await it.client.call(
            SESSION_FORK, ForkSession(session_id=it.session_id, message_id=second)
        )
        below = await it.client.call(SESSION_FORK, ForkSession(session_id=part.id))
        app.open(ForkPicker(context(app, it), part))
        await app.sees("before “the second th")
        rows = [row for row in app.shown().splitlines() if "└" in row]
        assert [row.count("─") for row in rows] == [0, 0, 2]
        assert "(fork #1)" in rows[0]
        assert "● └ " in rows[1]
        await pilot.press("down", "enter")
        assert app.results == [below.id]


@pytest.mark.slow
async def test_which_session_waits_for_an_answer_is_told(tmp_path: Path) -> None:
    app = Stage()
    script = [make_answer(make_call("bash", command="touch x"))]
    async with (
        open_scripted_project(tmp_path, script, permission={"bash": "ask"}) as it,
        staged(app) as pilot,
    ):
        turn = asyncio.create_task(it.prompt())
        request = await it.question()
        app.open(SessionPicker(context(app, it), SessionPins(tmp_path)))
        await app.sees("waits for you")
        await pilot.press("enter")
        assert app.results == [it.session_id]
        await it.answer(request, "reject")
        await turn


@pytest.mark.slow
async def test_subagents_are_listed_below_their_parents(tmp_path: Path) -> None:
    app = Stage()
    async with stored(tmp_path) as (it, _), staged(app) as pilot:
        app.open(ChildPicker(context(app, it), it.session_id))
        await app.sees("No subagent was started here.")
        await pilot.press("escape")
        child = await it.client.call(
            SESSION_CREATE, CreateSession(parent_id=it.session_id, title="Look around")
        )
        await it.client.call(SESSION_CREATE, CreateSession(parent_id=child.id, title="Look deeper"))
        app.open(ChildPicker(context(app, it), it.session_id))
        await app.sees("Look deeper")
        await pilot.press("enter")
        assert app.results == [None, child.id]


@pytest.mark.slow
async def test_a_subagent_of_a_subagent_stands_right_below_the_one_that_started_it(
    tmp_path: Path,
) -> None:
    app = Stage()
    async with stored(tmp_path) as (it, _), staged(app):
        for name in ("One", "Two"):
            child = await it.client.call(
                SESSION_CREATE, CreateSession(parent_id=it.session_id, title=name)
            )
            await it.client.call(
                SESSION_CREATE, CreateSession(parent_id=child.id, title=f"Within {name}")
            )
        app.open(ChildPicker(context(app, it), it.session_id))
        await app.sees("Within Two")
        rows = [row for row in app.shown().splitlines() if "One" in row or "Two" in row]
        for name in ("One", "Two"):
            place = next(place for place, row in enumerate(rows) if name in row)
            assert f"└ Within {name}" in rows[place + 1]


def test_the_files_of_an_undo_are_told_in_the_words_of_the_command_line() -> None:
    done = [FileDone(path="a", what="moved", source="b\x1b"), FileDone(path="c", what="created")]
    conflict = FileConflict(path="d", reason="it was changed since")
    outcome = FilesOutcome(restored=["a", "c"], unchanged=[], conflicts=[conflict], done=done)
    moved, *others = describe_outcome(outcome).splitlines()
    assert moved.startswith("moved back  b")
    assert moved.endswith(" -> a")
    assert "\x1b" not in moved
    assert others == ["re-created  c", "skipped  d: it was changed since"]


@pytest.mark.slow
async def test_the_timeline_jumps_copies_forks_and_undoes_with_the_files(tmp_path: Path) -> None:
    app = Stage()
    async with stored(tmp_path) as (it, _), staged(app, WIDE) as pilot:
        where, write = [
            entry.info.id for entry in it.view().entries if isinstance(entry.info, UserMessage)
        ]
        app.open(Timeline(context(app, it), it.session_id))
        await app.sees("new.txt")
        assert "+1 -0" in app.shown()
        await pilot.press("down", "enter")
        assert app.results.pop() == TimelineStep(
            "jump", where, "where is the parser?", it.session_id
        )
        for key, what in (("ctrl+y", "copy"), ("ctrl+f", "fork")):
            app.open(Timeline(context(app, it), it.session_id))
            await app.sees("write a file")
            await pilot.press(key)
            await wait_until(lambda: app.results)
            step = app.results.pop()
            assert (step.action, step.message_id, step.text) == (what, write, "write a file")
        assert step.session_id in await sessions(it)
        app.open(Timeline(context(app, it), it.session_id))
        await app.sees("write a file")
        await pilot.press("ctrl+u")
        await app.sees("Undo this prompt and what follows?")
        assert "deleted  new.txt" in app.shown()
        assert (it.work / "new.txt").exists()
        await pilot.press("y")
        await wait_until(lambda: app.results)
        assert app.results.pop().action == "undo"
        assert not (it.work / "new.txt").exists()
