"""Reading the model's task list back."""

import msgspec

from codeloop.schema.permission import Need
from codeloop.tool.builtin.session.todowrite import listed
from codeloop.tool.tool import READ_ONLY, ToolContext, ToolResult, tool


class TodoReadParams(msgspec.Struct, frozen=True):
    """Nothing."""


@tool("todoread", params=TodoReadParams, traits=READ_ONLY)
async def todoread(_: TodoReadParams, ctx: ToolContext) -> ToolResult:
    """Return the session's task list, empty when there is none."""
    await ctx.ask(Need(permission="todoread", patterns=("*",), always=("*",)))
    return listed(ctx.session.todos())
