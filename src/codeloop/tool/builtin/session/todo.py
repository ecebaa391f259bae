"""The tools `todowrite` and `todoread`: the model's task list,
replaced as a whole and shown by every client.
"""

from collections import Counter
from typing import Annotated, Literal

import msgspec

from codeloop.schema.message import Todo
from codeloop.schema.permission import Need
from codeloop.tool.json_schema import UNSENT
from codeloop.tool.tool import CONCURRENT_TRAITS, ToolContext, ToolFailure, ToolResult, Traits, tool


class TodoItem(msgspec.Struct, frozen=True):
    """One task of the list."""

    content: str
    status: Literal["pending", "in_progress", "completed", "cancelled"]
    priority: Annotated[
        Literal["high", "medium", "low"], msgspec.Meta(extra_json_schema=UNSENT)
    ] = "medium"


class TodoWriteParams(msgspec.Struct, frozen=True):
    """Arguments of the tool `todowrite`: the whole list, in order,
    with at most one task in progress.
    """

    todos: list[TodoItem]


_STATUS_WORDS = {
    "completed": "done",
    "in_progress": "in progress",
    "pending": "pending",
    "cancelled": "cancelled",
}


def _make_result(todos: list[Todo], output: str) -> ToolResult:
    """Return a result with the list in its metadata; its title counts the tasks not completed,
    cancelled ones too.
    """
    not_completed = [todo for todo in todos if todo.status != "completed"]
    return ToolResult(f"{len(not_completed)} todos", output, {"todos": msgspec.to_builtins(todos)})


def _format_counts(todos: list[Todo]) -> str:
    """Return the number of tasks in each state. The list is not repeated: the
    model has just written it.
    """
    counts = Counter(todo.status for todo in todos)
    states = ", ".join(
        f"{counts[status]} {words}" for status, words in _STATUS_WORDS.items() if counts[status]
    )
    return (
        f"{len(todos)} todo{'s' if len(todos) > 1 else ''}: {states}"
        if todos
        else "The list is empty now."
    )


@tool("todowrite", params=TodoWriteParams, traits=Traits(concurrent=False))
async def todowrite(params: TodoWriteParams, ctx: ToolContext) -> ToolResult:
    """Replace the session's task list. Raises ToolFailure when tasks are empty or
    more than one is in progress.
    """
    for number, item in enumerate(params.todos, 1):
        if not item.content.strip():
            raise ToolFailure(
                f"Todo {number} has no content.", advice="Say what to do, or leave it out."
            )
    in_progress = [item.content for item in params.todos if item.status == "in_progress"]
    if len(in_progress) > 1:
        names = "; ".join(in_progress)
        raise ToolFailure(
            f"{len(in_progress)} todos are in_progress ({names}).",
            advice="Keep one in_progress, the others pending.",
        )
    await ctx.ask(Need(permission="todowrite", patterns=("*",), always=("*",)))
    todos = [
        Todo(content=item.content, status=item.status, priority=item.priority)
        for item in params.todos
    ]
    ctx.session.set_todos(todos)
    return _make_result(todos, _format_counts(todos))


class TodoReadParams(msgspec.Struct, frozen=True):
    """Arguments of the tool `todoread`: none."""


@tool("todoread", params=TodoReadParams, traits=CONCURRENT_TRAITS)
async def todoread(_: TodoReadParams, ctx: ToolContext) -> ToolResult:
    """Return the session's task list."""
    await ctx.ask(Need(permission="todoread", patterns=("*",), always=("*",)))
    todos = ctx.session.list_todos()
    return _make_result(todos, msgspec.json.format(msgspec.json.encode(todos), indent=2).decode())
