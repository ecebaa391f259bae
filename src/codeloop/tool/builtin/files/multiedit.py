"""The tool `multiedit`: makes several edits of one file, all or none."""

from typing import Annotated

import msgspec
from msgspec import Meta

from codeloop.tool.builtin.files.edit import edit_file
from codeloop.tool.tool import ToolContext, ToolResult, Traits, tool
from codeloop.workspace.edit.edit import Edit


class OneEdit(msgspec.Struct, frozen=True, rename="camel"):
    """One replacement: the old text, the new text, and whether every occurrence is replaced."""

    old_string: str
    new_string: str
    replace_all: bool = False


class MultieditParams(msgspec.Struct, frozen=True, rename="camel"):
    """Arguments of the tool `multiedit`."""

    file_path: str
    edits: Annotated[list[OneEdit], Meta(description="The edits, in order", min_length=1)]


@tool("multiedit", params=MultieditParams, traits=Traits(permission="edit"))
async def multiedit(params: MultieditParams, ctx: ToolContext) -> ToolResult:
    """Make the edits in order, each on the result of the one before."""
    steps = [Edit(step.old_string, step.new_string, step.replace_all) for step in params.edits]
    return await edit_file(ctx, params.file_path, steps)
