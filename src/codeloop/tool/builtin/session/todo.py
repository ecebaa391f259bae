"""The tools `todowrite` and `todoread`: the model's task list, replaced as a whole and shown by every client."""

from typing import Literal

import msgspec

from codeloop.schema.message import Todo
from codeloop.schema.permission import Need
from codeloop.tool.tool import READ_ONLY, ToolContext, ToolFailure, ToolResult, Traits, tool


class TodoItem(msgspec.Struct, frozen=True):
    """One task: what to do, how far it is, how much it matters."""

    content: str
    status: Literal["pending", "in_progress", "completed", "cancelled"]
    priority: Literal["high", "medium", "low"] = "medium"


class TodoWriteParams(msgspec.Struct, frozen=True):
    """The whole list, in order; at most one task in_progress."""

    todos: list[TodoItem]


def listed(todos: list[Todo]) -> ToolResult:
    """Return a list as the result of a call: JSON for the model, how many are open for the person."""
    data: list[dict[str, str]] = msgspec.to_builtins(todos)
    is_open = [todo for todo in todos if todo.status != "completed"]
    text = msgspec.json.format(msgspec.json.encode(todos), indent=2).decode()
    return ToolResult(f"{len(is_open)} todos", text, {"todos": data})


@tool("todowrite", params=TodoWriteParams, traits=Traits(concurrent=False))
async def todowrite(params: TodoWriteParams, ctx: ToolContext) -> ToolResult:
    """Replace the session's task list. Raises ToolFailure when tasks are empty or more than one is in progress."""
    for number, item in enumerate(params.todos, 1):
        if not item.content.strip():
            raise ToolFailure(f"Todo {number} has no content. Say what to do, or leave it out.")
    busy = [item.content for item in params.todos if item.status == "in_progress"]
    if len(busy) > 1:
        names = "; ".join(busy)
        raise ToolFailure(f"{len(busy)} todos are in_progress ({names}). Keep one in_progress, the others pending.")
    await ctx.ask(Need(permission="todowrite", patterns=("*",), always=("*",)))
    todos = [Todo(content=item.content, status=item.status, priority=item.priority) for item in params.todos]
    ctx.session.set_todos(todos)
    return listed(todos)


class TodoReadParams(msgspec.Struct, frozen=True):
    """Nothing."""


@tool("todoread", params=TodoReadParams, traits=READ_ONLY)
async def todoread(_: TodoReadParams, ctx: ToolContext) -> ToolResult:
    """Return the session's task list."""
    await ctx.ask(Need(permission="todoread", patterns=("*",), always=("*",)))
    return listed(ctx.session.todos())
