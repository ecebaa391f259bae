"""The task list: stored, shown, read back."""

import json
from pathlib import Path

import msgspec
import pytest

from codeloop.permission.gate import Denied
from codeloop.schema.event import TodoUpdated
from codeloop.tool.builtin.session.todo import TodoReadParams, TodoWriteParams, todoread, todowrite
from codeloop.tool.tool import ToolFailure
from tests.tool.context import make_context


def params(*todos: tuple[str, str, str]) -> TodoWriteParams:
    items = [
        {"content": content, "status": status, "priority": priority}
        for content, status, priority in todos
    ]
    return msgspec.convert({"todos": items}, TodoWriteParams)


async def test_a_list_is_stored_shown_and_read_back(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    seq = ctx.store.read_last_seq()
    wanted = params(
        ("a", "completed", "high"), ("b", "in_progress", "low"), ("c", "pending", "medium")
    )
    result = await todowrite.run(wanted, ctx)
    assert result.title == "2 todos"
    assert result.output == "3 todos: 1 done, 1 in progress, 1 pending"
    assert [todo.content for todo in ctx.store.list_todos(ctx.session_id)] == ["a", "b", "c"]
    (event,) = [stamped.event for stamped in ctx.store.outbox.read_events(seq)]
    assert isinstance(event, TodoUpdated)
    assert event.properties.todos == ctx.store.list_todos(ctx.session_id)
    read = await todoread.run(TodoReadParams(), ctx)
    assert (read.title, read.metadata) == (result.title, result.metadata)
    assert result.metadata == {"todos": json.loads(read.output)}, "clients see the whole list"
    assert read.output == json.dumps(json.loads(read.output), indent=2)


async def test_a_new_list_replaces_the_old_one(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    await todowrite.run(params(("a", "pending", "high")), ctx)
    result = await todowrite.run(params(), ctx)
    assert (result.title, result.output, ctx.store.list_todos(ctx.session_id)) == (
        "0 todos",
        "The list is empty now.",
        [],
    )


async def test_there_is_no_list_at_first(tmp_path: Path) -> None:
    result = await todoread.run(TodoReadParams(), make_context(tmp_path))
    assert (result.title, result.output) == ("0 todos", "[]")


async def test_two_tasks_in_progress_are_refused_and_nothing_changes(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    with pytest.raises(ToolFailure, match="2 todos are in_progress"):
        await todowrite.run(params(("a", "in_progress", "high"), ("b", "in_progress", "low")), ctx)
    with pytest.raises(ToolFailure, match="Todo 1 has no content"):
        await todowrite.run(params((" ", "pending", "high")), ctx)
    assert ctx.store.list_todos(ctx.session_id) == []


async def test_permission_comes_first(tmp_path: Path) -> None:
    ctx = make_context(tmp_path, deny=["todowrite"])
    with pytest.raises(Denied):
        await todowrite.run(params(("a", "pending", "high")), ctx)
    assert ctx.store.list_todos(ctx.session_id) == []
    assert (ctx.asked[0].permission, ctx.asked[0].patterns, ctx.asked[0].always) == (
        "todowrite",
        ("*",),
        ("*",),
    )


@pytest.mark.parametrize(("status", "priority"), [("done", "high"), ("pending", "urgent")])
def test_other_words_for_status_and_priority_are_refused(status: str, priority: str) -> None:
    with pytest.raises(msgspec.ValidationError, match="Invalid enum value"):
        params(("a", status, priority))


def test_descriptions_are_short() -> None:
    assert all(0 < len(tool.description) <= 350 for tool in (todowrite, todoread))
